//! `rejoin serve`: the server until a signal stops it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use rejoin::access::Access;
use rejoin::engine::Config;
use rejoin::http::origin::Origin;
use rejoin::limits::{self, Limits};
use rejoin::store::DbPath;
use rejoin::turns::Agent;
use rejoin::{Server, ServerConfig};

use super::access::AccessArgs;
use super::agents::{AgentArgs, AgentsFault};
use super::logs::LogFormat;

/// What `serve` and `demo` have in common.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0 lets the system choose
    #[arg(long, default_value = "127.0.0.1:8787", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,

    /// File that the history is kept in, or :memory: for none
    #[arg(long, default_value = "rejoin.db", value_name = "FILE")]
    pub(crate) db: PathBuf,

    /// Host name that clients may use beside localhost (can be given more than once)
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,

    /// Origin whose pages may use this server beside its own, as in https://chat.example.org (can be given more than once)
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = Origin::parse)]
    origins: Vec<Origin>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// Threads that serialise snapshots
    #[arg(long, default_value_t = default_workers(), value_name = "N")]
    workers: usize,

    /// Events in the replay window of a run
    #[arg(long, default_value_t = limits::WINDOW_EVENTS, value_name = "N", value_parser = positive)]
    window_events: usize,

    /// Seconds that an ended run is retained
    #[arg(long, default_value_t = limits::RETENTION_MS / 1000, value_name = "SECONDS")]
    retention: u64,

    /// Ended runs that are retained
    #[arg(long, default_value_t = limits::RETENTION_CHATS, value_name = "N")]
    retention_chats: usize,

    /// Bytes of one event
    #[arg(long, default_value_t = limits::EVENT_BYTES_MAX, value_name = "BYTES", value_parser = positive)]
    event_bytes_max: usize,

    /// Bytes of all events of a run
    #[arg(long, default_value_t = limits::RUN_BYTES_MAX, value_name = "BYTES")]
    run_bytes_max: u64,

    /// Bytes of memory for runs and request bodies on their way, beyond which new runs and large bodies are refused
    #[arg(long, default_value_t = limits::MEMORY_BYTES_MAX, value_name = "BYTES")]
    memory_max: u64,

    /// Connections at the same time
    #[arg(long, default_value_t = limits::CONNECTIONS_MAX, value_name = "N", value_parser = positive)]
    connections_max: usize,

    /// Observers of one chat at the same time
    #[arg(long, default_value_t = limits::OBSERVERS_PER_CHAT_MAX, value_name = "N", value_parser = positive)]
    observers_per_chat: usize,

    /// Streams and waiting requests with the same JWT
    #[arg(long, default_value_t = limits::OBSERVERS_PER_TOKEN_MAX, value_name = "N", value_parser = positive)]
    observers_per_token: usize,

    /// Requests that wait for a run at the same time
    #[arg(long, default_value_t = limits::WAITING_MAX, value_name = "N")]
    waiting_max: usize,

    /// Seconds that the history is waited for before a run ends unsaved
    #[arg(long, default_value_t = limits::COMMIT_MS / 1000, value_name = "SECONDS")]
    commit_timeout: u64,

    /// Turns that agents carry out at the same time; further ones wait in order
    #[arg(long, default_value_t = limits::TURNS_MAX, value_name = "N", value_parser = positive)]
    turns_max: usize,

    /// How the log on standard error is written; RUST_LOG says what is in it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    #[command(flatten)]
    agents: AgentArgs,
}

/// One core belongs to the reactor.
fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() - 1).max(1))
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("must be a whole number".to_owned()),
    }
}

impl ServeArgs {
    /// The agents that are named.
    pub(crate) fn agents(&self) -> Result<Vec<Arc<Agent>>, AgentsFault> {
        self.agents.agents()
    }

    pub(crate) fn config(&self, agents: Vec<Arc<Agent>>, access: Access) -> ServerConfig {
        let limits = Limits {
            window_events: self.window_events,
            retention_ms: self.retention.saturating_mul(1000),
            retention_chats: self.retention_chats,
            event_bytes_max: self.event_bytes_max,
            run_bytes_max: self.run_bytes_max,
            memory_bytes_max: self.memory_max,
            connections_max: self.connections_max,
            observers_per_chat_max: self.observers_per_chat,
            observers_per_token_max: self.observers_per_token,
            waiting_max: self.waiting_max,
            commit_ms: self.commit_timeout.saturating_mul(1000),
            turns_max: self.turns_max,
        };
        let db =
            if self.db.as_os_str() == ":memory:" { DbPath::Memory } else { DbPath::File(self.db.clone()) };
        ServerConfig {
            listen: self.listen,
            db,
            db_busy_ms: ServerConfig::default().db_busy_ms,
            workers: self.workers,
            engine: Config {
                limits,
                hosts: self.hosts.clone(),
                origins: self.origins.clone(),
                access,
                agents,
            },
        }
    }
}

/// Serves until SIGINT or SIGTERM. `spare` answers turns if no other agent is named; `started` runs once the server
/// listens.
pub(crate) fn serve(args: &ServeArgs, spare: Option<Agent>, started: impl FnOnce(&Server)) -> ExitCode {
    let agents = match args.agents() {
        Ok(agents) if agents.is_empty() => spare.map(Arc::new).into_iter().collect(),
        Ok(agents) => agents,
        Err(fault) => return super::fail(&fault),
    };
    let access = match args.access.access(args.listen) {
        Ok(access) => access,
        Err(fault) => return super::fail(&fault),
    };
    let server = match Server::start(args.config(agents, access)) {
        Ok(server) => server,
        Err(error) => return super::fail(&error),
    };
    let mut signals = match Signals::new([SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => return super::fail(&error),
    };
    let stopper = server.stopper();
    let watch = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in &mut signals {
            tracing::info!("stopping: runs are closed and saved");
            stopper.stop();
        }
    });
    if let Err(error) = watch {
        return super::fail(&error);
    }
    super::say(&format!("rejoin listens on http://{}", server.address()));
    started(&server);
    match server.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::fail(&error),
    }
}
