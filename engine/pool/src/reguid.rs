//! `zpool reguid`: the pool is another one from now on, so that it and a copy of its devices can be imported together.
//!
//! ```text
//!   all devices are there ─▶ txg N: the root of the tree, its sum of guids, configuration ─▶ labels even, uberblock, labels
//! odd
//!                                                                                         │
//!                        a crash: some labels name the new guid, some the former one; ◀───┘
//!                        a scan finds both to be one pool (`Candidate::former`), which has the guid of the last txg on disk
//! ```
//!
//! A device that is away would keep the former guid, and never be found to be the pool's again: so none may be. Nor may a
//! spare that left its group keep the labels of a member: with the former guid these would be another pool of the same name.

use crate::guids::Guids;
use crate::pool::Pool;
use units::{Error, Guid, Kind, Result};
use vdev::Health;
use world::Boxed;

impl Pool {
    /// A guid that the pool could have.
    pub fn draw_guid(&self) -> Guid {
        Guids::of(self).draw()
    }

    /// Gives the pool this guid. Waits until it is on disk.
    ///
    /// # Errors
    /// `Invalid` for a guid that is none, or one that is taken; `Io` while a device is not as it should be.
    pub fn reguid(&self, guid: Guid) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let _one_at_a_time = self.0.reshaping.lock().await;
            let is_taken = guid == Guid(0) || Guids::of(self).has(guid);
            if is_taken {
                return Err(Error::invalid(format!(
                    "{guid} is no guid, or one that the pool or a device of it has"
                )));
            }
            self.check_whole()?;
            // One that was pulled may not have been missed yet.
            if !self.tree().all_answer().await {
                return Err(absent());
            }
            self.load_side_devices(None).await;
            if let Some(spare) = self.give_spares_back().await.first() {
                return Err(absent().at(format!("the spare '{spare}'")));
            }
            self.change("reguid", move |pool, tx| async move {
                pool.check_whole()?;
                let former = pool.guid();
                pool.tree().update_spec(|root| root.guid = guid);
                pool.update_config(|config| config.guid = guid);
                let text = format!("old={former} new={guid}");
                pool.0.dsl.record_event(&tx, "guid change", &text, None).await
            })
            .await
        })
    }

    fn check_whole(&self) -> Result<()> {
        let tree = self.tree();
        let is_whole = tree.leaves().iter().all(|leaf| leaf.health() == Health::ONLINE);
        if is_whole && tree.health() == Health::ONLINE {
            return Ok(());
        }
        Err(absent())
    }
}

fn absent() -> Error {
    Error::new(Kind::Io, "reguid").because(
        "every device of the pool must be there and ONLINE, or those that are not could not be found again; 'zpool status' \
         says which one is not",
    )
}
