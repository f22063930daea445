//! Reads pages of history. For a file database this is a thread with a connection that can't write.

use super::ledger::integer;
use crate::proto::history::{Answer, Job, Page, PageMark};
use crate::proto::id::ChatId;
use crate::wire::history::{ChatPage, ChatRow, TurnRow, chats};
use crossbeam_channel::Receiver;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A page of turns ends behind the turn that takes it beyond this many bytes: it is in memory as a whole, once per
/// request.
const PAGE_BYTES_MAX: usize = 8 << 20;

/// The thread's life: answers until the queue is closed and empty.
pub(super) fn run(db: &Connection, name: &str, jobs: &Receiver<Job>, answer: impl Fn(Answer)) {
    for job in jobs {
        if let Some(page) = page(db, name, &job) {
            answer(page);
        }
    }
}

/// The answer to a reading job; none to any other.
pub(super) fn page(db: &Connection, name: &str, job: &Job) -> Option<Answer> {
    let (ticket, read) = match job {
        Job::Chats { ticket, rows_max, after } => {
            (*ticket, catch_unwind(AssertUnwindSafe(|| list(db, *rows_max, after.as_ref()))))
        }
        Job::Chat { ticket, chat, turns_max, after_turn } => {
            (*ticket, catch_unwind(AssertUnwindSafe(|| conversation(db, chat, *turns_max, *after_turn))))
        }
        Job::Begin { .. } | Job::Open(_) | Job::FindRetry { .. } | Job::Commit(_) | Job::Delete { .. } => {
            return None;
        }
    };
    let page = match read {
        Ok(Ok(page)) => page,
        Ok(Err(error)) => {
            tracing::error!(database = name, %error, "the history can't be read");
            Page::Failed
        }
        Err(_) => {
            tracing::error!(database = name, "reading the history panicked");
            Page::Failed
        }
    };
    Some(Answer::Page { ticket, page })
}

/// A page of conversations, newest change first.
fn list(db: &Connection, rows_max: u32, after: Option<&PageMark>) -> Result<Page> {
    let rows_max = rows_max.max(1);
    let (changed_ms, chat) = match after {
        Some(mark) => (integer(mark.changed_wall_ms), mark.chat.as_str()),
        None => (i64::MAX, ""),
    };
    // The first condition finds the page's beginning in the index, the second steps over what shares its time.
    let mut statement = db.prepare_cached(
        "SELECT chat_id, revision, (SELECT COUNT(*) FROM turns WHERE turns.chat_id = chats.chat_id),
                created_ms, changed_ms
         FROM chats WHERE changed_ms <= ?1 AND (changed_ms < ?1 OR chat_id > ?2)
         ORDER BY changed_ms DESC, chat_id LIMIT ?3",
    )?;
    let read = |row: &Row<'_>| {
        Ok(ChatRow {
            chat: row.get(0)?,
            revision: count(row, 1)?,
            turns: count(row, 2)?,
            created_ms: count(row, 3)?,
            changed_ms: count(row, 4)?,
        })
    };
    let mut rows: Vec<ChatRow> = statement
        .query_map(params![changed_ms, chat, i64::from(rows_max) + 1], read)?
        .collect::<Result<_>>()?;
    let more = rows.len() > rows_max as usize;
    rows.truncate(rows_max as usize);
    let next = rows
        .last()
        .filter(|_| more)
        .and_then(|row| Some(PageMark { changed_wall_ms: row.changed_ms, chat: ChatId::parse(&row.chat)? }));
    Ok(Page::Found(chats(&rows, next.as_ref())))
}

/// A page of one conversation, oldest turn first.
fn conversation(db: &Connection, chat: &ChatId, turns_max: u32, after_turn: u64) -> Result<Page> {
    // Several statements must see one state. Where the writer reads, it is inside its transaction or alone.
    let _state = if db.is_autocommit() { Some(db.unchecked_transaction()?) } else { None };
    let revision = db
        .prepare_cached("SELECT revision FROM chats WHERE chat_id = ?1")?
        .query_row([chat.as_str()], |row| count(row, 0))
        .optional()?;
    let Some(revision) = revision else { return Ok(Page::Missing) };
    let mut page = ChatPage::new(chat.as_str(), revision);
    let turns_max = i64::from(turns_max.max(1));
    let after_turn = integer(after_turn);
    let mut statement = db.prepare_cached(
        "SELECT number, run_id, trigger_name, seq, started_ms, ended_ms, superseded, closed, events, open,
                (SELECT COUNT(*) FROM messages WHERE messages.chat_id = turns.chat_id AND turn = number)
         FROM turns WHERE chat_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let mut rows = statement.query(params![chat.as_str(), after_turn, turns_max + 1])?;
    let (mut turns, mut last, mut more) = (0, after_turn, false);
    while let Some(row) = rows.next()? {
        if turns == turns_max || (turns > 0 && page.bytes() >= PAGE_BYTES_MAX) {
            more = true;
            break;
        }
        last = row.get(0)?;
        turns += 1;
        add_turn(&mut page, row)?;
    }
    add_messages(db, &mut page, chat, after_turn, last)?;
    let next = u64::try_from(last).ok().filter(|_| more);
    Ok(Page::Found(page.finish(next)))
}

fn add_turn(page: &mut ChatPage, row: &Row<'_>) -> Result<()> {
    page.turn(&TurnRow {
        turn: count(row, 0)?,
        run_id: row.get_ref(1)?.as_str()?,
        trigger: row.get_ref(2)?.as_str()?,
        seq: count(row, 3)?,
        started_ms: count(row, 4)?,
        ended_ms: count(row, 5)?,
        superseded: row.get(6)?,
        closed: row.get_ref(7)?.as_str_or_null()?,
        events: row.get_ref(8)?.as_bytes()?,
        open: row.get(9)?,
        messages: count(row, 10)?,
    });
    Ok(())
}

fn add_messages(db: &Connection, page: &mut ChatPage, chat: &ChatId, after: i64, last: i64) -> Result<()> {
    let mut statement = db.prepare_cached(
        "SELECT message FROM messages WHERE chat_id = ?1 AND turn > ?2 AND turn <= ?3 ORDER BY turn, position",
    )?;
    let mut rows = statement.query(params![chat.as_str(), after, last])?;
    while let Some(row) = rows.next()? {
        page.message(row.get_ref(0)?.as_bytes()?);
    }
    Ok(())
}

/// A column that counts something: never negative.
fn count(row: &Row<'_>, column: usize) -> Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}
