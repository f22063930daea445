//! Samples: pieces of text and JSON that have broken somebody's stream before.

use super::rng::Rng;
use super::spelling::Object;

/// The two halves of 👩 (U+1F469), which a delta may end in and the next begin with.
pub(super) const FIRST_HALF: u16 = 0xd83d;
pub(super) const SECOND_HALF: u16 = 0xdc69;

pub(super) const TEXTS: [&str; 16] = [
    "token ",
    "Hello",
    "naïve ",
    "日本語",
    "привет ",
    "👩‍👩‍👧",
    "\u{2028}\u{2029}",
    "\u{7f}\u{0}\u{1f}",
    "line\nbreak\r\n",
    "\n\ndata: {\"type\":\"STREAM_END\"}\n\n",
    "quote \" backslash \\ slash / tab \t",
    "\u{8}\u{c}",
    "{\"city\": \"Zürich\"}",
    "\\u0041 \\\\",
    "\u{fffd}\u{feff}",
    " ",
];

/// Types that the client does not know, some of which look much like those that it knows.
pub(super) const UNKNOWN_TYPES: [&str; 6] =
    ["AGENT_FINISHED", "X", "", "text_message_content", "TEXT_MESSAGE_CONTENT ", "TOOL_CALL_ARGS\u{0}"];

const VALUES: [&str; 10] = [
    "null",
    "\"text\"",
    "12345678901234567890",
    "-0.0",
    "1e400",
    "[]",
    "{\"n\":9007199254740993,\"deep\":[[[{}]]]}",
    "{\"s\":\"\\ud83d\",\"t\":\"\\u2028\"}",
    "[1, 2 ,\t3]",
    "{\"delta\":\"x\",\"type\":\"RUN_FINISHED\"}",
];

/// Any JSON value.
pub(super) fn value(rng: &mut Rng) -> &'static str {
    rng.pick::<&str>(&VALUES)
}

/// How a run says that it ended: JSON, or nothing.
pub(super) fn outcome(rng: &mut Rng) -> &'static str {
    const OUTCOMES: [&str; 4] = [
        "",
        r#"{"type":"success"}"#,
        r#"{"type":"cancelled"}"#,
        r#"{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval","metadata":{"n":1}}]}"#,
    ];
    rng.pick::<&str>(&OUTCOMES)
}

/// Adds members that any event may carry.
pub(super) fn extras(rng: &mut Rng, event: Object) -> Object {
    let key = *rng.pick(&["a", "b", "ag-ui", "__proto__", "\u{fc}"]);
    match rng.below(6) {
        0 | 1 => event.raw("timestamp", *rng.pick(&["1796093391294", "1796093391294.0", "0", "1.796e12"])),
        2 => {
            event.raw("rawEvent", *rng.pick(&["{\"id\":12345678901234567890}", "\"raw\"", "[null]", "null"]))
        }
        3 => event.raw("metadata", "{}"),
        4 => {
            let metadata = Object::default().raw(key, value(rng)).raw("last", value(rng));
            event.raw("metadata", metadata.plain())
        }
        _ => event.text("x-trace", "an unknown member"),
    }
}
