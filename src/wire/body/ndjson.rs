//! Newline-delimited JSON: one event per line, in LF or CR LF; blank lines are skipped.

use memchr::memchr;

use super::kept::Kept;
use super::{BOM, BodyFault, Cut, CutBytes, is_blank, take};

/// How far the cutting of lines is. The beginning of an unfinished line is in `Kept`, without its last CR.
pub(super) struct Ndjson {
    /// Number of the line that is read.
    line: u64,
    /// The unfinished line has a CR behind what is kept: the line end's, or a byte of the line if more follows.
    cr: bool,
}

impl Ndjson {
    pub(super) fn new() -> Ndjson {
        Ndjson { line: 1, cr: false }
    }

    /// Whether nothing of a line is kept.
    pub(super) fn begins_line(&self, kept: &Kept) -> bool {
        kept.is_empty() && !self.cr
    }

    pub(super) fn pass_lines(&mut self, lines: u64) {
        self.line += lines;
    }

    pub(super) fn next<'i>(
        &mut self,
        kept: &mut Kept,
        input: &mut &'i [u8],
    ) -> Result<Option<Cut<'i>>, BodyFault> {
        while let Some(end) = memchr(b'\n', input) {
            let piece = take(input, end);
            take(input, 1);
            let whole_in_input = kept.is_empty() && !self.cr;
            let bytes = if whole_in_input {
                let text = piece.strip_suffix(b"\r").unwrap_or(piece);
                kept.check(text.len(), self.line)?;
                let text = if self.line == 1 { text.strip_prefix(BOM).unwrap_or(text) } else { text };
                (!is_blank(text)).then_some(CutBytes::Input(text))
            } else {
                self.keep(kept, piece)?;
                self.finish_kept(kept)
            };
            let line = self.line;
            self.line += 1;
            if let Some(bytes) = bytes {
                return Ok(Some(Cut { bytes, line }));
            }
        }
        let rest = take(input, input.len());
        self.keep(kept, rest)?;
        Ok(None)
    }

    /// The last line may lack its line end.
    pub(super) fn finish(&mut self, kept: &mut Kept) -> Result<Option<Cut<'static>>, BodyFault> {
        Ok(self.finish_kept(kept).map(|bytes| Cut { bytes, line: self.line }))
    }

    /// Keeps a piece of an unfinished line, but for a CR at its end, which may turn out to be the line end's.
    fn keep(&mut self, kept: &mut Kept, piece: &[u8]) -> Result<(), BodyFault> {
        if piece.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.cr) {
            kept.append(b"\r", self.line)?;
        }
        let text = piece.strip_suffix(b"\r").unwrap_or(piece);
        self.cr = text.len() < piece.len();
        kept.append(text, self.line)
    }

    fn finish_kept(&mut self, kept: &mut Kept) -> Option<CutBytes<'static>> {
        self.cr = false;
        if self.line == 1 && kept.bytes().starts_with(BOM) {
            kept.drop_front(BOM.len());
        }
        if is_blank(kept.bytes()) {
            kept.clear();
            return None;
        }
        Some(CutBytes::Kept)
    }
}
