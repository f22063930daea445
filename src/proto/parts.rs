//! Which parts of an answer are open, and whether the agent's own run is over: what has to be appended to close a
//! run so that its events stay a sequence that AG-UI accepts.

use std::collections::BTreeMap;

use crate::proto::event::{Mark, Part};

/// The last event about the agent's run itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// None came yet.
    #[default]
    None,
    /// It goes on.
    Started,
    /// It ended well.
    Finished,
    /// It failed.
    Failed,
}

/// Open parts of a run's answer.
#[derive(Debug, Default)]
pub struct Parts {
    level: Level,
    /// Open parts with their number in order of opening.
    open: BTreeMap<(Part, Box<[u8]>), u64>,
    opened: u64,
}

/// How the producer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It said that it is done.
    ByItself,
    /// It failed, vanished, was stopped or cut off.
    Broken,
}

/// What is appended to close a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Closing {
    /// The parts to end, the last opened first.
    pub parts: Vec<(Part, Box<[u8]>)>,
    /// Whether an error event follows.
    pub error: bool,
}

impl Parts {
    /// Takes note of an event.
    pub fn note(&mut self, mark: &Mark<'_>) {
        match mark {
            Mark::RunStarted => {
                if matches!(self.level, Level::Finished | Level::Failed) {
                    self.open.clear();
                }
                self.level = Level::Started;
            }
            Mark::RunFinished => self.level = Level::Finished,
            Mark::RunError => self.level = Level::Failed,
            Mark::Opened(part, id) => {
                self.opened += 1;
                self.open.insert((*part, Box::from(&**id)), self.opened);
            }
            Mark::Closed(part, id) => {
                self.open.remove(&(*part, Box::from(&**id)));
            }
            Mark::TaggedChunk | Mark::Plain => {}
        }
    }

    /// The last event about the agent's run.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What has to be appended now that the producer is done.
    pub fn closing(&self, ending: Ending) -> Closing {
        let nothing = Closing { parts: Vec::new(), error: false };
        match (self.level, ending) {
            (Level::Failed, _) | (Level::Finished | Level::None, Ending::ByItself) => nothing,
            (Level::Finished, Ending::Broken) => Closing { error: true, ..nothing },
            (Level::Started, _) | (Level::None, Ending::Broken) => {
                let mut parts: Vec<_> =
                    self.open.iter().map(|(part, number)| (*number, part.clone())).collect();
                parts.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
                Closing { parts: parts.into_iter().map(|(_, part)| part).collect(), error: true }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(marks: &[Mark<'_>]) -> Parts {
        let mut parts = Parts::default();
        for mark in marks {
            parts.note(mark);
        }
        parts
    }

    fn id(text: &str) -> std::borrow::Cow<'_, [u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn closing_depends_on_the_last_run_level_event() {
        use Ending::{Broken, ByItself};
        use Mark::{RunError, RunFinished, RunStarted};
        let cases: &[(&[Mark<'_>], Ending, bool)] = &[
            (&[], ByItself, false),
            (&[], Broken, true),
            (&[RunStarted], ByItself, true),
            (&[RunStarted], Broken, true),
            (&[RunStarted, RunFinished], ByItself, false),
            (&[RunStarted, RunFinished], Broken, true),
            (&[RunStarted, RunError], ByItself, false),
            (&[RunStarted, RunError], Broken, false),
            (&[RunStarted, RunFinished, RunStarted], ByItself, true),
        ];
        for (marks, ending, error) in cases {
            assert_eq!(noted(marks).closing(*ending).error, *error, "{marks:?} {ending:?}");
        }
    }

    #[test]
    fn open_parts_are_ended_inside_out() {
        let parts = noted(&[
            Mark::RunStarted,
            Mark::Opened(Part::ReasoningSpan, id("r")),
            Mark::Opened(Part::ReasoningMessage, id("r")),
            Mark::Opened(Part::Text, id("m")),
            Mark::Closed(Part::Text, id("m")),
            Mark::Opened(Part::ToolCall, id("t")),
        ]);
        let expected = vec![
            (Part::ToolCall, Box::from(&b"t"[..])),
            (Part::ReasoningMessage, Box::from(&b"r"[..])),
            (Part::ReasoningSpan, Box::from(&b"r"[..])),
        ];
        assert_eq!(parts.closing(Ending::ByItself).parts, expected);
    }

    #[test]
    fn a_finished_run_with_open_parts_gets_no_late_ends() {
        let parts = noted(&[Mark::RunStarted, Mark::Opened(Part::Text, id("m")), Mark::RunFinished]);
        assert_eq!(parts.closing(Ending::Broken).parts, vec![]);
    }
}
