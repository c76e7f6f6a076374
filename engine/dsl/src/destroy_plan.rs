//! What has to go, and in which order, so that what was asked for can go.
//!
//! ```text
//!   destroy -R p/a          p/a/b@s, p/a/b      children before parents,
//!                           p/c                 clones before their origin,
//!                           p/a@2, p/a@1, p/a   snapshots before their dataset, the newest first
//! ```
//!
//! A plan is made without a change, for a caller that only asks; and again in the sync task that carries it out, where
//! nothing can come between. What it lists can go: carrying it out meets no refusal half-way.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use units::{Error, Kind, ObjectId, Result};
use world::Boxed;

use crate::dsl::Dsl;
use crate::tree::Found;
use crate::zaps;

/// What is to be destroyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestroySpec {
    /// Datasets, or snapshots.
    pub names: Vec<String>,
    /// With everything below a dataset, and its snapshots.
    pub recursive: bool,
    /// With all clones, wherever they are, and everything below them.
    pub clones: bool,
    /// Snapshots that cannot go yet shall go when their last clone or hold does.
    pub defer: bool,
}

/// What a destroy is to do, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestroyPlan {
    /// Full names of snapshots and datasets.
    pub names: Vec<String>,
    /// Snapshots that go later.
    pub deferred: Vec<String>,
    /// Snapshots that waited for a clone that goes, and go with it.
    pub origins: Vec<String>,
}

impl DestroyPlan {
    /// Everything that goes at once.
    pub fn all(&self) -> Vec<String> {
        self.names.iter().chain(&self.origins).cloned().collect()
    }
}

/// A plan while it is made.
struct Planner<'a> {
    dsl: &'a Dsl,
    spec: &'a DestroySpec,
    plan: DestroyPlan,
    /// Datasets and snapshots that were met, and of them those that are planned.
    met: BTreeSet<ObjectId>,
    planned: BTreeSet<ObjectId>,
    /// How many clones of a snapshot are planned.
    clones: BTreeMap<ObjectId, u64>,
    /// Clones that are in the way.
    dependents: Vec<String>,
}

