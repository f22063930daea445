//! A *thread* is the list of messages that a turn's events have built so far.
//!
//! It finds messages and tool calls by their ids and changes them; which event changes what was decided by
//! [`super`]. What names a message that isn't there is dropped, as AG-UI's reducer does with a warning.

mod snapshot;

use super::Message;
use super::json::{Event, Members, Node, decoded, inner, is, member, remove, set, write_members};
use super::patch::{Budget, patched};
use std::borrow::Cow;
use std::collections::HashMap;

/// Most messages that are derived from one turn. Inserting one walks the list, so this bounds a hostile turn's work;
/// what comes behind is still in the turn's events.
pub(super) const TURN_MESSAGES_MAX: usize = 16_384;

/// What all creating and most changing events share.
#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    /// The subagent that the event is attributed to, as written.
    pub(super) owner: Option<&'a str>,
    /// Metadata to be merged, as written.
    pub(super) metadata: Option<&'a str>,
}

impl<'a> Common<'a> {
    /// Reads the shared members.
    pub(super) fn of(event: &Event<'a>) -> Common<'a> {
        Common { owner: event.text("subagentRunId"), metadata: event.value("metadata") }
    }
}

/// The messages in order, with what finds them.
#[derive(Default)]
pub(super) struct Thread<'a> {
    /// All messages ever made; `order` says which are still there.
    arena: Vec<Entry<'a>>,
    /// Indices into `arena`, in the order of the conversation.
    order: Vec<usize>,
    /// The first message in `order` of each id.
    by_id: HashMap<Cow<'a, [u8]>, usize>,
    /// Where each tool call is: message in `arena`, index in its `toolCalls`.
    calls: HashMap<Cow<'a, [u8]>, (usize, usize)>,
    budget: Budget,
}

#[derive(Clone)]
struct Entry<'a> {
    id: Cow<'a, [u8]>,
    role: Role,
    /// Only repeated by a snapshot or a run's input, not built by this turn's own events.
    restated: bool,
    members: Members<'a>,
}

/// The roles that the reducer treats differently.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Assistant,
    Tool,
    Reasoning,
    Activity,
    Other,
}

impl Role {
    fn of(raw: &str) -> Role {
        match &*decoded(raw) {
            b"assistant" => Role::Assistant,
            b"tool" => Role::Tool,
            b"reasoning" => Role::Reasoning,
            b"activity" => Role::Activity,
            _ => Role::Other,
        }
    }
}

impl<'a> Entry<'a> {
    /// A message with its first two members; both are given as written.
    fn new(id: Cow<'a, str>, role: &'a str) -> Entry<'a> {
        let key = match &id {
            Cow::Borrowed(raw) => decoded(raw),
            Cow::Owned(raw) => Cow::Owned(decoded(raw).into_owned()),
        };
        let members =
            vec![(Cow::Borrowed("\"id\""), Node::Raw(id)), (Cow::Borrowed("\"role\""), Node::raw(role))];
        Entry { id: key, role: Role::of(role), restated: false, members }
    }

    fn with(mut self, name: &'static str, value: Option<&'a str>) -> Entry<'a> {
        if let Some(value) = value {
            self.members.push((Cow::Borrowed(name), Node::raw(value)));
        }
        self
    }
}

