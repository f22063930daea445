//! Why a history database can't be opened.

use rusqlite::ErrorCode;
use std::fmt;
use std::path::PathBuf;

/// Why [`super::Store::open`] refused. The file is as it was, except that a new one may have been created empty.
#[derive(Debug)]
pub enum OpenError {
    /// The file is damaged, or no SQLite database at all.
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite found.
        finding: String,
    },
    /// The file is another application's SQLite database.
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// A newer version of this program wrote the file.
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The file, or its directory, can't be written.
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// Another process holds the file.
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// The file system can't hold a write-ahead log.
    NoWal {
        /// The database.
        path: PathBuf,
    },
    /// Anything else that SQLite reports.
    Sqlite {
        /// The database.
        path: PathBuf,
        /// Its report.
        error: rusqlite::Error,
    },
    /// The operating system's refusal: of the file, or of a thread.
    System {
        /// The database.
        path: PathBuf,
        /// Its report.
        error: std::io::Error,
    },
}

impl OpenError {
    /// Sorts what SQLite reported.
    pub(super) fn of(path: PathBuf, error: rusqlite::Error) -> OpenError {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                OpenError::Corrupt { path, finding: error.to_string() }
            }
            Some(ErrorCode::ReadOnly) => OpenError::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Locked { path },
            _ => OpenError::Sqlite { path, error },
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Corrupt { path, finding } => write!(
                f,
                "the history database {} is damaged ({finding}); restore it from a backup, or move it away to start \
                 a new one",
                path.display()
            ),
            OpenError::Foreign { path } => write!(
                f,
                "{} is a database of another application; name a file of its own for the history",
                path.display()
            ),
            OpenError::Newer { path, found, known } => write!(
                f,
                "the history database {} has schema version {found}, this program knows versions up to {known}; \
                 start the newer program again",
                path.display()
            ),
            OpenError::ReadOnly { path } => write!(
                f,
                "the history database {} can't be written; check the permissions of the file and its directory, and \
                 that the file system isn't mounted read-only",
                path.display()
            ),
            OpenError::Locked { path } => write!(
                f,
                "another process holds the history database {}; stop it, or wait until it is done",
                path.display()
            ),
            OpenError::NoWal { path } => write!(
                f,
                "the file system of the history database {} supports no write-ahead log; put it on a local disk",
                path.display()
            ),
            OpenError::Sqlite { path, error } => {
                write!(f, "can't open the history database {}: {error}", path.display())
            }
            OpenError::System { path, error } => {
                write!(f, "can't open the history database {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}
