//! Which task sleeps until when, on one loop.

use crate::executor::with_local;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use world::Instant;

/// By deadline; the number tells sleepers with the same deadline apart, first come first.
#[derive(Default)]
pub(crate) struct Timers {
    sleeping: BTreeMap<(Instant, u64), Waker>,
    next: u64,
}

impl Timers {
    pub fn is_empty(&self) -> bool {
        self.sleeping.is_empty()
    }

    pub fn first(&self) -> Option<Instant> {
        self.sleeping.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    pub fn pop_due(&mut self, now: Instant) -> Option<Waker> {
        let entry = self.sleeping.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    fn add(&mut self, deadline: Instant, waker: Waker) -> u64 {
        self.next += 1;
        self.sleeping.insert((deadline, self.next), waker);
        self.next
    }

    pub fn clear(&mut self) -> BTreeMap<(Instant, u64), Waker> {
        std::mem::take(&mut self.sleeping)
    }
}

/// Where a sleep is registered.
struct Place {
    core: usize,
    number: u64,
}

pub(crate) struct Sleep {
    deadline: Instant,
    place: Option<Place>,
}

impl Sleep {
    pub fn until(deadline: Instant) -> Sleep {
        Sleep { deadline, place: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let outcome = with_local(|local| {
            if local.now() >= deadline {
                return Poll::Ready(());
            }
            let mut timers = local.timers.borrow_mut();
            match &self.place {
                Some(place) if place.core == local.index => {
                    timers.sleeping.insert((deadline, place.number), cx.waker().clone());
                }
                // A sleep first polled on another loop fires there too, and wakes no task that minds.
                _ => {
                    let number = timers.add(deadline, cx.waker().clone());
                    self.place = Some(Place { core: local.index, number });
                }
            }
            Poll::Pending
        });
        // No loop polls it, so a visitor does: it is polled again on a loop, which has a clock.
        outcome.unwrap_or(Poll::Pending)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return };
        let key = (self.deadline, place.number);
        // Elsewhere it stays until its time, and wakes no task that minds.
        let removed = with_local(|local| {
            (local.index == place.core).then(|| local.timers.borrow_mut().sleeping.remove(&key))
        });
        drop(removed); // a waker may own the last of its task: dropped with nothing borrowed
    }
}
