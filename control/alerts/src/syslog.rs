//! Alerts as lines of syslog: of the facility `daemon`, by the severity.
//!
//! ```text
//!   local, /PATH       a datagram to the socket of this machine:  <28>cenote: pool tank is DEGRADED …
//!   HOST, HOST:PORT    RFC 5424 over UDP:                         <28>1 2026-11-25T21:00:00Z host cenote - CLASS - pool …
//! ```

use crate::judge::Alert;
use api::alerts::Severity;
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

const DAEMON: u8 = 3;
const SOCKET: &str = "/dev/log";
const PORT: u16 = 514;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Socket(PathBuf),
    Host(String, u16),
}

impl Place {
    pub fn parse(to: &str) -> Result<Place, String> {
        let wrong = || format!("'{to}' is no place of syslog: local, a socket's path, HOST or HOST:PORT");
        if to == "local" {
            return Ok(Place::Socket(SOCKET.into()));
        }
        if to.starts_with('/') {
            return Ok(Place::Socket(to.into()));
        }
        let (host, port) = host_and_port(to).ok_or_else(wrong)?;
        Ok(Place::Host(host, port.unwrap_or(PORT)))
    }
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
pub(crate) fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_host = |c: char| c.is_alphanumeric() || ".-_:%".contains(c);
    let port =
        port.map(|port| port.parse().ok().filter(|port| *port != 0)).map_or(Some(None), |p| p.map(Some))?;
    (!host.is_empty() && host.chars().all(is_host)).then(|| (host.to_string(), port))
}

fn priority(severity: Severity) -> u8 {
    let level = match severity {
        Severity::Error => 3,
        Severity::Warning => 4,
        Severity::Info => 6,
    };
    DAEMON * 8 + level
}

fn line(place: &Place, host: &str, alert: &Alert) -> String {
    let (priority, Alert { summary, class, .. }) = (priority(alert.severity), alert);
    match place {
        Place::Socket(_) => format!("<{priority}>cenote: {summary}"),
        Place::Host(..) => {
            let host: String = host.chars().filter(char::is_ascii_graphic).collect();
            let host = if host.is_empty() { "-" } else { &host };
            format!("<{priority}>1 {} {host} cenote - {class} - {summary}", api::http::date(alert.seconds))
        }
    }
}

pub(crate) fn send(to: &str, host: &str, alert: &Alert) -> Result<(), String> {
    let place = Place::parse(to)?;
    let line = line(&place, host, alert);
    let sent = match &place {
        Place::Socket(path) => UnixDatagram::unbound().and_then(|socket| {
            // A log that reads no more must not hold what comes after.
            socket.set_write_timeout(Some(crate::PATIENCE))?;
            socket.send_to(line.as_bytes(), path)
        }),
        Place::Host(host, port) => (host.as_str(), *port).to_socket_addrs().and_then(|mut all| {
            let address = all.next().ok_or(std::io::ErrorKind::NotFound)?;
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            // Connected, so that a port that nothing listens at is told where the network tells it.
            socket.connect(address)?;
            socket.send(line.as_bytes())
        }),
    };
    sent.map(drop).map_err(|e| format!("syslog at {to}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_socket_or_a_host() {
        let host = |host: &str, port| Ok(Place::Host(host.into(), port));
        for (text, expected) in [
            ("local", Ok(Place::Socket("/dev/log".into()))),
            ("/run/log", Ok(Place::Socket("/run/log".into()))),
            ("logs.example.com", host("logs.example.com", 514)),
            ("10.0.0.1:1514", host("10.0.0.1", 1514)),
            ("[fd00::1]:1514", host("fd00::1", 1514)),
        ] {
            assert_eq!(Place::parse(text), expected, "{text}");
        }
        for text in ["", "a b", "host:0", "host:70000", "[::1", "host:"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_arrive_in_both_forms() {
        let alert = crate::outbox::tests::alert(Severity::Warning, "pool tank is DEGRADED");
        let dir = std::env::temp_dir().join(format!("cenote-syslog-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("log");
        let _ = std::fs::remove_file(&path);
        let log = UnixDatagram::bind(&path).unwrap();
        send(path.to_str().unwrap(), "here", &alert).unwrap();
        let mut buffer = [0; 512];
        let len = log.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"<28>cenote: pool tank is DEGRADED");
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        send(&udp.local_addr().unwrap().to_string(), "my host", &alert).unwrap();
        let len = udp.recv(&mut buffer).unwrap();
        let expected = "<28>1 2027-01-15T08:00:00Z myhost cenote - a.class - pool tank is DEGRADED";
        assert_eq!(std::str::from_utf8(&buffer[..len]).unwrap(), expected);
        std::fs::remove_dir_all(&dir).unwrap();
        let gone = send(path.to_str().unwrap(), "here", &alert).unwrap_err();
        assert!(gone.contains("syslog at /"), "{gone}");
    }
}
