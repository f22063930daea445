//! The parameters behind a value: `; name=value; name="value"`.

use crate::http::scan::is_token;

/// How browsers (HTML standard, "multipart/form-data encoding algorithm") and other programs (RFC 9110, section 5.6.4)
/// write what can't stand in a quoted string. All other backslashes and percent signs stand for themselves, since
/// browsers don't escape them: a Windows path stays one.
const ESCAPES: [(&str, char); 7] =
    [("\\\"", '"'), ("\\\\", '\\'), ("%22", '"'), ("%0D", '\r'), ("%0d", '\r'), ("%0A", '\n'), ("%0a", '\n')];

const BLANKS: [char; 2] = [' ', '\t'];

/// The parameters in a text that is empty or begins with a semicolon; nothing if they are malformed.
pub(super) fn parse(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut parameters = Vec::new();
    loop {
        text = text.trim_start_matches(BLANKS);
        if text.is_empty() {
            return Some(parameters);
        }
        text = text.strip_prefix(';')?.trim_start_matches(BLANKS);
        if text.is_empty() || text.starts_with(';') {
            continue;
        }
        let (name, behind) = text.split_once('=')?;
        let name = name.trim_end_matches(BLANKS);
        if name.is_empty() || !name.bytes().all(is_token) {
            return None;
        }
        let (value, behind) = value(behind.trim_start_matches(BLANKS))?;
        parameters.push((name, value));
        text = behind;
    }
}

/// A value and what follows it. An unquoted one goes up to the semicolon: it is no token if a client forgot to quote it,
/// but there is nothing else that it could mean.
fn value(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        return unquote(quoted);
    }
    let (value, behind) = text.split_at(text.find(';').unwrap_or(text.len()));
    let value = value.trim_end_matches(BLANKS);
    (!value.is_empty() && !value.contains('"')).then(|| (value.to_owned(), behind))
}

/// The text up to the closing quote, and what follows that.
fn unquote(mut text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    loop {
        let (plain, special) = text.split_at(text.find(['"', '\\', '%'])?);
        value.push_str(plain);
        if let Some(behind) = special.strip_prefix('"') {
            return Some((value, behind));
        }
        let escape = ESCAPES.iter().find_map(|(escape, meant)| Some((*meant, special.strip_prefix(escape)?)));
        let mut chars = special.chars();
        let (meant, behind) = match escape {
            Some(escape) => escape,
            None => (chars.next()?, chars.as_str()),
        };
        value.push(meant);
        text = behind;
    }
}
