//! The pools there are, and opening and closing them.
//!
//! ```text
//!             remembered ──▶ Closed ──▶ for questions (read-only)
//!                              │  ▲              │ something is to be changed
//!   create, import ────────────┼──┼──▶ Open ◀────┘
//!                              ▼  │
//!                            Failed: why; tried again when next needed
//! ```

mod add;
mod altroot;
mod cache_state;
mod clear;
pub(crate) mod create;
mod data_errors;
mod describe;
mod devices;
mod event_ring;
mod events;
mod export;
pub(crate) mod features;
mod handle_device;
mod history;
pub(crate) mod host;
mod import;
mod importable;
mod journal;
mod labelclear;
pub(crate) mod open_elsewhere;
mod reguid;
mod remove;
mod scrub;
mod seen;
mod set;
mod split;
mod state;
mod sweep;
mod updates;
pub(crate) mod vdevs;

pub(crate) use create::new_of_ours;
pub(crate) use event_ring::Events;
pub(crate) use state::{Access, Failed, Open, Pools, Watch, devices_of};

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot, estranged, lacking, no_such_pool, why};
use crate::home::Known;
use api::{ApiError, Reply, Result};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use open_elsewhere::Opener;
use pool::{OpenOptions, Pool};
use state::State;
use std::time::Duration;
use units::{Error, Kind, Txg};
use vdev::{Aux, Candidate, Device, Health, Lacking};
use world::OpenMode;

/// How long after the start of the program a device that a process has is tried again, and how often.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same where no process is known that has it: what a killed one wrote is on its way for as long as the device takes.
const PATIENCE_WITH_DEVICES: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(50);
/// So many pools are opened side by side when the daemon starts.
const OPENED_AT_ONCE: usize = 8;

/// What helps a pool whose devices went on without one another.
const KEEP_ONE: &str = "take away those that are not to be kept, and 'zpool clear' opens the pool with the others; or 'zpool export' it, \
    and 'zpool import -f' copies the newest state over the others";

fn failed(e: &Error, vdevs: Option<api::Vdev>) -> Failed {
    match lacking(e) {
        Some(Lacking { lines, tree }) => Failed {
            why: "too few of its devices can be used".into(),
            unusable: lines.clone(),
            // What the pool knows of itself is better than what the labels that are left tell.
            vdevs: tree.as_ref().map(vdevs::of_status).or(vdevs),
        },
        None if let Some(estranged) = estranged(e) => Failed {
            why: estranged.summary(),
            unusable: estranged.lines().chain([KEEP_ONE.to_string()]).collect(),
            vdevs,
        },
        None => {
            // Of one that is damaged the labels would tell that all is well.
            let vdevs = vdevs.filter(|_| !is_damage(e));
            Failed { why: why(About::Pool, e), unusable: Vec::new(), vdevs }
        }
    }
}

/// What there is to say of each device of a pool when none of them belongs to it any more.
async fn none_found(devices: &[String]) -> Lacking {
    let mut lines = Vec::new();
    for path in devices {
        let bad_label = || vdev::complaint(path, Health::new(vdev::State::CannotOpen, Aux::BadLabel), None);
        lines.push(why_not_open(path).await.unwrap_or_else(bad_label));
    }
    Lacking { lines, tree: None }
}

/// What there is to say of a device that cannot be opened.
async fn why_not_open(path: &str) -> Option<String> {
    let e = Device::whole(path).open(OpenMode::ReadOnly).await.err()?;
    let health = Health::new(vdev::State::CannotOpen, Aux::OpenFailed);
    Some(vdev::complaint(path, health, Some(&e.to_string())))
}

/// What cannot be read may be on a device that is away, and in its place is one that is behind: then the first thing to say
/// is not that the pool is lost.
async fn unless_away(e: Error, devices: &[String]) -> Error {
    if !is_damage(&e) {
        return e;
    }
    let mut lines = Vec::new();
    for path in devices {
        lines.extend(why_not_open(path).await);
    }
    if lines.is_empty() {
        e
    } else {
        Error::new(Kind::Io, "open pool").because(Lacking { lines, tree: None })
    }
}

