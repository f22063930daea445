//! The *ledger*: what one job changes in the database, and the row that every finalization leaves.
//!
//! All of this runs inside the caller's transaction; none of it decides when one begins or ends.

use super::memory::Start;
use crate::proto::history::{Opened, Opening, Outcome, RetryPoint, Turn};
use crate::proto::id::{ChatId, RunId};
use crate::wire::messages::{Message, messages};
use crate::wire::turn;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Result, params};

/// How a finalization came out, as it is recorded.
#[derive(Clone, Debug)]
pub(super) struct Finalization {
    pub(super) run: RunId,
    /// The chat; none where it was deleted, so that nothing of it stays.
    pub(super) chat: Option<ChatId>,
    pub(super) outcome: Outcome,
    /// Why the turn is not in the history, as a word of ours.
    pub(super) reason: Option<&'static str>,
    /// Wall clock, in milliseconds since 1970.
    pub(super) at_ms: u64,
}

/// Records an outcome. The first one of a run stays.
pub(super) fn record(db: &Connection, row: &Finalization) -> Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO finalizations VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
        params![
            row.run.as_str(),
            row.chat.as_ref().map(ChatId::as_str),
            row.outcome.name(),
            row.reason,
            integer(row.at_ms),
        ],
    )?;
    Ok(())
}

/// The outcome that is recorded for a run.
pub(super) fn recorded(db: &Connection, run: RunId) -> Result<Option<Outcome>> {
    let name: Option<String> = db
        .prepare_cached("SELECT outcome FROM finalizations WHERE run_id = ?1")?
        .query_row([run.as_str()], |row| row.get(0))
        .optional()?;
    let all = [Outcome::Committed, Outcome::Skipped, Outcome::Failed];
    Ok(name.and_then(|name| all.into_iter().find(|outcome| outcome.name() == name)))
}

/// A chat's current revision, 0 for one that isn't there.
pub(super) fn revision(db: &Connection, chat: &ChatId) -> Result<i64> {
    let found: Option<i64> = db
        .prepare_cached("SELECT revision FROM chats WHERE chat_id = ?1")?
        .query_row([chat.as_str()], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(0))
}

/// Finalizes a run: stores the turn if the chat is still at the revision of the run's start and nobody withdrew it;
/// records the outcome in any case.
pub(super) fn finalize(
    db: &Connection,
    turn: &Turn,
    start: Option<Start>,
    withdrawn: bool,
) -> Result<Outcome> {
    if let Some(outcome) = recorded(db, turn.run)? {
        return Ok(outcome);
    }
    let start = start.filter(|start| start.chat == turn.chat);
    let known = start.is_some();
    let (outcome, reason) = match start.map(|start| start.revision) {
        _ if withdrawn => (Outcome::Skipped, Some("withdrawn")),
        None => (Outcome::Skipped, Some("not_begun")),
        Some(None) => (Outcome::Failed, Some("begin_unread")),
        Some(Some(begun)) if begun != revision(db, &turn.chat)? => (Outcome::Skipped, Some("stale")),
        Some(Some(_)) => {
            insert(db, turn)?;
            (Outcome::Committed, None)
        }
    };
    // A run that isn't known any more may be one of a deleted chat.
    let chat = known.then(|| turn.chat.clone());
    record(db, &Finalization { run: turn.run, chat, outcome, reason, at_ms: turn.ended_wall_ms })?;
    Ok(outcome)
}

/// Forgets a chat: its turns and messages go, its finalizations stay without its name.
pub(super) fn delete(db: &Connection, chat: &ChatId, cut: Option<RunId>, wall_ms: u64) -> Result<()> {
    if let Some(run) = cut {
        let (outcome, reason) = (Outcome::Skipped, Some("deleted"));
        record(db, &Finalization { run, chat: None, outcome, reason, at_ms: wall_ms })?;
    }
    db.prepare_cached("UPDATE finalizations SET chat_id = NULL WHERE chat_id = ?1")?
        .execute([chat.as_str()])?;
    db.prepare_cached("DELETE FROM chats WHERE chat_id = ?1")?.execute([chat.as_str()])?;
    Ok(())
}

/// Begins a turn with an agent: drops what is taken back, puts the turn's first messages into the history, and reads
/// the conversation that the agent gets.
pub(super) fn open(db: &Connection, opening: &Opening) -> Result<Opened> {
    let chat = opening.chat.as_str();
    touch(db, chat, opening.wall_ms)?;
    if let Some(turn) = opening.drop_from_turn {
        db.prepare_cached("DELETE FROM turns WHERE chat_id = ?1 AND number >= ?2")?
            .execute(params![chat, integer(turn)])?;
    }
    let runtime: String = db
        .prepare_cached(
            "UPDATE chats SET runtime = COALESCE(?2, runtime, ?3) WHERE chat_id = ?1 RETURNING runtime",
        )?
        .query_row(params![chat, opening.runtime, opening.runtime_default], |row| row.get(0))?;
    let number = next_turn(db, chat)?;
    db.prepare_cached(
        "INSERT INTO turns (chat_id, number, run_id, trigger_name, seq, started_ms, ended_ms, superseded, events, open)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5, 0, '[]', 1)",
    )?
    .execute(params![
        chat,
        number,
        opening.run.as_str(),
        opening.trigger.name(),
        integer(opening.wall_ms)
    ])?;
    let new = opening.messages.iter().map(|message| Message {
        id: message.id.clone(),
        json: message.json.clone(),
        restated: true,
    });
    insert_messages(db, chat, number, new)?;
    Ok(Opened { messages: conversation(db, chat)?, runtime, has_history: number > 1 })
}

