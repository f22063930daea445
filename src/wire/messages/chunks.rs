//! A *chunk* is the short form of AG-UI's streamed events: one event type that opens a message or tool call, and
//! continues it without naming it again.
//!
//! What a chunk without an id continues depends on the order of the events, so this keeps what each *lane* has open:
//! a lane is the subagent that an event is attributed to, or the agent itself. A chunk that can't be resolved, or
//! that contradicts what it continues, is skipped; AG-UI's client ends the run there.

use super::json::{Event, decoded};
use super::thread::{Common, Thread};
use std::borrow::Cow;

/// Lanes that are kept open at once, at most: each is looked at for every chunk. A chunk that would open one more is
/// skipped.
const LANES_MAX: usize = 1_024;

/// What a chunk assembles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// TEXT_MESSAGE_CHUNK.
    Text,
    /// TOOL_CALL_CHUNK.
    Tool,
    /// REASONING_MESSAGE_CHUNK.
    Reasoning,
}

/// The streams that are being assembled, one per lane.
#[derive(Default)]
pub(super) struct Lanes<'a>(Vec<Open<'a>>);

/// What a lane has open.
struct Open<'a> {
    owner: Owner<'a>,
    kind: Kind,
    /// The message's or tool call's id, as written.
    id: &'a str,
    /// The members that a later chunk may only repeat, with what the opener said.
    said: [(&'static str, Option<Cow<'a, [u8]>>); 2],
}

/// The subagent, decoded; none is the agent itself.
type Owner<'a> = Option<Cow<'a, [u8]>>;

impl<'a> Lanes<'a> {
    /// An explicit event ends what its own lane was assembling.
    pub(super) fn close(&mut self, event: &Event<'a>) {
        let owner = event.text("subagentRunId").map(decoded);
        self.0.retain(|open| open.owner != owner);
    }

    /// The end of a subagent closes its lane, but one that is attributed to nobody doesn't close the agent's.
    pub(super) fn close_subagent(&mut self, event: &Event<'a>) {
        if event.text("subagentRunId").is_some() {
            self.close(event);
        }
    }

    /// A run-level event ends everything.
    pub(super) fn close_all(&mut self) {
        self.0.clear();
    }

    /// Carries out one chunk.
    pub(super) fn chunk(&mut self, kind: Kind, event: &Event<'a>, thread: &mut Thread<'a>) {
        let id_name = if kind == Kind::Tool { "toolCallId" } else { "messageId" };
        let id = event.text(id_name);
        let Some(owner) = self.lane(kind, id, event.text("subagentRunId")) else { return };
        let open = self
            .0
            .iter()
            .find(|open| open.owner == owner)
            .filter(|open| open.kind == kind && id.is_none_or(|id| decoded(id) == decoded(open.id)));
        let common = Common::of(event);
        let (id, continued) = match open {
            Some(open) if open.agrees(event) => (open.id, true),
            Some(_) => return,
            None => {
                self.0.retain(|open| open.owner != owner);
                let Some(id) = id else { return };
                if (kind == Kind::Tool && event.text("toolCallName").is_none()) || self.0.len() >= LANES_MAX {
                    return;
                }
                self.0.push(Open { owner, kind, id, said: said(kind, event) });
                begin(kind, id, event, common, thread);
                (id, false)
            }
        };
        let carries = event.value("delta").is_some() || event.value("rawEvent").is_some();
        if carries || (continued && common.metadata.is_some()) {
            let delta = event.text("delta").unwrap_or("\"\"");
            match kind {
                Kind::Tool => thread.append_call(id, delta, common.metadata),
                Kind::Text | Kind::Reasoning => thread.append(id, delta, common.metadata),
            }
        }
    }

    /// The lane that a chunk belongs to; `None` if it contradicts an open stream or could mean several.
    fn lane(&self, kind: Kind, id: Option<&'a str>, tag: Option<&'a str>) -> Option<Owner<'a>> {
        let tag = tag.map(decoded);
        let mut same_kind = self.0.iter().filter(|open| open.kind == kind);
        if let Some(id) = id {
            // An id names its stream wherever it is open.
            return match same_kind.find(|open| decoded(open.id) == decoded(id)) {
                Some(open) if tag.is_some() && tag != open.owner => None,
                Some(open) => Some(open.owner.clone()),
                None => Some(tag),
            };
        }
        if tag.is_some() || same_kind.clone().any(|open| open.owner.is_none()) {
            return Some(tag);
        }
        // Without id and tag it can only mean the one stream of its kind.
        match (same_kind.next(), same_kind.next()) {
            (Some(only), None) => Some(only.owner.clone()),
            (None, _) => Some(None),
            (Some(_), Some(_)) => None,
        }
    }
}

impl<'a> Open<'a> {
    /// Whether what the chunk repeats is what the opener said.
    fn agrees(&self, event: &Event<'a>) -> bool {
        self.said.iter().all(|(name, said)| {
            event.value(name).is_none_or(|value| said.as_ref().is_some_and(|said| *said == decoded(value)))
        })
    }
}

/// What an opener says that later chunks must not contradict.
fn said<'a>(kind: Kind, event: &Event<'a>) -> [(&'static str, Option<Cow<'a, [u8]>>); 2] {
    let text = |name: &'static str| (name, event.text(name).map(decoded));
    match kind {
        Kind::Text => [("role", Some(decoded(event.text("role").unwrap_or("\"assistant\"")))), text("name")],
        Kind::Tool => [text("toolCallName"), text("parentMessageId")],
        Kind::Reasoning => [("", None), ("", None)],
    }
}

fn begin<'a>(kind: Kind, id: &'a str, event: &Event<'a>, common: Common<'a>, thread: &mut Thread<'a>) {
    let role = event.text("role").unwrap_or("\"assistant\"");
    match kind {
        Kind::Text => thread.start(Cow::Borrowed(id), role, event.text("name"), common),
        Kind::Reasoning => thread.start(Cow::Borrowed(id), "\"reasoning\"", None, common),
        Kind::Tool => {
            let name = event.text("toolCallName").unwrap_or("\"\"");
            thread.start_call(id, name, event.text("parentMessageId"), common);
        }
    }
}
