//! A request head: method, target and the fields that this server reads, as types.
//!
//! httparse splits the lines; what it is lenient about is settled before (line ends, in the scan) or here (body
//! framing, the host, fields that must not come twice). A head says nothing of routes or of who may call them.

use super::Reject;
use super::scan::unknown_method;
use super::target::{Target, is_authority};

/// Most fields in a head: browsers send about 20, proxies add a few.
pub const FIELDS_MAX: usize = 64;

/// The methods that are known here (RFC 9110, section 9, and PATCH of RFC 5789). CONNECT is not: this is no proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are HTTP's own")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Patch,
    Trace,
}

impl Method {
    const ALL: [Method; 8] = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Options,
        Method::Patch,
        Method::Trace,
    ];

    /// The method's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Patch => "PATCH",
            Method::Trace => "TRACE",
        }
    }

    fn parse(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// The client's version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, and the connection ends after the answer unless asked otherwise.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Where the body of a request ends (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is none.
    None,
    /// Behind that many bytes.
    Length(u64),
    /// Behind the last chunk.
    Chunked,
}

/// A request head. Texts of fields are as sent, without white space around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What is asked for.
    pub method: Method,
    /// The path as sent, without the query; `*` in an `OPTIONS *`.
    pub path_raw: String,
    /// The path split on `/` behind its first one, then percent-decoded once; empty for `/` and `*`.
    pub segments: Vec<String>,
    /// The query's pairs in order, decoded, `+` being a space; a name without `=` has an empty value.
    pub query: Vec<(String, String)>,
    /// The client's version.
    pub version: Version,
    /// Whether the client can send another request on this connection.
    pub keep_alive: bool,
    /// Host and port as the client names them: the target's authority, or the Host header. HTTP/1.0 may have none.
    pub host: Option<String>,
    /// Origin: the page that makes the request.
    pub origin: Option<String>,
    /// Content-Type, with its parameters.
    pub content_type: Option<String>,
    /// Content-Encoding: a coding of the body that nobody here undoes.
    pub content_encoding: Option<String>,
    /// Last-Event-ID: the cursor of an EventSource.
    pub last_event_id: Option<String>,
    /// If-None-Match: tags of the content that the client has.
    pub if_none_match: Option<String>,
    /// Authorization, scheme and all: a secret, not for logs.
    pub authorization: Option<String>,
    /// Access-Control-Request-Method: only a CORS preflight has it.
    pub preflight_method: Option<String>,
    /// Whether the client waits for a 100 (Continue) before it sends the body.
    pub expect_continue: bool,
    /// Where the body ends.
    pub body: BodyFraming,
}

impl Head {
    /// The first value of that name in the query.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads a head that is there up to its empty line.
    pub(super) fn parse(bytes: &[u8]) -> Result<Head, Reject> {
        let mut slots = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut slots);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(malformed(httparse::Error::NewLine)),
            Err(error) => return Err(malformed(error)),
        }
        let (Some(method), Some(path), Some(version)) = (request.method, request.path, request.version)
        else {
            return Err(malformed(httparse::Error::Token));
        };
        let method = Method::parse(method).ok_or_else(unknown_method)?;
        let version = if version == 0 { Version::Http10 } else { Version::Http11 };
        let target = Target::parse(method, path)?;
        let mut fields = Fields::default();
        for header in &*request.headers {
            fields.take(header.name, header.value)?;
        }
        fields.into_head(method, version, target)
    }
}

/// What the fields of a head have said so far.
#[derive(Default)]
struct Fields {
    host: Option<String>,
    origin: Option<String>,
    content_type: Option<String>,
    content_encoding: Option<String>,
    content_length: Option<String>,
    last_event_id: Option<String>,
    if_none_match: Option<String>,
    authorization: Option<String>,
    preflight_method: Option<String>,
    coding: Coding,
    expect_continue: bool,
    connection_close: bool,
    connection_keep_alive: bool,
}

/// The transfer codings so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    None,
    Chunked,
    Unknown,
    /// Chunked is not the last one, or is there twice, or a coding has no name.
    Malformed,
}

