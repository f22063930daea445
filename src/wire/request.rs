//! What clients ask for, read from JSON bodies and queries into types.

use serde_json::{Map, Value};

use crate::limits::WAIT_MS_MAX;
use crate::proto::admission::Cursor;
use crate::proto::history::{PageMark, Trigger};
use crate::proto::id::{ChatId, RunId, Seq};
use crate::wire::frame::Flavour;

/// A request that can't be understood: what to tell its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest(pub String);

/// A request to follow a chat's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The chat.
    pub chat: ChatId,
    /// How the frames shall look.
    pub flavour: Flavour,
    /// How long to wait for a run, in milliseconds.
    pub wait_ms: u64,
    /// Where the observer stands.
    pub cursor: Cursor,
}

/// A request to start a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// What starts it.
    pub trigger: Trigger,
    /// Whether it may take the place of a run that goes on.
    pub supersede: bool,
}

/// Reads the body of `POST /chat/live`.
pub fn live(body: &[u8]) -> Result<Live, BadRequest> {
    let members = object(body)?;
    let chat = chat_id(members.get("chat_id").ok_or_else(|| bad("\"chat_id\" is missing"))?)?;
    let flavour = match members.get("protocol") {
        None => Flavour::Legacy,
        Some(protocol) if protocol.as_u64() == Some(1) => Flavour::Post,
        Some(other) => {
            return Err(bad(format!(
                "\"protocol\" must be 1, not {other}; leave it out for the legacy format"
            )));
        }
    };
    let wait_ms = number(&members, "wait_ms")?.unwrap_or(0).min(WAIT_MS_MAX);
    let after_seq = number(&members, "after_seq")?;
    let run_id = match members.get("run_id") {
        None => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(other) => return Err(bad(format!("\"run_id\" must be a string, not {other}"))),
    };
    Ok(Live { chat, flavour, wait_ms, cursor: cursor(run_id, after_seq) })
}

/// Reads the query of `GET /chat/live`.
pub fn live_query(query: &[(String, String)], last_event_id: Option<&str>) -> Result<Live, BadRequest> {
    let value = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let chat = value("chat_id").ok_or_else(|| bad("the query needs \"chat_id\""))?;
    let chat = chat_id(&Value::String(chat.to_string()))?;
    let wait_ms = query_number("wait_ms", value("wait_ms"))?.unwrap_or(0).min(WAIT_MS_MAX);
    let after_seq = query_number("after_seq", value("after_seq"))?;
    let cursor = match last_event_id.filter(|id| !id.is_empty()) {
        Some(id) => event_id(id),
        None => cursor(value("run_id"), after_seq),
    };
    Ok(Live { chat, flavour: Flavour::Get, wait_ms, cursor })
}

/// Reads the body of `POST /chats/{chat_id}/runs`.
pub fn start(body: &[u8]) -> Result<Start, BadRequest> {
    let members = object_or_nothing(body)?;
    let trigger = match members.get("trigger") {
        None => Trigger::User,
        Some(Value::String(name)) => trigger(name)?,
        Some(other) => return Err(bad(format!("\"trigger\" must be a string, not {other}"))),
    };
    let supersede = match members.get("supersede") {
        None => false,
        Some(Value::Bool(flag)) => *flag,
        Some(other) => return Err(bad(format!("\"supersede\" must be true or false, not {other}"))),
    };
    Ok(Start { trigger, supersede })
}

/// Reads the query of `POST /chats/{chat_id}/runs?stream=1`.
pub fn start_query(query: &[(String, String)]) -> Result<Start, BadRequest> {
    let mut start = Start::default();
    for (name, value) in query {
        match name.as_str() {
            "trigger" => start.trigger = trigger(value)?,
            "supersede" => start.supersede = flag("supersede", value)?,
            _ => {}
        }
    }
    Ok(start)
}

/// Reads a flag of a query: 1 or true, 0 or false.
pub fn flag(name: &str, value: &str) -> Result<bool, BadRequest> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        other => Err(bad(format!("\"{name}\" must be 1 or 0, not {other:?}"))),
    }
}

