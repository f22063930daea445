//! Broken input: each refusal has its status and `{"error":{"code","message"}}`.

use super::case;
use crate::conformance::peer::{Peer, Reply};
use crate::conformance::{Case, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "input.live-body",
        "a body of `/chat/live` that is no object, or has members of the wrong kind: 400",
        live_body,
    ),
    case(
        "input.live-query",
        "a query of `/chat/live` without a chat or with numbers that are none: 400",
        live_query,
    ),
    case("input.chat-id", "a `chat_id` of no or over 256 bytes, or with control characters: 400", chat_id),
    case("input.nesting", "200,000 levels of nesting: 400", nesting),
    case("input.media-type", "a body that is not `application/json`: 415", media_type),
    case("input.start", "a start with a trigger or flag that is none: 400", start),
    case(
        "input.not-found",
        "an unknown resource: 404; a known one with a wrong method: 405 with `Allow`",
        not_found,
    ),
    case("input.goes-on", "after all this the server still answers", goes_on),
];

fn is_error(reply: &Reply, status: u16, what: &str) -> Tested {
    reply.is(status, what)?;
    let error = &reply.json["error"];
    let text = |name: &str| error[name].as_str().is_some_and(|text| !text.is_empty());
    ensure!(
        text("code") && text("message"),
        "{what}: a refusal needs error.code and error.message, got {}",
        reply.json
    );
    Ok(())
}

fn live_body(peer: &Peer<'_>) -> Tested {
    let bad: &[&[u8]] = &[
        b"x",
        b"[]",
        b"null",
        b"{}",
        br#"{"chat_id":7}"#,
        br#"{"chat_id":null,"protocol":1}"#,
        br#"{"chat_id":"c","protocol":2}"#,
        br#"{"chat_id":"c","protocol":"1"}"#,
        br#"{"chat_id":"c","protocol":null}"#,
        br#"{"chat_id":"c","after_seq":-1}"#,
        br#"{"chat_id":"c","after_seq":1.5}"#,
        br#"{"chat_id":"c","after_seq":"1"}"#,
        br#"{"chat_id":"c","after_seq":1e308}"#,
        br#"{"chat_id":"c","after_seq":18446744073709551616}"#,
        br#"{"chat_id":"c","wait_ms":-1}"#,
        br#"{"chat_id":"c","wait_ms":true}"#,
        br#"{"chat_id":"c","run_id":5}"#,
        br#"{"chat_id":"c"} trailing"#,
        br#"{"chat_id":NaN}"#,
        b"{\"chat_id\":\"\xff\"}",
    ];
    for body in bad {
        let reply = peer.send("POST /chat/live", "application/json", body)?;
        is_error(&reply, 400, &format!("the body {}", String::from_utf8_lossy(body)))?;
    }
    is_error(&peer.send("POST /chat/live", "application/json", b" ")?, 400, "an empty body")
}

fn live_query(peer: &Peer<'_>) -> Tested {
    for query in ["", "chat_id=", "chat_id=c&after_seq=x", "chat_id=c&after_seq=1.5", "chat_id=c&wait_ms=-5"]
    {
        is_error(&peer.ask(&format!("GET /chat/live?{query}"), "")?, 400, &format!("the query {query:?}"))?;
    }
    Ok(())
}

fn chat_id(peer: &Peer<'_>) -> Tested {
    let (longest, too_long) = ("x".repeat(256), "x".repeat(257));
    let bodies = ["", "a\\u0000b", "a\\nb", "\\u007f", &too_long];
    for id in bodies {
        let body = format!("{{\"chat_id\":\"{id}\",\"protocol\":1}}");
        is_error(&peer.ask("POST /chat/live", &body)?, 400, &format!("the chat_id {id:?}"))?;
    }
    for path in ["/chats/a%00b/runs", "/chats/a%0Ab/runs", &format!("/chats/{too_long}/runs")] {
        let reply = peer.ask(&format!("POST {path}"), "{}")?;
        // A proxy may refuse the path before the server sees it.
        ensure!((400..500).contains(&reply.status), "{path}: expected a refusal, got {}", reply.status);
    }
    peer.live(&longest, "")?.answers(204, "a chat_id of 256 bytes")?;
    peer.live("日本/?#%", "")?.answers(204, "a chat_id of other characters")
}

fn nesting(peer: &Peer<'_>) -> Tested {
    let levels = 200_000;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let run = peer.start()?;
    let event = format!("{{\"type\":\"X\",\"a\":{deep}}}");
    let reply = peer.send(&run.line("POST", "events", ""), "application/x-ndjson", event.as_bytes())?;
    is_error(&reply, 400, "an event with 200,000 levels of nesting")?;
    let small = format!("{{\"chat_id\":\"c\",\"protocol\":1,\"x\":{}}}", "[".repeat(20_000));
    is_error(&peer.ask("POST /chat/live", &small)?, 400, "a request with 20,000 levels of nesting")?;
    peer.append_numbers(&run, 1, 1)
}

fn media_type(peer: &Peer<'_>) -> Tested {
    let body = format!("{{\"chat_id\":\"{}\",\"protocol\":1}}", peer.chat());
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let reply = peer.send("POST /chat/live", kind, body.as_bytes())?;
        is_error(&reply, 415, &format!("a body of {kind}"))?;
    }
    let run = peer.start()?;
    let reply = peer.send(&run.line("POST", "events", ""), "text/plain", b"{\"type\":\"X\"}")?;
    is_error(&reply, 415, "events of text/plain")
}

fn start(peer: &Peer<'_>) -> Tested {
    let line = format!("POST /chats/{}/runs", peer.chat());
    for body in [r#"{"trigger":"x"}"#, r#"{"trigger":1}"#, r#"{"supersede":1}"#, "[]", "x"] {
        is_error(&peer.ask(&line, body)?, 400, &format!("the start {body}"))?;
    }
    peer.live(&peer.chat(), "")?.answers(204, "none of them started a run")
}

fn not_found(peer: &Peer<'_>) -> Tested {
    is_error(&peer.ask("GET /conformance/nothing/here", "")?, 404, "an unknown resource")?;
    let reply = peer.ask("DELETE /chat/live", "")?;
    is_error(&reply, 405, "DELETE /chat/live")?;
    let allow = reply.allow.unwrap_or_default();
    ensure!(
        allow.contains("GET") && allow.contains("POST"),
        "405 should say what is allowed, it said {allow:?}"
    );
    Ok(())
}

fn goes_on(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    peer.live(&run.chat, "")?.gets("S1", "a run after all this")?;
    peer.finish(&run).map(|_| ())
}
