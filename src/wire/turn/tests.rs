use super::*;
use crate::proto::turn::{Decision, PromptPart};

fn read_turn(json: &str) -> Result<TurnRequest, String> {
    turn(json.as_bytes()).map_err(|BadRequest(message)| message)
}

#[test]
fn bad_turns_are_refused_and_say_what_to_change() {
    let cases = [
        ("", "JSON object"),
        ("[]", "JSON object"),
        ("{\"chat_id\":", "can't be read"),
        ("{}", "chat_id"),
        (r#"{"chat_id":5}"#, "chat_id"),
        (r#"{"chat_id":"c","message":5}"#, "\"message\" must be a string"),
        (r#"{"chat_id":"c","protocol":2}"#, "protocol"),
        (r#"{"chat_id":"c","trigger":"x"}"#, "trigger"),
        (r#"{"chat_id":"c","config":[]}"#, "config"),
        (r#"{"chat_id":"c","config":{"tools":{}}}"#, "config.tools"),
        (r#"{"chat_id":"c","resume":{}}"#, "resume"),
        (r#"{"chat_id":"c","files":[{"name":"f"}]}"#, "files"),
        (r#"{"chat_id":"c","files":[{"name":"f","data":"?"}]}"#, "base64"),
        (r#"{"chat_id":"c","message_index":-1}"#, "message_index"),
        (r#"{"chat_id":"c","payload":1,"config":{"forwardedProps":[]}}"#, "forwardedProps"),
    ];
    for (body, what) in cases {
        let message = read_turn(body).err().unwrap_or_default();
        assert!(message.contains(what), "{body}: {message}");
    }
}

#[test]
fn what_asks_nothing_is_empty() {
    let cases = [
        (r#"{"chat_id":"c"}"#, true),
        (r#"{"chat_id":"c","message":""}"#, true),
        (r#"{"chat_id":"c","message":" \n\u0009 "}"#, true),
        (r#"{"chat_id":"c","message":null}"#, true),
        (r#"{"chat_id":"c","message":"x"}"#, false),
        (r#"{"chat_id":"c","message":"\ud83d"}"#, false),
        (r#"{"chat_id":"c","resume":[]}"#, false),
        (r#"{"chat_id":"c","trigger":"heartbeat"}"#, false),
        (r#"{"chat_id":"c","trigger":"canvas"}"#, true),
        (r#"{"chat_id":"c","trigger":"canvas","payload":{"a":1}}"#, false),
        (r#"{"chat_id":"c","trigger":"schedule"}"#, true),
        (r#"{"chat_id":"c","files":[{"name":"f","data":"eA=="}]}"#, false),
    ];
    for (body, empty) in cases {
        assert_eq!(read_turn(body).unwrap().is_empty(), empty, "{body}");
    }
}

#[test]
fn a_message_is_kept_as_it_was_written() {
    let request = read_turn(r#"{"chat_id":"c","message":"caf\u00e9 \ud83d \"x\""}"#).unwrap();
    let message = request.message("m").unwrap();
    assert_eq!(
        String::from_utf8(message.json.clone()).unwrap(),
        r#"{"id":"m","role":"user","content":"caf\u00e9 \ud83d \"x\""}"#
    );
    assert_eq!(prompt(&message.json), [PromptPart::Text("café \u{fffd}\u{fffd}\u{fffd} \"x\"".to_owned())]);
    assert!(is_user_message(&message.json));
}

#[test]
fn files_go_with_the_text_and_stay_when_it_is_edited() {
    let body =
        r#"{"chat_id":"c","message":"see","files":[{"name":"a.png","mime_type":"image/png","data":"eA=="}]}"#;
    let json = read_turn(body).unwrap().message("m").unwrap().json;
    let file = r#"{"type":"image","source":{"type":"data","value":"eA==","mimeType":"image/png"},"metadata":{"filename":"a.png"}}"#;
    let expected = |id: &str, text: &str| {
        format!(r#"{{"id":"{id}","role":"user","content":[{{"type":"text","text":"{text}"}},{file}]}}"#)
    };
    assert_eq!(String::from_utf8(json.clone()).unwrap(), expected("m", "see"));
    let edited = edited(&json, "n", "\"look\"");
    assert_eq!(String::from_utf8(edited.clone()).unwrap(), expected("n", "look"));
    let attached =
        PromptPart::File { name: "a.png".into(), media_type: "image/png".into(), base64: "eA==".into() };
    assert_eq!(prompt(&edited), [PromptPart::Text("look".into()), attached]);
    let plain = super::edited(br#"{"id":"m","role":"user","content":"a"}"#, "n", "\"b\"");
    assert_eq!(plain, br#"{"id":"n","role":"user","content":"b"}"#);
}

#[test]
fn the_agent_gets_the_conversation_and_what_was_passed() {
    let cases = [
        (r#"{"chat_id":"c","message":"x"}"#, r#""state":{},"tools":[],"context":[],"forwardedProps":{}"#),
        (
            r#"{"chat_id":"c","config":{"state":{"a":1},"tools":[{"name":"t"}],"context":[1],"forwardedProps":{"b":2}},"payload":{"p":1},"trigger":"canvas","resume":[{"interruptId":"i"}]}"#,
            r#""state":{"a":1},"tools":[{"name":"t"}],"context":[1],"forwardedProps":{"b":2,"trigger":"canvas","payload":{"p":1}},"resume":[{"interruptId":"i"}]"#,
        ),
        (
            r#"{"chat_id":"c","trigger":"heartbeat","config":{"forwardedProps":{ }}}"#,
            r#""state":{},"tools":[],"context":[],"forwardedProps":{ "trigger":"heartbeat"}"#,
        ),
    ];
    for (body, members) in cases {
        let input = read_turn(body).unwrap().input("r", br#"{"id":"m"}"#);
        let expected = format!(r#"{{"threadId":"c","runId":"r","messages":[{{"id":"m"}}],{members}}}"#);
        assert_eq!(String::from_utf8(input).unwrap(), expected, "{body}");
    }
}

#[test]
fn a_run_agent_input_is_handed_on_as_it_is() {
    let body = br#"{"threadId":"t","runId":"r","messages":[{"id":"\u0061","role":"user","content":"x"}]}"#;
    let request = agent_input(body).unwrap();
    assert_eq!((request.chat.as_str(), request.input("other", b"")), ("t", body.to_vec()));
    assert_eq!(request.input.unwrap().messages[0].id, b"a");
    assert!(agent_input(br#"{"messages":[]}"#).is_err());
    assert!(agent_input(br#"{"threadId":"t","messages":[{}]}"#).is_err());
}

#[test]
fn answers_are_one_of_three_kinds() {
    let cases = [
        (r#""option_id":"yes""#, Some(Decision::Selected("yes".into()))),
        (r#""action":"accept","content":{"a":1}"#, Some(Decision::Accepted("{\"a\":1}".into()))),
        (r#""action":"accept""#, Some(Decision::Accepted("{}".into()))),
        (r#""action":"decline""#, Some(Decision::Declined)),
        (r#""action":"cancel""#, Some(Decision::Cancelled)),
        (r#""cancelled":true"#, Some(Decision::Cancelled)),
        (r#""cancelled":false"#, None),
        (r#""action":"maybe""#, None),
        (r#""action":"accept","content":[]"#, None),
        (r#""option_id":"yes","action":"accept""#, None),
        (r#""option_id":5"#, None),
    ];
    for (members, decision) in cases {
        let body = format!(r#"{{"chat_id":"c","request_id":"q",{members}}}"#);
        assert_eq!(respond(body.as_bytes()).ok().map(|respond| respond.decision), decision, "{members}");
    }
    assert!(respond(br#"{"chat_id":"c","option_id":"x"}"#).is_err());
}

#[test]
fn forms_carry_the_same_as_json() {
    let part = |name, file_name, bytes| FormPart { name, file_name, media_type: None, bytes };
    let parts = [
        part("chat_id", None, &b"c"[..]),
        part("message", None, "héllo \"x\"".as_bytes()),
        part("payload", None, b"{\"a\":1}"),
        part("trigger", None, b"canvas"),
        part("files", Some("f.bin"), &[0, 255]),
    ];
    let request = form(&parts).unwrap();
    assert_eq!(request.text.as_deref(), Some(r#""héllo \"x\"""#));
    assert_eq!((request.trigger, request.files[0].base64.as_str()), (Trigger::Canvas, "AP8="));
    assert!(form(&[part("chat_id", None, b"c"), part("payload", None, b"{")]).is_err());
    assert!(form(&[part("chat_id", None, b"\xff")]).is_err());
}
