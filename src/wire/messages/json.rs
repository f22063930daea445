//! A *node* is a JSON value that is opened only where something in it changes; everything else stays the slice of
//! text that the producer wrote.
//!
//! Nothing here decodes a string for output: half a surrogate pair, a number of thirty digits and a thousand nested
//! brackets pass through as they came. Strings are decoded only to be compared, as WTF-8, where a lone half is legal.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The members of an object: names as written, with their quotes. Of a repeated name the last one counts, as in
/// JavaScript.
pub(super) type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    /// One value as written.
    Raw(Cow<'a, str>),
    /// A string that grows: escaped fragments without the quotes. Joining the escaped forms joins the strings.
    Text(Vec<&'a str>),
    /// An opened object.
    Object(Members<'a>),
    /// An opened array.
    Array(Vec<Node<'a>>),
}

impl<'a> Node<'a> {
    /// A value as written.
    pub(super) fn raw(raw: &'a str) -> Node<'a> {
        Node::Raw(Cow::Borrowed(raw))
    }

    /// The value's members, if it is an object.
    pub(super) fn object(&mut self) -> Option<&mut Members<'a>> {
        if let Node::Raw(Cow::Borrowed(raw)) = *self {
            let opened = members(raw)?;
            *self = Node::Object(
                opened.into_iter().map(|(name, value)| (Cow::Borrowed(name), Node::raw(value))).collect(),
            );
        }
        match self {
            Node::Object(members) => Some(members),
            Node::Raw(_) | Node::Text(_) | Node::Array(_) => None,
        }
    }

    /// The value's elements, if it is an array.
    pub(super) fn array(&mut self) -> Option<&mut Vec<Node<'a>>> {
        if let Node::Raw(Cow::Borrowed(raw)) = *self {
            *self = Node::Array(elements(raw)?.into_iter().map(Node::raw).collect());
        }
        match self {
            Node::Array(elements) => Some(elements),
            Node::Raw(_) | Node::Text(_) | Node::Object(_) => None,
        }
    }

    /// Appends an escaped fragment. What isn't a string counts as the empty one.
    pub(super) fn append(&mut self, fragment: &'a str) {
        match self {
            Node::Text(fragments) => fragments.push(fragment),
            Node::Raw(Cow::Borrowed(raw)) => *self = Node::Text(vec![inner(raw).unwrap_or(""), fragment]),
            Node::Raw(Cow::Owned(_)) | Node::Object(_) | Node::Array(_) => *self = Node::Text(vec![fragment]),
        }
    }

    /// Number of nodes: what cloning costs.
    pub(super) fn count(&self) -> usize {
        match self {
            Node::Raw(_) => 1,
            Node::Text(fragments) => fragments.len(),
            Node::Object(members) => 1 + members.iter().map(|(_, value)| value.count()).sum::<usize>(),
            Node::Array(elements) => 1 + elements.iter().map(Node::count).sum::<usize>(),
        }
    }

    /// How deep the value is opened.
    pub(super) fn depth(&self) -> usize {
        match self {
            Node::Raw(_) | Node::Text(_) => 0,
            Node::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            Node::Array(elements) => 1 + elements.iter().map(Node::depth).max().unwrap_or(0),
        }
    }

    /// Length in bytes when written, or slightly more.
    pub(super) fn weight(&self) -> usize {
        match self {
            Node::Raw(raw) => raw.len(),
            Node::Text(fragments) => 2 + fragments.iter().map(|fragment| fragment.len()).sum::<usize>(),
            Node::Object(members) => {
                2 + members.iter().map(|(name, value)| name.len() + value.weight() + 2).sum::<usize>()
            }
            Node::Array(elements) => 2 + elements.iter().map(|element| element.weight() + 1).sum::<usize>(),
        }
    }

    /// Writes the value. The recursion is as deep as the node was opened, which [`super::patch`] bounds.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Node::Raw(raw) => out.extend_from_slice(raw.as_bytes()),
            Node::Text(fragments) => {
                out.push(b'"');
                for fragment in fragments {
                    out.extend_from_slice(fragment.as_bytes());
                }
                out.push(b'"');
            }
            Node::Object(members) => write_members(members, out),
            Node::Array(elements) => {
                out.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    element.write(out);
                }
                out.push(b']');
            }
        }
    }
}

/// Writes an object.
pub(super) fn write_members(members: &Members<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        value.write(out);
    }
    out.push(b'}');
}

/// The member of that (decoded) name.
pub(super) fn member<'m, 'a>(members: &'m mut Members<'a>, name: &[u8]) -> Option<&'m mut Node<'a>> {
    members.iter_mut().rev().find(|(raw, _)| is(raw, name)).map(|(_, value)| value)
}

