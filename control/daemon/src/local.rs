//! An appliance in this process, for commands when no daemon runs.
//!
//! The command is plain code that waits; the appliance runs on loops of its own, and the two talk through channels:
//!
//! ```text
//!   this thread:  call ──▶ requests ──▶ loops: Appliance::call
//!                 wait ◀── reply    ◀──┘
//! ```

use api::{ApiError, Call, Caller, ErrorKind, Reply, Result};
use appliance::{Appliance, Config, Home, HomeLock};
use cli::Failure;
use std::sync::mpsc;
use std::thread::JoinHandle;
use world::sync::{Receiver, Sender, channel};

type Asked = (Call, mpsc::Sender<Result<Reply>>);

pub struct Local {
    requests: Option<Sender<Asked>>,
    thread: Option<JoinHandle<Result<()>>>,
    _lock: HomeLock,
}

impl Local {
    pub fn start(home: &Home, lock: HomeLock) -> Local {
        let (requests, asked) = channel(1);
        let config = Config {
            home: home.clone(),
            is_daemon: false,
            mounts: false,
            system: Vec::new(),
            is_safe: false,
        };
        let thread = std::thread::spawn(move || linux::block_on(answer(config, asked)));
        Local { requests: Some(requests), thread: Some(thread), _lock: lock }
    }

    /// Closes all pools.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.requests = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        match thread.join() {
            Ok(closed) => closed.map_err(Failure::from),
            // What it panicked with is on the screen already.
            Err(_) => Err(Failure::Told),
        }
    }
}

async fn answer(config: Config, mut asked: Receiver<Asked>) -> Result<()> {
    let appliance = Appliance::start(config).await?;
    while let Some((call, reply)) = asked.recv().await {
        // The caller waits for this, or has ended with the program.
        let _ = reply.send(api::Service::call(&appliance, call).await);
    }
    appliance.stop().await
}

impl Caller for Local {
    fn call(&mut self, call: Call) -> Result<Reply> {
        let gone = || ApiError::new(ErrorKind::Cancelled, "the appliance has ended");
        let (send, receive) = mpsc::channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        let sent = requests.try_send((call, send)).map_err(|_| ());
        match sent.and_then(|()| receive.recv().map_err(|_| ())) {
            Ok(reply) => reply,
            // It could not even start: that is what there is to say.
            Err(()) => match self.thread.take().map(JoinHandle::join) {
                Some(Ok(Err(e))) => Err(e),
                _ => Err(gone()),
            },
        }
    }

    fn outlives_us(&self) -> bool {
        false
    }
}
