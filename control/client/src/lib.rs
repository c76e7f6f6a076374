//! Takes requests to the daemon and waits for the reply.
//!
//! ```text
//!   client ── {"command": ..., "uid": ..., "request": {"pools": ...}} ── newline ──▶ HOME/cenote.sock
//!          ◀── {"Ok": {"pools": [...]}}  or  {"Err": {"kind": ..., "message": ...}} ── newline ──
//! ```
//!
//! One JSON value per line, one reply for each request, in order. Plain blocking sockets: a command has nothing else to
//! do while it waits.
//!
//! [`Remote`] takes requests to an appliance anywhere, over its REST API.
//!
//! Not here: what a request means (`api`), and how a command does without a daemon.

mod http;
mod remote;

pub use remote::Remote;

use api::{ApiError, Call, Caller, ErrorKind, Reply, Result};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon that listens at `socket`; nothing if there is none.
    pub fn connect(socket: &Path) -> io::Result<Option<Client>> {
        match UnixStream::connect(socket) {
            Ok(stream) => Ok(Some(Client { stream: BufReader::new(stream) })),
            // No daemon ever listened, or the one that did is gone.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Whether a daemon answers: one that was just killed may have left a connection that leads nowhere.
    pub fn is_answered(&mut self) -> bool {
        let ping = Call { command: String::new(), uid: 0, request: api::Request::Ping };
        self.exchange(&ping).is_ok()
    }

    /// Waits until the daemon has ended: then it lets go of the connection. What went wrong at the end it says before.
    pub fn wait_for_end(mut self) -> io::Result<Result<()>> {
        let mut ended = Ok(());
        loop {
            let mut line = String::new();
            match self.stream.read_line(&mut line) {
                Ok(0) => return Ok(ended),
                Ok(_) => ended = serde_json::from_str::<Result<Reply>>(&line)?.map(drop),
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(ended),
                Err(e) => return Err(e),
            }
        }
    }

    fn exchange(&mut self, call: &Call) -> io::Result<Result<Reply>> {
        let mut line = serde_json::to_vec(call)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut reply = String::new();
        if self.stream.read_line(&mut reply)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up"));
        }
        Ok(serde_json::from_str(&reply)?)
    }
}

impl Caller for Client {
    fn call(&mut self, call: Call) -> Result<Reply> {
        self.exchange(&call)
            .unwrap_or_else(|e| Err(ApiError::new(ErrorKind::Io, format!("cannot talk to the daemon: {e}"))))
    }

    fn outlives_us(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Request;
    use std::os::unix::net::UnixListener;

    fn ping() -> Call {
        Call { command: String::new(), uid: 0, request: Request::Ping }
    }

    #[test]
    fn requests_and_replies_are_lines() {
        let path = std::env::temp_dir().join(format!("cenote-client-{}", std::process::id()));
        assert!(Client::connect(&path).unwrap().is_none(), "nobody listens");
        let listener = UnixListener::bind(&path).unwrap();
        let daemon = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            for reply in [r#"{"Ok":"done"}"#, r#"{"Err":{"kind":"busy","message":"no"}}"#, ""] {
                let mut line = String::new();
                if reply.is_empty() {
                    let said = r#"{"Err":{"kind":"io","message":"cannot close 'tank'"}}"#;
                    return stream.get_mut().write_all(format!("{said}\n").as_bytes()).unwrap();
                }
                stream.read_line(&mut line).unwrap();
                assert_eq!(serde_json::from_str::<Call>(&line).unwrap(), ping());
                stream.get_mut().write_all(format!("{reply}\n").as_bytes()).unwrap();
            }
        });
        let mut client = Client::connect(&path).unwrap().unwrap();
        assert_eq!(client.call(ping()), Ok(Reply::Done));
        assert_eq!(client.call(ping()), Err(ApiError::new(ErrorKind::Busy, "no")));
        let ended = client.wait_for_end().unwrap();
        assert_eq!(ended, Err(ApiError::new(ErrorKind::Io, "cannot close 'tank'")));
        daemon.join().unwrap();
        assert!(Client::connect(&path).unwrap().is_none(), "whoever listened is gone");
        std::fs::remove_file(&path).unwrap();
    }
}
