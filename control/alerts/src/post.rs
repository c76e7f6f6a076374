//! One POST over HTTP/1.1, on a connection of its own: what it takes to hand something to a receiver.
//!
//! ```text
//!   POST /path HTTP/1.1 … ──▶ the status, and of the answer as much as is wanted
//! ```
//!
//! Nothing is followed that leads elsewhere: a secret goes where it was told. Each step waits for [`PATIENCE`] at most, and
//! all of it for [`WHOLE`]: a receiver that sends a byte now and then holds nothing up for ever.

use crate::{PATIENCE, tls};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// For an answer, from the first byte of the request on.
const WHOLE: Duration = Duration::from_secs(60);
/// Of an answer, as much as its head takes.
const HEAD_MAX: usize = 16 << 10;

/// Where something is posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// In how many seconds it may be asked again, if it says so.
    pub retry_after: Option<u64>,
    /// As much of it as was wanted.
    pub body: Vec<u8>,
}

impl Url {
    /// `what` it is the address of, for the error.
    ///
    /// # Errors
    /// It is no address, or has a password or a fragment; a sentence.
    pub fn parse(text: &str, what: &str) -> Result<Url, String> {
        let wrong = || format!("'{text}' is no address of {what}: http:// or https://HOST[:PORT]/PATH");
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong()),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // What is before an @ would be a password in an address.
        let (host, port) = crate::syslog::host_and_port(authority).ok_or_else(wrong)?;
        if !path.chars().all(|c| c.is_ascii_graphic() && c != '#') {
            return Err(wrong());
        }
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Url { is_tls, host, port, path: if path.is_empty() { "/".into() } else { path.into() } })
    }

    /// The same with this path, where it has none.
    pub fn or_path(self, path: &str) -> Url {
        match self.path.as_str() {
            "/" => Url { path: path.into(), ..self },
            _ => self,
        }
    }

    /// Where it is, without the path, which is often a secret itself.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Posts JSON. Waits for a name to be found, a connection, an answer; of that, `body_max` bytes are taken.
    ///
    /// # Errors
    /// There was no answer; a sentence.
    pub fn post(&self, headers: &[(String, String)], body: &[u8], body_max: usize) -> Result<Answer, String> {
        let bracketed = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {bracketed}:{}\r\nConnection: close\r\nContent-Type: application/json\r\nUser-Agent: cenote\r\n",
            self.path, self.port
        );
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        let stream = self.connect().map_err(|e| e.to_string())?;
        let answer = if self.is_tls {
            let name = ServerName::try_from(self.host.clone()).map_err(|e| e.to_string())?;
            let tls = ClientConnection::new(tls::config()?, name).map_err(|e| e.to_string())?;
            exchange(StreamOwned::new(tls, stream), head.as_bytes(), body, body_max)
        } else {
            exchange(stream, head.as_bytes(), body, body_max)
        };
        answer.map_err(|e| in_time(&e))
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(e) => failed = e,
            }
        }
        Err(failed)
    }
}

/// A socket whose patience is over says that it would block.
fn in_time(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::WouldBlock => format!("it did not answer within {} seconds", PATIENCE.as_secs()),
        _ => e.to_string(),
    }
}

fn exchange(
    mut stream: impl Read + Write,
    head: &[u8],
    body: &[u8],
    body_max: usize,
) -> std::io::Result<Answer> {
    let begun = Instant::now();
    stream.write_all(head)?;
    stream.write_all(body)?;
    stream.flush()?;
    let mut taken: Vec<u8> = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let end = taken.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        // Where no more is wanted than the status, its line is enough.
        let is_enough = match end {
            Some(end) => {
                taken.len() - end >= body_max
                    || length(&taken[..end]).is_some_and(|len| taken.len() - end >= len)
            }
            None => taken.len() >= HEAD_MAX || (body_max == 0 && taken.contains(&b'\n')),
        };
        if is_enough {
            return read(&taken, end, body_max);
        }
        if begun.elapsed() > WHOLE {
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the answer does not end"));
        }
        match stream.read(&mut chunk) {
            Ok(0) => return read(&taken, end, body_max),
            Ok(n) => taken.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            // One that hangs up without a word of TLS has said what it had to say.
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof && !taken.is_empty() => {
                return read(&taken, end, body_max);
            }
            Err(e) => return Err(e),
        }
    }
}

