//! A top-level vdev as the allocator sees it: a line of metaslabs, and the list of those a txg has changed.

use crate::class::Class;
use crate::group::Group;
use crate::metaslab::sync::segment_in;
use crate::metaslab::{Metaslab, Place};
use crate::ranges::Segment;
use crate::space_log::MapInfo;
use ondisk::Dva;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Asize, Error, Psize, Result, Txg, VdevId};

/// How many bytes of a vdev a block takes: for raidz, with parity and padding.
pub trait Geometry: Send + Sync {
    fn asize(&self, psize: Psize) -> Asize;
}

impl<F: Fn(Psize) -> Asize + Send + Sync> Geometry for F {
    fn asize(&self, psize: Psize) -> Asize {
        self(psize)
    }
}

/// A top-level vdev to allocate from.
#[derive(Clone)]
pub struct VdevSpec {
    pub vdev: VdevId,
    pub class: Class,
    pub ashift: u32,
    /// Allocatable bytes.
    pub asize: u64,
    pub metaslab_shift: u32,
    /// Disks that take data at the same time: the children without parity, or 1.
    pub data_disks: u32,
    /// What allocated bytes are worth to users, in units of 1/512.
    pub deflate_ratio: u64,
    pub geometry: Arc<dyn Geometry>,
}

impl fmt::Debug for VdevSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VdevSpec")
            .field("vdev", &self.vdev)
            .field("class", &self.class)
            .field("ashift", &self.ashift)
            .field("asize", &self.asize)
            .field("metaslab_shift", &self.metaslab_shift)
            .finish_non_exhaustive()
    }
}

impl VdevSpec {
    pub fn metaslab_count(&self) -> u64 {
        self.asize >> self.metaslab_shift
    }

    /// These numbers stand in a configuration that came from a disk.
    pub(crate) fn check(&self) -> Result<()> {
        let shifts = (9..=16).contains(&self.ashift) && (self.ashift..=48).contains(&self.metaslab_shift);
        let count = if shifts { self.metaslab_count() } else { 0 };
        if !shifts || count == 0 || count > COUNT_MAX || self.asize > 1 << 62 {
            return Err(Error::corrupt(format!(
                "vdev configuration: ashift {}, metaslab_shift {}, asize {}",
                self.ashift, self.metaslab_shift, self.asize
            ))
            .at(format!("vdev {}", self.vdev)));
        }
        Ok(())
    }

    fn place(&self, index: usize, class: Class) -> Place {
        let size = 1 << self.metaslab_shift;
        let region = Segment::new(index as u64 * size, size);
        Place { vdev: self.vdev, index, region, shift: self.ashift, class }
    }
}

/// Eight times what OpenZFS makes of the largest vdev, for vdevs that grew.
const COUNT_MAX: u64 = 1 << 20;
/// A vdev with more metaslabs than this keeps one for the intent log.
const EMBEDDED_LOG_MIN: usize = 64;

/// Metaslabs by index.
type Indices = BTreeSet<usize>;

#[derive(Debug, Default)]
pub(crate) struct Dirty {
    /// To be synced, by txg.
    by_txg: [Indices; Txg::SLOTS],
    /// Synced in this txg, or with deferred frees: to be looked at when the txg is done.
    unsettled: Indices,
    /// With changes from the log space maps, to be flushed by the first txg.
    unflushed: Indices,
}

pub(crate) struct TopVdev {
    pub(crate) spec: VdevSpec,
    pub(crate) metaslabs: Vec<Arc<Metaslab>>,
    /// One for the vdev's class, and one for the embedded log if it has that.
    pub(crate) groups: Vec<Arc<Group>>,
    /// Shared with the same vdev after it has grown.
    dirty: Arc<Mutex<Dirty>>,
}

impl TopVdev {
    /// `maps` are the space maps of the metaslabs, in order.
    pub(crate) fn new(spec: VdevSpec, maps: Vec<Option<MapInfo>>) -> Result<TopVdev> {
        let log = embedded_log(&spec, &maps);
        let class_of = |i| if Some(i) == log { Class::EmbeddedLog } else { spec.class };
        let metaslabs: Vec<Arc<Metaslab>> = maps
            .into_iter()
            .enumerate()
            .map(|(i, map)| Metaslab::new(spec.place(i, class_of(i)), map).map(Arc::new))
            .collect::<Result<_>>()?;
        let mut groups = vec![make_group(&spec, spec.class, &metaslabs)];
        if log.is_some() {
            groups.push(make_group(&spec, Class::EmbeddedLog, &metaslabs));
        }
        Ok(TopVdev { spec, metaslabs, groups, dirty: Arc::default() })
    }

