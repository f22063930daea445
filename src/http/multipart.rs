//! `multipart/form-data` (RFC 7578): a body that is there as a whole, cut into the form's parts.
//!
//! Nothing is copied but names. A delimiter counts only if its line holds nothing else: what merely begins like one is
//! content. What a form's fields mean, and how large a body may be, is decided elsewhere.

mod fault;
mod head;
mod parameters;
#[cfg(test)]
mod tests;

use memchr::memmem;

pub use fault::{MultipartFault, PartFault};

/// Parts of one body: a form has a few fields and the files that a person picked.
pub const PARTS_MAX: usize = 64;

/// Bytes of one part's head: a long file name, twice over, and every character of it escaped.
pub const PART_HEAD_BYTES_MAX: usize = 8 * 1024;

/// Characters of a boundary (RFC 2046, section 5.1.1).
const BOUNDARY_CHARS_MAX: usize = 70;

/// One field of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The field's name. Several parts may have the same.
    pub name: String,
    /// The file's name, if the part is a file, as the client tells it: it may hold slashes, or be no fit name for a
    /// file here.
    pub file_name: Option<String>,
    /// The Content-Type of the content, with its parameters.
    pub content_type: Option<String>,
    /// The content.
    pub bytes: &'a [u8],
}

/// The boundary that a Content-Type names, if it is `multipart/form-data` and the boundary is one (RFC 2046, section
/// 5.1.1).
pub fn boundary(content_type: &str) -> Option<String> {
    let essence = content_type.split(';').next().unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let parameters = parameters::parse(content_type.strip_prefix(essence)?)?;
    let mut boundaries = parameters
        .into_iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("boundary"))
        .map(|(_, value)| value);
    // With two of them, another reader might take the other one.
    match (boundaries.next(), boundaries.next()) {
        (Some(boundary), None) if is_boundary(&boundary) => Some(boundary),
        _ => None,
    }
}

fn is_boundary(text: &str) -> bool {
    (1..=BOUNDARY_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte))
        && !text.ends_with(' ')
}

/// Cuts a body into its parts, in order. What stands before the first delimiter and behind the last is ignored.
pub fn parts<'a>(body: &'a [u8], boundary: &str) -> Result<Vec<Part<'a>>, MultipartFault> {
    let delimiters = Delimiters::new(body, boundary);
    let mut delimiter = delimiters.first().ok_or(MultipartFault::NoStart)?;
    let mut parts = Vec::new();
    while !delimiter.last {
        if parts.len() == PARTS_MAX {
            return Err(MultipartFault::TooManyParts);
        }
        let next = delimiters.next(delimiter.end).ok_or(MultipartFault::NoEnd)?;
        let bytes = body.get(delimiter.end..next.start).unwrap_or_default();
        let at_fault = |fault| MultipartFault::Part { part: parts.len() + 1, fault };
        parts.push(head::part(bytes).map_err(at_fault)?);
        delimiter = next;
    }
    Ok(parts)
}

/// A line that begins or ends a part.
#[derive(Clone, Copy)]
struct Delimiter {
    /// Where it begins. The CR LF in front of it belongs to it, not to the content.
    start: usize,
    /// Where it ends, behind its own CR LF.
    end: usize,
    /// Whether no part follows.
    last: bool,
}

struct Delimiters<'a> {
    body: &'a [u8],
    /// Looks for CR LF, two dashes and the boundary.
    finder: memmem::Finder<'static>,
}

impl<'a> Delimiters<'a> {
    fn new(body: &'a [u8], boundary: &str) -> Delimiters<'a> {
        let finder = memmem::Finder::new(&format!("\r\n--{boundary}")).into_owned();
        Delimiters { body, finder }
    }

    /// The first delimiter: nothing need stand before it, not even the CR LF.
    fn first(&self) -> Option<Delimiter> {
        let line = self.finder.needle().strip_prefix(b"\r\n").unwrap_or_default();
        let at_start = self.body.strip_prefix(line).and_then(line_end);
        match at_start {
            Some((length, last)) => Some(Delimiter { start: 0, end: line.len() + length, last }),
            None => self.next(0),
        }
    }

    /// The first delimiter that begins at `from` or behind it.
    fn next(&self, mut from: usize) -> Option<Delimiter> {
        loop {
            let start = from + self.finder.find(self.body.get(from..)?)?;
            let behind = start + self.finder.needle().len();
            if let Some((length, last)) = line_end(self.body.get(behind..)?) {
                return Some(Delimiter { start, end: behind + length, last });
            }
            from = start + 1;
        }
    }
}

/// The length of what may stand behind a boundary on its line, the line's end included, and whether it was the last
/// boundary: two dashes, then white space that some gateway added. Only the last line may go without an end.
fn line_end(bytes: &[u8]) -> Option<(usize, bool)> {
    let (rest, last) = match bytes.strip_prefix(b"--") {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let dashes = bytes.len() - rest.len();
    match rest.get(blank..)? {
        [b'\r', b'\n', ..] => Some((dashes + blank + 2, last)),
        [] if last => Some((dashes + blank, last)),
        _ => None,
    }
}
