//! The database's layout, and opening it: a file that isn't plainly ours and whole is refused and left as it is.

use super::error::OpenError;
use super::{DbPath, StoreConfig};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Marks the file as ours: "rjoi" in SQLite's application id.
const APPLICATION_ID: i32 = 0x726a_6f69;

/// A larger file isn't read through when it is opened, so that a long history doesn't delay the start: 256 MiB are
/// about a quarter of a second. Damage in a larger one shows when it is met.
const CHECK_BYTES_MAX: u64 = 256 << 20;

/// The write-ahead log is cut back to this size, in bytes, when it has grown beyond: one large turn shouldn't occupy
/// the disk twice for ever.
const WAL_BYTES_MAX: u32 = 16 << 20;

/// What brings a database from each schema version to the next. `user_version` counts those that were carried out.
const MIGRATIONS: [&str; 2] = ["
    -- One counter of revisions for all chats, so that a chat that was deleted and made again never meets an old one.
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('revision', 0);

    CREATE TABLE chats (
        chat_id TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        created_ms INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX chats_by_change ON chats (changed_ms DESC, chat_id);

    CREATE TABLE turns (
        chat_id TEXT NOT NULL REFERENCES chats ON DELETE CASCADE,
        number INTEGER NOT NULL,
        run_id TEXT NOT NULL UNIQUE,
        trigger_name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        started_ms INTEGER NOT NULL,
        ended_ms INTEGER NOT NULL,
        closed TEXT,
        superseded INTEGER NOT NULL,
        events TEXT NOT NULL,
        PRIMARY KEY (chat_id, number)
    ) STRICT;

    -- The id is a BLOB: it may hold half a surrogate pair, which is no UTF-8.
    CREATE TABLE messages (
        chat_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        message_id BLOB NOT NULL,
        message TEXT NOT NULL,
        PRIMARY KEY (chat_id, position),
        FOREIGN KEY (chat_id, turn) REFERENCES turns (chat_id, number) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX messages_by_turn ON messages (chat_id, turn);
    CREATE INDEX messages_by_id ON messages (chat_id, message_id);

    -- A row for every finalization. It outlives its chat, but then without the chat's name.
    CREATE TABLE finalizations (
        run_id TEXT PRIMARY KEY,
        chat_id TEXT,
        outcome TEXT NOT NULL,
        reason TEXT,
        at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX finalizations_by_chat ON finalizations (chat_id) WHERE chat_id IS NOT NULL;
", "
    -- The agent that a chat is held with. A turn with an agent is there from its first message on: open until it is
    -- committed, and for ever if it never is.
    ALTER TABLE chats ADD COLUMN runtime TEXT;
    ALTER TABLE turns ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
"];

/// The schema version that this program writes.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Opens, checks and, where needed, creates or migrates the database.
pub(super) fn open_writer(config: &StoreConfig) -> Result<Connection, OpenError> {
    let path = config.path.name();
    let fail = |error| OpenError::of(path.clone(), error);
    let db = match &config.path {
        DbPath::Memory => Connection::open_in_memory(),
        DbPath::File(file) => {
            create_private(file)?;
            Connection::open_with_flags(
                file,
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )
        }
    }
    .map_err(fail)?;
    db.busy_timeout(Duration::from_millis(config.busy_ms)).map_err(fail)?;
    identify(&db, &path)?;
    check(&db, &config.path)?;
    if db.is_readonly(c"main").map_err(fail)? {
        return Err(OpenError::ReadOnly { path });
    }
    set_up(&db, &config.path)?;
    migrate(&db).map_err(fail)?;
    Ok(db)
}

/// A second connection that can't write; the writer's must be open.
pub(super) fn open_reader(config: &StoreConfig, file: &Path) -> Result<Connection, OpenError> {
    let fail = |error| OpenError::of(file.to_owned(), error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags).map_err(fail)?;
    db.busy_timeout(Duration::from_millis(config.busy_ms)).map_err(fail)?;
    Ok(db)
}

/// Makes the file, readable only by its owner, if there is none: conversations are private. SQLite gives its log the
/// same permissions.
fn create_private(file: &Path) -> Result<(), OpenError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Err(error) if !file.exists() => Err(OpenError::System { path: file.to_owned(), error }),
        _ => Ok(()),
    }
}

/// Refuses what isn't a database of ours, or an empty one.
pub(super) fn identify(db: &Connection, path: &Path) -> Result<(), OpenError> {
    let fail = |error| OpenError::of(path.to_owned(), error);
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(fail);
    let ours = match number("PRAGMA application_id")? {
        0 => number("SELECT COUNT(*) FROM sqlite_schema")? == 0,
        application => application == i64::from(APPLICATION_ID),
    };
    if !ours {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let (found, known) = (number("PRAGMA user_version")?, VERSION);
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

/// Reads a file of moderate size through, so that damage is met at the start and not in the middle of a commit.
fn check(db: &Connection, path: &DbPath) -> Result<(), OpenError> {
    let DbPath::File(file) = path else { return Ok(()) };
    if std::fs::metadata(file).map_or(0, |metadata| metadata.len()) > CHECK_BYTES_MAX {
        return Ok(());
    }
    let fail = |error| OpenError::of(file.clone(), error);
    let finding: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(fail)?;
    if finding == "ok" { Ok(()) } else { Err(OpenError::Corrupt { path: file.clone(), finding }) }
}

/// How the connection works. FULL makes a commit durable before it is acknowledged, also when the power fails.
fn set_up(db: &Connection, path: &DbPath) -> Result<(), OpenError> {
    let fail = |error| OpenError::of(path.name(), error);
    if let DbPath::File(file) = path {
        let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fail)?;
        if mode != "wal" {
            return Err(OpenError::NoWal { path: file.clone() });
        }
    }
    db.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;
         PRAGMA journal_size_limit = {WAL_BYTES_MAX};"
    ))
    .map_err(fail)
}

/// Carries out the migrations that the database hasn't seen yet, all of them or none.
fn migrate(db: &Connection) -> rusqlite::Result<()> {
    let version = || db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    let known = VERSION;
    if version()? == known {
        return Ok(());
    }
    let change = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    // Read again under the lock: another process may be opening the same new file.
    let seen = usize::try_from(version()?).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(seen) {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "application_id", APPLICATION_ID)?;
    change.pragma_update(None, "user_version", known)?;
    change.commit()
}

impl DbPath {
    /// What messages call the database.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            DbPath::Memory => PathBuf::from(":memory:"),
            DbPath::File(file) => file.clone(),
        }
    }
}
