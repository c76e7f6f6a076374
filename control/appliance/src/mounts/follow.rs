//! Datasets that come, change and go while file systems are mounted.
//!
//! ```text
//!   zfs set, inherit ──▶ of each mount at and below the dataset: what is it, what should it be?
//!       │ the same          stays
//!       │ other flags       changed in place, whatever uses it and is mounted below it
//!       └ another place,    taken away with all that is mounted below it, the latest first ──▶ mounted, the highest first
//!         or none, or ACLs     └ one is in use ─┐                                └ one cannot be ─┐
//!                              back as they were ◀────────────────────────────────────────────────┘
//! ```
//!
//! What cannot be at once holds when the file system is mounted the next time; that is told in one message for all, after
//! all that can be has been done. The property is set in any case.
//!
//! Invariant: what was mounted is mounted afterwards, as it was or as it should be, unless it should not be or is said not
//! to be.

use super::plan::{Plan, plan};
use super::state::Placed;
use super::temporary::Temporary;
use crate::appliance::Appliance;
use crate::error_text::{About, cannot};
use crate::in_use::processes_at;
use crate::pools::{Access, Open};
use api::{ApiError, ErrorKind, Mount, Result};
use fuse::Options;
use std::path::Path;
use std::sync::Arc;
use units::Kind;

/// A mount that has to be taken away.
struct Leaving {
    dataset: String,
    mount: Arc<Placed>,
    open: Open,
    /// What it is afterwards, if it is mounted.
    now: Option<Plan>,
    /// It goes for the sake of what it lies on, and is itself as it should be.
    is_aside: bool,
}

/// What of the properties does not hold yet, and why.
#[derive(Default)]
struct Later {
    datasets: Vec<String>,
    why: Vec<ApiError>,
}

impl Later {
    fn add<'a>(&mut self, datasets: impl IntoIterator<Item = &'a str>, why: ApiError) {
        self.datasets.extend(datasets.into_iter().map(String::from));
        self.why.push(why);
    }

    fn told(self) -> Result<()> {
        let Some(first) = self.why.first() else { return Ok(()) };
        let why: Vec<&str> = self.why.iter().map(|why| why.message.as_str()).collect();
        let mut names: Vec<String> = self.datasets.iter().map(|name| format!("'{name}'")).collect();
        names.sort();
        names.dedup();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let message = format!(
            "property is set, and holds when {} {verb} mounted the next time: {}",
            names.join(", "),
            why.join("; ")
        );
        Err(ApiError::new(first.kind, message))
    }
}

/// Which of the mounts, told by place and number, have to be taken away for those marked: in groups, each of one and what
/// lies on it, the latest first.
fn groups(mounts: &[(&Path, u64, bool)]) -> Vec<Vec<usize>> {
    let lies_on = |upper: usize, lower: usize| {
        let ((at, number, _), (there, before, _)) = (mounts[upper], mounts[lower]);
        number > before && at.starts_with(there)
    };
    let all = 0..mounts.len();
    let marked: Vec<usize> = all.clone().filter(|one| mounts[*one].2).collect();
    let lowest = marked.iter().filter(|one| !marked.iter().any(|other| lies_on(**one, *other)));
    let group = |lowest: &usize| {
        let mut group: Vec<usize> =
            all.clone().filter(|one| one == lowest || lies_on(*one, *lowest)).collect();
        group.sort_by_key(|one| std::cmp::Reverse(mounts[*one].1));
        group
    };
    lowest.map(group).collect()
}

