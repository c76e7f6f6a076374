//! The LUNs of all pools behind the targets of the configuration, as an iSCSI server asks for them.
//!
//! ```text
//!   configuration ─▶ SanView ─▶ SanDirectory ─▶ iscsi::Server ─▶ sessions look again, and tell their clients
//!                                   │ san_change
//!                                   └─ one device for each LUN that is used, opened when its first client comes
//! ```
//!
//! A device is there as long as somebody uses it. Its reservations are kept beyond that: in memory, as SCSI wants them to
//! survive every farewell, and in the configuration where a client asked for them to survive a restart.
//!
//! What an initiator was not given is not found: a target through which it sees nothing is as none, and so is one that is
//! not at the portal where it is looked for.
//!
//! All portals of a target are one portal group, and all ports are in one group of asymmetric access, optimized: there is
//! one controller, and every way to it is as good as another.

use crate::appliance::Appliance;
use crate::san::interfaces::Known;
use crate::san::{Credentials, SanView, TargetRecord, where_at};
use crate::shares::LunFacts;
use futures_util::future::{Either, select};
use iscsi::{Asking, Authentication, Config, Directory, Listed, Server, Unit, Welcome};
use scsi::{Device, Identity, Lun, Options, PortGroup, PortState, ReservationStore, TargetPort, naa_text};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use store::{Look, Table, Writer};
use units::{Error, Result};
use world::sync::{Event, Notify};
use world::{Address, Pending};

/// Reservations that survive a restart, by the names of their units.
const RESERVATIONS: Table<String> = Table::new("san.reservations");
/// How long an answer may wait for what initiators see to be as it says.
const FOLLOWING: Duration = Duration::from_secs(2);
/// The tag of every target's portal group, and the number of the one group of ports.
const GROUP: u16 = 1;

type Naa = [u8; 16];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every value under these locks is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The iSCSI service of an appliance.
#[derive(Clone, Debug)]
pub struct Iscsi {
    server: Server,
    directory: Arc<SanDirectory>,
    stopped: Arc<Event>,
}

impl Iscsi {
    /// Listens nowhere yet.
    pub async fn start(appliance: &Appliance) -> Iscsi {
        // A pool that cannot be read does not keep the daemon from starting; nothing is seen then, until it changes.
        let view = appliance.san_view().await.unwrap_or_default();
        let directory = Arc::new(SanDirectory {
            appliance: appliance.clone(),
            view: Mutex::new(view),
            portals: Mutex::default(),
            interfaces: Known::default(),
            devices: world::sync::Mutex::new(BTreeMap::new()),
            kept: Arc::default(),
            leaving: Mutex::default(),
            away: Mutex::default(),
            looked: Mutex::default(),
            has_looked: Notify::new(),
        });
        let config = Config { total_bytes: appliance.request_bytes(), ..Config::default() };
        let server = Server::new(directory.clone(), appliance.hub().clone(), config);
        let iscsi = Iscsi { server, directory, stopped: Arc::default() };
        world::spawn(iscsi.clone().follow());
        appliance.set_iscsi(iscsi.clone());
        iscsi
    }

