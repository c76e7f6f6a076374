//! The latest value of something, and waiting for it to change. Values in between may be missed.

use super::{Notify, lock};
use std::fmt;
use std::sync::Mutex;

struct Current<T> {
    value: T,
    version: u64,
}

pub struct Watch<T> {
    current: Mutex<Current<T>>,
    notify: Notify,
}

impl<T> Watch<T> {
    pub fn new(value: T) -> Watch<T> {
        Watch { current: Mutex::new(Current { value, version: 0 }), notify: Notify::new() }
    }

    pub fn set(&self, value: T) {
        self.update(|v| *v = value);
    }

    /// Changes the value in place and wakes all watchers. `change` runs under a lock: it must be short.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = {
            let mut current = lock(&self.current);
            current.version += 1;
            change(&mut current.value)
        };
        self.notify.notify_all();
        result
    }

    /// Looks at the value. `look` runs under a lock: it must be short.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&lock(&self.current).value)
    }

    /// Counts the changes so far; for [`Watch::changed`].
    pub fn version(&self) -> u64 {
        lock(&self.current).version
    }

    /// Waits until the value has changed since `version`; returns the version then.
    pub async fn changed(&self, version: u64) -> u64 {
        self.notify.until(|| Some(self.version()).filter(|&v| v != version)).await
    }

    /// Waits until `found` finds what it looks for in the value.
    pub async fn until<R>(&self, mut found: impl FnMut(&T) -> Option<R>) -> R {
        self.notify.until(|| self.with(&mut found)).await
    }
}

impl<T: Clone> Watch<T> {
    pub fn get(&self) -> T {
        self.with(T::clone)
    }

    /// Waits until the value satisfies `wanted`, and returns it.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&T) -> bool) -> T {
        self.until(|v| wanted(v).then(|| v.clone())).await
    }
}

impl<T: fmt::Debug> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|v| v.fmt(f))
    }
}
