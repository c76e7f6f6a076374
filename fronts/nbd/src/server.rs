//! Listens, gives each connection a core, and watches over all of them.
//!
//! ```text
//!   accept (one task per address) ──round robin──> session on core 0, 1, ... n
//!   watch  (one task) ── every few seconds: who keeps our memory and does not move? hang up
//! ```

use crate::session::Session;
use crate::volume::Exports;
use crate::wire::MAX_PAYLOAD;
use flow::{Budget, Crowd, Places, Vitals};
use probe::{Hub, Io, IoSnapshot};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tls::Identity;
use units::{Error, Kind, Result};
use world::sync::oneshot;
use world::{Address, Instant, Stream, Task};

/// The memory for requests that each connection has for itself.
const UNIT: usize = 1 << 20;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// More are turned away, or make others go that have said nothing.
    pub places: Places,
    /// What all requests of all connections may hold together, in bytes.
    pub total_bytes: usize,
    /// What the requests of one connection may hold, from their arrival until their replies are out.
    pub connection_bytes: usize,
    pub connection_requests: usize,
    /// How long a client may take to choose an export, and to say anything.
    pub negotiation_timeout: Duration,
    pub silence_timeout: Duration,
    /// How long a client may neither read its replies nor send what it announced.
    pub stall_timeout: Duration,
    /// How long a stopping server lets requests in flight land.
    pub stop_timeout: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            places: Places { all: 256, of_address: 64, strangers: 64, strangers_of_address: 16 },
            total_bytes: 512 << 20,
            connection_bytes: 64 << 20,
            connection_requests: 1024,
            negotiation_timeout: Duration::from_secs(15),
            silence_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(10),
        }
    }
}

/// A connected client, as an administrator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub address: Address,
    /// Where it came in; none when it was accepted elsewhere.
    pub door: Option<Address>,
    /// `None` while it still negotiates.
    pub export: Option<String>,
    pub since: Instant,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
}

/// A running server. Dropping it does not end it; [`Server::stop`] does.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    exports: Arc<dyn Exports>,
    hub: Hub,
    config: Config,
    budget: Arc<Budget>,
    state: Mutex<State>,
    stopping: AtomicBool,
    next_core: AtomicU64,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<u64, Entry>,
    crowd: Crowd,
    next_id: u64,
    /// By the address that each really listens on. Dropping one ends its listening.
    listening: Vec<(Address, oneshot::Sender<()>)>,
    watched: bool,
    /// What clients that come over TCP are shown in the TLS that they must begin.
    tls: Option<Identity>,
}

/// Where a client came in, and what is offered there.
struct Entrance {
    door: Option<Address>,
    exports: Arc<dyn Exports>,
}

struct Entry {
    address: Address,
    /// Where it was accepted; none when somebody else did that.
    door: Option<Address>,
    export: Option<(String, Arc<Io>)>,
    since: Instant,
    vitals: Arc<Vitals>,
    stream: Arc<dyn Stream>,
    task: Option<Task<()>>,
    /// Where the watch saw it stuck, and since when.
    stuck: Option<(u64, Instant)>,
}

impl Server {
    /// Each connection tells its I/O to `hub`.
    pub fn new(exports: Arc<dyn Exports>, hub: Hub, config: Config) -> Server {
        let bases = config.places.all * UNIT;
        Server(Arc::new(Shared {
            exports,
            hub,
            config,
            budget: Budget::new(config.total_bytes.saturating_sub(bases), MAX_PAYLOAD as usize, UNIT),
            state: Mutex::default(),
            stopping: AtomicBool::new(false),
            next_core: AtomicU64::new(0),
        }))
    }

    /// Requires TLS of clients that come over TCP, from the next one on. Clients of a Unix socket have none.
    pub fn require_tls(&self, identity: Identity) {
        self.0.lock().tls = Some(identity);
    }

