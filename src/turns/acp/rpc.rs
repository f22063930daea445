//! JSON-RPC 2.0 as ACP frames it: one message a line. It knows the envelope; params and results stay as they were
//! written, byte for byte.

use std::borrow::Cow;

use agent_client_protocol_schema::v1 as acp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message from the agent.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// The answer to a request.
    Response {
        /// The request's id.
        id: &'a RawValue,
        /// Its result, or what went wrong.
        outcome: Result<&'a RawValue, acp::Error>,
    },
    /// A request, to be answered.
    Request {
        /// What the answer has to carry.
        id: &'a RawValue,
        /// What is asked for.
        method: Cow<'a, str>,
        /// With these.
        params: &'a RawValue,
    },
    /// A message that takes no answer.
    Notification {
        /// What it tells of.
        method: Cow<'a, str>,
        /// With these.
        params: &'a RawValue,
    },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// Reads a line; none if it is no JSON-RPC.
    pub(super) fn read(line: &'a str) -> Option<Incoming<'a>> {
        let Envelope { id, method, params, result, error } = serde_json::from_str(line).ok()?;
        let params = params.unwrap_or(RawValue::NULL);
        match (method, id) {
            (Some(method), Some(id)) => Some(Incoming::Request { id, method, params }),
            (Some(method), None) => Some(Incoming::Notification { method, params }),
            // Some agents answer `session/load` with a null, which reads like no result at all.
            (None, Some(id)) => {
                let outcome =
                    error.map_or(Ok(result.unwrap_or(RawValue::NULL)), |error| Err(read_error(error)));
                Some(Incoming::Response { id, outcome })
            }
            (None, None) => None,
        }
    }
}

fn read_error(error: &RawValue) -> acp::Error {
    serde_json::from_str(error.get()).unwrap_or_else(|_| {
        let code = i32::from(acp::ErrorCode::InternalError);
        acp::Error::new(code, error.get())
    })
}

/// What is written: each message has some of these.
#[derive(Serialize)]
struct Message<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a acp::Error>,
}

impl<P: Serialize> Message<'_, P> {
    const EMPTY: Self =
        Message { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };

    fn line(&self) -> Vec<u8> {
        let mut line =
            serde_json::to_vec(self).expect("neither keys that are no strings nor a writer that fails");
        // A person's answer is passed on as it was written; between its tokens line breaks are legal.
        line.retain(|byte| !matches!(byte, b'\n' | b'\r'));
        line.push(b'\n');
        line
    }
}

/// A request's line.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Vec<u8> {
    let id = serde_json::value::to_raw_value(&id).expect("a number is JSON");
    Message { id: Some(&id), method: Some(method), params: Some(params), ..Message::EMPTY }.line()
}

/// A notification's line.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    Message { method: Some(method), params: Some(params), ..Message::EMPTY }.line()
}

/// The line that answers a request of the agent.
pub(super) fn result(id: &RawValue, result: &impl Serialize) -> Vec<u8> {
    Message { id: Some(id), result: Some(result), ..Message::EMPTY }.line()
}

/// The line that refuses a request of the agent.
pub(super) fn error(id: &RawValue, error: &acp::Error) -> Vec<u8> {
    Message::<()> { id: Some(id), error: Some(error), ..Message::EMPTY }.line()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line is read as, in short.
    fn check(line: &str, expected: &str) {
        let read = match Incoming::read(line) {
            None => "nothing".to_owned(),
            Some(Incoming::Response { id, outcome: Ok(result) }) => {
                format!("{} is {}", id.get(), result.get())
            }
            Some(Incoming::Response { id, outcome: Err(error) }) => {
                format!("{} failed {} {}", id.get(), i32::from(error.code), error.message)
            }
            Some(Incoming::Request { id, method, params }) => {
                format!("{} asks {method} {}", id.get(), params.get())
            }
            Some(Incoming::Notification { method, params }) => format!("{method} {}", params.get()),
        };
        assert_eq!(read, expected, "{line}");
    }

    #[test]
    fn messages_are_told_apart_and_kept_as_written() {
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"a" : 1.0e1}}"#, r#"1 is {"a" : 1.0e1}"#);
        check(r#"{"id":1,"result":null}"#, "1 is null");
        check(r#"{"id":2,"error":{"code":-32000,"message":"log in"}}"#, "2 failed -32000 log in");
        check(r#"{"id":2,"error":"odd"}"#, r#"2 failed -32603 "odd""#);
        check(r#"{"id":"x\u0031","method":"fs/read","params":{}}"#, r#""x\u0031" asks fs/read {}"#);
        check(r#"{"method":"session\/update","params":{"t":"\ud83d"}}"#, r#"session/update {"t":"\ud83d"}"#);
        check(r#"{"method":"m","id":null}"#, "m null");
    }

    #[test]
    fn what_is_no_message_is_nothing() {
        for bad in
            ["", "Starting…", "{}", "[]", "7", r#"{"method":7}"#, r#"{"method":"\ud83d"}"#, "{\"id\":1"]
        {
            check(bad, "nothing");
        }
        check(&"[".repeat(100_000), "nothing");
    }

    #[test]
    fn what_is_written_is_one_line() {
        let id = RawValue::from_string("\"q\"".to_owned()).unwrap();
        let content = RawValue::from_string("{\r\n\"a\":\n1}".to_owned()).unwrap();
        assert_eq!(result(&id, &content), b"{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"result\":{\"a\":1}}\n");
        assert_eq!(
            request(3, "m", &[1]),
            b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\",\"params\":[1]}\n"
        );
        assert_eq!(notification("m", &[1]), b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[1]}\n");
        let refusal = String::from_utf8(error(&id, &acp::Error::method_not_found())).unwrap();
        assert!(refusal.contains(r#""id":"q","error":{"code":-32601,"#), "{refusal}");
    }
}
