//! How the *history* is spelled: the JSON bodies of `GET /chats` and `GET /chats/{chat_id}`.
//!
//! Rows come in as the store reads them; events and messages are JSON already and are copied as they are.

use crate::proto::history::PageMark;

/// One conversation in the list.
#[derive(Clone, Debug)]
pub struct ChatRow {
    /// The conversation.
    pub chat: String,
    /// Its revision: it changes with every change of the conversation.
    pub revision: u64,
    /// Number of turns.
    pub turns: u64,
    /// Wall clock of its first commit, in milliseconds since 1970.
    pub created_ms: u64,
    /// Wall clock of its last commit, in milliseconds since 1970.
    pub changed_ms: u64,
}

/// One turn of a conversation.
#[derive(Clone, Debug)]
pub struct TurnRow<'a> {
    /// The turn's number in its conversation, from 1.
    pub turn: u64,
    /// The run that produced it.
    pub run_id: &'a str,
    /// What started it.
    pub trigger: &'a str,
    /// Number of events.
    pub seq: u64,
    /// Wall clock of the run's start, in milliseconds since 1970.
    pub started_ms: u64,
    /// Wall clock of the producer's end, in milliseconds since 1970; of an open turn, that of its start.
    pub ended_ms: u64,
    /// A newer run took its place.
    pub superseded: bool,
    /// The code that the engine closed the run with: an interrupted turn has one.
    pub closed: Option<&'a str>,
    /// How many of the page's messages, which stand in the order of their turns, are this turn's.
    pub messages: u64,
    /// The compacted events, as a JSON array.
    pub events: &'a [u8],
    /// The turn was begun and has not been committed: it goes on, or it never was.
    pub open: bool,
}

/// The body of `GET /chats`. `next` is where the next page begins, if there is one.
pub fn chats(rows: &[ChatRow], next: Option<&PageMark>) -> Vec<u8> {
    let mut out = b"{\"chats\":[".to_vec();
    for (index, row) in rows.iter().enumerate() {
        comma(&mut out, index > 0);
        out.extend_from_slice(b"{\"chat_id\":");
        quote(&mut out, &row.chat);
        number(&mut out, ",\"revision\":", row.revision);
        number(&mut out, ",\"turns\":", row.turns);
        number(&mut out, ",\"created_ms\":", row.created_ms);
        number(&mut out, ",\"changed_ms\":", row.changed_ms);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"next\":");
    match next {
        Some(mark) => {
            number(&mut out, "{\"changed_ms\":", mark.changed_wall_ms);
            out.extend_from_slice(b",\"chat_id\":");
            quote(&mut out, mark.chat.as_str());
            out.extend_from_slice(b"}}");
        }
        None => out.extend_from_slice(b"null}"),
    }
    out
}

/// The body of `GET /chats/{chat_id}`, written turn by turn.
#[derive(Debug)]
pub struct ChatPage {
    /// The answer up to and into `messages`.
    head: Vec<u8>,
    messages: usize,
    /// The content of `turns`.
    turns: Vec<u8>,
}

impl ChatPage {
    /// A page of this conversation.
    pub fn new(chat: &str, revision: u64) -> ChatPage {
        let mut head = b"{\"chat_id\":".to_vec();
        quote(&mut head, chat);
        number(&mut head, ",\"revision\":", revision);
        head.extend_from_slice(b",\"messages\":[");
        ChatPage { head, messages: 0, turns: Vec::new() }
    }

    /// Appends a message: the JSON of an AG-UI message.
    pub fn message(&mut self, json: &[u8]) {
        comma(&mut self.head, self.messages > 0);
        self.head.extend_from_slice(json);
        self.messages += 1;
    }

