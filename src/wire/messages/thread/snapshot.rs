//! What repeats messages instead of building them: MESSAGES_SNAPSHOT and the input that RUN_STARTED may carry.

use super::{Entry, Role, Thread};
use crate::wire::messages::json::{Event, Members, Node, decoded, elements, is, member, remove};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

impl<'a> Entry<'a> {
    /// A message as a snapshot gives it; `None` if it has no id.
    fn restated(raw: &'a str) -> Option<Entry<'a>> {
        let event = Event::parse(raw)?;
        let (id, role) = (event.text("id")?, event.text("role").unwrap_or("\"\""));
        // The reducer takes a null attribution for none.
        let unowned = event.value("subagentRunId").is_none();
        let mut members = event.into_members();
        if unowned {
            remove(&mut members, b"subagentRunId");
        }
        Some(Entry { id: decoded(id), role: Role::of(role), restated: true, members })
    }
}

impl<'a> Thread<'a> {
    /// Takes over the messages of a run's input that aren't there yet.
    pub(in crate::wire::messages) fn input(&mut self, event: &Event<'a>) {
        let list = event.value("input").and_then(Event::parse).and_then(|input| input.value("messages"));
        for entry in list.and_then(elements).into_iter().flatten().filter_map(Entry::restated) {
            if !self.by_id.contains_key(&entry.id) {
                self.push(entry);
            }
        }
    }

    /// Takes a snapshot of the conversation for the truth: known messages are replaced in place, new ones appended,
    /// missing ones dropped, except those that only the client may know of (reasoning, and activities of types that
    /// the snapshot doesn't speak for).
    pub(in crate::wire::messages) fn snapshot(&mut self, event: &Event<'a>) {
        let Some(list) = event.value("messages").and_then(elements) else { return };
        if self.budget.spend(self.order.len() + list.len()).is_none() {
            return;
        }
        let fresh: Vec<Entry<'a>> = list.into_iter().filter_map(Entry::restated).collect();
        let has = |role| fresh.iter().any(|entry| entry.role == role);
        let (has_activity, has_reasoning) = (has(Role::Activity), has(Role::Reasoning));
        let authority = Authority::of(event);
        let known: HashSet<Cow<'a, [u8]>> = self
            .order
            .iter()
            .filter_map(|index| self.arena.get(*index))
            .map(|entry| entry.id.clone())
            .collect();
        let mut replacing: HashMap<Cow<'a, [u8]>, Entry<'a>> = HashMap::new();
        let mut appended = Vec::new();
        for entry in fresh {
            if known.contains(&entry.id) {
                replacing.insert(entry.id.clone(), entry);
            } else {
                appended.push(entry);
            }
        }
        let arena = &mut self.arena;
        self.order.retain(|index| {
            let Some(entry) = arena.get_mut(*index) else { return false };
            if let Some(new) = replacing.get(&entry.id) {
                *entry = Entry { restated: entry.restated, ..new.clone() };
                return true;
            }
            match entry.role {
                Role::Reasoning => !has_reasoning,
                Role::Activity => !authority.speaks_for(&mut entry.members, has_activity),
                Role::Assistant | Role::Tool | Role::Other => false,
            }
        });
        self.reindex();
        for entry in appended {
            self.push(entry);
        }
    }

    /// Finds everything anew after a snapshot.
    fn reindex(&mut self) {
        self.by_id.clear();
        self.calls.clear();
        for index in self.order.clone() {
            if let Some(entry) = self.arena.get(index) {
                self.by_id.entry(entry.id.clone()).or_insert(index);
            }
            self.index_calls(index);
        }
    }
}

/// Which activities a snapshot speaks for even where it leaves them out: it says so in its metadata.
enum Authority<'a> {
    /// It says nothing: for all, if it carries any.
    Unsaid,
    /// For every type.
    All,
    /// For these types, as written.
    Types(Vec<&'a str>),
}

impl<'a> Authority<'a> {
    fn of(event: &Event<'a>) -> Authority<'a> {
        let metadata = event.value("metadata").and_then(Event::parse);
        let Some(said) = metadata.and_then(|metadata| metadata.raw("@ag-ui/client")) else {
            return Authority::Unsaid;
        };
        let Some(said) = Event::parse(said) else { return Authority::Types(Vec::new()) };
        match said.raw("authoritativeActivityTypes") {
            None => Authority::Unsaid,
            Some("null") => Authority::All,
            Some(types) => {
                let types = elements(types).filter(|types| types.iter().all(|name| name.starts_with('"')));
                Authority::Types(types.unwrap_or_default())
            }
        }
    }

    fn speaks_for(&self, activity: &mut Members<'a>, has_activity: bool) -> bool {
        match self {
            Authority::Unsaid => has_activity,
            Authority::All => true,
            Authority::Types(types) => match member(activity, b"activityType") {
                Some(Node::Raw(kind)) => types.iter().any(|name| is(name, &decoded(kind))),
                _ => false,
            },
        }
    }
}
