//! States that were looked at before.
//!
//! Many cuts leave the same bytes behind: whatever was under way was lost, or all of it was kept. What is found then follows
//! from those bytes alone, for the order of events in their recovery is drawn from their fingerprint. So each state is
//! recovered once, and what was found is held against what the clients knew at each of the cuts.

use super::judge::Promise;
use sim::Disks;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use units::{Error, Result};

/// Of so many parts of labels the hashes are remembered: each look reads the labels of up to five devices three times, and
/// to hash them was half of all the work.
pub const LABELS: usize = 64;

/// So many first pools are kept, to begin other cases with. One takes some 4 MiB, and there are thousands of setups: a proof
/// that kept all of them took 3 GB in an hour.
pub(super) const BASES: usize = 32;

/// The first pool of a setup: one of those that are kept, or made now.
pub(super) fn base_of<T>(
    bases: &mut BTreeMap<String, T>,
    setup: String,
    make: impl FnOnce() -> Result<T> + std::panic::UnwindSafe,
) -> Result<&T> {
    if !bases.contains_key(&setup) {
        let made = catch_unwind(make).unwrap_or_else(|panic| Err(Error::corrupt(words(&*panic))))?;
        if bases.len() >= BASES {
            bases.clear();
        }
        bases.insert(setup.clone(), made);
    }
    Ok(&bases[&setup])
}

/// What a look at a state has found, or why it failed.
pub type Seen<T> = std::result::Result<Arc<T>, String>;

/// What was found in the states after the cuts of one run of a workload.
#[derive(Debug)]
pub struct Known<T>(BTreeMap<(u64, bool), Seen<T>>);

/// The words of a panic.
pub(super) fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
    format!("panic: {}", text.unwrap_or_default())
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known(BTreeMap::new())
    }
}

impl<T> Known<T> {
    /// Looks at the disks, with this seed, unless the same state is known. With `anew` it looks all the same: the disks are
    /// then as their recovery leaves them.
    pub fn look(
        &mut self,
        disks: &Disks,
        promise: Promise,
        anew: bool,
        look: impl FnOnce(u64) -> Result<T>,
    ) -> Seen<T> {
        let seed = disks.print();
        match self.0.get(&(seed, promise == Promise::Log)) {
            Some(seen) if !anew => seen.clone(),
            _ => {
                let found = catch_unwind(AssertUnwindSafe(|| look(seed)));
                self.learn(seed, promise, found.map_err(|panic| words(&*panic)))
            }
        }
    }

    /// What another job has found in the state with this fingerprint, or the words of a panic.
    pub fn learn(
        &mut self,
        print: u64,
        promise: Promise,
        found: std::result::Result<Result<T>, String>,
    ) -> Seen<T> {
        let found = found.and_then(|found| found.map_err(|e| format!("cannot be recovered: {e}")));
        let seen = found.map(Arc::new);
        self.0.insert((print, promise == Promise::Log), seen.clone());
        seen
    }

    /// How many different states there were.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Model;

    #[test]
    fn first_pools_are_made_once_as_long_as_they_are_few_and_all_are_never_kept() {
        let mut bases = BTreeMap::new();
        let mut made = Vec::new();
        for setup in [0, 1, 0].into_iter().chain(0..3 * BASES) {
            let name = setup.to_string();
            if !bases.contains_key(&name) {
                made.push(setup);
            }
            assert_eq!(*base_of(&mut bases, name, move || Ok(setup)).unwrap(), setup);
            assert!(bases.len() <= BASES, "{}", bases.len());
        }
        assert_eq!(made, (0..3 * BASES).collect::<Vec<_>>());
        let failed = base_of(&mut bases, "bad".into(), || panic!("stuck")).unwrap_err();
        assert!(failed.to_string().contains("stuck"), "{failed}");
        assert!(!bases.contains_key("bad"));
    }

    #[test]
    fn a_state_is_looked_at_once_and_another_again() {
        let disks = Disks::new();
        let disk = disks.add("/sim/a", 1 << 20, Model::NVME);
        let mut known = Known::default();
        let mut looks = 0;
        let mut see = |disks: &Disks, promise, anew| {
            let seen = known.look(disks, promise, anew, |_| {
                looks += 1;
                Ok(looks)
            });
            (seen.map(|n| *n), known.count())
        };
        assert_eq!(see(&disks, Promise::Log, false), (Ok(1), 1));
        assert_eq!(see(&disks.fork(), Promise::Log, false), (Ok(1), 1));
        assert_eq!(see(&disks, Promise::Txg, false), (Ok(2), 2));
        disk.poke(0, &[1]);
        assert_eq!(see(&disks, Promise::Log, false), (Ok(3), 3));
        assert_eq!(see(&disks, Promise::Log, true), (Ok(4), 3));
        let failed = Known::<u8>::default().look(&disks, Promise::Log, false, |_| panic!("stuck"));
        assert!(failed.unwrap_err().contains("stuck"));
    }
}
