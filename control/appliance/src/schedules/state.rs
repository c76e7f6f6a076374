//! The task that takes snapshots, and what kept it from taking some.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::Task;
use world::sync::Event;

/// The task that takes snapshots, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    pub(super) ending: Event,
    pub(super) task: Mutex<Option<Task<()>>>,
    /// By the tags of their schedules.
    problems: Mutex<BTreeMap<String, String>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every value under these locks is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    pub fn problem(&self, tag: &str) -> Option<String> {
        lock(&self.problems).get(tag).cloned()
    }

    pub(super) fn note(&self, tag: &str, problem: Option<String>) {
        let mut all = lock(&self.problems);
        match problem {
            Some(why) => drop(all.insert(tag.into(), why)),
            None => drop(all.remove(tag)),
        }
    }
}
