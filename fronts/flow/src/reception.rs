//! Takes clients in, gives each a core, watches over all of them, and sees them off.
//!
//! ```text
//!   listen (one task per door) ──▶ admit ──round robin──▶ session on core 0, 1, … n ──▶ done
//!                                    │ no place, door closed, stopping: hung up on
//!   watch (one task): a client that holds memory of ours and does not move is hung up on
//! ```
//!
//! What a front knows of a client beside that is its [`Guest`]. One lock holds all of it; no session runs under it.

use crate::Vitals;
use crate::accept::accept;
use crate::crowd::{Crowd, Entry, Places};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{Error, Kind, Result};
use world::sync::{Event, oneshot};
use world::{Address, Instant, Stream, Task};

/// However short the limits, the watch must not keep a core busy.
const SHORTEST_WATCH: Duration = Duration::from_millis(10);
/// So long may a client wait for memory that others have and could give back, and for a pool that goes on.
const LONGEST_WATCH: Duration = Duration::from_secs(1);

/// What a front keeps of each client.
pub trait Guest: Send + 'static {
    fn vitals(&self) -> &Vitals;

    /// One look of the watch: whether the client has done nothing for too long.
    fn is_stalled(&mut self, now: Instant) -> bool;
}

/// A client that is at the door.
pub struct Arrival {
    pub stream: Box<dyn Stream>,
    pub client: Address,
    /// The address at which it came in; none where that is not known.
    pub door: Option<Address>,
    /// It was accepted by [`Reception::listen`], a moment ago: the door may have been closed since.
    pub is_from_listening: bool,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival").field("client", &self.client).field("door", &self.door).finish()
    }
}

/// A client that was taken in.
pub struct Client<G> {
    pub address: Address,
    pub door: Option<Address>,
    pub since: Instant,
    pub guest: G,
    /// Set when its session has ended and nothing of it is at work.
    pub done: Arc<Event>,
    stream: Arc<dyn Stream>,
    task: Option<Task<()>>,
}

impl<G> fmt::Debug for Client<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).field("door", &self.door).finish()
    }
}

impl<G: Guest> Client<G> {
    /// Asks the session to finish what is in flight and to hang up.
    pub fn stop(&self) {
        self.guest.vitals().stop();
    }

    /// Ends the session without waiting for a client that does not read.
    pub fn put_out(&self) {
        self.stop();
        self.stream.shutdown();
    }
}

/// All clients, under the lock. They are told apart by numbers that grow.
pub struct Clients<G> {
    by_id: BTreeMap<u64, Client<G>>,
    crowd: Crowd,
    next_id: u64,
    /// By the address that each really listens on. Dropping one ends its listening.
    doors: Vec<(Address, oneshot::Sender<()>)>,
    is_watched: bool,
}

impl<G> fmt::Debug for Clients<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_id.values()).finish()
    }
}

impl<G: Guest> Clients<G> {
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Client<G>> {
        self.by_id.get_mut(&id)
    }

    pub fn get(&self, id: u64) -> Option<&Client<G>> {
        self.by_id.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Client<G>)> {
        self.by_id.iter().map(|(id, client)| (*id, client))
    }

    pub fn values(&self) -> impl Iterator<Item = &Client<G>> {
        self.by_id.values()
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The client has chosen an export, or logged in: it is no stranger any more.
    pub fn settle(&mut self, id: u64) {
        self.crowd.settle(id);
    }

    /// Whether a client has a place; another may have to go for it.
    fn let_in(&mut self, id: u64, from: &Address, places: &Places) -> bool {
        let Clients { by_id, crowd, .. } = self;
        let is_silent = |id: u64| by_id.get(&id).is_some_and(|c| c.guest.vitals().progress() == 0);
        match crowd.enter(id, from, places, is_silent) {
            Entry::Full => return false,
            Entry::In => {}
            Entry::InPlaceOf(victim) => {
                if let Some(victim) = by_id.get(&victim) {
                    victim.put_out();
                }
            }
        }
        true
    }
}

struct Shared<G> {
    places: Places,
    watch_every: Duration,
    clients: Mutex<Clients<G>>,
    is_stopping: AtomicBool,
    next_core: AtomicU64,
}

/// See the module. Dropping it ends nothing; [`Reception::stop`] does.
pub struct Reception<G>(Arc<Shared<G>>);

impl<G> Clone for Reception<G> {
    fn clone(&self) -> Reception<G> {
        Reception(self.0.clone())
    }
}

impl<G: Guest> fmt::Debug for Reception<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections", self.clients().len())
    }
}

