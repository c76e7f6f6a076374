//! The device tree as the configuration describes it: a value, with no device behind it.
//!
//! ```text
//!   root ─┬─ mirror ─┬─ disk          children of the root are top-level vdevs:
//!         │          └─ file          their `id` is what a block pointer names
//!         ├─ raidz ── ...
//!         ├─ disk   (log)
//!         └─ hole                     where one was removed
//! ```
//!
//! A label holds the part below one top-level vdev, the MOS the whole tree; both are nvlists. What this program does
//! not know is kept, so that writing the configuration again loses nothing, and the pairs are written in the order in
//! which OpenZFS writes them.
//!
//! [`Spec::create`] makes the tree of a new pool; `open` turns a tree into devices.

mod create;
mod nvlist;
mod reshape;

pub use create::{Group, NewLeaf, mismatch, mismatch_with};
pub use reshape::Detached;

use crate::{Device, VdevType};
use ondisk::NvList;
use units::{Error, Guid, HashMap, HashSet, ObjectId, Result, Txg};

/// What a top-level vdev is for. In the configuration only the log is marked; the other classes are a property of the
/// vdev's ZAP, which the pool reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bias {
    #[default]
    Normal,
    Log,
    Special,
    Dedup,
}

impl Bias {
    /// The value of `org.zfsonlinux:allocation_bias` in the vdev's ZAP; a normal vdev has no such entry.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Bias::Normal => None,
            Bias::Log => Some("log"),
            Bias::Special => Some("special"),
            Bias::Dedup => Some("dedup"),
        }
    }

    pub fn from_word(word: &str) -> Option<Bias> {
        [Bias::Log, Bias::Special, Bias::Dedup].into_iter().find(|b| b.word() == Some(word))
    }
}

/// One vdev and everything below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub vdev_type: VdevType,
    /// Its place among its siblings. Spares and cache devices have none.
    pub id: Option<u64>,
    pub guid: Guid,
    pub path: Option<String>,
    pub nparity: Option<u64>,
    pub whole_disk: Option<u64>,
    /// These six belong to a top-level vdev.
    pub metaslab_array: Option<u64>,
    pub metaslab_shift: Option<u64>,
    pub ashift: Option<u64>,
    pub asize: Option<u64>,
    pub min_alloc: Option<u64>,
    pub is_log: Option<u64>,
    /// The space map of the txgs that a leaf misses.
    pub dtl: Option<u64>,
    pub create_txg: Option<u64>,
    pub leaf_zap: Option<u64>,
    pub top_zap: Option<u64>,
    pub root_zap: Option<u64>,
    /// How a leaf was left; each is written only when it is true.
    pub offline: Option<u64>,
    pub faulted: Option<u64>,
    pub degraded: Option<u64>,
    pub removed: Option<u64>,
    pub not_present: Option<u64>,
    pub aux_state: Option<String>,
    /// Not stored in the tree on disk.
    pub bias: Bias,
    /// All other pairs, as they were read.
    pub other: NvList,
    pub children: Vec<Spec>,
}

impl Spec {
    pub fn new(vdev_type: VdevType, guid: Guid) -> Spec {
        Spec {
            vdev_type,
            id: None,
            guid,
            path: None,
            nparity: None,
            whole_disk: None,
            metaslab_array: None,
            metaslab_shift: None,
            ashift: None,
            asize: None,
            min_alloc: None,
            is_log: None,
            dtl: None,
            create_txg: None,
            leaf_zap: None,
            top_zap: None,
            root_zap: None,
            offline: None,
            faulted: None,
            degraded: None,
            removed: None,
            not_present: None,
            aux_state: None,
            bias: Bias::Normal,
            other: NvList::new(),
            children: Vec::new(),
        }
    }

    /// A top-level vdev that is not there, or a place that is to stay empty.
    pub fn placeholder(vdev_type: VdevType, id: u64) -> Spec {
        Spec { id: Some(id), ..Spec::new(vdev_type, Guid(0)) }
    }

