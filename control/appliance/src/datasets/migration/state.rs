//! The migrations that are under way, and how the last of each volume ended.

use crate::error_text::{About, why};
use crate::turns::Turns;
use disk::Mirror;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result, pretty_size};
use world::sync::Event;

/// On a half copy: the guid of what it is a copy of.
pub(crate) const COPY_OF: &str = "cenote:copyof";

/// By the names of the volumes; what has ended is kept until there is something newer to say.
#[derive(Debug, Default)]
pub(crate) struct Migrations {
    pub(super) all: Mutex<BTreeMap<String, Arc<Migration>>>,
    /// By pool, held while one begins.
    pub(super) turns: Turns,
}

#[derive(Debug)]
pub(crate) struct Migration {
    /// The dataset that becomes the copy.
    pub(super) copy: String,
    /// Block sizes.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) size: u64,
    pub(super) copied: AtomicU64,
    pub(super) cancelled: AtomicBool,
    pub(super) ended: Event,
    /// What there is to say after the end.
    pub(super) outcome: Mutex<Option<String>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Migrations {
    pub(super) fn running(&self, dataset: &str) -> Option<Arc<Migration>> {
        lock(&self.all).get(dataset).filter(|m| !m.ended.is_set()).cloned()
    }

    /// How far it has come, or why it did not.
    pub fn text(&self, dataset: &str) -> Option<String> {
        lock(&self.all).get(dataset)?.text()
    }

    pub(super) fn below(&self, datasets: impl Fn(&str) -> bool) -> Vec<Arc<Migration>> {
        let all = lock(&self.all);
        all.iter().filter(|(name, m)| datasets(name) && !m.ended.is_set()).map(|(_, m)| m.clone()).collect()
    }

    /// Ends those of these volumes, and waits until they have ended.
    pub async fn cancel(&self, datasets: impl Fn(&str) -> bool) {
        let ended = self.below(datasets);
        ended.iter().for_each(|migration| migration.cancelled.store(true, Ordering::Release));
        for migration in ended {
            migration.ended.wait().await;
        }
    }
}

impl Migration {
    fn text(&self) -> Option<String> {
        let to = pretty_size(self.to);
        if self.ended.is_set() {
            return lock(&self.outcome).as_ref().map(|outcome| format!("to {to}: {outcome}"));
        }
        let percent = self.copied.load(Ordering::Relaxed).saturating_mul(100) / self.size.max(1);
        Some(format!("to {to}: {percent}%"))
    }

    pub(super) fn end(&self, outcome: Result<Option<String>>) {
        *lock(&self.outcome) = match outcome {
            Ok(note) => note,
            Err(e) => Some(format!("given up: {}", why(About::Dataset, &e))),
        };
        self.ended.set();
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.cancelled.load(Ordering::Acquire) {
            true => Err(Error::new(Kind::Cancelled, "copy volume").because("it was cancelled")),
            false => Ok(()),
        }
    }

    pub(super) async fn copy(&self, mirror: &Mirror) -> Result<()> {
        loop {
            self.check()?;
            let more = mirror.advance().await?;
            self.copied.store(mirror.copied(), Ordering::Relaxed);
            if !more {
                return Ok(());
            }
        }
    }
}
