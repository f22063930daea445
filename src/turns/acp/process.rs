//! An agent's process: its pipes as channels of lines, and its end. It knows no protocol.
//!
//! The process leads a group of its own, so that what it starts can be ended with it. Nobody but this module reaps it,
//! and until then its id, which names the group too, can't be given to another process.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded, unbounded};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A line of an agent's output, in bytes; images in base64 come as one line. A longer one ends the session.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// Lines read ahead of the turn: enough to keep both sides busy. Then the agent waits at its pipe.
const LINES_AHEAD: usize = 16;

/// A line of an agent's stderr, in bytes; longer ones are logged in pieces.
const WORDS_BYTES_MAX: usize = 8 << 10;

/// Lines of stderr kept for the message that tells of the agent's death.
const LAST_WORDS: usize = 8;

/// An agent whose stdin was closed has this long to leave by itself.
const LEAVE: Duration = Duration::from_millis(200);

/// Stack of the threads at the pipes, in bytes. They only move bytes; formatting a log line takes the most.
const STACK_BYTES: usize = 128 << 10;

/// What an agent's stdout gives. Its end is the end of the channel.
#[derive(Debug)]
pub(super) enum Output {
    /// A line without its line break.
    Line(Vec<u8>),
    /// A line of more than [`LINE_BYTES_MAX`]; nothing is read after it.
    TooLong,
}

/// How an agent ended.
#[derive(Debug)]
pub(super) struct Farewell {
    /// Its exit status; none if it only closed its output and was ended from here.
    pub(super) status: Option<ExitStatus>,
    /// The last line of its stderr that said anything.
    pub(super) last_words: Option<String>,
}

/// A running process, or one that died and was not looked at yet. Dropping it ends it, with all it has started; that
/// takes up to 200 ms if it does not leave by itself.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    /// Lines for stdin; none once it is closed.
    stdin: Option<Sender<Vec<u8>>>,
    pub(super) stdout: Receiver<Output>,
    stderr: Receiver<String>,
    /// Disconnected when the process has ended and its group was killed.
    exited: Receiver<Infallible>,
    /// The process was reaped: its id may belong to somebody else.
    reaped: bool,
}

impl Process {
    /// Starts a program in a folder. `name` is the agent's, for the log.
    pub(super) fn start(
        name: &str,
        program: &OsStr,
        arguments: &[String],
        folder: &Path,
    ) -> io::Result<Process> {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let group = Pid::from_child(&child);
        let (pipe_in, pipe_out, pipe_err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stdin, to_stdin) = unbounded();
        let (from_stdout, stdout) = bounded(LINES_AHEAD);
        let (from_stderr, stderr) = bounded(LAST_WORDS);
        let (alive, exited) = bounded(0);
        let oldest = stderr.clone();
        // From here on an early return ends the process.
        let process = Process { child, group, stdin: Some(stdin), stdout, stderr, exited, reaped: false };
        if let (Some(mut pipe_in), Some(pipe_out), Some(pipe_err)) = (pipe_in, pipe_out, pipe_err) {
            run("acp-watch", move || watch(group, alive))?;
            run("acp-stdin", move || write_lines(&to_stdin, &mut pipe_in))?;
            run("acp-stdout", move || read_output(pipe_out, &from_stdout))?;
            let name = name.to_owned();
            run("acp-stderr", move || read_words(&name, pipe_err, &from_stderr, &oldest))?;
        }
        Ok(process)
    }

    /// The process's id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it runs.
    pub(super) fn is_alive(&self) -> bool {
        !self.reaped && self.exited.try_recv() == Err(TryRecvError::Empty)
    }

    /// Writes a line, without ever waiting for the agent to read it. What a dead agent is sent is lost: its stdout tells
    /// of its death.
    pub(super) fn send(&self, line: Vec<u8>) {
        if let Some(stdin) = &self.stdin {
            let _ = stdin.send(line);
        }
    }

    /// After the end of its stdout: how it ended.
    pub(super) fn farewell(&mut self) -> Farewell {
        let (left, status) = self.end();
        let mut last_words = None;
        while let Ok(words) = self.stderr.recv_timeout(LEAVE) {
            last_words = Some(words);
        }
        Farewell { status: status.filter(|_| left), last_words }
    }

    /// Ends the process and what it has started. Whether it left by itself, and its status.
    fn end(&mut self) -> (bool, Option<ExitStatus>) {
        if self.reaped {
            return (false, None);
        }
        self.stdin = None;
        let _ = self.exited.recv_timeout(LEAVE);
        let left = !self.is_alive();
        let _ = kill_process_group(self.group, Signal::KILL);
        // The watching thread kills the group too: the id has to stay taken until it is done.
        let _ = self.exited.recv();
        self.reaped = true;
        (left, self.child.wait().ok())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // The threads end with the pipes and the process; nobody waits for them.
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body).map(drop)
}

/// Waits for the process to end and kills what it leaves behind, which would keep its pipes open.
fn watch(group: Pid, alive: Sender<Infallible>) {
    // NOWAIT: the dead process stays, and with it its id.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(group), options), Err(Errno::INTR)) {}
    let _ = kill_process_group(group, Signal::KILL);
    drop(alive);
}

fn write_lines(lines: &Receiver<Vec<u8>>, pipe: &mut impl Write) {
    for line in lines {
        if pipe.write_all(&line).is_err() {
            return;
        }
    }
}

fn read_output(pipe: impl Read, output: &Sender<Output>) {
    let mut reader = BufReader::new(pipe);
    while let Some(line) = read_line(&mut reader, LINE_BYTES_MAX) {
        let too_long = line.len() > LINE_BYTES_MAX;
        let message = if too_long { Output::TooLong } else { Output::Line(line) };
        if output.send(message).is_err() || too_long {
            return;
        }
    }
}

fn read_words(name: &str, pipe: impl Read, last: &Sender<String>, oldest: &Receiver<String>) {
    let mut reader = BufReader::new(pipe);
    while let Some(line) = read_line(&mut reader, WORDS_BYTES_MAX) {
        let words = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if words.is_empty() {
            continue;
        }
        tracing::info!(agent = name, "{words}");
        if let Err(TrySendError::Full(words)) = last.try_send(words) {
            let _ = oldest.try_recv();
            let _ = last.try_send(words);
        }
    }
}

/// The next line without its line break; a longer one is cut off one byte behind `bytes_max`. None at the end, or if the
/// pipe fails, which is the same to who reads it.
fn read_line(reader: &mut impl BufRead, bytes_max: usize) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let bytes = reader.take(bytes_max as u64 + 1).read_until(b'\n', &mut line).ok()?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    (bytes > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_one_byte_behind_the_bound() {
        let mut reader: &[u8] = b"ab\n\nabc\nabcdef\nx";
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut reader, 3) {
            lines.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(lines, ["ab", "", "abc", "abcd", "ef", "x"]);
    }
}
