//! Services that clients come to: switched off and on, and moved, while the daemon runs; as they were left when it starts.
//!
//! ```text
//!   command line ─┐
//!   what was set ─┼─▶ Gate::wanted: doors, and of each the first that can be had ─▶ bring: shut the others, open these
//!   usual places ─┘          none while it is off                                       │
//!                                                                             iscsi::Server, nbd::Server
//! ```
//!
//! A door that is shut ends the clients that came through it, after what they have in flight. One that was open once is
//! opened again at the same place, also where the machine chose it.
//!
//! Invariants: what is off has no door open, not even for a moment when the daemon starts; what was said on the command
//! line is not moved by what is set; what cannot be opened leaves everything as it was.
//!
//! Not here: the API, which could not be asked to come back; it is `rest`'s own.

pub(crate) mod nbd;
pub(crate) mod offers;
mod state;

pub(crate) use state::Gates;
pub use state::{Doors, Front};

use crate::appliance::Appliance;
use crate::services::nbd::Exported;
use api::{ApiError, ErrorKind, Reply, Result, ServiceState, Services, Switch};
use state::{Gate, Record, shown};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use store::{Look, Table, Writer};
use units::{Error, Kind};
use world::Address;

/// By their names. What is not there is on.
const SERVICES: Table<Record> = Table::new("services");
/// Addresses that one service can be given.
const ADDRESSES_MAX: usize = 16;
/// A port that was given up a moment ago may not be free yet.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

impl Appliance {
    /// Lets clients in, unless the service is off. What was said must be had; of what was set and cannot be had it is
    /// told why.
    pub async fn open_doors(&self, front: Front, doors: Doors) -> units::Result<Vec<String>> {
        let _turn = self.0.gates.turn.lock().await;
        let said = doors.said;
        self.0.gates.lock().insert(front, Gate { doors, ..Gate::default() });
        let record = self.service_record(front)?;
        match self.bring(front, &record).await {
            Err(e) if said || record.listen.is_empty() => Err(e),
            Err(e) => {
                Ok(vec![format!("WARNING: the service {} is not where it was set to be: {e}", front.name())])
            }
            Ok(()) => Ok(self.0.gates.of(front).moved(front)),
        }
    }

    /// Where clients of a service come in now.
    pub fn addresses(&self, front: Front) -> Vec<String> {
        self.0.gates.of(front).open.iter().map(shown).collect()
    }

    /// Whether the addresses for NBD clients were set, by the command line or as a property of the service.
    pub(crate) fn is_nbd_asked_for(&self) -> bool {
        let is_set = || self.service_record(Front::Nbd).is_ok_and(|record| !record.listen.is_empty());
        self.0.gates.of(Front::Nbd).doors.said || is_set()
    }

    /// Brings all services to what is kept of them, which may be another configuration's.
    pub(crate) async fn follow_services(&self) {
        let _turn = self.0.gates.turn.lock().await;
        for front in Front::ALL {
            let brought = match self.service_record(front) {
                Ok(record) => self.bring(front, &record).await,
                Err(e) => Err(e),
            };
            if let Err(e) = brought {
                tracing::warn!(service = front.name(), "it is not where it was set to be: {e}");
            }
        }
    }

    pub(crate) async fn services(&self, asked: Services) -> Result<Reply> {
        match asked {
            Services::Show => {}
            Services::Switch { name, to } => {
                let doing = format!("{} service '{name}'", to.word());
                let front = known(&name, &doing)?;
                let change = |record: &mut Record| match to {
                    Switch::Enable => record.enabled = true,
                    Switch::Disable => record.enabled = false,
                    Switch::Restart => {}
                };
                let failed = |e: Error| ApiError::cannot(&doing, &e);
                self.change_service(front, to == Switch::Restart, change).await.map_err(failed)?;
            }
            Services::Listen { name, addresses } => {
                let doing = format!("move service '{name}'");
                let front = known(&name, &doing)?;
                let failed = |e: Error| ApiError::cannot(&doing, &e);
                if self.0.gates.of(front).doors.said {
                    let why = "where it listens was said when the daemon was started";
                    return Err(ApiError::new(ErrorKind::Invalid, format!("cannot {doing}: {why}")));
                }
                let addresses = parse(&addresses).map_err(failed)?;
                let change = |record: &mut Record| record.listen = addresses;
                self.change_service(front, false, change).await.map_err(failed)?;
            }
        }
        let all: units::Result<Vec<ServiceState>> =
            Front::ALL.into_iter().map(|front| self.service_state(front)).collect();
        Ok(Reply::Services(all.map_err(|e| ApiError::cannot("list the services", &e))?))
    }

    fn service_record(&self, front: Front) -> units::Result<Record> {
        Ok(self.configuration()?.look(|reader| reader.get(&SERVICES, front.name()))?.unwrap_or_default())
    }