/// Something that cannot be read any more, however often it is asked for.
fn is_damage(e: &Error) -> bool {
    matches!(e.kind(), Kind::Checksum | Kind::Corrupt)
}

/// Another process that has one of the devices.
fn process_of(devices: &[String]) -> Option<u32> {
    let owners = devices.iter().filter_map(|d| open_elsewhere::of(d.as_ref()));
    owners.into_iter().find(|pid| *pid != std::process::id())
}

/// The process that has one of the devices, when that is why they could not be opened.
pub(crate) fn busy(e: Error, devices: &[String]) -> Error {
    if !matches!(e.kind(), Kind::Io | Kind::Busy) {
        return e;
    }
    match process_of(devices) {
        Some(pid) => Error::new(Kind::Busy, "open pool").because(format!("pool is in use by process {pid}")),
        None => e,
    }
}

/// Whether the pool has a dataset, snapshot or bookmark of this name.
pub(crate) async fn exists(pool: &Pool, name: &str) -> units::Result<bool> {
    let _reading = pool.reading().await;
    pool.dsl().exists(name).await
}

/// How a pool is opened.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub read_only: bool,
    /// Under another name from now on.
    pub name: Option<String>,
    /// That name is for here only.
    pub is_temporary: bool,
    pub force: bool,
    pub missing_log: bool,
    pub copy_over: bool,
    /// As it was in this txg, for reading only.
    pub txg: Option<u64>,
}

impl Appliance {
    /// The pool, open for what it is needed for.
    pub(crate) async fn pool(&self, name: &str, access: Access) -> Result<Open> {
        if let Some(open) = self.0.pools.lock().await.ready(name, access)? {
            return Ok(open);
        }
        // It is opened once, and no other pool waits for its devices.
        let _turn = self.0.openings.of(name).await;
        let known = {
            let mut pools = self.0.pools.lock().await;
            if let Some(open) = pools.ready(name, access)? {
                return Ok(open);
            }
            pools.begin_to_open(name)?
        };
        let only_looking = access == Access::Look && !self.0.config.is_daemon && !known.read_only;
        let opened = self.open_known(&known, only_looking).await;
        let mut pools = self.0.pools.lock().await;
        match opened {
            Ok(open) if pools.end_to_open(name, Ok(&open)) => Ok(open),
            Ok(open) => {
                drop(pools);
                // Nothing was changed in it.
                let _ = open.pool.close().await;
                Err(no_such_pool(name))
            }
            Err((e, vdevs)) => {
                pools.end_to_open(name, Err(failed(&e, vdevs)));
                Err(cannot(About::Pool, &format!("open '{name}'"), &e))
            }
        }
    }

    /// The pools as they are now, for a look that may wait for devices.
    pub(crate) async fn pools_now(&self) -> Pools {
        self.0.pools.lock().await.clone()
    }

    /// The pool that a dataset is in.
    pub(crate) async fn pool_of(&self, dataset: &str, access: Access) -> Result<Open> {
        let name = dataset.split(['/', '@', '#']).next().unwrap_or(dataset);
        if !self.0.pools.lock().await.contains(name) {
            let message = format!("cannot open '{dataset}': dataset does not exist");
            return Err(ApiError::new(api::ErrorKind::NotFound, message));
        }
        self.pool(name, access).await
    }

    /// The pool that a dataset is in, which is there.
    pub(crate) async fn pool_with(&self, dataset: &str, access: Access) -> Result<Open> {
        let open = self.pool_of(dataset, access).await?;
        let failed = |e: &Error| cannot(About::Dataset, &format!("open '{dataset}'"), e);
        match exists(&open.pool, dataset).await.map_err(|e| failed(&e))? {
            true => Ok(open),
            false => Err(failed(&Error::new(Kind::NotFound, "open dataset"))),
        }
    }

