//! The first state of a pool's MOS: what `zpool create` writes before anything else.
//!
//! ```text
//!   object directory (1)
//!     root_dataset ─▶ directory of the pool ── $MOS           charged for the MOS itself
//!                        │                  ── $FREE          charged for what waits to be freed
//!                        │                  ── $ORIGIN ─ head ─ snapshot $ORIGIN, empty: what everything descends from
//!                        └ head: the pool's own file system
//!     free_bpobj  sync_bplist  features_for_read  features_for_write  feature_descriptions  feature_enabled_txg
//!     history  creation_version  deflate  org.illumos:checksum_salt
//! ```
//!
//! Not here: what the pool keeps there besides (the configuration, space maps, its properties).

use std::sync::Arc;

use dmu::{ObjSet, Tx};
use ondisk::mos::{OBJECT_DIRECTORY, directory};
use ondisk::{Feature, ObjectType, ObjsetType};
use units::Result;

use crate::bpobj::Bpobj;
use crate::core::{Core, versions};
use crate::dsl::dataset::Dataset;
use crate::dsl::{Dsl, FREE_DIR, MOS_DIR, ORIGIN_DIR};
use crate::features::Features;
use crate::props::{PropName, Value};
use crate::space::PoolSpace;
use crate::zaps;

/// What a new pool is to be.
#[derive(Clone, Debug)]
pub struct NewPool<'a> {
    pub name: &'a str,
    pub host: &'a str,
    /// 5000 for a pool with features.
    pub version: u64,
    pub features: &'a [Feature],
    pub space: PoolSpace,
    /// Properties of the pool's own file system, checked already.
    pub props: &'a [(PropName, Value)],
}

/// Deferred frees are appended while the MOS syncs: their blocks are small, and keep their size.
const DEFERRED_BLOCK: u32 = 16 << 10;

impl Dsl {
    /// Writes the first state into a new MOS. The pool's own file system is open, empty and dirty: the caller fills it
    /// in the same txg.
    pub async fn create_initial(mos: ObjSet, tx: &Tx, new: &NewPool<'_>) -> Result<(Dsl, Arc<Dataset>)> {
        let directory = zaps::claim(&mos, tx, OBJECT_DIRECTORY, ObjectType::OBJECT_DIRECTORY)?;
        let now = world::wall_clock().seconds;
        // No feature is known yet, so that what is made now is made as every program reads it.
        let bare = Core::assemble(mos.clone(), new.version, Features::default(), directory.clone(), None);
        let root = bare.make_dir(tx, None, now).await?;
        bare.make_dir(tx, Some((root, MOS_DIR)), now).await?;
        if new.version >= versions::DEADLISTS {
            bare.make_dir(tx, Some((root, FREE_DIR)), now).await?;
            let list = Bpobj::create(&bare, tx, 128 << 10).await?;
            directory.insert(tx, directory::FREE_BPOBJ, list.id().0).await?;
        }
        let mut origin = None;
        if new.version >= versions::ORIGIN {
            let dir = bare.make_dir(tx, Some((root, ORIGIN_DIR)), now).await?;
            let head = bare.make_head(tx, dir, None, now).await?;
            origin = Some(bare.make_snapshot(tx, head, ORIGIN_DIR, now).await?);
        }
        let features = match new.version >= versions::FEATURES {
            true => Features::create(&mos, &directory, tx).await?,
            false => Features::default(),
        };
        let head = bare.make_head(tx, root, origin, now).await?;
        let core = Core::assemble(mos, new.version, features, directory, None);
        let dsl = Dsl::assemble(core, root, new.name, new.host).await?;
        dsl.set_pool_space(new.space);
        dsl.add_pool_objects(tx, new).await?;
        for (prop, value) in new.props {
            dsl.store_setting(tx, root, prop, value).await?;
        }
        let dataset = dsl.empty_objset(tx, head, ObjsetType::Zfs).await?;
        Ok((dsl, dataset))
    }

    async fn add_pool_objects(&self, tx: &Tx, new: &NewPool<'_>) -> Result<()> {
        let (mos, directory) = (self.core.mos(), self.core.directory());
        directory.insert(tx, directory::CREATION_VERSION, new.version).await?;
        directory.insert(tx, directory::DEFLATE, 1u64).await?;
        let deferred = Bpobj::create(&self.core, tx, DEFERRED_BLOCK).await?;
        directory.insert(tx, directory::SYNC_BPOBJ, deferred.id().0).await?;
        for feature in new.features {
            self.features().enable(mos, directory, tx, *feature).await?;
        }
        let salt: Vec<u8> = (0..4).flat_map(|_| world::random_u64().to_ne_bytes()).collect();
        directory.insert(tx, directory::CHECKSUM_SALT, &salt[..]).await
    }

    /// Enables a feature in an open pool.
    pub async fn enable_feature(&self, tx: &Tx, feature: Feature) -> Result<()> {
        self.features().enable(self.core.mos(), self.core.directory(), tx, feature).await
    }
}
