//! Holds: tags on a snapshot, each of which keeps it from being destroyed.

use dmu::Tx;
use ondisk::ObjectType;
use units::{Error, Kind, Result};

use crate::dsl::Dsl;
use crate::name::MAX_NAME_LEN;
use crate::phys::DatasetPhys;
use crate::tree::Found;
use crate::zaps;

impl Dsl {
    /// The holds of a snapshot: tags, and when they were put there, in seconds since 1970.
    pub async fn holds(&self, name: &str) -> Result<Vec<(String, u64)>> {
        let found = self.find_snapshot(name).await?;
        let Some(id) = found.phys.userrefs.some() else { return Ok(Vec::new()) };
        let mut holds = zaps::numbers(&self.core.table(id).await?).await?;
        holds.sort();
        Ok(holds)
    }

    /// A snapshot, and nothing else, by its name.
    pub async fn find_snapshot(&self, name: &str) -> Result<Found> {
        let found = self.find(name).await?;
        if found.is_snapshot() {
            Ok(found)
        } else {
            Err(Error::invalid(format!("'{name}' is not a snapshot")))
        }
    }

    async fn has_hold(&self, found: &Found, tag: &str) -> Result<bool> {
        match found.phys.userrefs.some() {
            Some(id) => self.core.table(id).await?.contains(tag).await,
            None => Ok(false),
        }
    }

    /// Puts a hold on each of these snapshots, or on none.
    pub async fn hold(&self, tx: &Tx, names: &[String], tag: &str) -> Result<()> {
        if tag.is_empty() || tag.len() >= MAX_NAME_LEN - 1 || tag.contains('\0') {
            return Err(Error::invalid(format!("'{tag}': a tag has 1 to {} bytes", MAX_NAME_LEN - 2)));
        }
        for name in names {
            if self.has_hold(&self.find_snapshot(name).await?, tag).await? {
                return Err(Error::new(Kind::Exists, format!("hold snapshot '{name}'"))
                    .because(format!("tag '{tag}' already exists on it")));
            }
        }
        for name in names {
            let found = self.find_snapshot(name).await?;
            let id = match found.phys.userrefs.some() {
                Some(id) => id,
                None => {
                    let table = zaps::create(self.core.mos(), tx, ObjectType::USERREFS).await?;
                    let id = table.blocks().id();
                    self.core.update_dataset(tx, found.id, |phys| phys.userrefs = id).await?;
                    id
                }
            };
            let table = self.core.table(id).await?;
            table.insert(tx, tag, self.now()).await?;
            let text = format!("tag={tag} temp=0 refs={}", table.len().await?);
            self.record_event(tx, "hold", &text, Some((name, found.id))).await?;
        }
        Ok(())
    }

    /// Which of these snapshots wait for nothing but this hold to be destroyed.
    pub async fn going_with_hold(&self, names: &[String], tag: &str) -> Result<Vec<String>> {
        let mut going = Vec::new();
        for name in names {
            let found = self.find_snapshot(name).await?;
            if !found.phys.has(DatasetPhys::DEFER_DESTROY) || found.phys.num_children > 1 {
                continue;
            }
            if matches!(&self.holds(name).await?[..], [(held, _)] if held == tag) {
                going.push(found.name);
            }
        }
        Ok(going)
    }

    /// Takes a hold off each of these snapshots, or off none; those that waited for it to be destroyed go. `Busy` if one
    /// of those is open.
    pub async fn release(&self, tx: &Tx, names: &[String], tag: &str) -> Result<()> {
        for name in names {
            if !self.has_hold(&self.find_snapshot(name).await?, tag).await? {
                return Err(Error::new(Kind::NotFound, format!("release snapshot '{name}'"))
                    .because(format!("there is no tag '{tag}' on it")));
            }
        }
        self.check_snapshots_unused(&self.going_with_hold(names, tag).await?).await?;
        for name in names {
            let found = self.find_snapshot(name).await?;
            let table = self.core.table(found.phys.userrefs).await?;
            table.remove(tx, tag).await?;
            let text = format!("tag={tag} refs={}", table.len().await?);
            self.record_event(tx, "release", &text, Some((name, found.id))).await?;
            if self.may_go(&found.phys, found.phys.num_children.saturating_sub(1)).await? {
                self.destroy_snapshot(tx, name).await?;
            }
        }
        Ok(())
    }
}
