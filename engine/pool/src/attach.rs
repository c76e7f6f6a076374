//! `zpool attach` and `zpool replace`: a device joins a mirror, or takes another one's place.
//!
//! ```text
//!   open the device ─▶ txg N: fresh labels, ZAP, it joins its group and misses all up to N + 2; configuration, map of
//!                      what it misses ─▶ N is on disk ─▶ txgs pass until N + 2 is ─▶ resilver ─▶ the old one leaves
//! ```
//!
//! From N on the device gets every write. What was under way when it joined, the log's blocks of the next two txgs
//! included, may have gone past it, and counts as missed. A scan or a rebuild under way may have given something to a device
//! of the same guid, a spare that left since: that does not count any more. A crash before N is on disk leaves a device with
//! labels of txg 0, which is not taken for the pool's; after it, the pool goes on with the resilver when it is opened.
//!
//! Which device leaves when the resilver is done: [`crate::detach`].

use crate::guids::Guids;
use crate::pool::Pool;
use crate::vdev_zaps;
use dmu::Tx;
use ondisk::mos::vdev::REBUILD_TXG;
use std::sync::Arc;
use units::{Error, Guid, Kind, Result, VdevId};
use vdev::{AuxKind, Leaf, NewLeaf, Spec, geometry};
use world::Boxed;

