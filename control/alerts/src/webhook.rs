//! Alerts as HTTP: one POST of a JSON object for each, on a connection of its own.
//!
//! ```text
//!   POST /path HTTP/1.1      Authorization: Bearer SECRET, if the receiver has one
//!   {"source":"cenote","host":…,"time":"2026-11-25T21:00:00Z","severity":"warning","class":…,"summary":…,"fields":{…}}
//!   ──▶ 200 to 299: it was taken; all others are failures, also those that lead elsewhere: a secret goes where it was told
//! ```

use crate::judge::Alert;
use crate::outbox::Receiver;
use crate::syslog::host_and_port;
use crate::{PATIENCE, tls};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

/// Of an answer, as much as its first line takes.
const ANSWER_MAX: u64 = 512;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Url {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
}

impl Url {
    pub fn parse(text: &str) -> Result<Url, String> {
        let wrong = || format!("'{text}' is no address of a webhook: http:// or https://HOST[:PORT]/PATH");
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong()),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // What is before an @ would be a password in an address.
        let (host, port) = host_and_port(authority).ok_or_else(wrong)?;
        if !path.chars().all(|c| c.is_ascii_graphic() && c != '#') {
            return Err(wrong());
        }
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Url { is_tls, host, port, path: if path.is_empty() { "/".into() } else { path.into() } })
    }
}

fn body(host: &str, alert: &Alert) -> String {
    let fields: Map<String, Value> =
        alert.fields.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    json!({
        "source": "cenote", "host": host, "time": api::http::date(alert.seconds), "severity": alert.severity.word(),
        "class": alert.class, "summary": alert.summary, "fields": fields,
    })
    .to_string()
}

pub(crate) fn send(receiver: &Receiver, host: &str, alert: &Alert) -> Result<(), String> {
    let url = Url::parse(&receiver.to)?;
    // The path of a webhook is often a secret itself.
    let failed = |e: &dyn std::fmt::Display| format!("webhook at {}:{}: {e}", url.host, url.port);
    let body = body(host, alert);
    let bracketed = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let mut head = format!(
        "POST {} HTTP/1.1\r\nHost: {bracketed}:{}\r\nConnection: close\r\nContent-Type: application/json\r\nUser-Agent: cenote\r\n",
        url.path, url.port
    );
    if let Some(secret) = &receiver.secret {
        head += &format!("Authorization: Bearer {}\r\n", secret.reveal());
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    let stream = connect(&url).map_err(|e| failed(&e))?;
    let status = if url.is_tls {
        let name = ServerName::try_from(url.host.clone()).map_err(|e| failed(&e))?;
        let tls = ClientConnection::new(tls::config()?, name).map_err(|e| failed(&e))?;
        exchange(StreamOwned::new(tls, stream), &head, &body)
    } else {
        exchange(stream, &head, &body)
    };
    match status.map_err(|e| failed(&e))? {
        200..=299 => Ok(()),
        status => Err(failed(&format!("it answers {status}"))),
    }
}

fn connect(url: &Url) -> std::io::Result<TcpStream> {
    let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
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

/// The status of the answer.
fn exchange(mut stream: impl Read + Write, head: &str, body: &str) -> std::io::Result<u16> {
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()?;
    let mut line = Vec::new();
    BufReader::new(stream.take(ANSWER_MAX)).read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    status.ok_or_else(|| std::io::Error::other("it does not speak HTTP"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Url::parse(text), expected);
        }
        for text in [
            "ftp://a/b",
            "https://user:secret@host/",
            "https:///x",
            "http://h/a b",
            "http://h/\r\nX: y",
            "h/x",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
