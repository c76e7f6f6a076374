//! The server: its limits, the sessions that are the same, and what an administrator sees and ends.
//!
//! ```text
//!   claim   a new session of a known client ends the old one first: nothing of the old happens after the new began
//!   watch   a client that is silent is asked; one that is silent still, or keeps our memory, is hung up on
//! ```
//!
//! The [`Reception`] takes clients in and watches over them.

use crate::directory::Directory;
use crate::guesses::Guesses;
use crate::session::{Session, Vitals};
use flow::{Arrival, Budget, Clients, Debts, Guest, Places, Reception};
use probe::{Hub, Io, IoSnapshot};
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::Result;
use world::{Address, Instant, Stream};

/// The memory for requests that each connection has for itself.
const UNIT: usize = 64 << 10;
/// A command of the largest length, and what a client may send unasked for others meanwhile.
const LARGEST: usize = 48 << 20;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// More are turned away, or make others go that have said nothing; strangers are those that are logging in.
    pub places: Places,
    /// What all commands of all connections may hold together, in bytes.
    pub total_bytes: usize,
    /// What the commands of one session may hold, from their arrival until their answers are out.
    pub session_bytes: usize,
    /// Commands that a session may have under way.
    pub session_commands: usize,
    pub login_timeout: Duration,
    /// How long a client may say nothing after it has come.
    pub silence_timeout: Duration,
    /// How long a client may be silent before it is asked whether it is there.
    pub ping_interval: Duration,
    /// How long it may take to answer, to read, or to send what it announced.
    pub stall_timeout: Duration,
    /// How long a stopping server lets commands in flight land.
    pub stop_timeout: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            places: Places { all: 16 << 10, of_address: 4 << 10, strangers: 512, strangers_of_address: 128 },
            total_bytes: 512 << 20,
            session_bytes: 64 << 20,
            session_commands: 256,
            login_timeout: Duration::from_secs(15),
            silence_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(20),
            stall_timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(10),
        }
    }
}

/// A session, as an administrator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub address: Address,
    /// Empty while it logs in.
    pub initiator: String,
    /// None while it logs in, and in a discovery session.
    pub target: Option<String>,
    pub since: Instant,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
}

/// What makes two sessions the same: the ports at both ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionKey {
    pub initiator: String,
    pub isid: [u8; 6],
    /// Name and portal group; none for discovery.
    pub target: Option<(String, u16)>,
}

/// A running server. Dropping it does not end it; [`Server::stop`] does.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    directory: Arc<dyn Directory>,
    hub: Hub,
    config: Config,
    budget: Arc<Budget>,
    reception: Reception<Visitor>,
    /// The handle that was given last.
    last_tsih: Mutex<u16>,
    guesses: Mutex<Guesses>,
}

/// What is known of a client.
struct Visitor {
    /// None while it logs in.
    key: Option<SessionKey>,
    tsih: u16,
    io: Option<Arc<Io>>,
    vitals: Arc<Vitals>,
    ping_interval: Duration,
    stall_timeout: Duration,
    /// How far the watch saw it, and since when.
    seen: (u64, Instant),
    debts: Debts,
    budget: Arc<Budget>,
}

impl Guest for Visitor {
    fn vitals(&self) -> &flow::Vitals {
        &self.vitals
    }

    fn is_stalled(&mut self, now: Instant) -> bool {
        let progress = self.vitals.progress();
        if self.seen.0 != progress {
            self.seen = (progress, now);
        }
        let is_silent = now.since(self.seen.1) >= self.ping_interval;
        if self.vitals.is_up() && (is_silent || self.vitals.owes()) {
            self.vitals.ping();
        }
        let is_crowded = self.budget.is_waited_for();
        self.vitals.ask_to_yield(is_crowded);
        self.debts.are_overdue(&self.vitals, now, self.stall_timeout, is_crowded)
    }
}

impl Visitor {
    fn target(&self) -> Option<&str> {
        Some(&self.key.as_ref()?.target.as_ref()?.0)
    }
}

impl Server {
    /// Each session tells its I/O to `hub`.
    pub fn new(directory: Arc<dyn Directory>, hub: Hub, config: Config) -> Server {
        Server(Arc::new(Shared {
            directory,
            hub,
            config,
            budget: Budget::new(config.total_bytes, LARGEST, UNIT),
            reception: Reception::new(config.places, config.stall_timeout.min(config.ping_interval)),
            last_tsih: Mutex::default(),
            guesses: Mutex::default(),
        }))
    }

    /// Accepts clients at a portal until the server stops, or the portal is closed. Returns the address it really
    /// listens on.
    pub fn listen(&self, address: &Address) -> Result<Address> {
        let shared = self.0.clone();
        self.0.reception.listen(address, "iSCSI", move |arrival| shared.admit(arrival))
    }

    /// Closes a portal, and ends the sessions that came by it.
    pub fn close(&self, portal: &Address) {
        self.0.reception.close(portal);
    }

    /// Serves one connection that was accepted elsewhere, at `portal`.
    pub fn serve(&self, stream: Box<dyn Stream>, portal: Address, client: Address) {
        self.0.admit(Arrival { stream, client, door: Some(portal), is_from_listening: false });
    }