    fn service_state(&self, front: Front) -> units::Result<ServiceState> {
        let record = self.service_record(front)?;
        let clients = match front {
            Front::Iscsi => self.iscsi().map_or(0, |iscsi| iscsi.clients().len()),
            Front::Nbd => self.nbd().map_or(0, |server| server.clients().len()),
        };
        Ok(ServiceState {
            name: front.name().into(),
            enabled: record.enabled,
            addresses: self.addresses(front),
            listen: record.listen,
            clients: clients as u64,
            offline: !self.0.config.is_daemon,
        })
    }

    /// Makes it so, and keeps it; what cannot be is not kept, and taken back.
    async fn change_service(
        &self,
        front: Front,
        again: bool,
        change: impl FnOnce(&mut Record),
    ) -> units::Result<()> {
        let _turn = self.0.gates.turn.lock().await;
        let before = self.service_record(front)?;
        let mut after = before.clone();
        change(&mut after);
        if again {
            self.bring(front, &Record { enabled: false, ..before.clone() }).await?;
        }
        let mut made = self.bring(front, &after).await;
        if made.is_ok() && after != before {
            made = self.configuration().and_then(|c| c.change(|w| w.put(&SERVICES, front.name(), &after)));
        }
        if made.is_err() {
            // What was open a moment ago can be had again, or its own error was the first.
            let _ = self.bring(front, &before).await;
        }
        made
    }

    /// Shuts doors that are not wanted, and opens those that are; the first error, after all was tried.
    async fn bring(&self, front: Front, record: &Record) -> units::Result<()> {
        let mut gate = self.0.gates.of(front);
        let wanted = gate.wanted(record);
        let (open, unwanted): (Vec<Address>, Vec<Address>) =
            gate.open.drain(..).partition(|address| wanted.iter().any(|door| door.contains(address)));
        gate.open = open;
        unwanted.iter().for_each(|address| self.shut(front, address));
        let mut failed = Ok(());
        for door in &wanted {
            if door.iter().any(|address| gate.open.contains(address)) {
                continue;
            }
            match self.open_one(front, door, &gate).await {
                Ok(Some(local)) => gate.opened(door, &local),
                Ok(None) => {}
                Err(e) => failed = failed.and(Err(e)),
            }
        }
        self.0.gates.lock().insert(front, gate);
        failed
    }

    /// The first address of a door that can be had. Nothing: there is no server, since no daemon runs.
    async fn open_one(&self, front: Front, door: &[Address], gate: &Gate) -> units::Result<Option<Address>> {
        let mut failed = Ok(None);
        for address in door {
            match tried(tries(gate, address), || self.listen(front, address)).await {
                Ok(local) => return Ok(local),
                Err(e) => failed = failed.and_then(|_| Err(front.cannot_listen(address, gate.doors.said, e))),
            }
        }
        failed
    }

    fn listen(&self, front: Front, address: &Address) -> units::Result<Option<Address>> {
        match (front, address) {
            (Front::Iscsi, Address::Tcp(address)) => {
                self.iscsi().map(|iscsi| iscsi.listen(*address).map(Address::Tcp)).transpose()
            }
            (Front::Iscsi, Address::Unix(_)) => Ok(None),
            (Front::Nbd, address) => {
                let exports = Arc::new(Exported::at(self, Some(address)));
                self.nbd().map(|server| server.listen_offering(address, exports)).transpose()
            }
        }
    }

    fn shut(&self, front: Front, address: &Address) {
        match front {
            Front::Iscsi => self.iscsi().iter().for_each(|iscsi| iscsi.close(address)),
            Front::Nbd => self.nbd().iter().for_each(|server| server.close(address)),
        }
    }
}

/// Of a configuration that came from elsewhere: services that there are, at addresses that can be.
pub(crate) fn check_records(writer: &Writer) -> units::Result<()> {
    for (name, record) in writer.exact(&SERVICES)? {
        if Front::find(&name).is_none() {
            return Err(Error::invalid(format!("there is no service '{name}'")));
        }
        parse(&record.listen)?;
    }
    Ok(())
}

fn known(name: &str, doing: &str) -> Result<Front> {
    Front::find(name).ok_or_else(|| match name {
        "rest" => {
            let why = "over it one is asked to come back";
            ApiError::new(ErrorKind::Invalid, format!("cannot {doing}: {why}"))
        }
        _ => ApiError::new(ErrorKind::NotFound, format!("cannot {doing}: there is no such service")),
    })
}

/// Addresses with ports, each once.
fn parse(texts: &[String]) -> units::Result<Vec<String>> {
    if texts.len() > ADDRESSES_MAX {
        return Err(Error::invalid(format!("at most {ADDRESSES_MAX} addresses")));
    }
    let mut addresses = Vec::new();
    for text in texts {
        let address = text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0);
        let address = address.ok_or_else(|| Error::invalid(format!("'{text}' is not ADDRESS:PORT")))?;
        if addresses.contains(&address.to_string()) {
            return Err(Error::new(Kind::Invalid, format!("'{text}' is said twice")));
        }
        addresses.push(address.to_string());
    }
    Ok(addresses)
}

