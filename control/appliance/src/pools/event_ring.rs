//! The newest events, each with a number, in memory and bounded; what they are of is said in [`super::events`].

use crate::alerts::state::Desk;
use api::Event;
use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, PoisonError};

/// As many are kept.
const EVENTS_MAX: usize = 4096;
/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
    /// Where events are made alerts of, once that has begun.
    desk: OnceLock<Desk>,
}

#[derive(Debug, Default)]
struct Ring {
    last: u64,
    kept: VecDeque<Event>,
}

impl Events {
    /// Each event that comes from now on is told there.
    pub fn watch_by(&self, desk: Desk) {
        // Begun twice, the first goes on.
        let _ = self.desk.set(desk);
    }

    pub fn post(&self, class: &str, fields: Vec<(String, String)>) {
        let now = world::wall_clock();
        self.post_at(class, fields, (now.seconds, now.nanos));
    }

    fn post_at(&self, class: &str, fields: Vec<(String, String)>, (seconds, nanos): (u64, u32)) {
        let mut ring = self.lock();
        let event = Event { id: ring.last + 1, seconds, nanos, class: class.into(), fields };
        ring.last = event.id;
        if ring.kept.len() >= EVENTS_MAX {
            ring.kept.pop_front();
        }
        ring.kept.push_back(event.clone());
        drop(ring);
        if let Some(desk) = self.desk.get() {
            desk.note(&event);
        }
    }

    /// Those that came after the one with this number, oldest first.
    pub fn since(&self, id: u64) -> Vec<Event> {
        self.lock().kept.iter().filter(|event| event.id > id).cloned().collect()
    }

    /// Forgets all; answers how many there were.
    pub fn clear(&self) -> u64 {
        let mut ring = self.lock();
        std::mem::take(&mut ring.kept).len() as u64
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        // No code that can panic runs under this lock.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_bounded_and_numbered() {
        let events = Events::default();
        for i in 0..EVENTS_MAX + 10 {
            events.post_at("c", vec![("i".into(), i.to_string())], (1, 2));
        }
        assert_eq!(events.since(0).len(), EVENTS_MAX);
        assert_eq!(events.since(0)[0].id, 11);
        let last = (EVENTS_MAX + 10) as u64;
        assert_eq!(events.since(last - 2).len(), 2);
        assert_eq!(events.clear(), EVENTS_MAX as u64);
        events.post_at("c", Vec::new(), (1, 2));
        assert_eq!(events.since(0)[0].id, last + 1, "numbers go on");
    }
}