fn headers(head: &[u8]) -> impl Iterator<Item = (String, String)> {
    let text = String::from_utf8_lossy(head).into_owned();
    let lines: Vec<_> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_string()))
        .collect();
    lines.into_iter()
}

fn length(head: &[u8]) -> Option<usize> {
    headers(head).find(|(name, _)| name == "content-length")?.1.parse().ok()
}

fn read(taken: &[u8], end: Option<usize>, body_max: usize) -> std::io::Result<Answer> {
    let end = end.unwrap_or(taken.len());
    let (head, body) = taken.split_at(end);
    let text = String::from_utf8_lossy(head);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other("it does not speak HTTP"))?;
    let retry_after =
        headers(head).find(|(name, _)| name == "retry-after").and_then(|(_, value)| value.parse().ok());
    Ok(Answer { status, retry_after, body: body[..body.len().min(body_max)].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Resource temporarily unavailable (os error 11)" was said of a receiver that says nothing.
    #[test]
    fn a_receiver_that_says_nothing_did_not_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let e = exchange(stream, b"POST / HTTP/1.1\r\n\r\n", b"{}", 0).unwrap_err();
        assert_eq!(in_time(&e), "it did not answer within 15 seconds");
    }

    #[test]
    fn addresses_are_read_and_hold_no_password() {
        let url = |is_tls, host: &str, port, path: &str| {
            Ok(Url { is_tls, host: host.into(), port, path: path.into() })
        };
        for (text, expected) in [
            (
                "https://hooks.example.com/services/a?b=c",
                url(true, "hooks.example.com", 443, "/services/a?b=c"),
            ),
            ("http://10.0.0.1:8080", url(false, "10.0.0.1", 8080, "/")),
            ("http://[::1]:8080/x", url(false, "::1", 8080, "/x")),
        ] {
            assert_eq!(Url::parse(text, "a webhook"), expected);
        }
        for text in [
            "ftp://a/b",
            "https://user:secret@host/",
            "https:///x",
            "http://h/a b",
            "http://h/\r\nX: y",
            "h/x",
        ] {
            assert!(Url::parse(text, "a webhook").is_err(), "{text}");
        }
        let path = |text: &str| Url::parse(text, "a").unwrap().or_path("/v1/metrics").path;
        assert_eq!((path("http://a").as_str(), path("http://a/b").as_str()), ("/v1/metrics", "/b"));
    }

    /// What a stranger answers, piece by piece.
    struct Stranger(Vec<Vec<u8>>);

    impl Read for Stranger {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some(next) = self.0.first_mut() else { return Ok(0) };
            let n = next.len().min(into.len());
            into[..n].copy_from_slice(&next[..n]);
            next.drain(..n);
            if next.is_empty() {
                self.0.remove(0);
            }
            Ok(n)
        }
    }

    impl Write for Stranger {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_an_answer_no_more_is_taken_than_is_wanted() {
        let ask = |pieces: &[&[u8]], most| {
            exchange(Stranger(pieces.iter().map(|piece| piece.to_vec()).collect()), b"", b"", most)
        };
        let ok = ask(&[b"HTTP/1.1 2", b"00 OK\r\nContent-Le", b"ngth: 2\r\n\r\n{}never"], 100).unwrap();
        assert_eq!((ok.status, ok.body.as_slice()), (200, b"{}never".as_slice()));
        let busy = ask(&[b"HTTP/1.1 429 No\r\nRetry-After: 7\r\n\r\n"], 100).unwrap();
        assert_eq!((busy.status, busy.retry_after), (429, Some(7)));
        let never = vec![b'x'; 1 << 20];
        let long = ask(&[b"HTTP/1.1 200 OK\r\n\r\n", &never, &never], 1_000).unwrap();
        assert_eq!(long.body.len(), 1_000);
        let head = ask(&[b"HTTP/1.1 200 OK\r\nX: ", &never], 10).unwrap();
        assert_eq!((head.status, head.body.len()), (200, 0));
        for garbage in
            [b"".as_slice(), b"\xff\xfe\0", b"SSH-2.0-x\r\n", b"HTTP/1.1 \xc3\xa9\xc3\xa9 \r\n\r\n", &never]
        {
            assert!(ask(&[garbage], 10).is_err());
        }
        assert_eq!(ask(&[b"HTTP/1.1 204 \r\n", b"more"], 0).unwrap().status, 204);
    }
}
