//! `zfs mount`, `zfs unmount`, and what the daemon mounts by itself.

use super::facts::Facts;
use super::plan::{Plan, plan};
use super::state::Placed;
use super::temporary::Temporary;
use crate::appliance::Appliance;
use crate::error_text::{About, cannot, plain};
use crate::in_use::processes_at;
use crate::pools::{Access, Open};
use api::{ApiError, ErrorKind, Mount, Mounted, Reply, Result, Unmount};
use dsl::props::Types;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Error, Kind};

fn no_daemon(what: &str) -> ApiError {
    let why = "the daemon mounts file systems, and none runs; 'cenote serve' starts one";
    ApiError::new(ErrorKind::Unsupported, format!("cannot {what}: {why}"))
}

fn not_mounted(what: &str) -> ApiError {
    ApiError::new(ErrorKind::Invalid, format!("cannot unmount '{what}': not currently mounted"))
}

/// Whether what is mounted could neither be reached nor unmounted any more, with `new` in its place. One of another pool is
/// not hidden in its own directory either: a pool that is imported does not take the place of another one's files.
fn hides((new, at): (&str, &Path), (mounted, there): (&str, &Path)) -> bool {
    let pool_of = |name: &str| name.split('/').next().map(str::to_string);
    there.starts_with(at) && (there != at || pool_of(mounted) != pool_of(new))
}

fn latest_first(mut these: Vec<(String, Arc<Placed>)>) -> Vec<(String, Arc<Placed>)> {
    these.sort_by_key(|(_, mount)| std::cmp::Reverse(mount.number()));
    these
}

impl Appliance {
    /// What is mounted.
    pub(crate) fn mounts(&self) -> Reply {
        let mounted = |(dataset, mount): (String, Arc<Placed>)| Mounted {
            dataset,
            at: mount.at().display().to_string(),
        };
        let all = self.0.mounts.all().into_iter().filter(|(_, mount)| !mount.has_ended());
        Reply::Mounts(all.map(mounted).collect())
    }

    pub(crate) async fn mount(&self, asked: &Mount) -> Result<Reply> {
        let what = asked.datasets.first().map_or("mount".into(), |name| format!("mount '{name}'"));
        if !self.0.config.is_daemon {
            return Err(no_daemon(&what));
        }
        fuse::can_mount()
            .map_err(|e| ApiError::new(ErrorKind::Unsupported, format!("cannot {what}: {e}")))?;
        if asked.datasets.is_empty() {
            let names = self.0.pools.lock().await.names();
            let mut problems = Vec::new();
            for pool in names {
                problems.extend(self.mount_below(&pool, asked).await);
            }
            return match problems.is_empty() {
                true => Ok(Reply::Done),
                false => Err(ApiError::new(ErrorKind::Io, problems.join("\n"))),
            };
        }
        for dataset in &asked.datasets {
            let open = self.pool_with(dataset, Access::Change).await?;
            let plan = plan(&open, dataset).await?.with(dataset, Temporary::from(asked))?;
            let known = self.0.mounts.get(dataset);
            if let Some(mount) = known
                && mount.stays().await
            {
                let problem = mount.problem().await;
                let why = problem.as_deref().unwrap_or("filesystem already mounted");
                let message = format!("cannot mount '{dataset}': {why}");
                return Err(ApiError::new(ErrorKind::Exists, message));
            }
            self.check_hides_none(dataset, &plan.at, asked.overlay)?;
            self.mount_one(&open, dataset, plan).await?;
        }
        Ok(Reply::Done)
    }

    /// A directory is not mounted over where that [`hides`] a dataset that is mounted already. With `overlay` it is.
    pub(super) fn check_hides_none(&self, dataset: &str, at: &Path, overlay: bool) -> Result<()> {
        let would_be_hidden = |(name, mount): &(String, Arc<Placed>)| {
            !overlay && !mount.has_ended() && hides((dataset, at), (name, mount.at()))
        };
        let Some((name, mount)) = self.0.mounts.all().into_iter().find(would_be_hidden) else {
            return Ok(());
        };
        let message = format!(
            "cannot mount '{dataset}': '{name}' is mounted {}, on {}, and would be hidden: unmount that first, or use -O",
            if mount.at() == at { "there" } else { "below it" },
            mount.at().display()
        );
        Err(ApiError::new(ErrorKind::Busy, message))
    }

