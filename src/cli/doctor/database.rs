//! The history's database, the disk under it, and the clock that its times come from.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rejoin::store::{DbPath, Examination, examine};
use rustix::fs::{Access, access, statvfs};

use super::Finding;

const CHECK: &str = "database";

/// With less free space, in bytes, saving fails soon.
const FREE_BYTES_FAIL: u64 = 64 << 20;

/// With less free space, in bytes, it is time to make some.
const FREE_BYTES_WARN: u64 = 1 << 30;

/// The clock may be behind the newest entry by this much, in milliseconds: two servers' clocks differ a little.
const CLOCK_BEHIND_MS: u64 = 60_000;

/// No clock is earlier than this program: 2026, in milliseconds since 1970.
const CLOCK_MS_MIN: u64 = 1_767_225_600_000;

pub(super) fn check(db: &DbPath) -> Vec<Finding> {
    let DbPath::File(file) = db else {
        let message = "the history is kept in memory and gone when the server stops; name a file with --db";
        return vec![Finding::warn(CHECK, message), clock(None)];
    };
    let (found, changed_ms) = if file.exists() {
        match examine(file) {
            Ok(examination) => (sound(file, &examination), examination.changed_ms),
            Err(error) => (Finding::fail(CHECK, error.to_string()), None),
        }
    } else {
        (missing(file), None)
    };
    vec![found, disk(file), clock(changed_ms)]
}

fn sound(file: &Path, examination: &Examination) -> Finding {
    let file = file.display();
    if examination.locked {
        return Finding::warn(
            CHECK,
            format!(
                "{file} is sound, but another process is writing to it right now; if that is no rejoin and stays so, \
                 turns can't be saved: end it"
            ),
        );
    }
    let Examination { version, known, turns, .. } = examination;
    if version < known {
        let message = format!(
            "{file} is sound (turns: {turns}); serve will bring it from schema {version} to {known}: \
             back it up first, older versions can't read it then"
        );
        return Finding::ok(CHECK, message);
    }
    Finding::ok(CHECK, format!("{file} is sound (turns: {turns}, schema: {version})"))
}

fn missing(file: &Path) -> Finding {
    let folder = folder(file);
    let (file, shown) = (file.display(), folder.display());
    match access(&folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok(CHECK, format!("{file} is not there yet and will be made")),
        Err(error) => Finding::fail(
            CHECK,
            format!("{file} can't be made in {shown}: {error}; make the directory, writable for the server"),
        ),
    }
}

fn disk(file: &Path) -> Finding {
    let folder = folder(file);
    let shown = folder.display();
    let free = match statvfs(&folder) {
        Ok(system) => system.f_bavail.saturating_mul(system.f_frsize),
        Err(error) => return Finding::fail("disk", format!("{shown} can't be looked at: {error}")),
    };
    let message = format!("{} MiB are free on the file system of {shown}", free >> 20);
    match free {
        0..FREE_BYTES_FAIL => Finding::fail("disk", format!("{message}; make room, or turns can't be saved")),
        FREE_BYTES_FAIL..FREE_BYTES_WARN => Finding::warn("disk", format!("{message}; make room soon")),
        _ => Finding::ok("disk", message),
    }
}

fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

fn clock(changed_ms: Option<u64>) -> Finding {
    judge_clock(now_ms(), changed_ms)
}

fn judge_clock(now_ms: u64, changed_ms: Option<u64>) -> Finding {
    let ahead_ms = changed_ms.unwrap_or(0).saturating_sub(now_ms);
    if now_ms < CLOCK_MS_MIN {
        return Finding::fail("clock", "the clock is before 2026; set it, for instance with NTP");
    }
    if ahead_ms > CLOCK_BEHIND_MS {
        let message = format!(
            "the clock is {} s behind the newest change in the history; chats will stand in a wrong order: set it",
            ahead_ms / 1000
        );
        return Finding::warn("clock", message);
    }
    Finding::ok("clock", "the clock is not behind the history")
}

#[expect(clippy::disallowed_methods, reason = "the check is about the clock")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_clock_behind_the_history_or_the_program_is_noticed() {
        let now = CLOCK_MS_MIN + 1;
        for (now_ms, changed_ms, verdict) in [
            (now, None, Verdict::Ok),
            (now, Some(now + CLOCK_BEHIND_MS), Verdict::Ok),
            (now, Some(now + CLOCK_BEHIND_MS + 1), Verdict::Warn),
            (1_000, None, Verdict::Fail),
        ] {
            assert_eq!(judge_clock(now_ms, changed_ms).verdict, verdict, "{now_ms} {changed_ms:?}");
        }
    }
}
