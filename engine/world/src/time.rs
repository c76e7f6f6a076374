//! Time: monotonic instants for measuring and waiting, wall-clock time for what people read.

use crate::Pending;
use crate::task::{current, current_if_any};
use std::future::Future;
use std::time::Duration;

/// Nanoseconds since the world began; virtual in the simulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    #[must_use]
    pub fn after(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Time since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime {
    pub seconds: u64,
    pub nanos: u32,
}

pub fn now() -> Instant {
    current(|w| w.now())
}

/// Nothing where no world is.
pub(crate) fn now_if_any() -> Option<Instant> {
    current_if_any(|w| w.now())
}

pub fn wall_clock() -> WallTime {
    current(|w| w.wall_clock())
}

pub fn sleep_until(deadline: Instant) -> Pending<()> {
    current(|w| w.sleep_until(deadline))
}

pub fn sleep(d: Duration) -> Pending<()> {
    sleep_until(now().after(d))
}

/// `work`'s result, or `None` when it took longer than `limit`; it is dropped then.
pub async fn timeout<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    use futures_util::future::{Either, select};
    let work = std::pin::pin!(work);
    match select(work, sleep(limit)).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
    }
}