    /// What cannot be opened comes with what its devices say of its vdevs.
    async fn open_known(
        &self,
        known: &Known,
        only_looking: bool,
    ) -> Result<Open, (Error, Option<api::Vdev>)> {
        let devices = known.devices.iter().map(Device::whole).collect();
        let found = pool::scan(devices).await;
        let is_it = |c: &Candidate| c.guid().0 == known.guid || Some(c.guid().0) == known.next_guid;
        let Some(candidate) = found.into_iter().find(is_it) else {
            let lacking = Error::new(Kind::Io, "open pool").because(none_found(&known.devices).await);
            return Err((lacking, Some(vdevs::of_nothing(&known.devices))));
        };
        let read_only = known.read_only || only_looking;
        // The new name of a pool that is imported read-only is not in its labels.
        let name = (known.read_only || known.temporary).then(|| known.name.clone());
        let opening = || Opening {
            read_only,
            name: name.clone(),
            is_temporary: known.temporary,
            force: true,
            missing_log: false,
            copy_over: false,
            txg: known.txg,
        };
        let runs = || match open_elsewhere::opener(candidate.config.process.as_deref()) {
            Opener::Runs(pid) if !read_only && candidate.config.state == ondisk::PoolState::Active => {
                Some(pid)
            }
            _ => None,
        };
        let open = || async {
            match runs() {
                Some(pid) => {
                    let who = format!("pool is in use by process {pid}");
                    Err(Error::new(Kind::Busy, "open pool").because(who))
                }
                None => self.open_candidate(&candidate, opening()).await,
            }
        };
        let mut opened = open().await;
        // A process that was just killed may hold the devices a moment longer, and its writes for longer than that.
        while opened.as_ref().is_err_and(|e| e.kind() == Kind::Busy) {
            let is_in_use = runs().or_else(|| process_of(&known.devices)).is_some();
            let patience = if is_in_use { PATIENCE } else { PATIENCE_WITH_DEVICES };
            if world::now().since(self.0.started) >= patience {
                break;
            }
            world::sleep(RETRY).await;
            opened = open().await;
        }
        let pool = match opened {
            Ok(pool) => pool,
            Err(e) => {
                let e = unless_away(busy(e, &known.devices), &known.devices).await;
                return Err((e, Some(vdevs::of_candidate(&candidate))));
            }
        };
        let (devices, name, guid) = (devices_of(&pool), pool.name(), pool.guid().0);
        let known = Known { devices, name, guid, next_guid: None, ..known.clone() };
        Ok(Open::new(pool, known, only_looking))
    }

    pub(crate) async fn open_candidate(&self, candidate: &Candidate, how: Opening) -> units::Result<Pool> {
        let options = self.open_options(&how);
        match (how.txg, how.name) {
            (Some(txg), _) => pool::open_at(candidate, options, Some(Txg(txg))).await,
            (None, Some(name)) if how.is_temporary => pool::open_as(candidate, options, name).await,
            (None, _) => pool::open(candidate, options).await,
        }
    }

    pub(crate) fn open_options(&self, how: &Opening) -> OpenOptions {
        OpenOptions {
            read_only: how.read_only,
            name: how.name.clone(),
            host: self.0.host.clone(),
            force: how.force,
            missing_log: how.missing_log,
            copy_over: how.copy_over,
            cache: self.0.cache.clone(),
            hub: self.0.hub.clone(),
            tunables: self.0.tunables.clone(),
        }
    }

    /// Opens whatever can be opened; the rest is shown as unavailable.
    pub(crate) async fn open_all(&self) {
        let names = self.0.pools.lock().await.names();
        let open = |name: String| async move {
            let _ = self.pool(&name, Access::Change).await;
        };
        stream::iter(names).for_each_concurrent(OPENED_AT_ONCE, open).await;
        let opened: Vec<Pool> = self.0.pools.lock().await.opened().cloned().collect();
        for pool in opened {
            // They are in the way of nothing; the next start tries again.
            let _ = self.remove_half_copies(&pool).await;
        }
    }

