//! The pools that there are, by name, and what is open of each.

use crate::error_text::no_such_pool;
use crate::home::{Known, LeftOut};
use crate::pools::seen::Seen;
use crate::shares::LunIndex;
use api::{ApiError, ErrorKind};
use pool::Pool;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Guid;
use vdev::label::read::Owner;
use world::sync::Event;
use world::{Instant, Task};

/// What a request will do with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Look,
    Change,
}

/// A pool that is open.
#[derive(Clone)]
pub(crate) struct Open {
    pub pool: Pool,
    pub known: Known,
    pub since: Instant,
    pub luns: Arc<LunIndex>,
    /// Opened read-only though it need not be: there were only questions.
    pub(super) only_looking: bool,
}

#[derive(Clone)]
pub(super) enum State {
    Closed,
    /// It is being exported, destroyed or closed: it is here until that has ended, and no request gets it.
    Leaving,
    Open(Open),
    Failed(Box<Failed>),
}

/// Why a pool could not be opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failed {
    /// In a few words.
    pub why: String,
    /// One line for each device that it would need.
    pub unusable: Vec<String>,
    /// What its devices say of its vdevs.
    pub vdevs: Option<api::Vdev>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub known: Known,
    pub state: State,
}

/// By name. A copy shows what there was when it was made.
#[derive(Clone, Default)]
pub(crate) struct Pools(pub(super) BTreeMap<String, Entry>);

impl Pools {
    /// What is remembered; for a new daemon without what was only passing.
    pub fn of(remembered: Vec<Known>, is_daemon: bool) -> Pools {
        let kept = remembered.into_iter().filter(|known| !(is_daemon && known.passing));
        Pools(kept.map(|known| (known.name.clone(), Entry { known, state: State::Closed })).collect())
    }

    /// Those that requests for all pools are for.
    pub fn names(&self) -> Vec<String> {
        let here = self.0.iter().filter(|(_, entry)| !matches!(entry.state, State::Leaving));
        here.map(|(name, _)| name.clone()).collect()
    }

    /// Where the devices of all of them are, or were.
    pub fn devices(&self) -> Vec<PathBuf> {
        self.0.values().flat_map(|entry| &entry.known.devices).map(PathBuf::from).collect()
    }

    /// The pool, if it is open for that.
    pub fn ready(&self, name: &str, access: Access) -> api::Result<Option<Open>> {
        let entry = self.0.get(name).ok_or_else(|| no_such_pool(name))?;
        match &entry.state {
            State::Open(open) if !open.only_looking || access == Access::Look => Ok(Some(open.clone())),
            State::Leaving => {
                let message = format!(
                    "cannot open '{name}': it is being exported or destroyed, which waits for its devices"
                );
                Err(ApiError::new(ErrorKind::Busy, message))
            }
            State::Open(_) | State::Closed | State::Failed(_) => Ok(None),
        }
    }

    /// What is known of a pool that is about to be opened. What was opened for questions has its devices closed before they
    /// are opened for writing.
    pub fn begin_to_open(&mut self, name: &str) -> api::Result<Known> {
        let entry = self.0.get_mut(name).ok_or_else(|| no_such_pool(name))?;
        entry.state = State::Closed;
        Ok(entry.known.clone())
    }

    /// Notes how that ended; false when the pool was given up meanwhile.
    pub fn end_to_open(&mut self, name: &str, outcome: Result<&Open, Failed>) -> bool {
        let Some(entry) = self.0.get_mut(name).filter(|entry| matches!(entry.state, State::Closed)) else {
            return false;
        };
        match outcome {
            Ok(open) => {
                // What was noted of its LUNs meanwhile stays.
                let Known { away, left_out, .. } = std::mem::take(&mut entry.known);
                let known = Known { away, left_out, ..open.known.clone() };
                entry.known = known.clone();
                entry.state = State::Open(Open { known, ..open.clone() });
            }
            Err(failed) => entry.state = State::Failed(Box::new(failed)),
        }
        true
    }

    /// The pool is about to be closed: no request gets it from now on.
    pub fn begin_to_leave(&mut self, name: &str) -> Option<Pool> {
        let entry = self.0.get_mut(name)?;
        match std::mem::replace(&mut entry.state, State::Leaving) {
            State::Open(open) => Some(open.pool),
            other => {
                entry.state = other;
                None
            }
        }
    }