/// Sets a member, in its place if there is one of that name. `name` is as written, with its quotes.
pub(super) fn set<'a>(members: &mut Members<'a>, name: Cow<'a, str>, value: Node<'a>) {
    match member(members, &decoded(&name)) {
        Some(old) => *old = value,
        None => members.push((name, value)),
    }
}

/// Removes a member, however often it is repeated; returns the one that counted.
pub(super) fn remove<'a>(members: &mut Members<'a>, name: &[u8]) -> Option<Node<'a>> {
    let mut last = None;
    while let Some(index) = members.iter().rposition(|(raw, _)| is(raw, name)) {
        let (_, value) = members.remove(index);
        last = last.or(Some(value));
    }
    last
}

/// One AG-UI event (or a message, or a patch operation): an object whose members are looked up, never changed.
pub(super) struct Event<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Event<'a> {
    /// Reads an object; `None` if the value is something else.
    pub(super) fn parse(raw: &'a str) -> Option<Event<'a>> {
        members(raw).map(Event)
    }

    /// The member's value as written, a null too.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(raw, _)| is(raw, name.as_bytes())).map(|(_, value)| *value)
    }

    /// The member's value as written; a null counts as absent, as it does for every optional AG-UI field.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        self.raw(name).filter(|value| *value != "null")
    }

    /// The member's value as written, with its quotes, if it is a string.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name).filter(|value| value.starts_with('"'))
    }

    /// The members, to be changed.
    pub(super) fn into_members(self) -> Members<'a> {
        self.0.into_iter().map(|(name, value)| (Cow::Borrowed(name), Node::raw(value))).collect()
    }
}

/// A string without its quotes, still escaped; `None` if the value is no string.
pub(super) fn inner(raw: &str) -> Option<&str> {
    raw.strip_prefix('"')?.strip_suffix('"')
}

/// A string's meaning as WTF-8, to compare with.
pub(super) fn decoded(raw: &str) -> Cow<'_, [u8]> {
    match inner(raw) {
        Some(plain) if memchr::memchr(b'\\', plain.as_bytes()).is_none() => Cow::Borrowed(plain.as_bytes()),
        _ => Cow::Owned(unescaped(raw)),
    }
}

/// Whether a string as written means `name`.
pub(super) fn is(raw: &str, name: &[u8]) -> bool {
    *decoded(raw) == *name
}

/// The elements of an array, as written; `None` if the value is something else.
pub(super) fn elements(raw: &str) -> Option<Vec<&str>> {
    let values: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(values.into_iter().map(RawValue::get).collect())
}

/// The members of an object, as written; `None` if the value is something else.
fn members(raw: &str) -> Option<Vec<(&str, &str)>> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(&'de str, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                pairs.push((name.get(), value.get()));
            }
            Ok(pairs)
        }
    }
    serde_json::Deserializer::from_str(raw).deserialize_map(Pairs).ok()
}

/// Decodes a string through serde_json's byte strings, which keep a lone surrogate as WTF-8. What is no string
/// decodes to itself.
fn unescaped(raw: &str) -> Vec<u8> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
    serde_json::Deserializer::from_str(raw)
        .deserialize_bytes(Bytes)
        .unwrap_or_else(|_| raw.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_compared_by_their_meaning() {
        for (raw, meaning) in [
            (r#""m1""#, b"m1".as_slice()),
            (r#""m\u0031""#, b"m1"),
            (r#""\ud83d\ude00""#, "😀".as_bytes()),
            (r#""\ud83d""#, b"\xed\xa0\xbd"),
            (r#""""#, b""),
        ] {
            assert!(is(raw, meaning), "{raw}");
        }
        assert!(!is(r#""m1""#, b"m2"));
    }

    #[test]
    fn nodes_open_where_asked_and_stay_as_written_elsewhere() {
        let text = r#"{"a" : 1.50, "\ud800":[ 123456789012345678901 ,{"x":null}],"a":2}"#;
        let mut node = Node::raw(text);
        let members = node.object().unwrap();
        assert_eq!(member(members, b"a").unwrap().weight(), 1, "the last of a repeated name counts");
        let array = member(members, b"\xed\xa0\x80").unwrap().array().unwrap();
        array.remove(1);
        remove(members, b"a");
        set(members, Cow::Borrowed("\"b\""), Node::Text(vec!["x", r"\n"]));
        let mut out = Vec::new();
        node.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"\ud800":[123456789012345678901],"b":"x\n"}"#);
        assert_eq!((node.count(), node.depth()), (5, 2), "two containers, one number, two fragments");
    }

    #[test]
    fn deep_nesting_is_no_recursion() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Event::parse(&deep).unwrap().value("a").map(str::len), Some(200_000));
    }
}
