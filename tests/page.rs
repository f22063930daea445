//! The pages and the status, as bytes from the real binary. What a person sees of them is tested in a browser, in
//! clients/page/test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/server.rs"]
mod server;

use server::{Served, serve};

/// Status, fields and body of an answer.
fn get(served: &Served, method: &str, path: &str, fields: &str) -> (u16, String, Vec<u8>) {
    let mut conn = served.connect();
    conn.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").as_bytes());
    let head = conn.head();
    let body = if method == "HEAD" { Vec::new() } else { conn.body(&head) };
    (head.status, head.text, body)
}

fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let line = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with(&format!("{}: ", name.to_ascii_lowercase())));
    line.map_or("", |line| &line[name.len() + 2..])
}

fn count_of(value: &serde_json::Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

#[test]
fn pages_are_served_with_their_type_their_tag_and_their_policy() {
    let served = serve(&[]);
    let pages = [
        ("/", "text/html; charset=utf-8", "<!doctype html>"),
        ("/?chat=demo", "text/html; charset=utf-8", "<!doctype html>"),
        ("/inspect", "text/html; charset=utf-8", "<!doctype html>"),
        ("/page/src/chat.js", "text/javascript; charset=utf-8", "// The chat page"),
        ("/page/client/index.js", "text/javascript; charset=utf-8", "export "),
        ("/page/style/base.css", "text/css; charset=utf-8", "/*"),
    ];
    for (path, kind, begins) in pages {
        let (status, head, body) = get(&served, "GET", path, "");
        assert_eq!((status, field(&head, "Content-Type")), (200, kind), "{path}");
        assert!(body.starts_with(begins.as_bytes()), "{path}");
        assert!(
            field(&head, "Content-Security-Policy").starts_with("default-src 'none'; script-src 'self';"),
            "{head}"
        );
        assert_eq!(field(&head, "X-Content-Type-Options"), "nosniff");
        let length = body.len().to_string();
        let (status, head, _) = get(&served, "HEAD", path, "");
        assert_eq!((status, field(&head, "Content-Length")), (200, length.as_str()), "{path}");
    }
    assert_eq!(get(&served, "GET", "/page/src/nothing.js", "").0, 404);
    assert_eq!(get(&served, "GET", "/page/src/..%2F..%2FCargo.toml", "").0, 404);
    assert_eq!(get(&served, "DELETE", "/inspect", "").0, 405);
}

#[test]
fn who_has_a_file_is_not_sent_it_again() {
    let served = serve(&[]);
    let (_, head, _) = get(&served, "GET", "/page/src/chat.js", "");
    let tag = field(&head, "ETag").to_owned();
    for tags in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
        let (status, head, body) =
            get(&served, "GET", "/page/src/chat.js", &format!("If-None-Match: {tags}\r\n"));
        assert_eq!((status, body.len(), field(&head, "ETag")), (304, 0, tag.as_str()), "{tags}");
        assert_eq!(field(&head, "Content-Type"), "");
    }
    let (status, _, body) = get(&served, "GET", "/page/src/chat.js", "If-None-Match: \"other\"\r\n");
    assert!(status == 200 && !body.is_empty());
}

#[test]
fn the_status_counts_what_happened() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 2);
    let mut observer = served.live("c", "");
    observer.short();
    let status = || served.ask("GET /status", "").1;
    let now = status();
    let known = &now["runs"][0];
    assert_eq!((known["chat_id"].as_str(), known["run_id"].as_str()), (Some("c"), Some(run.as_str())));
    assert_eq!((count_of(known, "seq"), count_of(known, "observers")), (2, 1));
    assert_eq!(known["state"], "active");
    assert!(known["persisted"].is_null() && count_of(known, "memory_bytes") > 0);
    assert_eq!(count_of(&now, "memory_bytes"), count_of(known, "memory_bytes"));
    let totals = &now["totals"];
    let counted = ["runs", "events", "attached", "snapshots", "saved"].map(|name| count_of(totals, name));
    assert_eq!(counted, [1, 2, 1, 1, 0]);

    assert!(served.finish(&run));
    let now = status();
    let counted = ["saved", "not_saved", "events"].map(|name| count_of(&now["totals"], name));
    assert_eq!(counted, [1, 0, 2]);
    assert_eq!((&now["runs"][0]["state"], &now["runs"][0]["persisted"]), (&"ended".into(), &true.into()));

    let lag = ["p50", "p99", "max"].map(|name| count_of(&now["loop_lag_us"], name));
    assert!(count_of(&now["loop_lag_us"], "count") > 5 && lag[0] <= lag[1] && lag[1] <= lag[2], "{now}");
    assert!(lag[2] > 0, "{now}");

    // The counters outlive the run, whether somebody still reads it or not.
    assert_eq!(served.ask("DELETE /chats/c", "").0, 204);
    let now = status();
    assert_eq!((now["runs"].as_array().unwrap().len(), count_of(&now["totals"], "events")), (0, 2));
}
