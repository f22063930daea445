//! JSON Patch (RFC 6902) on nodes, as ACTIVITY_DELTA uses it: all operations or, at the first that fails, none.
//!
//! A patch comes from a peer: its paths are bounded in depth, and its work by a budget that the whole turn shares.

use super::json::{Event, Node, decoded, elements, member, remove, set};
use std::borrow::Cow;

/// Deepest path that is followed, and deepest nesting that moving opened values may build, in steps: a node is
/// written and dropped by recursion, which this bounds.
const PATH_DEPTH_MAX: usize = 128;

/// What one turn may spend on patches and merges, in members passed and bytes copied: about a second. Without it a
/// few thousand `copy` operations, each doubling a value, would fill the memory.
const TURN_STEPS_MAX: usize = 64 << 20;

/// What is left of the turn's allowance.
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Budget(TURN_STEPS_MAX)
    }
}

impl Budget {
    /// Takes `steps` from the allowance; `None`, and nothing taken, when there aren't as many left.
    pub(super) fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// The patched value, or `None` if an operation can't be carried out.
pub(super) fn patched<'a>(value: &Node<'a>, patch: &'a str, budget: &mut Budget) -> Option<Node<'a>> {
    budget.spend(value.count())?;
    let mut value = value.clone();
    for raw in elements(patch)? {
        operate(&mut value, &Event::parse(raw)?, budget)?;
    }
    Some(value)
}

/// Carries out one operation.
fn operate<'a>(root: &mut Node<'a>, operation: &Event<'a>, budget: &mut Budget) -> Option<()> {
    let path = Pointer::parse(operation.text("path")?)?;
    let value = || operation.raw("value").map(Node::raw);
    match &*decoded(operation.text("op")?) {
        b"add" => add(root, &path, value()?, budget),
        b"replace" => {
            *find(root, &path.0, budget)? = value()?;
            Some(())
        }
        b"remove" => take(root, &path, budget).map(drop),
        b"move" => {
            let from = Pointer::parse(operation.text("from")?)?;
            let value = take(root, &from, budget)?;
            add(root, &path, value, budget)
        }
        b"copy" => {
            let from = Pointer::parse(operation.text("from")?)?;
            let source = find(root, &from.0, budget)?;
            budget.spend(source.weight())?;
            let value = source.clone();
            add(root, &path, value, budget)
        }
        b"test" => {
            let found = find(root, &path.0, budget)?;
            budget.spend(found.weight())?;
            same(found, &value()?).then_some(())
        }
        _ => None,
    }
}

/// A JSON Pointer (RFC 6901): decoded steps from the root.
struct Pointer(Vec<Vec<u8>>);

impl Pointer {
    fn parse(raw: &str) -> Option<Pointer> {
        let text = decoded(raw);
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let steps = text.strip_prefix(b"/")?.split(|byte| *byte == b'/');
        let steps: Vec<Vec<u8>> = steps.take(PATH_DEPTH_MAX + 1).map(unescaped_step).collect();
        (steps.len() <= PATH_DEPTH_MAX).then_some(Pointer(steps))
    }
}

/// `~1` is a slash and `~0` a tilde.
fn unescaped_step(step: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(step.len());
    let mut bytes = step.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = match (byte, bytes.peek()) {
            (b'~', Some(b'0')) => Some(b'~'),
            (b'~', Some(b'1')) => Some(b'/'),
            _ => None,
        };
        if escaped.is_some() {
            bytes.next();
        }
        plain.push(escaped.unwrap_or(byte));
    }
    plain
}

/// The array index that a step means.
fn index(step: &[u8]) -> Option<usize> {
    let digits = step.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(step).ok().filter(|_| digits)?.parse().ok()
}

/// The value that the steps lead to.
fn find<'n, 'a>(root: &'n mut Node<'a>, steps: &[Vec<u8>], budget: &mut Budget) -> Option<&'n mut Node<'a>> {
    let mut node = root;
    for step in steps {
        budget.spend(step.len() + 1)?;
        if let Node::Raw(raw) = node {
            budget.spend(raw.len())?;
        }
        node = if node.array().is_some() {
            node.array()?.get_mut(index(step)?)?
        } else {
            let members = node.object()?;
            budget.spend(members.len())?;
            member(members, step)?
        };
    }
    Some(node)
}

fn add<'a>(root: &mut Node<'a>, path: &Pointer, value: Node<'a>, budget: &mut Budget) -> Option<()> {
    let Some((last, parents)) = path.0.split_last() else {
        *root = value;
        return Some(());
    };
    budget.spend(value.count())?;
    if path.0.len() + value.depth() > PATH_DEPTH_MAX {
        return None;
    }
    let parent = find(root, parents, budget)?;
    if let Some(elements) = parent.array() {
        let at = if last == b"-" { elements.len() } else { index(last)? };
        budget.spend(elements.len())?;
        if at > elements.len() {
            return None;
        }
        elements.insert(at, value);
    } else {
        let members = parent.object()?;
        budget.spend(members.len())?;
        let name = serde_json::to_string(std::str::from_utf8(last).ok()?).ok()?;
        set(members, Cow::Owned(name), value);
    }
    Some(())
}

