//! Where readers find what is counted.

use crate::io::{Event, Io, IoSnapshot};
use crate::names::{Layer, Metric};
use crate::sharded::Sharded;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use world::Instant;

/// Sees every I/O as it ends, on the thread where it ends: it must be quick and must not wait.
pub type Observer = Arc<dyn Fn(&Io, &Event) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Observers {
    /// Whether there is anybody; looked at before the lock.
    any: AtomicBool,
    all: RwLock<Vec<(u64, Observer)>>,
}

impl Observers {
    pub fn tell(&self, io: &Io, event: &Event) {
        if self.any.load(Ordering::Relaxed) {
            let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
            all.iter().for_each(|(_, observer)| observer(io, event));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<(u64, Observer)>)) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        self.any.store(!all.is_empty(), Ordering::Relaxed);
    }
}

/// All counters of one pool or daemon.
pub struct Registry {
    ios: Mutex<Vec<Weak<Io>>>,
    metrics: Sharded,
    observers: Arc<Observers>,
    next_observer: Mutex<u64>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            ios: Mutex::default(),
            metrics: Sharded::new(Metric::COUNT),
            observers: Arc::default(),
            next_observer: Mutex::new(0),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Counters for the I/O of `layer` at `place`; they leave the registry when the caller drops them.
    pub fn io(&self, layer: Layer, place: impl Into<String>) -> Arc<Io> {
        let io = Arc::new(Io::new(layer, place.into(), self.observers.clone()));
        let mut ios = lock(&self.ios);
        ios.retain(|weak| weak.strong_count() > 0);
        ios.push(Arc::downgrade(&io));
        io
    }

    pub fn count(&self, metric: Metric, n: u64) {
        self.metrics.mine().add(metric.index(), n);
    }

    pub fn metric(&self, metric: Metric) -> u64 {
        self.metrics.sum()[metric.index()]
    }

    /// Everything as it stands, in the order of registration.
    pub fn snapshot(&self) -> Snapshot {
        let ios: Vec<Arc<Io>> = lock(&self.ios).iter().filter_map(Weak::upgrade).collect();
        let entries = ios.iter().map(|io| Entry {
            layer: io.layer(),
            place: io.place().to_string(),
            counts: io.snapshot(),
        });
        Snapshot { taken: world::now(), entries: entries.collect(), metrics: self.metrics.sum() }
    }

    /// Has `observer` see every I/O until the guard is dropped.
    pub fn observe(&self, observer: Observer) -> impl Drop + use<> {
        let id = {
            let mut next = lock(&self.next_observer);
            *next += 1;
            *next
        };
        self.observers.change(|all| all.push((id, observer)));
        struct Leave(Arc<Observers>, u64);
        impl Drop for Leave {
            fn drop(&mut self) {
                self.0.change(|all| all.retain(|(id, _)| *id != self.1));
            }
        }
        Leave(self.observers.clone(), id)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({} places)", lock(&self.ios).len())
    }
}

/// One place's counts.
#[derive(Clone, Debug)]
pub struct Entry {
    pub layer: Layer,
    pub place: String,
    pub counts: IoSnapshot,
}

/// All counts at one moment, or between two.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub taken: Instant,
    pub entries: Vec<Entry>,
    metrics: Vec<u64>,
}

impl Snapshot {
    pub fn get(&self, layer: Layer, place: &str) -> Option<&IoSnapshot> {
        self.entries.iter().find(|e| e.layer == layer && e.place == place).map(|e| &e.counts)
    }

    pub fn metric(&self, metric: Metric) -> u64 {
        self.metrics[metric.index()]
    }

    /// What was counted after `earlier`. A place that is new since then counts from nothing.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let entries = self.entries.iter().map(|e| Entry {
            counts: match earlier.get(e.layer, &e.place) {
                Some(before) => e.counts.since(before),
                None => e.counts.clone(),
            },
            ..e.clone()
        });
        let metrics = self.metrics.iter().zip(&earlier.metrics).map(|(a, b)| a.saturating_sub(*b));
        Snapshot { taken: self.taken, entries: entries.collect(), metrics: metrics.collect() }
    }
}

#[cfg(test)]
mod tests;
