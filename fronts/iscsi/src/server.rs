//! Listens at the portals, gives each connection a core, and watches over all of them.
//!
//! ```text
//!   accept (one task per portal) ──round robin──▶ session on core 0, 1, … n
//!   claim   a new session of a known client ends the old one first: nothing of the old happens after the new began
//!   watch   who is silent is asked; who is silent still, or keeps our memory, is hung up on
//! ```

use crate::directory::Directory;
use crate::guesses::Guesses;
use crate::session::{Session, Vitals};
use flow::{Budget, Crowd, Places};
use probe::{Hub, Io, IoSnapshot};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::sync::{Event, oneshot};
use world::{Address, Instant, Stream, Task};

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
    state: Mutex<State>,
    stopping: AtomicBool,
    next_core: AtomicU64,
    guesses: Mutex<Guesses>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<u64, Entry>,
    crowd: Crowd,
    /// The connections that have named their initiator.
    claimed: BTreeMap<SessionKey, Vec<u64>>,
    next_id: u64,
    next_tsih: u16,
    /// By the address that was asked for. Dropping one ends its listening.
    listening: Vec<(Address, oneshot::Sender<()>)>,
    watched: bool,
}

struct Entry {
    address: Address,
    portal: Address,
    key: Option<SessionKey>,
    tsih: u16,
    io: Option<Arc<Io>>,
    since: Instant,
    vitals: Arc<Vitals>,
    stream: Arc<dyn Stream>,
    done: Arc<Event>,
    task: Option<Task<()>>,
    /// How far the watch saw it, and since when.
    seen: (u64, Instant),
}

impl Server {
    /// Each session tells its I/O to `hub`.
    pub fn new(directory: Arc<dyn Directory>, hub: Hub, config: Config) -> Server {
        Server(Arc::new(Shared {
            directory,
            hub,
            config,
            budget: Budget::new(config.total_bytes, LARGEST, UNIT),
            state: Mutex::default(),
            stopping: AtomicBool::new(false),
            next_core: AtomicU64::new(0),
            guesses: Mutex::default(),
        }))
    }

    /// Accepts clients at a portal until the server stops, or the portal is closed. Returns the address it really
    /// listens on.
    pub fn listen(&self, address: &Address) -> Result<Address> {
        let listener = world::listen(address)
            .map_err(|e| Error::new(Kind::Io, "listen for iSCSI clients").at(address).because(e))?;
        let local = listener.local();
        let (end, ended) = oneshot::channel();
        self.0.lock().listening.push((local.clone(), end));
        let (shared, portal) = (self.0.clone(), local.clone());
        let begin = move |stream, address| shared.begin(stream, portal.clone(), address, true);
        world::spawn(flow::accept(listener, ended, begin));
        Ok(local)
    }

    /// Closes a portal, and ends the sessions that came by it.
    pub fn close(&self, portal: &Address) {
        let mut state = self.0.lock();
        state.listening.retain(|(address, _)| address != portal);
        state.sessions.values().filter(|s| s.portal == *portal).for_each(|s| s.vitals.stop());
    }

    /// Serves one connection that somebody else accepted at `portal`.
    pub fn serve(&self, stream: Box<dyn Stream>, portal: Address, client: Address) {
        self.0.begin(stream, portal, client, false);
    }

    /// The directory may say something else now: sessions look, and tell their clients.
    pub fn refresh(&self) {
        self.0.lock().sessions.values().filter(|s| s.vitals.is_up()).for_each(|s| s.vitals.note_change());
    }

    pub fn clients(&self) -> Vec<Client> {
        self.0.lock().sessions.values().map(Entry::describe).collect()
    }

    /// Ends the sessions to one target, after what they have in flight.
    pub fn disconnect(&self, target: &str) {
        let state = self.0.lock();
        let is_there =
            |s: &&Entry| s.key.as_ref().and_then(|k| k.target.as_ref()).is_some_and(|t| t.0 == target);
        state.sessions.values().filter(is_there).for_each(|s| s.vitals.stop());
    }

    /// Listens no more, lets commands in flight land, and ends every connection.
    pub async fn stop(&self) {
        self.0.stopping.store(true, Ordering::Release);
        let tasks: Vec<Task<()>> = {
            let mut state = self.0.lock();
            state.listening.clear();
            let stop = |s: &mut Entry| {
                s.vitals.stop();
                s.task.take()
            };
            state.sessions.values_mut().filter_map(stop).collect()
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
        write!(f, "iscsi::Server({} connections)", self.0.lock().sessions.len())
    }
}

impl Entry {
    fn describe(&self) -> Client {
        let counts = self.io.as_ref().map(|io| io.snapshot());
        let IoSnapshot { read, write, .. } = counts.unwrap_or_default();
        Client {
            address: self.address.clone(),
            initiator: self.key.as_ref().map(|k| k.initiator.clone()).unwrap_or_default(),
            target: self.key.as_ref().and_then(|k| k.target.as_ref()).map(|t| t.0.clone()),
            since: self.since,
            reads: read.ops,
            read_bytes: read.bytes,
            writes: write.ops,
            written_bytes: write.bytes,
        }
    }

