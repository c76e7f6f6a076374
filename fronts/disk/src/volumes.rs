//! Volumes that clients use. All clients of a volume share one, since its writers take turns in it.
//!
//! A name that is about to be another volume's, or of none, is closed first ([`Volumes::close`]): from then on no client is
//! let in under it, and a volume that was opened before, and comes later, is not taken for what has the name by then. One
//! that goes with clients that could not be ended is forgotten ([`Volumes::forget`]): what has its name next is another.

use crate::counted::{Counted, Counts};
use crate::shared::SharedVolume;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};

/// By the names of their datasets.
#[derive(Debug, Default)]
pub struct Volumes {
    state: Mutex<State>,
    /// What was asked of those that no client has at present.
    past: Mutex<BTreeMap<String, Arc<Counts>>>,
}

/// Of so many volumes without clients it is remembered what was asked of them.
const PAST_MAX: usize = 4096;

#[derive(Debug, Default)]
struct State {
    used: BTreeMap<String, Used>,
    /// How many hold each name closed, with all below it.
    closed: BTreeMap<String, usize>,
    /// How often names were closed.
    closings: u64,
    /// Of the volume that was last put among the used ones.
    last_number: u64,
}

#[derive(Debug)]
struct Used {
    /// Others may have had the name.
    number: u64,
    volume: SharedVolume,
    users: usize,
}

impl Volumes {
    fn lock(&self) -> MutexGuard<'_, State> {
        // An entry is whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn past(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Counts>>> {
        // As above.
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What clients asked of a volume lately.
    pub fn counted(&self, name: &str) -> Option<Counted> {
        let used = self.lock().used.get(name).map(|used| used.volume.counts().clone());
        used.or_else(|| self.past().get(name).cloned()).map(|counts| counts.told(world::now()))
    }

    /// The volume, if it is in use.
    pub fn get(&self, name: &str) -> Option<SharedVolume> {
        self.lock().used.get(name).map(|used| used.volume.clone())
    }

    /// To be asked before a volume is opened, for [`Volumes::hold`].
    pub fn closings(&self) -> u64 {
        self.lock().closings
    }

    /// One user more of a volume that was opened; if another client was faster, the volume that it opened is the one.
    /// `None` when names were closed since `closings` was asked: it is to be opened again, by its name.
    ///
    /// # Errors
    /// `Busy` while its name is closed.
    pub fn hold(
        self: &Arc<Self>,
        volume: SharedVolume,
        closings: u64,
    ) -> Result<Option<(SharedVolume, Held)>> {
        let name = volume.name().to_string();
        let mut state = self.lock();
        if state.closed.keys().any(|closed| is_below(&name, closed)) {
            return Err(Error::new(Kind::Busy, format!("open volume '{name}'"))
                .because("it is being destroyed, renamed or rolled back"));
        }
        if state.closings != closings {
            return Ok(None);
        }
        let State { used, last_number, .. } = &mut *state;
        let used = used.entry(name.clone()).or_insert_with(|| {
            let volume = match self.past().remove(&name) {
                Some(counts) => volume.counting_on(&counts),
                None => volume,
            };
            *last_number += 1;
            Used { number: *last_number, volume, users: 0 }
        });
        used.users += 1;
        Ok(Some((used.volume.clone(), Held { volumes: self.clone(), name, number: used.number })))
    }

    /// Nothing more is held under these names, and below them, until what comes back is dropped; what is held stays so.
    pub fn close(self: &Arc<Self>, names: &[String]) -> NamesClosed {
        let mut state = self.lock();
        state.closings += 1;
        names.iter().for_each(|name| *state.closed.entry(name.clone()).or_default() += 1);
        NamesClosed { volumes: self.clone(), names: names.to_vec() }
    }

    /// These names are others' from now on, or nobody's, whatever still uses what had them.
    pub fn forget(&self, dataset: &str) {
        self.lock().used.retain(|name, _| !is_below(name, dataset));
        self.past().retain(|name, _| !is_below(name, dataset));
    }

    fn release(&self, name: &str, number: u64) {
        let all = &mut self.lock().used;
        if let Some(used) = all.get_mut(name).filter(|used| used.number == number) {
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
        self.lock().used.keys().filter(|name| is_below(name, dataset)).cloned().collect()
    }
}

/// One client's use of a volume, until it is dropped.
pub struct Held {
    volumes: Arc<Volumes>,
    name: String,
    number: u64,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.name)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.volumes.release(&self.name, self.number);
    }
}

/// Names that are closed, until this is dropped: see [`Volumes::close`].
#[must_use]
#[derive(Debug)]
pub struct NamesClosed {
    volumes: Arc<Volumes>,
    names: Vec<String>,
}

impl Drop for NamesClosed {
    fn drop(&mut self) {
        let closed = &mut self.volumes.lock().closed;
        for name in &self.names {
            if let Some(count) = closed.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    closed.remove(name);
                }
            }
        }
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
