//! Taking in clients, until told otherwise.

use futures_util::future::{Either, select};
use std::pin::pin;
use std::time::Duration;
use world::sync::oneshot;
use world::{Address, Listener, Stream};

/// Out of descriptors, most likely: some will be closed.
const PAUSE: Duration = Duration::from_millis(100);

/// Gives each client that connects to `begin`, until the sender of `ended` is dropped.
pub async fn accept(
    listener: Box<dyn Listener>,
    ended: oneshot::Receiver<()>,
    begin: impl Fn(Box<dyn Stream>, Address),
) {
    let mut ended = pin!(ended);
    while let Either::Left((accepted, _)) = select(listener.accept(), ended.as_mut()).await {
        match accepted {
            Ok((stream, address)) => begin(stream, address),
            Err(_) => world::sleep(PAUSE).await,
        }
    }
}
