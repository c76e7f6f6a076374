//! The LUNs of all pools behind the targets of the configuration, as an iSCSI server asks for them.
//!
//! ```text
//!   configuration ─▶ SanView ─▶ SanDirectory ─▶ iscsi::Server ─▶ sessions look again, and tell their clients
//!                                   │ Lans::change
//!                                   └─ one device for each LUN that is used, opened when its first client comes
//! ```
//!
//! A device is there as long as a client uses it; its reservations are kept beyond that.
//!
//! What an initiator was not given is not found: a target through which it sees nothing is as none, and so is one that is
//! not at the portal where it is looked for.
//!
//! All portals of a target are one portal group, and all ports are in one group of asymmetric access, optimized: there is
//! one controller, and every way to it is as good as another.

use crate::san::interfaces::Known;
use crate::san::lans::Lans;
use crate::san::reservations::{Kept, Reservations};
use crate::san::{Credentials, SanView, TargetRecord, where_at};
use crate::shares::LunFacts;
use crate::turns::Turns;
use iscsi::{Asking, Authentication, Directory, Listed, Unit, Welcome};
use scsi::{Device, Identity, Lun, Options, PortGroup, PortState, TargetPort};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use units::Result;
use world::sync::Notify;
use world::{Address, Pending};

/// The tag of every target's portal group, and the number of the one group of ports.
const GROUP: u16 = 1;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every value under these locks is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device that clients may be using, and how it was configured last.
#[derive(Debug)]
pub(super) struct Used {
    pub device: Weak<Device>,
    guid: [u8; 16],
    write_cache: bool,
    read_only: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct SanDirectory {
    pub lans: Arc<dyn Lans>,
    /// Itself, for work that outlives a call.
    this: Weak<SanDirectory>,
    pub view: Mutex<Arc<SanView>>,
    pub portals: Mutex<Vec<SocketAddr>>,
    interfaces: Known,
    /// By their datasets.
    pub devices: Mutex<BTreeMap<String, Used>>,
    /// Of volumes that are opened or given up.
    pub turns: Turns,
    kept: Kept,
    /// Volumes that are being destroyed or given up.
    pub leaving: Mutex<BTreeSet<String>>,
    /// Volumes that will be back, and what stands in for them as soon as they are away.
    pub away: Mutex<BTreeMap<String, Option<Arc<Device>>>>,
    /// The generation that was looked at last, whether or not it could be read.
    pub looked: Mutex<u64>,
    pub has_looked: Notify,
}

impl SanDirectory {
    pub fn new(lans: Arc<dyn Lans>, view: Arc<SanView>) -> Arc<SanDirectory> {
        Arc::new_cyclic(|this| SanDirectory {
            lans,
            this: this.clone(),
            view: Mutex::new(view),
            portals: Mutex::default(),
            interfaces: Known::default(),
            devices: Mutex::default(),
            turns: Turns::default(),
            kept: Arc::default(),
            leaving: Mutex::default(),
            away: Mutex::default(),
            looked: Mutex::default(),
            has_looked: Notify::new(),
        })
    }

    pub fn view(&self) -> Arc<SanView> {
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
        // A volume of a pool that does not answer holds up those of no other.
        let _turn = self.turns.of(&facts.dataset).await;
        if let Some(device) = self.used(facts) {
            device.set_groups(groups(view));
            return Ok(device);
        }
        let (volume, held) = self.lans.use_volume(&facts.dataset).await?;
        let unit = disk::Lun::new(volume, facts.read_only, held);
        let network = view.identity();
        let identity = Identity {
            vendor: network.vendor.clone(),
            product: network.product.clone(),
            ..Identity::new(facts.guid)
        };
        let options = Options { write_cache: facts.write_cache, ..Options::default() };
        let reservations =
            Reservations { lans: self.lans.clone(), kept: self.kept.clone(), unit: facts.guid };
        let stored = reservations.stored()?;
        if !stored.is_empty() && !scsi::is_reservations(&stored) {
            let lun = facts.dataset.as_str();
            tracing::error!(
                lun,
                "the reservations of a LUN cannot be read; it is reserved until a client clears that"
            );
        }
        let device = Device::new(Arc::new(unit), identity, options, Arc::new(reservations), &stored);
        device.set_groups(groups(view));
        let used = Used {
            device: Arc::downgrade(&device),
            guid: facts.guid,
            write_cache: facts.write_cache,
            read_only: facts.read_only,
        };
        lock(&self.devices).insert(facts.dataset.clone(), used);
        Ok(device)
    }

    /// The device that is used, as the LUN is now.
    fn used(&self, facts: &LunFacts) -> Option<Arc<Device>> {
        let mut devices = lock(&self.devices);
        let is_same = |used: &&mut Used| used.guid == facts.guid && used.read_only == facts.read_only;
        let used = devices.get_mut(&facts.dataset).filter(is_same)?;
        let device = used.device.upgrade()?;
        if used.write_cache != facts.write_cache {
            used.write_cache = facts.write_cache;
            device.set_modes(facts.write_cache, false);
        }
        Some(device)
    }
}

fn groups(view: &SanView) -> Vec<PortGroup> {
    let ports = view.targets().map(|(_, target)| target.port).collect();
    vec![PortGroup { id: GROUP, state: PortState::Optimized, preferred: false, ports }]
}

fn credentials(of: Credentials) -> iscsi::Credentials {
    iscsi::Credentials { name: of.user, secret: of.secret.into_bytes() }
}

/// A secret that no initiator has.
fn nobody() -> iscsi::Credentials {
    let secret = (0..4).flat_map(|_| world::random_u64().to_ne_bytes()).collect();
    iscsi::Credentials { name: String::new(), secret }
}

impl Directory for SanDirectory {
    /// An initiator is told what it was given; proof is asked for where it logs in.
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
        self.lans.login_failed(&asking.initiator, &asking.from.to_string());
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
        let Some(directory) = self.this.upgrade() else {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        };
        Box::pin(async move {
            let mut units = Vec::new();
            for (lun, facts) in seen {
                if let Some(Some(device)) = quiesced_units.get(&facts.dataset) {
                    units.push((lun, device.clone()));
                    continue;
                }
                // One that cannot be opened does not keep the others away.
                match directory.device(&view, &facts).await {
                    Ok(device) => units.push((lun, device)),
                    Err(e) => tracing::warn!(lun = lun.0, dataset = facts.dataset, "cannot serve a LUN: {e}"),
                }
            }
            Ok(units)
        })
    }
}
