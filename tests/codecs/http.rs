//! `http`: requests are read as they were written, bodies lose nothing but their coding, and cuts change nothing.

use proptest::prelude::*;
use rejoin::http::request::{Requests, Step};

use crate::material::{self, Cuts, spoil};

/// What the bytes of a connection are read as. Pieces of one body are one here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Head(String),
    Body(Vec<u8>),
    End,
    Refused(u16, String),
}

/// Reads a connection; true if it breaks off in a request.
fn read(body_max: u64, pieces: &[&[u8]]) -> (Vec<Seen>, bool) {
    let mut requests = Requests::new();
    let mut seen = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let (taken, step) = match requests.next(rest) {
                Ok(step) => step,
                Err(reject) => {
                    assert_eq!(requests.next(rest).unwrap_err(), reject, "a refusal is final");
                    seen.push(Seen::Refused(reject.status, reject.message));
                    return (seen, requests.mid_request());
                }
            };
            rest = &rest[taken..];
            match step {
                Step::NeedMore => break,
                Step::Head(head) => {
                    requests.set_body_max(body_max);
                    seen.push(Seen::Head(format!("{head:?}")));
                }
                Step::Body(data) => match seen.last_mut() {
                    Some(Seen::Body(body)) => body.extend_from_slice(data),
                    _ => seen.push(Seen::Body(data.to_vec())),
                },
                Step::End => seen.push(Seen::End),
            }
        }
        assert!(rest.is_empty(), "all of the input was taken");
    }
    (seen, requests.mid_request())
}

/// Checks that the cuts change nothing.
fn check(body_max: u64, bytes: &[u8], cuts: &Cuts) -> Result<(), TestCaseError> {
    let whole = read(body_max, &[bytes]);
    let shown = bytes.escape_ascii();
    prop_assert_eq!(&read(body_max, &cuts.pieces(bytes)), &whole, "{}", shown);
    prop_assert_eq!(&read(body_max, &bytes.chunks(1).collect::<Vec<_>>()), &whole, "byte by byte: {}", shown);
    Ok(())
}

/// A request as its client means it.
#[derive(Clone, Debug)]
struct Request {
    line: &'static str,
    fields: &'static str,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Length(Vec<u8>),
    /// Each chunk with the extension behind its size.
    Chunked(Vec<(Vec<u8>, &'static str)>, &'static str),
}

impl Request {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{} HTTP/1.1\r\nHost: h\r\n{}", self.line, self.fields).as_bytes());
        match &self.body {
            Body::None => out.extend_from_slice(b"\r\n"),
            Body::Length(bytes) => {
                out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", bytes.len()).as_bytes());
                out.extend_from_slice(bytes);
            }
            Body::Chunked(chunks, trailer) => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for (bytes, extension) in chunks {
                    out.extend_from_slice(format!("{:x}{extension}\r\n", bytes.len()).as_bytes());
                    out.extend_from_slice(bytes);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
            }
        }
    }

    /// The bytes that its body means.
    fn meant(&self) -> Vec<u8> {
        match &self.body {
            Body::None => Vec::new(),
            Body::Length(bytes) => bytes.clone(),
            Body::Chunked(chunks, _) => chunks.iter().flat_map(|(bytes, _)| bytes).copied().collect(),
        }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let data = || prop_oneof![material::noise(), material::event().prop_map(String::into_bytes)];
    let extension = prop::sample::select(vec!["", "", ";a=b", " ; c=\"d\u{e9}\""]);
    let chunk = (data().prop_filter("an empty chunk ends a body", |bytes| !bytes.is_empty()), extension);
    let trailer = prop::sample::select(vec!["", "", "X: y\r\n", "A: b\r\nContent-Length: 7\r\n"]);
    let body = prop_oneof![
        1 => Just(Body::None),
        2 => data().prop_map(Body::Length),
        3 => (prop::collection::vec(chunk, 0..5), trailer).prop_map(|(chunks, trailer)| Body::Chunked(chunks, trailer)),
    ];
    let line = prop::sample::select(vec![
        "GET /a",
        "POST /chat/live?x=%41&y=+z",
        "DELETE /chats/a%2Fb",
        "PUT http://h/c",
    ]);
    let fields = prop::sample::select(vec![
        "",
        "X: \u{e9}\t\r\n",
        "Content-Type: text/event-stream\r\nOrigin:  o \r\n",
    ]);
    (line, fields, body).prop_map(|(line, fields, body)| Request { line, fields, body })
}

fn write(requests: &[Request]) -> Vec<u8> {
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| request.write(&mut bytes));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn requests_come_out_as_they_went_in(requests in prop::collection::vec(request(), 1..4), cuts in material::cuts()) {
        let bytes = write(&requests);
        let (seen, unfinished) = read(u64::MAX, &cuts.pieces(&bytes));
        prop_assert!(!unfinished);
        let bodies: Vec<Vec<u8>> = seen.split(|step| *step == Seen::End).filter(|steps| !steps.is_empty()).map(|steps| {
            assert!(matches!(steps, [Seen::Head(_)] | [Seen::Head(_), Seen::Body(_)]), "{steps:?}");
            match steps.last() {
                Some(Seen::Body(body)) => body.clone(),
                _ => Vec::new(),
            }
        }).collect();
        prop_assert_eq!(bodies, requests.iter().map(Request::meant).collect::<Vec<_>>());
        prop_assert_eq!(read(u64::MAX, &[&bytes]).0, seen);
    }

    #[test]
    fn a_body_that_breaks_off_is_noticed(request in request(), at in any::<prop::sample::Index>()) {
        let bytes = write(std::slice::from_ref(&request));
        let cut = 1 + at.index(bytes.len() - 1);
        prop_assert!(cut == bytes.len() || read(u64::MAX, &[&bytes[..cut]]).1, "{} of {:?}", cut, bytes.escape_ascii());
    }

    #[test]
    fn cuts_change_nothing_in_broken_requests(
        requests in prop::collection::vec(request(), 1..4),
        faults in material::faults(),
        cuts in material::cuts(),
        body_max in prop_oneof![Just(u64::MAX), 0..200_u64],
    ) {
        check(body_max, &spoil(write(&requests), &faults), &cuts)?;
    }

    #[test]
    fn cuts_change_nothing_in_noise(noise in material::noise(), cuts in material::cuts(), body_max in 0..20_u64) {
        check(body_max, &noise, &cuts)?;
        check(body_max, &[b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", noise.as_slice()].concat(), &cuts)?;
    }
}
