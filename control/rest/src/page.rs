//! The web page beside the API: its files go to everybody, since nothing of the appliance is in them.

use crate::server::{Answer, Rest};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};

/// What a door without TLS may be called: it is on this machine alone, and another site's name that leads here is a
/// trick to have a browser ask for them.
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Whether a request is meant for this machine by one of its own names.
pub fn is_own_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all("host").iter();
    let (Some(host), None) = (hosts.next().and_then(|h| h.to_str().ok()), hosts.next()) else { return false };
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
        _ => (host, "0"),
    };
    !port.is_empty() && OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

impl Rest {
    /// The answer, if this is of the page.
    pub fn page(&self, head: &Parts) -> Option<Answer> {
        let path = head.uri.path();
        let is_get = head.method == Method::GET || head.method == Method::HEAD;
        let found = web::find(path).filter(|_| is_get);
        if found.is_none() && !path.starts_with("/ui/") && path != "/favicon.ico" {
            return None;
        }
        let mut headers: Vec<(String, String)> =
            web::HEADERS.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let (status, body) = match found {
            Some(found) => {
                headers.push(("content-type".into(), found.kind.into()));
                headers.push(("cache-control".into(), found.cache.into()));
                (200, found.body.to_vec())
            }
            None => {
                headers.push(("cache-control".into(), "no-store".into()));
                (404, Vec::new())
            }
        };
        Some(self.count(Answer { status, headers, body }))
    }

    /// A door without TLS was called by a name that is not this machine's.
    pub(crate) fn misdirected(&self) -> Answer {
        let headers = vec![("content-type".into(), "text/plain; charset=utf-8".into())];
        let body = b"this address answers to 127.0.0.1 and localhost alone\n".to_vec();
        self.count(Answer { status: 421, headers, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_without_tls_answers_to_its_own_names_alone() {
        let with = |hosts: &[&str]| {
            let pairs = hosts.iter().map(|h| (hyper::header::HOST, h.parse().unwrap()));
            is_own_host(&pairs.collect::<HeaderMap>())
        };
        for own in ["127.0.0.1", "127.0.0.1:8216", "localhost:1", "LOCALHOST", "[::1]:8216", "[::1]"] {
            assert!(with(&[own]), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8216",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "127.0.0.2",
            "127.0.0.1:",
            "127.0.0.1:80:80",
            "user@127.0.0.1",
            "::1",
        ] {
            assert!(!with(&[other]), "{other}");
        }
        assert!(!with(&[]));
        assert!(!with(&["127.0.0.1", "evil.example"]));
    }
}