impl<'a> Thread<'a> {
    /// The messages, ready to store.
    pub(super) fn into_messages(self) -> Vec<Message> {
        let written = |entry: &Entry<'a>| {
            let mut json = Vec::new();
            write_members(&entry.members, &mut json);
            Message { id: entry.id.to_vec(), json, restated: entry.restated }
        };
        self.order.iter().filter_map(|index| self.arena.get(*index)).map(written).collect()
    }

    /// Begins a text or reasoning message, or finds the one that another event began under that id.
    pub(super) fn start(
        &mut self,
        id: Cow<'a, str>,
        role: &'a str,
        name: Option<&'a str>,
        common: Common<'a>,
    ) {
        let known = self.by_id.get(&*decoded(&id)).copied();
        let index = known.or_else(|| {
            let entry = Entry::new(id, role)
                .with("\"content\"", Some("\"\""))
                .with("\"name\"", name)
                .with("\"subagentRunId\"", common.owner);
            self.push(entry)
        });
        let Some(entry) = index.and_then(|index| self.arena.get_mut(index)) else { return };
        if entry.role != Role::Activity {
            merge_metadata(&mut entry.members, common.metadata, &mut self.budget);
        }
    }

    /// Appends to a message's text.
    pub(super) fn append(&mut self, id: &str, delta: &'a str, metadata: Option<&'a str>) {
        let Some(entry) = self.by_id.get(&*decoded(id)).and_then(|index| self.arena.get_mut(*index)) else {
            return;
        };
        if entry.role == Role::Activity {
            return;
        }
        entry.restated = false;
        append_to(&mut entry.members, "\"content\"", delta);
        merge_metadata(&mut entry.members, metadata, &mut self.budget);
    }

    /// Merges the metadata of a message's end.
    pub(super) fn end(&mut self, id: &str, metadata: Option<&'a str>) {
        let Some(entry) = self.by_id.get(&*decoded(id)).and_then(|index| self.arena.get_mut(*index)) else {
            return;
        };
        if entry.role != Role::Activity {
            merge_metadata(&mut entry.members, metadata, &mut self.budget);
        }
    }

    /// Begins a tool call, in its parent message or in one of its own; one that is there already is renamed.
    pub(super) fn start_call(
        &mut self,
        id: &'a str,
        name: &'a str,
        parent: Option<&'a str>,
        common: Common<'a>,
    ) {
        if let Some(call) = call(&mut self.arena, &self.calls, id) {
            if let Some(function) = member(call, b"function").and_then(Node::object) {
                set(function, Cow::Borrowed("\"name\""), Node::raw(name));
            }
            return merge_metadata(call, common.metadata, &mut self.budget);
        }
        let Some(index) = self.call_owner(id, parent, common.owner) else { return };
        let Some(entry) = self.arena.get_mut(index) else { return };
        entry.restated = false;
        if member(&mut entry.members, b"toolCalls").and_then(Node::array).is_none() {
            set(&mut entry.members, Cow::Borrowed("\"toolCalls\""), Node::Array(Vec::new()));
        }
        let Some(calls) = member(&mut entry.members, b"toolCalls").and_then(Node::array) else { return };
        let function = vec![
            (Cow::Borrowed("\"name\""), Node::raw(name)),
            (Cow::Borrowed("\"arguments\""), Node::Text(Vec::new())),
        ];
        let mut call = vec![
            (Cow::Borrowed("\"id\""), Node::raw(id)),
            (Cow::Borrowed("\"type\""), Node::raw("\"function\"")),
            (Cow::Borrowed("\"function\""), Node::Object(function)),
        ];
        merge_metadata(&mut call, common.metadata, &mut self.budget);
        self.calls.insert(decoded(id), (index, calls.len()));
        calls.push(Node::Object(call));
    }

    /// Appends to a tool call's arguments.
    pub(super) fn append_call(&mut self, id: &str, delta: &'a str, metadata: Option<&'a str>) {
        let Some(call) = call(&mut self.arena, &self.calls, id) else { return };
        if let Some(function) = member(call, b"function").and_then(Node::object) {
            append_to(function, "\"arguments\"", delta);
        }
        merge_metadata(call, metadata, &mut self.budget);
    }

    /// Merges the metadata of a tool call's end.
    pub(super) fn end_call(&mut self, id: &str, metadata: Option<&'a str>) {
        if let Some(call) = call(&mut self.arena, &self.calls, id) {
            merge_metadata(call, metadata, &mut self.budget);
        }
    }

    /// Puts a tool's result behind the message that called it and the results that are there already.
    pub(super) fn result(&mut self, event: &Event<'a>) {
        let (Some(id), Some(call)) = (event.text("messageId"), event.text("toolCallId")) else { return };
        let role = event.text("role").filter(|role| inner(role) != Some("")).unwrap_or("\"tool\"");
        let common = Common::of(event);
        let members = Vec::new();
        let mut entry = Entry { id: decoded(id), role: Role::of(role), restated: false, members }
            .with("\"id\"", Some(id))
            .with("\"toolCallId\"", Some(call))
            .with("\"role\"", Some(role))
            .with("\"content\"", Some(event.value("content").unwrap_or("\"\"")))
            .with("\"subagentRunId\"", common.owner);
        merge_metadata(&mut entry.members, common.metadata, &mut self.budget);
        let at = self.behind_call(call);
        self.insert(at, entry);
    }

    /// Attaches an encrypted value to the tool call or message that it belongs to.
    pub(super) fn encrypted(&mut self, event: &Event<'a>) {
        let (Some(id), Some(value)) = (event.text("entityId"), event.text("encryptedValue")) else { return };
        let target = if event.text("subtype").is_some_and(|subtype| is(subtype, b"tool-call")) {
            call(&mut self.arena, &self.calls, id)
        } else {
            let entry = self.by_id.get(&*decoded(id)).and_then(|index| self.arena.get_mut(*index));
            entry.filter(|entry| entry.role != Role::Activity).map(|entry| &mut entry.members)
        };
        if let Some(members) = target {
            set(members, Cow::Borrowed("\"encryptedValue\""), Node::raw(value));
        }
    }

    /// Makes an activity message or replaces the content of the one that is there.
    pub(super) fn activity(&mut self, event: &Event<'a>) {
        let (Some(id), Some(kind)) = (event.text("messageId"), event.text("activityType")) else { return };
        let Some(content) = event.value("content") else { return };
        let common = Common::of(event);
        let replace = event.value("replace") != Some("false");
        let fresh = Entry::new(Cow::Borrowed(id), "\"activity\"")
            .with("\"activityType\"", Some(kind))
            .with("\"content\"", Some(content))
            .with("\"subagentRunId\"", common.owner);
        let index = match self.by_id.get(&*decoded(id)).copied() {
            Some(index) => index,
            None => match self.push(fresh) {
                Some(index) => return self.merge_into(index, common.metadata),
                None => return,
            },
        };
        let Some(entry) = self.arena.get_mut(index) else { return };
        match (entry.role, replace) {
            (Role::Activity, true) => {
                set(&mut entry.members, Cow::Borrowed("\"activityType\""), Node::raw(kind));
                set(&mut entry.members, Cow::Borrowed("\"content\""), Node::raw(content));
                remove(&mut entry.members, b"subagentRunId");
                if let Some(owner) = common.owner {
                    set(&mut entry.members, Cow::Borrowed("\"subagentRunId\""), Node::raw(owner));
                }
                entry.restated = false;
            }
            (Role::Activity, false) => {}
            (_, true) => *entry = fresh,
            (_, false) => return,
        }
        self.merge_into(index, common.metadata);
    }

    /// Patches an activity's content; a patch that can't be applied leaves it as it was.
    pub(super) fn patch_activity(&mut self, event: &Event<'a>) {
        let Some(id) = event.text("messageId") else { return };
        let Some(index) = self.by_id.get(&*decoded(id)).copied() else { return };
        let Some(entry) = self.arena.get_mut(index) else { return };
        if entry.role != Role::Activity {
            return;
        }
        merge_metadata(&mut entry.members, event.value("metadata"), &mut self.budget);
        let empty = Node::raw("{}");
        let content = member(&mut entry.members, b"content").map_or(&empty, |content| &*content);
        let Some(content) = patched(content, event.value("patch").unwrap_or("[]"), &mut self.budget) else {
            return;
        };
        set(&mut entry.members, Cow::Borrowed("\"content\""), content);
        if let Some(kind) = event.text("activityType") {
            set(&mut entry.members, Cow::Borrowed("\"activityType\""), Node::raw(kind));
        }
        entry.restated = false;
    }

    /// Appends a message; `None` if the turn has too many.
    fn push(&mut self, entry: Entry<'a>) -> Option<usize> {
        self.insert(self.order.len(), entry)
    }

    fn insert(&mut self, at: usize, entry: Entry<'a>) -> Option<usize> {
        if self.order.len() >= TURN_MESSAGES_MAX {
            return None;
        }
        let index = self.arena.len();
        let before = self.order.get(..at).unwrap_or_default();
        match self.by_id.get(&entry.id) {
            Some(other) if before.contains(other) => {}
            _ => {
                self.by_id.insert(entry.id.clone(), index);
            }
        }
        self.arena.push(entry);
        self.order.insert(at.min(self.order.len()), index);
        self.index_calls(index);
        Some(index)
    }

    /// Notes the tool calls that a message brought with it.
    fn index_calls(&mut self, index: usize) {
        let Some(entry) = self.arena.get_mut(index) else { return };
        let Some(calls) = member(&mut entry.members, b"toolCalls").and_then(Node::array) else { return };
        for (position, call) in calls.iter_mut().enumerate() {
            if let Some(Node::Raw(Cow::Borrowed(id))) = call.object().and_then(|call| member(call, b"id")) {
                self.calls.entry(decoded(id)).or_insert((index, position));
            }
        }
    }

    /// The assistant message that a new tool call goes to: its parent, or a new one that is named after the parent
    /// (after the call, if that name is taken by another role).
    fn call_owner(&mut self, id: &'a str, parent: Option<&'a str>, owner: Option<&'a str>) -> Option<usize> {
        let parent = parent.filter(|parent| inner(parent) != Some(""));
        let known = parent.and_then(|parent| self.by_id.get(&*decoded(parent)).copied());
        if let Some(index) = known
            && self.arena.get(index).is_some_and(|entry| entry.role == Role::Assistant)
        {
            return Some(index);
        }
        let named = parent.filter(|_| known.is_none()).unwrap_or(id);
        let taken = self.by_id.contains_key(&*decoded(named));
        let mut entry = Entry::new(Cow::Borrowed(named), "\"assistant\"");
        entry.members.push((Cow::Borrowed("\"toolCalls\""), Node::Array(Vec::new())));
        self.push(entry.with("\"subagentRunId\"", owner.filter(|_| !taken)))
    }

    /// The place of a tool call's result.
    fn behind_call(&self, call: &str) -> usize {
        let owner = self.calls.get(&*decoded(call)).map(|(index, _)| *index);
        let assistant =
            |index: &usize| self.arena.get(*index).is_some_and(|entry| entry.role == Role::Assistant);
        let Some(owner) = owner.filter(assistant) else { return self.order.len() };
        let Some(at) = self.order.iter().rposition(|index| *index == owner) else { return self.order.len() };
        let tool = |index: &&usize| self.arena.get(**index).is_some_and(|entry| entry.role == Role::Tool);
        at + 1 + self.order.iter().skip(at + 1).take_while(tool).count()
    }

    fn merge_into(&mut self, index: usize, metadata: Option<&'a str>) {
        if let Some(entry) = self.arena.get_mut(index) {
            merge_metadata(&mut entry.members, metadata, &mut self.budget);
        }
    }
}

