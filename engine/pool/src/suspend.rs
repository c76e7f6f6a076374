//! Pools whose devices fail: suspended, and resumed by `zpool clear`; and pools that have failed for good.
//!
//! ```text
//!                what a sync needs fails           clear(): devices opened again, what they lost written again
//!   in order ─────────────────────────▶ suspended ─────────────────────────────────────────────▶ in order
//!      │                                    │
//!      │ a panic, damage, nothing free      │ closed, exported by force                what is on disk: the last txg
//!      └────────────────┬───────────────────┘                                          and the logs
//!                       ▼
//!                 failed for good ──▶ nothing is written any more; what is in memory can be read until it is closed
//! ```
//!
//! While a pool is suspended its sync stands where it is ([`zio::suspend`]), and all that is dirty stays in memory: reads
//! find it, also through a dataset that is opened anew. Requests that change something, or must be durable, do as
//! `failmode` says: with `wait` they wait for `clear`, with `continue` and `panic` they fail; a program that serves
//! several pools does not end because of one. What must be read from a device that does not answer fails, always, and
//! so do administrative changes: a command that waited would keep others waiting.
//!
//! A panic in the engine ends the sync of the pool that it happened in, and no other: everything that works for a pool runs
//! in its [`world::Domain`]. What a sync has left half done in memory is not to be trusted, so such a pool must be
//! opened again.

use crate::pool::{Pool, lock};
use dmu::Tx;
use dsl::pool_props::PoolProp;
use std::future::Future;
use std::sync::{Arc, Weak};
use units::{Error, Guid, Kind, Result};
use world::Boxed;
use world::{Domain, Panic};

/// `failmode=wait`, as it is stored.
const WAIT: u64 = 0;

