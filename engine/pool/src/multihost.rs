//! Whether another host has the pool: signs of life (the property `multihost`), and waiting for them.
//!
//! ```text
//!   owner     every zfs_multihost_interval / devices     the last uberblock, with the time and a number, into the last
//!                                                        slot of one label of one device, others each time
//!             none written for so many intervals         the pool is given up: another host may have taken it
//!
//!   opener    exported, the same host, no multihost      opened at once
//!             else: watched for `patience`               a newer uberblock: refused, even by force;  none: opened
//! ```
//!
//! What is written and how long is waited are those of OpenZFS, so either program keeps the other from a pool in use.
//! Two hosts that watch a silent pool at the same time do not wait equally long: the later one sees the earlier one's
//! first sign.
//!
//! Not here: two processes of one host. They lock their devices, and labels name the process (`control`).

mod state;

pub(crate) use state::Multihost;

use crate::open::OpenOptions;
use crate::pool::{Host, Pool, lock};
use crate::uberblocks::{look_at, states};
use dsl::pool_props::PoolProp;
use dsl::props::Value;
use ondisk::{PoolState, Uberblock};
use state::Beat;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Error, Kind, Result};
use vdev::Tree;
use vdev::label::config::PoolConfig;
use vdev::scan::Candidate;
use world::Boxed;
use world::sync::Event;

/// How often an uberblock is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// What an uberblock says of its owner's patience is believed up to this.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

impl Pool {
    /// Begins to give signs of life if the pool's property says so.
    pub(crate) async fn load_multihost(&self) -> Result<()> {
        let value = self.stored_number(PoolProp::MultiHost).await?;
        self.set_multihost(value == Some(1)).await
    }

    pub(crate) async fn set_multihost(&self, on: bool) -> Result<()> {
        if !on {
            self.0.multihost.stop().await;
            return Ok(());
        }
        self.check_multihost()?;
        self.0.multihost.on.store(true, Ordering::Release);
        let stop = Arc::new(Event::new());
        let mut beat = lock(&self.0.multihost.beat);
        if beat.is_none() {
            let task = world::spawn(self.clone().beat(stop.clone()));
            *beat = Some(Beat { stop, task });
        }
        Ok(())
    }

    pub(crate) fn check_multihost(&self) -> Result<()> {
        let (id, name) = self.config().host.unwrap_or_default();
        Host::new(id, name).check_number()
    }

    async fn beat(self, stop: Arc<Event>) {
        let inner = &self.0;
        let mut last = world::now();
        let (mut second, mut sequence) = (0, 0u16);
        loop {
            let interval = Duration::from_millis(inner.tunables.get(Tunable::MultihostInterval));
            let leaves = inner.tree.leaves().iter().filter(|l| l.is_usable()).count().max(1);
            if world::timeout(interval / leaves as u32, stop.wait()).await.is_some() {
                return;
            }
            // A pool that was given up gives no signs: another host may take it. One that is suspended may go on, and
            // gives them for as long as it can.
            if inner.txgs.has_failed_for_good() {
                continue;
            }
            let now = world::wall_clock().seconds;
            sequence = if now == second { sequence.saturating_add(1) } else { 1 };
            second = now;
            let mut uberblock = lock(&inner.uberblock).clone();
            uberblock.timestamp = now;
            uberblock.mmp = Some(inner.multihost.sign(&inner.tunables, sequence));
            let written = inner.tree.write_heartbeat(&uberblock).await;
            let silence = world::now().since(last);
            let fails = inner.tunables.get(Tunable::MultihostFailIntervals) as u32;
            match written {
                Ok(()) => {
                    inner.multihost.delay.store(silence.as_nanos() as u64, Ordering::Relaxed);
                    last = world::now();
                }
                Err(e) if fails > 0 && silence > interval * fails => {
                    let e = Error::new(Kind::Io, "tell other hosts that the pool is in use").because(e);
                    inner.note_problem(format!("the pool is given up: {e}"));
                    inner.txgs.fail(&e);
                    inner.pipeline.suspension().give_up();
                }
                Err(_) => {}
            }
        }
    }

    /// What is stored for a property of the pool, if it was ever set.
    pub(crate) async fn stored_number(&self, prop: PoolProp) -> Result<Option<u64>> {
        Ok(self.stored_properties().await?.get(prop.name()).and_then(Value::number))
    }
}

/// Refuses a pool that another host gives signs of life in.
pub(crate) async fn check(
    tree: &Tree,
    seen: &Uberblock,
    label: &PoolConfig,
    options: &OpenOptions,
) -> Result<()> {
    let Some(patience) = patience(seen, label, options.host.id, &options.tunables) else { return Ok(()) };
    let more = patience.as_millis() as u64 / 4;
    let patience = patience + Duration::from_millis(world::random_u64() % more.max(1));
    if !watch(tree, seen, patience).await? {
        return Ok(());
    }
    let host = label.host.as_ref().map_or("another host", |(_, name)| name);
    let why =
        format!("it is in use on '{host}' (multihost=on): export it there first; -f does not change that");
    Err(Error::new(Kind::Busy, "open").because(why))
}

/// How long the pool is watched before it is opened; `None`: not at all. Pure.
fn patience(seen: &Uberblock, label: &PoolConfig, host: u64, tunables: &Tunables) -> Option<Duration> {
    let mmp = seen.mmp.filter(|mmp| mmp.delay_ns != 0)?;
    let is_ours = label.host.as_ref().is_some_and(|(id, _)| *id != 0 && *id == host);
    if label.state != PoolState::Active || is_ours {
        return None;
    }
    let intervals = tunables.get(Tunable::MultihostImportIntervals);
    let own = Duration::from_millis(tunables.get(Tunable::MultihostInterval));
    let said = Duration::from_millis(mmp.interval_ms.unwrap_or(0).into());
    let delay = Duration::from_nanos(mmp.delay_ns);
    let theirs = match mmp.fail_intervals {
        // After that it is suspended; twice, because its clock is not ours.
        Some(fails) if fails > 0 => said * u32::from(fails) * 2,
        _ => (said.max(own) + delay.min(PATIENCE_MAX)) * intervals as u32,
    };
    Some(theirs.max(own * intervals as u32).min(PATIENCE_MAX))
}

/// Whether an uberblock newer than `seen` appears on the devices within `patience`.
async fn watch(tree: &Tree, seen: &Uberblock, patience: Duration) -> Result<bool> {
    let until = world::now().after(patience);
    loop {
        let left = until.since(world::now());
        world::sleep(left.min(LOOK)).await;
        if states(tree, None).await?.newest.is_newer_than(seen) {
            return Ok(true);
        }
        if left <= LOOK {
            return Ok(false);
        }
    }
}

/// Whether something writes to the pool: a newer uberblock appears on its devices within `patience`. Nothing is written.
///
/// # Errors
/// No device has an uberblock.
pub fn is_active(candidate: &Candidate, patience: Duration) -> Boxed<'_, Result<bool>> {
    Box::pin(async move {
        let tree = look_at(candidate).await?;
        let seen = states(&tree, None).await?.newest;
        watch(&tree, &seen, patience).await
    })
}