/// Reads the body of `POST /runs/{run_id}/finish`: the message of the error, if the producer failed.
pub fn finish(body: &[u8]) -> Result<Option<String>, BadRequest> {
    let members = object_or_nothing(body)?;
    match members.get("error") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(message)) => Ok(Some(message.clone())),
        Some(Value::Object(error)) => match error.get("message") {
            Some(Value::String(message)) => Ok(Some(message.clone())),
            Some(_) | None => Err(bad("\"error\" needs a string member \"message\"")),
        },
        Some(other) => {
            Err(bad(format!("\"error\" must be a string or an object with \"message\", not {other}")))
        }
    }
}

/// Reads `from_seq` of a query.
pub fn from_seq(value: Option<&str>) -> Result<Option<u64>, BadRequest> {
    match query_number("from_seq", value)? {
        Some(0) => Err(bad("\"from_seq\" counts from 1")),
        other => Ok(other),
    }
}

/// Reads the page mark of `GET /chats`: `after_changed_ms` and `after_chat_id` as the page before gave them.
pub fn chats_page(query: &[(String, String)]) -> Result<Option<PageMark>, BadRequest> {
    let value = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    match (query_number("after_changed_ms", value("after_changed_ms"))?, value("after_chat_id")) {
        (None, None) => Ok(None),
        (Some(changed_wall_ms), Some(chat)) => {
            let chat = chat_id(&Value::String(chat.to_string()))?;
            Ok(Some(PageMark { changed_wall_ms, chat }))
        }
        _ => Err(bad("a further page needs both \"after_changed_ms\" and \"after_chat_id\"")),
    }
}

/// Reads the page mark of `GET /chats/{chat_id}`: the turn to continue after.
pub fn chat_page(value: Option<&str>) -> Result<u64, BadRequest> {
    Ok(query_number("after_turn", value)?.unwrap_or(0))
}

fn bad(message: impl Into<String>) -> BadRequest {
    BadRequest(message.into())
}

fn object(body: &[u8]) -> Result<Map<String, Value>, BadRequest> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(bad("the body must be a JSON object")),
        Err(fault) => Err(bad(format!("the body is not JSON: {fault}"))),
    }
}

fn object_or_nothing(body: &[u8]) -> Result<Map<String, Value>, BadRequest> {
    if body.trim_ascii().is_empty() { Ok(Map::new()) } else { object(body) }
}

fn chat_id(value: &Value) -> Result<ChatId, BadRequest> {
    let text = value.as_str().ok_or_else(|| bad("\"chat_id\" must be a string"))?;
    ChatId::parse(text)
        .ok_or_else(|| bad("\"chat_id\" must have 1 to 256 bytes of UTF-8 without control characters"))
}

fn trigger(name: &str) -> Result<Trigger, BadRequest> {
    Trigger::parse(name)
        .ok_or_else(|| bad(format!("\"trigger\" must be user, heartbeat, canvas or schedule, not {name:?}")))
}

fn number(members: &Map<String, Value>, name: &str) -> Result<Option<u64>, BadRequest> {
    match members.get(name) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(bad(format!("\"{name}\" must be a whole number from 0 on, not {value}"))),
        },
    }
}

fn query_number(name: &str, value: Option<&str>) -> Result<Option<u64>, BadRequest> {
    let Some(value) = value else { return Ok(None) };
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits => Ok(Some(number)),
        Ok(_) | Err(_) => Err(bad(format!("\"{name}\" must be a whole number from 0 on, not {value:?}"))),
    }
}

fn cursor(run_id: Option<&str>, after_seq: Option<u64>) -> Cursor {
    match (run_id, after_seq) {
        (None, None) => Cursor::None,
        (Some(id), Some(seq)) => RunId::parse(id).map_or(Cursor::Foreign, |run| Cursor::At(run, Seq(seq))),
        (Some(_), None) | (None, Some(_)) => Cursor::Foreign,
    }
}

