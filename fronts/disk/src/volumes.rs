//! Volumes that clients use. All clients of a volume share one, since its writers take turns in it.

use crate::counted::{Counted, Counts};
use crate::shared::SharedVolume;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By the names of their datasets.
#[derive(Debug, Default)]
pub struct Volumes {
    used: Mutex<BTreeMap<String, Used>>,
    /// What was asked of those that no client has at present.
    past: Mutex<BTreeMap<String, Arc<Counts>>>,
}

/// Of so many volumes without clients it is remembered what was asked of them.
const PAST_MAX: usize = 4096;

#[derive(Debug)]
struct Used {
    volume: SharedVolume,
    users: usize,
}

impl Volumes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Used>> {
        // An entry is whole at any time.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn past(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Counts>>> {
        // As above.
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What clients asked of a volume lately.
    pub fn counted(&self, name: &str) -> Option<Counted> {
        let used = self.lock().get(name).map(|used| used.volume.counts().clone());
        used.or_else(|| self.past().get(name).cloned()).map(|counts| counts.told(world::now()))
    }

    /// The volume, if it is in use.
    pub fn get(&self, name: &str) -> Option<SharedVolume> {
        self.lock().get(name).map(|used| used.volume.clone())
    }

    /// One user more of a volume that was opened; if another client was faster, the volume that it opened is the one.
    pub fn hold(self: &Arc<Self>, volume: SharedVolume) -> (SharedVolume, Held) {
        let name = volume.name().to_string();
        let mut all = self.lock();
        let used = all.entry(name.clone()).or_insert_with(|| {
            let volume = match self.past().remove(&name) {
                Some(counts) => volume.counting_on(&counts),
                None => volume,
            };
            Used { volume, users: 0 }
        });
        used.users += 1;
        (used.volume.clone(), Held { volumes: self.clone(), name })
    }

    fn release(&self, name: &str) {
        let mut all = self.lock();
        if let Some(used) = all.get_mut(name) {
            used.users -= 1;
            if used.users == 0 {
                let gone = all.remove(name);
                let mut past = self.past();
                if past.len() < PAST_MAX {
                    past.extend(gone.map(|gone| (name.to_string(), gone.volume.counts().clone())));
                }
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