impl<G: Guest> Reception<G> {
    /// The watch looks four times within `shortest_limit`, the shortest time after which a client is stalled.
    pub fn new(places: Places, shortest_limit: Duration) -> Reception<G> {
        Reception(Arc::new(Shared {
            places,
            watch_every: (shortest_limit / 4).clamp(SHORTEST_WATCH, LONGEST_WATCH),
            clients: Mutex::new(Clients {
                by_id: BTreeMap::new(),
                crowd: Crowd::default(),
                next_id: 0,
                doors: Vec::new(),
                is_watched: false,
            }),
            is_stopping: AtomicBool::new(false),
            next_core: AtomicU64::new(0),
        }))
    }

    /// All clients, locked: what is done with them is short and waits for nothing.
    pub fn clients(&self) -> MutexGuard<'_, Clients<G>> {
        // No code that can panic runs under this lock.
        self.0.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives each client that comes in at `address` to `arrived`, until the door is closed or the reception stops.
    /// Returns the address it really listens on. An error says for which clients (`NBD`) and where.
    pub fn listen(
        &self,
        address: &Address,
        clients: &str,
        arrived: impl Fn(Arrival) + Send + Sync + 'static,
    ) -> Result<Address> {
        let listener = world::listen(address).map_err(|e| {
            Error::new(Kind::Io, format!("listen for {clients} clients")).at(address).because(e)
        })?;
        let local = listener.local();
        let (end, ended) = oneshot::channel();
        self.clients().doors.push((local.clone(), end));
        let door = local.clone();
        let begin = move |stream, client| {
            arrived(Arrival { stream, client, door: Some(door.clone()), is_from_listening: true });
        };
        world::spawn(accept(listener, ended, begin));
        Ok(local)
    }

    /// Listens at a door no more, and ends the sessions that came through it, after what they have in flight.
    pub fn close(&self, door: &Address) {
        let mut clients = self.clients();
        clients.doors.retain(|(address, _)| address != door);
        clients.values().filter(|c| c.door.as_ref() == Some(door)).for_each(Client::stop);
    }

    /// Runs the session of a client on the next core, or hangs up: there is no place for it, its door has been closed,
    /// or the reception stops. `session` is given the client's number, and is called only when it is taken in.
    pub fn admit<S: Future<Output = ()> + Send + 'static>(
        &self,
        arrival: Arrival,
        guest: G,
        session: impl FnOnce(u64, Arc<dyn Stream>) -> S,
    ) {
        let Arrival { stream, client: address, door, is_from_listening } = arrival;
        let stream: Arc<dyn Stream> = Arc::from(stream);
        let mut clients = self.clients();
        let is_open = |door: &Address| clients.doors.iter().any(|(open, _)| open == door);
        let is_too_late = is_from_listening && !door.as_ref().is_some_and(is_open);
        clients.next_id += 1;
        let id = clients.next_id;
        if self.is_stopping() || is_too_late || !clients.let_in(id, &address, &self.0.places) {
            drop(clients);
            return stream.shutdown();
        }
        let done = Arc::new(Event::new());
        let client = Client {
            address,
            door,
            since: world::now(),
            guest,
            done: done.clone(),
            stream: stream.clone(),
            task: None,
        };
        clients.by_id.insert(id, client);
        let is_watched = std::mem::replace(&mut clients.is_watched, true);
        drop(clients);
        if !is_watched {
            world::spawn(watch(self.clone()));
        }
        let session = session(id, stream);
        let reception = self.clone();
        let core = self.0.next_core.fetch_add(1, Ordering::Relaxed) as usize;
        let task = world::spawn_on(core, async move {
            session.await;
            let mut clients = reception.clients();
            clients.crowd.leave(id);
            clients.by_id.remove(&id);
            drop(clients);
            done.set();
        });
        if let Some(client) = self.clients().get_mut(id) {
            client.task = Some(task);
        }
    }

    /// Listens no more, lets what is in flight land for `patience`, and ends every session.
    pub async fn stop(&self, patience: Duration) {
        self.0.is_stopping.store(true, Ordering::Release);
        let tasks: Vec<Task<()>> = {
            let mut clients = self.clients();
            clients.doors.clear();
            let stop = |client: &mut Client<G>| {
                client.stop();
                client.task.take()
            };
            clients.by_id.values_mut().filter_map(stop).collect()
        };
        let all = async {
            for task in tasks {
                task.await;
            }
        };
        if world::timeout(patience, all).await.is_none() {
            // What is left waits for a client that does not read, or for a disk.
            self.clients().values().for_each(|client| client.stream.shutdown());
        }
    }

    fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::Acquire)
    }
}

async fn watch<G: Guest>(reception: Reception<G>) {
    while !reception.is_stopping() {
        world::sleep(reception.0.watch_every).await;
        let now = world::now();
        for client in reception.clients().by_id.values_mut() {
            if client.guest.is_stalled(now) {
                client.stream.shutdown();
            }
        }
    }
}
