//! Questions that an agent asks: the answer is in the run before the agent has it; the first one wins.

use serde_json::{Value, json};

use crate::server::{Served, serve};
use crate::{ask, fake_agent, follow, is_custom, said, sdk_agent, send, until};

/// Asks for something that needs a permission; the id of the question.
fn question(served: &Served, chat: &str, words: &str, name: &'static str) -> String {
    send(served, chat, words);
    let asked = until(&mut served.live(chat, ",\"wait_ms\":20000"), is_custom(name));
    asked["value"]["request_id"].as_str().unwrap().to_owned()
}

fn respond(served: &Served, chat: &str, request: &str, members: &str) -> (u16, Value) {
    ask(served, "/chat/respond", chat, &format!(",\"request_id\":{}{members}", json!(request)))
}

/// The question and its resolution, in order.
fn asked_and_resolved(events: &[Value]) -> Vec<&str> {
    let names = events.iter().filter_map(|event| event["name"].as_str());
    names.filter(|name| name.contains("_request") || name.contains("_resolved")).collect()
}

#[test]
fn a_permission_is_answered_once_and_stays_answered() {
    let served = serve(&["--agent", &sdk_agent()]);
    let request = question(&served, "c", "permission", "acp.permission_request");
    let (status, body) = respond(&served, "c", &request, ",\"option_id\":\"maybe\"");
    assert_eq!((status, &body["error"]["code"]), (400, &json!("bad_request")), "{body}");
    assert_eq!(respond(&served, "c", "other", ",\"option_id\":\"yes\"").0, 404);
    let (status, body) = respond(&served, "c", &request, ",\"option_id\":\"yes\"");
    assert_eq!((status, &body["outcome"], &body["option_id"]), (200, &json!("selected"), &json!("yes")));
    let (status, body) = respond(&served, "c", &request, ",\"option_id\":\"no\"");
    assert_eq!((status, &body["error"]["code"]), (409, &json!("already_answered")));
    assert_eq!((&body["error"]["outcome"], &body["error"]["option_id"]), (&json!("selected"), &json!("yes")));
    let (events, end) = follow(&served, "c", 1);
    assert_eq!((end["persisted"].as_bool(), said(&events)), (Some(true), "You chose yes.".to_owned()));
    assert_eq!(asked_and_resolved(&events), ["acp.permission_request", "acp.permission_resolved"]);
    let stored = crate::history(&served, "c");
    let events = stored["turns"][0]["events"].as_array().unwrap();
    assert_eq!(asked_and_resolved(events), ["acp.permission_request", "acp.permission_resolved"]);
}

#[test]
fn a_reload_after_the_answer_shows_it_answered() {
    let served = serve(&["--agent", &fake_agent("")]);
    let request = question(&served, "c", "permission", "acp.permission_request");
    assert_eq!(served.live("c", "").data().unwrap()["type"], "STREAM_SNAPSHOT");
    let option = until(&mut served.live("c", ""), is_custom("acp.permission_request"));
    let option = option["value"]["options"][0]["optionId"].as_str().unwrap().to_owned();
    assert_eq!(respond(&served, "c", &request, &format!(",\"option_id\":{}", json!(option))).0, 200);
    let (events, _) = follow(&served, "c", usize::MAX);
    assert_eq!(asked_and_resolved(&events), ["acp.permission_request", "acp.permission_resolved"]);
}

#[test]
fn of_two_tabs_that_answer_at_once_one_wins() {
    let served = serve(&["--agent", &sdk_agent()]);
    for round in 0..10 {
        let chat = format!("c{round}");
        let request = question(&served, &chat, "permission", "acp.permission_request");
        let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
            let tabs: Vec<_> = ["yes", "no"]
                .map(|option| {
                    let (served, chat, request) = (&served, &chat, &request);
                    scope.spawn(move || {
                        respond(served, chat, request, &format!(",\"option_id\":\"{option}\""))
                    })
                })
                .into();
            tabs.into_iter().map(|tab| tab.join().unwrap()).collect()
        });
        let mut statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{answers:?}");
        let winner = answers.iter().find(|(status, _)| *status == 200).unwrap();
        let loser = answers.iter().find(|(status, _)| *status == 409).unwrap();
        assert_eq!(winner.1["option_id"], loser.1["error"]["option_id"]);
        let (events, _) = follow(&served, &chat, 9);
        assert_eq!(said(&events), format!("You chose {}.", winner.1["option_id"].as_str().unwrap()));
    }
}

#[test]
fn a_form_is_filled_in_declined_or_cancelled() {
    let served = serve(&["--agent", &fake_agent("")]);
    let cases = [
        (",\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}", "accepted"),
        (",\"action\":\"decline\"", "declined"),
        (",\"cancelled\":true", "cancelled"),
    ];
    for (answer, outcome) in cases {
        let request = question(&served, outcome, "form", "acp.elicitation_request");
        let (status, body) = respond(&served, outcome, &request, ",\"option_id\":\"x\"");
        assert_eq!(status, 400, "{body}");
        let (status, body) = respond(&served, outcome, &request, answer);
        assert_eq!((status, &body["outcome"]), (200, &json!(outcome)), "{body}");
        let (events, end) = follow(&served, outcome, 9);
        assert_eq!(end["persisted"], true, "{events:?}");
        assert_eq!(asked_and_resolved(&events), ["acp.elicitation_request", "acp.elicitation_resolved"]);
    }
}

#[test]
fn a_question_is_cancelled_when_its_run_ends_or_is_replaced() {
    let served = serve(&["--agent", &sdk_agent()]);
    let stopped = question(&served, "stopped", "permission", "acp.permission_request");
    assert_eq!(ask(&served, "/chat/stop", "stopped", "").0, 200);
    let (status, body) = respond(&served, "stopped", &stopped, ",\"option_id\":\"yes\"");
    assert_eq!((status, &body["error"]["outcome"]), (409, &json!("cancelled")), "{body}");
    let stored = crate::history(&served, "stopped");
    let events = stored["turns"][0]["events"].as_array().unwrap();
    assert_eq!(asked_and_resolved(events), ["acp.permission_request", "acp.permission_resolved"]);
    assert_eq!(events.last().unwrap()["code"], "stopped");

    let steered = question(&served, "steered", "permission", "acp.permission_request");
    assert_eq!(ask(&served, "/chat/steer-send", "steered", ",\"message\":\"hello\"").0, 202);
    assert_eq!(respond(&served, "steered", &steered, ",\"option_id\":\"yes\"").0, 404);
    let (events, _) = follow(&served, "steered", 3);
    assert_eq!(said(&events), "Hello, wörld 🎈");
    let stored = crate::history(&served, "steered");
    let events = stored["turns"][0]["events"].as_array().unwrap();
    assert_eq!(asked_and_resolved(events), ["acp.permission_request", "acp.permission_resolved"]);
}
