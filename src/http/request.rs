//! The requests of one connection: bytes in, heads and pieces of bodies out.
//!
//! A body is never gathered: its pieces are borrowed from the input, chunked coding taken off. Of a head only the
//! part that has arrived is kept. A request cut at every byte gives the same steps as one that comes in one piece.

use super::Reject;
use super::chunked::{Chunked, split_data, too_large};
use super::head::{BodyFraming, Head};
use super::scan::HeadScan;

/// What the next bytes are.
#[derive(Debug)]
pub enum Step<'a> {
    /// All of the input was taken, and more is needed to tell anything.
    NeedMore,
    /// A request begins; its body, if any, and in any case [`Step::End`] follow.
    Head(Box<Head>),
    /// A piece of the body, never empty.
    Body(&'a [u8]),
    /// The body is whole (or there was none): the next bytes are another request.
    End,
}

/// The machine that reads one connection's requests, in order.
pub struct Requests {
    state: State,
    scan: HeadScan,
    /// The part of an unfinished head that has arrived: at most `HEAD_BYTES_MAX`.
    kept: Vec<u8>,
    /// Longest body of the current request.
    body_max: u64,
    /// Bytes copied and parsed, for the test that work is linear.
    #[cfg(test)]
    work: usize,
}

enum State {
    Head,
    Length {
        declared: u64,
        /// Always more than 0.
        left: u64,
    },
    Chunked(Chunked),
    /// The body is whole, and that is still to be told.
    Ending,
    Rejected(Reject),
}

impl Requests {
    /// The machine of a fresh connection.
    #[expect(clippy::new_without_default, reason = "a fresh connection is no empty value")]
    pub fn new() -> Requests {
        Requests {
            state: State::Head,
            scan: HeadScan::new(),
            kept: Vec::new(),
            body_max: u64::MAX,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Takes a prefix of the input and tells its length and what it is. Call again with the rest until
    /// [`Step::NeedMore`], which always takes everything. A refusal is final: every later call repeats it.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Step<'a>), Reject> {
        let step = match &mut self.state {
            State::Head => self.next_head(input),
            State::Length { .. } => self.next_data(input),
            State::Chunked(chunked) => chunked.next(input, self.body_max),
            State::Ending => Ok((0, Step::End)),
            State::Rejected(reject) => Err(reject.clone()),
        };
        match &step {
            Ok((_, Step::End)) => self.state = State::Head,
            Ok(_) => {}
            Err(reject) => {
                self.state = State::Rejected(reject.clone());
                self.kept = Vec::new();
            }
        }
        step
    }

    /// Bounds the body of the request whose head came last; without a call it is unbounded (nothing of it is kept
    /// here). A longer one is refused with 413 by the next call of [`Requests::next`], as soon as its length shows.
    pub fn set_body_max(&mut self, bytes: u64) {
        self.body_max = bytes;
    }

    /// Whether a head has begun or a body isn't complete: then the end of the connection breaks a request off.
    pub fn mid_request(&self) -> bool {
        match &self.state {
            State::Head => self.scan.begun(),
            State::Length { .. } | State::Chunked(_) => true,
            State::Ending | State::Rejected(_) => false,
        }
    }

    /// Bytes of heads scanned, kept and parsed so far.
    #[cfg(test)]
    pub(super) fn work(&self) -> usize {
        self.work
    }

    fn next_head<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Step<'a>), Reject> {
        let found = self.scan.feed(input)?;
        let part = input.get(found.start..found.end.unwrap_or(input.len())).unwrap_or_default();
        let whole_in_input = found.end.is_some() && self.kept.is_empty();
        if !whole_in_input {
            self.kept.extend_from_slice(part);
            #[cfg(test)]
            {
                self.work += part.len();
            }
        }
        let Some(end) = found.end else { return Ok((input.len(), Step::NeedMore)) };
        let kept = std::mem::take(&mut self.kept);
        let bytes = if whole_in_input { part } else { &kept };
        #[cfg(test)]
        {
            self.work += bytes.len() + std::mem::take(&mut self.scan.work);
        }
        let head = Head::parse(bytes)?;
        self.scan = HeadScan::new();
        self.body_max = u64::MAX;
        self.state = match head.body {
            BodyFraming::None | BodyFraming::Length(0) => State::Ending,
            BodyFraming::Length(declared) => State::Length { declared, left: declared },
            BodyFraming::Chunked => State::Chunked(Chunked::new()),
        };
        Ok((end, Step::Head(Box::new(head))))
    }

    fn next_data<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Step<'a>), Reject> {
        let State::Length { declared, left } = &mut self.state else { return Ok((0, Step::NeedMore)) };
        if *declared > self.body_max {
            return Err(too_large(self.body_max));
        }
        if input.is_empty() {
            return Ok((0, Step::NeedMore));
        }
        let (data, taken) = split_data(input, *left);
        *left -= taken;
        if *left == 0 {
            self.state = State::Ending;
        }
        Ok((data.len(), Step::Body(data)))
    }
}
