//! `zpool add`: new top-level vdevs in a pool that is in use.
//!
//! ```text
//!   open the devices ─▶ txg N: fresh labels, metaslab arrays, ZAPs, configuration ─▶ N is on disk ─▶ blocks may go there
//!                                          │ a crash before N is committed:                      │ a crash after:
//!                                          └ labels of txg 0: no import takes them for a pool's  └ the pool has them
//! ```
//!
//! No block is put on a new vdev before the configuration that names it is on disk: log blocks are written outside of
//! txgs, and a pool that comes up without knowing the vdev could not find them.
//!
//! Vdevs are added and removed one change at a time ([`Inner::reshaping`](crate::pool::Inner)), since each change counts
//! on the numbers that the vdevs have.

use crate::create::{make_metaslab_array, unusable};
use crate::guids::Guids;
use crate::parts::{min_alloc, space_spec, worst};
use crate::pool::Pool;
use crate::vdev_zaps;
use dmu::Tx;
use ondisk::Feature;
use units::{Error, Result, Txg};
use vdev::{Bias, Group, NewTops, Spec};
use world::Boxed;
use zio::Rules;

impl Pool {
    /// Adds vdevs made of these devices. `ashift` is the one asked for, 0 for "as the devices say".
    pub fn add_vdevs<'a>(&'a self, groups: &'a [Group], ashift: u32) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let inner = &self.0;
            let _one_at_a_time = inner.reshaping.lock().await;
            self.check_classes(groups)?;
            let first = inner.tree.spec().children.len() as u64;
            let mut guids = Guids::of(self);
            let specs = Spec::create_tops(groups, first, ashift, Txg::NONE, || guids.draw())?;
            let new = inner.tree.open_new(specs).await?;
            if let Some(leaf) = new.tops.iter().flat_map(|t| t.leaves()).find(|l| !l.is_usable()) {
                return Err(unusable(&leaf));
            }
            let joined: Vec<_> = new.tops.iter().cloned().zip(new.specs.iter().map(|s| s.bias)).collect();
            self.change("add vdevs", move |pool, tx| async move { pool.join(&tx, new).await }).await?;
            for (top, bias) in joined {
                top.set_bias(bias);
                inner.space.add_vdev(space_spec(&top, bias)).await?;
            }
            let rules = inner.pipeline.rules();
            inner.pipeline.set_rules(Rules {
                min_alloc: min_alloc(&inner.tree),
                worst: worst(&inner.tree),
                ..rules
            });
            self.remember_freed();
            inner.space.preload().await;
            inner.publish_space();
            Ok(())
        })
    }

    fn check_classes(&self, groups: &[Group]) -> Result<()> {
        let needs_feature = groups.iter().any(|g| matches!(g.bias, Bias::Special | Bias::Dedup));
        if needs_feature && !self.0.dsl.features().is_enabled(Feature::AllocationClasses) {
            return Err(Error::invalid(
                "special and dedup vdevs need a feature of the pool: zpool set feature@allocation_classes=enabled",
            ));
        }
        Ok(())
    }

    async fn join(&self, tx: &Tx, mut new: NewTops) -> Result<()> {
        let inner = &self.0;
        for spec in &mut new.specs {
            set_create_txg(spec, tx.txg());
        }
        inner.tree.label_added(&new, &inner.config_at(tx.txg()), tx.txg()).await?;
        for (spec, top) in new.specs.iter_mut().zip(&new.tops) {
            spec.metaslab_array = Some(make_metaslab_array(top, &inner.mos, tx).await?.0);
        }
        vdev_zaps::add_all(inner.dsl.core(), tx, &mut new.specs).await?;
        let names: Vec<String> = new.specs.iter().map(Spec::name).collect();
        inner.tree.adopt(new);
        self.update_config(|_| ());
        inner.dsl.record_event(tx, "vdev add", &names.join(" "), None).await
    }
}

fn set_create_txg(spec: &mut Spec, txg: Txg) {
    spec.create_txg = Some(txg.0);
    spec.children.iter_mut().for_each(|child| set_create_txg(child, txg));
}
