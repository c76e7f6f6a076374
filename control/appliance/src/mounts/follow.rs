//! Datasets that come, change and go while file systems are mounted.

use super::plan::plan;
use crate::appliance::Appliance;
use crate::pools::Access;
use api::{ApiError, ErrorKind, Mount, Result};

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

    /// Properties at or below a dataset were changed: what is mounted is mounted as they say now.
    pub(crate) async fn remount(&self, dataset: &str) -> Result<()> {
        for (name, mount) in self.0.mounts.below(dataset) {
            let open = self.pool_with(&name, Access::Change).await?;
            // Without a place it is not mounted any more.
            let now = plan(&open, &name).await.ok();
            let stays =
                now.as_ref().is_some_and(|now| now.at == mount.at() && now.options == mount.options());
            if stays || mount.has_ended() {
                continue;
            }
            self.unmount_these(vec![(name.clone(), mount.clone())], false).await.map_err(|e| {
                let message = format!("property is set, and holds when '{name}' is mounted the next time");
                let busy = format!("{message}: {}", e.message);
                ApiError::new(e.kind, if e.kind == ErrorKind::Busy { busy } else { e.message })
            })?;
            if let Some(now) = now {
                self.mount_one(&open, &name, now).await?;
            }
        }
        Ok(())
    }

    /// A dataset gets another name: what is mounted of it is unmounted, and its names, as they were, are given back.
    pub(crate) async fn unmount_to_rename(&self, dataset: &str, force: bool) -> Result<Vec<String>> {
        self.forget_snapshot(dataset).await;
        let these = self.0.mounts.below(dataset);
        let names: Vec<String> =
            these.iter().filter(|(_, mount)| !mount.has_ended()).map(|(name, _)| name.clone()).collect();
        if let Err(busy) = self.unmount_these(these, force).await {
            // What is below the busy one was unmounted before it.
            let gone = |name: &&String| self.0.mounts.get(name).is_none_or(|mount| mount.has_ended());
            let gone: Vec<String> = names.iter().filter(gone).cloned().collect();
            self.mount_renamed(dataset, dataset, &gone).await;
            return Err(busy);
        }
        Ok(names)
    }

    /// Mounts again, under the new name, what was unmounted to be renamed.
    pub(crate) async fn mount_renamed(&self, from: &str, to: &str, names: &[String]) {
        for name in names {
            let renamed = format!("{to}{}", name.strip_prefix(from).unwrap_or_default());
            if let Ok(open) = self.pool_with(&renamed, Access::Change).await
                && let Ok(plan) = plan(&open, &renamed).await
            {
                // It was renamed all the same; 'zfs mount' says what is wrong.
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