    /// Clients that come over TCP must begin TLS.
    pub fn requires_tls(&self) -> bool {
        self.0.lock().tls.is_some()
    }

    /// Accepts clients at `address` until the server stops, or the door is closed. Returns the address it really listens on.
    pub fn listen(&self, address: &Address) -> Result<Address> {
        self.listen_offering(address, self.0.exports.clone())
    }

    /// The same, where `exports` are offered to the clients that come in there.
    pub fn listen_offering(&self, address: &Address, exports: Arc<dyn Exports>) -> Result<Address> {
        let listener = world::listen(address)
            .map_err(|e| Error::new(Kind::Io, "listen for NBD clients").at(address).because(e))?;
        let local = listener.local();
        let (end, ended) = oneshot::channel();
        self.0.lock().listening.push((local.clone(), end));
        let (shared, door) = (self.0.clone(), local.clone());
        let begin = move |stream, address| {
            let entrance = Entrance { door: Some(door.clone()), exports: exports.clone() };
            shared.begin(stream, entrance, address);
        };
        world::spawn(flow::accept(listener, ended, begin));
        Ok(local)
    }

    /// Listens at a door no more, and ends the connections that came through it, after what they have in flight.
    pub fn close(&self, door: &Address) {
        let mut state = self.0.lock();
        state.listening.retain(|(address, _)| address != door);
        let came = state.sessions.values().filter(|s| s.door.as_ref() == Some(door));
        came.for_each(|s| s.vitals.stop());
    }

    /// Serves one connection that somebody else accepted.
    pub fn serve(&self, stream: Box<dyn Stream>, address: Address) {
        let entrance = Entrance { door: None, exports: self.0.exports.clone() };
        self.0.begin(stream, entrance, address);
    }

    pub fn clients(&self) -> Vec<Client> {
        self.0.lock().sessions.values().map(Entry::describe).collect()
    }

    /// Ends the connections to one export, after what they have in flight.
    pub fn disconnect(&self, export: &str) {
        let state = self.0.lock();
        let of_export = state.sessions.values().filter(|s| s.export.as_ref().is_some_and(|e| e.0 == export));
        of_export.for_each(|s| s.vitals.stop());
    }

    /// The same for those that came in at one door, by its address as text.
    pub fn disconnect_at(&self, export: &str, door: Option<&str>) {
        let state = self.0.lock();
        let is_there = |s: &&Entry| {
            let own = s.door.as_ref().map(Address::to_string);
            s.export.as_ref().is_some_and(|e| e.0 == export) && own.as_deref() == door
        };
        state.sessions.values().filter(is_there).for_each(|s| s.vitals.stop());
    }

    /// Listens no more, lets requests in flight land, and ends every connection.
    pub async fn stop(&self) {
        self.0.stopping.store(true, Ordering::Release);
        let tasks: Vec<Task<()>> = {
            let mut state = self.0.lock();
            state.listening.clear();
            let sessions = state.sessions.values_mut();
            sessions
                .filter_map(|s| {
                    s.vitals.stop();
                    s.task.take()
                })
                .collect()
        };
        let all = async {
            for task in tasks {
                task.await;
            }
        };
        if world::timeout(self.0.config.stop_timeout, all).await.is_none() {
            // Whoever is still here waits for a client that does not read, or for a disk.
            self.0.lock().sessions.values().for_each(|s| s.stream.shutdown());
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nbd::Server({} connections)", self.0.lock().sessions.len())
    }
}

impl Entry {
    fn describe(&self) -> Client {
        let counts = self.export.as_ref().map(|(_, io)| io.snapshot());
        let IoSnapshot { read, write, .. } = counts.unwrap_or_default();
        Client {
            address: self.address.clone(),
            door: self.door.clone(),
            export: self.export.as_ref().map(|(name, _)| name.clone()),
            since: self.since,
            reads: read.ops,
            read_bytes: read.bytes,
            writes: write.ops,
            written_bytes: write.bytes,
        }
    }