    /// Mounts at and below a dataset whatever is to be mounted by itself. What cannot be is said, a line for each.
    pub(crate) async fn mount_below(&self, dataset: &str, asked: &Mount) -> Vec<String> {
        let Ok(open) = self.pool_of(dataset, Access::Change).await else { return Vec::new() };
        let mut plans = Vec::new();
        let mut problems = Vec::new();
        let names = {
            let _reading = open.pool.reading().await;
            open.pool.dsl().descendants(dataset).await.unwrap_or_default()
        };
        for name in names {
            if !self.is_file_system(&open, &name).await || self.0.mounts.get(&name).is_some() {
                continue;
            }
            // One that is not to be mounted is no problem.
            let Ok(plan) = plan(&open, &name).await else { continue };
            if plan.by_itself {
                match plan.with(&name, Temporary::from(asked)) {
                    Ok(plan) => plans.push((name, plan)),
                    Err(e) => problems.push(e.message),
                }
            }
        }
        // What lies below a directory is mounted after it.
        plans.sort_by(|a, b| a.1.at.cmp(&b.1.at));
        for (name, plan) in plans {
            let mounted = match self.check_hides_none(&name, &plan.at, asked.overlay) {
                Ok(()) => self.mount_one(&open, &name, plan).await,
                Err(e) => Err(e),
            };
            problems.extend(mounted.err().map(|e| e.message));
        }
        problems
    }

    async fn is_file_system(&self, open: &Open, name: &str) -> bool {
        let _reading = open.pool.reading().await;
        open.pool.dsl().stats(name).await.is_ok_and(|stats| stats.types() == Types::FILESYSTEM)
    }

    pub(super) async fn mount_one(&self, open: &Open, dataset: &str, plan: Plan) -> Result<()> {
        let failed = |e: &Error| {
            let why = match e.cause() {
                Some(cause) => cause.to_string(),
                None => e.to_string(),
            };
            ApiError::new(e.kind().into(), format!("cannot mount '{dataset}': {}", plain(&why)))
        };
        if let Some(why) = open.pool.suspended() {
            let message = format!("cannot mount '{dataset}': pool is suspended: {why}");
            return Err(ApiError::new(ErrorKind::Busy, message));
        }
        let turn = self.0.mounts.turn(dataset);
        let _turn = turn.lock().await;
        if self.0.mounts.get(dataset).is_some() {
            return Ok(());
        }
        // One that was unmounted from outside gives its files back first.
        let left = self.0.mounts.lock().get(dataset).cloned();
        if let Some(left) = left {
            left.finish().await;
        }
        let fs = match plan.options.read_only {
            true => open.pool.open_file_system(dataset).await,
            false => open.pool.open_file_system_for_writing(dataset).await,
        };
        let fs = fs.map_err(|e| failed(&e))?;
        let facts = Facts {
            pool: open.pool.clone(),
            dataset: dataset.into(),
            record_size: plan.record_size,
            hub: self.hub().clone(),
        };
        let needed = self.needed_paths().await;
        let mount = fuse::mount(fs, Arc::new(facts), &plan.at, plan.options, needed).await;
        let mount = mount.map_err(|e| failed(&e))?;
        let mount = Arc::new(Placed::new(mount, plan.temporary, plan.record_size));
        self.0.mounts.lock().insert(dataset.into(), mount.clone());
        world::spawn(self.clone().watch(dataset.to_string(), mount));
        self.remember_mounts();
        Ok(())
    }

    /// What the daemon opens by its path while it runs: its home, and the devices of all pools.
    async fn needed_paths(&self) -> Vec<PathBuf> {
        let devices = self.0.pools.lock().await.devices();
        std::iter::once(self.0.config.home.dir().into()).chain(devices).collect()
    }