    /// The directory may say something else now: sessions look, and tell their clients.
    pub fn refresh(&self) {
        let clients = self.0.reception.clients();
        let vitals = clients.values().map(|c| &c.guest.vitals);
        vitals.filter(|v| v.is_up()).for_each(|v| v.note_change());
    }

    pub fn clients(&self) -> Vec<Client> {
        self.0.reception.clients().values().map(describe).collect()
    }

    /// Ends the sessions to one target, after what they have in flight.
    pub fn disconnect(&self, target: &str) {
        self.0.disconnect(target);
    }

    /// Listens no more, lets commands in flight land, and ends every connection.
    pub async fn stop(&self) {
        self.0.reception.stop(self.0.config.stop_timeout).await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iscsi::Server({:?})", self.0.reception)
    }
}

fn describe(client: &flow::Client<Visitor>) -> Client {
    let Visitor { key, io, .. } = &client.guest;
    let counts = io.as_ref().map(|io| io.snapshot());
    let IoSnapshot { read, write, .. } = counts.unwrap_or_default();
    Client {
        address: client.address.clone(),
        initiator: key.as_ref().map(|k| k.initiator.clone()).unwrap_or_default(),
        target: client.guest.target().map(str::to_string),
        since: client.since,
        reads: read.ops,
        read_bytes: read.bytes,
        writes: write.ops,
        written_bytes: write.bytes,
    }
}

impl Shared {
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn directory(&self) -> &dyn Directory {
        &*self.directory
    }

    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Ends the sessions to one target, after what they have in flight.
    pub fn disconnect(&self, target: &str) {
        let clients = self.reception.clients();
        clients.values().filter(|c| c.guest.target() == Some(target)).for_each(flow::Client::stop);
    }

    pub fn note_io(&self, id: u64, io: Arc<Io>) {
        if let Some(client) = self.reception.clients().get_mut(id) {
            client.guest.io = Some(io);
        }
    }

    pub fn guesses(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_session(&self, tsih: u16) -> bool {
        self.reception.clients().values().any(|c| c.guest.tsih == tsih)
    }

    /// The name of the initiator port of a session.
    pub fn initiator_port(&self, id: u64) -> Arc<str> {
        let clients = self.reception.clients();
        let key = clients.get(id).and_then(|c| c.guest.key.as_ref());
        let Some(SessionKey { initiator, isid, .. }) = key else { return "".into() };
        let isid = isid.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        format!("{initiator},i,0x{isid}").into()
    }

    /// Makes the session of connection `id` this one, after the one it takes the place of has ended. Returns its handle.
    pub async fn claim(&self, id: u64, key: SessionKey) -> Option<u16> {
        let (tsih, older) = {
            let mut clients = self.reception.clients();
            let same = |(other, client): &(u64, &flow::Client<Visitor>)| {
                *other != id && client.guest.key.as_ref() == Some(&key)
            };
            let older: Vec<_> =
                clients.iter().filter(same).map(|(other, c)| (other, c.done.clone())).collect();
            let tsih = self.free_tsih(&clients)?;
            let client = clients.get_mut(id)?;
            client.guest.tsih = tsih;
            // To discover nobody need prove anything, and it takes a moment: such a session stays a stranger.
            let is_discovery = key.target.is_none();
            client.guest.key.get_or_insert(key);
            if !is_discovery {
                clients.settle(id);
            }
            (tsih, older)
        };
        for (other, done) in older {
            // It would wait for its client to read, which is here now.
            if let Some(client) = self.reception.clients().get(other) {
                client.put_out();
            }
            done.wait().await;
        }
        Some(tsih)
    }

    fn free_tsih(&self, clients: &Clients<Visitor>) -> Option<u16> {
        // No code that can panic runs under this lock.
        let mut last = self.last_tsih.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..u16::MAX {
            *last = last.checked_add(1).unwrap_or(1);
            if clients.values().all(|c| c.guest.tsih != *last) {
                return Some(*last);
            }
        }
        None
    }

    fn admit(self: &Arc<Shared>, arrival: Arrival) {
        let vitals = Arc::new(Vitals::default());
        let visitor = Visitor {
            key: None,
            tsih: 0,
            io: None,
            vitals: vitals.clone(),
            ping_interval: self.config.ping_interval,
            stall_timeout: self.config.stall_timeout,
            seen: (0, world::now()),
            debts: Debts::default(),
            budget: self.budget.clone(),
        };
        let (client, door) = (arrival.client.clone(), arrival.door.clone());
        self.reception.admit(arrival, visitor, |id, stream| {
            let session = Session {
                id,
                portal: found_at(&*stream, door.as_ref().unwrap_or(&client)),
                stream,
                client,
                shared: self.clone(),
                lease: self.budget.lease(),
                vitals,
            };
            async move {
                // How a client ended concerns only itself: it has been answered, or it broke the protocol.
                let _ = session.run().await;
            }
        });
    }
}

/// Where a client came in: of a portal at every address of this machine the one that it found.
fn found_at(stream: &dyn Stream, portal: &Address) -> Address {
    let everywhere = matches!(portal, Address::Tcp(portal) if portal.ip().is_unspecified());
    let own = everywhere.then(|| stream.local()).flatten();
    own.unwrap_or_else(|| portal.clone())
}