    /// Opens a portal; returns its address.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr> {
        let local = match self.server.listen(&Address::Tcp(address))? {
            Address::Tcp(local) => local,
            Address::Unix(_) => address,
        };
        lock(&self.directory.portals).push(local);
        Ok(local)
    }

    pub fn portals(&self) -> Vec<SocketAddr> {
        lock(&self.directory.portals).clone()
    }

    /// Closes a portal, and ends the sessions that came by it.
    pub fn close(&self, portal: &Address) {
        lock(&self.directory.portals).retain(|open| Address::Tcp(*open) != *portal);
        self.server.close(portal);
    }

    pub fn clients(&self) -> Vec<iscsi::Client> {
        self.server.clients()
    }

    /// Whether somebody is logged in who sees this volume.
    pub(crate) fn is_seen(&self, dataset: &str) -> bool {
        let view = self.directory.view();
        self.server.clients().iter().any(|client| {
            let target = client.target.as_deref().unwrap_or_default();
            view.luns(target, &client.initiator).iter().any(|lu| lu.facts.dataset == dataset)
        })
    }

    /// Keeps the place of a volume that may be taken from its clients: until what is returned is dropped they are told
    /// to try again.
    pub(crate) fn keep_place(&self, dataset: &str) -> Place {
        lock(&self.directory.away).insert(dataset.into(), None);
        Place { directory: self.directory.clone(), dataset: dataset.into() }
    }

    /// Takes the LUNs of these volumes away from their clients, after what is under way.
    pub(crate) async fn release(&self, datasets: &[String]) {
        {
            let away = lock(&self.directory.away);
            let leaving = datasets.iter().filter(|dataset| !away.contains_key(*dataset));
            lock(&self.directory.leaving).extend(leaving.cloned());
        }
        for dataset in datasets {
            let device =
                self.directory.devices.lock().await.remove(dataset).and_then(|used| used.device.upgrade());
            let Some(device) = device else { continue };
            let will_return = lock(&self.directory.away).contains_key(dataset);
            match will_return {
                true => {
                    let quiesced = device.quiesced();
                    lock(&self.directory.away).insert(dataset.clone(), Some(quiesced));
                    device.go_away().await;
                }
                false => device.retire().await,
            }
        }
        self.server.refresh();
    }

    /// Ends the sessions, after what they have in flight.
    pub async fn stop(&self) {
        self.stopped.set();
        self.server.stop().await;
    }

    /// Looks again whenever something has changed.
    async fn follow(self) {
        let appliance = self.directory.appliance.clone();
        let mut seen = lock(&self.directory.view).generation();
        loop {
            let changed = pin!(appliance.san_change(seen));
            let Either::Left((now, _)) = select(changed, pin!(self.stopped.wait())).await else { return };
            seen = now;
            // What cannot be read now is read at the next change; until then nothing new is seen.
            if let Ok(view) = appliance.san_view().await {
                *lock(&self.directory.view) = view;
                lock(&self.directory.leaving).clear();
                self.server.refresh();
            }
            *lock(&self.directory.looked) = now;
            self.directory.has_looked.notify_all();
        }
    }

    /// Waits until initiators see what there was at `generation`: whoever is told that a LUN was made may look for it at
    /// once. Not for ever: there may be a pool that does not answer.
    pub(crate) async fn followed(&self, generation: u64) {
        let directory = &self.directory;
        // Without a target nobody sees anything, and to look takes longer the more volumes there are.
        if directory.appliance.network().is_ok_and(|network| network.targets.is_empty()) {
            return;
        }
        let there = directory.has_looked.until(|| {
            let is_over = self.stopped.is_set() || *lock(&directory.looked) >= generation;
            is_over.then_some(())
        });
        world::timeout(FOLLOWING, there).await;
    }
}

/// The place of a volume that is away.
#[derive(Debug)]
pub(crate) struct Place {
    directory: Arc<SanDirectory>,
    dataset: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let quiesced = lock(&self.directory.away).remove(&self.dataset);
        if quiesced.flatten().is_some() {
            self.directory.appliance.san_changed();
        }
    }
}

/// A device that somebody may be using, and how it was configured last.
#[derive(Debug)]
struct Used {
    device: Weak<Device>,
    write_cache: bool,
    read_only: bool,
}

/// See the module.
#[derive(Debug)]
struct SanDirectory {
    appliance: Appliance,
    view: Mutex<Arc<SanView>>,
    portals: Mutex<Vec<SocketAddr>>,
    interfaces: Known,
    /// By their datasets.
    devices: world::sync::Mutex<BTreeMap<String, Used>>,
    kept: Arc<Mutex<BTreeMap<Naa, String>>>,
    /// Volumes that are being destroyed or given up.
    leaving: Mutex<BTreeSet<String>>,
    /// Volumes that will be back, and what stands in for them as soon as they are away.
    away: Mutex<BTreeMap<String, Option<Arc<Device>>>>,
    /// The generation that was looked at last, whether or not it could be read.
    looked: Mutex<u64>,
    has_looked: Notify,
}

