//! The face of the crate: all the space of one pool.

use crate::class::{Class, Rotor};
use crate::group::Group;
use crate::space_log::{MapInfo, SpaceLog};
use crate::usage::{Usage, slop};
use crate::vdev::{TopVdev, VdevSpec};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use units::{Error, ObjectId, Result, VdevId};
use world::sync::Notify;

/// The vdevs and how they are divided into classes: replaced whole when a vdev comes or grows.
#[derive(Debug, Default)]
pub(crate) struct Table {
    vdevs: BTreeMap<VdevId, Arc<TopVdev>>,
    rotors: [Rotor; Class::ALL.len()],
}

impl Table {
    fn of(vdevs: BTreeMap<VdevId, Arc<TopVdev>>) -> Table {
        let groups: Vec<&Arc<Group>> = vdevs.values().flat_map(|v| &v.groups).collect();
        let of_class = |class| groups.iter().filter(|g| g.class == class).map(|&g| g.clone()).collect();
        let rotors = Class::ALL.map(|class| Rotor::new(of_class(class)));
        let table = Table { rotors, vdevs };
        table.rotors.iter().for_each(Rotor::balance);
        table
    }

    pub(crate) fn vdev(&self, vdev: VdevId) -> Option<&Arc<TopVdev>> {
        self.vdevs.get(&vdev)
    }

    pub(crate) fn vdevs(&self) -> impl Iterator<Item = &Arc<TopVdev>> {
        self.vdevs.values()
    }

    pub(crate) fn rotor(&self, class: Class) -> &Rotor {
        &self.rotors[class.index()]
    }
}

/// The allocator of a pool. See the crate.
pub struct Space {
    pub(crate) log: Arc<dyn SpaceLog>,
    table: RwLock<Table>,
    long_entries: AtomicBool,
    /// Told whenever a load ends.
    pub(crate) loads: Notify,
    problems: Mutex<Vec<Error>>,
}

/// What is known of one metaslab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaslabInfo {
    pub index: usize,
    pub offset: u64,
    pub size: u64,
    pub allocated: u64,
    pub deferred: u64,
    /// Its space map, if it was ever used.
    pub map: Option<MapInfo>,
    pub loaded: bool,
    /// The number of free segments, when loaded.
    pub segments: Option<usize>,
    pub fragmentation: Option<u64>,
}

impl Space {
    /// A pool's space without any vdev yet. `long_entries`: the feature `spacemap_v2` is active.
    pub fn new(log: Arc<dyn SpaceLog>, long_entries: bool) -> Space {
        Space {
            log,
            table: RwLock::default(),
            long_entries: AtomicBool::new(long_entries),
            loads: Notify::new(),
            problems: Mutex::default(),
        }
    }

    /// The space of these vdevs, as their space maps describe it. Reads the header of every map, no entries.
    pub async fn open(log: Arc<dyn SpaceLog>, specs: Vec<VdevSpec>, long_entries: bool) -> Result<Space> {
        let space = Space::new(log, long_entries);
        for spec in specs {
            space.add_vdev(spec).await?;
        }
        Ok(space)
    }

    /// Adds a top-level vdev: one that the pool had, or a new one, whose metaslabs have no maps yet.
    pub async fn add_vdev(&self, spec: VdevSpec) -> Result<()> {
        spec.check()?;
        let maps = self.read_headers(&spec, 0).await?;
        let top = Arc::new(TopVdev::new(spec, maps)?);
        self.change_table(|vdevs| {
            vdevs.insert(top.spec.vdev, top);
        });
        Ok(())
    }

    /// Takes account of a vdev that has grown to `asize`: new metaslabs at its end.
    pub async fn grow_vdev(&self, vdev: VdevId, asize: u64) -> Result<()> {
        let top = self.vdev(vdev).ok_or_else(|| Error::invalid(format!("grow: no vdev {vdev}")))?;
        let spec = VdevSpec { asize, ..top.spec.clone() };
        spec.check()?;
        let maps = self.read_headers(&spec, top.metaslabs.len()).await?;
        let grown = Arc::new(top.grown(spec, maps)?);
        self.change_table(|vdevs| {
            vdevs.insert(vdev, grown);
        });
        Ok(())
    }

    /// Forgets a vdev that was removed: it must not hold anything any more.
    pub fn remove_vdev(&self, vdev: VdevId) {
        self.change_table(|vdevs| {
            vdevs.remove(&vdev);
        });
    }

    /// Whether nothing is on the vdev, was freed on it in the last txgs, or is about to be put there.
    pub fn is_empty(&self, vdev: VdevId) -> bool {
        self.vdev(vdev).is_none_or(|top| top.metaslabs.iter().all(|m| m.lock().is_empty()))
    }

