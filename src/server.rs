//! A running server: the reactor, the store and the workers on their threads, and the handle to them.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::bounded;

use crate::engine::Config;
use crate::limits;
use crate::producer::Handle;
use crate::reactor::{Mailbox, Message, Parts, Reactor};
use crate::store::{DbPath, OpenError, Store, StoreConfig};
use crate::workers::Workers;

/// How long a store that is stuck is waited for at the end.
const STORE_CLOSE: Duration = Duration::from_millis(limits::SHUTDOWN_MS);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where the history is kept.
    pub db: DbPath,
    /// How long a locked database is waited for, in milliseconds.
    pub db_busy_ms: u64,
    /// Threads that serialise snapshots.
    pub workers: usize,
    /// Limits and host names.
    pub engine: Config,
}

impl Default for ServerConfig {
    /// Loopback on a port of the system's choice, history in memory, default limits.
    fn default() -> ServerConfig {
        ServerConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            db: DbPath::Memory,
            db_busy_ms: 2_000,
            workers: 1,
            engine: Config::default(),
        }
    }
}

/// Why a server could not be started.
#[derive(Debug)]
pub enum StartError {
    /// The address can't be listened on.
    Listen(SocketAddr, io::Error),
    /// The history can't be opened.
    Store(OpenError),
    /// The system refused a thread, a poll or randomness.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(address, error) => {
                write!(f, "can't listen on {address}: {error}; choose another address with --listen")
            }
            StartError::Store(error) => error.fmt(f),
            StartError::System(error) => write!(f, "the system refused a resource: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running server. Dropping it does not stop it; [`Server::stop`] does.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    mailbox: Mailbox,
    producers: Arc<AtomicU64>,
    reactor: JoinHandle<io::Result<Store>>,
}

impl Server {
    /// Opens the history, listens, and serves on threads of its own.
    pub fn start(config: ServerConfig) -> Result<Server, StartError> {
        let listener =
            TcpListener::bind(config.listen).map_err(|error| StartError::Listen(config.listen, error))?;
        let address = listener.local_addr().map_err(StartError::System)?;
        let workers = Workers::new(config.workers.max(1))
            .map_err(|error| StartError::System(io::Error::other(error)))?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| StartError::System(io::Error::other(error)))?;
        let parts = Parts { config: config.engine, seed, listener, workers };
        let (reactor, mailbox) = Reactor::new(parts).map_err(StartError::System)?;
        let answers = mailbox.clone();
        let store_config = StoreConfig {
            path: config.db,
            queue_jobs_max: limits::STORE_JOBS_MAX,
            busy_ms: config.db_busy_ms,
        };
        let store = Store::open(&store_config, move |answer| {
            answers.send(Message::Stored(answer));
        })
        .map_err(StartError::Store)?;
        let thread = std::thread::Builder::new().name("reactor".to_owned());
        let reactor = thread.spawn(move || reactor.run(store)).map_err(StartError::System)?;
        Ok(Server { address, mailbox, producers: Arc::default(), reactor })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle for producers in this process; cheap to clone, usable on any thread.
    pub fn handle(&self) -> Handle {
        Handle::new(self.mailbox.clone(), self.producers.clone())
    }

    /// Something that stops the server from any thread, for instance on a signal.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.mailbox.clone())
    }

    /// Closes runs with RUN_ERROR `shutdown`, saves what there is, tells observers, and ends the threads.
    pub fn stop(self) -> io::Result<()> {
        self.stopper().stop();
        self.wait()
    }

    /// Waits until the server was stopped.
    pub fn wait(self) -> io::Result<()> {
        let store = match self.reactor.join() {
            Ok(store) => store?,
            Err(_) => return Err(io::Error::other("the reactor ended in a panic")),
        };
        // A store that hangs in the disk must not keep the process from ending.
        let (closed, done) = bounded(1);
        let thread = std::thread::Builder::new().name("store-close".to_owned());
        thread.spawn(move || {
            store.close();
            let _ = closed.send(());
        })?;
        done.recv_timeout(STORE_CLOSE)
            .map_err(|_| io::Error::other("the store is stuck; what it had not yet written is not saved"))
    }
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(Mailbox);

impl Stopper {
    /// Tells the server to stop; returns at once.
    pub fn stop(&self) {
        self.0.send(Message::Stop);
    }
}
