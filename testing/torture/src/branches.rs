//! Snapshots, clones, promotions and rollbacks in the midst of other work.
//!
//! To the model a snapshot is one more volume: it becomes what its dataset is, all at once, and never changes. A clone
//! becomes what the snapshot is, and so does a volume that is rolled back; a promotion takes names from one to another.

use crate::bench::{Bench, random, setting, sync_of, volume_name};
use crate::model::{Change, Content};
use dsl::DestroySpec;
use pool::RollbackReach;
use units::{Error, Kind, Result};

const SNAPSHOTS_MAX: usize = 6;
const VOLUMES_MAX: usize = 5;

impl Bench {
    /// One of these operations; nothing where there is nothing to do it with.
    pub(crate) async fn branch(&mut self, name: &str) -> Result<()> {
        let own = self.pool().dsl().snapshots(name).await?;
        let own: Vec<String> = own.into_iter().map(|(name, _)| name).collect();
        let any = own.get(random(own.len().max(1) as u64) as usize).cloned();
        match (random(10), any) {
            (0..=3, _) if own.len() < SNAPSHOTS_MAX => self.take_snapshots().await,
            (4 | 5, Some(snapshot)) if self.volumes.len() < VOLUMES_MAX => self.make_clone(&snapshot).await,
            (6 | 7, Some(snapshot)) => self.roll_back(name, &snapshot).await,
            (8, _) => self.promote(name).await,
            (_, Some(snapshot)) => self.destroy_snapshot(&snapshot).await,
            _ => Ok(()),
        }
    }

    fn content(&self, name: &str) -> Content {
        self.model().volumes[name].clone()
    }

    /// The change was made, and all before it is on disk.
    fn changed(&self) {
        self.model().done();
        self.model().acknowledge();
    }

    /// Of all volumes, at one moment.
    async fn take_snapshots(&mut self) -> Result<()> {
        let last = format!("s{}", self.model().count());
        let heads: Vec<String> = self.volumes.keys().cloned().collect();
        let put = |head: &String| Change::Put { name: format!("{head}@{last}"), content: self.content(head) };
        let changes = heads.iter().map(put).collect();
        self.model().begin(Change::Together(changes));
        let names = heads.iter().map(|head| format!("{head}@{last}")).collect();
        self.pool().snapshot(names, Vec::new()).await?;
        self.changed();
        Ok(())
    }

    async fn make_clone(&mut self, snapshot: &str) -> Result<()> {
        let name = volume_name(self.model().count());
        let content = self.content(snapshot);
        self.model().begin(Change::Put { name: name.clone(), content });
        let props = vec![setting("sync", sync_of(&name))?];
        self.pool().clone_snapshot(snapshot, &name, props).await?;
        self.changed();
        self.volumes.insert(name.clone(), self.pool().open_volume(&name).await?);
        Ok(())
    }

    async fn roll_back(&mut self, name: &str, snapshot: &str) -> Result<()> {
        let reach = RollbackReach { newer: true, clones: false };
        match self.pool().rollback(name, snapshot, reach).await {
            Err(e) if e.kind() == Kind::Busy => {}
            _ => return Err(Error::corrupt(format!("'{name}' was rolled back while it was open"))),
        }
        self.volumes.remove(name);
        let rolled = match self.pool().plan_rollback(name, snapshot, reach).await {
            Ok(plan) => {
                let gone = |name: &String| Change::Destroy { name: name.clone() };
                let mut changes: Vec<Change> = plan.names.iter().map(gone).collect();
                changes.push(Change::Put { name: name.into(), content: self.content(snapshot) });
                self.model().begin(Change::Together(changes));
                self.pool().rollback(name, snapshot, reach).await?;
                self.changed();
                Ok(())
            }
            // A newer snapshot has clones.
            Err(e) if e.kind() == Kind::Busy => Ok(()),
            Err(e) => Err(e),
        };
        self.volumes.insert(name.into(), self.pool().open_volume(name).await?);
        rolled
    }

    async fn promote(&mut self, name: &str) -> Result<()> {
        match self.pool().dsl().check_promote(name).await {
            // It is no clone, or a name is taken.
            Err(e) if matches!(e.kind(), Kind::Invalid | Kind::Exists) => return Ok(()),
            checked => checked?,
        }
        let found = self.pool().dsl().find(name).await?;
        let origin = self.pool().dsl().dataset_name(found.dir.origin).await?;
        let (from, _) = origin.split_once('@').unwrap_or_default();
        let mut changes = Vec::new();
        for (old, _) in self.pool().dsl().snapshots(from).await? {
            let new = old.replace(&format!("{from}@"), &format!("{name}@"));
            changes.push(Change::Put { name: new, content: self.content(&old) });
            let is_origin = old == origin;
            changes.push(Change::Destroy { name: old });
            if is_origin {
                break;
            }
        }
        self.model().begin(Change::Together(changes));
        self.pool().promote(name).await?;
        self.changed();
        Ok(())
    }

    async fn destroy_snapshot(&mut self, snapshot: &str) -> Result<()> {
        let spec = DestroySpec { names: vec![snapshot.into()], ..DestroySpec::default() };
        match self.pool().dsl().plan_destroy_of(&spec).await {
            Err(e) if e.kind() == Kind::Busy => return Ok(()),
            planned => drop(planned?),
        }
        self.model().begin(Change::Destroy { name: snapshot.into() });
        self.pool().destroy_datasets(spec).await?;
        self.changed();
        Ok(())
    }
}
