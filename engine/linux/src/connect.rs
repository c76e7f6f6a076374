//! Connections that this process begins.

use crate::executor::with_local;
use crate::stream::Connection;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use world::{Address, Stream};

/// How long the other side may take to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects to a server. The loop waits for it: for programs that have nothing else to do until then.
///
/// # Errors
/// What the system says; `TimedOut` after ten seconds.
///
/// # Panics
/// Outside of a loop.
pub fn connect(address: &Address) -> io::Result<Box<dyn Stream>> {
    let (fd, is_tcp) = match address {
        Address::Tcp(address) => (TcpStream::connect_timeout(address, PATIENCE)?.into(), true),
        Address::Unix(path) => (UnixStream::connect(path)?.into(), false),
    };
    let shared = with_local(|local| local.shared.clone()).expect("a task of a loop connects");
    Ok(Box::new(Connection::new(&shared, fd, is_tcp)))
}
