//! What is right, computed the slow and obvious way: compaction on parsed values, and the closing of runs.

use serde_json::Value;

/// The target of a delta event.
fn target(event: &Value) -> Option<(String, String)> {
    let kind = event["type"].as_str()?;
    let id = match kind {
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => event["messageId"].as_str()?,
        "TOOL_CALL_ARGS" => event["toolCallId"].as_str()?,
        _ => return None,
    };
    Some((kind.to_owned(), id.to_owned()))
}

/// Whether the two share a message though their types differ.
fn siblings(a: &(String, String), b: &(String, String)) -> bool {
    a.1 == b.1 && a.0 != b.0 && a.0 != "TOOL_CALL_ARGS" && b.0 != "TOOL_CALL_ARGS"
}

fn joinable(a: &Value, b: &Value) -> bool {
    let bare = |event: &Value| {
        let mut event = event.clone();
        for member in ["delta", "timestamp"] {
            event.as_object_mut().map(|members| members.remove(member));
        }
        event
    };
    bare(a) == bare(b)
}

/// Joins deltas within each stretch of deltas.
pub fn compact(events: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut stretch: Vec<((String, String), usize)> = Vec::new();
    for event in events {
        let Some(target) = target(event) else {
            stretch.clear();
            out.push(event.clone());
            continue;
        };
        if stretch.iter().any(|(known, _)| siblings(known, &target)) {
            stretch.clear();
        }
        let last = stretch.iter().rev().find(|(known, _)| *known == target).map(|(_, index)| *index);
        match last {
            Some(index) if joinable(&out[index], event) => {
                let joined =
                    format!("{}{}", out[index]["delta"].as_str().unwrap(), event["delta"].as_str().unwrap());
                out[index]["delta"] = Value::String(joined);
            }
            _ => {
                stretch.push((target, out.len()));
                out.push(event.clone());
            }
        }
    }
    out
}

/// What is wrong with the way in which a run's events end, if anything: an agent's run that was begun has to be
/// finished or failed, with all its parts closed, unless bad input came first.
pub fn ending_fault(events: &[Value]) -> Option<String> {
    let mut open: Vec<(String, String)> = Vec::new();
    let mut level = "";
    for event in events {
        let kind = event["type"].as_str().unwrap_or("");
        let id = event["messageId"].as_str().or(event["toolCallId"].as_str()).unwrap_or("").to_owned();
        match kind {
            // That is bad input, which is not repaired.
            "RUN_FINISHED" if !open.is_empty() => return None,
            "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" => level = kind,
            _ => {}
        }
        if let Some(part) = kind.strip_suffix("_START") {
            open.push((part.to_owned(), id));
        } else if let Some(part) = kind.strip_suffix("_END") {
            open.retain(|known| *known != (part.to_owned(), id.clone()));
        }
    }
    match level {
        "RUN_STARTED" => Some("the agent's run is neither finished nor failed".to_owned()),
        "RUN_ERROR" if !open.is_empty() => Some(format!("open at the end: {open:?}")),
        _ => None,
    }
}