    /// What stays where a top-level vdev was removed, as OpenZFS writes it: other vdevs keep their numbers, since block
    /// pointers name them.
    pub fn hole(id: u64) -> Spec {
        let zero = Some(0);
        Spec {
            whole_disk: zero,
            metaslab_array: zero,
            metaslab_shift: zero,
            ashift: zero,
            asize: zero,
            min_alloc: Some(1),
            is_log: zero,
            other: NvList::new().with("is_hole", 1u64),
            ..Spec::placeholder(VdevType::Hole, id)
        }
    }

    pub fn is_leaf(&self) -> bool {
        self.vdev_type.is_leaf()
    }

    pub fn is_log(&self) -> bool {
        self.is_log.is_some_and(|v| v != 0)
    }

    pub fn create_txg(&self) -> Txg {
        Txg(self.create_txg.unwrap_or(0))
    }

    pub fn metaslab_array(&self) -> Option<ObjectId> {
        ObjectId(self.metaslab_array.unwrap_or(0)).some()
    }

    /// Everything finds a vdev by its guid: two of the same are none.
    ///
    /// # Errors
    /// `Corrupt`, with the guid.
    pub fn check_guids(&self) -> Result<()> {
        let mut seen = HashSet::default();
        let known = self.walk().filter(|spec| spec.guid != Guid(0));
        match known.map(|spec| spec.guid).find(|guid| !seen.insert(*guid)) {
            Some(guid) => Err(Error::corrupt(format!("two vdevs have the guid {guid}"))),
            None => Ok(()),
        }
    }

    /// The vdev and everything below it, parents first.
    pub fn walk(&self) -> impl Iterator<Item = &Spec> {
        let mut todo = vec![self];
        std::iter::from_fn(move || {
            let next = todo.pop()?;
            todo.extend(next.children.iter().rev());
            Some(next)
        })
    }

    pub fn leaves(&self) -> impl Iterator<Item = &Spec> {
        self.walk().filter(|s| s.is_leaf())
    }

    pub fn find(&self, guid: Guid) -> Option<&Spec> {
        self.walk().find(|s| s.guid == guid)
    }

    pub fn find_mut(&mut self, guid: Guid) -> Option<&mut Spec> {
        if self.guid == guid {
            return Some(self);
        }
        self.children.iter_mut().find_map(|c| c.find_mut(guid))
    }

    /// The sum of all guids in the tree, as the uberblock records it: by it a missing top-level vdev is noticed.
    pub fn guid_sum(&self) -> u64 {
        self.walk().fold(0, |sum, s| sum.wrapping_add(s.guid.0))
    }

    /// Lets the leaves name the devices where they are now, and no longer where they were. A partition keeps its name:
    /// it has none that others could open.
    pub fn set_paths(&mut self, devices: &HashMap<Guid, Device>) {
        if let Some(device) = devices.get(&self.guid) {
            self.set_path(device);
        }
        self.children.iter_mut().for_each(|c| c.set_paths(devices));
    }

    /// Lets a leaf name the device where it is now; a partition keeps its name.
    pub fn set_path(&mut self, device: &Device) {
        if let Device { path, window: None } = device {
            self.path = Some(path.to_string_lossy().into_owned());
        }
    }

    /// How many of its devices are for parity; pools older than double parity did not say.
    pub fn parity(&self) -> u64 {
        if self.vdev_type.has_parity() { self.nparity.unwrap_or(1) } else { 0 }
    }

    /// The name in listings, without a leaf's directory: `mirror-0`, `raidz1-2`, `/dev/sda` becomes `sda`.
    pub fn name(&self) -> String {
        let id = self.id.unwrap_or(0);
        match (self.vdev_type, &self.path) {
            (t, Some(path)) if t.is_leaf() => path.strip_prefix("/dev/").unwrap_or(path).to_string(),
            (t, None) if t.is_leaf() => self.guid.to_string(),
            (t, _) if t.has_parity() => format!("{t}{}-{id}", self.parity()),
            (t, _) => format!("{t}-{id}"),
        }
    }
}

#[cfg(test)]
mod tests;
