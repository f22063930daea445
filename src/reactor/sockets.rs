//! The table of sockets: slots with generations, which of them have bytes to read, and how they are let go.
//!
//! mio is edge-triggered: a socket whose bytes were not all read gets no further event, so the table keeps its own
//! list of those.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use slab::Slab;
use socket2::{SockRef, TcpKeepalive};

use crate::engine::Close;
use crate::limits::{LINGER_BYTES_MAX, LINGER_MS};
use crate::proto::id::ConnId;

/// A peer that does not acknowledge what it was sent is gone after this long.
const DEAD_PEER: Duration = Duration::from_secs(60);

/// Bytes that the kernel holds for a connection beyond what is under way: a stalled observer costs no megabytes.
const UNSENT_BYTES: u32 = 128 << 10;

/// What the poll said of a socket.
pub(super) struct Readiness {
    pub(super) readable: bool,
    pub(super) read_closed: bool,
    pub(super) writable: bool,
    pub(super) failed: bool,
}

#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    generation: u32,
    /// Stands in the list of those with bytes to read.
    ready: bool,
    /// The peer sends nothing more: reading goes on until end of file, however short a read was.
    read_closed: bool,
    /// Is not read until the engine wants its bytes.
    paused: bool,
    /// End of file was read.
    ended: bool,
    /// Writing is shut down; this many bytes of what still came were dropped.
    lingering: Option<usize>,
    /// Is let go at the end of the turn.
    doomed: bool,
}

/// All sockets.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    slots: Slab<Socket>,
    /// How often each slot was taken.
    generations: Vec<u32>,
    ready: VecDeque<ConnId>,
    doomed: Vec<ConnId>,
    /// When lingering ends, in order.
    lingering: VecDeque<(u64, ConnId)>,
}

