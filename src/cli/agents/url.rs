//! Where an AG-UI agent is: an absolute URL (RFC 3986) that turns can be posted to.

use std::fmt;
use std::net::Ipv6Addr;

const SCHEMES: [&str; 2] = ["http://", "https://"];

/// Why a text is no URL of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlFault {
    /// It begins neither with `http://` nor with `https://`.
    Scheme,
    /// There is no host, or something that can't be one.
    Host,
    /// There is a user name in front of the host.
    User,
    /// The port is no number from 1 to 65535.
    Port,
    /// It holds white space or other characters that must be percent-encoded.
    Character,
    /// It has a fragment.
    Fragment,
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlFault::Scheme => "the URL must begin with http:// or https://",
            UrlFault::Host => "the URL needs a host name or an address behind its '//'",
            UrlFault::User => {
                "the URL may not hold a user name or password: put an Authorization header into the file of --config"
            }
            UrlFault::Port => "the URL's port must be a number from 1 to 65535",
            UrlFault::Character => {
                "the URL holds white space or a character that a URL can't have: percent-encode it"
            }
            UrlFault::Fragment => "the URL has a fragment, which is never sent: remove the '#' and what follows it",
        })
    }
}

/// Whether a text is meant to be the URL of an agent.
pub(super) fn has_scheme(text: &str) -> bool {
    without_scheme(text).is_some()
}

/// Whether turns can be posted to this URL, as far as can be told without asking anybody.
pub(super) fn check(text: &str) -> Result<(), UrlFault> {
    let rest = without_scheme(text).ok_or(UrlFault::Scheme)?;
    if !rest.chars().all(|c| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c)) {
        return Err(UrlFault::Character);
    }
    if rest.contains('#') {
        return Err(UrlFault::Fragment);
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(UrlFault::User);
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    if !is_host(host) {
        return Err(UrlFault::Host);
    }
    port.is_none_or(is_port).then_some(()).ok_or(UrlFault::Port)
}

fn without_scheme(text: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

fn is_host(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_need_a_scheme_and_a_host() {
        for (text, expected) in [
            ("http://127.0.0.1:8901/", Ok(())),
            ("https://agents.example", Ok(())),
            ("HTTPS://a_b.example:443/x/y?z=a=b&c=%20", Ok(())),
            ("http://[::1]:9?x", Ok(())),
            ("http://[::1]", Ok(())),
            ("", Err(UrlFault::Scheme)),
            ("http:/host", Err(UrlFault::Scheme)),
            ("ws://host", Err(UrlFault::Scheme)),
            ("host:80", Err(UrlFault::Scheme)),
            ("httpé://host", Err(UrlFault::Scheme)),
            ("http://", Err(UrlFault::Host)),
            ("http:///path", Err(UrlFault::Host)),
            ("https://?query", Err(UrlFault::Host)),
            ("http://:80", Err(UrlFault::Host)),
            ("http://::1", Err(UrlFault::Host)),
            ("http://[::1", Err(UrlFault::Host)),
            ("http://[x]:80", Err(UrlFault::Host)),
            ("http://a%20b/", Err(UrlFault::Host)),
            ("http://user:secret@host/", Err(UrlFault::User)),
            ("http://host/a@b", Ok(())),
            ("http://host:", Err(UrlFault::Port)),
            ("http://host:0", Err(UrlFault::Port)),
            ("http://host:+1", Err(UrlFault::Port)),
            ("http://host:65536/", Err(UrlFault::Port)),
            ("http://host/a b", Err(UrlFault::Character)),
            ("http://host/caf\u{e9}", Err(UrlFault::Character)),
            ("http://host/{id}", Err(UrlFault::Character)),
            ("http://host/\n", Err(UrlFault::Character)),
            ("http://host/a#b", Err(UrlFault::Fragment)),
        ] {
            assert_eq!(check(text), expected, "{text:?}");
        }
    }
}