    /// Whether the client has been stuck at the same place for `limit`.
    fn is_stalled(&mut self, now: Instant, limit: Duration) -> bool {
        let Some(place) = self.vitals.stuck_at() else {
            self.stuck = None;
            return false;
        };
        match self.stuck {
            Some((last, since)) if last == place => now.since(since) >= limit,
            _ => {
                self.stuck = Some((place, now));
                false
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Starts a session on the next core, or hangs up when there are too many.
    fn begin(self: &Arc<Shared>, stream: Box<dyn Stream>, entrance: Entrance, address: Address) {
        let Entrance { door, exports } = entrance;
        let stream: Arc<dyn Stream> = Arc::from(stream);
        let vitals = Arc::new(Vitals::default());
        let mut state = self.lock();
        // It was accepted a moment before its door was closed.
        let too_late = door.as_ref().is_some_and(|door| state.listening.iter().all(|(open, _)| open != door));
        state.next_id += 1;
        let id = state.next_id;
        if self.is_stopping() || too_late || !state.let_in(id, &address, &self.config.places) {
            drop(state);
            return stream.shutdown();
        }
        let session = Session {
            stream: stream.clone(),
            client: address.clone(),
            tls: state.tls.clone().filter(|_| matches!(address, Address::Tcp(_))),
            exports,
            hub: self.hub.clone(),
            lease: self.budget.lease(),
            vitals: vitals.clone(),
            config: self.config,
        };
        let entry = Entry {
            address,
            door,
            export: None,
            since: world::now(),
            vitals,
            stream,
            task: None,
            stuck: None,
        };
        state.sessions.insert(id, entry);
        let watched = std::mem::replace(&mut state.watched, true);
        drop(state);
        if !watched {
            world::spawn(watch(self.clone()));
        }
        let core = self.next_core.fetch_add(1, Ordering::Relaxed) as usize;
        let task = world::spawn_on(core, run(self.clone(), id, session));
        if let Some(entry) = self.lock().sessions.get_mut(&id) {
            entry.task = Some(task);
        }
    }
}

impl State {
    /// Whether client `id` has a place; another may have to go for it.
    fn let_in(&mut self, id: u64, from: &Address, places: &Places) -> bool {
        let State { sessions, crowd, .. } = self;
        let is_silent = |id: u64| sessions.get(&id).is_some_and(|s| s.vitals.progress() == 0);
        match crowd.enter(id, from, places, is_silent) {
            flow::Entry::Full => return false,
            flow::Entry::In => {}
            flow::Entry::InPlaceOf(victim) => {
                if let Some(victim) = sessions.get(&victim) {
                    victim.stream.shutdown();
                    victim.vitals.stop();
                }
            }
        }
        true
    }
}

async fn run(shared: Arc<Shared>, id: u64, session: Session) {
    let began = |export: &str, io: &Arc<Io>| {
        let mut state = shared.lock();
        state.crowd.settle(id);
        if let Some(entry) = state.sessions.get_mut(&id) {
            entry.export = Some((export.to_string(), io.clone()));
        }
    };
    // How a client ended concerns nobody but itself: it has been answered, or it broke the protocol.
    let _ = session.run(began).await;
    let mut state = shared.lock();
    state.crowd.leave(id);
    state.sessions.remove(&id);
}

/// However short the limit, the watch must not keep a core busy.
const SHORTEST: Duration = Duration::from_millis(10);

/// Hangs up on clients that hold our memory and do not move.
async fn watch(shared: Arc<Shared>) {
    let limit = shared.config.stall_timeout;
    while !shared.is_stopping() {
        world::sleep((limit / 4).max(SHORTEST)).await;
        let now = world::now();
        let mut state = shared.lock();
        for entry in state.sessions.values_mut() {
            if entry.is_stalled(now, limit) {
                entry.stream.shutdown();
            }
        }
    }
}
