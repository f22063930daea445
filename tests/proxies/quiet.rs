//! Silence: streams and bodies in which nothing happens outlast every time-out of the proxies.

use std::time::{Duration, Instant};

use crate::server::{number, serve};
use crate::upload::Upload;
use crate::ways::Way;

/// Longer than the proxies' patience with rejoin, 75 s, which keep-alives have to renew.
const QUIET: Duration = Duration::from_secs(80);

#[test]
fn what_is_quiet_is_not_cut() {
    std::thread::scope(|scope| {
        for way in Way::ALL {
            scope.spawn(move || check(way));
        }
    });
}

fn check(way: Way) {
    let served = serve(&[]);
    let proxy = way.to(&served);
    let run = served.start("c", "{}");
    let mut live = proxy.front.live("c", "");
    assert_eq!(live.short(), "S0", "{way:?}");
    let control = format!("GET /runs/{run}/control HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut control = proxy.front.stream(&control);
    // A producer that thinks for long before and after its first words.
    let mut upload = Upload::begin(&proxy.front, "POST /chats/slow/runs?stream=1");
    upload.chunk(&format!("{}\n", number(1)));

    let mut kept_alive = 0;
    let end = now() + QUIET;
    while now() < end {
        // Comments come every 15 s, and a read gives up after 20.
        let lines = live.message().unwrap_or_else(|| panic!("{way:?}: cut after {kept_alive} keep-alives"));
        assert_eq!(lines, [": keep-alive"], "{way:?}");
        assert_eq!(control.message().as_deref(), Some([": keep-alive".to_owned()].as_slice()), "{way:?}");
        kept_alive += 1;
    }
    assert!(kept_alive >= 5, "{way:?}: {kept_alive}");
    served.append_numbers(&run, 1, 1);
    assert_eq!(live.short(), "E1", "{way:?}");
    upload.chunk(&format!("{}\n", number(2)));
    let (status, answer) = upload.end();
    assert_eq!((status, &answer["seq"]), (200, &2.into()), "{way:?}");
}

#[allow(clippy::disallowed_methods, reason = "the proxies' clock is the real one")]
fn now() -> Instant {
    Instant::now()
}
