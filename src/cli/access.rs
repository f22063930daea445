//! The options that say who may use a server.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use rejoin::access::{Access, TokenFileFault};

#[derive(Args, Debug)]
pub(crate) struct AccessArgs {
    /// File of secrets and keys; with it, whoever uses the server needs a token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Let everybody who reaches the server do everything, also from other machines
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) insecure: bool,
}

/// Why nobody is let in.
#[derive(Debug)]
pub(crate) enum AccessFault {
    /// The token file can't be read.
    Read(PathBuf, std::io::Error),
    /// A line of it can't be used.
    Line(PathBuf, TokenFileFault),
    /// Other machines could do everything.
    Exposed(SocketAddr),
}

impl fmt::Display for AccessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessFault::Read(file, error) => write!(f, "can't read {}: {error}", file.display()),
            AccessFault::Line(file, fault) => write!(f, "{}: {fault}", file.display()),
            AccessFault::Exposed(address) => write!(
                f,
                "on {address} other machines could read and change everything: give --token-file, listen on \
                 127.0.0.1 behind a proxy, or say --insecure if something else keeps strangers out"
            ),
        }
    }
}

impl AccessArgs {
    /// Who may use a server that listens here.
    pub(crate) fn access(&self, listen: SocketAddr) -> Result<Access, AccessFault> {
        match &self.token_file {
            Some(file) => read(file),
            None if self.insecure || listen.ip().to_canonical().is_loopback() => Ok(Access::default()),
            None => Err(AccessFault::Exposed(listen)),
        }
    }
}

/// Reads a token file.
pub(crate) fn read(file: &Path) -> Result<Access, AccessFault> {
    let text = std::fs::read_to_string(file).map_err(|error| AccessFault::Read(file.to_owned(), error))?;
    Access::parse(&text).map_err(|fault| AccessFault::Line(file.to_owned(), fault))
}
