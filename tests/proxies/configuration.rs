//! The configurations of deploy/ for a place of their own: other ports, paths and certificates, and nothing that needs
//! root or many descriptors. What a test learns of them is so of what an operator installs.

use std::net::SocketAddr;
use std::path::Path;

/// The ports that a proxy listens on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    /// Where it sends everyone to HTTPS.
    pub(crate) redirect: u16,
    pub(crate) tls: u16,
    /// The one without TLS, for producers on the same machine.
    pub(crate) plain: u16,
}

/// An nginx that keeps its files in `dir`, with a certificate and its key in `cert.pem` and `key.pem`.
pub(crate) fn nginx(file: &str, ports: Ports, rejoin: &[SocketAddr], dir: &Path) -> String {
    let dir = dir.to_str().expect("a folder for temporary files has a name of text");
    let Ports { redirect, tls, plain } = ports;
    let mut config = read(file);
    // Another user, and IPv6, which a container may not have.
    drop_lines(&mut config, &["user www-data;", "listen [::]"]);
    for (from, to) in [
        ("/run/nginx.pid", format!("{dir}/nginx.pid")),
        ("/var/log/nginx/", format!("{dir}/")),
        ("\nhttp {\n", format!("\nhttp {{\n{}", temporary_paths(dir))),
        ("listen 80 ", format!("listen 127.0.0.1:{redirect} ")),
        ("listen 443 ", format!("listen 127.0.0.1:{tls} ")),
        ("listen 127.0.0.1:8780;", format!("listen 127.0.0.1:{plain};")),
        ("/etc/letsencrypt/live/chat.example.org/fullchain.pem", format!("{dir}/cert.pem")),
        ("/etc/letsencrypt/live/chat.example.org/privkey.pem", format!("{dir}/key.pem")),
    ] {
        replace(&mut config, from, &to);
    }
    replace_servers(&mut config, rejoin);
    config
}

/// A HAProxy with a certificate and its key in `dir`, in `both.pem`.
pub(crate) fn haproxy(file: &str, ports: Ports, rejoin: &[SocketAddr], dir: &Path) -> String {
    let dir = dir.to_str().expect("a folder for temporary files has a name of text");
    let Ports { redirect, tls, plain } = ports;
    let mut config = read(file);
    // Other users, and a system's log.
    drop_lines(&mut config, &["    chroot ", "    user ", "    group ", "    log /dev/log "]);
    for (from, to) in [
        ("bind :::80 v4v6", format!("bind 127.0.0.1:{redirect}")),
        ("bind :::443 v4v6 ", format!("bind 127.0.0.1:{tls} ")),
        ("bind 127.0.0.1:8780", format!("bind 127.0.0.1:{plain}")),
        ("/etc/haproxy/chat.example.org.pem", format!("{dir}/both.pem")),
        // It asks for two descriptors each, and does not start without.
        ("maxconn 20000", "maxconn 1000".to_owned()),
    ] {
        replace(&mut config, from, &to);
    }
    replace_servers(&mut config, rejoin);
    config
}

/// Where nginx would put what it does not pass on at once: its own folders belong to root.
fn temporary_paths(dir: &str) -> String {
    ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {dir}/{kind};\n"))
        .concat()
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    std::fs::read_to_string(path).expect("deploy/ has it")
}

/// 127.0.0.1:8787 is the first process, 8788 the second, …
fn replace_servers(config: &mut String, rejoin: &[SocketAddr]) {
    for (port, address) in (8787..).zip(rejoin) {
        replace(config, &format!("127.0.0.1:{port}"), &address.to_string());
    }
    assert!(!config.contains(":878"), "a port is left as it was:\n{config}");
}

/// Replaces something that has to be there: who changes the file has to change this, too.
fn replace(config: &mut String, from: &str, to: &str) {
    assert!(config.contains(from), "{from:?} is not in the configuration");
    *config = config.replace(from, to);
}

fn drop_lines(config: &mut String, beginnings: &[&str]) {
    let begins = |line: &str| {
        beginnings.iter().any(|word| line.starts_with(word) || line.trim_start().starts_with(word))
    };
    *config = config.lines().filter(|line| !begins(line)).map(|line| format!("{line}\n")).collect();
}