/// The members of a tool call.
fn call<'t, 'a>(
    arena: &'t mut [Entry<'a>],
    calls: &HashMap<Cow<'a, [u8]>, (usize, usize)>,
    id: &str,
) -> Option<&'t mut Members<'a>> {
    let (index, position) = *calls.get(&*decoded(id))?;
    let calls = member(&mut arena.get_mut(index)?.members, b"toolCalls")?.array()?;
    calls.get_mut(position)?.object()
}

/// Appends to a string member, which is made if it is missing.
fn append_to<'a>(members: &mut Members<'a>, name: &'static str, delta: &'a str) {
    let Some(delta) = inner(delta) else { return };
    match member(members, &decoded(name)) {
        Some(text) => text.append(delta),
        None => members.push((Cow::Borrowed(name), Node::Text(vec![delta]))),
    }
}

/// Merges an event's metadata into what it builds, key by key; the last write wins. Keys beyond the turn's budget
/// are not merged.
fn merge_metadata<'a>(members: &mut Members<'a>, metadata: Option<&'a str>, budget: &mut Budget) {
    let Some(incoming) = metadata.and_then(Event::parse).map(Event::into_members) else { return };
    if member(members, b"metadata").and_then(Node::object).is_none() {
        set(members, Cow::Borrowed("\"metadata\""), Node::Object(Vec::new()));
    }
    let Some(target) = member(members, b"metadata").and_then(Node::object) else { return };
    for (name, value) in incoming {
        if budget.spend(target.len() + 1).is_none() {
            return;
        }
        set(target, name, value);
    }
}
