//! One HTTP/1.1 request at a time over TLS, each on a connection of its own: nothing is ever sent twice.
//!
//! The appliance's certificate is trusted because somebody said so: by a file that holds it, or the authority that
//! signed it. There are no others.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The port that appliances have.
const PORT: u16 = 215;
const CONNECTING: Duration = Duration::from_secs(10);
/// What is asked for may take its time: a pool with many snapshots to destroy.
const ANSWERING: Duration = Duration::from_secs(600);
/// The longest answer that is taken.
const ANSWER_MAX: u64 = 64 << 20;

/// Where an appliance is, and how it is trusted.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    host: String,
    port: u16,
    tls: Arc<ClientConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Http {
    /// `https://HOST[:PORT]`, trusted by the certificates of a file.
    pub fn new(url: &str, trusted: &Path) -> io::Result<Http> {
        let (host, port) = parse(url).ok_or_else(|| invalid("it is like https://HOST:PORT"))?;
        let unusable = |why: String| io::Error::other(format!("cannot use {}: {why}", trusted.display()));
        let text = std::fs::read(trusted).map_err(|e| unusable(e.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            roots
                .add(certificate.map_err(|e| unusable(e.to_string()))?)
                .map_err(|e| unusable(e.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unusable("it holds no certificate".into()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut tls = tls.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Http { host, port, tls: Arc::new(tls) })
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer> {
        let mut stream = self.connect()?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host);
        for (name, value) in headers {
            if value.contains(char::is_control) {
                return Err(invalid("a user or password holds a control character"));
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str("Content-Type: application/json\r\n");
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(head.as_bytes())?;
        stream.flush()?;
        read(stream)
    }

    fn connect(&self) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut failed = invalid("it has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECTING) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(ANSWERING))?;
                    stream.set_write_timeout(Some(CONNECTING))?;
                    let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
                    let tls = ClientConnection::new(self.tls.clone(), name).map_err(io::Error::other)?;
                    return Ok(StreamOwned::new(tls, stream));
                }
                Err(e) => failed = e,
            }
        }
        Err(failed)
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Host and port; an address of IPv6 is in brackets.
fn parse(url: &str) -> Option<(String, u16)> {
    let rest = url.strip_prefix("https://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    let is_host = !host.is_empty() && !host.contains(|c: char| c.is_control() || "/?#@ ".contains(c));
    let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
    is_host.then(|| (host.to_string(), port))
}

/// The answer, which is whole when it has the length that it says.
fn read(stream: impl Read) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    // A server that hangs up without a farewell may have said everything.
    let ended = stream.take(ANSWER_MAX).read_to_end(&mut bytes);
    match answer(&bytes) {
        Some(answer) => Ok(answer),
        None => {
            Err(ended.err().unwrap_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up")))
        }
    }
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let (first, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = first.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    let mut answer = Answer { status, headers: headers.into(), body: Vec::new() };
    let length = answer.header("content-length").map_or(Some(0), |text| text.parse::<usize>().ok())?;
    answer.body = bytes.get(end + 4..)?.get(..length)?.to_vec();
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_and_perhaps_a_port() {
        for (url, found) in [
            ("https://nas", Some(("nas", 215))),
            ("https://nas:8443/", Some(("nas", 8443))),
            ("https://[2001:db8::1]:8443", Some(("2001:db8::1", 8443))),
            ("https://[2001:db8::1]", Some(("2001:db8::1", 215))),
            ("http://nas", None),
            ("nas", None),
            ("https://", None),
            ("https://nas:", None),
            ("https://nas:x", None),
            ("https://nas/api", None),
            ("https://user@nas", None),
        ] {
            assert_eq!(parse(url), found.map(|(host, port)| (host.to_string(), port)), "{url}");
        }
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Auth-Session: s\r\n\r\n{}";
        let whole = answer(text.as_bytes()).unwrap();
        assert_eq!(
            (whole.status, whole.body.as_slice(), whole.header("x-auth-session")),
            (200, &b"{}"[..], Some("s"))
        );
        for cut in 0..text.len() {
            assert_eq!(answer(&text.as_bytes()[..cut]), None, "{cut}");
        }
        assert_eq!(answer(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().status, 204);
        for bad in ["HTTP/1.1 OK\r\n\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"]
        {
            assert_eq!(answer(bad.as_bytes()), None, "{bad}");
        }
    }
}
