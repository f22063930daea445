//! Cases of whole requests: each as one piece, cut in two at every byte, and byte by byte.

use proptest::prelude::*;

use super::head::{BodyFraming, Head};
use super::request::{Requests, Step};

/// Feeds the pieces and writes down what came: `GET /path [length] <body> .` per request, or `!status`.
fn run(pieces: &[&[u8]], body_max: u64) -> (String, Requests) {
    let mut requests = Requests::new();
    let mut log = String::new();
    for &piece in pieces {
        let mut rest = piece;
        loop {
            match requests.next(rest) {
                Ok((taken, step)) => {
                    rest = rest.get(taken..).unwrap();
                    match step {
                        Step::NeedMore => break,
                        Step::Head(head) => {
                            log += &describe(&head);
                            requests.set_body_max(body_max);
                        }
                        Step::Body(data) => {
                            assert!(!data.is_empty());
                            let text = String::from_utf8_lossy(data);
                            match log.strip_suffix('>') {
                                Some(before) => log = format!("{before}{text}>"),
                                None => log += &format!(" <{text}>"),
                            }
                        }
                        Step::End => log += " . ",
                    }
                }
                Err(reject) => {
                    assert!(!reject.message.is_empty() && !requests.mid_request());
                    assert_eq!(requests.next(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap_err(), reject);
                    return (format!("{log}!{}", reject.status), requests);
                }
            }
        }
        assert!(rest.is_empty(), "NeedMore takes everything");
    }
    (log, requests)
}

fn describe(head: &Head) -> String {
    let framing = match head.body {
        BodyFraming::None => String::new(),
        BodyFraming::Length(bytes) => format!(" {bytes}"),
        BodyFraming::Chunked => " chunked".to_owned(),
    };
    format!("{} {}{framing}", head.method.name(), head.path_raw)
}

/// The input as one piece, cut in two at every byte (at 600 places of a long one), and in single bytes.
fn check_limited(input: &[u8], body_max: u64, expected: &str) {
    let shown = String::from_utf8_lossy(input.get(..200).unwrap_or(input)).into_owned();
    assert_eq!(run(&[input], body_max).0.trim(), expected, "{shown:?}");
    for cut in (0..input.len()).step_by(1 + input.len() / 600) {
        let (left, right) = input.split_at(cut);
        assert_eq!(run(&[left, right], body_max).0.trim(), expected, "cut at {cut}: {shown:?}");
    }
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(run(&bytes, body_max).0.trim(), expected, "in single bytes: {shown:?}");
}

fn check(input: impl AsRef<[u8]>, expected: &str) {
    check_limited(input.as_ref(), u64::MAX, expected);
}

/// A GET whose field lines are these, behind a Host.
fn get(fields: &str) -> String {
    format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

/// A chunked POST with this body.
fn chunked(body: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn requests_that_are_right() {
    check(get(""), "GET /a .");
    check(format!("\r\n\r\n{}", get("")), "GET /a .");
    check(format!("{0}{0}HEAD /b HTTP/1.0\r\n\r\n", get("")), "GET /a . GET /a . HEAD /b .");
    check(get("Content-Length: 5\r\n") + "hello", "GET /a 5 <hello> .");
    check(get("content-length:0\r\n") + &get(""), "GET /a 0 . GET /a .");
    check(get("Content-Length: \t 3 \t\r\n") + "\r\n\r" + &get(""), "GET /a 3 <\r\n\r> . GET /a .");
    check(get("Content-Length: 18446744073709551615\r\n") + "x", "GET /a 18446744073709551615 <x>");
    check(get("X: caf\u{e9} \u{2028}\r\nY:\r\nZ: a\tb\r\n"), "GET /a .");
    check("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", "OPTIONS * .");
    check("POST /a HTTP/1.0\r\n\r\n", "POST /a .");
    check("GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET /a .");
    for method in ["PUT", "DELETE", "PATCH", "TRACE"] {
        check(format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"), &format!("{method} / ."));
    }
}

#[test]
fn chunked_bodies_are_decoded() {
    for (body, expected) in [
        ("0\r\n\r\n", "."),
        ("5\r\nhello\r\n0\r\n\r\n", "<hello> ."),
        ("1\r\nh\r\n1\r\ne\r\n0003\r\nllo\r\n000\r\n\r\n", "<hello> ."),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "<01234567890123456789> ."),
        ("2\r\n\r\n\r\n0\r\n\r\n", "<\r\n> ."),
        ("2;a\r\nhi\r\n0;b=\"c\u{e9}\"\t;d\r\n\r\n", "<hi> ."),
        ("2 ;a=b\r\nhi\r\n0\t ; \r\n\r\n", "<hi> ."),
        (
            "2\r\nhi\r\n0\r\nHost: evil\r\nContent-Length: 9\r\nX:\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
            "<hi> . GET /b .",
        ),
        ("5\r\nhel", "<hel>"),
        ("0000000000000005\r\nhello\r\n0\r\n\r\n", "<hello> ."),
        ("ffffffffffffffff\r\nx", "<x>"),
    ] {
        check(chunked(body), &format!("POST /a chunked {expected}"));
    }
    check(get("TRANSFER-ENCODING: \tChunked \r\n") + "0\r\n\r\n", "GET /a chunked .");
}

#[test]
fn malformed_chunks_end_the_connection() {
    for (body, expected) in [
        ("-1\r\n", "!400"),
        ("+1\r\n", "!400"),
        ("0x1\r\n", "!400"),
        ("5 5\r\n", "!400"),
        ("5 \r\n", "!400"),
        (" 5\r\n", "!400"),
        ("g\r\n", "!400"),
        (";a\r\n", "!400"),
        ("\r\n", "!400"),
        ("00000000000000005\r\n", "!400"),
        ("5\nhello", "!400"),
        ("5;a\nhello", "!400"),
        ("5;a\rhello", "!400"),
        ("5;a\0\r\nhello", "!400"),
        ("5\r\rhello", "!400"),
        ("5\r\nhello0\r\n", "<hello>!400"),
        ("5\r\nhello\n0\r\n\r\n", "<hello>!400"),
        ("5\r\nhello\r0\r\n\r\n", "<hello>!400"),
        ("ffffffffffffffff\r\nx", "<x>"),
        ("1\r\nx\r\nffffffffffffffff\r\n", "<x>!413"),
        ("0\r\n\n", "!400"),
        ("0\r\n\rx", "!400"),
        ("0\r\na\r\n", "!400"),
        ("0\r\na : b\r\n", "!400"),
        ("0\r\n: b\r\n", "!400"),
        ("0\r\na: b\n", "!400"),
        ("0\r\na: b\rc", "!400"),
        ("0\r\na: b\0", "!400"),
        ("0\r\na: b\r\n c\r\n", "!400"),
    ] {
        let separator = if expected.starts_with('<') { " " } else { "" };
        check(chunked(body), &format!("POST /a chunked{separator}{expected}"));
    }
}

#[test]
fn extensions_and_trailers_have_budgets() {
    let (small, large) = ("e".repeat(4000), "e".repeat(64 * 1024));
    check(chunked(&format!("1;{small}\r\nx\r\n0;{small}\r\n\r\n")), "POST /a chunked <x> .");
    check(chunked(&format!("1;{large}\r\nx\r\n")), "POST /a chunked!400");
    check(chunked(&format!("1{}", " ".repeat(64 * 1024))), "POST /a chunked!400");
    let many = format!("1;{small}\r\nx\r\n").repeat(5);
    check(chunked(&many), "POST /a chunked <xxxx>!400");
    check(chunked(&format!("0\r\nA: {small}\r\nB: {small}\r\n\r\n")), "POST /a chunked .");
    check(chunked(&format!("0\r\nA: {large}\r\n\r\n")), "POST /a chunked!431");
    check(chunked(&format!("0\r\n{}", "A: b\r\n".repeat(10_000))), "POST /a chunked!431");
}

#[test]
fn body_lengths_that_could_be_read_in_two_ways() {
    for (fields, expected) in [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "!400"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "!400"),
        ("Transfer-Encoding: gzip\r\nContent-Length: 3\r\n", "!400"),
        ("Content-Length: 3\r\nContent-Length: 4\r\n", "!400"),
        ("Content-Length: 3\r\nContent-Length: 3\r\n", "!400"),
        ("Content-Length: 3, 4\r\n", "!400"),
        ("Content-Length: -1\r\n", "!400"),
        ("Content-Length: +45\r\n", "!400"),
        ("Content-Length: 0x2d\r\n", "!400"),
        ("Content-Length: 4 5\r\n", "!400"),
        ("Content-Length: \u{664}\r\n", "!400"),
        ("Content-Length:\r\n", "!400"),
        ("Content-Length: 18446744073709551616\r\n", "!413"),
        ("Content-Length: 999999999999999999999999999999\r\n", "!413"),
        ("Transfer-Encoding: gzip\r\n", "!501"),
        ("Transfer-Encoding: xchunked\r\n", "!501"),
        ("Transfer-Encoding: \"chunked\"\r\n", "!501"),
        ("Transfer-Encoding: chunked;q=1\r\n", "!501"),
        ("Transfer-Encoding: gzip, chunked\r\n", "!501"),
        ("Transfer-Encoding: chunked, gzip\r\n", "!400"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n", "!400"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "!400"),
        ("Transfer-Encoding: chunked,\r\n", "!400"),
        ("Transfer-Encoding:\r\n", "!400"),
        ("Transfer-Encoding : chunked\r\n", "!400"),
        ("Transfer-Encoding: \x0bchunked\r\n", "!400"),
    ] {
        check(get(fields) + "0\r\n\r\nGET /hidden HTTP/1.0\r\n\r\n", expected);
    }
    check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "!400");
    check("POST / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n", "!400");
}

#[test]
fn heads_that_could_be_read_in_two_ways() {
    for fields in [
        "A : b\r\n",
        "A\t: b\r\n",
        ": b\r\n",
        "A b: c\r\n",
        "A\r\n",
        "A(: b\r\n",
        "\u{e9}: b\r\n",
        "A: b\r\n c\r\n",
        "A: b\r\n\tc\r\n",
        "A: b\rc\r\n",
        "A: b\0c\r\n",
        "A: b\x7f\r\n",
        "A: b\nB: c\r\n",
        "\rA: b\r\n",
        "Host: h\r\n",
        "Host: i\r\n",
        "Origin: a\r\norigin: b\r\n",
        "Authorization: a\r\nAuthorization: b\r\n",
    ] {
        check(get(fields), "!400");
    }
    for head in [
        "GET /a HTTP/1.1\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: u@h\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h/x\r\n\r\n",
        "GET /a HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n",
        "GET /a HTTP/1.1\r\n Host: h\r\n\r\n",
        "GET /a HTTP/1.1\nHost: h\n\n",
        "GET /a HTTP/1.1\r\nHost: h\r\n\n",
        "GET /a HTTP/1.1\r\nHost: h\n\r\n",
        "GET /a HTTP/1.1\rHost: h\r\n\r\n",
        "GET  /a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a  HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a HTTP/1.1 \r\nHost: h\r\n\r\n",
        "GET\t/a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
        "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        "\nGET / HTTP/1.0\r\n\r\n",
    ] {
        check(head, "!400");
    }
}

#[test]
fn what_is_not_implemented_says_so() {
    check("BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n", "!501");
    check("get / HTTP/1.1\r\nHost: h\r\n\r\n", "!501");
    check("CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", "!501");
    check(get("Expect: 200-ok\r\n"), "!417");
    check(get("Expect: 100-continue, x\r\n"), "!417");
    check(get("Expect: 100-continue\r\nExpect: x\r\n"), "!417");
    check("GET / HTTP/1.2\r\n", "!505");
}

/// The last byte of each input is the first bad one.
#[test]
fn other_protocols_are_refused_at_the_first_bad_byte() {
    for (input, expected) in [
        (&b"\x16"[..], "!400"),
        (b"PRI * HTTP/2", "!505"),
        (b"GET /\r", "!400"),
        (b"GET /\n", "!400"),
        (b"GET\r", "!400"),
        (b"GET / h", "!400"),
        (b"{", "!400"),
        (b" ", "!400"),
        (b"\0", "!400"),
        (b"\xff", "!400"),
        (b"AAAAAAAAAAAAAAAAAA", "!501"),
        (b"GET / HTTP/1.1\n", "!400"),
        (b"GET / HTTP/1.1\r\n ", "!400"),
    ] {
        check(input, expected);
        let before = input.split_last().unwrap().1;
        assert_eq!(run(&[before], 0).0, "", "refused too early: {input:?}");
    }
}

#[test]
fn heads_have_budgets() {
    let target = |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(bytes - 1));
    check(target(8192), &format!("GET /{} .", "a".repeat(8191)));
    check(target(8193), "!414");
    check("GET /".to_owned() + &"a".repeat(20_000), "!414");
    let head = |bytes: usize| get(&format!("A: {}\r\n", "a".repeat(bytes - get("A: \r\n").len())));
    assert_eq!(head(100).len(), 100);
    check(head(16 * 1024) + &get(""), "GET /a . GET /a .");
    check(head(16 * 1024 + 1), "!431");
    check(get(&"A: b\r\n".repeat(63)), "GET /a .");
    check(get(&"A: b\r\n".repeat(64)), "!431");
    check("GET / HTTP/1.1\r\nA: ".to_owned() + &"a".repeat(30_000), "!431");
    check("GET / HTTP/1.1\r\n".to_owned() + &"A: b\r\n".repeat(30_000), "!431");
}

#[test]
fn bodies_have_the_budget_of_their_route() {
    let length = |bytes: u64| get(&format!("Content-Length: {bytes}\r\n"));
    check_limited((length(5) + "hello").as_bytes(), 5, "GET /a 5 <hello> .");
    check_limited(length(6).as_bytes(), 5, "GET /a 6!413");
    check_limited(length(10_000_000_000).as_bytes(), 5, "GET /a 10000000000!413");
    check_limited(length(0).as_bytes(), 0, "GET /a 0 .");
    check_limited(chunked("5\r\nhello\r\n0\r\n\r\n").as_bytes(), 5, "POST /a chunked <hello> .");
    check_limited(chunked("6\r\n").as_bytes(), 5, "POST /a chunked!413");
    check_limited(chunked("2\r\nhe\r\n4\r\n").as_bytes(), 5, "POST /a chunked <he>!413");
}

#[test]
fn a_budget_holds_for_one_request() {
    let mut requests = Requests::new();
    for (body, body_max) in [("hi", Some(2)), ("hello", None), ("hi", Some(1))] {
        let input = get(&format!("Content-Length: {}\r\n", body.len())) + body;
        let mut rest = input.as_bytes();
        let (taken, step) = requests.next(rest).unwrap();
        assert!(matches!(step, Step::Head(_)));
        rest = rest.get(taken..).unwrap();
        if let Some(body_max) = body_max {
            requests.set_body_max(body_max);
        }
        if body_max == Some(1) {
            assert_eq!(requests.next(rest).unwrap_err().status, 413);
        } else {
            assert!(matches!(requests.next(rest).unwrap(), (_, Step::Body(data)) if data == body.as_bytes()));
            assert!(matches!(requests.next(b"").unwrap(), (0, Step::End)));
        }
    }
}

#[test]
fn a_broken_off_request_is_told_from_a_quiet_connection() {
    for (input, expected) in [
        (String::new(), false),
        ("\r\n".to_owned(), false),
        ("\r".to_owned(), false),
        ("G".to_owned(), true),
        (get("").strip_suffix('\n').unwrap().to_owned(), true),
        (get(""), false),
        (get("Content-Length: 2\r\n"), true),
        (get("Content-Length: 2\r\n") + "h", true),
        (get("Content-Length: 2\r\n") + "hi", false),
        (chunked(""), true),
        (chunked("2\r\nhi\r\n"), true),
        (chunked("2\r\nhi\r\n0\r\n\r"), true),
        (chunked("2\r\nhi\r\n0\r\n\r\n"), false),
    ] {
        assert_eq!(run(&[input.as_bytes()], u64::MAX).1.mid_request(), expected, "{input:?}");
    }
}

#[test]
fn fields_reach_the_head() {
    fn head(text: &str) -> Head {
        match Requests::new().next(text.as_bytes()) {
            Ok((_, Step::Head(head))) => *head,
            other => panic!("{other:?}"),
        }
    }
    let full = head(&get(
        "ORIGIN: http://o \r\ncontent-type:application/json; charset=utf-8\r\nLast-Event-ID: R:4日\r\n\
         Authorization: Bearer x\r\nContent-Encoding: gzip\r\nAccess-Control-Request-Method: POST\r\n\
         Expect: 100-Continue\r\n",
    ));
    assert_eq!(full.host.as_deref(), Some("h"));
    assert_eq!(full.origin.as_deref(), Some("http://o"));
    assert_eq!(full.content_type.as_deref(), Some("application/json; charset=utf-8"));
    assert_eq!(full.last_event_id.as_deref(), Some("R:4日"));
    assert_eq!(full.authorization.as_deref(), Some("Bearer x"));
    assert_eq!(full.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(full.preflight_method.as_deref(), Some("POST"));
    assert!(full.expect_continue);
    assert!(!head("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expect_continue);
    assert_eq!(head("GET http://i:1/ HTTP/1.1\r\nHost: h\r\n\r\n").host.as_deref(), Some("i:1"));
    assert_eq!(head("GET / HTTP/1.0\r\n\r\n").host, None);
    let query = head("GET /?a=1&a=2 HTTP/1.0\r\n\r\n");
    assert_eq!((query.query_value("a"), query.query_value("b")), (Some("1"), None));
    for (version, connection, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, Close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let text = format!("GET / HTTP/{version}\r\nHost: h\r\n{connection}\r\n");
        assert_eq!(head(&text).keep_alive, expected, "{text}");
    }
}

/// However small the pieces are, each byte of a head is scanned, kept and parsed once.
#[test]
fn work_on_a_head_is_linear() {
    let head = get(&"A: bbbbbbbbbbbbbbbbbbbb\r\n".repeat(60));
    for piece_bytes in [1, 7, 100, head.len()] {
        let pieces: Vec<&[u8]> = head.as_bytes().chunks(piece_bytes).collect();
        let (log, requests) = run(&pieces, 0);
        assert_eq!(log, "GET /a . ");
        assert!(requests.work() > head.len(), "the work was counted");
        assert!(
            requests.work() <= 3 * head.len(),
            "{} for {} in {piece_bytes}s",
            requests.work(),
            head.len()
        );
    }
}

/// Requests that are mostly right: pieces of valid ones in random order, then a few bytes changed.
fn requests_and_cuts() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let part = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
        "\r\n".to_owned(),
        get("Content-Length: 7\r\n") + "1234567",
        chunked("5\r\nhello\r\n0\r\n\r\n"),
        chunked("1;x=y\r\nh\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n"),
        "POST /b?c=%41 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n\n".to_owned(),
    ]);
    let change = (any::<prop::sample::Index>(), prop::sample::select(b"\r\n\0 :;09afGT/\xff".to_vec()));
    (
        prop::collection::vec(part, 1..5),
        prop::collection::vec(change, 0..3),
        prop::collection::vec(0..400_usize, 0..12),
    )
        .prop_map(|(parts, changes, cuts)| {
            let mut bytes = parts.concat().into_bytes();
            for (index, byte) in changes {
                *bytes.get_mut(index.index(parts.concat().len())).unwrap() = byte;
            }
            (bytes, cuts)
        })
}

proptest! {
    #[test]
    fn cuts_change_nothing((bytes, mut cuts) in requests_and_cuts()) {
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let (mut rest, mut at) = (bytes.as_slice(), 0);
        for cut in cuts {
            let (piece, behind) = rest.split_at((cut - at).min(rest.len()));
            pieces.push(piece);
            (rest, at) = (behind, cut);
        }
        pieces.push(rest);
        let (whole, cut) = (run(&[&bytes], 20), run(&pieces, 20));
        prop_assert_eq!(whole.0, cut.0);
        prop_assert_eq!(whole.1.mid_request(), cut.1.mid_request());
    }

    #[test]
    fn noise_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = run(&[&bytes], 20).0;
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(whole, run(&single, 20).0);
    }
}
