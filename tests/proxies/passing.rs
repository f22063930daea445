//! Nothing is held back on its way: each event is awaited before the next is sent, so that one which waits in a buffer would
//! be waited for in vain.

use crate::server::{Served, number, serve};
use crate::upload::Upload;
use crate::ways::Way;

/// So many events, one by one.
const COUNT: u64 = 20;

#[test]
fn an_observer_has_each_event_before_the_next_is_written() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let run = served.start("c", "{}");
        let mut streams = [
            proxy.front.live("c", ""),
            proxy.front.live_get("chat_id=c", None),
            proxy.front.live_body(r#"{"chat_id":"c"}"#),
            proxy.front.stream("GET /events/stream?chunks=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ];
        // A snapshot without events is nothing in the legacy format.
        for place in [0, 1, 3] {
            assert!(streams[place].data().is_some());
        }
        for seq in 1..=COUNT {
            served.append_numbers(&run, seq, 1);
            for stream in &mut streams {
                let message = stream.data().unwrap().to_string();
                assert!(message.contains(&format!(r#""value":{seq}"#)), "{way:?}: {message}");
            }
        }
        assert!(served.finish(&run));
        assert_eq!(streams[0].short(), format!("X{COUNT}p"), "{way:?}");
        assert!(streams[0].data().is_none() && streams[0].complete, "{way:?}: the body ends properly");
    }
}

#[test]
fn an_event_is_seen_while_its_request_is_still_being_sent() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let run = served.start("appended", "{}");
        check_upload(
            way,
            &served,
            Upload::begin(&proxy.front, &format!("POST /runs/{run}/events")),
            "appended",
        );
        let upload = Upload::begin(&proxy.front, "POST /chats/streamed/runs?stream=1");
        check_upload(way, &served, upload, "streamed");
    }
}

fn check_upload(way: Way, served: &Served, mut upload: Upload, chat: &str) {
    // A run that is streamed begins with its body; a wait for it ends then.
    let mut stream = served.live(chat, r#","wait_ms":20000"#);
    assert!(stream.short().starts_with('S'), "{way:?}");
    for seq in 1..=COUNT {
        upload.chunk(&format!("{}\n", number(seq)));
        assert_eq!(stream.short(), format!("E{seq}"), "{way:?} {chat}");
    }
    let (status, answer) = upload.end();
    assert_eq!((status, &answer["seq"]), (200, &COUNT.into()), "{way:?} {chat}");
}

#[test]
fn large_bodies_pass_both_ways() {
    let event = format!(r#"{{"type":"X","a":"{}"}}"#, "x".repeat(300_000));
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let run = proxy.front.start("c", "{}");
        for _ in 0..3 {
            proxy.front.append(&run, &[&event]);
        }
        let snapshot = proxy.front.live("c", "").data().unwrap();
        assert_eq!(snapshot["events"].as_array().unwrap().len(), 3, "{way:?}");
        assert_eq!(snapshot["events"][2].to_string().len(), event.len(), "{way:?}");
    }
}

#[test]
fn chat_ids_pass_as_they_are() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        for (path, chat) in
            [("a%2Fb%2e%2e", "a/b.."), ("%E6%97%A5%20%3F%23%25", "日 ?#%"), ("a;b,c%2B+", "a;b,c++")]
        {
            proxy.front.start(path, "{}");
            assert_eq!(served.live(chat, "").short(), "S0", "{way:?} {path}");
        }
    }
}
