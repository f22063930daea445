//! What the machine allows: open files, memory, the port.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rejoin::limits::{Limits, SURPLUS_CONNECTIONS_MAX};
use rustix::process::{Resource, getrlimit};

use super::Finding;

/// Files that a server has open beside connections and agents: the database with its log, the poll, standard streams.
const FILES_OWN: u64 = 64;

/// Files that the turn of one agent may have open.
const FILES_PER_TURN: u64 = 4;

/// A server on the same port answers within this time.
const ANSWER: Duration = Duration::from_secs(2);

/// Why a rejoin may say that it takes no new work.
const UNREADY: [&str; 4] = ["shutting_down", "store_stuck", "out_of_memory", "too_many_connections"];

/// Bytes of its answer that are looked at.
const ANSWER_BYTES: usize = 4 << 10;

/// The limit of open files against what the options ask for.
pub(super) fn files(limits: &Limits) -> Finding {
    judge_files(getrlimit(Resource::Nofile).current, limits)
}

fn judge_files(allowed: Option<u64>, limits: &Limits) -> Finding {
    let connections = limits.connections_max.saturating_add(SURPLUS_CONNECTIONS_MAX) as u64;
    let turns = (limits.turns_max as u64).saturating_mul(FILES_PER_TURN);
    let needed = connections.saturating_add(turns).saturating_add(FILES_OWN);
    match allowed {
        Some(allowed) if allowed < needed => {
            let spare = allowed.saturating_sub(needed - limits.connections_max as u64);
            let instead = match spare {
                0 => String::new(),
                spare => format!(", or start with --connections-max {spare}"),
            };
            Finding::warn(
                "files",
                format!(
                    "{allowed} open files are allowed, {needed} may be needed for {} connections and {} turns: \
                     raise the limit (ulimit -n {needed}; LimitNOFILE= in a unit){instead}",
                    limits.connections_max, limits.turns_max
                ),
            )
        }
        Some(allowed) => {
            Finding::ok("files", format!("{allowed} open files are allowed, {needed} may be needed"))
        }
        None => Finding::ok("files", "any number of open files is allowed"),
    }
}

/// The memory that there is, or that a container may use, against `--memory-max`.
pub(super) fn memory(limits: &Limits) -> Finding {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let total = total_bytes(&text("/proc/meminfo"));
    let group = text("/sys/fs/cgroup/memory.max").trim().parse().ok();
    judge_memory([total, group].into_iter().flatten().min(), limits)
}

fn judge_memory(there: Option<u64>, limits: &Limits) -> Finding {
    let max = limits.memory_bytes_max;
    match there {
        None => Finding::warn("memory", "how much memory there is could not be found out"),
        // Connections, history and snapshots under way come on top of the runs.
        Some(there) if max > there / 4 * 3 => Finding::warn(
            "memory",
            format!(
                "--memory-max is {} MiB, of {} MiB that there are: set it to at most {} ({} MiB), three quarters",
                max >> 20,
                there >> 20,
                there / 4 * 3,
                (there / 4 * 3) >> 20
            ),
        ),
        Some(there) => Finding::ok("memory", format!("{} MiB for runs, of {} MiB", max >> 20, there >> 20)),
    }
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether the address can be listened on; if not, whether a rejoin does so already.
pub(super) fn port(address: SocketAddr) -> Finding {
    let error = match TcpListener::bind(address) {
        Ok(_) => return Finding::ok("port", format!("{address} is free")),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::AddrInUse if is_rejoin(address) => {
            Finding::ok("port", format!("a rejoin answers on {address}; a second one needs another --listen"))
        }
        ErrorKind::AddrInUse => Finding::fail(
            "port",
            format!("another program listens on {address}; end it, or choose another address with --listen"),
        ),
        ErrorKind::PermissionDenied => Finding::fail(
            "port",
            format!(
                "{address} may not be listened on: use a port from 1024 on, or give the right to the program"
            ),
        ),
        _ => Finding::fail(
            "port",
            format!("{address} can't be listened on: {error}; choose another address with --listen"),
        ),
    }
}

/// Asks who is there, in a way that every HTTP server takes well.
fn is_rejoin(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES as u64).read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().unwrap_or_default();
    let text = String::from_utf8_lossy(&answer);
    let ready = text.contains("{\"status\":\"ready\"}");
    ready || UNREADY.iter().any(|code| text.contains(&format!("{{\"error\":{{\"code\":\"{code}\"")))
}

/// Who else can read a file of secrets; none: nobody.
pub(super) fn readers(file: &Path) -> Option<String> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    let file = file.display();
    (mode & 0o007 != 0)
        .then(|| format!("by token, but every user of this machine can read {file}: chmod o-rwx {file}"))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn the_limit_of_files_is_held_against_the_options() {
        let limits = Limits { connections_max: 1_000, turns_max: 10, ..Limits::default() };
        let needed = 1_000 + SURPLUS_CONNECTIONS_MAX as u64 + 40 + FILES_OWN;
        assert_eq!(judge_files(Some(needed), &limits).verdict, Verdict::Ok);
        assert_eq!(judge_files(None, &limits).verdict, Verdict::Ok);
        let short = judge_files(Some(needed - 100), &limits);
        assert_eq!(short.verdict, Verdict::Warn);
        assert!(short.message.contains("--connections-max 900"), "{}", short.message);
        assert!(!judge_files(Some(20), &limits).message.contains("--connections-max"));
    }

    #[test]
    fn memory_is_held_against_what_there_is() {
        assert_eq!(total_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(total_bytes("nothing"), None);
        let limits = Limits { memory_bytes_max: 3 << 30, ..Limits::default() };
        assert_eq!(judge_memory(Some(4 << 30), &limits).verdict, Verdict::Ok);
        assert_eq!(judge_memory(Some(4_000 << 20), &limits).verdict, Verdict::Warn);
        assert_eq!(judge_memory(None, &limits).verdict, Verdict::Warn);
    }
}