fn take<'a>(root: &mut Node<'a>, path: &Pointer, budget: &mut Budget) -> Option<Node<'a>> {
    let Some((last, parents)) = path.0.split_last() else {
        return Some(std::mem::replace(root, Node::raw("null")));
    };
    let parent = find(root, parents, budget)?;
    if let Some(elements) = parent.array() {
        let at = index(last)?;
        budget.spend(elements.len())?;
        (at < elements.len()).then(|| elements.remove(at))
    } else {
        let members = parent.object()?;
        budget.spend(members.len())?;
        remove(members, last)
    }
}

/// Whether two values are equal as RFC 6902 defines it for `test`. Values that can't be decoded (lone surrogates,
/// nested deeper than serde_json follows) are equal to nothing.
fn same(left: &Node<'_>, right: &Node<'_>) -> bool {
    let parsed = |node: &Node<'_>| {
        let mut text = Vec::new();
        node.write(&mut text);
        serde_json::from_slice::<serde_json::Value>(&text).ok()
    };
    match (parsed(left), parsed(right)) {
        (Some(left), Some(right)) => equal(&left, &right),
        _ => false,
    }
}

/// Equality that holds 1 and 1.0 for the same number, as RFC 6902 wants it.
fn equal(left: &serde_json::Value, right: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies `patch` to `value` and compares; an empty `want` says that the patch must fail.
    fn check(value: &str, patch: &str, want: &str) {
        let mut out = Vec::new();
        if let Some(node) = patched(&Node::raw(value), patch, &mut Budget::default()) {
            node.write(&mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), want, "{patch} on {value}");
    }

    #[test]
    fn operations() {
        for (value, patch, want) in [
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":[2]}]"#, r#"{"a":1,"b":[2]}"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/a","value":null}]"#, r#"{"a":null}"#),
            (r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#, r#"{"a":[1,2,3]}"#),
            (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/-","value":2}]"#, r#"{"a":[1,2]}"#),
            (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/2","value":2}]"#, ""),
            (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/x","value":2}]"#, ""),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b/c","value":2}]"#, ""),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"","value":{"n":1}}]"#, r#"{"n":1}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"/a","value":"x"}]"#, r#"{"a":"x"}"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"/b","value":"x"}]"#, ""),
            (r#"{"a":[1,2,3]}"#, r#"[{"op":"remove","path":"/a/0"}]"#, r#"{"a":[2,3]}"#),
            (r#"{"a":1}"#, r#"[{"op":"remove","path":"/b"}]"#, ""),
            (r#"{"a":{"b":1}}"#, r#"[{"op":"move","from":"/a/b","path":"/c"}]"#, r#"{"a":{},"c":1}"#),
            (r#"{"a":{"b":1}}"#, r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, ""),
            (r#"{"a":[1]}"#, r#"[{"op":"copy","from":"/a","path":"/b"}]"#, r#"{"a":[1],"b":[1]}"#),
            (r#"{"a":1}"#, r#"[{"op":"copy","from":"/x","path":"/b"}]"#, ""),
            (r#"{"a":[1.0]}"#, r#"[{"op":"test","path":"/a","value":[1]}]"#, r#"{"a":[1.0]}"#),
            (r#"{"a":1}"#, r#"[{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}]"#, ""),
            (r#"{"a/b":{"m~n":1}}"#, r#"[{"op":"remove","path":"/a~1b/m~0n"}]"#, r#"{"a/b":{}}"#),
            (r#"{"é":1}"#, r#"[{"op":"replace","path":"/\u00e9","value":2}]"#, r#"{"é":2}"#),
            (r#"{"a":1}"#, r#"[{"op":"explode","path":"/a"}]"#, ""),
            (r#"{"a":1}"#, r#"{"op":"remove","path":"/a"}"#, ""),
            (r#"{"a":1}"#, r#"[{"op":"remove","path":"a"}]"#, ""),
            (r#"{"a":1}"#, "[]", r#"{"a":1}"#),
        ] {
            check(value, patch, want);
        }
    }

    #[test]
    fn a_patch_that_multiplies_what_it_copies_is_refused() {
        let copies = |from: &str, count: usize| {
            let all: Vec<String> =
                (0..count).map(|n| format!(r#"{{"op":"copy","from":"{from}","path":"/x{n}"}}"#)).collect();
            format!("[{}]", all.join(","))
        };
        check(r#"{"text":"0123456789"}"#, &copies("", 64), "");
        let mebibyte = "x".repeat(1 << 20);
        check(&format!(r#"{{"text":"{mebibyte}"}}"#), &copies("/text", 64), "");
    }

    #[test]
    fn a_path_deeper_than_the_bound_is_refused() {
        let deep = |depth: usize| format!("{}0{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let patch =
            |depth: usize| format!(r#"[{{"op":"replace","path":"{}","value":1}}]"#, "/a".repeat(depth));
        check(&deep(PATH_DEPTH_MAX), &patch(PATH_DEPTH_MAX), &deep(PATH_DEPTH_MAX).replace('0', "1"));
        check(&deep(PATH_DEPTH_MAX + 1), &patch(PATH_DEPTH_MAX + 1), "");
    }

    #[test]
    fn moving_opened_values_into_each_other_builds_no_tower() {
        let path = "/a".repeat(PATH_DEPTH_MAX - 1);
        let deep = format!("{}{{}}{}", r#"{"a":"#.repeat(PATH_DEPTH_MAX - 1), "}".repeat(PATH_DEPTH_MAX - 1));
        let open = format!(r#"{{"op":"add","path":"{path}/x","value":1}}"#);
        let first = format!(r#"[{open},{{"op":"copy","from":"/a","path":"{path}/b"}}]"#);
        check(&deep, &first, "");
    }
}
