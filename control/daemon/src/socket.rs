//! The daemon's side of the command socket: one task per connection, one line per request.

use api::{ApiError, Call, ErrorKind, Service};
use appliance::Appliance;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use units::{Error, Kind, Result};
use world::{Address, Buf, IoBuf, Listener, Stream};

/// A longer request is nothing that a command would send.
const LINE_MAX: usize = 1 << 20;
const CHUNK: usize = 16 << 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Answers commands at `path` from now on.
pub fn listen(appliance: &Appliance, path: &Path) -> Result<()> {
    let address = Address::Unix(path.into());
    let listener = world::listen(&address)
        .map_err(|e| Error::invalid(world::cannot_listen("commands", &address, &e, "--home")))?;
    // Whatever the umask: a command may do everything.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|e| Error::new(Kind::Io, "listen for commands").at(path.display()).because(e))?;
    world::spawn(accept(appliance.clone(), listener));
    Ok(())
}

async fn accept(appliance: Appliance, listener: Box<dyn Listener>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(world::spawn(talk(appliance.clone(), stream))),
            // Out of descriptors, most likely: some will be closed, and commands are to be had again.
            Err(_) => world::sleep(PAUSE).await,
        }
    }
}

async fn talk(appliance: Appliance, stream: Box<dyn Stream>) {
    let mut pending: Vec<u8> = Vec::new();
    loop {
        while let Some(end) = pending.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let reply = answer(&appliance, &line).await;
            if stream.send(vec![Buf::copy_from(&reply)]).await.is_err() {
                return;
            }
        }
        let (buf, received) = stream.recv(IoBuf::scratch(CHUNK), 0..CHUNK).await;
        match received {
            Ok(n) if n > 0 && pending.len() + n <= LINE_MAX => pending.extend_from_slice(&buf[..n]),
            _ => return,
        }
    }
}

async fn answer(appliance: &Appliance, line: &[u8]) -> Vec<u8> {
    let reply = match serde_json::from_slice::<Call>(line) {
        Ok(call) => appliance.call(call).await,
        Err(e) => {
            Err(ApiError::new(ErrorKind::Invalid, format!("not a request that this daemon knows: {e}")))
        }
    };
    let mut bytes = serde_json::to_vec(&reply)
        .unwrap_or_else(|_| br#"{"Err":{"kind":"io","message":"no reply"}}"#.to_vec());
    bytes.push(b'\n');
    bytes
}
