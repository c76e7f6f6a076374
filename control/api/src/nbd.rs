//! What is served over NBD, and how clients find it.

use serde::{Deserialize, Serialize};

/// The port of URIs that name none.
const USUAL_PORT: &str = ":10809";
/// What addresses of sockets begin with.
const UNIX: &str = "unix:";

/// What is served over NBD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nbd {
    /// `127.0.0.1:10809`, `unix:/path`.
    pub addresses: Vec<String>,
    /// Over TCP it is inside TLS.
    #[serde(default)]
    pub tls: bool,
    pub exports: Vec<NbdExport>,
    /// What `--export` named of which there is no volume now.
    #[serde(default)]
    pub missing: Vec<String>,
    pub clients: Vec<NbdClient>,
}

impl Nbd {
    /// What a client is given to reach an export, one URI for each address at which it is offered.
    pub fn uris(&self, export: &str) -> Vec<String> {
        let found = self.exports.iter().find(|e| e.name == export);
        let addresses = found.map_or(&self.addresses, |export| &export.addresses);
        addresses.iter().map(|address| self.uri(address, export)).collect()
    }

    /// Where clients come in, as they are told it: `127.0.0.1:10809`, inside TLS `nbds://127.0.0.1:10809`.
    pub fn door(&self, address: &str) -> String {
        match self.tls && !address.starts_with(UNIX) {
            true => format!("nbds://{address}"),
            false => address.into(),
        }
    }

    fn uri(&self, address: &str, export: &str) -> String {
        let export = escape(export);
        match address.strip_prefix(UNIX) {
            Some(path) => format!("nbd+unix:///{export}?socket={}", escape(path)),
            None => {
                let scheme = if self.tls { "nbds" } else { "nbd" };
                format!("{scheme}://{}/{export}", address.strip_suffix(USUAL_PORT).unwrap_or(address))
            }
        }
    }
}

/// As URIs want it: names of datasets may hold blanks, and paths anything.
fn escape(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/:@".contains(&b);
    let one = |b: u8| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(one).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NbdExport {
    pub name: String,
    pub size: u64,
    pub block_size: u64,
    /// Where it is offered; none where it is not.
    #[serde(default)]
    pub addresses: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NbdClient {
    pub address: String,
    pub export: Option<String>,
    pub requests: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_lead_to_the_export_by_each_address() {
        let mut nbd = Nbd {
            addresses: ["127.0.0.1:10809", "[::1]:7000", "unix:/run/my disks/nbd.sock"]
                .map(String::from)
                .into(),
            ..Nbd::default()
        };
        assert_eq!(
            nbd.uris("tank/a b"),
            [
                "nbd://127.0.0.1/tank/a%20b",
                "nbd://[::1]:7000/tank/a%20b",
                "nbd+unix:///tank/a%20b?socket=/run/my%20disks/nbd.sock"
            ]
        );
        assert_eq!(nbd.door("127.0.0.1:10809"), "127.0.0.1:10809");
        nbd.tls = true;
        assert_eq!(
            nbd.uris("tank/v"),
            [
                "nbds://127.0.0.1/tank/v",
                "nbds://[::1]:7000/tank/v",
                "nbd+unix:///tank/v?socket=/run/my%20disks/nbd.sock"
            ]
        );
        assert_eq!(nbd.door("127.0.0.1:10809"), "nbds://127.0.0.1:10809");
        assert_eq!(nbd.door("unix:/s"), "unix:/s");
    }
}
