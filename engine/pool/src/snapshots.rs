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
use dsl::{DestroyPlan, DestroySpec, NewClone};
use std::sync::Arc;
use units::{Error, Kind, Result};

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
    pub async fn snapshot(&self, names: Vec<String>, props: Vec<(PropName, Value)>) -> Result<()> {
        self.change_branches("snapshot", move |pool, tx| async move {
            pool.dsl().snapshot_all(&tx, &names, &props).await.map(drop)
        })
        .await
    }

    /// Destroys what a plan for `spec` says at the time; answers the plan.
    pub async fn destroy_datasets(&self, spec: DestroySpec) -> Result<DestroyPlan> {
        self.change_branches("destroy", move |pool, tx| async move {
            let plan = pool.dsl().plan_destroy_of(&spec).await?;
            pool.dsl().destroy(&tx, &plan).await?;
            Ok(plan)
        })
        .await
    }

    /// Makes the dataset `name`, which begins as the snapshot `origin`.
    pub async fn clone_snapshot(
        &self,
        origin: &str,
        name: &str,
        props: Vec<(PropName, Value)>,
    ) -> Result<()> {
        let (origin, name) = (origin.to_string(), name.to_string());
        self.change_branches("clone", move |pool, tx| async move {
            let new = NewClone { origin: &origin, name: &name, props: &props };
            pool.dsl().clone_snapshot(&tx, &new).await.map(drop)
        })
        .await
    }

    pub async fn promote(&self, name: &str) -> Result<()> {
        let name = name.to_string();
        self.change_branches("promote", move |pool, tx| async move { pool.dsl().promote(&tx, &name).await })
            .await
    }

    /// What a rollback would destroy, in order; an error that names what it must not.
    pub async fn plan_rollback(
        &self,
        dataset: &str,
        snapshot: &str,
        reach: RollbackReach,
    ) -> Result<DestroyPlan> {
        let dsl = self.dsl();
        dsl.check_rollback(dataset, snapshot).await?;
        let newer = dsl.snapshots_after(dataset, snapshot).await?;
        if !newer.is_empty() && !reach.newer && !reach.clones {
            let why = format!("more recent snapshots exist: {}; use -r to destroy them", newer.join(", "));
            return Err(Error::new(Kind::Busy, format!("roll back to '{snapshot}'")).because(why));
        }
        let spec = DestroySpec { names: newer, clones: reach.clones, ..DestroySpec::default() };
        dsl.plan_destroy_of(&spec).await
    }

    /// Takes a dataset back to one of its snapshots, or to what it was cloned from. All that was written since is gone.
    /// It must not be open.
    pub async fn rollback(&self, dataset: &str, snapshot: &str, reach: RollbackReach) -> Result<DestroyPlan> {
        let (dataset, snapshot) = (dataset.to_string(), snapshot.to_string());
        self.change_branches("rollback", move |pool, tx| async move {
            pool.dsl().check_unused(&dataset).await?;
            let plan = pool.plan_rollback(&dataset, &snapshot, reach).await?;
            pool.dsl().destroy(&tx, &plan).await?;
            pool.dsl().rollback(&tx, &dataset, &snapshot).await?;
            Ok(plan)
        })
        .await
    }

    /// Renames the snapshots `from` of a dataset and of all below it.
    pub async fn rename_snapshots(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (from.to_string(), to.to_string());
        self.change_branches("rename", move |pool, tx| async move {
            pool.dsl().rename_snapshots(&tx, &from, &to).await
        })
        .await
    }

    pub async fn hold(&self, names: Vec<String>, tag: &str) -> Result<()> {
        let tag = tag.to_string();
        self.change_branches("hold", move |pool, tx| async move { pool.dsl().hold(&tx, &names, &tag).await })
            .await
    }

    pub async fn release(&self, names: Vec<String>, tag: &str) -> Result<()> {
        let tag = tag.to_string();
        self.change_branches(
            "release",
            move |pool, tx| async move { pool.dsl().release(&tx, &names, &tag).await },
        )
        .await
    }
}
