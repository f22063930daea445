//! The second opinion on JSON: serde_json's, on the same bytes.

use std::fmt;

use rejoin::limits::JSON_DEPTH_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object as they are written: key with its quotes, and value.
pub(crate) type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// The members, if the bytes are an object that is not nested too deep.
pub(crate) fn object(bytes: &[u8]) -> Option<Pairs<'_>> {
    let Object(pairs) = serde_json::from_slice(bytes).ok()?;
    (depth(bytes) <= JSON_DEPTH_MAX).then_some(pairs)
}

/// The members, if the bytes are an event: the last member `type` is a string.
pub(crate) fn event(bytes: &[u8]) -> Option<Pairs<'_>> {
    let pairs = object(bytes)?;
    let kind = pairs.iter().rev().find(|(key, _)| text(key).as_deref() == Some("type"))?;
    kind.1.starts_with('"').then_some(pairs)
}

/// The string that is meant, unless it holds half a surrogate pair.
pub(crate) fn text(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// Levels of nesting of valid JSON.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

struct Object<'a>(Pairs<'a>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    pairs.push((key.get(), value.get()));
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
