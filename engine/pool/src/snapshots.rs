//! Snapshots, clones and what is done with them: one change at a time, each in one sync task.
//!
//! ```text
//!   snapshot a@s, b@s   ─▶ queue for turns ─▶ the txg's last task ─▶ all of one moment, or none
//!   rollback a@s        ─▶ … ─▶ newer snapshots and their clones go, then the head's tree is the snapshot's
//! ```
//!
//! They take turns for whole txgs: what a snapshot holds ends with its txg, and blocks that were born in it after the
//! snapshot would count as the snapshot's.

use crate::pool::Pool;
use crate::tasks::Order;
use dmu::Tx;
use dsl::props::{PropName, Value};
use dsl::{ClosedToOpeners, DestroyPlan, DestroySpec, NewClone};
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Kind, Result};
use world::Boxed;

/// How long readers of a snapshot that is to go may take to give it up.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a rollback may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollbackReach {
    /// Over newer snapshots, which go.
    pub newer: bool,
    /// Over clones of these, which go too.
    pub clones: bool,
}

impl Pool {
    /// As [`Pool::change`], after all other tasks of the txg, and alone of its kind in it.
    async fn change_branches<T, F>(
        &self,
        doing: &str,
        work: impl FnOnce(Pool, Arc<Tx>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let _one_at_a_time = self.0.branching.lock().await;
        self.queue(doing, Order::Last, work).await
    }

    /// Takes snapshots of several datasets, of one moment: everything that was acknowledged before is in them.
    pub fn snapshot(&self, names: Vec<String>, props: Vec<(PropName, Value)>) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            self.change_branches("snapshot", move |pool, tx| async move {
                pool.dsl().snapshot_all(&tx, &names, &props).await.map(drop)
            })
            .await
        })
    }

    /// Destroys what a plan for `spec` says at the time; answers the plan. `Busy` if one of its snapshots is open, and not
    /// given up for [`PATIENCE`].
    pub fn destroy_datasets(&self, spec: DestroySpec) -> Boxed<'_, Result<DestroyPlan>> {
        Box::pin(async move {
            let _closed = self.close_and_wait(async { self.dsl().plan_destroy_of(&spec).await }).await?;
            self.change_branches("destroy", move |pool, tx| async move {
                let plan = pool.dsl().plan_destroy_of(&spec).await?;
                pool.dsl().destroy(&tx, &plan).await?;
                Ok(plan)
            })
            .await
        })
    }

    /// Closes to openers what a plan says that will go, and waits for those that have snapshots of it open. The plan is made
    /// again when it is carried out: what is wrong with it is said then.
    async fn close_and_wait(
        &self,
        plan: impl Future<Output = Result<DestroyPlan>>,
    ) -> Result<Option<ClosedToOpeners>> {
        // Where nothing is open there is nothing to wait for, and no plan is made twice.
        if !self.dsl().has_open_snapshots() {
            return Ok(None);
        }
        let closed = {
            let _reading = self.reading().await;
            let Ok(plan) = plan.await else { return Ok(None) };
            self.dsl().close_to_openers(&plan.all()).await?
        };
        self.dsl().wait_unused(&closed, PATIENCE).await;
        Ok(Some(closed))
    }

    /// Makes the dataset `name`, which begins as the snapshot `origin`.
    pub fn clone_snapshot<'a>(
        &'a self,
        origin: &'a str,
        name: &'a str,
        props: Vec<(PropName, Value)>,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let (origin, name) = (origin.to_string(), name.to_string());
            self.change_branches("clone", move |pool, tx| async move {
                let new = NewClone { origin: &origin, name: &name, props: &props };
                pool.dsl().clone_snapshot(&tx, &new).await.map(drop)
            })
            .await
        })
    }

    pub fn promote<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let name = name.to_string();
            self.change_branches(
                "promote",
                move |pool, tx| async move { pool.dsl().promote(&tx, &name).await },
            )
            .await
        })
    }

    /// What a rollback would destroy, in order; an error that names what it must not.
    pub fn plan_rollback<'a>(
        &'a self,
        dataset: &'a str,
        snapshot: &'a str,
        reach: RollbackReach,
    ) -> Boxed<'a, Result<DestroyPlan>> {
        Box::pin(async move {
            let dsl = self.dsl();
            dsl.check_rollback(dataset, snapshot).await?;
            let newer = dsl.snapshots_after(dataset, snapshot).await?;
            if !newer.is_empty() && !reach.newer && !reach.clones {
                let why =
                    format!("more recent snapshots exist: {}; use -r to destroy them", newer.join(", "));
                return Err(Error::new(Kind::Busy, format!("roll back to '{snapshot}'")).because(why));
            }
            let spec = DestroySpec { names: newer, clones: reach.clones, ..DestroySpec::default() };
            dsl.plan_destroy_of(&spec).await
        })
    }

    /// Takes a dataset back to one of its snapshots, or to what it was cloned from. All that was written since is gone.
    /// It must not be open.
    pub fn rollback<'a>(
        &'a self,
        dataset: &'a str,
        snapshot: &'a str,
        reach: RollbackReach,
    ) -> Boxed<'a, Result<DestroyPlan>> {
        Box::pin(async move {
            let _closed = self.close_and_wait(self.plan_rollback(dataset, snapshot, reach)).await?;
            let (dataset, snapshot) = (dataset.to_string(), snapshot.to_string());
            self.change_branches("rollback", move |pool, tx| async move {
                pool.dsl().check_unused(&dataset).await?;
                let plan = pool.plan_rollback(&dataset, &snapshot, reach).await?;
                pool.dsl().destroy(&tx, &plan).await?;
                pool.dsl().rollback(&tx, &dataset, &snapshot).await?;
                Ok(plan)
            })
            .await
        })
    }

    /// Renames the snapshots `from` of a dataset and of all below it.
    pub fn rename_snapshots<'a>(&'a self, from: &'a str, to: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let (from, to) = (from.to_string(), to.to_string());
            self.change_branches("rename", move |pool, tx| async move {
                pool.dsl().rename_snapshots(&tx, &from, &to).await
            })
            .await
        })
    }

    pub fn hold<'a>(&'a self, names: Vec<String>, tag: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let tag = tag.to_string();
            self.change_branches(
                "hold",
                move |pool, tx| async move { pool.dsl().hold(&tx, &names, &tag).await },
            )
            .await
        })
    }

    /// Takes a hold off. `Busy` if a snapshot that goes with its last hold is open, as [`Pool::destroy_datasets`].
    pub fn release<'a>(&'a self, names: Vec<String>, tag: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let going = async {
                let names = self.dsl().going_with_hold(&names, tag).await?;
                Ok(DestroyPlan { names, ..DestroyPlan::default() })
            };
            let _closed = self.close_and_wait(going).await?;
            let tag = tag.to_string();
            self.change_branches("release", move |pool, tx| async move {
                pool.dsl().release(&tx, &names, &tag).await
            })
            .await
        })
    }
}