/// Reads `<run_id>:<seq>` or `<run_id>:end`.
fn event_id(id: &str) -> Cursor {
    let Some((run, place)) = id.split_once(':') else { return Cursor::Foreign };
    let Some(run) = RunId::parse(run) else { return Cursor::Foreign };
    match place {
        "end" => Cursor::Ended(run),
        digits => match query_number("", Some(digits)) {
            Ok(Some(seq)) => Cursor::At(run, Seq(seq)),
            Ok(None) | Err(_) => Cursor::Foreign,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_bodies_are_read_strictly() {
        let refused: &[&[u8]] = &[
            b"",
            b"x",
            b"[]",
            b"null",
            b"{}",
            br#"{"chat_id":""}"#,
            br#"{"chat_id":1}"#,
            br#"{"chat_id":"a\n"}"#,
            br#"{"chat_id":"c"} x"#,
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
            br#"{"chat_id":NaN}"#,
            b"{\"chat_id\":\"\xff\"}",
        ];
        for body in refused {
            assert!(live(body).is_err(), "{}", String::from_utf8_lossy(body));
        }
        let nested = format!("{{\"chat_id\":\"c\",\"x\":{}", "[".repeat(60_000));
        assert!(live(nested.as_bytes()).is_err());
    }

    #[test]
    fn cursors_need_both_halves() {
        let run = RunId::from_bits(3);
        let cases = [
            (r#""protocol":1"#.to_string(), Flavour::Post, Cursor::None),
            (r#""other":[]"#.to_string(), Flavour::Legacy, Cursor::None),
            (format!(r#""run_id":"{run}","after_seq":0"#), Flavour::Legacy, Cursor::At(run, Seq(0))),
            (format!(r#""run_id":"{run}""#), Flavour::Legacy, Cursor::Foreign),
            (r#""after_seq":4"#.to_string(), Flavour::Legacy, Cursor::Foreign),
            (r#""run_id":"x","after_seq":4"#.to_string(), Flavour::Legacy, Cursor::Foreign),
        ];
        for (members, flavour, cursor) in cases {
            let read = live(format!(r#"{{"chat_id":"c",{members}}}"#).as_bytes()).unwrap();
            assert_eq!((read.flavour, read.cursor), (flavour, cursor), "{members}");
        }
    }

    #[test]
    fn last_event_id_wins_over_the_query() {
        let run = RunId::from_bits(3);
        let query = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let base = query(&[("chat_id", "c"), ("run_id", run.as_str()), ("after_seq", "4")]);
        let cases = [
            (None, Cursor::At(run, Seq(4))),
            (Some(String::new()), Cursor::At(run, Seq(4))),
            (Some(format!("{run}:9")), Cursor::At(run, Seq(9))),
            (Some(format!("{run}:end")), Cursor::Ended(run)),
            (Some("nonsense".to_string()), Cursor::Foreign),
            (Some(format!("{run}:+1")), Cursor::Foreign),
            (Some(format!("{run}:")), Cursor::Foreign),
        ];
        for (last, cursor) in cases {
            assert_eq!(live_query(&base, last.as_deref()).unwrap().cursor, cursor, "{last:?}");
        }
        for bad in [
            query(&[]),
            query(&[("chat_id", "c"), ("after_seq", "-1")]),
            query(&[("chat_id", "c"), ("wait_ms", "")]),
        ] {
            assert!(live_query(&bad, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn starts_and_finishes_may_be_empty() {
        assert_eq!(start(b" ").unwrap(), Start::default());
        assert_eq!(
            start(br#"{"trigger":"canvas","supersede":true}"#).unwrap(),
            Start { trigger: Trigger::Canvas, supersede: true }
        );
        assert!(start(br#"{"trigger":"x"}"#).is_err() && start(br#"{"supersede":1}"#).is_err());
        assert_eq!(finish(b"").unwrap(), None);
        assert_eq!(finish(br#"{"error":{"message":"m"}}"#).unwrap().as_deref(), Some("m"));
        assert_eq!(finish(br#"{"error":"m"}"#).unwrap().as_deref(), Some("m"));
        assert!(finish(br#"{"error":{}}"#).is_err() && finish(br#"{"error":1}"#).is_err());
    }
}
