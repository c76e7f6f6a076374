//! Snapshots of shares, and of projects: those of a project are taken, renamed and destroyed with those of its shares.

use super::items::{check_place, plan_groups_of_new};
use super::lun_facts::own;
use super::{masks, settings};
use crate::appliance::{Appliance, By};
use crate::datasets::Doomed;
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::shares::{DEFAULT_PROJECT, Dependent, Item, ItemKind, Place};
use api::{ApiError, ErrorKind, Reply, Result, ShareDeed, ShareSnapshot};
use dsl::Dsl;
use ondisk::ObjsetType;
use pool::{Pool, RollbackReach};
use units::{Error, Kind};

impl Appliance {
    pub(super) async fn share_snapshots(&self, place: &Place) -> Result<Reply> {
        self.item(place).await?;
        let open = self.pool(&place.pool, Access::Look).await?;
        let _reading = open.pool.reading().await;
        let found = of(&open.pool, place).await;
        let failed = |e| cannot(About::Dataset, &format!("list the snapshots of '{place}'"), &e);
        Ok(Reply::ShareSnapshots(found.map_err(failed)?))
    }

    pub(super) async fn dependents(&self, place: &Place, name: &str) -> Result<Reply> {
        self.item(place).await?;
        let snapshot = full(place, name)?;
        let open = self.pool(&place.pool, Access::Look).await?;
        let _reading = open.pool.reading().await;
        let found = clones(&open.pool, &snapshot).await;
        Ok(Reply::Dependents(found.map_err(|e| cannot(About::Snapshot, &format!("open '{snapshot}'"), &e))?))
    }

    pub(super) async fn share_deed(
        &self,
        place: &Place,
        name: &str,
        deed: ShareDeed,
        by: &By,
    ) -> Result<Reply> {
        let item = self.item(place).await?;
        let snapshot = full(place, name)?;
        let all = place.share.is_none();
        // What lies directly in the pool has the pool's other projects beside it.
        let below = all && place.project != DEFAULT_PROJECT;
        match deed {
            ShareDeed::Take => {
                let names = self.snapshots_of(place, name).await?;
                self.take_snapshots(&names, false, &[], by).await
            }
            ShareDeed::Rename { to } if below => {
                self.rename_snapshots(&snapshot, &full(place, &to)?, by).await
            }
            ShareDeed::Rename { to } if all => self.rename_in_pool(place, name, &to, by).await,
            ShareDeed::Rename { to } => {
                self.rename_dataset(&snapshot, &full(place, &to)?, false, None, by).await
            }
            ShareDeed::Destroy if all && !below => {
                let names = self.snapshots_there(place, name).await?;
                self.destroy_snapshots(names, &snapshot, by).await
            }
            ShareDeed::Destroy => {
                let clones = !all && self.clones_may_go(place, &snapshot).await?;
                let doomed = Doomed { recursive: below, clones, ..Doomed::default() };
                self.destroy_dataset(&snapshot, doomed, by).await
            }
            ShareDeed::Rollback { .. } | ShareDeed::Clone { .. } if all => Err(ApiError::new(
                ErrorKind::Invalid,
                format!("cannot do that with '{place}@{name}': choose a share of the project"),
            )),
            ShareDeed::Rollback { newer, force } => {
                let reach = RollbackReach { newer, clones: false };
                self.roll_back(&snapshot, reach, force, by).await
            }
            ShareDeed::Clone { project, share, set } => {
                let to = place.moved(Some(&share), project.as_deref());
                self.clone_share(&item, &snapshot, &to, &set, by).await
            }
        }
    }

    /// Whether the clones of a snapshot go with it: each was released by `nodestroy=false` of its own, and nothing depends
    /// on any of them. A clone of which nothing was said keeps the snapshot.
    async fn clones_may_go(&self, place: &Place, snapshot: &str) -> Result<bool> {
        let open = self.pool(&place.pool, Access::Look).await?;
        let _reading = open.pool.reading().await;
        let found = are_released(open.pool.dsl(), snapshot).await;
        found.map_err(|e| cannot(About::Snapshot, &format!("open '{snapshot}'"), &e))
    }

    /// The snapshots that a new one of this name is made of.
    pub(crate) async fn snapshots_of(&self, place: &Place, name: &str) -> Result<Vec<String>> {
        let mut names = vec![full(place, name)?];
        if place.share.is_none() {
            for share in self.items(Some(place.pool.clone()), Some(place.project.clone()), false).await? {
                names.push(full(&share.place, name)?);
            }
        }
        Ok(names)
    }

    /// Those of them that are there; at least the first, which is the project's.
    async fn snapshots_there(&self, place: &Place, name: &str) -> Result<Vec<String>> {
        let names = self.snapshots_of(place, name).await?;
        let open = self.pool(&place.pool, Access::Look).await?;
        let _reading = open.pool.reading().await;
        let mut there = Vec::new();
        for name in names {
            match open.pool.dsl().find_snapshot(&name).await {
                Ok(_) => there.push(name),
                // A share may be younger than the snapshot.
                Err(e) if e.kind() == Kind::NotFound && !there.is_empty() => {}
                Err(e) => return Err(cannot(About::Snapshot, &format!("open '{name}'"), &e)),
            }
        }
        Ok(there)
    }

