//! Origins (RFC 6454): which page makes a request, and the fields with which a server lets pages of others read its
//! answers (CORS, in the Fetch standard).

use std::fmt;
use std::sync::Arc;

use super::target::is_authority;

/// Headers that a page of another origin may send, beside those that need no permission.
pub const REQUEST_HEADERS: &str = "Authorization, Content-Type, Last-Event-ID";

/// Headers of answers that such a page may read, beside those that need no permission.
pub const RESPONSE_HEADERS: &str = "Retry-After, WWW-Authenticate";

/// Where a page comes from, as browsers spell it: `scheme://host`, and the port if it is not the scheme's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(Arc<str>);

/// Why a text is no origin: what to tell its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoOrigin;

impl fmt::Display for NoOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an origin is http:// or https:// with a host, and a port where the page's address has one, \
             for example https://chat.example.org; no path, and no wildcard",
        )
    }
}

impl std::error::Error for NoOrigin {}

impl Origin {
    /// Reads an origin. The opaque origin `null`, of sandboxed frames and files, is none: anybody can have it.
    pub fn parse(text: &str) -> Result<Origin, NoOrigin> {
        let (scheme, authority) = text.split_once("://").ok_or(NoOrigin)?;
        let scheme = scheme.to_ascii_lowercase();
        let port = default_port(&scheme).ok_or(NoOrigin)?;
        let authority = authority.to_ascii_lowercase();
        let host = authority.strip_suffix(port).unwrap_or(&authority);
        let named = !host.is_empty() && !host.starts_with(':') && !host.contains('*');
        if !named || !is_authority(host) || has_bad_port(host) {
            return Err(NoOrigin);
        }
        Ok(Origin(format!("{scheme}://{host}").into()))
    }

    /// As browsers spell it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the one of the server's own pages, which is asked as `host`. A proxy may have taken TLS off, so the
    /// scheme tells nothing.
    pub fn is_of(&self, host: &str) -> bool {
        let Some((scheme, own)) = self.0.split_once("://") else { return false };
        let host = host.to_ascii_lowercase();
        own == default_port(scheme).and_then(|port| host.strip_suffix(port)).unwrap_or(&host)
    }
}

fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme {
        "http" => Some(":80"),
        "https" => Some(":443"),
        _ => None,
    }
}

/// Whether what follows the host's last colon is no port. An address of IPv6 has its colons between brackets.
fn has_bad_port(host: &str) -> bool {
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err() || port.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_one_spelling() {
        for (text, expected) in [
            ("https://chat.example.org", Some("https://chat.example.org")),
            ("HTTPS://Chat.Example.ORG:443", Some("https://chat.example.org")),
            ("http://localhost:80", Some("http://localhost")),
            ("http://localhost:443", Some("http://localhost:443")),
            ("http://[::1]:5173", Some("http://[::1]:5173")),
            ("http://[::1]", Some("http://[::1]")),
            ("null", None),
            ("*", None),
            ("https://*", None),
            ("https://*.example.org", None),
            ("https://", None),
            ("https://:443", None),
            ("https://a/", None),
            ("https://u@a", None),
            ("https://a:", None),
            ("https://a:x", None),
            ("https://a:+1", None),
            ("https://a:99999", None),
            ("https://a b", None),
            ("chrome-extension://a", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(Origin::parse(text).as_ref().map(Origin::as_str).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_page_of_the_server_itself_is_known_by_its_host() {
        for (origin, host, same) in [
            ("http://localhost:8787", "localhost:8787", true),
            ("http://localhost:8787", "LOCALHOST:8787", true),
            ("http://localhost", "localhost:80", true),
            ("https://a.example", "a.example", true),
            ("https://a.example", "a.example:443", true),
            ("https://a.example", "a.example:80", false),
            ("http://localhost:8787", "localhost", false),
            ("http://localhost", "localhost:8787", false),
            ("https://a.example", "b.example", false),
            ("https://a.example", "a.example.evil", false),
            ("https://evil.a.example", "a.example", false),
            ("http://[::1]:1", "[::1]:1", true),
        ] {
            assert_eq!(Origin::parse(origin).unwrap().is_of(host), same, "{origin} at {host}");
        }
    }
}