impl Fields {
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), Reject> {
        let value = value.trim_ascii();
        if let Some(slot) = self.single(name) {
            let text = std::str::from_utf8(value)
                .map_err(|_| Reject::bad_request(format!("the {name} header is not UTF-8")))?;
            if slot.replace(text.to_owned()).is_some() {
                return Err(Reject::bad_request(format!("the {name} header comes twice: send it once")));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            for coding in value.split(|byte| *byte == b',') {
                self.coding = self.coding.then(coding.trim_ascii());
            }
        } else if name.eq_ignore_ascii_case("connection") {
            for option in value.split(|byte| *byte == b',') {
                self.connection_close |= option.trim_ascii().eq_ignore_ascii_case(b"close");
                self.connection_keep_alive |= option.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case("expect") {
            if !value.eq_ignore_ascii_case(b"100-continue") {
                return Err(Reject::new(
                    417,
                    "expectation_failed",
                    "the only expectation that is known here is 'Expect: 100-continue'",
                ));
            }
            self.expect_continue = true;
        }
        Ok(())
    }

    /// The place of a field that is read here and may come only once.
    fn single(&mut self, name: &str) -> Option<&mut Option<String>> {
        [
            ("host", &mut self.host),
            ("origin", &mut self.origin),
            ("content-type", &mut self.content_type),
            ("content-encoding", &mut self.content_encoding),
            ("content-length", &mut self.content_length),
            ("last-event-id", &mut self.last_event_id),
            ("if-none-match", &mut self.if_none_match),
            ("authorization", &mut self.authorization),
            ("access-control-request-method", &mut self.preflight_method),
        ]
        .into_iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map(|(_, slot)| slot)
    }

    fn into_head(self, method: Method, version: Version, target: Target) -> Result<Head, Reject> {
        let body = self.framing(version)?;
        let Target { authority, path_raw, segments, query } = target;
        if self.host.is_none() && version == Version::Http11 {
            return Err(Reject::bad_request("an HTTP/1.1 request needs a Host header"));
        }
        if !self.host.as_deref().is_none_or(is_authority) {
            return Err(Reject::bad_request("the Host header must be 'host' or 'host:port'"));
        }
        Ok(Head {
            method,
            path_raw,
            segments,
            query,
            version,
            keep_alive: !self.connection_close && (version == Version::Http11 || self.connection_keep_alive),
            host: authority.or(self.host),
            origin: self.origin,
            content_type: self.content_type,
            content_encoding: self.content_encoding,
            last_event_id: self.last_event_id,
            if_none_match: self.if_none_match,
            authorization: self.authorization,
            preflight_method: self.preflight_method,
            // An HTTP/1.0 client can't wait for what it doesn't know (RFC 9110, section 10.1.1).
            expect_continue: self.expect_continue && version == Version::Http11,
            body,
        })
    }

    fn framing(&self, version: Version) -> Result<BodyFraming, Reject> {
        let refuse = |message: &str| Err(Reject::bad_request(message));
        match (self.coding, &self.content_length) {
            (Coding::None, None) => Ok(BodyFraming::None),
            (Coding::None, Some(length)) => parse_length(length).map(BodyFraming::Length),
            (_, Some(_)) => {
                refuse("Content-Length and Transfer-Encoding exclude each other: send one of them")
            }
            _ if version == Version::Http10 => {
                refuse("HTTP/1.0 has no Transfer-Encoding: send a Content-Length")
            }
            (Coding::Malformed, None) => {
                refuse("chunked must be the last transfer coding, and be there once")
            }
            (Coding::Unknown, None) => Err(Reject::new(
                501,
                "coding_not_implemented",
                "the only transfer coding that is known here is chunked",
            )),
            (Coding::Chunked, None) => Ok(BodyFraming::Chunked),
        }
    }
}

impl Coding {
    fn then(self, coding: &[u8]) -> Coding {
        match self {
            Coding::None if coding.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
            Coding::None | Coding::Unknown if !coding.is_empty() => Coding::Unknown,
            _ => Coding::Malformed,
        }
    }
}

fn parse_length(text: &str) -> Result<u64, Reject> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Reject::bad_request("the Content-Length must be one decimal number of bytes"));
    }
    text.parse().map_err(|_| Reject::body_too_large("the Content-Length is beyond every limit: send less"))
}

fn malformed(error: httparse::Error) -> Reject {
    match error {
        httparse::Error::TooManyHeaders => Reject::new(
            431,
            "too_many_headers",
            format!("the request has more than {FIELDS_MAX} headers: send fewer"),
        ),
        httparse::Error::HeaderName => Reject::bad_request(
            "a header name is malformed: it consists of letters, digits and '-', and the colon follows at once",
        ),
        httparse::Error::HeaderValue => {
            Reject::bad_request("a header value holds a control character: remove it")
        }
        _ => Reject::bad_request("the request head is malformed: end each line in CR LF"),
    }
}