    /// It may be unmounted from outside: then it is given back, and not remembered.
    async fn watch(self, dataset: String, mount: Arc<Placed>) {
        mount.ended().await;
        mount.finish().await;
        let was_listed = {
            let mut all = self.0.mounts.lock();
            let is_it = all.get(&dataset).is_some_and(|listed| Arc::ptr_eq(listed, &mount));
            is_it && all.remove(&dataset).is_some()
        };
        if was_listed {
            self.remember_mounts();
        }
    }

    pub(crate) async fn unmount(&self, asked: &Unmount) -> Result<Reply> {
        let Some(what) = &asked.what else {
            return self.unmount_what_can_be(self.0.mounts.all(), asked.force).await;
        };
        let these = if what.starts_with('/') {
            let at = Path::new(what);
            let own = self.0.mounts.all().into_iter().find(|(_, mount)| mount.at() == at);
            let (dataset, _) = own.ok_or_else(|| not_mounted(what))?;
            self.0.mounts.below(&dataset)
        } else {
            if self.0.config.is_daemon {
                self.pool_with(what, Access::Look).await?;
            }
            if self.0.mounts.get(what).is_none() {
                return Err(not_mounted(what));
            }
            self.0.mounts.below(what)
        };
        self.unmount_all(these, asked.force).await?;
        Ok(Reply::Done)
    }

    /// What is mounted of a dataset and of what is below it.
    pub(crate) fn mounts_below(&self, dataset: &str) -> Vec<(String, Arc<Placed>)> {
        self.0.mounts.below(dataset)
    }

    /// Unmounts a dataset and what is below it, if they are mounted: all or none.
    pub(crate) async fn unmount_below(&self, dataset: &str, force: bool) -> Result<()> {
        self.unmount_all(self.0.mounts.below(dataset), force).await
    }

    /// The latest first, for it may lie over others. The first that is in use ends it: what was taken away by then is
    /// mounted again as it was.
    pub(crate) async fn unmount_all(&self, these: Vec<(String, Arc<Placed>)>, force: bool) -> Result<()> {
        let mut gone: Vec<(String, Arc<Placed>)> = Vec::new();
        for (dataset, mount) in latest_first(these) {
            let was_there = !mount.has_ended();
            if let Err(e) = self.unmount_one(&dataset, &mount, force).await {
                for (dataset, mount) in gone.iter().rev() {
                    self.mount_as_it_was(dataset, mount).await;
                }
                return Err(e);
            }
            if was_there {
                gone.push((dataset, mount));
            }
        }
        Ok(())
    }

    /// All but those that are in use, and what they lie on; these are told.
    async fn unmount_what_can_be(&self, these: Vec<(String, Arc<Placed>)>, force: bool) -> Result<Reply> {
        let mut problems: Vec<(PathBuf, ApiError)> = Vec::new();
        for (dataset, mount) in latest_first(these) {
            if problems.iter().any(|(above, _)| above.starts_with(mount.at())) {
                continue;
            }
            if let Err(e) = self.unmount_one(&dataset, &mount, force).await {
                problems.push((mount.at().into(), e));
            }
        }
        let Some((_, first)) = problems.first() else { return Ok(Reply::Done) };
        let all: Vec<&str> = problems.iter().map(|(_, e)| e.message.as_str()).collect();
        Err(ApiError::new(first.kind, all.join("\n")))
    }

    /// What goes wrong is said by `zfs mount`.
    async fn mount_as_it_was(&self, dataset: &str, mount: &Placed) {
        if let Ok(open) = self.pool_with(dataset, Access::Change).await {
            let _ = self.mount_one(&open, dataset, Plan::as_is(mount)).await;
        }
    }

    pub(super) async fn unmount_one(&self, dataset: &str, mount: &Arc<Placed>, force: bool) -> Result<()> {
        let turn = self.0.mounts.turn(dataset);
        let _turn = turn.lock().await;
        mount.unmount(force).await.map_err(|e| match e.kind() {
            Kind::Busy => {
                let (at, who) = (mount.at().display(), processes_at(mount.at()));
                let why = e.cause().map_or(who, |why| format!(": {why}"));
                let message = format!("cannot unmount '{at}': pool or dataset is busy{why}");
                ApiError::new(ErrorKind::Busy, message)
            }
            _ => cannot(About::Dataset, &format!("unmount '{}'", mount.at().display()), &e),
        })?;
        {
            let mut all = self.0.mounts.lock();
            // One whose requests still wait for the pool is taken off the list when they are done.
            if mount.has_finished() && all.get(dataset).is_some_and(|listed| Arc::ptr_eq(listed, mount)) {
                all.remove(dataset);
            }
        }
        self.remember_mounts();
        Ok(())
    }

