//! Sync tasks: administrative changes, made inside of a txg's sync.
//!
//! ```text
//!   change(task) ─▶ queued with a hold on the open txg ─▶ … ─▶ run in the first pass of its sync, one after another
//!       ▲                                                                    │
//!       └──────────── the result, once the txg is on disk ◀──────────────────┘
//! ```
//!
//! Tasks that snapshot what the others may still change come last.
//!
//! While the pool is suspended no task is taken. One that was taken before waits with its txg, and is done when the pool
//! goes on; its caller is told so, and does not wait.
//!
//! A task that fails has changed nothing: it checks all it can before its first change. Its txg syncs all the same.

use crate::pool::{Pool, lock};
use dmu::Tx;
use std::sync::{Arc, Mutex};
use units::{Error, Kind, Result, Txg};
use world::sync::oneshot;
use world::{Boxed, Pending};

type Task = Box<dyn FnOnce(Pool, Arc<Tx>) -> Pending<()> + Send>;

/// More than any change of a pool's structures takes.
const AMPLE: u64 = 8 << 20;
/// What is dirty is on disk after one txg, and what it freed is free two txgs later.
const RIPE_AFTER: usize = 3;

/// Tasks that wait for their txg.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Vec<Queued>>);

struct Queued {
    txg: Txg,
    order: Order,
    task: Task,
}

/// What is special about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Any,
    /// It runs after all others of its txg.
    Last,
    /// Readers of the MOS see what it changed when the txg is on disk, and not before.
    Unseen,
}

/// The tasks of one txg, in order.
pub(crate) struct Due {
    pub tasks: Vec<Task>,
    /// One of them is to be unseen until the txg is on disk.
    pub unseen: bool,
}

impl Tasks {
    pub fn take(&self, txg: Txg) -> Due {
        let mut tasks = lock(&self.0);
        let (mut now, later): (Vec<Queued>, Vec<Queued>) =
            std::mem::take(&mut *tasks).into_iter().partition(|queued| queued.txg == txg);
        *tasks = later;
        now.sort_by_key(|queued| queued.order == Order::Last);
        let unseen = now.iter().any(|queued| queued.order == Order::Unseen);
        Due { tasks: now.into_iter().map(|queued| queued.task).collect(), unseen }
    }
}

impl Pool {
    /// Runs `work` in syncing context and returns its result when the txg it changed is on disk.
    pub async fn change<T, F>(
        &self,
        doing: &str,
        work: impl FnOnce(Pool, Arc<Tx>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.queue(doing, Order::Any, work).await
    }

    /// As [`Pool::change`]. [`Pool::reading`] waits until the txg is on disk: what is shown was not lost with the power.
    pub async fn change_unseen<T, F>(
        &self,
        doing: &str,
        work: impl FnOnce(Pool, Arc<Tx>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.queue(doing, Order::Unseen, work).await
    }

    /// As [`Pool::change`], in this order.
    pub(crate) async fn queue<T, F>(
        &self,
        doing: &str,
        order: Order,
        work: impl FnOnce(Pool, Arc<Tx>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (send, receive) = oneshot::channel();
        let task: Task = Box::new(move |pool, tx| {
            Box::pin(async move {
                // The caller may be gone: the change is made all the same.
                let _ = send.send(work(pool, tx).await);
            })
        });
        self.run_in_sync(doing, order, task).await?;
        receive.await.unwrap_or_else(|_| Err(Error::new(Kind::Cancelled, doing.to_string())))
    }

    /// Waits until a sync has run `task` and is on disk. Apart from what differs with each change.
    fn run_in_sync<'a>(&'a self, doing: &'a str, order: Order, task: Task) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            if self.0.read_only {
                return Err(
                    Error::new(Kind::ReadOnly, doing.to_string()).at(format!("pool '{}'", self.name()))
                );
            }
            // What waited here would keep others waiting, `clear` among them.
            if let Some(why) = self.suspended() {
                return Err(
                    Error::new(Kind::Io, doing.to_string()).because(format!("the pool is suspended: {why}"))
                );
            }
            self.let_ripen().await;
            let hold = self.0.txgs.begin_unthrottled();
            let txg = hold.txg();
            lock(&self.0.tasks.0).push(Queued { txg, order, task });
            hold.dirtied(1);
            drop(hold);
            self.0.txgs.wait_synced_unless_suspended(txg).await.map_err(|e| {
                match self.0.txgs.has_failed_for_good() {
                    true => e,
                    false => Error::new(e.kind(), doing)
                        .because(format!("{e}; it is begun, and is done when the pool goes on")),
                }
            })?;
            self.follow_properties().await;
            Ok(())
        })
    }

    /// Where there is little room, lets what was freed become free: the change would be refused for want of it, and
    /// admitted some txgs later.
    async fn let_ripen(&self) {
        let inner = &self.0;
        for _ in 0..RIPE_AFTER {
            let (dirty, ripening) = (inner.txgs.dirty_bytes(), inner.ripening());
            let available = inner.dsl.available_to_all().await.unwrap_or(u64::MAX);
            let is_ample = available > ripening.saturating_add(dirty.saturating_mul(3)).saturating_add(AMPLE);
            if is_ample || dirty + ripening == 0 {
                return;
            }
            // The change itself says what a suspended pool waits for.
            if inner.txgs.wait_synced_unless_suspended(inner.txgs.open_txg()).await.is_err() {
                return;
            }
        }
    }
}
