//! What a service manager is told: that we are ready, and that we are about to end.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// `READY=1`, `STOPPING=1`. Where no manager listens nothing is told.
pub fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(e) = send(&path.to_string_lossy(), state) {
        tracing::warn!("cannot tell the service manager {state}: {e}");
    }
}

fn send(path: &str, state: &str) -> std::io::Result<()> {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_told_by_path_and_by_abstract_name() {
        let path = std::env::temp_dir().join(format!("cenote-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let name = format!("cenote-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let listeners =
            [UnixDatagram::bind(&path).unwrap(), UnixDatagram::bind_addr(&abstract_name).unwrap()];
        for (listener, path) in listeners.iter().zip([path.display().to_string(), format!("@{name}")]) {
            send(&path, "READY=1").unwrap();
            let mut buf = [0; 32];
            let n = listener.recv(&mut buf).unwrap();
            assert_eq!(&buf[..n], b"READY=1");
        }
        std::fs::remove_file(path).unwrap();
        assert!(send("/nowhere/at/all", "READY=1").is_err());
    }
}
