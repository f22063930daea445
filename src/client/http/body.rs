//! The body of an answer, however its end is marked (RFC 9112, section 6.3).

use std::io::{self, ErrorKind};

use super::{Input, field, no_http};

/// A line between chunks, in bytes: a size with a few extensions.
const LINE_BYTES_MAX: usize = 4 << 10;

/// How far a body is read.
#[derive(Debug)]
pub(super) enum Body {
    /// So many bytes are left.
    Length(u64),
    /// Chunks.
    Chunked(Place),
    /// All that comes until the connection is closed.
    UntilClose,
}

/// Where in the chunks the next byte stands.
#[derive(Debug)]
pub(super) enum Place {
    /// Before the line with a chunk's size.
    Size,
    /// In a chunk, with so many bytes left.
    Data(u64),
    /// Behind a chunk's data, before its line end.
    DataEnd,
    /// Behind the last chunk.
    Trailer,
    /// Behind the end.
    End,
}

impl Body {
    /// How the body's end is marked, by the head of the answer.
    pub(super) fn of(status: u16, fields: &[httparse::Header<'_>]) -> io::Result<Body> {
        if status < 200 || status == 204 || status == 304 {
            return Ok(Body::Length(0));
        }
        if let Some(coding) = field(fields, "transfer-encoding") {
            let chunked = coding.trim().eq_ignore_ascii_case("chunked");
            return if chunked { Ok(Body::Chunked(Place::Size)) } else { Err(no_http()) };
        }
        match field(fields, "content-length") {
            Some(length) => length.trim().parse().map(Body::Length).map_err(|_| no_http()),
            None => Ok(Body::UntilClose),
        }
    }

    /// Where in the input's buffer the next bytes of the body are; an empty range: the body is complete.
    pub(super) fn piece(&mut self, input: &mut Input) -> io::Result<(usize, usize)> {
        match self {
            Body::Length(left) => take(input, left),
            Body::Chunked(place) => chunked(place, input),
            Body::UntilClose => {
                let mut endless = u64::MAX;
                match take(input, &mut endless) {
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok((0, 0)),
                    piece => piece,
                }
            }
        }
    }
}

/// Takes what is there of the bytes that are left, and waits if nothing is.
fn take(input: &mut Input, left: &mut u64) -> io::Result<(usize, usize)> {
    if *left > 0 && input.rest().is_empty() {
        input.more()?;
    }
    let length = input.rest().len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    let from = input.taken;
    input.taken += length;
    *left -= length as u64;
    Ok((from, input.taken))
}

fn chunked(place: &mut Place, input: &mut Input) -> io::Result<(usize, usize)> {
    loop {
        *place = match place {
            Place::Size => match size(line(input)?)? {
                0 => Place::Trailer,
                size => Place::Data(size),
            },
            Place::Data(0) => Place::DataEnd,
            Place::Data(left) => return take(input, left),
            Place::DataEnd if line(input)?.is_empty() => Place::Size,
            Place::DataEnd => return Err(no_http()),
            Place::Trailer if line(input)?.is_empty() => Place::End,
            Place::Trailer => Place::Trailer,
            Place::End => return Ok((0, 0)),
        }
    }
}

/// Takes a line; its end is not part of it.
fn line(input: &mut Input) -> io::Result<&[u8]> {
    let length = loop {
        match memchr::memchr(b'\n', input.rest()) {
            Some(length) if length <= LINE_BYTES_MAX => break length,
            None if input.rest().len() <= LINE_BYTES_MAX => input.more()?,
            Some(_) | None => return Err(no_http()),
        }
    };
    let from = input.taken;
    input.taken += length + 1;
    let line = input.buffer.get(from..from + length).unwrap_or_default();
    Ok(line.strip_suffix(b"\r").unwrap_or(line))
}

/// The size of a chunk; extensions don't matter.
fn size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = std::str::from_utf8(digits).map_err(|_| no_http())?;
    if text.starts_with('+') {
        return Err(no_http());
    }
    u64::from_str_radix(text, 16).map_err(|_| no_http())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::super::Answer;
    use super::*;

    /// Reads an answer that comes in two pieces, cut at every place in turn.
    fn check(bytes: &str, expected: Result<&str, ErrorKind>) {
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.as_bytes().split_at(cut);
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(first).unwrap();
            let second = second.to_vec();
            let writer = std::thread::spawn(move || {
                // Who has found a fault does not read on.
                let _ = server.write_all(&second);
            });
            let body = Answer::read(client).and_then(|mut answer| answer.whole());
            writer.join().unwrap();
            let body = body.map(|body| String::from_utf8(body).unwrap());
            assert_eq!(body.map_err(|error| error.kind()), expected.map(str::to_owned), "{bytes:?} at {cut}");
        }
    }

    #[test]
    fn a_body_ends_in_three_ways() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", Ok("abc"));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
            Ok("ab0123456789"),
        );
        check("HTTP/1.0 200 OK\r\n\r\nabc", Ok("abc"));
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Ok(""));
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        let cut = Err(ErrorKind::UnexpectedEof);
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", cut);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", cut);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", cut);
        check("HTTP/1.1 200 OK\r\nContent-Le", cut);
    }

    #[test]
    fn what_is_no_http_is_an_error() {
        let fault = Err(ErrorKind::InvalidData);
        check("SSH-2.0-x\r\n", fault);
        check("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", fault);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", fault);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", fault);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", fault);
    }
}