impl Sockets {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn insert(&mut self, mut stream: TcpStream, registry: &Registry) -> io::Result<ConnId> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        let keepalive = TcpKeepalive::new().with_time(DEAD_PEER).with_interval(DEAD_PEER / 6).with_retries(3);
        socket.set_tcp_keepalive(&keepalive)?;
        socket.set_tcp_user_timeout(Some(DEAD_PEER))?;
        socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
        let entry = self.slots.vacant_entry();
        let slot = entry.key();
        registry.register(&mut stream, Token(slot), Interest::READABLE | Interest::WRITABLE)?;
        if self.generations.len() <= slot {
            self.generations.resize(slot + 1, 0);
        }
        self.generations[slot] = self.generations[slot].wrapping_add(1);
        let generation = self.generations[slot];
        entry.insert(Socket {
            stream,
            generation,
            ready: false,
            read_closed: false,
            paused: false,
            ended: false,
            lingering: None,
            doomed: false,
        });
        Ok(ConnId { slot: u32::try_from(slot).expect("descriptors fit a u32"), generation })
    }

    /// Takes note of what the poll said.
    pub(super) fn note(&mut self, slot: usize, readiness: &Readiness) -> Option<ConnId> {
        let socket = self.slots.get_mut(slot)?;
        let id = ConnId { slot: u32::try_from(slot).ok()?, generation: socket.generation };
        socket.read_closed |= readiness.read_closed;
        if readiness.readable {
            self.mark_ready(id);
        }
        if readiness.failed {
            self.fail(id);
        }
        Some(id)
    }

    /// The connection is broken, or closed in both directions: what it sent before is still read.
    fn fail(&mut self, id: ConnId) {
        let broken = self.socket(id).is_some_and(|socket| {
            socket.lingering.is_some() || socket.ended || !matches!(socket.stream.take_error(), Ok(None))
        });
        if broken {
            self.doom(id);
        }
    }

    pub(super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn next_ready(&mut self) -> Option<ConnId> {
        let id = self.ready.pop_front()?;
        if let Some(socket) = self.socket_mut(id) {
            socket.ready = false;
        }
        Some(id)
    }

    /// Reads once. If more may be there, the socket stays on the list.
    pub(super) fn read(&mut self, id: ConnId, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(socket) = self.socket_mut(id) else { return Err(io::ErrorKind::WouldBlock.into()) };
        if socket.doomed || socket.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bytes = socket.stream.read(buffer)?;
        // A short read has emptied the socket, unless its end is still to be read.
        if bytes == buffer.len() || (socket.read_closed && bytes > 0) {
            self.mark_ready(id);
        }
        Ok(bytes)
    }

    pub(super) fn write(&mut self, id: ConnId, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(socket) = self.socket_mut(id) else { return Err(io::ErrorKind::NotConnected.into()) };
        if slices.is_empty() {
            return Ok(0);
        }
        match slices {
            [one] => socket.stream.write(one),
            many => socket.stream.write_vectored(many),
        }
    }

    pub(super) fn end_reading(&mut self, id: ConnId) {
        if let Some(socket) = self.socket_mut(id) {
            socket.ended = true;
        }
    }

    /// The engine takes no more bytes of it for now.
    pub(super) fn pause(&mut self, id: ConnId) {
        if let Some(socket) = self.socket_mut(id) {
            socket.paused = true;
        }
    }

    pub(super) fn resume(&mut self, id: ConnId) {
        if let Some(socket) = self.socket_mut(id) {
            socket.paused = false;
            self.mark_ready(id);
        }
    }

    pub(super) fn is_lingering(&self, id: ConnId) -> bool {
        self.socket(id).is_some_and(|socket| socket.lingering.is_some())
    }

    /// Drops what a peer still sends, so that it can read its answer before it learns that nobody listens.
    pub(super) fn discard(&mut self, id: ConnId, buffer: &mut [u8]) {
        let Some(socket) = self.socket_mut(id) else { return };
        let dropped = socket.lingering.unwrap_or(0);
        match socket.stream.read(buffer) {
            Ok(0) => self.doom(id),
            Ok(bytes) if dropped + bytes > LINGER_BYTES_MAX => self.doom(id),
            Ok(bytes) => {
                socket.lingering = Some(dropped + bytes);
                self.mark_ready(id);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.doom(id),
        }
    }

    /// Begins to close a socket.
    pub(super) fn close(&mut self, id: ConnId, how: Close, now_ms: u64) {
        let Some(socket) = self.socket_mut(id) else { return };
        let lingers = match how {
            Close::Reset => {
                // A linger time of zero makes the close a reset; if it can't be set, the peer sees a plain end.
                let _ = SockRef::from(&socket.stream).set_linger(Some(Duration::ZERO));
                false
            }
            Close::Linger => !socket.ended && socket.stream.shutdown(Shutdown::Write).is_ok(),
        };
        if !lingers {
            return self.doom(id);
        }
        socket.lingering = Some(0);
        socket.paused = false;
        self.lingering.push_back((now_ms + LINGER_MS, id));
        self.mark_ready(id);
    }

    pub(super) fn linger_until(&self) -> Option<u64> {
        self.lingering.front().map(|(until, _)| *until)
    }

    pub(super) fn end_lingering(&mut self, now_ms: u64) {
        while let Some((until, id)) = self.lingering.front().copied()
            && until <= now_ms
        {
            self.lingering.pop_front();
            self.doom(id);
        }
    }

    /// Lets go of a socket at the end of the turn.
    pub(super) fn doom(&mut self, id: ConnId) {
        if let Some(socket) = self.socket_mut(id)
            && !socket.doomed
        {
            socket.doomed = true;
            self.doomed.push(id);
        }
    }

    /// Closes the next doomed socket and names it.
    pub(super) fn reap(&mut self, registry: &Registry) -> Option<ConnId> {
        let id = self.doomed.pop()?;
        let mut socket = self.slots.remove(id.slot as usize);
        // The descriptor is closed in any case; then the kernel forgets the registration by itself.
        let _ = registry.deregister(&mut socket.stream);
        Some(id)
    }

    fn mark_ready(&mut self, id: ConnId) {
        if let Some(socket) = self.socket_mut(id)
            && !socket.ready
            && !socket.paused
            && !socket.doomed
        {
            socket.ready = true;
            self.ready.push_back(id);
        }
    }

    fn socket(&self, id: ConnId) -> Option<&Socket> {
        self.slots.get(id.slot as usize).filter(|socket| socket.generation == id.generation)
    }

    fn socket_mut(&mut self, id: ConnId) -> Option<&mut Socket> {
        self.slots.get_mut(id.slot as usize).filter(|socket| socket.generation == id.generation)
    }
}
