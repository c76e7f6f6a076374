//! A lock that may be held across an await, first come, first served.
//!
//! One permit of a [`Semaphore`] is the right to take the value out of its slot; the guard holds the value itself
//! and puts it back. That needs no `unsafe`, and a guard is `Send` whenever its value is. For a few instructions
//! without an await, `std::sync::Mutex` is cheaper.

use super::lock;
use super::semaphore::{Held, Semaphore};
use crate::stages::{Stage, stage};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub struct Mutex<T> {
    turn: Semaphore,
    /// Empty while a guard has it. Boxed, so that moving it is moving a pointer.
    slot: std::sync::Mutex<Option<Box<T>>>,
}

pub type MutexGuard<'a, T> = Guard<&'a Mutex<T>, T>;
/// A guard that keeps its mutex alive.
pub type OwnedMutexGuard<T> = Guard<Arc<Mutex<T>>, T>;

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex { turn: Semaphore::new(1), slot: std::sync::Mutex::new(Some(Box::new(value))) }
    }

    pub async fn lock(&self) -> MutexGuard<'_, T> {
        self.turn().await;
        Guard::take(self)
    }

    pub async fn lock_owned(self: &Arc<Self>) -> OwnedMutexGuard<T> {
        self.turn().await;
        Guard::take(self.clone())
    }

    async fn turn(&self) {
        let turn = stage(Stage::Lock, self.turn.acquire(1)).await;
        turn.expect("a mutex is never closed").forget();
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.turn.try_acquire(1).map(Held::forget)?;
        Some(Guard::take(self))
    }

    pub fn into_inner(self) -> T {
        let slot = self.slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        *slot.expect("no guard outlives its mutex")
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.turn.available() == 0 { "Mutex(locked)" } else { "Mutex" })
    }
}

/// The right to the value; the next in the queue gets it when this is dropped.
#[must_use = "the mutex is free again when this is dropped"]
pub struct Guard<M: Deref<Target = Mutex<T>>, T> {
    mutex: M,
    /// Empty only while it is being dropped.
    value: Option<Box<T>>,
}

impl<M: Deref<Target = Mutex<T>>, T> Guard<M, T> {
    fn take(mutex: M) -> Self {
        let value = lock(&mutex.slot).take();
        Guard { mutex, value }
    }
}

impl<M: Deref<Target = Mutex<T>>, T> Deref for Guard<M, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("one permit, one value")
    }
}

impl<M: Deref<Target = Mutex<T>>, T> DerefMut for Guard<M, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("one permit, one value")
    }
}

impl<M: Deref<Target = Mutex<T>>, T> Drop for Guard<M, T> {
    fn drop(&mut self) {
        *lock(&self.mutex.slot) = self.value.take();
        self.mutex.turn.release(1);
    }
}

impl<M: Deref<Target = Mutex<T>>, T: fmt::Debug> fmt::Debug for Guard<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
