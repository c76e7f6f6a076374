//! The file systems that are mounted.

use super::temporary::Temporary;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file system that is mounted, and what its dataset's properties do not say of that.
#[derive(Debug)]
pub(crate) struct Placed {
    mount: fuse::Mount,
    temporary: Mutex<Temporary>,
    pub(super) record_size: u32,
}

impl std::ops::Deref for Placed {
    type Target = fuse::Mount;
    fn deref(&self) -> &fuse::Mount {
        &self.mount
    }
}

impl Placed {
    pub(super) fn new(mount: fuse::Mount, temporary: Temporary, record_size: u32) -> Placed {
        Placed { mount, temporary: Mutex::new(temporary), record_size }
    }

    pub(super) fn temporary(&self) -> Temporary {
        self.temporary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These properties of the dataset itself were set: whether that ended any temporary option.
    pub(super) fn was_set(&self, properties: &[String]) -> bool {
        let mut temporary = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        let left = temporary.clone().without(properties);
        std::mem::replace(&mut *temporary, left.clone()) != left
    }
}

/// A lock for each pool.
type Turns = Mutex<BTreeMap<String, Arc<world::sync::Mutex<()>>>>;

/// Those that are mounted, by the names of their datasets.
#[derive(Debug)]
pub(crate) struct Mounts {
    pub(super) mounted: Mutex<BTreeMap<String, Arc<Placed>>>,
    /// Held while something of the pool is mounted or unmounted: a pool whose devices do not answer holds up no other.
    turns: Turns,
    /// Held while mounts of the pool follow properties: the later has seen what the earlier has done.
    following: Turns,
    /// The daemon ends: what is mounted now is remembered.
    pub(super) is_ending: AtomicBool,
}

impl Default for Mounts {
    fn default() -> Mounts {
        Mounts {
            mounted: Mutex::default(),
            turns: Mutex::default(),
            following: Mutex::default(),
            is_ending: AtomicBool::new(false),
        }
    }
}

fn turn_of(turns: &Turns, dataset: &str) -> Arc<world::sync::Mutex<()>> {
    let pool = dataset.split(['/', '@']).next().unwrap_or_default();
    let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
    turns.entry(pool.into()).or_insert_with(|| Arc::new(world::sync::Mutex::new(()))).clone()
}

impl Mounts {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Placed>>> {
        // An entry is whole at any time.
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is held while a dataset is mounted or unmounted.
    pub(super) fn turn(&self, dataset: &str) -> Arc<world::sync::Mutex<()>> {
        turn_of(&self.turns, dataset)
    }

    /// What is held while what is mounted of a dataset follows its properties.
    pub(super) fn following(&self, dataset: &str) -> Arc<world::sync::Mutex<()>> {
        turn_of(&self.following, dataset)
    }

    /// Where a dataset is mounted, if it is.
    pub fn get(&self, dataset: &str) -> Option<Arc<Placed>> {
        self.lock().get(dataset).filter(|mount| !mount.has_ended()).cloned()
    }

    /// All, by the names of their datasets; those too that were unmounted from outside and that are not given back yet.
    pub(super) fn all(&self) -> Vec<(String, Arc<Placed>)> {
        self.lock().iter().map(|(name, mount)| (name.clone(), mount.clone())).collect()
    }

    /// The dataset that a path is in, and the way from its root.
    pub fn below_which(&self, path: &Path) -> Option<(String, Vec<u8>)> {
        let all = self.all().into_iter().filter(|(_, mount)| !mount.has_ended());
        let within = |(name, mount): (String, Arc<Placed>)| {
            let rest = path.strip_prefix(mount.at()).ok()?.as_os_str().as_bytes().to_vec();
            Some((name, rest))
        };
        all.filter_map(within).min_by_key(|(_, rest)| rest.len())
    }

    /// Those of a dataset and of what is below it.
    pub(crate) fn below(&self, dataset: &str) -> Vec<(String, Arc<Placed>)> {
        let is_below = |name: &str| {
            name.strip_prefix(dataset).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mounted = self.lock();
        // Among them are siblings whose names begin alike.
        let alike = mounted.range(dataset.to_string()..).take_while(|(name, _)| name.starts_with(dataset));
        alike.filter(|(name, _)| is_below(name)).map(|(name, mount)| (name.clone(), mount.clone())).collect()
    }
}
