//! Volumes that clients use. All clients of a volume share one, since its writers take turns in it.

use crate::shared::SharedVolume;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By the names of their datasets.
#[derive(Debug, Default)]
pub struct Volumes(Mutex<BTreeMap<String, Used>>);

#[derive(Debug)]
struct Used {
    volume: SharedVolume,
    users: usize,
}

impl Volumes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Used>> {
        // An entry is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume, if it is in use.
    pub fn get(&self, name: &str) -> Option<SharedVolume> {
        self.lock().get(name).map(|used| used.volume.clone())
    }

    /// One user more of a volume that was opened; if another client was faster, the volume that it opened is the one.
    pub fn hold(self: &Arc<Self>, volume: SharedVolume) -> (SharedVolume, Held) {
        let name = volume.name().to_string();
        let mut all = self.lock();
        let used = all.entry(name.clone()).or_insert(Used { volume, users: 0 });
        used.users += 1;
        (used.volume.clone(), Held { volumes: self.clone(), name })
    }

    fn release(&self, name: &str) {
        let mut all = self.lock();
        if let Some(used) = all.get_mut(name) {
            used.users -= 1;
            if used.users == 0 {
                all.remove(name);
            }
        }
    }

    /// Which volumes at and below a dataset are used.
    pub fn used_below(&self, dataset: &str) -> Vec<String> {
        self.lock().keys().filter(|name| is_below(name, dataset)).cloned().collect()
    }
}

/// One client's use of a volume, until it is dropped.
pub struct Held {
    volumes: Arc<Volumes>,
    name: String,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.name)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.volumes.release(&self.name);
    }
}

/// `tank/a` and `tank/a@s` are below `tank`; `tank2` is not.
pub fn is_below(name: &str, dataset: &str) -> bool {
    name.strip_prefix(dataset).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '@']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_no_part_of_one_with_a_longer_name() {
        for (name, dataset, below) in [
            ("tank/a", "tank", true),
            ("tank", "tank", true),
            ("tank2/a", "tank", false),
            ("tank/a@s", "tank/a", true),
            ("tank/ab", "tank/a", false),
        ] {
            assert_eq!(is_below(name, dataset), below, "{name} below {dataset}");
        }
    }
}
