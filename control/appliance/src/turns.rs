//! Turns by name: what is done to one pool, or one volume, is done one after the other, and none waits for another's.
//!
//! ```text
//!   offline tank d1 ─▶ turn of tank ─▶ waits for a device that does not answer
//!   export tank     ─▶ turn of tank ─▶ waits for that
//!   attach lake …, zpool list, a client that connects ─▶ go on
//! ```
//!
//! The maps of pools and of volumes have locks of their own, held for a look or a note: what may wait for a device is
//! awaited under a turn, and not under these. Two turns are taken in the order of their names.
//!
//! Not here: the numbers of LUNs, which are given for all pools in one turn (`san`). A change of a LUN or a project whose
//! pool does not answer holds up those of other pools.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use world::sync::OwnedMutexGuard;

/// One that nothing holds or waits for is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<String, Weak<world::sync::Mutex<()>>>>);

/// Held while that is changed.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Waits for the turn of a name; there need be nothing that is called so.
    pub async fn of(&self, name: &str) -> Turn {
        self.named(name).lock_owned().await
    }

    /// Of two at once, whose names differ.
    pub async fn of_both(&self, one: &str, other: &str) -> [Turn; 2] {
        let (first, second) = (one.min(other), one.max(other));
        [self.of(first).await, self.of(second).await]
    }

    fn named(&self, name: &str) -> Arc<world::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(name).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(world::sync::Mutex::new(()));
        turns.insert(name.into(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::{join, select};
    use std::pin::pin;

    #[test]
    fn a_pool_waits_for_itself_and_for_no_other() {
        sim::run(1, sim::Config::default(), async {
            let turns = Turns::default();
            let held = turns.of("tank").await;
            drop(turns.of("lake").await);
            let mut second = pin!(turns.of("tank"));
            drop(select(&mut second, pin!(world::yield_now())).await);
            drop(held);
            drop(second.await);
            assert_eq!(turns.0.lock().unwrap().len(), 1);
            drop(turns.of("lake").await);
            assert_eq!(turns.0.lock().unwrap().len(), 1, "what nothing holds is forgotten");
        });
    }

    #[test]
    fn two_pools_are_taken_in_one_order() {
        sim::run(1, sim::Config::default(), async {
            let turns = Turns::default();
            for _ in 0..50 {
                let one = async {
                    let _both = turns.of_both("a", "b").await;
                    world::yield_now().await;
                };
                let other = async {
                    let _both = turns.of_both("b", "a").await;
                    world::yield_now().await;
                };
                join(one, other).await;
            }
        });
    }
}
