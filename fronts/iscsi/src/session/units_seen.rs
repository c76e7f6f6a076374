//! The units a client has, and how they change under it.
//!
//! A unit that is added is there with its first command; one that is taken away ends what it has under way, and from
//! then on looks as if it never was. Every path that stays tells that the list has changed, and an asynchronous message
//! says it to clients that send nothing.

use super::journal::Probes;
use crate::directory::Unit;
use probe::{Breakdown, Family, Hub};
use scsi::{Attention, Device, Lun, Nexus, Path, Reach};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct UnitsSeen {
    nexus: Nexus,
    /// What the client may copy between.
    reach: Reach,
    paths: BTreeMap<Lun, Arc<Path>>,
    place: Place,
    /// Where commands to each unit are told.
    probes: BTreeMap<Lun, Box<Probes>>,
}

/// The initiator, target and unit of the commands, for statistics.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub hub: Hub,
    pub client: String,
    pub target: String,
}

impl Place {
    /// Where commands to the unit that is this dataset are told.
    pub fn probes(&self, dataset: &str) -> Probes {
        let mut labels = probe::labels_of(dataset, true);
        labels.extend([
            (Breakdown::Lun, dataset),
            (Breakdown::Client, self.client.as_str()),
            (Breakdown::Target, self.target.as_str()),
        ]);
        let commands = self.hub.probe(Family::Iscsi, &labels);
        let stages = self.hub.beside(&commands, Family::IscsiStages);
        Probes { commands, stages }
    }
}

impl UnitsSeen {
    pub fn new(nexus: Nexus, place: Place, units: Vec<Unit>) -> UnitsSeen {
        let (paths, probes) = (BTreeMap::new(), BTreeMap::new());
        let mut seen = UnitsSeen { nexus, reach: Reach::default(), paths, place, probes };
        for (lun, device) in units {
            let path = seen.attach(&device);
            seen.paths.insert(lun, path);
        }
        seen.find_places();
        seen
    }

    /// Only now, since a unit may have been taken over by another dataset, or renamed.
    fn find_places(&mut self) {
        let probes = |path: &Arc<Path>| Box::new(self.place.probes(path.device().unit().dataset()));
        self.probes = self.paths.iter().map(|(lun, path)| (*lun, probes(path))).collect();
    }

    pub fn probes(&self, lun: Lun) -> Option<&Probes> {
        self.probes.get(&lun).map(Box::as_ref)
    }

    fn attach(&self, device: &Arc<Device>) -> Arc<Path> {
        Arc::new(device.attach_within(self.nexus.clone(), &self.reach))
    }

    pub fn get(&self, lun: Lun) -> Option<&Arc<Path>> {
        self.paths.get(&lun)
    }

    pub fn luns(&self) -> impl Iterator<Item = Lun> {
        self.paths.keys().copied()
    }

    pub fn paths(&self) -> impl Iterator<Item = &Arc<Path>> {
        self.paths.values()
    }

    /// The client has asked for the list: it need not be told any more.
    pub fn note_listed(&self) {
        self.paths.values().for_each(|path| path.forget(Attention::LunsChanged));
    }

    /// What the directory says now. Returns a unit to send a message for, when the list has changed, and all whose size
    /// has.
    pub fn update(&mut self, units: Vec<Unit>) -> (Option<Lun>, Vec<Lun>) {
        let before: Vec<(Lun, String)> = self.described();
        let mut old = std::mem::take(&mut self.paths);
        for (lun, device) in units {
            let kept = old.remove(&lun).filter(|path| Arc::ptr_eq(path.device(), &device));
            let path = kept.unwrap_or_else(|| self.attach(&device));
            self.paths.insert(lun, path);
        }
        self.find_places();
        // Commands under way may still have them; copies end.
        old.values().for_each(|path| path.leave());
        let changed = before != self.described();
        if changed {
            self.paths.values().for_each(|path| path.raise(Attention::LunsChanged));
        }
        let resized = self.paths.iter().filter(|(_, path)| path.device().note_shape()).map(|(lun, _)| *lun);
        let resized = resized.collect();
        (changed.then(|| self.luns().next().unwrap_or(Lun(0))), resized)
    }

    fn described(&self) -> Vec<(Lun, String)> {
        let describe =
            |(lun, path): (&Lun, &Arc<Path>)| (*lun, scsi::naa_text(&path.device().identity().naa));
        self.paths.iter().map(describe).collect()
    }
}