/// A daemon that was just killed may have the place that was said a moment longer.
fn tries(gate: &Gate, address: &Address) -> usize {
    if gate.is_own(address) || gate.doors.said { TRIES } else { 1 }
}

/// Listens, again and again if that fails; the first error, after the last try.
async fn tried<T>(tries: usize, listen: impl Fn() -> units::Result<T>) -> units::Result<T> {
    let first = match listen() {
        Err(e) => e,
        done => return done,
    };
    for _ in 1..tries {
        world::sleep(PAUSE).await;
        if let Ok(listens) = listen() {
            return Ok(listens);
        }
    }
    Err(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With its port taken the service was somewhere else, and no message said so.
    #[test]
    fn a_door_that_is_not_where_it_should_be_is_told() {
        let mut gate = gate(false);
        let door: Vec<Address> = gate.doors.tcp[0].iter().map(|a| Address::Tcp(*a)).collect();
        gate.opened(&door, &tcp("127.0.0.1:3260"));
        assert_eq!(gate.moved(Front::Iscsi), Vec::<String>::new());
        let mut gate = super::tests::gate(false);
        gate.opened(&door, &tcp("127.0.0.1:40000"));
        let said =
            "WARNING: 127.0.0.1:3260 is taken by another program: the service iscsi is at 127.0.0.1:40000";
        assert_eq!(gate.moved(Front::Iscsi), [said]);
    }

    /// "Address already in use" ended a daemon that was started at once after a kill: its predecessor still had the port.
    #[test]
    fn a_place_that_was_said_is_waited_for() {
        let taken = tcp("127.0.0.1:3260");
        assert_eq!(tries(&gate(false), &taken), 1, "another place will do");
        for (free_at, listens) in [(1, true), (TRIES, true), (TRIES + 1, false)] {
            let tries = tries(&gate(true), &taken);
            let told = sim::run(1, sim::Config::default(), async move {
                let tried_so_often = std::sync::atomic::AtomicUsize::new(0);
                let listen = || match tried_so_often.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 {
                    n if n < free_at => Err(units::Error::new(units::Kind::Busy, "listen")),
                    _ => Ok(()),
                };
                tried(tries, listen).await
            });
            assert_eq!(told.is_ok(), listens, "free at try {free_at}");
        }
    }

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    fn gate(said: bool) -> Gate {
        let tcp = vec![vec!["127.0.0.1:3260".parse().unwrap(), "127.0.0.1:0".parse().unwrap()]];
        Gate { doors: Doors { tcp, unix: Some("/s".into()), said }, ..Gate::default() }
    }

    fn record(enabled: bool, listen: &[&str]) -> Record {
        Record { enabled, listen: listen.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn what_is_set_counts_unless_it_was_said_and_what_is_off_has_no_door() {
        let usual = vec![tcp("127.0.0.1:3260"), tcp("127.0.0.1:0")];
        let unix = vec![Address::Unix("/s".into())];
        let set = vec![tcp("192.0.2.1:3260")];
        for (said, enabled, listen, expected) in [
            (false, true, &[][..], vec![usual.clone(), unix.clone()]),
            (false, true, &["192.0.2.1:3260"], vec![set, unix.clone()]),
            (true, true, &["192.0.2.1:3260"], vec![usual, unix]),
            (false, false, &[], vec![]),
            (true, false, &["192.0.2.1:3260"], vec![]),
        ] {
            assert_eq!(gate(said).wanted(&record(enabled, listen)), expected, "{said} {enabled} {listen:?}");
        }
    }

    #[test]
    fn a_door_is_opened_again_where_it_was() {
        let mut gate = gate(false);
        let door = gate.wanted(&record(true, &[]))[0].clone();
        gate.opened(&door, &tcp("127.0.0.1:45123"));
        let again = gate.wanted(&record(true, &[]))[0].clone();
        assert_eq!(again[0], tcp("127.0.0.1:45123"));
        assert!(gate.is_own(&again[0]) && !gate.is_own(&again[1]));
        gate.opened(&again, &tcp("127.0.0.1:45123"));
        assert_eq!(gate.wanted(&record(true, &[]))[0], again, "once");
    }

    #[test]
    fn addresses_have_ports_and_are_said_once() {
        let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parse(&texts(&["0.0.0.0:3260", "[::1]:3260"])).unwrap().len(), 2);
        assert_eq!(parse(&[]).unwrap(), Vec::<String>::new());
        for bad in [
            &["localhost:1"][..],
            &["1.2.3.4"],
            &["1.2.3.4:0"],
            &["1.2.3.4:1", "1.2.3.4:1"],
            &["[::1]:1"; 17],
        ] {
            assert!(parse(&texts(bad)).is_err(), "{bad:?}");
        }
    }
}
