//! A directory in memory: for tests, and to measure this front without any disk.

use crate::chap::Credentials;
use crate::directory::{Asking, Authentication, Directory, Listed, Unit, Welcome};
use scsi::{Device, Identity, LogicalUnit, Lun, Options, PortGroup, PortState, ReservationStore, TargetPort};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Result;
use world::{Address, Pending};

/// Reservations that are not kept.
#[derive(Debug)]
pub struct NoStore;

impl ReservationStore for NoStore {
    fn save(&self, _text: String, _lasting: Option<String>) -> Pending<Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A device of a unit, with a name made of `number`, behind as many ports as a portal has.
pub fn device(unit: Arc<dyn LogicalUnit>, number: u8) -> Arc<Device> {
    let mut naa = [0; 16];
    (naa[0], naa[15]) = (0x60, number);
    let device = Device::new(unit, Identity::new(naa), Options::default(), Arc::new(NoStore), "");
    let group = PortGroup { id: 1, state: PortState::Optimized, preferred: true, ports: vec![1, 2] };
    device.set_groups(vec![group]);
    device
}

#[derive(Clone, Debug, Default)]
struct Target {
    /// By whom it may be used; anybody, when empty.
    initiators: Vec<String>,
    units: BTreeMap<Lun, Arc<Device>>,
    authentication: Authentication,
}

/// Targets that can be changed while they are served. Each portal is a portal group of its own, in the order in which
/// they are first used.
#[derive(Debug, Default)]
pub struct MemoryDirectory {
    targets: Mutex<BTreeMap<String, Target>>,
    portals: Mutex<Vec<Address>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDirectory {
    fn change(&self, target: &str, change: impl FnOnce(&mut Target)) {
        change(lock(&self.targets).entry(target.into()).or_default());
    }

    pub fn add(&self, target: &str, lun: u16, device: Arc<Device>) {
        self.change(target, |t| {
            t.units.insert(Lun(lun), device);
        });
    }

    #[must_use]
    pub fn with(self, target: &str, lun: u16, device: Arc<Device>) -> MemoryDirectory {
        self.add(target, lun, device);
        self
    }

    pub fn remove(&self, target: &str, lun: u16) {
        self.change(target, |t| {
            t.units.remove(&Lun(lun));
        });
    }

    pub fn remove_target(&self, target: &str) {
        lock(&self.targets).remove(target);
    }

    /// From now on only this initiator, and others that are named so, see the target.
    pub fn only_for(&self, target: &str, initiator: &str) {
        self.change(target, |t| t.initiators.push(initiator.into()));
    }

    /// From now on an initiator must prove who it is; with `own` the target can, too.
    pub fn protect(&self, target: &str, initiator: Credentials, own: Option<Credentials>) {
        let authentication = Authentication { initiator: Some(initiator), target: own };
        self.change(target, |t| t.authentication = authentication);
    }

    fn portal(&self, address: &Address) -> u16 {
        let mut portals = lock(&self.portals);
        let at = portals.iter().position(|p| p == address).unwrap_or_else(|| {
            portals.push(address.clone());
            portals.len() - 1
        });
        at as u16 + 1
    }

    fn seen(&self, asking: &Asking) -> Vec<(String, Target)> {
        let is_given = |t: &Target| t.initiators.is_empty() || t.initiators.contains(&asking.initiator);
        let targets = lock(&self.targets);
        targets.iter().filter(|(_, t)| is_given(t)).map(|(n, t)| (n.clone(), t.clone())).collect()
    }
}

impl Directory for MemoryDirectory {
    fn discovery(&self, _asking: &Asking) -> Authentication {
        Authentication::default()
    }

    fn targets(&self, asking: &Asking) -> Vec<Listed> {
        self.portal(&asking.portal);
        let addresses: Vec<String> =
            lock(&self.portals).iter().enumerate().map(|(i, p)| format!("{p},{}", i + 1)).collect();
        let listed = |(name, _)| Listed { name, addresses: addresses.clone() };
        self.seen(asking).into_iter().map(listed).collect()
    }

    fn target(&self, asking: &Asking, name: &str) -> Option<Welcome> {
        let (_, target) = self.seen(asking).into_iter().find(|(n, _)| n == name)?;
        let tag = self.portal(&asking.portal);
        let port = TargetPort { relative: tag, group: 1, name: format!("{name},t,0x{tag:04x}").into() };
        Some(Welcome { authentication: target.authentication, port, tag, alias: String::new() })
    }

    fn units(&self, asking: &Asking, target: &str) -> Pending<Result<Vec<Unit>>> {
        let found = self.seen(asking).into_iter().find(|(n, _)| n == target);
        let units = found.map(|(_, t)| t.units.into_iter().collect()).unwrap_or_default();
        Box::pin(std::future::ready(Ok(units)))
    }
}