    /// At the end: users of a file system get errors, and all else is kept. The next start mounts the same.
    pub(crate) async fn unmount_at_end(&self) {
        let mut all = self.0.mounts.all();
        all.sort_by_key(|(_, mount)| std::cmp::Reverse(mount.number()));
        self.0.mounts.is_ending.store(true, std::sync::atomic::Ordering::Release);
        for (dataset, mount) in all {
            let turn = self.0.mounts.turn(&dataset);
            let _turn = turn.lock().await;
            if mount.unmount(false).await.is_err() {
                // The programs that still use it get errors.
                let _ = mount.unmount(true).await;
            }
        }
    }

    /// Writes down what is mounted; a list that cannot be written is of no harm before the next start.
    pub(super) fn remember_mounts(&self) {
        if self.0.config.is_daemon && !self.0.mounts.is_ending.load(std::sync::atomic::Ordering::Acquire) {
            let all = self.0.mounts.all().into_iter().filter(|(_, mount)| !mount.has_ended());
            let all = all.map(|(dataset, mount)| {
                let known = mount.temporary().at(mount.at().display().to_string());
                (dataset, known)
            });
            let _ = self.0.config.home.remember_mounts(&all.collect());
        }
    }

    /// What was mounted when the daemon ended or was killed, and what is to be mounted by itself where that was asked for.
    /// What went wrong is said, a line for each.
    pub async fn begin_to_mount(&self) -> Vec<String> {
        let before = self.0.config.home.mounts().unwrap_or_default();
        if before.is_empty() && !self.0.config.mounts {
            return Vec::new();
        }
        if let Err(e) = fuse::can_mount() {
            return vec![format!("cannot mount file systems: {e}")];
        }
        let mut problems = Vec::new();
        let places: Vec<String> = before.values().map(|known| Temporary::of(known).0).collect();
        fuse::detach_all_dead(places).await;
        let mut plans = Vec::new();
        for (dataset, known) in &before {
            // Whatever is no more, or shall not be mounted any more, is forgotten.
            let Ok(open) = self.pool_with(dataset, Access::Change).await else { continue };
            let Ok(plan) = plan(&open, dataset).await else { continue };
            match plan.with(dataset, Temporary::of(known).1) {
                Ok(plan) => plans.push((open, dataset, plan)),
                Err(e) => problems.push(e.message),
            }
        }
        plans.sort_by(|a, b| a.2.at.cmp(&b.2.at));
        for (open, dataset, plan) in plans {
            problems.extend(self.mount_one(&open, dataset, plan).await.err().map(|e| e.message));
        }
        if self.0.config.mounts {
            // The lock is given back before a pool is asked for.
            let names = self.0.pools.lock().await.names();
            for pool in names {
                problems.extend(self.mount_below(&pool, &Mount::default()).await);
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_hides_what_is_below_it_and_none_takes_the_place_of_another_pools() {
        let hides = |new, at, mounted, there| hides((new, Path::new(at)), (mounted, Path::new(there)));
        for (new, at, mounted, there, expected) in [
            ("tank/a", "/t", "tank/b", "/t/b", true),
            ("tank/a", "/t", "tank/b", "/t", false),
            ("tank/a", "/t/a", "tank", "/t", false),
            ("lake/a", "/t", "tank/b", "/t", true),
            ("lake/a", "/t", "tank/b", "/t/b", true),
            ("lake/a", "/t/a", "tank/b", "/t", false),
            ("lake/a", "/t", "tank/b", "/tank", false),
        ] {
            assert_eq!(hides(new, at, mounted, there), expected, "{new} on {at}, {mounted} on {there}");
        }
    }
}
