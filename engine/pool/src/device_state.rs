//! `zpool offline` and `zpool online`, and how leaves were left, in the configuration.
//!
//! ```text
//!   offline ─▶ is anything lost without it? ─▶ txg N: closed, every write noted as missed; "offline" unless temporary
//!   online  ─▶ opened, its labels checked ─▶ txg M: the mark is gone ─▶ resilver of what it missed
//!   faulted or degraded after errors ─▶ the next txg keeps it: "faulted" or "degraded", and why
//! ```
//!
//! A log device can always be done without: its logs are emptied first, when no other copy of them is left.

use crate::attach::no_such;
use crate::pool::{Pool, lock};
use std::sync::Arc;
use units::{Error, Guid, Kind, Result};
use vdev::{Aux, Health, Leaf, Spec, State, Top};
use world::Boxed;

/// How a device is taken out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offline {
    /// Until it is brought online.
    Lasting,
    /// Until it is brought online or the pool is opened again.
    Temporary,
    /// Faulted, until its errors are cleared.
    Faulted,
    /// Faulted, until its errors are cleared or the pool is opened again.
    FaultedTemporary,
}

impl Offline {
    fn is_fault(self) -> bool {
        matches!(self, Offline::Faulted | Offline::FaultedTemporary)
    }
}

/// What a spec says of `aux_state`.
const EXTERNAL: &str = "external";
const ERRORS: &str = "err_exceeded";

