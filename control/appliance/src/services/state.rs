//! The doors of each service: which are wanted, which are open, and where they were.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::Address;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    pub enabled: bool,
    pub listen: Vec<String>,
}

impl Default for Record {
    fn default() -> Record {
        Record { enabled: true, listen: Vec::new() }
    }
}

/// A service that is switched here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Front {
    Iscsi,
    Nbd,
}

impl Front {
    pub(super) const ALL: [Front; 2] = [Front::Iscsi, Front::Nbd];

    pub(super) fn name(self) -> &'static str {
        match self {
            Front::Iscsi => "iscsi",
            Front::Nbd => "nbd",
        }
    }

    /// What says at which address it is, if the command line does.
    fn option(self, address: &Address) -> &'static str {
        match (self, address) {
            (Front::Iscsi, _) => "--iscsi",
            (Front::Nbd, Address::Tcp(_)) => "--listen",
            (Front::Nbd, Address::Unix(_)) => "--socket",
        }
    }

    /// One line for an error of its server's listening at `address`: what helps, too. `said`: the command line says where.
    pub fn cannot_listen(self, address: &Address, said: bool, error: units::Error) -> units::Error {
        let Some(why) = error.cause().and_then(|cause| cause.downcast_ref::<std::io::Error>()) else {
            return error;
        };
        let clients = match self {
            Front::Iscsi => "iSCSI clients",
            Front::Nbd => "NBD clients",
        };
        let line = match (said, address) {
            (false, Address::Tcp(_)) => {
                let property = format!("the property listen of the service {}", self.name());
                world::cannot_listen(clients, address, why, &property)
            }
            _ => world::cannot_listen(clients, address, why, self.option(address)),
        };
        units::Error::invalid(line)
    }

    pub(super) fn find(name: &str) -> Option<Front> {
        Front::ALL.into_iter().find(|front| front.name() == name)
    }
}

/// Where a service lets clients in.
#[derive(Clone, Debug, Default)]
pub struct Doors {
    /// Each the first of its addresses that can be had.
    pub tcp: Vec<Vec<SocketAddr>>,
    /// For clients on this machine.
    pub unix: Option<PathBuf>,
    /// They were asked for on the command line, and what is set does not count.
    pub said: bool,
}

/// The doors of one service.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    pub(super) doors: Doors,
    pub(super) open: Vec<Address>,
    /// Ports that it had, and whether its socket was there.
    pub(super) ports: BTreeSet<u16>,
    pub(super) had_unix: bool,
}

impl Gate {
    /// The doors that are to be open.
    pub(super) fn wanted(&self, record: &Record) -> Vec<Vec<Address>> {
        if !record.enabled {
            return Vec::new();
        }
        let set: Vec<Vec<SocketAddr>> =
            record.listen.iter().filter_map(|text| Some(vec![text.parse().ok()?])).collect();
        let tcp = if self.doors.said || set.is_empty() { &self.doors.tcp } else { &set };
        let unix = self.doors.unix.iter().map(|path| vec![Address::Unix(path.clone())]);
        tcp.iter().map(|door| door.iter().map(|a| Address::Tcp(*a)).collect()).chain(unix).collect()
    }

    /// A door was opened, and where: there it will be again.
    pub(super) fn opened(&mut self, door: &[Address], local: &Address) {
        self.open.push(local.clone());
        let Address::Tcp(local) = local else {
            self.had_unix = true;
            return;
        };
        self.ports.insert(local.port());
        let is_door = |own: &&mut Vec<SocketAddr>| {
            own.len() == door.len() && own.iter().zip(door).all(|(a, b)| Address::Tcp(*a) == *b)
        };
        if let Some(own) = self.doors.tcp.iter_mut().find(is_door)
            && !own.contains(local)
        {
            own.insert(0, *local);
        }
    }

    /// Of doors that are not at their first address, which another program has.
    pub(super) fn moved(&self, front: Front) -> Vec<String> {
        let open: Vec<SocketAddr> = self.open.iter().filter_map(tcp).collect();
        let at = |door: &&Vec<SocketAddr>| door.iter().find(|address| open.contains(address)).copied();
        let moved = self.doors.tcp.iter().filter_map(|door| {
            // The address that was found is at the front of its door ([`Gate::opened`]).
            let (now, wanted) = (at(&door)?, door.iter().find(|a| a.port() != 0 && !open.contains(a))?);
            let name = front.name();
            Some(format!("WARNING: {wanted} is taken by another program: the service {name} is at {now}"))
        });
        moved.collect()
    }

    pub(super) fn is_own(&self, address: &Address) -> bool {
        match address {
            Address::Tcp(address) => self.ports.contains(&address.port()),
            Address::Unix(_) => self.had_unix,
        }
    }
}

/// What is known of services while the daemon runs.
#[derive(Debug)]
pub(crate) struct Gates {
    gates: Mutex<BTreeMap<Front, Gate>>,
    /// Held while doors are opened and shut.
    pub(super) turn: world::sync::Mutex<()>,
}

impl Default for Gates {
    fn default() -> Gates {
        Gates { gates: Mutex::default(), turn: world::sync::Mutex::new(()) }
    }
}

impl Gates {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<Front, Gate>> {
        // A gate is whole at any time.
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn of(&self, front: Front) -> Gate {
        self.lock().get(&front).cloned().unwrap_or_default()
    }
}

pub(super) fn tcp(address: &Address) -> Option<SocketAddr> {
    match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    }
}

/// As clients are told it.
pub(super) fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}
