//! The stream of events: what happened to pools, in OpenZFS's classes, for `zpool events` and over REST.
//!
//! ```text
//!   create, import, online, attach, add, ... ───────────────▶ Events::post ─▶ the newest, bounded, each with a number
//!   a look at each pool: every two seconds, ─▶ Seen::note ─▶ ┘                     └▶ since(number)
//!   when it is asked for events, before it goes
//! ```
//!
//! Events of one device and one kind that come between two looks are one event, with the counters as they are by then. The
//! stream is kept in memory: it begins with the daemon. What must outlast that is elsewhere: data errors in the pool's error
//! log, deeds in its history.

use crate::appliance::Appliance;
use crate::pools::seen::{CLOSED, Trims, leaves, of_pool, of_vdev};
use api::{DataErrors, Reply};
use pool::{Pool, PoolReport, Sweep};
use std::time::Duration;
use units::Guid;

/// How long a request for events waits for a look at the pools: a pool whose devices do not answer is not waited for.
const LOOK_MAX: Duration = Duration::from_secs(1);

impl Appliance {
    pub(crate) async fn events(&self, since: u64) -> Reply {
        let look = async { self.look_for_events(&self.look_at_pools().await) };
        let _ = world::timeout(LOOK_MAX, look).await;
        Reply::Events(self.0.events.since(since))
    }

    pub(crate) async fn clear_events(&self) -> Reply {
        let look = async { self.look_for_events(&self.look_at_pools().await) };
        let _ = world::timeout(LOOK_MAX, look).await;
        Reply::Count(self.0.events.clear())
    }

    /// The pools that are open, as they are now.
    pub(crate) async fn look_at_pools(&self) -> Vec<Look> {
        let pools: Vec<Pool> = self.0.pools.lock().await.opened().cloned().collect();
        let mut looks = Vec::new();
        for pool in &pools {
            looks.push(self.look_at_pool(pool).await);
        }
        looks
    }

    async fn look_at_pool(&self, pool: &Pool) -> Look {
        let look = Look::at(pool);
        Look { errors: self.data_errors(pool).await, ..look }
    }

    /// Tells what is new in the pools, all of which are here.
    pub(crate) fn look_for_events(&self, looks: &[Look]) {
        let guids: Vec<Guid> = looks.iter().map(|look| look.report.guid).collect();
        self.0.watch.seen().forget_all_but(&guids);
        looks.iter().for_each(|look| self.note_look(look));
    }

    fn note_look(&self, look: &Look) {
        let told = self.0.watch.seen().note(&look.report, &look.errors, &look.trims);
        for (class, fields) in told {
            tracing::debug!("pool {}: {class}", look.report.name);
            self.0.events.post(&class, fields);
        }
    }

    /// Tells of a pool that is about to go, as long as there is something to tell of. It is a new one when it comes back.
    pub(crate) async fn look_for_the_last_time(&self, pool: &Pool) {
        let look = async { self.note_look(&self.look_at_pool(pool).await) };
        let _ = world::timeout(LOOK_MAX, look).await;
    }

    /// Tells that a pool has come or gone: `pool_create`, `pool_import`, `pool_export` or `pool_destroy`; or that its set of
    /// devices is another one.
    pub(crate) fn post_pool_event(&self, what: &str, pool: &Pool) {
        if ["pool_export", "pool_destroy"].contains(&what) {
            self.0.watch.seen().forget(pool.guid());
        }
        self.0.events.post(&format!("sysevent.fs.zfs.{what}"), of_pool(&pool.name(), pool.guid()));
        if ["pool_create", "pool_import"].contains(&what) {
            // What happens from now on is news.
            self.note_look(&Look::at(pool));
        }
    }

    /// Tells what was done to a device of a pool.
    pub(crate) fn post_vdev_event(&self, what: &str, pool: &Pool, guid: Guid, path: &str) {
        let status = pool.tree().status();
        let found = leaves(&status).into_iter().find(|leaf| leaf.guid == guid);
        let vdev = of_vdev(guid, found.map_or(CLOSED, |leaf| leaf.health.word()), Some(path));
        let fields = of_pool(&pool.name(), pool.guid()).into_iter().chain(vdev).collect();
        self.0.events.post(&format!("sysevent.fs.zfs.{what}"), fields);
        // What left by itself meanwhile, as a device does whose replacement was quick, is still to be told of.
        if what.starts_with("vdev_remove") {
            self.settle_events(pool);
        }
    }

    /// Devices that have left the pool by now are not told of any more.
    pub(crate) fn settle_events(&self, pool: &Pool) {
        let there = pool.tree().leaves().iter().map(|leaf| leaf.guid()).collect();
        self.0.watch.seen().settle(pool.guid(), &there);
    }
}

/// A pool at one moment.
pub(crate) struct Look {
    pub report: PoolReport,
    pub errors: DataErrors,
    trims: Trims,
}

impl Look {
    /// All but its data errors.
    fn at(pool: &Pool) -> Look {
        let report = pool.report();
        let leaves = pool.tree().leaves().into_iter().map(|leaf| leaf.guid());
        let trims = leaves.map(|guid| (guid, pool.sweep(guid, Sweep::Trim))).collect();
        Look { report, errors: DataErrors::default(), trims }
    }
}
