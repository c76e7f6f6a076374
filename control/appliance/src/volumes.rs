//! Volumes that clients use. All clients of a volume share one, since its writers take turns in it.

use crate::served::Served;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By the names of their datasets.
#[derive(Debug, Default)]
pub(crate) struct Volumes(Mutex<BTreeMap<String, Used>>);

#[derive(Debug)]
struct Used {
    volume: Served,
    users: usize,
}

impl Volumes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Used>> {
        // An entry is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume, if somebody uses it.
    pub fn get(&self, name: &str) -> Option<Served> {
        self.lock().get(name).map(|used| used.volume.clone())
    }

    /// One user more of a volume that was opened; if somebody else was faster, theirs is the one.
    pub fn hold(&self, volume: Served) -> Served {
        let mut all = self.lock();
        let used = all.entry(volume.name().into()).or_insert(Used { volume, users: 0 });
        used.users += 1;
        used.volume.clone()
    }

    pub fn release(&self, name: &str) {
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

/// `tank/a` and `tank/a@s` are below `tank`; `tank2` is not.
pub(crate) fn is_below(name: &str, dataset: &str) -> bool {
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