impl Pool {
    /// Takes a device out of use. On return the txg that says so is on disk, and the device is closed.
    ///
    /// # Errors
    /// `Busy` when no other device has all that it has; `NotFound`; `Invalid` when it is no device.
    pub fn offline(&self, guid: Guid, how: Offline) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let pool = self.clone();
            world::spawn(async move { pool.offline_now(guid, how).await }).await
        })
    }

    async fn offline_now(&self, guid: Guid, how: Offline) -> Result<()> {
        let inner = &self.0;
        let _one_at_a_time = inner.reshaping.lock().await;
        if self.is_cache_device(guid) {
            return self.offline_cache_device(guid, how).await;
        }
        let (top, leaf) = inner.tree.find_leaf(guid).ok_or_else(|| not_a_leaf(&inner.tree.spec(), guid))?;
        if leaf.health().state == State::Offline && !how.is_fault() {
            return self.mark(guid, move |spec| spec.offline = (how == Offline::Lasting).then_some(1)).await;
        }
        let is_last_of_log = top.is_log && inner.tree.is_required(guid);
        if inner.tree.is_required(guid) && !top.is_log && !how.is_fault() {
            return Err(no_replicas());
        }
        if is_last_of_log {
            inner.space.set_allocatable(top.id, false);
            if let Err(e) = self.empty_logs().await {
                inner.space.set_allocatable(top.id, true);
                return Err(e);
            }
        }
        let closing = leaf.clone();
        let taken_out = self
            .change("offline", move |pool, tx| async move {
                pool.take_out(&top, &closing, how).await?;
                pool.update_config(|_| ());
                pool.0.touch(&tx).await
            })
            .await;
        if taken_out.is_err() && is_last_of_log && leaf.is_usable() {
            let top = inner.tree.top_of(guid);
            top.iter().for_each(|top| inner.space.set_allocatable(top.id, true));
        }
        taken_out
    }

    /// In syncing context.
    async fn take_out(&self, top: &Arc<Top>, leaf: &Arc<Leaf>, how: Offline) -> Result<()> {
        let tree = self.tree();
        let guid = leaf.guid();
        let is_required = tree.is_required(guid) && !top.is_log;
        let mark = |change: &dyn Fn(&mut Spec)| {
            tree.update_spec(|root| root.find_mut(guid).into_iter().for_each(change));
        };
        if !how.is_fault() {
            if is_required {
                return Err(no_replicas());
            }
            mark(&|spec| spec.offline = (how == Offline::Lasting).then_some(1));
            leaf.take_out(Health::new(State::Offline, Aux::None)).await;
            return Ok(());
        }
        // The only good copy is not given up: it is marked, and used on.
        let state = if is_required { State::Degraded } else { State::Faulted };
        if how == Offline::Faulted {
            mark(&|spec| {
                spec.faulted = (state == State::Faulted).then_some(1);
                spec.degraded = (state == State::Degraded).then_some(1);
                spec.aux_state = Some(EXTERNAL.into());
            });
        }
        let health = Health::new(state, Aux::External);
        match state {
            State::Faulted => leaf.take_out(health).await,
            _ => leaf.mark(health),
        }
        Ok(())
    }

    /// Brings a device back into use and has it made whole. Answers how it is then: a device that was faulted remains so
    /// until its errors are cleared, and one that is not there is UNAVAIL.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when it is no device.
    pub fn online(&self, guid: Guid) -> Boxed<'_, Result<Health>> {
        Box::pin(async move {
            let pool = self.clone();
            world::spawn(async move { pool.online_now(guid).await }).await
        })
    }

    async fn online_now(&self, guid: Guid) -> Result<Health> {
        let inner = &self.0;
        self.try_spares_again();
        let health = {
            let _one_at_a_time = inner.reshaping.lock().await;
            if self.is_cache_device(guid) {
                return self.online_cache_device(guid).await;
            }
            let (top, leaf) =
                inner.tree.find_leaf(guid).ok_or_else(|| not_a_leaf(&inner.tree.spec(), guid))?;
            let before = leaf.health();
            if before.state != State::Faulted {
                // What could not be opened is said in its state.
                let _ = inner.tree.bring_back(self.guid(), guid).await;
            }
            if top.is_usable() {
                inner.space.set_allocatable(top.id, true);
            }
            let is_back = leaf.is_usable();
            self.mark(guid, move |spec| {
                spec.offline = None;
                if is_back {
                    (spec.removed, spec.not_present) = (None, None);
                }
            })
            .await?;
            self.note_return(guid).await?;
            leaf.health()
        };
        self.request_resilver().await;
        Ok(health)
    }

    /// Looks at all devices again, spares and caches too, as after work on the cables: those that went away and are back are
    /// used again, and those that give no sign of life are known to be gone before a request meets them. What an
    /// administrator took out of use stays so.
    ///
    /// # Errors
    /// `Io` when the pool takes no changes. A device that is not there is no error: its state says so.
    pub fn reopen(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let pool = self.clone();
            world::spawn(async move {
                pool.try_spares_again();
                for leaf in pool.tree().leaves() {
                    match leaf.health().state {
                        State::Offline | State::Faulted => {}
                        State::Online | State::Degraded => {
                            // What is well stays open; what is not is opened anew.
                            let _one_at_a_time = pool.0.reshaping.lock().await;
                            let _ = pool.tree().bring_back(pool.guid(), leaf.guid()).await;
                        }
                        _ => drop(pool.online_now(leaf.guid()).await?),
                    }
                }
                {
                    let _one_at_a_time = pool.0.reshaping.lock().await;
                    pool.load_side_devices(None).await;
                    pool.give_spares_back().await;
                }
                pool.request_resilver().await;
                Ok(())
            })
            .await
        })
    }

    /// The original of a spare is back: when it is whole, the spare is to go.
    async fn note_return(&self, guid: Guid) -> Result<()> {
        let spec = self.tree().spec();
        let is_original = spec.parent_of(guid).is_some_and(|group| {
            group.vdev_type == vdev::VdevType::Spare && group.children.first().is_some_and(|c| c.guid == guid)
        });
        let is_back = self.tree().find_leaf(guid).is_some_and(|(_, leaf)| leaf.is_usable());
        match is_original && is_back {
            true => self.mark(guid, |spec| spec.set_unspare(true)).await,
            false => Ok(()),
        }
    }

    /// Changes what the configuration says of a leaf, with the next txg.
    pub(crate) async fn mark(
        &self,
        guid: Guid,
        change: impl FnOnce(&mut Spec) + Send + 'static,
    ) -> Result<()> {
        self.change("change the configuration", move |pool, tx| async move {
            pool.tree().update_spec(|root| root.find_mut(guid).map(change));
            pool.update_config(|_| ());
            pool.0.touch(&tx).await
        })
        .await
    }

    /// Keeps in the configuration how leaves are that failed or recovered by themselves. In syncing context, before the
    /// configuration is written.
    pub(crate) fn note_states(&self) {
        let inner = &self.0;
        let mut spec = inner.tree.spec();
        let mut is_changed = false;
        for leaf in inner.tree.leaves() {
            let (health, Some(own)) = (leaf.health(), spec.find_mut(leaf.guid())) else { continue };
            let (faulted, degraded, removed) = match (health.state, health.aux) {
                (State::Faulted, Aux::ErrorsExceeded) => (Some(1), None, None),
                (State::Degraded, Aux::ErrorsExceeded) => (None, Some(1), None),
                (State::Removed, _) => (None, None, Some(1)),
                (State::Online, _) => (None, None, None),
                _ => continue,
            };
            let aux = (faulted.or(degraded)).map(|_| ERRORS.to_string());
            if (own.faulted, own.degraded, own.removed, &own.aux_state) != (faulted, degraded, removed, &aux)
            {
                (own.faulted, own.degraded, own.removed, own.aux_state) = (faulted, degraded, removed, aux);
                is_changed = true;
            }
        }
        if is_changed {
            inner.tree.update_spec(|own| *own = spec);
            self.update_config(|_| ());
        }
    }

    /// Of devices that are offline nothing else is kept once their errors are cleared: all of them, or one. In syncing
    /// context.
    pub(crate) fn forget_faults_of_offline(&self, of: Option<Guid>) {
        let inner = &self.0;
        let is_it = |leaf: &&Arc<Leaf>| of.is_none_or(|guid| guid == leaf.guid());
        let leaves = inner.tree.leaves();
        for leaf in leaves.iter().filter(is_it).filter(|leaf| leaf.health().state == State::Offline) {
            let is_kept = |spec: &Spec| spec.faulted.or(spec.degraded).is_some() || spec.aux_state.is_some();
            if inner.tree.spec().find(leaf.guid()).is_some_and(is_kept) {
                inner.tree.update_spec(|root| {
                    if let Some(own) = root.find_mut(leaf.guid()) {
                        (own.faulted, own.degraded, own.aux_state) = (None, None, None);
                    }
                });
                self.update_config(|_| ());
            }
        }
    }

    /// Has devices brought up to date as soon as what they miss is behind: an administrator waits for it, so it does not
    /// rest. A scrub gives way.
    pub(crate) async fn request_resilver(&self) {
        if self.missing_span().is_none() {
            // What was whole at once may let another one go.
            if let Err(e) = self.release_devices().await {
                self.0.note_problem(e.at("devices that are not needed any more"));
            }
            return;
        }
        self.0.scrub.want_resilver();
        for _ in 0..=TXGS_BEHIND {
            let is_behind = self.missing_span().is_none_or(|(_, last)| last <= lock(&self.0.uberblock).txg);
            if is_behind
                || self.change("resilver", |pool, tx| async move { pool.0.touch(&tx).await }).await.is_err()
            {
                break;
            }
        }
        self.consider_resilver();
    }
}

/// A device misses at most so many txgs ahead of the one being synced; and one to see it.
const TXGS_BEHIND: u32 = 4;

fn no_replicas() -> Error {
    Error::new(Kind::Busy, "offline").because("no valid replicas")
}

fn not_a_leaf(spec: &Spec, guid: Guid) -> Error {
    match spec.find(guid) {
        Some(group) => Error::invalid(format!("{} is a group of devices; name one of them", group.name())),
        None => no_such(),
    }
}
