//! Streams: texts, reasoning messages and tool calls, opened by a START or by CHUNK events, and the deltas that go into
//! them.

use super::spelling::{Object, string};
use super::{Kind, Model, Stream, samples};

/// Streams that a START opens.
impl Model {
    pub(super) fn open_stream(&mut self) {
        let reopened = self.rng.chance(15).then(|| self.take_closed(None)).flatten();
        // The first START says who the owner is; later ones need not.
        let (stream, owner) = match reopened {
            Some(stream) => (stream.clone(), self.maybe(&stream.owner)),
            None => {
                let stream = self.fresh_stream();
                (stream.clone(), stream.owner)
            }
        };
        let mut members = Object::default().odd(&mut self.rng, stream.kind.id_key(), &stream.id);
        match stream.kind {
            Kind::Tool => {
                members = members.text("toolCallName", "weather");
                let parent = self
                    .run
                    .open
                    .iter()
                    .find(|other| other.kind == Kind::Text && other.owner == stream.owner);
                if let Some(parent) = parent.filter(|_| owner == stream.owner) {
                    members = members.text("parentMessageId", &parent.id);
                }
            }
            Kind::Reasoning => members = members.text("role", "reasoning"),
            Kind::Text => members = members.text("role", "assistant"),
        }
        self.emit_closing(&stream.kind.event("START"), owner.as_deref(), members);
        self.run.open.push(stream);
    }

    fn fresh_stream(&mut self) -> Stream {
        let kind = *self.rng.pick(&Kind::ALL);
        let owner = self.maybe_subagent();
        let taken =
            |id: &str, streams: &[Stream]| streams.iter().any(|other| other.kind == kind && other.id == id);
        // Ids are told apart by kind only: a reasoning message and a tool call may be called like a text.
        if self.rng.chance(10) && !self.run.open.is_empty() {
            let id = self.rng.pick(&self.run.open).id.clone();
            if ![&self.run.open, &self.run.closed, &self.run.lanes].iter().any(|streams| taken(&id, streams))
            {
                return Stream { kind, id, owner, half: false };
            }
        }
        let stem = *self.rng.pick(&["m", "call_", "msg-ü", "quote\"", "日本-", "a/b\\"]);
        Stream { kind, id: self.fresh(stem), owner, half: false }
    }

    fn take_closed(&mut self, kind: Option<Kind>) -> Option<Stream> {
        let index = self.run.closed.iter().position(|stream| kind.is_none_or(|kind| kind == stream.kind))?;
        Some(self.run.closed.remove(index))
    }

    pub(super) fn close_stream(&mut self) {
        if self.run.open.is_empty() {
            return;
        }
        let index = self.rng.below(self.run.open.len());
        let stream = self.run.open.remove(index);
        let owner = self.maybe(&stream.owner);
        let members = Object::default().odd(&mut self.rng, stream.kind.id_key(), &stream.id);
        self.emit_closing(&stream.kind.event("END"), owner.as_deref(), members);
        self.run.closed.push(stream);
    }

    /// A few deltas, of one stream or of several in turn.
    pub(super) fn burst(&mut self) {
        if self.run.open.is_empty() {
            return self.open_stream();
        }
        let interleaved = self.rng.chance(60);
        let mut index = self.rng.below(self.run.open.len());
        for _ in 0..=self.rng.below(6) {
            if interleaved {
                index = self.rng.below(self.run.open.len());
            }
            let mut stream = self.run.open[index].clone();
            let owner =
                if self.extras_percent > 5 { self.maybe(&stream.owner) } else { stream.owner.clone() };
            let delta = self.delta(&mut stream.half);
            let members =
                Object::default().odd(&mut self.rng, stream.kind.id_key(), &stream.id).raw("delta", delta);
            self.emit_closing(&stream.kind.event("CONTENT"), owner.as_deref(), members);
            self.run.open[index] = stream;
        }
    }

    /// A delta as JSON; `half` says that the one before ended in half a character, and whether this one does.
    pub(super) fn delta(&mut self, half: &mut bool) -> String {
        let mut units = Vec::new();
        if *half && self.rng.chance(90) {
            units.push(samples::SECOND_HALF);
        }
        *half = self.rng.chance(8);
        if !self.rng.chance(5) {
            for _ in 0..=self.rng.below(3) {
                units.extend(self.rng.pick(&samples::TEXTS).encode_utf16());
            }
        }
        if *half {
            units.push(samples::FIRST_HALF);
        }
        let percent = *self.rng.pick(&[0, 0, 0, 10, 100]);
        string(&mut self.rng, &units, percent)
    }
}

/// Streams that CHUNK events open and end by their order.
impl Model {
    pub(super) fn chunk(&mut self) {
        let owner = self.maybe_subagent();
        for _ in 0..=self.rng.below(4) {
            let lane = self.run.lanes.iter().position(|lane| lane.owner == owner);
            match lane {
                Some(lane) if self.rng.chance(85) => self.continue_chunk(lane),
                _ => self.open_chunk(owner.clone()),
            }
        }
    }

    fn open_chunk(&mut self, owner: Option<String>) {
        self.close_lane(owner.as_deref());
        let kind = *self.rng.pick(&Kind::ALL);
        let again = self.rng.chance(30).then(|| self.take_closed(Some(kind))).flatten();
        let mut stream = match again {
            Some(stream) if stream.owner == owner => stream,
            other => {
                self.run.closed.extend(other);
                Stream { kind, id: self.fresh("c"), owner, half: false }
            }
        };
        let mut members = Object::default().odd(&mut self.rng, kind.id_key(), &stream.id);
        if kind == Kind::Tool {
            members = members.text("toolCallName", "search");
        }
        if self.rng.chance(80) {
            let delta = self.delta(&mut stream.half);
            members = members.raw("delta", delta);
        }
        self.emit(&kind.event("CHUNK"), stream.owner.as_deref(), members);
        self.run.lanes.push(stream);
    }

    fn continue_chunk(&mut self, lane: usize) {
        let mut stream = self.run.lanes[lane].clone();
        let mut members = Object::default();
        let named = self.rng.chance(50);
        if named {
            members = members.odd(&mut self.rng, stream.kind.id_key(), &stream.id);
        }
        if self.rng.chance(95) {
            let delta = self.delta(&mut stream.half);
            members = members.raw("delta", delta);
        }
        let owner = if named { self.maybe(&stream.owner) } else { stream.owner.clone() };
        self.emit(&stream.kind.event("CHUNK"), owner.as_deref(), members);
        self.run.lanes[lane] = stream;
    }
}