impl SanDirectory {
    fn view(&self) -> Arc<SanView> {
        lock(&self.view).clone()
    }

    fn is_at(&self, target: &TargetRecord, asking: &Asking) -> bool {
        match &asking.portal {
            Address::Tcp(portal) => where_at(&target.interfaces, || self.interfaces.now()).has(*portal),
            Address::Unix(_) => true,
        }
    }

    /// As discovery tells them; none where it is wherever it was asked for.
    fn addresses(&self, target: &TargetRecord) -> Vec<String> {
        let places = where_at(&target.interfaces, || self.interfaces.now()).among(&lock(&self.portals));
        places.into_iter().map(|place| format!("{place},{GROUP}")).collect()
    }

    /// The device of a LUN: the one that is used, or a new one.
    async fn device(&self, view: &SanView, facts: &LunFacts) -> Result<Arc<Device>> {
        let mut devices = self.devices.lock().await;
        let used = devices.get_mut(&facts.dataset);
        if let Some((used, device)) = used.and_then(|used| used.device.upgrade().map(|device| (used, device)))
            && used.read_only == facts.read_only
        {
            if used.write_cache != facts.write_cache {
                used.write_cache = facts.write_cache;
                device.set_modes(facts.write_cache, false);
            }
            device.set_groups(groups(view));
            return Ok(device);
        }
        let (volume, held) = self.appliance.use_volume(&facts.dataset).await?;
        let unit = disk::Lun::new(volume, facts.read_only, held);
        let network = view.identity();
        let identity = Identity {
            vendor: network.vendor.clone(),
            product: network.product.clone(),
            ..Identity::new(facts.guid)
        };
        let options = Options { write_cache: facts.write_cache, ..Options::default() };
        let reservations =
            Reservations { appliance: self.appliance.clone(), kept: self.kept.clone(), unit: facts.guid };
        let stored = reservations.stored()?;
        let device = Device::new(Arc::new(unit), identity, options, Arc::new(reservations), &stored);
        device.set_groups(groups(view));
        let used = Used {
            device: Arc::downgrade(&device),
            write_cache: facts.write_cache,
            read_only: facts.read_only,
        };
        devices.insert(facts.dataset.clone(), used);
        Ok(device)
    }
}

fn groups(view: &SanView) -> Vec<PortGroup> {
    let ports = view.targets().map(|(_, target)| target.port).collect();
    vec![PortGroup { id: GROUP, state: PortState::Optimized, preferred: false, ports }]
}

fn credentials(of: Credentials) -> iscsi::Credentials {
    iscsi::Credentials { name: of.user, secret: of.secret.into_bytes() }
}

/// A secret that nobody has.
fn nobody() -> iscsi::Credentials {
    let secret = (0..4).flat_map(|_| world::random_u64().to_ne_bytes()).collect();
    iscsi::Credentials { name: String::new(), secret }
}

impl Directory for SanDirectory {
    /// Whoever asks is told what it was given; proof is asked for where it logs in.
    fn discovery(&self, _asking: &Asking) -> Authentication {
        Authentication::default()
    }

    fn targets(&self, asking: &Asking) -> Vec<Listed> {
        let view = self.view();
        let listed = |(iqn, target): (&str, &TargetRecord)| Listed {
            name: iqn.into(),
            addresses: self.addresses(target),
        };
        let told = view.targets_for(&asking.initiator).into_iter();
        told.filter(|(_, target)| self.is_at(target, asking)).map(listed).collect()
    }

