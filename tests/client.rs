//! The client against a server that misbehaves by script, and against a real one over connections that are cut.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unreachable_pub, reason = "the helpers are modules of this test only")]

#[path = "client/command.rs"]
mod command;
#[path = "client/fake.rs"]
mod fake;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rejoin::client::{
    Backoff, Ended, Notice, Observer, ObserverOptions, PushError, Pusher, PusherOptions, ServerUrl,
};
use rejoin::proto::id::{ChatId, RunId};
use rejoin::wire::request::Start;
use rejoin::{Server, ServerConfig};

use fake::{Cut, Fake, Got, Reply, cutting_proxy, json, json_text, refusal, stream};

/// Nobody waits in a test.
const AT_ONCE: Backoff = Backoff { first_ms: 0, last_ms: 0, attempts_max: 5 };

const WAIT_MS: u64 = 300;

const TRACE_LONG: &str = include_str!("data/traces/pydantic-ai-long-1000.sse");
const TRACE_UTF8: &str = include_str!("data/traces/pydantic-ai-utf8.sse");
const TRACE_HELLO: &str = include_str!("data/traces/pydantic-ai-hello.sse");

fn chat() -> ChatId {
    ChatId::parse("a chat/1").unwrap()
}

fn run(number: u128) -> RunId {
    RunId::from_bits(number)
}

fn snapshot(number: u128, seq: u64) -> String {
    format!(
        "data: {{\"type\":\"STREAM_SNAPSHOT\",\"run_id\":\"{}\",\"seq\":{seq},\"events\":[]}}\n\n",
        run(number)
    )
}

fn event(number: u128, seq: u64) -> String {
    let run = run(number);
    format!(
        "data: {{\"type\":\"STREAM_EVENT\",\"run_id\":\"{run}\",\"seq\":{seq},\"event\":{{\"type\":\"é\"}}}}\n\n"
    )
}

fn end(number: u128, seq: u64, persisted: bool, superseded: bool) -> String {
    let run = run(number);
    format!(
        "data: {{\"type\":\"STREAM_END\",\"run_id\":\"{run}\",\"seq\":{seq},\"persisted\":{persisted},\"superseded\":{superseded}}}\n\n"
    )
}

/// A notice in short.
fn short(notice: Notice) -> String {
    match notice {
        Notice::Snapshot(snapshot) => format!("snapshot {}", snapshot.seq),
        Notice::Event(event) => format!("event {}", event.seq),
        Notice::Ended(end) => format!("ended {} {}", end.persisted, end.superseded),
        Notice::Reconnecting { attempt, loss, .. } => format!("reconnecting {attempt}: {loss:?}"),
        Notice::GaveUp(loss) => format!("gave up: {loss:?}"),
        Notice::Idle { attached } => format!("idle {attached}"),
        Notice::Refused { status, message } => format!("refused {status}: {message}"),
    }
}

