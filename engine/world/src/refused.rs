//! Why no client can come in at an address, and where another one is said: one line, the same for all that listens.

use crate::Address;
use std::io::{Error, ErrorKind};

/// Ports below this one are not for everybody.
const PRIVILEGED: u16 = 1024;

/// What is said when there can be no listening for `clients` at `address`; `option` is where another address is said.
///
/// ```text
///   cannot listen for clients on [::1]:3260: the port is taken ('ss -ltnp' shows by what); choose another with --iscsi
/// ```
pub fn cannot_listen(clients: &str, address: &Address, why: &Error, option: &str) -> String {
    let reason = match (why.kind(), address) {
        (ErrorKind::AddrInUse, Address::Tcp(_)) => "the port is taken ('ss -ltnp' shows by what)".into(),
        (ErrorKind::AddrInUse, Address::Unix(_)) => "another program listens there".into(),
        (ErrorKind::AddrNotAvailable, _) => {
            "this machine has no such address ('ip address' shows those it has)".into()
        }
        (ErrorKind::PermissionDenied, Address::Tcp(at)) if at.port() < PRIVILEGED => {
            format!("a port below {PRIVILEGED} takes root or CAP_NET_BIND_SERVICE")
        }
        (ErrorKind::PermissionDenied, Address::Unix(_)) => "its directory may not be written to".into(),
        _ => why.to_string(),
    };
    format!("cannot listen for {clients} on {address}: {reason}; choose another with {option}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_what_went_wrong_and_what_helps_is_one_line() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        let unix = || Address::Unix("/run/x.sock".into());
        let cases = [
            (
                ErrorKind::AddrInUse,
                tcp("127.0.0.1:3260"),
                "cannot listen for clients on 127.0.0.1:3260: the port is taken ('ss -ltnp' shows by what); choose another with --it",
            ),
            (
                ErrorKind::AddrInUse,
                unix(),
                "cannot listen for clients on /run/x.sock: another program listens there; choose another with --it",
            ),
            (
                ErrorKind::AddrNotAvailable,
                tcp("192.0.2.1:3260"),
                "cannot listen for clients on 192.0.2.1:3260: this machine has no such address ('ip address' shows those it has); \
                 choose another with --it",
            ),
            (
                ErrorKind::PermissionDenied,
                tcp("[::1]:1023"),
                "cannot listen for clients on [::1]:1023: a port below 1024 takes root or CAP_NET_BIND_SERVICE; choose another with --it",
            ),
            (
                ErrorKind::PermissionDenied,
                tcp("127.0.0.1:1024"),
                "cannot listen for clients on 127.0.0.1:1024: permission denied; choose another with --it",
            ),
            (
                ErrorKind::PermissionDenied,
                unix(),
                "cannot listen for clients on /run/x.sock: its directory may not be written to; choose another with --it",
            ),
        ];
        for (kind, address, said) in cases {
            assert_eq!(cannot_listen("clients", &address, &kind.into(), "--it"), said);
        }
    }
}