    /// Closes every pool; they stay imported.
    pub async fn stop(&self) -> Result<()> {
        self.end_analytics().await;
        self.end_schedules().await;
        self.end_journal().await;
        // Programs that wait for a suspended pool get errors: it will not be cleared any more.
        let opened: Vec<Pool> = self.0.pools.lock().await.opened().cloned().collect();
        opened.iter().filter(|pool| pool.suspended().is_some()).for_each(Pool::hurry);
        self.unmount_at_end().await;
        self.0.migrations.cancel(|_| true).await;
        let (mut outcome, leaving) = {
            let mut pools = self.0.pools.lock().await;
            let outcome = self.remember_at_end(&pools);
            let leaving: Vec<(String, Pool)> = pools
                .names()
                .into_iter()
                .filter_map(|name| pools.begin_to_leave(&name).map(|pool| (name, pool)))
                .collect();
            (outcome, leaving)
        };
        // Side by side: one whose devices do not answer keeps no other from its end.
        let close = |(name, pool): (String, Pool)| async move {
            let closed = pool.close().await;
            self.0.pools.lock().await.is_closed(&name);
            closed.map_err(|e| cannot(About::Pool, &format!("close '{name}'"), &e))
        };
        for closed in join_all(leaving.into_iter().map(close)).await {
            outcome = outcome.and(closed);
        }
        outcome
    }

    /// Writes down which devices a pool has by now.
    pub(crate) async fn note_devices(&self, name: &str) -> Result<()> {
        let mut pools = self.0.pools.lock().await;
        pools.note_devices(name);
        self.remember(&pools)
    }

    /// Writes down which pools there are.
    pub(crate) fn remember(&self, pools: &Pools) -> Result<()> {
        let kept = self.0.config.home.remember(pools.known());
        kept.map_err(|e| {
            ApiError::new(e.kind().into(), format!("cannot remember which pools are imported: {e}"))
        })
    }

    /// As [`Appliance::remember`], after a change that is not taken back. `done`: which, for the error.
    pub(crate) fn remember_done(&self, pools: &Pools, done: &str) -> Result<()> {
        self.remember(pools).map_err(|e| {
            let message = format!(
                "{done}, but the next start does not know it: {}; the next change of pools, or an orderly end, writes it",
                e.message
            );
            ApiError::new(e.kind, message)
        })
    }

    /// Writes down what could not be written when pools were changed.
    fn remember_at_end(&self, pools: &Pools) -> Result<()> {
        match self.0.config.home.pools() {
            Ok(kept) if kept != pools.known() => self.remember(pools),
            _ => Ok(()),
        }
    }

    /// Those named, or all.
    pub(crate) async fn names_or_all(&self, names: &[String]) -> Vec<String> {
        if names.is_empty() { self.0.pools.lock().await.names() } else { names.to_vec() }
    }

    /// What is known of a pool, open or not, with the reason when it cannot be opened.
    pub(crate) async fn known(&self, name: &str) -> Option<(Known, Option<Failed>)> {
        let pools = self.0.pools.lock().await;
        let entry = pools.0.get(name)?;
        let why = match &entry.state {
            State::Failed(failed) => Some(Failed::clone(failed)),
            _ => None,
        };
        Some((entry.known.clone(), why))
    }

    /// Records a command line in a pool's history.
    pub(crate) async fn record(&self, pool: &Pool, by: &By) -> units::Result<()> {
        let (line, uid) = (by.command.clone(), by.uid);
        if line.is_empty() || pool.is_read_only() {
            return Ok(());
        }
        pool.change("record history", move |pool, tx| async move {
            pool.dsl().record_command(&tx, &line, uid).await
        })
        .await
    }

    pub(crate) async fn sync_pools(&self, names: &[String]) -> Result<Reply> {
        for name in self.names_or_all(names).await {
            let open = self.pool(&name, Access::Change).await?;
            open.pool.sync().await.map_err(|e| cannot(About::Pool, &format!("sync '{name}'"), &e))?;
        }
        Ok(Reply::Done)
    }
}