/// What an observer asks for: its cursor, and how long the server may wait.
fn live(cursor: Option<(u128, u64)>, wait_ms: u64) -> String {
    let cursor = cursor.map(|(number, seq)| format!(r#","run_id":"{}","after_seq":{seq}"#, run(number)));
    let cursor = cursor.unwrap_or_default();
    format!(r#"{{"chat_id":"a chat/1","protocol":1,"wait_ms":{wait_ms}{cursor}}}"#)
}

/// How a request names the chat for a proxy.
const ABOUT: &str = "?chat_id=a%20chat%2F1";

fn check(replies: Vec<Reply>, notices: &[&str], requests: &[String]) {
    let fake = Fake::start(replies);
    let options = ObserverOptions { from: None, wait_ms: WAIT_MS, backoff: AT_ONCE };
    let observer = Observer::new(fake.server_url(), chat(), options);
    assert_eq!(observer.map(short).collect::<Vec<_>>(), notices);
    let got = fake.requests();
    assert!(got.iter().all(|got| got.line == format!("POST /chat/live{ABOUT}")), "{got:?}");
    assert_eq!(got.iter().map(|got| &got.body).collect::<Vec<_>>(), requests.iter().collect::<Vec<_>>());
}

#[test]
fn a_stream_that_is_cut_in_a_frame_is_taken_up_behind_the_last_whole_one() {
    let whole = snapshot(1, 0) + ": keep-alive\n\n" + &event(1, 1) + &event(1, 2);
    let first = [snapshot(1, 0), event(1, 1)].concat().len();
    for cut in (first..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
        let reached = whole[..cut].matches("\n\n").count() - 2;
        let last =
            (reached as u64..=1).map(|seq| event(1, seq + 1)).collect::<String>() + &end(1, 2, true, false);
        let mut notices = vec!["snapshot 0"];
        let events = ["event 1", "event 2"];
        notices.extend(&events[..reached]);
        notices.push("reconnecting 1: EndOfFile");
        notices.extend(&events[reached..]);
        notices.push("ended true false");
        let replies = vec![stream(&whole[..cut], false), stream(&last, true)];
        check(replies, &notices, &[live(None, WAIT_MS), live(Some((1, reached as u64)), 0)]);
    }
}

#[test]
fn end_of_file_is_not_the_end() {
    let replies =
        vec![stream(&(snapshot(1, 0) + &event(1, 1)), true), stream(&end(1, 1, false, false), true)];
    let notices = ["snapshot 0", "event 1", "reconnecting 1: EndOfFile", "ended false false"];
    check(replies, &notices, &[live(None, WAIT_MS), live(Some((1, 1)), 0)]);
}

#[test]
fn duplicates_are_ignored_and_a_gap_is_a_loss() {
    let first = snapshot(1, 2) + &event(1, 2) + &event(1, 3) + &event(1, 3) + &event(1, 5) + &event(1, 6);
    let second = event(1, 3) + &event(1, 4) + &event(1, 5) + &end(1, 5, true, false);
    let notices = ["snapshot 2", "event 3", "reconnecting 1: Gap", "event 4", "event 5", "ended true false"];
    let requests = [live(None, WAIT_MS), live(Some((1, 3)), 0)];
    check(vec![stream(&first, true), stream(&second, true)], &notices, &requests);
}

#[test]
fn a_superseded_run_is_followed_by_the_new_one() {
    let first = snapshot(1, 2) + &end(1, 2, false, true);
    let second = snapshot(2, 7) + &end(2, 7, true, false);
    let notices = ["snapshot 2", "ended false true", "snapshot 7", "ended true false"];
    let requests = [live(None, WAIT_MS), live(Some((1, 2)), 25_000)];
    check(vec![stream(&first, true), stream(&second, true)], &notices, &requests);
}

fn nothing() -> Reply {
    Reply::Answer("HTTP/1.1 204 No Content\r\n\r\n".to_owned())
}

#[test]
fn no_content_is_nothing_to_observe() {
    check(vec![nothing()], &["idle false"], &[live(None, WAIT_MS)]);
    let notices = ["snapshot 2", "reconnecting 1: EndOfFile", "idle true"];
    let requests = [live(None, WAIT_MS), live(Some((1, 2)), 0)];
    check(vec![stream(&snapshot(1, 2), false), nothing()], &notices, &requests);
}

#[test]
fn refusals_are_final_and_trouble_passes() {
    check(vec![json(400, &refusal("x"))], &["refused 400: because of x"], &[live(None, WAIT_MS)]);
    let last = snapshot(1, 0) + &end(1, 0, true, false);
    let replies = vec![
        json(503, &refusal("x")),
        Reply::Swallow,
        Reply::Answer("SSH-2.0-x\r\n".to_owned()),
        json(200, "{}"),
        stream("data: [DONE]\n\n", true),
        stream(&last, true),
    ];
    let notices = [
        "reconnecting 1: Status(503)",
        "reconnecting 2: EndOfFile",
        "reconnecting 3: Malformed",
        "reconnecting 4: Malformed",
        "reconnecting 5: Malformed",
        "snapshot 0",
        "ended true false",
    ];
    check(replies, &notices, &vec![live(None, WAIT_MS); 6]);
}

/// An answer that names its time.
fn later(seconds: &str) -> Reply {
    Reply::Answer(format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: {seconds}\r\nContent-Length: 0\r\n\r\n"
    ))
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures how long the producer waited")]
fn nobody_comes_back_earlier_than_the_server_asked_for() {
    let fake = Fake::start(vec![later("1"), later("Fri, 31 Dec 1999 23:59:59 GMT"), nothing()]);
    let options = ObserverOptions { from: None, wait_ms: WAIT_MS, backoff: AT_ONCE };
    let delays: Vec<Duration> = Observer::new(fake.server_url(), chat(), options)
        .filter_map(|notice| match notice {
            Notice::Reconnecting { delay, .. } => Some(delay),
            _ => None,
        })
        .collect();
    assert_eq!(delays, [Duration::from_secs(1), Duration::ZERO], "a date counts as nothing");
    let begun = Instant::now();
    let (ended, _) =
        push(vec![started(), Reply::Swallow, later("1"), counted(4), counted(4), finished()], 1_000);
    assert_eq!(ended.unwrap(), SAVED);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn after_five_attempts_without_progress_it_gives_up() {
    let mut replies = vec![stream(&(snapshot(1, 0) + &event(1, 1)), false)];
    replies.extend((0..5).map(|_| stream(&event(1, 1), false)));
    let mut notices = vec!["snapshot 0".to_owned(), "event 1".to_owned()];
    notices.extend((1..=5).map(|attempt| format!("reconnecting {attempt}: EndOfFile")));
    notices.push("gave up: EndOfFile".to_owned());
    let mut requests = vec![live(None, WAIT_MS)];
    requests.extend((0..5).map(|_| live(Some((1, 1)), 0)));
    check(replies, &notices.iter().map(String::as_str).collect::<Vec<_>>(), &requests);
}

const EVENTS: [&str; 3] = [r#"{"type":"A"}"#, r#"{"type":"B"}"#, r#"{"type":"C"}"#];

fn started() -> Reply {
    json(201, &format!(r#"{{"run_id":"{}"}}"#, run(1)))
}

fn counted(next: usize) -> Reply {
    json(200, &format!(r#"{{"run_id":"x","state":"active","seq":0,"next":{next}}}"#))
}

fn finished() -> Reply {
    json(200, r#"{"run_id":"x","seq":3,"persisted":true}"#)
}

fn starts(fake: &Fake, backlog_bytes_max: usize) -> Pusher {
    let options = PusherOptions { backoff: AT_ONCE, backlog_bytes_max };
    Pusher::start(&fake.server_url(), &chat(), Start::default(), options).unwrap()
}

/// Pushes three events to a server that does what the script says, and compares how it ended and what was asked of
/// the run, each request as its last segment and body.
fn push(replies: Vec<Reply>, backlog_bytes_max: usize) -> (Result<Ended, PushError>, Vec<String>) {
    let fake = Fake::start(replies);
    let mut pusher = starts(&fake, backlog_bytes_max);
    let mut push = || EVENTS.iter().try_for_each(|event| pusher.append(event.as_bytes()));
    let ended = push().and_then(|()| pusher.finish());
    let mut requests = fake.requests().into_iter();
    let start = requests.next().unwrap();
    assert_eq!(start.line, "POST /chats/a%20chat%2F1/runs");
    assert_eq!(start.body, r#"{"trigger":"user","supersede":false}"#);
    let prefix = format!("/runs/{}", run(1));
    let short = |got: Got| {
        assert!(got.line.contains(ABOUT), "each names the chat: {}", got.line);
        let line = got.line.replace(&prefix, "").replace(&format!("{ABOUT}&"), "?").replace(ABOUT, "");
        format!("{line} {}", got.body.replace('\n', ""))
    };
    (ended, requests.map(short).collect())
}

fn all_from(seq: usize) -> String {
    format!("POST /events?from_seq={seq} {}", EVENTS[seq - 1..].concat())
}

const SAVED: Ended = Ended { seq: 3, persisted: true };

#[test]
fn events_go_through_one_request() {
    let (ended, requests) = push(vec![started(), counted(4), finished()], 1_000);
    assert_eq!(ended.unwrap(), SAVED);
    assert_eq!(requests, [all_from(1), "POST /finish {}".to_owned()]);
}

#[test]
fn after_a_lost_acknowledgement_only_the_rest_is_sent_again() {
    for next in 1..=4 {
        let replies = vec![started(), Reply::Swallow, counted(next), counted(4), finished()];
        let (ended, requests) = push(replies, 1_000);
        assert_eq!(ended.unwrap(), SAVED);
        let expected = [all_from(1), "GET  ".to_owned(), all_from(next), "POST /finish {}".to_owned()];
        assert_eq!(requests, expected);
    }
}

#[test]
fn a_server_that_refuses_and_comes_back_is_waited_for() {
    let replies = vec![
        started(),
        Reply::Swallow,
        json(503, &refusal("shutting_down")),
        Reply::Swallow,
        counted(2),
        counted(4),
        finished(),
    ];
    let (ended, requests) = push(replies, 1_000);
    assert_eq!(ended.unwrap(), SAVED);
    assert_eq!(requests[4..], [all_from(2), "POST /finish {}".to_owned()]);
}

#[test]
fn a_body_that_is_cut_after_each_event_still_gets_through() {
    let fake = Fake::start(vec![
        started(),
        Reply::CutAfter(1),
        counted(2),
        Reply::CutAfter(1),
        counted(3),
        Reply::Answer(json_text(200, r#"{"seq":3,"next":4}"#)),
        finished(),
    ]);
    let mut pusher = starts(&fake, 1_000);
    let mut script = EVENTS.iter().map(|event| event.as_bytes());
    pusher.append(script.next().unwrap()).unwrap();
    for event in script {
        pusher.append(event).unwrap();
    }
    assert_eq!(pusher.finish().unwrap(), SAVED);
    let requests = fake.requests();
    assert!(
        requests[3].body.starts_with(EVENTS[1]) && requests[5].body.starts_with(EVENTS[2]),
        "{requests:?}"
    );
}

#[test]
fn five_attempts_without_progress_are_the_last() {
    let mut replies = vec![started(), Reply::Swallow];
    replies.extend((0..5).map(|_| Reply::Swallow));
    let (ended, requests) = push(replies, 1_000);
    assert!(matches!(ended, Err(PushError::Lost(_))), "{ended:?}");
    assert_eq!(requests.len(), 6);
}

#[test]
fn a_full_backlog_waits_for_an_acknowledgement() {
    let replies = vec![started(), counted(3), counted(4), finished()];
    let (ended, requests) = push(replies, EVENTS[0].len() * 2);
    assert_eq!(ended.unwrap(), SAVED);
    let first = format!("POST /events?from_seq=1 {}{}", EVENTS[0], EVENTS[1]);
    assert_eq!(requests, [first, all_from(3), "POST /finish {}".to_owned()]);
}

#[test]
fn a_lost_answer_to_finish_is_asked_for_again() {
    let replies = vec![started(), counted(4), Reply::Swallow, json(500, ""), finished()];
    let (ended, requests) = push(replies, 1_000);
    assert_eq!(ended.unwrap(), SAVED);
    assert_eq!(requests[1..], ["POST /finish {}"; 3]);
}

#[test]
fn refusals_of_a_producer_are_final() {
    for (status, code) in [(409, "run_over"), (409, "taken_over"), (400, "bad_event"), (413, "run_too_large")]
    {
        let told = format!("{code}: because of {code}");
        let early = Reply::Early(json_text(status, &refusal(code)));
        let fake = Fake::start(vec![started(), early]);
        let mut pusher = starts(&fake, usize::MAX);
        // The answer is noticed while events are still being sent, however late it comes.
        let error = loop {
            if let Err(error) = pusher.append(EVENTS[0].as_bytes()) {
                break error;
            }
        };
        assert_eq!(error.to_string(), told);
        drop(pusher);
        fake.requests();

        let (ended, _) = push(vec![started(), json(status, &refusal(code))], 1_000);
        assert_eq!(ended.unwrap_err().to_string(), told);
        let (ended, _) = push(vec![started(), counted(4), json(status, &refusal(code))], 1_000);
        assert_eq!(ended.unwrap_err().to_string(), told);
    }
}

#[test]
fn a_start_is_never_repeated() {
    let fake = Fake::start(vec![Reply::Swallow]);
    let started = Pusher::start(&fake.server_url(), &chat(), Start::default(), PusherOptions::default());
    assert!(matches!(started, Err(PushError::Lost(_))), "{started:?}");
    assert_eq!(fake.requests().len(), 1);
    let fake = Fake::start(vec![json(409, &refusal("already_streaming"))]);
    let started = Pusher::start(&fake.server_url(), &chat(), Start::default(), PusherOptions::default());
    assert_eq!(started.unwrap_err().to_string(), "already_streaming: because of already_streaming");
}

#[test]
fn what_is_no_event_is_not_sent() {
    let fake = Fake::start(vec![started(), counted(2), finished()]);
    let mut pusher = starts(&fake, 1_000);
    assert!(matches!(pusher.append(b"{}"), Err(PushError::BadEvent(_))));
    pusher.append(b"{\n\"type\":\r\n\"A\"}").unwrap();
    pusher.finish().unwrap();
    assert_eq!(fake.requests()[1].body, "{\"type\":\"A\"}\n");
}

/// The events of a recorded stream.
fn trace(sse: &str) -> Vec<&str> {
    sse.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

/// The text of all messages, one after the other.
fn text<'a>(events: impl IntoIterator<Item = &'a str>) -> String {
    let deltas = events.into_iter().filter_map(|event| {
        let event: serde_json::Value = serde_json::from_str(event).unwrap();
        let text = event["type"] == "TEXT_MESSAGE_CONTENT";
        text.then(|| event["delta"].as_str().unwrap().to_owned())
    });
    deltas.collect()
}

fn server() -> (Server, SocketAddr) {
    let server = Server::start(ServerConfig::default()).unwrap();
    let address = server.address();
    (server, address)
}

/// Pushes a trace while an observer follows, over these two ways to the server. Tells how often the observer had to
/// come back.
fn pushed_and_observed(sse: &str, push_url: &str, observe_url: &str) -> usize {
    let often = Backoff { attempts_max: 50, ..AT_ONCE };
    let url = |text: &str| ServerUrl::parse(text).unwrap();
    let options = PusherOptions { backoff: often, ..PusherOptions::default() };
    let mut pusher = Pusher::start(&url(push_url), &chat(), Start::default(), options).unwrap();
    let options = ObserverOptions { backoff: often, ..ObserverOptions::default() };
    let mut observer = Observer::new(url(observe_url), chat(), options);
    assert_eq!(observer.next().map(short).as_deref(), Some("snapshot 0"));
    let events: Vec<String> = trace(sse).into_iter().map(str::to_owned).collect();
    let expected = events.clone();
    let writer = std::thread::spawn(move || {
        for event in &events {
            pusher.append(event.as_bytes()).unwrap();
        }
        pusher.finish().unwrap()
    });
    let mut seen = Vec::new();
    let mut last = None;
    let mut losses = 0;
    for notice in observer {
        match notice {
            Notice::Snapshot(snapshot) => {
                seen = snapshot.events.iter().map(|event| event.get().to_owned()).collect();
            }
            Notice::Event(event) => seen.push(event.event.get().to_owned()),
            Notice::Reconnecting { .. } => losses += 1,
            other => last = Some(short(other)),
        }
    }
    assert_eq!(last.as_deref(), Some("ended true false"));
    assert_eq!(text(seen.iter().map(String::as_str)), text(expected.iter().map(String::as_str)));
    let ended = writer.join().unwrap();
    assert_eq!(ended, Ended { seq: expected.len() as u64, persisted: true });
    losses
}

#[test]
fn a_trace_goes_through_unharmed() {
    let (server, address) = server();
    let url = format!("http://{address}");
    for sse in [TRACE_HELLO, TRACE_UTF8, TRACE_LONG] {
        assert_eq!(pushed_and_observed(sse, &url, &url), 0);
    }
    server.stop().unwrap();
}

#[test]
fn an_observer_whose_connections_are_cut_misses_and_doubles_nothing() {
    let (server, address) = server();
    let (proxy, _) = cutting_proxy(address, Cut::Answers);
    let losses = pushed_and_observed(TRACE_LONG, &format!("http://{address}"), &proxy);
    // 1,004 frames of more than 200 bytes do not fit through connections of at most 6,502 in fewer.
    assert!(losses >= 30, "{losses}");
    server.stop().unwrap();
}

#[test]
fn a_producer_whose_connections_are_cut_loses_and_doubles_nothing() {
    let (server, address) = server();
    let (proxy, connections) = cutting_proxy(address, Cut::Requests);
    assert_eq!(pushed_and_observed(TRACE_LONG, &proxy, &format!("http://{address}")), 0);
    let connections = connections.load(Ordering::Relaxed);
    assert!(connections >= 30, "{connections}");
    server.stop().unwrap();
}
