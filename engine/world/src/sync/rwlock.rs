//! Many readers or one writer, first come, first served: a waiting writer holds back the readers behind it.
//!
//! A reader takes one permit of a [`Semaphore`] and a clone of the `Arc` in the slot; the writer takes all permits
//! and so holds the only `Arc`. A reader gives up its `Arc` before its permit.

use super::lock;
use super::semaphore::{Held, Semaphore};
use crate::stages::{Stage, stage};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// All permits together. More readers than this wait, as behind a writer.
const READERS_MAX: usize = 1 << 20;

pub struct RwLock<T> {
    turn: Semaphore,
    /// Empty while the writer has it.
    slot: std::sync::Mutex<Option<Arc<T>>>,
}

pub type ReadGuard<'a, T> = Reading<&'a RwLock<T>, T>;
pub type WriteGuard<'a, T> = Writing<&'a RwLock<T>, T>;
/// Guards that keep their lock alive.
pub type OwnedReadGuard<T> = Reading<Arc<RwLock<T>>, T>;
pub type OwnedWriteGuard<T> = Writing<Arc<RwLock<T>>, T>;

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock { turn: Semaphore::new(READERS_MAX), slot: std::sync::Mutex::new(Some(Arc::new(value))) }
    }

    pub async fn read(&self) -> ReadGuard<'_, T> {
        self.turn(1).await;
        Reading::take(self)
    }

    pub async fn read_owned(self: &Arc<Self>) -> OwnedReadGuard<T> {
        self.turn(1).await;
        Reading::take(self.clone())
    }

    pub async fn write(&self) -> WriteGuard<'_, T> {
        self.turn(READERS_MAX).await;
        Writing::take(self)
    }

    pub async fn write_owned(self: &Arc<Self>) -> OwnedWriteGuard<T> {
        self.turn(READERS_MAX).await;
        Writing::take(self.clone())
    }

    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.turn.try_acquire(1).map(Held::forget)?;
        Some(Reading::take(self))
    }

    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        self.turn.try_acquire(READERS_MAX).map(Held::forget)?;
        Some(Writing::take(self))
    }

    async fn turn(&self, permits: usize) {
        let turn = stage(Stage::Lock, self.turn.acquire(permits)).await;
        turn.expect("the lock is never closed").forget();
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.turn.available() {
            READERS_MAX => "RwLock",
            0 => "RwLock(writing)",
            _ => "RwLock(reading)",
        })
    }
}

/// The right to read.
#[must_use = "the lock is free again when this is dropped"]
pub struct Reading<L: Deref<Target = RwLock<T>>, T> {
    lock: L,
    /// Empty only while it is being dropped.
    value: Option<Arc<T>>,
}

impl<L: Deref<Target = RwLock<T>>, T> Reading<L, T> {
    fn take(rwlock: L) -> Self {
        let value = lock(&rwlock.slot).clone();
        Reading { lock: rwlock, value }
    }
}

impl<L: Deref<Target = RwLock<T>>, T> Deref for Reading<L, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("a reader's permit keeps the writer away")
    }
}

impl<L: Deref<Target = RwLock<T>>, T> Drop for Reading<L, T> {
    fn drop(&mut self) {
        self.value = None;
        self.lock.turn.release(1);
    }
}

/// The right to change.
#[must_use = "the lock is free again when this is dropped"]
pub struct Writing<L: Deref<Target = RwLock<T>>, T> {
    lock: L,
    /// Empty only while it is being dropped.
    value: Option<Arc<T>>,
}

impl<L: Deref<Target = RwLock<T>>, T> Writing<L, T> {
    fn take(rwlock: L) -> Self {
        let value = lock(&rwlock.slot).take();
        Writing { lock: rwlock, value }
    }
}

impl<L: Deref<Target = RwLock<T>>, T> Deref for Writing<L, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the writer has all permits")
    }
}

impl<L: Deref<Target = RwLock<T>>, T> DerefMut for Writing<L, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().and_then(Arc::get_mut).expect("the writer has all permits")
    }
}

impl<L: Deref<Target = RwLock<T>>, T> Drop for Writing<L, T> {
    fn drop(&mut self) {
        *lock(&self.lock.slot) = self.value.take();
        self.lock.turn.release(READERS_MAX);
    }
}

impl<L: Deref<Target = RwLock<T>>, T: fmt::Debug> fmt::Debug for Reading<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<L: Deref<Target = RwLock<T>>, T: fmt::Debug> fmt::Debug for Writing<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