impl Pool {
    /// Forgets the errors of all devices or of one, brings back those that can be used again, and lets a suspended pool go
    /// on. Waits until the txg that was being synced is on disk.
    ///
    /// # Errors
    /// `NotFound` when there is no such vdev; `Io` when a device cannot be used yet, or the pool was suspended again;
    /// `Cancelled` when it must be opened again.
    pub fn clear(&self, vdev: Option<Guid>) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let inner = &self.0;
            let doing = "clear errors";
            if inner.txgs.has_failed_for_good() {
                let why = inner.txgs.failure().unwrap_or_default();
                let advice = format!("{why}; it must be opened again: export it with -f, then import it");
                return Err(Error::new(Kind::Cancelled, doing).because(advice));
            }
            let begun = self.clear_once(vdev, doing).await;
            if begun.is_err()
                && inner.pipeline.suspension().why().is_some()
                && !inner.txgs.has_failed_for_good()
            {
                // What was under way when the errors were forgotten had met them: its sync has stopped since. It is tried
                // again with devices that are whole now.
                return self.clear_once(vdev, doing).await;
            }
            begun
        })
    }

    async fn clear_once(&self, vdev: Option<Guid>, doing: &'static str) -> Result<()> {
        let inner = &self.0;
        let missing = || Error::new(Kind::NotFound, doing).because("there is no such device in the pool");
        let away: Vec<_> = inner.tree.tops().into_iter().filter(|top| !top.is_usable()).collect();
        self.try_spares_again();
        let failed = inner.tree.clear(self.guid(), vdev).await.ok_or_else(missing)?;
        away.iter().filter(|top| top.is_usable()).for_each(|top| inner.space.set_allocatable(top.id, true));
        if inner.pipeline.suspension().why().is_some() {
            inner.pipeline.suspension().resume();
            inner.txgs.settled().await.map_err(|e| {
                let why = failed.first().map_or_else(|| e.to_string(), Error::to_string);
                Error::new(Kind::Io, doing).because(format!("the pool is suspended again: {why}"))
            })?;
        }
        if !inner.read_only {
            // What was said of the device in the configuration is taken back with the next txg.
            let take_back = move |pool: Pool, tx: Arc<Tx>| async move {
                pool.forget_faults_of_offline(vdev);
                pool.0.touch(&tx).await
            };
            self.change(doing, take_back).await?;
            self.request_resilver().await;
        }
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    /// Does what concerns this pool alone: a panic in it, or in what it starts, makes the pool fail for good, and is an
    /// error here.
    pub async fn guard<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        world::within(self.domain(), work).await.unwrap_or_else(|panic| Err(of_panic(&panic)))
    }

    /// What is told of panics in work for this pool.
    pub fn domain(&self) -> Arc<dyn Domain> {
        Arc::new(PoolDomain(Arc::downgrade(&self.0)))
    }

    /// Nothing can be written any more.
    pub(crate) fn fail(&self, why: &Error) {
        let inner = &self.0;
        if !inner.txgs.has_failed_for_good() && !inner.txgs.is_closing() {
            inner.note_problem(format!("the pool has failed, and nothing is written any more: {why}"));
        }
        inner.txgs.fail(why);
        inner.pipeline.suspension().give_up();
        self.intent_logs().iter().for_each(zil::Log::give_up);
    }

    pub(crate) fn why_given_up(&self) -> String {
        self.0.txgs.failure().unwrap_or_else(|| "the pool is being closed".into())
    }

    /// Ties the suspension to the txgs, whose waiters it concerns.
    pub(crate) fn watch_suspension(&self) {
        let pool = Arc::downgrade(&self.0);
        self.0.pipeline.suspension().watch(move |why| {
            let Some(inner) = pool.upgrade() else { return };
            match why {
                Some(why) => inner.txgs.suspend(why),
                None => inner.txgs.resume(),
            }
        });
    }

    /// Requests wait for a suspended pool, or fail, as its property says.
    pub(crate) async fn load_failmode(&self) -> Result<()> {
        let stored = self.stored_properties().await?;
        let mode = stored.get(PoolProp::FailMode.name()).and_then(dsl::props::Value::number);
        self.follow_failmode(mode.unwrap_or(WAIT));
        Ok(())
    }

    pub(crate) fn follow_failmode(&self, mode: u64) {
        self.0.txgs.set_impatient(mode != WAIT);
    }

    /// Nothing waits for devices any more: the pool is to be closed, in whatever state they are.
    pub fn hurry(&self) {
        let inner = &self.0;
        inner.txgs.set_impatient(true);
        inner.pipeline.suspension().close();
    }

    /// Why the pool is suspended, or has failed.
    pub fn suspended(&self) -> Option<String> {
        self.0.txgs.failure()
    }

    /// Waits until the txg that is being synced is on disk, or the pool is suspended.
    ///
    /// # Errors
    /// What it is suspended for, or has failed of.
    pub fn settled(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move { self.0.txgs.settled().await })
    }

    /// Waits until [`Pool::suspended`] is another than `seen`; `None` when the pool is closing.
    pub fn suspended_otherwise<'a>(&'a self, seen: &'a Option<String>) -> Boxed<'a, Option<Option<String>>> {
        Box::pin(async move { self.0.txgs.failure_otherwise(seen).await })
    }

    /// Starts work of this pool.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> world::Task<()> {
        self.spawn_on(world::this_core(), work)
    }

    /// Starts work of this pool on the loop `core`.
    pub(crate) fn spawn_on(
        &self,
        core: usize,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> world::Task<()> {
        let work = world::within(self.domain(), work);
        // The domain has been told.
        world::spawn_on(core, async move { drop(work.await) })
    }
}

#[derive(Debug)]
struct PoolDomain(Weak<crate::pool::Inner>);

impl Domain for PoolDomain {
    fn panicked(&self, panic: &Panic) {
        if let Some(inner) = self.0.upgrade() {
            lock(&inner.panics).push(panic.clone());
            Pool(inner).fail(&of_panic(panic));
        }
    }
}

/// What is to be said of a panic in the engine.
pub(crate) fn of_panic(panic: &Panic) -> Error {
    Error::new(Kind::Corrupt, "use the pool").because(panic.clone())
}
