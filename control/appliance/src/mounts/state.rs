//! The file systems that are mounted.

use fuse::Mount;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those that are mounted, by the names of their datasets.
#[derive(Debug)]
pub(crate) struct Mounts {
    pub(super) mounted: Mutex<BTreeMap<String, Arc<Mount>>>,
    /// Held while something of the pool is mounted or unmounted: a pool whose devices do not answer holds up no other.
    turns: Mutex<BTreeMap<String, Arc<world::sync::Mutex<()>>>>,
    /// The daemon ends: what is mounted now is remembered.
    pub(super) is_ending: AtomicBool,
}

impl Default for Mounts {
    fn default() -> Mounts {
        Mounts { mounted: Mutex::default(), turns: Mutex::default(), is_ending: AtomicBool::new(false) }
    }
}

impl Mounts {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Mount>>> {
        // An entry is whole at any time.
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is held while a dataset is mounted or unmounted.
    pub(super) fn turn(&self, dataset: &str) -> Arc<world::sync::Mutex<()>> {
        let pool = dataset.split('/').next().unwrap_or_default();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(pool.into()).or_insert_with(|| Arc::new(world::sync::Mutex::new(()))).clone()
    }

    /// Where a dataset is mounted, if it is.
    pub fn get(&self, dataset: &str) -> Option<Arc<Mount>> {
        self.lock().get(dataset).filter(|mount| !mount.has_ended()).cloned()
    }

    /// All, by the names of their datasets; those too that were unmounted from outside and that are not given back yet.
    pub(super) fn all(&self) -> Vec<(String, Arc<Mount>)> {
        self.lock().iter().map(|(name, mount)| (name.clone(), mount.clone())).collect()
    }

    /// The dataset that a path is in, and the way from its root.
    pub fn below_which(&self, path: &Path) -> Option<(String, Vec<u8>)> {
        let all = self.all().into_iter().filter(|(_, mount)| !mount.has_ended());
        let within = |(name, mount): (String, Arc<Mount>)| {
            let rest = path.strip_prefix(mount.at()).ok()?.as_os_str().as_bytes().to_vec();
            Some((name, rest))
        };
        all.filter_map(within).min_by_key(|(_, rest)| rest.len())
    }

    /// Those of a dataset and of what is below it.
    pub(crate) fn below(&self, dataset: &str) -> Vec<(String, Arc<Mount>)> {
        let is_below = |name: &str| {
            name.strip_prefix(dataset).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mounted = self.lock();
        // Among them are siblings whose names begin alike.
        let alike = mounted.range(dataset.to_string()..).take_while(|(name, _)| name.starts_with(dataset));
        alike.filter(|(name, _)| is_below(name)).map(|(name, mount)| (name.clone(), mount.clone())).collect()
    }
}
