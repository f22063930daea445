//! Who goes away is gone for rejoin too, whatever stands between.

use serde_json::Value;

use crate::server::{Served, number, serve};
use crate::upload::Upload;
use crate::ways::Way;

/// Waits until `GET /status` says so. A client that goes may still be reading for all that rejoin knows: that it is not shows
/// at the next write, so what waits for that has to make one.
pub(crate) fn until(served: &Served, way: Way, what: &str, mut holds: impl FnMut(&Value) -> bool) {
    let mut status = Value::Null;
    for _ in 0..1_000 {
        status = served.ask("GET /status", "").1;
        if holds(&status) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{way:?}: {what}: {status}");
}

#[test]
fn an_observer_that_goes_is_gone_at_the_next_event() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let run = served.start("c", "{}");
        let stays = proxy.front.live("c", "");
        let goes = [proxy.front.live("c", ""), proxy.front.live_get("chat_id=c", None)];
        let bus = proxy.front.stream("GET /events/stream?chunks=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        until(&served, way, "all are there", |status| {
            status["runs"][0]["observers"] == 3 && status["subscribers"] == 1
        });
        drop((goes, bus));
        let mut seq = 0;
        until(&served, way, "they are gone", |status| {
            seq += 1;
            served.append_numbers(&run, seq, 1);
            status["runs"][0]["observers"] == 1 && status["subscribers"] == 0
        });
        drop(stays);
    }
}

#[test]
fn a_wait_ends_with_its_client() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let probe = proxy.front.probe("c", r#","wait_ms":25000"#);
        until(&served, way, "it waits", |status| status["waiting"] == 1);
        drop(probe);
        until(&served, way, "it does not wait", |status| status["waiting"] == 0);
    }
}

#[test]
fn a_producer_that_goes_is_noticed() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let mut upload = Upload::begin(&proxy.front, "POST /chats/streamed/runs?stream=1");
        upload.chunk(&format!("{}\n", number(1)));
        let mut stream = served.live("streamed", r#","wait_ms":20000"#);
        stream.data().unwrap();
        drop(upload);
        let told = stream.all();
        let code = &told[told.len() - 2]["event"]["code"];
        assert_eq!(
            (code, &told.last().unwrap()["type"]),
            (&"producer_lost".into(), &"STREAM_END".into()),
            "{way:?}"
        );

        // The next body goes on where the broken one stopped.
        let run = served.start("appended", "{}");
        let mut upload = Upload::begin(&proxy.front, &format!("POST /runs/{run}/events"));
        upload.chunk(&format!("{}\n", number(1)));
        served.wait_for(&run, |state| state["seq"] == 1);
        drop(upload);
        let mut upload = Upload::begin(&proxy.front, &format!("POST /runs/{run}/events?from_seq=2"));
        upload.chunk(&format!("{}\n", number(2)));
        assert_eq!(upload.end(), (200, serde_json::json!({"seq": 2, "next": 3})), "{way:?}");
    }
}
