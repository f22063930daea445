//! Turns with a scripted agent: a listener that takes one request and then does what the test says.

mod agent;
mod cancel;
mod failures;
mod streams;
mod tls;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use ureq::tls::RootCerts;

use crate::proto::id::{ChatId, LocalId, RunId};
use crate::turns::sink::TurnSink;
use crate::turns::{Agent, AgentKind, TurnControl, TurnMessage, TurnOrder};

/// What has to happen at once happens within this time.
const PROMPT: Duration = Duration::from_secs(1);

/// What must happen at all, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

fn order(url: &str, silence_ms: u64) -> TurnOrder {
    let headers = vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())];
    let mut turn = [0; 4];
    getrandom::fill(&mut turn).unwrap();
    TurnOrder {
        // Names the reading thread: no two tests of this process may share it.
        turn: LocalId(u32::from_ne_bytes(turn).into()),
        run: RunId::from_bits(1),
        chat: ChatId::parse("chat").unwrap(),
        agent_run: "r".to_owned(),
        agent: Arc::new(Agent {
            name: "helper".to_owned(),
            kind: AgentKind::Native { url: url.to_owned(), headers },
            silence_ms,
        }),
        input: br#"{"threadId":"t","runId":"r","messages":[]}"#.to_vec(),
        prompt: Vec::new(),
        has_history: false,
    }
}

/// A turn on a thread of its own.
struct Turn {
    messages: Receiver<TurnMessage>,
    control: Sender<TurnControl>,
    /// Disconnected when `run_turn` has returned.
    running: Receiver<()>,
    order: TurnOrder,
}

impl Turn {
    fn begin(order: TurnOrder, roots: RootCerts) -> Turn {
        let (deliver, messages) = unbounded();
        Turn::with_sink(order, roots, messages, move |message| deliver.send(message).is_ok())
    }

    fn with_sink(
        order: TurnOrder,
        roots: RootCerts,
        messages: Receiver<TurnMessage>,
        deliver: impl FnMut(TurnMessage) -> bool + Send + 'static,
    ) -> Turn {
        let (control, told) = unbounded();
        let (runs, running) = unbounded();
        let asked = order.clone();
        thread::spawn(move || {
            let mut sink = TurnSink::new(deliver, told);
            super::converse(&asked, &mut sink, roots);
            drop(runs);
        });
        Turn { messages, control, running, order }
    }

    /// The next message, in short.
    fn next(&self) -> Option<String> {
        self.messages.recv_timeout(PATIENCE).ok().map(short)
    }

    /// Everything up to the end of the turn, in short; what belongs to this machine is taken out.
    fn rest(self, host: &str) -> Vec<String> {
        assert!(self.running.recv_timeout(PATIENCE).is_err_and(|error| error.is_disconnected()), "it ends");
        self.messages.iter().map(|message| short(message).replace(host, "HOST")).collect()
    }

    /// `run_turn` returns, and its reading thread ends.
    fn assert_over(&self) {
        let over = self.running.recv_timeout(PROMPT);
        assert!(over.is_err_and(|error| error.is_disconnected()), "run_turn returns at once");
        self.assert_reader_ends();
    }

    #[cfg(target_os = "linux")]
    fn assert_reader_ends(&self) {
        let name = format!("agent {}", self.order.turn.0);
        let runs = || {
            std::fs::read_dir("/proc/self/task").unwrap().any(|task| {
                let comm = task.unwrap().path().join("comm");
                std::fs::read_to_string(comm).is_ok_and(|comm| comm.trim() == name)
            })
        };
        for _ in 0..100 {
            if !runs() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the thread {name:?} goes on");
    }

    #[cfg(not(target_os = "linux"))]
    fn assert_reader_ends(&self) {}
}

fn short(message: TurnMessage) -> String {
    match message {
        TurnMessage::Event(event) => String::from_utf8(event).unwrap(),
        TurnMessage::Ask(question) => panic!("an AG-UI agent asks nothing: {question:?}"),
        TurnMessage::Done => "done".to_owned(),
        TurnMessage::Failed { code, message } => {
            assert!(!message.contains("s3cret"), "no header is shown: {message}");
            format!("{code}: {message}")
        }
    }
}
