//! The server: what it offers at each door, its limits, and what an administrator sees and ends.
//!
//! The [`Reception`] takes clients in and watches over them.

use crate::session::Session;
use crate::volume::Exports;
use crate::wire::MAX_PAYLOAD;
use flow::{Arrival, Budget, Debts, Guest, Places, Reception, Vitals};
use probe::{Hub, Io, IoSnapshot};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tls::Identity;
use units::Result;
use world::{Address, Instant, Stream};

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
    reception: Reception<Visitor>,
    /// What clients that come over TCP are shown in the TLS that they must begin.
    tls: Mutex<Option<Identity>>,
}

/// What is known of a client.
struct Visitor {
    export: Option<(String, Arc<Io>)>,
    vitals: Arc<Vitals>,
    stall_timeout: Duration,
    debts: Debts,
    budget: Arc<Budget>,
}

impl Guest for Visitor {
    fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// Whether the client has owed something for too long.
    fn is_stalled(&mut self, now: Instant) -> bool {
        let is_crowded = self.budget.is_waited_for();
        self.vitals.ask_to_yield(is_crowded);
        self.debts.are_overdue(&self.vitals, now, self.stall_timeout, is_crowded)
    }
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
            reception: Reception::new(config.places, config.stall_timeout),
            tls: Mutex::default(),
        }))
    }

    /// Requires TLS of clients that come over TCP, from the next one on. Clients of a Unix socket have none.
    pub fn require_tls(&self, identity: Identity) {
        *self.0.tls() = Some(identity);
    }

    /// Clients that come over TCP must begin TLS.
    pub fn requires_tls(&self) -> bool {
        self.0.tls().is_some()
    }

    /// Accepts clients at `address` until the server stops, or the door is closed. Returns the address it really listens on.
    pub fn listen(&self, address: &Address) -> Result<Address> {
        self.listen_offering(address, self.0.exports.clone())
    }

    /// The same, where `exports` are offered to the clients that come in there.
    pub fn listen_offering(&self, address: &Address, exports: Arc<dyn Exports>) -> Result<Address> {
        let shared = self.0.clone();
        self.0.reception.listen(address, "NBD", move |arrival| shared.admit(arrival, exports.clone()))
    }

    /// Listens at a door no more, and ends the connections that came through it, after what they have in flight.
    pub fn close(&self, door: &Address) {
        self.0.reception.close(door);
    }

    /// Serves one connection that was accepted elsewhere.
    pub fn serve(&self, stream: Box<dyn Stream>, client: Address) {
        let arrival = Arrival { stream, client, door: None, is_from_listening: false };
        self.0.admit(arrival, self.0.exports.clone());
    }

    pub fn clients(&self) -> Vec<Client> {
        self.0.reception.clients().values().map(describe).collect()
    }

    /// Ends the connections to one export, after what they have in flight.
    pub fn disconnect(&self, export: &str) {
        let clients = self.0.reception.clients();
        clients.values().filter(|c| c.guest.uses(export)).for_each(flow::Client::stop);
    }

    /// Ends them without waiting for clients that do not read what they asked for.
    pub fn put_out(&self, export: &str) {
        let clients = self.0.reception.clients();
        clients.values().filter(|c| c.guest.uses(export)).for_each(flow::Client::put_out);
    }

    /// As [`Server::disconnect`], for those that came in at one door, by its address as text.
    pub fn disconnect_at(&self, export: &str, door: Option<&str>) {
        let clients = self.0.reception.clients();
        let is_there = |c: &&flow::Client<Visitor>| {
            let own = c.door.as_ref().map(Address::to_string);
            c.guest.uses(export) && own.as_deref() == door
        };
        clients.values().filter(is_there).for_each(flow::Client::stop);
    }

    /// Listens no more, lets requests in flight land, and ends every connection.
    pub async fn stop(&self) {
        self.0.reception.stop(self.0.config.stop_timeout).await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nbd::Server({:?})", self.0.reception)
    }
}

impl Visitor {
    fn uses(&self, export: &str) -> bool {
        self.export.as_ref().is_some_and(|(name, _)| name == export)
    }
}

fn describe(client: &flow::Client<Visitor>) -> Client {
    let export = client.guest.export.as_ref();
    let counts = export.map(|(_, io)| io.snapshot());
    let IoSnapshot { read, write, .. } = counts.unwrap_or_default();
    Client {
        address: client.address.clone(),
        door: client.door.clone(),
        export: export.map(|(name, _)| name.clone()),
        since: client.since,
        reads: read.ops,
        read_bytes: read.bytes,
        writes: write.ops,
        written_bytes: write.bytes,
    }
}

impl Shared {
    fn tls(&self) -> MutexGuard<'_, Option<Identity>> {
        // No code that can panic runs under this lock.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(self: &Arc<Shared>, arrival: Arrival, exports: Arc<dyn Exports>) {
        let vitals = Arc::new(Vitals::default());
        let visitor = Visitor {
            export: None,
            vitals: vitals.clone(),
            stall_timeout: self.config.stall_timeout,
            debts: Debts::default(),
            budget: self.budget.clone(),
        };
        let client = arrival.client.clone();
        self.reception.admit(arrival, visitor, |id, stream| {
            let session = Session {
                stream,
                tls: self.tls().clone().filter(|_| matches!(client, Address::Tcp(_))),
                client,
                exports,
                hub: self.hub.clone(),
                lease: self.budget.lease(),
                vitals,
                config: self.config,
            };
            run(self.clone(), id, session)
        });
    }
}

async fn run(shared: Arc<Shared>, id: u64, session: Session) {
    let began = |export: &str, io: &Arc<Io>| {
        let mut clients = shared.reception.clients();
        clients.settle(id);
        if let Some(client) = clients.get_mut(id) {
            client.guest.export = Some((export.to_string(), io.clone()));
        }
    };
    // How a client ended concerns only itself: it has been answered, or it broke the protocol.
    let _ = session.run(began).await;
}
