//! The way to the client: plain, until both sides agree on TLS.

use std::sync::Arc;
use std::time::Duration;
use tls::{Identity, Secure};
use units::{Error, Kind, Result};
use world::Stream;

/// A client that takes no more hears no farewell.
const FAREWELL: Duration = Duration::from_secs(1);

pub(crate) struct Line {
    raw: Arc<dyn Stream>,
    secure: Option<Arc<Secure>>,
    identity: Option<Identity>,
}

impl Line {
    /// With an identity, which TLS is made by.
    pub fn new(raw: Arc<dyn Stream>, identity: Option<Identity>) -> Line {
        Line { raw, secure: None, identity }
    }

    pub fn wants_tls(&self) -> bool {
        self.identity.is_some()
    }

    /// As it is now: to be asked for again after [`Line::secure`].
    pub fn stream(&self) -> Arc<dyn Stream> {
        match &self.secure {
            Some(secure) => secure.clone(),
            None => self.raw.clone(),
        }
    }

    /// Makes the handshake. Waits for the client, without a limit.
    pub async fn secure(&mut self) -> Result<()> {
        let Some(identity) = &self.identity else {
            return Err(Error::new(Kind::Unsupported, "negotiate TLS: there is no certificate"));
        };
        self.secure = Some(Arc::new(identity.accept(self.raw.clone()).await?));
        Ok(())
    }

    /// Ends both directions, after a farewell where there is TLS.
    pub async fn hang_up(self) {
        if let Some(secure) = &self.secure {
            world::timeout(FAREWELL, secure.close()).await;
        }
        self.raw.shutdown();
    }
}
