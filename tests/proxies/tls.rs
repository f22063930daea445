//! Over TLS and HTTP/2, as browsers come; Node plays the browser.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::server::{number, serve};
use crate::ways::{Proxy, Way};

/// A browser's connection: it does what it is told, a line each, and says what it gets, a line each.
struct Browser {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Browser {
    fn open(proxy: &Proxy) -> Browser {
        let mut child = Command::new("node")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxies/browser.mjs"))
            .arg(format!("https://localhost:{}", proxy.ports.tls))
            .arg(proxy.front.dir.join("cert.pem"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/run.sh needs Node");
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Browser { child, orders, lines }
    }

    fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_pass_at_once_over_http_2_and_who_leaves_is_noticed() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let run = served.start("c", "{}");
        let mut browser = Browser::open(&proxy);
        browser.order("follow c");
        assert_eq!(browser.line(), "200 h2", "{way:?}");
        assert!(browser.line().contains("STREAM_SNAPSHOT"), "{way:?}");
        for seq in 1..=10 {
            served.append_numbers(&run, seq, 1);
            assert!(browser.line().contains(&format!(r#""seq":{seq},"#)), "{way:?}");
        }
        // One stream of a connection that stays.
        browser.order("leave");
        assert_eq!(browser.line(), "left", "{way:?}");
        let mut seq = 10;
        crate::leaving::until(&served, way, "it left", |status| {
            seq += 1;
            served.append_numbers(&run, seq, 1);
            status["runs"][0]["observers"] == 0
        });

        browser.order("push d");
        let mut stream = served.live("d", r#","wait_ms":20000"#);
        stream.data().unwrap();
        for seq in 1..=10 {
            browser.order(&number(seq));
            assert_eq!(stream.short(), format!("E{seq}"), "{way:?}");
        }
        browser.order("end");
        assert!(browser.line().starts_with(r#"200 {"#), "{way:?}");
        assert_eq!(stream.short(), "X10p", "{way:?}");
    }
}

#[test]
fn without_tls_the_world_is_sent_to_it() {
    for way in Way::ALL {
        let served = serve(&[]);
        let proxy = way.to(&served);
        let mut conn = crate::server::Conn::new(
            std::net::TcpStream::connect(("127.0.0.1", proxy.ports.redirect)).unwrap(),
        );
        conn.send(b"GET /chat/live?chat_id=a%20b HTTP/1.1\r\nHost: chat.example.org\r\n\r\n");
        let head = conn.head();
        assert_eq!(head.status, 308, "{way:?}");
        assert_eq!(
            head.field("Location"),
            Some("https://chat.example.org/chat/live?chat_id=a%20b"),
            "{way:?}"
        );
    }
}
