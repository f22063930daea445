//! An event, as far as the protocol cares: a delta for a target, a chunk, or a boundary between stretches of
//! deltas. `wire` reads the JSON and fills these in; here no JSON is known, the texts are opaque bytes.

use std::borrow::Cow;

/// What a delta event adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeltaKind {
    /// The text of a message.
    Text,
    /// The text of a reasoning message.
    Reasoning,
    /// The text of the one unnamed thinking message.
    Thinking,
    /// The arguments of a tool call.
    ToolArgs,
}

impl DeltaKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [DeltaKind; 4] =
        [DeltaKind::Text, DeltaKind::Reasoning, DeltaKind::Thinking, DeltaKind::ToolArgs];

    /// The kind that shares its message with this one when both carry the same id.
    pub(crate) fn sibling(self) -> Option<DeltaKind> {
        match self {
            DeltaKind::Text => Some(DeltaKind::Reasoning),
            DeltaKind::Reasoning => Some(DeltaKind::Text),
            DeltaKind::Thinking | DeltaKind::ToolArgs => None,
        }
    }
}

/// One member of a delta's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The decoded key, by which a later attribute replaces an earlier one.
    pub key: Cow<'a, [u8]>,
    /// Key and value as they are written.
    pub member: Cow<'a, [u8]>,
}

/// An event that adds text to a target and can be joined with others of that target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta<'a> {
    /// What it adds to.
    pub kind: DeltaKind,
    /// The target's id, decoded; empty for [`DeltaKind::Thinking`].
    pub id: Cow<'a, [u8]>,
    /// The added text as it stands in the event, escapes and all.
    pub text: &'a [u8],
    /// The event up to its text, without metadata: what an entry that begins with this delta starts with.
    pub head: Cow<'a, [u8]>,
    /// The members that have to be equal for two deltas to be joined, in one canonical order; mostly empty.
    pub same: Cow<'a, [u8]>,
    /// Metadata, merged key by key when deltas are joined.
    pub attributes: Option<Vec<Attribute<'a>>>,
}

/// Which family of self-opening events a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Text of a message.
    Text,
    /// Text of a reasoning message.
    Reasoning,
    /// Arguments of a tool call.
    ToolCall,
}

/// An event that opens and closes messages by its order, so that it can be joined with its direct neighbour only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Its family.
    pub kind: ChunkKind,
    /// The id, decoded, if it carries one.
    pub id: Option<Cow<'a, [u8]>>,
    /// The added text as it stands in the event.
    pub text: &'a [u8],
    /// The event up to its text: what an entry that begins with this chunk starts with.
    pub head: Cow<'a, [u8]>,
    /// Whether it carries nothing but type, id and text: only then can it be joined to the chunk before.
    pub plain: bool,
    /// Whether it names the subagent that it belongs to.
    pub tagged: bool,
}

/// A part of an answer that is opened by one event and closed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A text message.
    Text,
    /// A reasoning message.
    ReasoningMessage,
    /// The span around reasoning messages.
    ReasoningSpan,
    /// The unnamed thinking message.
    ThinkingMessage,
    /// The unnamed span around it.
    ThinkingSpan,
    /// A tool call.
    ToolCall,
}

/// What an event means to the run's life, beside being passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// The agent's run begins.
    RunStarted,
    /// The agent's run ended well.
    RunFinished,
    /// The agent's run failed.
    RunError,
    /// A part is opened.
    Opened(Part, Cow<'a, [u8]>),
    /// A part is closed.
    Closed(Part, Cow<'a, [u8]>),
    /// A chunk without text that names its subagent.
    TaggedChunk,
    /// Nothing of the above.
    Plain,
}

/// What kind of event it is to compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Joined with earlier deltas of its target.
    Delta(Delta<'a>),
    /// Joined with a chunk directly before it.
    Chunk(Chunk<'a>),
    /// Kept as it is; ends a stretch of deltas.
    Boundary(Mark<'a>),
}