    fn target(&self, asking: &Asking, name: &str) -> Option<Welcome> {
        let view = self.view();
        let target = view.target(name)?;
        if !self.is_at(target, asking) || view.luns(name, &asking.initiator).is_empty() {
            return None;
        }
        let authentication = match view.proof(name, &asking.initiator) {
            Ok(proof) => Authentication {
                initiator: proof.initiator.map(credentials),
                target: proof.target.map(credentials),
            },
            Err(_) => Authentication { initiator: Some(nobody()), target: None },
        };
        let name = format!("{name},t,0x{GROUP:04x}").into();
        let port = TargetPort { relative: target.port, group: GROUP, name };
        Some(Welcome { authentication, port, tag: GROUP, alias: target.alias.clone() })
    }

    fn note_wrong_proof(&self, asking: &Asking, wrong: u64) {
        // Of many in a row some are told.
        if wrong <= 5 || wrong.is_power_of_two() {
            let initiator: String = asking.initiator.chars().filter(|c| !c.is_control()).collect();
            tracing::warn!(initiator, address = %asking.from, in_a_row = wrong, "an initiator showed a wrong CHAP secret");
        }
    }

    fn units(&self, asking: &Asking, target: &str) -> Pending<Result<Vec<Unit>>> {
        let (view, leaving) = (self.view(), lock(&self.leaving).clone());
        let seen = view.luns(target, &asking.initiator).into_iter();
        let seen = seen.filter(|lu| !leaving.contains(&lu.facts.dataset));
        let seen: Vec<(Lun, LunFacts)> = seen.map(|lu| (Lun(lu.number), lu.facts.clone())).collect();
        let quiesced_units = lock(&self.away).clone();
        let Some(iscsi) = self.appliance.iscsi() else { return Box::pin(std::future::ready(Ok(Vec::new()))) };
        Box::pin(async move {
            let mut units = Vec::new();
            for (lun, facts) in seen {
                if let Some(Some(device)) = quiesced_units.get(&facts.dataset) {
                    units.push((lun, device.clone()));
                    continue;
                }
                // One that cannot be opened does not keep the others away.
                match iscsi.directory.device(&view, &facts).await {
                    Ok(device) => units.push((lun, device)),
                    Err(e) => tracing::warn!(lun = lun.0, dataset = facts.dataset, "cannot serve a LUN: {e}"),
                }
            }
            Ok(units)
        })
    }
}

/// Of a configuration that came from elsewhere: reservations are of units, and such as a unit can take up.
pub(crate) fn check_records(writer: &Writer) -> Result<()> {
    for (unit, text) in writer.exact(&RESERVATIONS)? {
        if crate::shares::parse_guid(&unit).is_none() || !scsi::is_reservations(&text) {
            return Err(Error::invalid(format!("the reservations of '{unit}' are none")));
        }
    }
    Ok(())
}

/// Where the reservations of one unit are kept.
#[derive(Debug)]
struct Reservations {
    appliance: Appliance,
    kept: Arc<Mutex<BTreeMap<Naa, String>>>,
    unit: Naa,
}

impl Reservations {
    fn stored(&self) -> Result<String> {
        if let Some(text) = lock(&self.kept).get(&self.unit) {
            return Ok(text.clone());
        }
        let key = naa_text(&self.unit);
        Ok(self
            .appliance
            .configuration()?
            .look(|reader| reader.get(&RESERVATIONS, &key))?
            .unwrap_or_default())
    }
}

impl ReservationStore for Reservations {
    fn save(&self, text: String, lasting: Option<String>) -> Pending<Result<()>> {
        let key = naa_text(&self.unit);
        let saved = lasting.map_or(Ok(()), |lasting| {
            self.appliance.configuration()?.change(|writer| match lasting.is_empty() {
                true => writer.remove(&RESERVATIONS, &key).map(drop),
                false => writer.put(&RESERVATIONS, &key, &lasting),
            })
        });
        if saved.is_ok() {
            lock(&self.kept).insert(self.unit, text);
        }
        Box::pin(std::future::ready(saved))
    }
}