    /// One look of the watch: whether the client has done nothing for too long.
    fn is_stalled(&mut self, now: Instant, config: &Config) -> bool {
        let progress = self.vitals.progress();
        if self.seen.0 != progress {
            self.seen = (progress, now);
        }
        let silent = now.since(self.seen.1);
        let owes = self.vitals.owes();
        if self.vitals.is_up() && (silent >= config.ping_interval || owes) {
            self.vitals.ping();
        }
        owes && silent >= config.stall_timeout
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

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn directory(&self) -> &dyn Directory {
        &*self.directory
    }

    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    pub fn note_io(&self, id: u64, io: Arc<Io>) {
        if let Some(entry) = self.lock().sessions.get_mut(&id) {
            entry.io = Some(io);
        }
    }

    pub fn guesses(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_session(&self, tsih: u16) -> bool {
        self.lock().sessions.values().any(|s| s.tsih == tsih)
    }

    /// The name of the initiator port of a session.
    pub fn initiator_port(&self, id: u64) -> Arc<str> {
        let state = self.lock();
        let key = state.sessions.get(&id).and_then(|s| s.key.as_ref());
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
            let mut state = self.lock();
            let older = state.claimed.get(&key).into_iter().flatten();
            let older = older.filter(|other| **other != id).filter_map(|other| state.sessions.get(other));
            let older: Vec<(Arc<Event>, Arc<Vitals>, Arc<dyn Stream>)> =
                older.map(|s| (s.done.clone(), s.vitals.clone(), s.stream.clone())).collect();
            (state.take_key(id, key)?, older)
        };
        for (done, vitals, stream) in older {
            vitals.stop();
            // It would wait for its client to read, who is here.
            stream.shutdown();
            done.wait().await;
        }
        Some(tsih)
    }

    /// Starts a session on the next core, or hangs up when there are too many.
    fn begin(self: &Arc<Shared>, stream: Box<dyn Stream>, portal: Address, address: Address, is_ours: bool) {
        let stream: Arc<dyn Stream> = Arc::from(stream);
        let vitals = Arc::new(Vitals::default());
        let mut state = self.lock();
        // We accepted it a moment before its portal was closed.
        let too_late = is_ours && state.listening.iter().all(|(open, _)| *open != portal);
        state.next_id += 1;
        let id = state.next_id;
        if self.is_stopping() || too_late || !state.let_in(id, &address, &self.config.places) {
            drop(state);
            return stream.shutdown();
        }
        let session = Session {
            id,
            stream: stream.clone(),
            portal: found_at(&*stream, &portal),
            client: address.clone(),
            shared: self.clone(),
            lease: self.budget.lease(),
            vitals: vitals.clone(),
        };
        let now = world::now();
        let done = Arc::new(Event::new());
        let entry = Entry {
            address,
            portal,
            key: None,
            tsih: 0,
            io: None,
            since: now,
            vitals,
            stream,
            done: done.clone(),
            task: None,
            seen: (0, now),
        };
        state.sessions.insert(id, entry);
        let watched = std::mem::replace(&mut state.watched, true);
        drop(state);
        if !watched {
            world::spawn(watch(self.clone()));
        }
        let core = self.next_core.fetch_add(1, Ordering::Relaxed) as usize;
        let task = world::spawn_on(core, run(self.clone(), id, session, done));
        if let Some(entry) = self.lock().sessions.get_mut(&id) {
            entry.task = Some(task);
        }
    }
}

/// Where a client came in: of a portal at every address of this machine the one that it found.
fn found_at(stream: &dyn Stream, portal: &Address) -> Address {
    let everywhere = matches!(portal, Address::Tcp(portal) if portal.ip().is_unspecified());
    let own = everywhere.then(|| stream.local()).flatten();
    own.unwrap_or_else(|| portal.clone())
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

    /// The session of connection `id` has said who it is; its handle.
    fn take_key(&mut self, id: u64, key: SessionKey) -> Option<u16> {
        let tsih = self.free_tsih()?;
        let entry = self.sessions.get_mut(&id)?;
        entry.tsih = tsih;
        if entry.key.is_none() {
            entry.key = Some(key.clone());
            self.claimed.entry(key).or_default().push(id);
            self.crowd.settle(id);
        }
        Some(tsih)
    }

    fn remove(&mut self, id: u64) {
        self.crowd.leave(id);
        let Some(key) = self.sessions.remove(&id).and_then(|entry| entry.key) else { return };
        if let Some(ids) = self.claimed.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.claimed.remove(&key);
            }
        }
    }

    fn free_tsih(&mut self) -> Option<u16> {
        for _ in 0..u16::MAX {
            self.next_tsih = self.next_tsih.checked_add(1).unwrap_or(1);
            if !self.sessions.values().any(|s| s.tsih == self.next_tsih) {
                return Some(self.next_tsih);
            }
        }
        None
    }
}

async fn run(shared: Arc<Shared>, id: u64, session: Session, done: Arc<Event>) {
    // How a client ended concerns nobody but itself: it has been answered, or it broke the protocol.
    let _ = session.run().await;
    shared.lock().remove(id);
    done.set();
}

/// However short the limits, the watch must not keep a core busy.
const SHORTEST: Duration = Duration::from_millis(10);

async fn watch(shared: Arc<Shared>) {
    let shortest = shared.config.stall_timeout.min(shared.config.ping_interval);
    while !shared.is_stopping() {
        world::sleep((shortest / 4).max(SHORTEST)).await;
        let now = world::now();
        let mut state = shared.lock();
        for entry in state.sessions.values_mut() {
            if entry.is_stalled(now, &shared.config) {
                entry.stream.shutdown();
            }
        }
    }
}