    /// Appends a turn.
    pub fn turn(&mut self, row: &TurnRow<'_>) {
        let first = self.turns.is_empty();
        let out = &mut self.turns;
        comma(out, !first);
        number(out, "{\"turn\":", row.turn);
        out.extend_from_slice(b",\"run_id\":");
        quote(out, row.run_id);
        out.extend_from_slice(b",\"trigger\":");
        quote(out, row.trigger);
        number(out, ",\"seq\":", row.seq);
        number(out, ",\"started_ms\":", row.started_ms);
        number(out, ",\"ended_ms\":", row.ended_ms);
        out.extend_from_slice(b",\"persisted\":");
        out.extend_from_slice(if row.open { b"false" } else { b"true" });
        out.extend_from_slice(b",\"superseded\":");
        out.extend_from_slice(if row.superseded { b"true" } else { b"false" });
        out.extend_from_slice(b",\"closed\":");
        match row.closed {
            Some(code) => quote(out, code),
            None => out.extend_from_slice(b"null"),
        }
        number(out, ",\"messages\":", row.messages);
        out.extend_from_slice(b",\"events\":");
        out.extend_from_slice(row.events);
        out.push(b'}');
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.turns.len()
    }

    /// The whole body. `next` is the number of the last turn on this page, if there are more behind it.
    pub fn finish(self, next: Option<u64>) -> Vec<u8> {
        let mut out = self.head;
        out.extend_from_slice(b"],\"turns\":[");
        out.extend_from_slice(&self.turns);
        match next {
            Some(turn) => number(&mut out, "],\"next\":", turn),
            None => out.extend_from_slice(b"],\"next\":null"),
        }
        out.push(b'}');
        out
    }
}

fn comma(out: &mut Vec<u8>, wanted: bool) {
    if wanted {
        out.push(b',');
    }
}

fn number(out: &mut Vec<u8>, head: &str, value: u64) {
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a string. Writing into memory can't fail; were it to, an empty string keeps the body valid.
fn quote(out: &mut Vec<u8>, text: &str) {
    let quoted = serde_json::to_vec(text);
    out.extend_from_slice(quoted.as_deref().unwrap_or(b"\"\""));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::id::ChatId;

    #[test]
    fn a_list_names_where_it_goes_on() {
        let row =
            |chat: &str| ChatRow { chat: chat.into(), revision: 7, turns: 2, created_ms: 1, changed_ms: 9 };
        let mark = PageMark { changed_wall_ms: 9, chat: ChatId::parse("b\"").unwrap() };
        assert_eq!(
            String::from_utf8(chats(&[row("a"), row("b\"")], Some(&mark))).unwrap(),
            r#"{"chats":[{"chat_id":"a","revision":7,"turns":2,"created_ms":1,"changed_ms":9},"#.to_owned()
                + r#"{"chat_id":"b\"","revision":7,"turns":2,"created_ms":1,"changed_ms":9}],"#
                + r#""next":{"changed_ms":9,"chat_id":"b\""}}"#
        );
        assert_eq!(chats(&[], None), br#"{"chats":[],"next":null}"#);
    }

    #[test]
    fn an_interrupted_turn_is_marked() {
        let mut page = ChatPage::new("c", 3);
        for (turn, closed, superseded) in [(1, None, false), (2, Some("stopped"), true)] {
            page.turn(&TurnRow {
                turn,
                run_id: "R",
                trigger: "user",
                seq: 5,
                started_ms: 1,
                ended_ms: 2,
                superseded,
                closed,
                messages: 1,
                events: br#"[{"type":"X"}]"#,
                open: false,
            });
            page.message(br#"{"id":"m"}"#);
        }
        let bytes = page.bytes();
        let text = String::from_utf8(page.finish(Some(2))).unwrap();
        assert_eq!(bytes + r#"],"turns":[],"next":2}"#.len(), text.len());
        assert_eq!(
            text,
            r#"{"chat_id":"c","revision":3,"messages":[{"id":"m"},{"id":"m"}],"turns":["#.to_owned()
                + r#"{"turn":1,"run_id":"R","trigger":"user","seq":5,"started_ms":1,"ended_ms":2,"#
                + r#""persisted":true,"superseded":false,"closed":null,"messages":1,"events":[{"type":"X"}]},"#
                + r#"{"turn":2,"run_id":"R","trigger":"user","seq":5,"started_ms":1,"ended_ms":2,"#
                + r#""persisted":true,"superseded":true,"closed":"stopped","messages":1,"events":[{"type":"X"}]}],"next":2}"#
        );
    }
}