    /// Whether it is just being exported or destroyed.
    pub fn is_leaving(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|entry| matches!(entry.state, State::Leaving))
    }

    /// Forgets a pool that is not open; whether it was one.
    pub fn remove_closed(&mut self, name: &str) -> bool {
        let is_closed = self.0.get(name).is_some_and(|e| matches!(e.state, State::Closed | State::Failed(_)));
        if is_closed {
            self.0.remove(name);
        }
        is_closed
    }

    /// It is closed, and stays imported.
    pub fn is_closed(&mut self, name: &str) {
        if let Some(entry) = self.0.get_mut(name) {
            entry.state = State::Closed;
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn has_guid(&self, guid: u64) -> bool {
        self.0.values().any(|entry| entry.known.guid == guid)
    }

    /// The pool here with this guid.
    pub fn name_of(&self, guid: Option<Guid>) -> Option<String> {
        let named = |(_, entry): &(&String, &Entry)| Some(Guid(entry.known.guid)) == guid;
        self.0.iter().find(named).map(|(name, _)| name.clone())
    }

    /// Whether the device with this label belongs to a pool here. The configuration of an open pool decides: a device
    /// that was removed keeps its label when its wiping was cut short. Of a pool that is not open, all that name it do.
    pub fn has_device(&self, owner: &Owner) -> bool {
        self.0.values().filter(|entry| Some(Guid(entry.known.guid)) == owner.pool).any(|entry| {
            match &entry.state {
                State::Open(open) => open.pool.tree().spec().walk().any(|vdev| vdev.guid == owner.leaf),
                _ => true,
            }
        })
    }

    /// Waits for devices that are just leaving their pools ([`Pool::devices_have_left`]).
    pub async fn devices_have_left(&self) {
        for pool in self.opened() {
            pool.devices_have_left().await;
        }
    }

    /// Those that are open now.
    pub fn opened(&self) -> impl Iterator<Item = &Pool> {
        self.0.values().filter_map(|entry| match &entry.state {
            State::Open(open) => Some(&open.pool),
            _ => None,
        })
    }

    pub fn are_all_open(&self) -> bool {
        self.opened().count() == self.0.len()
    }

    /// The pool has other devices than before.
    pub fn note_devices(&mut self, name: &str) {
        if let Some(entry) = self.0.get_mut(name)
            && let State::Open(open) = &mut entry.state
        {
            open.known.devices = devices_of(&open.pool);
            entry.known = open.known.clone();
        }
    }

    /// Whether it is forgotten by the next start.
    pub fn set_passing(&mut self, name: &str, passing: bool) {
        if let Some(entry) = self.0.get_mut(name) {
            entry.known.passing = passing;
            if let State::Open(open) = &mut entry.state {
                open.known.passing = passing;
            }
        }
    }

    /// The pool may have this guid soon.
    pub fn expect_guid(&mut self, name: &str, guid: Option<u64>) {
        if let Some(entry) = self.0.get_mut(name) {
            entry.known.next_guid = guid;
        }
    }

    /// The pool has the guid that it has.
    pub fn note_guid(&mut self, name: &str) {
        if let Some(entry) = self.0.get_mut(name)
            && let State::Open(open) = &mut entry.state
        {
            open.known.guid = open.pool.guid().0;
            entry.known = open.known.clone();
        }
    }

    /// Which of its LUNs are not served, and whether they could be read at all; whether that is new.
    pub fn note_luns(&mut self, name: &str, away: bool, left_out: BTreeMap<String, LeftOut>) -> bool {
        let Some(entry) = self.0.get_mut(name) else { return false };
        if entry.known.away == away && entry.known.left_out == left_out {
            return false;
        }
        (entry.known.away, entry.known.left_out) = (away, left_out);
        if let State::Open(open) = &mut entry.state {
            open.known = entry.known.clone();
        }
        true
    }

    pub fn known(&self) -> Vec<Known> {
        self.0.values().map(|entry| entry.known.clone()).collect()
    }

    /// Of a pool that comes: it is the last that came.
    pub fn add(&mut self, mut open: Open) {
        open.known.order = self.0.values().map(|entry| entry.known.order).max().unwrap_or(0) + 1;
        self.0.insert(open.known.name.clone(), Entry { known: open.known.clone(), state: State::Open(open) });
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl Open {
    pub fn new(pool: Pool, known: Known, only_looking: bool) -> Open {
        if !pool.is_read_only() {
            watch(&pool);
        }
        Open { pool, known, since: world::now(), luns: Arc::default(), only_looking }
    }
}

/// Where the devices of an open pool are, to find them again.
pub(crate) fn devices_of(pool: &Pool) -> Vec<String> {
    let tree = pool.tree();
    let leaves = tree.leaves().into_iter().map(|l| l.device().path.to_string_lossy().into_owned());
    let mut devices: Vec<String> = leaves.collect();
    let status = tree.status();
    devices.extend(status.spares.iter().chain(&status.caches).filter_map(|v| v.path.clone()));
    devices.sort();
    devices.dedup();
    devices
}

/// The task that looks at pools and logs what happens to them.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub ending: Event,
    pub(super) task: Mutex<Option<Task<()>>>,
    seen: Mutex<Seen>,
}

impl Watch {
    /// What was seen of the pools so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        // What is noted half is noted as a whole the next time.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes into the log when a pool is suspended, fails or goes on, until it is closed.
fn watch(pool: &Pool) {
    let pool = pool.clone();
    world::spawn(async move {
        let mut seen = None;
        while let Some(now) = pool.suspended_otherwise(&seen).await {
            let name = pool.name();
            // One that is cleared goes on when its devices have taken what waited for them, and not before.
            if now.is_none() && pool.settled().await.is_err() {
                continue;
            }
            match &now {
                Some(why) => tracing::error!(pool = name, "nothing is written any more: {why}"),
                None => tracing::warn!(pool = name, "the pool goes on"),
            }
            seen = now;
        }
    });
}
