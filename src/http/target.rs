//! A request target: what stands between the method and the version (RFC 9112, section 3.2).
//!
//! The path is split on `/` first and each segment is percent-decoded once, so an encoded slash is part of a
//! name. Nothing is normalised: a path that would need it is refused, since two parsers may normalise differently.

use super::Reject;
use super::head::Method;

/// A target taken apart.
pub(super) struct Target {
    /// Host and port, if the target was in absolute form; they stand above the Host header.
    pub(super) authority: Option<String>,
    /// The path as it was sent; `*` in asterisk form.
    pub(super) path_raw: String,
    /// The decoded segments behind the leading slash; none for `/` and `*`.
    pub(super) segments: Vec<String>,
    /// The decoded query in order.
    pub(super) query: Vec<(String, String)>,
}

impl Target {
    pub(super) fn parse(method: Method, text: &str) -> Result<Target, Reject> {
        if let Some(bad) = text.bytes().find(|byte| !byte.is_ascii_graphic() || *byte == b'#') {
            return Err(Reject::bad_request(format!(
                "the request target holds the byte 0x{bad:02x}, which must be percent-encoded there"
            )));
        }
        let (authority, local) = match text.split_once("://") {
            Some((scheme, rest)) if !scheme.contains(['/', '?']) => absolute_form(scheme, rest)?,
            _ => (None, text),
        };
        let (path_raw, query) = match local.split_once('?') {
            Some((path, query)) => (path, parse_query(query)?),
            None => (local, Vec::new()),
        };
        let path_raw = if path_raw.is_empty() && authority.is_some() { "/" } else { path_raw };
        let segments = match path_raw.strip_prefix('/') {
            Some("") => Vec::new(),
            Some(path) => path.split('/').map(parse_segment).collect::<Result<_, _>>()?,
            None if local == "*" && method == Method::Options => Vec::new(),
            None => {
                return Err(Reject::bad_request(
                    "the request target must begin with '/' (or be '*' in an OPTIONS request)",
                ));
            }
        };
        Ok(Target { authority, path_raw: path_raw.to_owned(), segments, query })
    }
}

/// Whether a text can stand for `host[:port]`: no white space, no user name, no path.
pub(super) fn is_authority(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+,;=".contains(&byte))
}

/// Splits what follows `scheme://` into the authority and the rest.
fn absolute_form<'t>(scheme: &str, rest: &'t str) -> Result<(Option<String>, &'t str), Reject> {
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(Reject::bad_request("the request target's scheme must be http or https"));
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, local) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if authority.is_empty() || !is_authority(authority) {
        return Err(Reject::bad_request("the request target needs a host (and no user name) behind '://'"));
    }
    Ok((Some(authority.to_owned()), local))
}

fn parse_segment(raw: &str) -> Result<String, Reject> {
    let segment = decode(raw, false)?;
    if segment == "." || segment == ".." {
        return Err(Reject::bad_request("the path holds a '.' or '..' segment: send it resolved"));
    }
    Ok(segment)
}

fn parse_query(raw: &str) -> Result<Vec<(String, String)>, Reject> {
    raw.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name, true)?, decode(value, true)?))
        })
        .collect()
}

/// Percent-decodes once; in a query `+` is a space, as forms write it.
fn decode(raw: &str, plus_is_space: bool) -> Result<String, Reject> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => match (bytes.next().and_then(hex), bytes.next().and_then(hex)) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => {
                    return Err(Reject::bad_request(
                        "a '%' in the request target must be followed by two hex digits (write %25 for '%')",
                    ));
                }
            },
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    if decoded.contains(&0) {
        return Err(Reject::bad_request("the request target holds an encoded NUL (%00): leave it out"));
    }
    String::from_utf8(decoded).map_err(|_| {
        Reject::bad_request(
            "the percent-encoded bytes of the request target are not UTF-8: encode text as UTF-8",
        )
    })
}

fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `authority path [segments] [query]`, or the status of the refusal.
    fn check(method: Method, text: &str, expected: &str) {
        let got = match Target::parse(method, text) {
            Ok(target) => {
                let authority = target.authority.unwrap_or_default();
                format!("{authority} {} {:?} {:?}", target.path_raw, target.segments, target.query)
            }
            Err(reject) => reject.status.to_string(),
        };
        assert_eq!(got, expected, "{text:?}");
    }

    #[test]
    fn targets_are_taken_apart() {
        for (text, expected) in [
            ("/", r#" / [] []"#),
            ("/a/b", r#" /a/b ["a", "b"] []"#),
            ("/a/", r#" /a/ ["a", ""] []"#),
            ("//a", r#" //a ["", "a"] []"#),
            ("/a%2Fb/%E6%97%A5+", r#" /a%2Fb/%E6%97%A5+ ["a/b", "日+"] []"#),
            ("/%2525", r#" /%2525 ["%25"] []"#),
            ("/...", r#" /... ["..."] []"#),
            (
                "/?a=1&&b=x+y%2B&c&=d&a=2",
                r#" / [] [("a", "1"), ("b", "x y+"), ("c", ""), ("", "d"), ("a", "2")]"#,
            ),
            ("/a?b=/../?", r#" /a ["a"] [("b", "/../?")]"#),
            ("/a?u=http://x/", r#" /a ["a"] [("u", "http://x/")]"#),
            ("/http://x", r#" /http://x ["http:", "", "x"] []"#),
            ("http://h:80/a?b=c", r#"h:80 /a ["a"] [("b", "c")]"#),
            ("HTTPS://[::1]:80", r#"[::1]:80 / [] []"#),
            ("http://h?b=c", r#"h / [] [("b", "c")]"#),
        ] {
            check(Method::Get, text, expected);
        }
        check(Method::Options, "*", r#" * [] []"#);
    }

    #[test]
    fn what_needs_a_guess_is_refused() {
        for text in [
            "",
            "*",
            "a",
            "?a",
            "h:80",
            "*?a",
            "/a#b",
            "/a\\ b",
            "/\u{e9}",
            "/%",
            "/%4",
            "/%zz",
            "/%+1",
            "/%00",
            "/?%00",
            "/?a=%f",
            "/%ff",
            "/?%c3",
            "/..",
            "/a/../b",
            "/./a",
            "/%2e%2E/a",
            "/a/%2e",
            "http://",
            "http:///a",
            "http://u@h/",
            "http://h\\/",
            "ftp://h/",
            "://h/",
        ] {
            check(Method::Get, text, "400");
        }
        check(Method::Options, "*/a", "400");
    }
}
