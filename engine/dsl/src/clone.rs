//! Clones: datasets that begin as a snapshot.
//!
//! ```text
//!   origin ── next_clones ─▶ { clone, … }        of a clone that has snapshots, its oldest one
//!     │  ▲
//!     │  └── origin ── directory of the clone ── head
//!     └─ its directory ── clones ─▶ { heads of all clones of this directory's snapshots }
//! ```
//!
//! The clone's root pointer is the snapshot's; every block that it overwrites goes on its deadlist, for the snapshot
//! has it.

use dmu::Tx;
use ondisk::{ObjsetType, ZilHeader};
use units::{Error, Kind, ObjectId, Result};
use world::Boxed;

use crate::core::versions;
use crate::counts;
use crate::create::CREATED;
use crate::dsl::Dsl;
use crate::name;
use crate::props::{PropName, Value};
use crate::space::Reach;
use crate::tree::Found;

/// What is to be cloned.
#[derive(Clone, Debug)]
pub struct NewClone<'a> {
    pub origin: &'a str,
    pub name: &'a str,
    /// Properties to be set on it, checked already ([`crate::props::parse_setting`]).
    pub props: &'a [(PropName, Value)],
}

impl Dsl {
    /// Checks all that can be checked of a clone before there is a txg for it; answers its origin.
    pub fn check_clone<'a>(&'a self, new: &'a NewClone<'a>) -> Boxed<'a, Result<Found>> {
        Box::pin(async move {
            name::check_dataset(new.name)?;
            let doing = || format!("create dataset '{}'", new.name);
            let origin = self.find_snapshot(new.origin).await?;
            if self.find_dir(new.name).await.is_ok() {
                return Err(Error::new(Kind::Exists, doing()));
            }
            let Some((parent_name, _)) = name::split_parent(new.name) else {
                return Err(Error::invalid(format!("'{}': a pool is made with 'zpool create'", new.name)));
            };
            if new.name.split('/').next() != Some(self.pool_name().as_str()) {
                return Err(Error::invalid(format!("{}: source and target pools differ", doing())));
            }
            let parent = self.find(parent_name).await.map_err(|e| match e.kind() {
                Kind::NotFound => {
                    Error::new(Kind::NotFound, doing()).because("parent does not exist; use -p to make it")
                }
                _ => e,
            })?;
            if self.objset_type(&parent).await? != ObjsetType::Zfs {
                return Err(Error::invalid(format!("{}: parent is not a filesystem", doing())));
            }
            if self.is_encrypted(parent.dir_id).await? || self.is_encrypted(origin.dir_id).await? {
                return Err(Error::unsupported(format!(
                    "{}: encrypted datasets cannot be cloned yet",
                    doing()
                )));
            }
            self.check_new_enough(doing())?;
            for (prop, value) in new.props {
                self.check_features(prop, value)?;
            }
            if self.available_in(parent.dir_id).await? == 0 {
                return Err(Error::new(Kind::NoSpace, doing()));
            }
            Ok(origin)
        })
    }

    /// Older pools have neither sorted deadlists nor lists of clones.
    pub(crate) fn check_new_enough(&self, doing: String) -> Result<()> {
        if self.core.version() < versions::DEADLISTS {
            return Err(Error::unsupported(format!("{doing}: the pool is older than version 26")));
        }
        Ok(())
    }

    /// Makes a dataset that begins as the snapshot `new.origin`.
    pub fn clone_snapshot<'a>(&'a self, tx: &'a Tx, new: &'a NewClone<'a>) -> Boxed<'a, Result<ObjectId>> {
        Box::pin(async move {
            let origin = self.check_clone(new).await?;
            self.admit(Reach::Normal, CREATED, || format!("create dataset '{}'", new.name)).await?;
            if origin.phys.creation_txg >= tx.txg() {
                // Blocks that the clone writes in this txg would count as the snapshot's.
                return Err(Error::new(Kind::Busy, format!("create dataset '{}'", new.name))
                    .because("the snapshot is only just being taken; try again"));
            }
            let (parent_name, last) = name::split_parent(new.name).expect("checked: it has a parent");
            let (parent, _) = self.find_dir(parent_name).await?;
            let dir = self.core.make_dir(tx, Some((parent, last)), self.now()).await?;
            let id = self.core.make_head(tx, dir, Some(origin.id), self.now()).await?;
            self.start_counts(tx, dir).await?;
            self.adjust_count(tx, parent, counts::FILESYSTEMS, 1).await?;
            for (prop, value) in new.props {
                self.store_setting(tx, dir, prop, value).await?;
            }
            self.clear_log(tx, &self.find(new.name).await?).await?;
            self.touch(new.name, None);
            let text = format!("origin={} ({})", origin.name, origin.id.0);
            self.record_event(tx, "clone", &text, Some((new.name, id))).await?;
            Ok(id)
        })
    }

    /// Gives a head that began as a copy of a snapshot an empty intent log: the copy's is the other dataset's.
    pub(crate) async fn clear_log(&self, tx: &Tx, found: &Found) -> Result<()> {
        if self.log_header(found).await? == ZilHeader::default() {
            return Ok(());
        }
        let dataset = self.open_in_turn(found.id).await?;
        dataset.objset().update_phys(tx, |phys| phys.zil_header = ZilHeader::default());
        Ok(())
    }
}
