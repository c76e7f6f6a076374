//! The daemon's side of the command socket: one task per connection, one line per request.
//!
//! A connection that asked for the end has one line more when something was wrong with it ([`End`]), and stays until the
//! process is gone.

use api::{ApiError, Call, ErrorKind, Request, Service};
use appliance::Appliance;
use futures_util::future::{Either, select};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::sync::{Event, OwnedPermit, Semaphore};
use world::{Address, Buf, IoBuf, Listener, Stream};

/// A longer request is nothing that a command would send.
const LINE_MAX: usize = 1 << 20;
const CHUNK: usize = 16 << 10;
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that may wait for the end: more than there can be.
const WAITING_MAX: usize = 1 << 20;
/// How long the end waits for those that do not take what they are told.
const TELLING: Duration = Duration::from_secs(1);

/// How the daemon ended, for connections that asked for it.
#[derive(Debug)]
pub struct End {
    /// Set before `is_over`.
    why: OnceLock<ApiError>,
    is_over: Event,
    waiting: Arc<Semaphore>,
}

impl Default for End {
    fn default() -> End {
        let (why, is_over) = Default::default();
        End { why, is_over, waiting: Arc::new(Semaphore::new(WAITING_MAX)) }
    }
}

impl End {
    /// To be called once, when the process is about to go. Waits until it was sent to those that wait.
    pub async fn tell(&self, outcome: &std::result::Result<(), String>) {
        if let Err(why) = outcome {
            let _ = self.why.set(ApiError::new(ErrorKind::Io, why.clone()));
        }
        self.is_over.set();
        let _ = world::timeout(TELLING, self.waiting.acquire(WAITING_MAX)).await;
    }
}

/// Answers commands at `path` from now on.
pub fn listen(appliance: &Appliance, path: &Path, end: &Arc<End>) -> Result<()> {
    let address = Address::Unix(path.into());
    let listener = world::listen(&address)
        .map_err(|e| Error::invalid(world::cannot_listen("commands", &address, &e, "--home")))?;
    // Whatever the umask: a command may do everything.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|e| Error::new(Kind::Io, "listen for commands").at(path.display()).because(e))?;
    world::spawn(accept(appliance.clone(), listener, end.clone()));
    Ok(())
}

async fn accept(appliance: Appliance, listener: Box<dyn Listener>, end: Arc<End>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(world::spawn(talk(appliance.clone(), stream, end.clone()))),
            // Out of descriptors, most likely: some will be closed, and commands are to be had again.
            Err(_) => world::sleep(PAUSE).await,
        }
    }
}

async fn talk(appliance: Appliance, stream: Box<dyn Stream>, end: Arc<End>) {
    let mut pending: Vec<u8> = Vec::new();
    let mut waits: Option<OwnedPermit> = None;
    loop {
        while let Some(last) = pending.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = pending.drain(..=last).collect();
            let call = serde_json::from_slice::<Call>(&line);
            if call.as_ref().is_ok_and(|call| call.request == Request::Shutdown) {
                waits = end.waiting.try_acquire_owned(1);
            }
            let reply = answer(&appliance, call).await;
            if stream.send(vec![Buf::copy_from(&reply)]).await.is_err() {
                return;
            }
        }
        let receiving = stream.recv(IoBuf::scratch(CHUNK), 0..CHUNK);
        let (buf, received) = match select(pin!(receiving), pin!(end.is_over.wait())).await {
            Either::Left((received, _)) => received,
            Either::Right(_) => break,
        };
        match received {
            Ok(n) if n > 0 && pending.len() + n <= LINE_MAX => pending.extend_from_slice(&buf[..n]),
            _ => return,
        }
    }
    if let (Some(told), Some(why)) = (waits, end.why.get()) {
        let _ = stream.send(vec![Buf::copy_from(&line_of(&Err(why.clone())))]).await;
        drop(told);
    }
    // The process lets go of it.
    std::future::pending::<()>().await;
}

async fn answer(appliance: &Appliance, call: serde_json::Result<Call>) -> Vec<u8> {
    line_of(&match call {
        Ok(call) => appliance.call(call).await,
        Err(e) => {
            Err(ApiError::new(ErrorKind::Invalid, format!("not a request that this daemon knows: {e}")))
        }
    })
}

fn line_of(reply: &api::Result<api::Reply>) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(reply)
        .unwrap_or_else(|_| br#"{"Err":{"kind":"io","message":"no reply"}}"#.to_vec());
    bytes.push(b'\n');
    bytes
}