impl Appliance {
    /// Mounts what has just come, where the daemon mounts by itself; what went wrong is said in one line.
    pub(crate) async fn mount_new(&self, dataset: &str) -> Option<String> {
        if !self.0.config.mounts || !self.0.config.is_daemon {
            return None;
        }
        if let Err(e) = fuse::can_mount() {
            return Some(format!("'{dataset}' is not mounted: {e}"));
        }
        let problems = self.mount_below(dataset, &Mount::default()).await;
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    /// These properties of a dataset were set: what is mounted at and below it becomes as they say now.
    pub(crate) async fn remount(&self, dataset: &str, set: &[String]) -> Result<()> {
        let following = self.0.mounts.following(dataset);
        let _following = following.lock().await;
        let (mut later, mut leaving) = (Later::default(), Vec::new());
        for (name, mount) in self.0.mounts.below(dataset) {
            if mount.has_ended() {
                continue;
            }
            if name == dataset && mount.was_set(set) {
                self.remember_mounts();
            }
            match self.follow(&name, mount).await {
                Ok(goes) => leaving.extend(goes),
                Err(e) => later.add([name.as_str()], e),
            }
        }
        if !leaving.is_empty() {
            self.mount_anew(leaving, &mut later).await;
        }
        later.told()
    }

    /// Changes in place what can be; the mount, if more is needed.
    async fn follow(&self, name: &str, mount: Arc<Placed>) -> Result<Option<Leaving>> {
        let open = self.pool_with(name, Access::Change).await?;
        let now = match plan(&open, name).await {
            Ok(plan) => Some(plan.with(name, mount.temporary())?),
            // It is not to be mounted any more.
            Err(e) if e.kind == ErrorKind::Invalid => None,
            Err(e) => return Err(e),
        };
        if let Some(now) = &now {
            let changed = self.change_in_place(&open, name, &mount, &now.options).await;
            if now.at == mount.at() {
                match changed {
                    Ok(()) if is_as(&mount.options(), &now.options) => return Ok(None),
                    Err(e) if e.kind == ErrorKind::Busy => return Err(e),
                    // A new mount may do it.
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(Some(Leaving { dataset: name.into(), mount, open, now, is_aside: false }))
    }

    /// As far as a mount can come to have these options while it is used.
    async fn change_in_place(&self, open: &Open, name: &str, mount: &Placed, now: &Options) -> Result<()> {
        let before = mount.options();
        let Options { source, posix_acl, over_io_uring, .. } = before.clone();
        let now = Options { source, posix_acl, over_io_uring, ..now.clone() };
        if now == before || !mount.can_become(&now) {
            return Ok(());
        }
        let doing = format!("change '{}'", mount.at().display());
        let for_writing = match before.read_only && !now.read_only {
            true => Some(open.pool.open_file_system_for_writing(name).await),
            false => None,
        };
        let for_writing = for_writing.transpose().map_err(|e| cannot(About::Dataset, &doing, &e))?;
        mount.change(&now, for_writing).await.map_err(|e| match e.kind() {
            Kind::Busy => {
                let (why, who) =
                    (e.cause().map_or(String::new(), |why| format!(": {why}")), processes_at(mount.at()));
                ApiError::new(ErrorKind::Busy, format!("cannot {doing}: pool or dataset is busy{why}{who}"))
            }
            _ => cannot(About::Dataset, &doing, &e),
        })
    }

    /// Takes mounts away, and mounts as it should be.
    async fn mount_anew(&self, leaving: Vec<Leaving>, later: &mut Later) {
        let mut leaving: Vec<Option<Leaving>> = leaving.into_iter().map(Some).collect();
        let mut all = self.0.mounts.all();
        all.retain(|(_, mount)| !mount.has_ended());
        let which = |mount: &Arc<Placed>, leaving: &[Option<Leaving>]| {
            leaving.iter().position(|one| one.as_ref().is_some_and(|one| Arc::ptr_eq(&one.mount, mount)))
        };
        let told: Vec<_> = all
            .iter()
            .map(|(_, mount)| (mount.at(), mount.number(), which(mount, &leaving).is_some()))
            .collect();
        for group in groups(&told) {
            let mut these = Vec::new();
            let mut failed = None;
            for one in group {
                let (dataset, mount) = &all[one];
                if let Some(at) = which(mount, &leaving) {
                    these.extend(leaving[at].take());
                    continue;
                }
                match self.pool_with(dataset, Access::Change).await {
                    Ok(open) => these.push(Leaving {
                        dataset: dataset.clone(),
                        mount: mount.clone(),
                        open,
                        now: Some(Plan::as_is(mount)),
                        is_aside: true,
                    }),
                    Err(e) => failed = Some(e),
                }
            }
            match failed {
                Some(e) => later.add(changing(&these), e),
                None => self.mount_group_anew(these, later).await,
            }
        }
    }

    /// Those that lie on each other, the latest first.
    async fn mount_group_anew(&self, these: Vec<Leaving>, later: &mut Later) {
        let mut gone = 0;
        for one in &these {
            if let Err(e) = self.unmount_one(&one.dataset, &one.mount, false).await {
                later.add(changing(&these), e);
                break;
            }
            gone += 1;
        }
        if gone < these.len() {
            for one in these[..gone].iter().rev() {
                self.put_back(one, later).await;
            }
            return;
        }
        let mut these: Vec<Leaving> = these.into_iter().rev().collect();
        // As they lay on each other, where the place is the same.
        these.sort_by_key(|one| one.now.as_ref().map(|now| now.at.clone()));
        let mut refused: Vec<std::path::PathBuf> = Vec::new();
        let mut back = Vec::new();
        for one in these {
            let Some(now) = &one.now else { continue };
            let mounted = match refused.iter().any(|at| now.at.starts_with(at)) {
                true => None,
                false => Some(self.mount_moved(&one, now).await),
            };
            match mounted {
                Some(Ok(())) => continue,
                Some(Err(e)) => {
                    refused.push(now.at.clone());
                    later.add([one.dataset.as_str()], e);
                }
                None => later.datasets.extend(changing([&one]).map(String::from)),
            }
            back.push(one);
        }
        back.sort_by_key(|one| one.mount.number());
        for one in &back {
            self.put_back(one, later).await;
        }
    }

    async fn mount_moved(&self, one: &Leaving, now: &Plan) -> Result<()> {
        if now.at != one.mount.at() {
            self.check_hides_none(&one.dataset, &now.at, now.temporary.overlay)?;
        }
        self.mount_one(&one.open, &one.dataset, now.clone()).await
    }

    /// Mounts what was taken away as it was.
    async fn put_back(&self, one: &Leaving, later: &mut Later) {
        if let Err(e) = self.mount_one(&one.open, &one.dataset, Plan::as_is(&one.mount)).await {
            later.add([one.dataset.as_str()], e);
        }
    }

    /// Something is done for which nothing of a dataset may be mounted. What was mounted is given back, for
    /// [`Appliance::mount_renamed`]; when one is in use, all are mounted as before.
    pub(crate) async fn unmount_for_now(
        &self,
        dataset: &str,
        force: bool,
    ) -> Result<Vec<(String, Temporary)>> {
        self.forget_snapshot(dataset).await;
        let these = self.0.mounts.below(dataset);
        let mounted: Vec<(String, Temporary)> = these
            .iter()
            .filter(|(_, mount)| !mount.has_ended())
            .map(|(name, mount)| (name.clone(), mount.temporary()))
            .collect();
        self.unmount_all(these, force).await?;
        Ok(mounted)
    }

    /// Mounts again, under the new name, what was unmounted for now.
    pub(crate) async fn mount_renamed(&self, from: &str, to: &str, mounted: Vec<(String, Temporary)>) {
        let mut plans = Vec::new();
        for (name, temporary) in mounted {
            let renamed = format!("{to}{}", name.strip_prefix(from).unwrap_or_default());
            if let Ok(open) = self.pool_with(&renamed, Access::Change).await
                && let Ok(plan) = plan(&open, &renamed).await
                && let Ok(plan) = plan.with(&renamed, temporary)
            {
                plans.push((open, renamed, plan));
            }
        }
        plans.sort_by(|a, b| a.2.at.cmp(&b.2.at));
        for (open, renamed, plan) in plans {
            // It was renamed all the same; 'zfs mount' says what is wrong.
            if self.check_hides_none(&renamed, &plan.at, plan.temporary.overlay).is_ok() {
                let _ = self.mount_one(&open, &renamed, plan).await;
            }
        }
    }

    /// A snapshot goes, or gets another name: its files are not served any more.
    pub(crate) async fn forget_snapshot(&self, name: &str) {
        if let Some((dataset, snapshot)) = name.split_once('@')
            && let Some(mount) = self.0.mounts.get(dataset)
        {
            mount.forget_snapshot(snapshot).await;
        }
    }
}

/// Whether a mount is as it should be. What it may be mounted over was asked once.
fn is_as(is: &Options, now: &Options) -> bool {
    *is == Options { overlay: is.overlay, ..now.clone() }
}

/// Those whose properties do not hold while they stay.
fn changing<'a>(these: impl IntoIterator<Item = &'a Leaving>) -> impl Iterator<Item = &'a str> {
    these.into_iter().filter(|one| !one.is_aside).map(|one| one.dataset.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon of another user than root changes nothing in place: each that had been put back was mounted anew.
    #[test]
    fn a_mount_that_was_put_back_is_as_it_should_be() {
        let asked = Options { overlay: false, ..Options::new("tank/a") };
        assert!(is_as(&Options { overlay: true, ..asked.clone() }, &asked));
        assert!(!is_as(&Options { atime: false, ..asked.clone() }, &asked));
    }

    #[test]
    fn what_lies_on_a_mount_that_goes_is_taken_away_before_it() {
        let check = |mounts: &[(&str, u64, bool)], expected: &[&[usize]]| {
            let mounts: Vec<_> = mounts.iter().map(|(at, n, marked)| (Path::new(*at), *n, *marked)).collect();
            assert_eq!(groups(&mounts), expected, "{mounts:?}");
        };
        check(&[("/t", 1, false), ("/t/a", 2, false)], &[]);
        check(&[("/t", 1, true), ("/t/a", 2, false), ("/t/a/b", 3, false), ("/u", 4, false)], &[&[2, 1, 0]]);
        // Siblings go by themselves, and what is below another.
        check(&[("/t", 1, false), ("/t/a", 2, true), ("/t/b", 3, true), ("/t/ab", 4, false)], &[&[1], &[2]]);
        check(&[("/t", 1, true), ("/t/a", 2, true), ("/t/a/b", 3, true)], &[&[2, 1, 0]]);
        // What it was mounted over stays, and what is over it goes.
        check(&[("/t", 5, true), ("/t/a", 2, false), ("/t", 6, false)], &[&[2, 0]]);
    }
}
