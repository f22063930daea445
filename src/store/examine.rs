//! Looking at a database without changing it, also while a server uses it.

use super::error::OpenError;
use super::schema;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;

/// What was found in a sound database of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examination {
    /// Its schema version; 0 if it is empty.
    pub version: i64,
    /// The newest that this program knows; an older one is migrated when the server starts.
    pub known: i64,
    /// Turns in it.
    pub turns: u64,
    /// When a chat was last changed, in milliseconds since 1970.
    pub changed_ms: Option<u64>,
    /// Whether another process holds the write lock at this moment.
    pub locked: bool,
}

/// Examines a database that exists. It is read through, which takes about a second per GiB.
pub fn examine(file: &Path) -> Result<Examination, OpenError> {
    let fail = |error| OpenError::of(file.to_owned(), error);
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let logged = Path::new(&log).exists();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags).map_err(fail)?;
    // The last one to close a database folds its log into it and removes the log: right for one that was made here, but
    // what a server has left in its log is for a server to take up.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, logged).map_err(fail)?;
    schema::identify(&db, file)?;
    let finding: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(fail)?;
    if finding != "ok" {
        return Err(OpenError::Corrupt { path: file.to_owned(), finding });
    }
    if db.is_readonly(c"main").map_err(fail)? {
        return Err(OpenError::ReadOnly { path: file.to_owned() });
    }
    let version = db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fail)?;
    let (turns, changed_ms) = if version == 0 { (0, None) } else { contents(&db).map_err(fail)? };
    let locked = is_locked(&db).map_err(fail)?;
    Ok(Examination { version, known: schema::VERSION, turns, changed_ms, locked })
}

fn contents(db: &Connection) -> rusqlite::Result<(u64, Option<u64>)> {
    let number = |sql| db.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    let natural = |number: i64| u64::try_from(number).ok();
    let turns = number("SELECT COUNT(*) FROM turns")?.and_then(natural).unwrap_or(0);
    Ok((turns, number("SELECT MAX(changed_ms) FROM chats")?.and_then(natural)))
}

/// Takes the write lock for an instant; a server that needs it just then waits so long.
fn is_locked(db: &Connection) -> rusqlite::Result<bool> {
    match db.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
        Ok(()) => Ok(false),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Ok(true),
            _ => Err(error),
        },
    }
}
