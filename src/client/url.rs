//! Where a server is: `http://host:port/prefix`, and the paths below it.
//!
//! Only names are dealt with here; nothing is resolved or connected to.

use std::fmt::{self, Write};

use crate::proto::id::ChatId;

/// Port of a URL that names none.
const PORT: u16 = 80;

/// The address of a server, as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Host name or address, without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as the Host field has them.
    pub(super) authority: String,
    /// Path in front of every resource, without a slash at its end.
    prefix: String,
    pub(super) token: Option<Secret>,
}

/// What must not get into logs.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Why a text is no address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFault {
    /// It does not begin with `http://`.
    Scheme,
    /// There is no host, or something that can't be in one.
    Host,
    /// The port is no number up to 65535.
    Port,
    /// The path has a query, a fragment, or bytes that a path can't have.
    Path,
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlFault::Scheme => "the URL must begin with http:// (put a proxy in front for https)",
            UrlFault::Host => "the URL needs a host name or an address behind http://",
            UrlFault::Port => "the URL's port must be a number from 1 to 65535",
            UrlFault::Path => "the URL may have a path, but no query, fragment or white space",
        })
    }
}

impl std::error::Error for UrlFault {}

impl ServerUrl {
    /// Reads an address such as `http://127.0.0.1:8787`.
    pub fn parse(text: &str) -> Result<ServerUrl, UrlFault> {
        let scheme = "http://";
        match text.get(..scheme.len()) {
            Some(start) if start.eq_ignore_ascii_case(scheme) => {}
            Some(_) | None => return Err(UrlFault::Scheme),
        }
        let rest = text.get(scheme.len()..).unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte)) {
            return Err(UrlFault::Path);
        }
        let (host, port) = host_and_port(authority)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let marks = if bare.is_some() { ":." } else { "-._" };
        let host = bare.unwrap_or(host);
        let fits = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
        if host.is_empty() || !host.chars().all(fits) {
            return Err(UrlFault::Host);
        }
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(ServerUrl { host: host.to_owned(), port, authority: authority.to_owned(), prefix, token: None })
    }

    /// The same, with a token that every request is sent with, as `Authorization: Bearer`. It may have no control
    /// characters: those are left out.
    #[must_use]
    pub fn with_token(self, token: &str) -> ServerUrl {
        let token = token.chars().filter(|c| !c.is_control()).collect();
        ServerUrl { token: Some(Secret(token)), ..self }
    }

    /// The path of a resource, whose name is given as its segments, not yet encoded.
    pub(crate) fn path(&self, segments: &[&str]) -> String {
        let mut path = self.prefix.clone();
        for segment in segments {
            path.push('/');
            encode(segment, &mut path);
        }
        path
    }
}

/// The query that names the chat of a request. Its body tells the server which it is; a proxy in front of several servers
/// needs it here.
pub(super) fn about(chat: &ChatId) -> String {
    let mut query = "?chat_id=".to_owned();
    encode(chat.as_str(), &mut query);
    query
}

fn host_and_port(authority: &str) -> Result<(&str, u16), UrlFault> {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            match port.parse() {
                Ok(port @ 1..) if digits => Ok((host, port)),
                Ok(_) | Err(_) => Err(UrlFault::Port),
            }
        }
        Some(_) | None => Ok((authority, PORT)),
    }
}

/// Percent-encodes all but the unreserved characters (RFC 3986, section 2.3), and the dots of a segment that has
/// nothing else, which would mean a place in the path.
fn encode(segment: &str, out: &mut String) {
    let dots = matches!(segment, "." | "..");
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || (byte == b'.' && !dots) {
            out.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, host: &str, port: u16, path: &str) {
        let url = ServerUrl::parse(text).unwrap();
        assert_eq!((&*url.host, url.port, &*url.path(&["chat", "live"])), (host, port, path), "{text}");
    }

    #[test]
    fn addresses_have_host_port_and_prefix() {
        check("http://127.0.0.1:8787", "127.0.0.1", 8787, "/chat/live");
        check("HTTP://localhost/", "localhost", 80, "/chat/live");
        check("http://[::1]:9/a/b/", "::1", 9, "/a/b/chat/live");
        check("http://[::1]", "::1", 80, "/chat/live");
        assert_eq!(ServerUrl::parse("http://[::1]:9").unwrap().authority, "[::1]:9");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        let cases = [
            ("", UrlFault::Scheme),
            ("https://host", UrlFault::Scheme),
            ("localhost:8787", UrlFault::Scheme),
            ("http://", UrlFault::Host),
            ("http://:80", UrlFault::Host),
            ("http://user@host", UrlFault::Host),
            ("http://a b", UrlFault::Host),
            ("http://::1", UrlFault::Host),
            ("http://host:0", UrlFault::Port),
            ("http://host:+1", UrlFault::Port),
            ("http://host:65536", UrlFault::Port),
            ("http://host/a b", UrlFault::Path),
            ("http://host?x", UrlFault::Path),
        ];
        for (text, fault) in cases {
            assert_eq!(ServerUrl::parse(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn chat_ids_of_any_kind_are_one_segment() {
        let url = ServerUrl::parse("http://h").unwrap();
        for (chat, path) in [
            ("a-b_c.~", "/chats/a-b_c.~/runs"),
            ("a/b?c#d%", "/chats/a%2Fb%3Fc%23d%25/runs"),
            ("日 x", "/chats/%E6%97%A5%20x/runs"),
            ("..", "/chats/%2E%2E/runs"),
        ] {
            assert_eq!(url.path(&["chats", chat, "runs"]), path);
        }
    }
}
