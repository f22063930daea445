//! Spelling: the many ways to write the same JSON. It knows members and strings, and may not know what an event is.

#![allow(dead_code, reason = "every test includes this file and uses its own part of it")]

use super::rng::Rng;

/// An object under construction: keys, and values as JSON text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object(Vec<(String, String)>);

impl Object {
    /// Adds a member with a value that is JSON already.
    pub(crate) fn raw(mut self, key: &str, json: impl Into<String>) -> Object {
        self.0.push((key.to_owned(), json.into()));
        self
    }

    /// Adds a member with a string in its plainest spelling.
    pub(crate) fn text(self, key: &str, text: &str) -> Object {
        self.raw(key, plain(text))
    }

    /// Adds a string member, now and then with escapes that need not be.
    pub(crate) fn odd(self, rng: &mut Rng, key: &str, text: &str) -> Object {
        let percent = if rng.chance(6) { 40 } else { 0 };
        let units: Vec<u16> = text.encode_utf16().collect();
        let json = string(rng, &units, percent);
        self.raw(key, json)
    }

    /// Adds the members of another object.
    pub(crate) fn and(mut self, other: Object) -> Object {
        self.0.extend(other.0);
        self
    }

    /// Writes the object on one line, members as added, nothing between the tokens.
    pub(crate) fn plain(&self) -> String {
        let members: Vec<String> =
            self.0.iter().map(|(key, json)| format!("{}:{json}", plain(key))).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Writes the object in one of its many spellings: members in any order, white space anywhere, escapes in keys.
    pub(crate) fn spelled(mut self, rng: &mut Rng, line_breaks: bool) -> String {
        if rng.chance(20) {
            for index in (1..self.0.len()).rev() {
                let other = rng.below(index + 1);
                self.0.swap(index, other);
            }
        }
        let gaps: &[&str] = match (rng.chance(10), line_breaks) {
            (false, _) => &[""],
            (true, false) => &["", " ", "\t", "  "],
            (true, true) => &["", " ", "\t", "\n", "\r", "\r\n  "],
        };
        let mut json = String::from("{");
        for (index, (key, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let percent = if rng.chance(2) { 50 } else { 0 };
            let key = string(rng, &key.encode_utf16().collect::<Vec<_>>(), percent);
            for token in [comma, &key, ":", value] {
                json.push_str(token);
                json.push_str(rng.pick::<&str>(gaps));
            }
        }
        json.push('}');
        json
    }
}

/// A string in its plainest spelling.
pub(crate) fn plain(text: &str) -> String {
    serde_json::to_string(text).expect("any text is a JSON string")
}

/// A string of UTF-16 units, half surrogate pairs included, of which about `percent` of 100 are escaped without need.
pub(crate) fn string(rng: &mut Rng, units: &[u16], percent: usize) -> String {
    let mut json = String::from("\"");
    for decoded in char::decode_utf16(units.iter().copied()) {
        match decoded {
            Ok(letter) if !must_escape(letter) && !rng.chance(percent) => json.push(letter),
            Ok(letter) => escape(rng, letter, &mut json),
            Err(half) => unit(rng, half.unpaired_surrogate(), &mut json),
        }
    }
    json.push('"');
    json
}

fn must_escape(letter: char) -> bool {
    letter < ' ' || matches!(letter, '"' | '\\')
}

fn escape(rng: &mut Rng, letter: char, json: &mut String) {
    let short = match letter {
        '"' => Some("\\\""),
        '\\' => Some("\\\\"),
        '/' => Some("\\/"),
        '\u{8}' => Some("\\b"),
        '\u{c}' => Some("\\f"),
        '\n' => Some("\\n"),
        '\r' => Some("\\r"),
        '\t' => Some("\\t"),
        _ => None,
    };
    match short {
        Some(short) if rng.chance(75) => json.push_str(short),
        _ => letter.encode_utf16(&mut [0; 2]).iter().for_each(|&half| unit(rng, half, json)),
    }
}

fn unit(rng: &mut Rng, unit: u16, json: &mut String) {
    json.push_str(&if rng.chance(50) { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") });
}
