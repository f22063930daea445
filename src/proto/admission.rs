//! Admission: what an observer gets, given its cursor and the run that is retained for its chat. Every reason to
//! start again from a snapshot (fresh, expired, foreign, slow) meets here.

use crate::proto::id::{RunId, Seq};
use crate::proto::run::{End, Run, State};

/// Where an observer says that it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// It has nothing.
    None,
    /// It applied all events of this run up to this one.
    At(RunId, Seq),
    /// It saw the end of this run (EventSource comes again after the end).
    Ended(RunId),
    /// It says something that no run of ours can match.
    Foreign,
}

/// What the observer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The events after this one, then live.
    Resume(Seq),
    /// A snapshot, then live; it already has the events up to this one.
    Snapshot(Seq),
    /// Nothing now; it may wait for a run if it asked to.
    Idle,
    /// Nothing, and it should not come again.
    Done,
}

/// Decides what an observer gets.
pub fn admit<S>(cursor: Cursor, retained: Option<&Run<S>>) -> Admission {
    let Some(run) = retained else {
        return if matches!(cursor, Cursor::Ended(_)) { Admission::Done } else { Admission::Idle };
    };
    match cursor {
        Cursor::At(id, after) if id == run.id => {
            if run.log.covers(after) {
                Admission::Resume(after)
            } else {
                Admission::Snapshot(after.min(run.head()))
            }
        }
        Cursor::At(..) | Cursor::Foreign => Admission::Snapshot(Seq::ZERO),
        Cursor::Ended(id) if id == run.id => Admission::Done,
        Cursor::Ended(_) | Cursor::None => match run.state {
            State::Over(End { persisted: true, .. }) => Admission::Idle,
            State::Registered | State::Active | State::Finalizing | State::Over(_) => {
                Admission::Snapshot(Seq::ZERO)
            }
        },
    }
}