type Step<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl Dsl {
    /// [`Dsl::plan_destroy_of`] one dataset or snapshot.
    pub async fn plan_destroy(&self, name: &str, recursive: bool) -> Result<DestroyPlan> {
        let spec = DestroySpec { names: vec![name.into()], recursive, ..DestroySpec::default() };
        self.plan_destroy_of(&spec).await
    }

    /// What must go so that all of `spec` goes; an error that says what is in the way if not all of it may.
    pub async fn plan_destroy_of(&self, spec: &DestroySpec) -> Result<DestroyPlan> {
        let mut planner = Planner {
            dsl: self,
            spec,
            plan: DestroyPlan::default(),
            met: BTreeSet::new(),
            planned: BTreeSet::new(),
            clones: BTreeMap::new(),
            dependents: Vec::new(),
        };
        for name in &spec.names {
            let found = self.find(name).await?;
            if found.is_snapshot() {
                planner.snapshot(found).await?;
            } else {
                planner.dataset(found).await?;
            }
        }
        planner.finish().await
    }

    /// The datasets that were cloned from a snapshot.
    pub async fn clones_of(&self, found: &Found) -> Result<Vec<String>> {
        let Some(set) = found.phys.next_clones.some() else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for (_, id) in zaps::numbers(&self.core.table(set).await?).await? {
            // A clone that has snapshots is represented by its oldest one.
            let (_, clone) = self.core.dataset(ObjectId(id)).await?;
            names.push(self.dir_name(clone.dir).await?);
        }
        names.sort();
        Ok(names)
    }

    /// The snapshots that `pool/a@s`, `pool/a@s,t` or `pool/a@s%t` means, oldest first; of `s%t` each side may be
    /// missing. With `recursive` those of all datasets below as well, as far as they are there.
    pub fn match_snapshots<'a>(
        &'a self,
        pattern: &'a str,
        recursive: bool,
    ) -> Boxed<'a, Result<Vec<String>>> {
        Box::pin(async move {
            let (top, parts) = pattern.split_once('@').ok_or_else(|| no_snapshot(pattern))?;
            let datasets = match recursive {
                true => self.descendants(top).await?,
                false => vec![self.find(top).await?.name],
            };
            let mut matched = Vec::new();
            for (n, dataset) in datasets.into_iter().enumerate() {
                matched.extend(match parts.contains('%') {
                    true => self.match_ranges(&dataset, parts, recursive, n > 0).await?,
                    false => self.match_names(&dataset, parts, recursive).await?,
                });
            }
            if matched.is_empty() { Err(no_snapshot(pattern)) } else { Ok(matched) }
        })
    }

    /// Each is looked up: a dataset may have thousands of others. Those that are not there are left out, or an error.
    async fn match_names(&self, dataset: &str, parts: &str, may_miss: bool) -> Result<Vec<String>> {
        let mut wanted = BTreeSet::new();
        for part in parts.split(',') {
            match self.find(&format!("{dataset}@{part}")).await {
                Ok(found) => drop(wanted.insert((found.phys.creation_txg, found.name))),
                // Below, a dataset may be younger than the snapshot.
                Err(e) if e.kind() == Kind::NotFound && may_miss => {}
                Err(e) if e.kind() == Kind::NotFound => {
                    return Err(no_snapshot(&format!("{dataset}@{part}")));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(wanted.into_iter().map(|(_, name)| name).collect())
    }

    /// Of datasets below, the snapshots may have been taken in another order.
    async fn match_ranges(
        &self,
        dataset: &str,
        parts: &str,
        may_miss: bool,
        is_below: bool,
    ) -> Result<Vec<String>> {
        let all: Vec<String> = self.snapshots(dataset).await?.into_iter().map(|(name, _)| name).collect();
        let places: BTreeMap<&str, usize> =
            all.iter().enumerate().filter_map(|(n, name)| Some((name.split_once('@')?.1, n))).collect();
        let mut wanted = BTreeSet::new();
        for part in parts.split(',') {
            let (first, last) = part.split_once('%').unwrap_or((part, part));
            let is_open = part.contains('%');
            let from = if first.is_empty() && is_open { Some(0) } else { places.get(first).copied() };
            let to =
                if last.is_empty() && is_open { all.len().checked_sub(1) } else { places.get(last).copied() };
            match (from, to) {
                (Some(from), Some(to)) if from > to && !is_below => {
                    let why = format!(
                        "'{dataset}@{first}' is newer than '{dataset}@{last}': the older one comes first"
                    );
                    return Err(Error::invalid(why));
                }
                (Some(from), Some(to)) => wanted.extend(from..=to),
                // Below, a dataset may be younger than the snapshot.
                _ if may_miss => {}
                (None, _) if !first.is_empty() => return Err(no_snapshot(&format!("{dataset}@{first}"))),
                _ if !last.is_empty() => return Err(no_snapshot(&format!("{dataset}@{last}"))),
                _ => {}
            }
        }
        Ok(wanted.into_iter().map(|n| all[n].clone()).collect())
    }
}

fn no_snapshot(name: &str) -> Error {
    Error::new(Kind::NotFound, "find snapshot").because(format!("snapshot '{name}' does not exist"))
}

impl<'a> Planner<'a> {
    async fn finish(mut self) -> Result<DestroyPlan> {
        self.dependents.retain(|name| !self.plan.names.contains(name));
        if self.dependents.is_empty() {
            self.origins().await?;
            return Ok(self.plan);
        }
        let (what, them) = (self.spec.names.join(", "), self.dependents.join(", "));
        Err(Error::new(Kind::Busy, format!("destroy '{what}'"))
            .because(format!("it has clones: {them}; destroy them first, or use -R to destroy them too")))
    }

    /// The snapshots that were to go with their last clone, which goes.
    async fn origins(&mut self) -> Result<()> {
        for (origin, clones) in std::mem::take(&mut self.clones) {
            let (_, phys) = self.dsl.core().dataset(origin).await?;
            // Its children are the next in its own line, and the clones.
            let left = phys.num_children.saturating_sub(1).saturating_sub(clones);
            if !self.planned.contains(&origin) && self.dsl.may_go(&phys, left).await? {
                self.plan.origins.push(self.dsl.dataset_name(origin).await?);
            }
        }
        Ok(())
    }

    /// Whether what is below and cloned goes as well.
    fn takes_all(&self) -> bool {
        self.spec.recursive || self.spec.clones
    }

    /// A dataset with what is below it. Boxed, for it comes back here.
    fn dataset<'s>(&'s mut self, found: Found) -> Step<'s>
    where
        'a: 's,
    {
        Box::pin(async move {
            if !self.enter(&found)? {
                return Ok(());
            }
            let name = &found.name;
            if found.dir.parent.some().is_none() {
                return Err(Error::invalid(format!(
                    "cannot destroy '{name}': it is the pool; use 'zpool destroy'"
                )));
            }
            let children = self.dsl.children(name).await?;
            if !children.is_empty() && !self.takes_all() {
                return Err(in_the_way(name, "children", "use -r to destroy them too"));
            }
            for child in children {
                let child = self.dsl.find(&child).await?;
                self.dataset(child).await?;
            }
            let snapshots = self.dsl.snapshots(name).await?;
            if !snapshots.is_empty() && !self.takes_all() {
                return Err(in_the_way(name, "snapshots", "use -r to destroy them too"));
            }
            for (snapshot, _) in snapshots.into_iter().rev() {
                let snapshot = self.dsl.find(&snapshot).await?;
                self.snapshot_for_good(snapshot).await?;
            }
            self.dsl.check_destroy_head(&found).await?;
            self.planned.insert(found.id);
            if let Some(origin) = found.dir.origin.some().filter(|origin| Some(*origin) != self.dsl.origin) {
                *self.clones.entry(origin).or_default() += 1;
            }
            self.plan.names.push(found.name);
            Ok(())
        })
    }

    /// A snapshot that was asked for: it may go later.
    async fn snapshot(&mut self, found: Found) -> Result<()> {
        let is_held = self.dsl.is_held(&found.phys).await?;
        let has_clones = found.phys.num_children > 1 && !self.spec.clones;
        if self.spec.defer && (is_held || has_clones) {
            self.plan.deferred.push(found.name);
            return Ok(());
        }
        self.snapshot_for_good(found).await
    }

    fn snapshot_for_good<'s>(&'s mut self, found: Found) -> Step<'s>
    where
        'a: 's,
    {
        Box::pin(async move {
            if !self.enter(&found)? {
                return Ok(());
            }
            for clone in self.dsl.clones_of(&found).await? {
                if self.spec.clones {
                    let clone = self.dsl.find(&clone).await?;
                    self.dataset(clone).await?;
                } else if !self.goes_anyway(&clone) {
                    self.dependents.push(clone);
                } else {
                    let clone = self.dsl.find(&clone).await?;
                    self.dataset(clone).await?;
                }
            }
            self.dsl.check_destroy_snapshot(&found, true).await?;
            self.planned.insert(found.id);
            self.plan.names.push(found.name);
            Ok(())
        })
    }

    /// It is at or below what goes recursively.
    fn goes_anyway(&self, name: &str) -> bool {
        let below = |top: &String| {
            name.strip_prefix(top.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('/'))
        };
        let named = self.spec.names.iter().any(|top| top == name);
        named || self.spec.recursive && self.spec.names.iter().any(below)
    }

    /// Notes that something is being planned; `false` if that is done already.
    fn enter(&mut self, found: &Found) -> Result<bool> {
        if self.met.insert(found.id) {
            return Ok(true);
        }
        if self.planned.contains(&found.id) {
            return Ok(false);
        }
        let why =
            "it was cloned from something below it; promote the clone, or rename it out of there, first";
        Err(Error::new(Kind::Busy, format!("destroy '{}'", found.name)).because(why))
    }
}

pub(crate) fn in_the_way(name: &str, what: &str, advice: &str) -> Error {
    Error::new(Kind::Busy, format!("destroy '{name}'")).because(format!("it has {what}; {advice}"))
}