impl Pool {
    /// Lets a device join the device `old`: as another side of a mirror, or, with `replaces`, to take its place. `ashift` is
    /// the one asked for, 0 for "as the device says". Returns when the device has joined; the resilver goes on.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when nothing can join there or the device does not fit; the pool is as it was then.
    pub fn attach(&self, old: Guid, new: NewLeaf, replaces: bool, ashift: u32) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let pool = self.clone();
            // Goes on when the caller does not wait for it any more.
            world::spawn(async move { pool.attach_now(old, new, (replaces, false), ashift).await }).await
        })
    }

    /// As [`Pool::attach`], and the device is copied to in the order of the disk ([`crate::rebuild`]).
    ///
    /// # Errors
    /// Also `Invalid` when the vdev is no mirror or the pool lacks the feature, `Busy` while a resilver is under way.
    pub fn attach_sequentially(
        &self,
        old: Guid,
        new: NewLeaf,
        replaces: bool,
        ashift: u32,
    ) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let pool = self.clone();
            world::spawn(async move { pool.attach_now(old, new, (replaces, true), ashift).await }).await
        })
    }

    async fn attach_now(
        &self,
        old: Guid,
        new: NewLeaf,
        (replaces, is_sequential): (bool, bool),
        ashift: u32,
    ) -> Result<()> {
        {
            let _one_at_a_time = self.0.reshaping.lock().await;
            let spare = self.spare_at(&new.path);
            let spec = spare.unwrap_or_else(|| Spec::leaf_of(&new, Guids::of(self).draw()));
            self.check_joins(old, &new, ashift)?;
            match is_sequential {
                true => self.check_rebuild(old)?,
                false => self.check_no_rebuild()?,
            }
            let rebuilt = self.join_group(old, spec, (replaces, is_sequential)).await?;
            if let Some(vdev) = rebuilt {
                self.launch_rebuild(vdev);
                return Ok(());
            }
        }
        self.request_resilver().await;
        Ok(())
    }

    /// A spare takes the place of a device that is not there any more.
    pub(crate) async fn spare_in(&self, old: Guid, spare: Spec) -> Result<()> {
        {
            let _one_at_a_time = self.0.reshaping.lock().await;
            // Since it was found to be wanted, another device may have begun to take the place.
            if !self.wants_spare(&self.tree().spec(), old) {
                return Ok(());
            }
            self.join_group(old, spare, (true, false)).await?;
        }
        self.request_resilver().await;
        Ok(())
    }

    /// The spare of this pool that is there and not in use.
    fn spare_at(&self, path: &str) -> Option<Spec> {
        let tree = self.tree();
        let spares = tree.aux(AuxKind::Spare).into_iter().map(|d| d.spec);
        spares.into_iter().find(|s| s.path.as_deref() == Some(path) && tree.find_leaf(s.guid).is_none())
    }

    /// It is large enough, and its sectors are not larger than those of the vdev.
    fn check_joins(&self, old: Guid, new: &NewLeaf, ashift: u32) -> Result<()> {
        let top = self.tree().top_of(old).ok_or_else(no_such)?;
        let (logical, physical) = new.ashifts();
        let chosen = geometry::choose_ashift(ashift, logical, physical)?;
        if logical > top.ashift || chosen > top.ashift {
            let hint = match logical > top.ashift {
                true => String::new(),
                false => format!(
                    " Its own sectors are smaller: '-o ashift={}' attaches it all the same.",
                    top.ashift
                ),
            };
            return Err(Error::invalid(format!(
                "The new device cannot have a higher alignment requirement than the top-level vdev.{hint}"
            )));
        }
        Ok(())
    }

    /// Answers the vdev that is to be rebuilt, if that was asked for.
    async fn join_group(
        &self,
        old: Guid,
        spec: Spec,
        (replaces, is_sequential): (bool, bool),
    ) -> Result<Option<VdevId>> {
        let inner = &self.0;
        let mut guids = Guids::of(self);
        guids.take(spec.guid);
        let group = guids.draw();
        let top = inner.tree.top_of(old).ok_or_else(no_such)?;
        // Refused before the device is touched.
        inner.tree.spec().attach(old, spec.clone(), replaces, group)?;
        let leaf = inner.tree.open_joining(&top, &spec).await?;
        let joining = leaf.clone();
        let joined = self
            .change("attach", move |pool, tx| async move {
                pool.join_in(&tx, old, spec, (replaces, is_sequential), group, &joining).await
            })
            .await;
        match joined {
            Ok(_) => self.trust_caches(),
            // Only when it did not become part of the tree; a pool that was suspended meanwhile has it.
            Err(_) if inner.tree.find_leaf(leaf.guid()).is_none() => leaf.take_out(leaf.health()).await,
            Err(_) => {}
        }
        joined
    }

    async fn join_in(
        &self,
        tx: &Tx,
        old: Guid,
        new: Spec,
        (replaces, is_sequential): (bool, bool),
        group: Guid,
        leaf: &Arc<Leaf>,
    ) -> Result<Option<VdevId>> {
        let inner = &self.0;
        let mut spec = inner.tree.spec();
        let (guid, is_spare) = (new.guid, new.is_spare());
        let name_of =
            |spec: &Spec, guid| spec.find(guid).and_then(|s| s.path.clone()).unwrap_or_else(|| "none".into());
        spec.attach(old, new, replaces, group)?;
        leaf.has_nothing(tx.txg());
        self.withdraw_from_scan(tx, guid).await?;
        if let Some(top) = inner.tree.top_of(old) {
            self.withdraw_from_rebuild(tx, &top, guid).await?;
        }
        inner.tree.label_joining(leaf, &spec, &inner.config_at(tx.txg()), tx.txg()).await?;
        let core = inner.dsl.core();
        if let Some(joined) = spec.find_mut(guid) {
            joined.leaf_zap = vdev_zaps::add_leaf(core, tx).await?;
            if is_sequential {
                joined.other.set(REBUILD_TXG, tx.txg().0);
            }
        }
        let (new_name, old_name) = (name_of(&spec, guid), name_of(&spec, old));
        inner.tree.reshape(spec, &[], std::slice::from_ref(leaf))?;
        self.update_config(|_| ());
        let (how, to) = match (replaces, is_spare) {
            (true, true) => ("spare in", "for"),
            (true, false) => ("replace", "for"),
            (false, _) => ("attach", "to"),
        };
        let text = format!("{how} vdev={new_name} {to} vdev={old_name}");
        inner.dsl.record_event(tx, "vdev attach", &text, None).await?;
        match is_sequential {
            true => self.record_rebuild(tx, guid).await.map(Some),
            false => Ok(None),
        }
    }
}

pub(crate) fn no_such() -> Error {
    Error::new(Kind::NotFound, "find device").because("no such device in pool")
}
