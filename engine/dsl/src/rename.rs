//! Renaming: a directory moves to another place in the tree, with all below it.

use dmu::Tx;
use ondisk::ObjsetType;
use units::{Error, Kind, Result};
use world::Boxed;

use crate::counts;
use crate::dsl::Dsl;
use crate::name;
use crate::space::{self, Delta, Reach, Used};
use crate::tree::Found;

impl Dsl {
    /// Checks whether `from` may be called `to`: both file systems or volumes, or both snapshots of one dataset.
    pub fn check_rename<'a>(&'a self, from: &'a str, to: &'a str) -> Boxed<'a, Result<Found>> {
        Box::pin(async move {
            let doing = || format!("rename '{from}' to '{to}'");
            let found = self.find(from).await?;
            if found.is_snapshot() {
                return self.check_rename_snapshot(found, to).await;
            }
            name::check_dataset(to)?;
            if found.dir.parent.some().is_none() {
                return Err(Error::invalid(format!("{}: a pool is renamed by importing it", doing())));
            }
            let Some((parent_name, _)) = name::split_parent(to) else {
                return Err(Error::invalid(format!("{}: datasets cannot become pools", doing())));
            };
            if self.find_dir(to).await.is_ok() {
                return Err(Error::new(Kind::Exists, doing()));
            }
            if to.split('/').next() != from.split('/').next() {
                return Err(Error::invalid(format!("{}: datasets cannot move to another pool", doing())));
            }
            if to.starts_with(&format!("{from}/")) {
                return Err(Error::invalid(format!(
                    "{}: a dataset cannot become its own descendant",
                    doing()
                )));
            }
            let parent = self.find(parent_name).await.map_err(|e| match e.kind() {
                Kind::NotFound => Error::new(Kind::NotFound, doing())
                    .because(format!("the parent of '{to}' does not exist; use -p to make it")),
                _ => e,
            })?;
            if self.objset_type(&parent).await? != ObjsetType::Zfs {
                return Err(Error::invalid(format!("{}: parent is not a filesystem", doing())));
            }
            self.check_names_below(from, to).await?;
            if parent.dir_id != found.dir.parent {
                self.check_encryption(&found, &parent, doing()).await?;
                self.check_room(&found, &parent, doing()).await?;
            }
            Ok(found)
        })
    }

    async fn check_rename_snapshot(&self, found: Found, to: &str) -> Result<Found> {
        name::check_snapshot(to)?;
        let dataset = |name: &str| name.split('@').next().map(str::to_string);
        if dataset(&found.name) != dataset(to) {
            return Err(Error::invalid(format!(
                "rename '{}' to '{to}': snapshots must be part of same dataset",
                found.name
            )));
        }
        if self.exists(to).await? {
            return Err(Error::new(Kind::Exists, format!("rename '{}' to '{to}'", found.name)));
        }
        Ok(found)
    }

    /// Everything below gets a longer name too.
    async fn check_names_below(&self, from: &str, to: &str) -> Result<()> {
        for dataset in self.descendants(from).await? {
            let renamed = format!("{to}{}", &dataset[from.len()..]);
            name::check_dataset(&renamed)?;
            for (snapshot, _) in self.snapshots(&dataset).await? {
                name::check_entity(&format!("{to}{}", &snapshot[from.len()..]))?;
            }
        }
        Ok(())
    }

    async fn check_encryption(&self, found: &Found, parent: &Found, doing: String) -> Result<()> {
        if self.is_encrypted(found.dir_id).await? || self.is_encrypted(parent.dir_id).await? {
            return Err(Error::unsupported(format!("{doing}: encrypted datasets cannot move yet")));
        }
        Ok(())
    }

    /// Whether the new place has room for it, the old one already counted as gone.
    async fn check_room(&self, found: &Found, parent: &Found, doing: String) -> Result<()> {
        let needed = found.dir.space.used.max(found.dir.space.reserved);
        let leaving = self.chain(found.dir.parent).await?;
        let mut gone: Vec<_> = leaving.iter().map(|(_, phys)| phys.space).collect();
        space::charge_chain(&mut gone, Used::Children, Delta::used(-space::signed(needed)));
        let mut entering = Vec::new();
        for (id, phys) in self.chain(parent.dir_id).await? {
            let left = leaving.iter().position(|(other, _)| *other == id);
            entering.push(left.map_or(phys.space, |i| gone[i]));
        }
        if space::available(&entering, self.pool_space().usable(Reach::Normal)) < needed {
            return Err(Error::new(Kind::NoSpace, doing));
        }
        Ok(())
    }

    /// Renames a file system or volume with all below it, or a snapshot.
    pub fn rename<'a>(&'a self, tx: &'a Tx, from: &'a str, to: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let found = self.check_rename(from, to).await?;
            self.admit(Reach::Reserved, 1, || format!("rename '{from}'")).await?;
            self.record_event(tx, "rename", &format!("-> {to}"), Some((from, found.id))).await?;
            if found.is_snapshot() {
                let (_, head) = self.core.dataset(found.dir.head).await?;
                let names = self.core.table(head.snapnames).await?;
                let (_, old) = from.split_once('@').expect("a snapshot's name has an '@'");
                let (_, new) = to.split_once('@').expect("checked: it has an '@'");
                names.remove(tx, old).await?;
                names.insert(tx, new, found.id.0).await?;
                return self.note_snapshots_changed(tx, found.dir_id).await;
            }
            let (parent_name, new) = name::split_parent(to).expect("checked: it has a parent");
            let (_, old) = name::split_parent(from).expect("checked: it is no pool");
            let (parent, _) = self.find_dir(parent_name).await?;
            if parent != found.dir.parent {
                self.move_space(tx, &found, parent).await?;
            }
            let (_, old_parent) = self.core.dir(found.dir.parent).await?;
            self.core.table(old_parent.children).await?.remove(tx, old).await?;
            self.core.update_dir(tx, found.dir_id, |dir| dir.parent = parent).await?;
            let (_, new_parent) = self.core.dir(parent).await?;
            self.core.table(new_parent.children).await?.insert(tx, new, found.dir_id.0).await?;
            self.touch(from, None);
            self.touch(to, None);
            self.refresh_policies(found.dir_id).await
        })
    }

    /// Renames the snapshots `from` of a dataset and of all below it that have one: all of them or none.
    pub fn rename_snapshots<'a>(&'a self, tx: &'a Tx, from: &'a str, to: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let last =
                |name: &str| name.split_once('@').map(|(_, last)| last.to_string()).unwrap_or_default();
            let (old, new) = (self.match_snapshots(from, true).await?, last(to));
            let renamed = |name: &str| format!("{}@{new}", name.split('@').next().unwrap_or_default());
            for name in &old {
                self.check_rename(name, &renamed(name)).await?;
            }
            for name in &old {
                self.rename(tx, name, &renamed(name)).await?;
            }
            Ok(())
        })
    }

    async fn move_space(&self, tx: &Tx, found: &Found, to: units::ObjectId) -> Result<()> {
        let space = found.dir.space;
        let used = Delta {
            used: space::signed(space.used),
            compressed: space::signed(space.compressed),
            uncompressed: space::signed(space.uncompressed),
        };
        let reserved = Delta::used(space::signed(space.reserved.saturating_sub(space.used)));
        for (field, own) in [(counts::FILESYSTEMS, 1), (counts::SNAPSHOTS, 0)] {
            // The dataset that moves counts as well.
            let count = self
                .count(found.dir_id, field)
                .await?
                .map_or(0, |count| space::signed(count).saturating_add(own));
            self.adjust_count(tx, found.dir.parent, field, -count).await?;
            self.adjust_count(tx, to, field, count).await?;
        }
        self.charge(tx, found.dir.parent, Used::Children, -used).await?;
        self.charge(tx, to, Used::Children, used).await?;
        self.charge(tx, found.dir.parent, Used::ChildrenReserved, -reserved).await?;
        self.charge(tx, to, Used::ChildrenReserved, reserved).await
    }
}