    /// The same vdev with more metaslabs at its end, described by `maps`.
    pub(crate) fn grown(&self, spec: VdevSpec, maps: Vec<Option<MapInfo>>) -> Result<TopVdev> {
        let first = self.metaslabs.len();
        let mut metaslabs = self.metaslabs.clone();
        for (i, map) in maps.into_iter().enumerate() {
            metaslabs.push(Arc::new(Metaslab::new(spec.place(first + i, spec.class), map)?));
        }
        let regroup = |old: &Arc<Group>| {
            let group = make_group(&spec, old.class, &metaslabs);
            group.set_open(old.is_open());
            group
        };
        let groups = self.groups.iter().map(regroup).collect();
        Ok(TopVdev { spec, metaslabs, groups, dirty: self.dirty.clone() })
    }

    pub(crate) fn group_of(&self, metaslab: &Metaslab) -> &Group {
        let class = metaslab.place.class;
        self.groups.iter().find(|g| g.class == class).expect("each metaslab is in a group of its vdev")
    }

    /// The metaslab and segment of a copy; from a block pointer, so it may be anything.
    pub(crate) fn locate(&self, dva: &Dva) -> Result<(&Arc<Metaslab>, Segment)> {
        let bad = || Error::corrupt(format!("block pointer: no allocated space can be at {dva}"));
        let offset = dva.offset.0.checked_mul(units::SECTOR).ok_or_else(bad)?;
        let size = if dva.gang { self.gang_header_asize() } else { dva.asize.bytes() };
        let index = (offset >> self.spec.metaslab_shift) as usize;
        let metaslab = self.metaslabs.get(index).ok_or_else(bad)?;
        let segment = segment_in(metaslab.place.region, self.spec.ashift, offset, size).ok_or_else(bad)?;
        Ok((metaslab, segment))
    }

    /// At the DVA of a gang stands only its header; the DVA's own asize is that of the whole gang.
    fn gang_header_asize(&self) -> u64 {
        self.spec.geometry.asize(Psize(units::SECTOR)).0
    }

    pub(crate) fn mark_dirty(&self, index: usize, txg: Txg) {
        self.dirty().by_txg[txg.slot()].insert(index);
    }

    pub(crate) fn mark_unflushed(&self, index: usize) {
        self.dirty().unflushed.insert(index);
    }

    /// The metaslabs that this pass has to write.
    pub(crate) fn take_dirty(&self, txg: Txg) -> Vec<Arc<Metaslab>> {
        let mut dirty = self.dirty();
        let mut indices = std::mem::take(&mut dirty.by_txg[txg.slot()]);
        indices.append(&mut dirty.unflushed);
        dirty.unsettled.extend(&indices);
        indices.into_iter().map(|i| self.metaslabs[i].clone()).collect()
    }

    pub(crate) fn take_unsettled(&self) -> Vec<Arc<Metaslab>> {
        let indices = std::mem::take(&mut self.dirty().unsettled);
        indices.into_iter().map(|i| self.metaslabs[i].clone()).collect()
    }

    pub(crate) fn mark_unsettled(&self, index: usize) {
        self.dirty().unsettled.insert(index);
    }

    fn dirty(&self) -> MutexGuard<'_, Dirty> {
        // No code that can panic runs under this lock.
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TopVdev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

/// The emptiest metaslab of a normal vdev that has enough of them.
fn embedded_log(spec: &VdevSpec, maps: &[Option<MapInfo>]) -> Option<usize> {
    let emptiest = || (0..maps.len()).min_by_key(|&i| maps[i].map_or(0, |m| m.header.allocated));
    (spec.class == Class::Normal && maps.len() > EMBEDDED_LOG_MIN).then(emptiest).flatten()
}

fn make_group(spec: &VdevSpec, class: Class, metaslabs: &[Arc<Metaslab>]) -> Arc<Group> {
    let members = metaslabs.iter().filter(|m| m.place.class == class).cloned().collect();
    Arc::new(Group::new(spec.vdev, class, members, spec.data_disks.max(1).into(), spec.deflate_ratio))
}
