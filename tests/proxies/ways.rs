//! The ways to a server: directly, and through each proxy. A proxy is started with its configuration of deploy/ on free
//! ports, as one process, and ends with its owner.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;

use crate::configuration::{self, Ports};
use crate::server::Served;

/// Tries to start a proxy: another program may take a port between its being chosen and its being used.
const TRIES: usize = 5;

/// How a client comes to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Nginx,
    Haproxy,
}

/// A proxy in front of servers.
pub(crate) struct Proxy {
    /// It is asked as a server is, at its port without TLS.
    pub(crate) front: Served,
    pub(crate) ports: Ports,
}

impl Way {
    pub(crate) const ALL: [Way; 2] = [Way::Nginx, Way::Haproxy];

    /// Starts the proxy in front of a server.
    pub(crate) fn to(self, rejoin: &Served) -> Proxy {
        let file = if self == Way::Nginx { "nginx.conf" } else { "haproxy.cfg" };
        self.with(file, &[rejoin])
    }

    /// Starts the proxy with this file of deploy/ in front of servers.
    pub(crate) fn with(self, file: &str, rejoin: &[&Served]) -> Proxy {
        let addresses: Vec<SocketAddr> = rejoin.iter().map(|served| served.address).collect();
        (0..TRIES).find_map(|_| self.start(file, &addresses)).expect("the proxy starts")
    }

    /// `None`: it ended, as it does when a port is taken.
    fn start(self, file: &str, rejoin: &[SocketAddr]) -> Option<Proxy> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let unique =
            format!("rejoin-proxy-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&dir).unwrap();
        write_certificate(&dir);
        let ports = free_ports();
        let config = match self {
            Way::Nginx => configuration::nginx(file, ports, rejoin, &dir),
            Way::Haproxy => configuration::haproxy(file, ports, rejoin, &dir),
        };
        std::fs::write(dir.join("config"), config).unwrap();
        let child = self.command(&dir).spawn().expect("tests/run.sh installs it");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.plain));
        let mut proxy = Proxy { front: Served::by(child, address, dir), ports };
        proxy.listens(self).then_some(proxy)
    }

    /// Both stay in the foreground, as one process: then they can be ended by their id.
    fn command(self, dir: &Path) -> Command {
        let mut command = match self {
            Way::Nginx => {
                let mut nginx = Command::new("/usr/sbin/nginx");
                nginx
                    .args(["-g", "daemon off; master_process off;", "-e", "stderr", "-p"])
                    .arg(dir)
                    .arg("-c");
                nginx
            }
            Way::Haproxy => {
                let mut haproxy = Command::new("/usr/sbin/haproxy");
                haproxy.args(["-db", "-f"]);
                haproxy
            }
        };
        let log = std::fs::File::create(dir.join("log")).unwrap();
        command.arg(dir.join("config")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }
}

impl Proxy {
    /// Waits until it does; `false` if it ended.
    fn listens(&mut self, way: Way) -> bool {
        for _ in 0..1_000 {
            if self.front.has_ended() {
                let log = std::fs::read_to_string(self.front.dir.join("log")).unwrap_or_default();
                assert!(
                    log.contains("ddress already in use") || log.contains("cannot bind"),
                    "{way:?}: {log}"
                );
                return false;
            }
            let ports = [self.ports.plain, self.ports.tls, self.ports.redirect];
            if ports.iter().all(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{way:?} never listened");
    }
}

/// Ports that are free just now, each another.
fn free_ports() -> Ports {
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let [redirect, tls, plain] = listeners.map(|listener| listener.local_addr().unwrap().port());
    Ports { redirect, tls, plain }
}

fn write_certificate(dir: &Path) {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let cert = pem("CERTIFICATE", identity.cert.der());
    let key = pem("PRIVATE KEY", &identity.signing_key.serialize_der());
    std::fs::write(dir.join("cert.pem"), &cert).unwrap();
    std::fs::write(dir.join("key.pem"), &key).unwrap();
    std::fs::write(dir.join("both.pem"), cert + &key).unwrap();
}

fn pem(what: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))
}