    /// Of the project that lies directly in the pool, beside other projects.
    async fn rename_in_pool(&self, place: &Place, name: &str, to: &str, by: &By) -> Result<Reply> {
        full(place, to)?;
        let names = self.snapshots_there(place, name).await?;
        let renamed = |old: &str| format!("{}@{to}", old.split('@').next().unwrap_or_default());
        {
            // Nothing is renamed unless all can be.
            let open = self.pool(&place.pool, Access::Look).await?;
            let _reading = open.pool.reading().await;
            for old in &names {
                if open.pool.dsl().find_snapshot(&renamed(old)).await.is_ok() {
                    let e = Error::new(Kind::Exists, "rename snapshot");
                    return Err(cannot(About::Snapshot, &format!("rename '{old}'"), &e));
                }
            }
        }
        self.end_users_of(&names, false, &format!("rename '{}'", full(place, name)?)).await?;
        for old in &names {
            self.rename_dataset(old, &renamed(old), false, None, by).await?;
        }
        Ok(Reply::Done)
    }

    async fn clone_share(
        &self,
        from: &Item,
        snapshot: &str,
        to: &Place,
        set: &[(String, String)],
        by: &By,
    ) -> Result<Reply> {
        let failed = |e: Error| cannot(About::Dataset, &format!("create {} '{to}'", from.kind.word()), &e);
        check_place(to, from.kind).map_err(failed)?;
        let _turn = self.0.san.numbering.lock().await;
        let network = self.network().map_err(failed)?;
        let mut settings =
            settings::read(from.kind, true, set, &[], (&network, &self.schema()?)).map_err(failed)?;
        if settings.size.is_some() {
            return Err(failed(Error::invalid(
                "its size is the snapshot's; change it after the clone is made",
            )));
        }
        let project = self.item(&Place::project(&to.pool, &to.project)).await?;
        if from.kind == ItemKind::Lun {
            let luns = self.luns().await?;
            let open = self.pool(&to.pool, Access::Look).await?;
            let _reading = open.pool.reading().await;
            let parent = Place::project(&to.pool, &to.project).dataset();
            let kept = masks::of_clone(open.pool.dsl(), &from.place.dataset(), &parent).await;
            settings.keep_masks(kept.map_err(failed)?);
            plan_groups_of_new(&mut settings, to, &project, &network, &luns).map_err(failed)?;
        }
        settings.properties.extend(settings.reservation());
        self.clone_snapshot(snapshot, &to.dataset(), &settings.properties, false, by).await?;
        self.change_root(&to.dataset(), &settings.root, by).await?;
        // It is there all the same; 'zfs mount' says what is wrong.
        let _ = self.mount_new(&to.dataset()).await;
        Ok(Reply::Named { name: to.to_string() })
    }
}

/// The dataset's name of a snapshot.
fn full(place: &Place, name: &str) -> Result<String> {
    let full = format!("{}@{name}", place.dataset());
    let failed = |e| cannot(About::Snapshot, &format!("open '{full}'"), &e);
    dsl::name::check_snapshot(&full).map_err(failed)?;
    Ok(full)
}

async fn of(pool: &Pool, place: &Place) -> units::Result<Vec<ShareSnapshot>> {
    let dsl = pool.dsl();
    let mut all = Vec::new();
    for (name, _) in dsl.snapshots(&place.dataset()).await? {
        let found = dsl.find(&name).await?;
        let (_, last) = name.split_once('@').unwrap_or_default();
        all.push(ShareSnapshot {
            place: place.clone(),
            name: last.into(),
            creation: found.phys.creation_time,
            unique: found.phys.unique,
            data: found.phys.referenced,
            clones: found.phys.num_children.saturating_sub(1),
            holds: dsl.holds(&name).await?.len() as u64,
            guid: found.phys.guid.0,
        });
    }
    Ok(all)
}

/// See [`Appliance::clones_may_go`].
async fn are_released(dsl: &Dsl, snapshot: &str) -> units::Result<bool> {
    for clone in dsl.clones_of(&dsl.find_snapshot(snapshot).await?).await? {
        let said = own(&dsl.stats(&clone).await?, "cenote:nodestroy").await?;
        if said != Some(("false".into(), true)) || dsl.descendants(&clone).await?.len() > 1 {
            return Ok(false);
        }
        for (name, _) in dsl.snapshots(&clone).await? {
            if !dsl.clones_of(&dsl.find_snapshot(&name).await?).await?.is_empty() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

async fn clones(pool: &Pool, snapshot: &str) -> units::Result<Vec<Dependent>> {
    let dsl = pool.dsl();
    let mut found = Vec::new();
    for clone in dsl.clones_of(&dsl.find_snapshot(snapshot).await?).await? {
        let is_volume = dsl.objset_type(&dsl.find(&clone).await?).await? == ObjsetType::Zvol;
        let Place { project, share, .. } = Place::of(&clone, is_volume);
        found.push(Dependent { project, share: share.unwrap_or_default() });
    }
    Ok(found)
}
