//! What an administrator may change while the program runs, under the names that OpenZFS gives it.
//!
//! ```text
//!   table    every tunable, once: name, unit, default, range, meaning, warning ─▶ Tunable
//!   system   lines of a file in the manner of /etc/system ─▶ (Tunable, value)
//!
//!   Tunables ── get ──────▶ code that needs the value now: one relaxed load
//!            ── set ──────▶ checked against the table, then every watcher is told
//!            ── watch ────▶ code that keeps something made from values: a device's queue, the write throttle, the cache
//! ```
//!
//! There is no global set of them: a [`Tunables`] is made by the program that opens pools and is handed down, so that two
//! simulated machines in one process do not change each other's.
//!
//! Invariant: a value that can be read here was within its range when it was set. Every entry of the table acts on
//! something; one that is not read does not belong in it.
//!
//! Not here: where settings are kept between runs (the appliance), and what is only true of one device.

pub mod system;
mod table;

pub use table::{Definition, Tunable, Unit};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use units::{Error, Result};

/// The values, shared by all that was opened with them.
pub struct Tunables {
    /// By [`Tunable::index`].
    values: [AtomicU64; Tunable::COUNT],
    /// Those of the table, but for what depends on the machine.
    defaults: [u64; Tunable::COUNT],
    watchers: Mutex<Vec<Weak<dyn Watcher>>>,
}

/// Keeps something made from values, and makes it anew when one has changed.
pub trait Watcher: Send + Sync {
    /// Called after every change, one at a time. Must neither wait nor set or watch tunables.
    fn retuned(self: Arc<Self>, tunables: &Tunables);
}

impl Tunables {
    /// With the defaults.
    pub fn new() -> Arc<Tunables> {
        Arc::default()
    }

    /// With the defaults, but for some that are other on this machine.
    ///
    /// # Errors
    /// A value out of the tunable's range.
    pub fn with_defaults(other: &[(Tunable, u64)]) -> Result<Arc<Tunables>> {
        let mut tunables = Tunables::default();
        for (tunable, value) in other {
            tunables.set(*tunable, *value)?;
            tunables.defaults[tunable.index()] = *value;
        }
        Ok(Arc::new(tunables))
    }

    /// What a tunable is while it was not set.
    pub fn default_of(&self, tunable: Tunable) -> u64 {
        self.defaults[tunable.index()]
    }

    pub fn get(&self, tunable: Tunable) -> u64 {
        self.values[tunable.index()].load(Ordering::Relaxed)
    }

    /// Whether a [`Unit::Switch`] is on.
    pub fn is_on(&self, tunable: Tunable) -> bool {
        self.get(tunable) != 0
    }

    /// Changes a value and tells the watchers.
    ///
    /// # Errors
    /// A value out of the tunable's range.
    pub fn set(&self, tunable: Tunable, value: u64) -> Result<()> {
        let wrong = |why| Error::invalid(format!("bad value '{value}' for {tunable}: {why}"));
        tunable.definition().check(value).map_err(wrong)?;
        let mut watchers = self.lock();
        self.values[tunable.index()].store(value, Ordering::Relaxed);
        watchers.retain(|w| w.strong_count() > 0);
        // Under the lock: the last change is told last.
        watchers.iter().filter_map(Weak::upgrade).for_each(|w| w.retuned(self));
        Ok(())
    }

    /// Tells `watcher` the values, now and whenever one has changed, as long as it lives.
    pub fn watch<W: Watcher + 'static>(&self, watcher: &Arc<W>) {
        let mut watchers = self.lock();
        let weak: Weak<W> = Arc::downgrade(watcher);
        watchers.retain(|w| w.strong_count() > 0);
        watchers.push(weak);
        watcher.clone().retuned(self);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn Watcher>>> {
        // A watcher that panics leaves the list whole.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Tunables {
    fn default() -> Tunables {
        let defaults = std::array::from_fn(|i| Tunable::ALL[i].definition().default);
        Tunables { values: defaults.map(AtomicU64::new), defaults, watchers: Mutex::default() }
    }
}

impl std::fmt::Debug for Tunables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let changed = Tunable::ALL.iter().filter(|t| self.get(**t) != self.default_of(**t));
        f.debug_map().entries(changed.map(|t| (t.name(), self.get(*t)))).finish()
    }
}

#[cfg(test)]
mod tests;