/// Where a conversation can be taken up again.
pub(super) fn find_retry(db: &Connection, chat: &ChatId, message_index: Option<u64>) -> Result<RetryPoint> {
    // A turn can be taken back if a user's message began it: nothing that stays behind may depend on it.
    let (place, refusal) = match message_index {
        None => (
            "turn = (SELECT MAX(number) FROM turns WHERE turns.chat_id = ?1)
             ORDER BY position LIMIT 1 OFFSET ?2",
            RetryPoint::Nothing,
        ),
        Some(_) => ("1 ORDER BY position LIMIT 1 OFFSET ?2", RetryPoint::NoUserMessage),
    };
    let sql = format!(
        "SELECT turn, message, position = (SELECT MIN(position) FROM messages AS first
                 WHERE first.chat_id = messages.chat_id AND first.turn = messages.turn)
         FROM messages WHERE chat_id = ?1 AND {place}"
    );
    let found = db
        .prepare_cached(&sql)?
        .query_row(params![chat.as_str(), integer(message_index.unwrap_or(0))], |row| {
            Ok((row.get::<_, i64>(0)?, row.get_ref(1)?.as_bytes()?.to_vec(), row.get::<_, bool>(2)?))
        })
        .optional()?;
    Ok(match found {
        Some((turn, message, true)) if turn::is_user_message(&message) => {
            RetryPoint::Turn(u64::try_from(turn).unwrap_or(0), message)
        }
        Some(_) | None => refusal,
    })
}

/// All messages of a chat, joined by commas.
fn conversation(db: &Connection, chat: &str) -> Result<Vec<u8>> {
    let mut statement =
        db.prepare_cached("SELECT message FROM messages WHERE chat_id = ?1 ORDER BY position")?;
    let mut rows = statement.query([chat])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        if !all.is_empty() {
            all.push(b',');
        }
        all.extend_from_slice(row.get_ref(0)?.as_bytes()?);
    }
    Ok(all)
}

/// The chat, which is made if it is new, gets its next revision.
fn touch(db: &Connection, chat: &str, wall_ms: u64) -> Result<()> {
    let revision: i64 = db
        .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'revision' RETURNING value")?
        .query_row([], |row| row.get(0))?;
    db.prepare_cached(
        "INSERT INTO chats (chat_id, revision, created_ms, changed_ms) VALUES (?1, ?2, ?3, ?3)
         ON CONFLICT DO UPDATE
         SET revision = excluded.revision, changed_ms = MAX(changed_ms, excluded.changed_ms)",
    )?
    .execute(params![chat, revision, integer(wall_ms)])?;
    Ok(())
}

fn next_turn(db: &Connection, chat: &str) -> Result<i64> {
    db.prepare_cached("SELECT COALESCE(MAX(number), 0) + 1 FROM turns WHERE chat_id = ?1")?
        .query_row([chat], |row| row.get(0))
}

/// Puts a turn and its messages into the chat: into its open row, if it has one.
fn insert(db: &Connection, turn: &Turn) -> Result<()> {
    let chat = turn.chat.as_str();
    touch(db, chat, turn.ended_wall_ms)?;
    let events = array(turn);
    let open: Option<i64> = db
        .prepare_cached("SELECT number FROM turns WHERE run_id = ?1 AND open = 1")?
        .query_row([turn.run.as_str()], |row| row.get(0))
        .optional()?;
    let number = match open {
        Some(number) => number,
        None => next_turn(db, chat)?,
    };
    db.prepare_cached(
        "INSERT INTO turns (chat_id, number, run_id, trigger_name, seq, started_ms, ended_ms, closed, superseded, events)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (chat_id, number) DO UPDATE SET seq = excluded.seq, ended_ms = excluded.ended_ms,
             closed = excluded.closed, superseded = excluded.superseded, events = excluded.events, open = 0",
    )?
    .execute(params![
        chat,
        number,
        turn.run.as_str(),
        turn.trigger.name(),
        integer(turn.seq.0),
        integer(turn.started_wall_ms),
        integer(turn.ended_wall_ms),
        turn.closed,
        turn.superseded,
        text(&events),
    ])?;
    insert_messages(db, chat, number, messages(&events, turn.run))
}

/// Appends a turn's messages. What it only repeats of earlier turns is there already.
fn insert_messages(
    db: &Connection,
    chat: &str,
    turn: i64,
    new: impl IntoIterator<Item = Message>,
) -> Result<()> {
    let mut position: i64 = db
        .prepare_cached("SELECT COALESCE(MAX(position), 0) FROM messages WHERE chat_id = ?1")?
        .query_row([chat], |row| row.get(0))?;
    let mut known = db.prepare_cached("SELECT 1 FROM messages WHERE chat_id = ?1 AND message_id = ?2")?;
    let mut insert = db.prepare_cached("INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for message in new {
        if message.restated && known.exists(params![chat, message.id])? {
            continue;
        }
        position += 1;
        insert.execute(params![chat, position, turn, message.id, text(&message.json)])?;
    }
    Ok(())
}

/// The turn's events as a JSON array.
fn array(turn: &Turn) -> Vec<u8> {
    let mut all = b"[".to_vec();
    for piece in turn.events.pieces() {
        all.extend_from_slice(piece);
    }
    all.push(b']');
    all
}

/// Bytes that are stored as text exactly as they are.
fn text(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(bytes))
}

/// SQLite's integers are signed; nothing that we count gets that far.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