    /// Opens or closes a vdev for allocation, as when it fails or is being evacuated.
    pub fn set_allocatable(&self, vdev: VdevId, allocatable: bool) {
        if let Some(top) = self.vdev(vdev) {
            top.groups.iter().for_each(|group| group.set_open(allocatable));
        }
    }

    /// The feature `spacemap_v2` has become active.
    pub fn allow_long_entries(&self) {
        self.long_entries.store(true, Relaxed);
    }

    pub fn has_class(&self, class: Class) -> bool {
        !self.table().rotor(class).groups().is_empty()
    }

    pub fn usage(&self, class: Class) -> Usage {
        sum(self.table().rotor(class).groups())
    }

    /// All classes but log devices: what `zpool list` shows as SIZE and ALLOC.
    pub fn usage_total(&self) -> Usage {
        let mut total = Usage::default();
        for class in Class::ALL.into_iter().filter(|&c| c != Class::Log) {
            total += self.usage(class);
        }
        total
    }

    pub fn usage_of_vdev(&self, vdev: VdevId) -> Option<Usage> {
        self.vdev(vdev).map(|top| sum(&top.groups))
    }

    /// Deflated bytes that only the pool itself may use.
    pub fn slop(&self) -> u64 {
        slop(self.usage(Class::Normal).space_deflated, self.usage(Class::EmbeddedLog).space_deflated)
    }

    /// The mean over the vdevs of a class, by their size, in percent; `None` when too little is known.
    pub fn fragmentation(&self, class: Class) -> Option<u64> {
        let table = self.table();
        let (mut space, mut weighted) = (0u128, 0u128);
        for group in table.rotor(class).groups() {
            let size = u128::from(group.usage().space);
            space += size;
            weighted += size * u128::from(group.fragmentation()?);
        }
        weighted.checked_div(space).map(|percent| percent as u64)
    }

    pub fn fragmentation_of_vdev(&self, vdev: VdevId) -> Option<u64> {
        self.vdev(vdev)?.groups.first()?.fragmentation()
    }

    pub fn metaslabs(&self, vdev: VdevId) -> Vec<MetaslabInfo> {
        let Some(top) = self.vdev(vdev) else { return Vec::new() };
        top.metaslabs.iter().map(|m| m.lock().info()).collect()
    }

    /// Space maps that could not be loaded since the last call: what was damaged, in sentences for the pool's log.
    pub fn take_problems(&self) -> Vec<Error> {
        std::mem::take(&mut *self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note_problem(&self, problem: Error) {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    }

    pub(crate) fn uses_long_entries(&self) -> bool {
        self.long_entries.load(Relaxed)
    }

    pub(crate) fn table(&self) -> RwLockReadGuard<'_, Table> {
        // The table is replaced by one store; a panic elsewhere leaves it whole.
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn vdev(&self, vdev: VdevId) -> Option<Arc<TopVdev>> {
        self.table().vdev(vdev).cloned()
    }

    pub(crate) fn vdevs(&self) -> Vec<Arc<TopVdev>> {
        self.table().vdevs().cloned().collect()
    }

    fn change_table(&self, change: impl FnOnce(&mut BTreeMap<VdevId, Arc<TopVdev>>)) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut vdevs = std::mem::take(&mut table.vdevs);
        change(&mut vdevs);
        *table = Table::of(vdevs);
    }

    /// The maps of the metaslabs from `first` on.
    async fn read_headers(&self, spec: &VdevSpec, first: usize) -> Result<Vec<Option<MapInfo>>> {
        /// A vdev has hundreds of maps, each a block to read: enough at once to keep its disks busy.
        const AT_ONCE: usize = 32;
        let mut array = self.log.array(spec.vdev).await?;
        array.resize(spec.metaslab_count() as usize, ObjectId(0));
        let mut maps = Vec::with_capacity(array.len());
        for some in array[first..].chunks(AT_ONCE) {
            let reads = some.iter().map(|map| self.read_header(map.some()));
            maps.extend(futures_util::future::try_join_all(reads).await?);
        }
        Ok(maps)
    }

    async fn read_header(&self, map: Option<ObjectId>) -> Result<Option<MapInfo>> {
        match map {
            Some(map) => self.log.info(map).await.map(Some),
            None => Ok(None),
        }
    }
}

fn sum(groups: &[Arc<Group>]) -> Usage {
    let mut sum = Usage::default();
    groups.iter().for_each(|group| sum += group.usage());
    sum
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space").field("vdevs", &self.vdevs()).finish_non_exhaustive()
    }
}
