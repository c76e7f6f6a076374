//! `zpool export` and `zpool destroy`: giving a pool up.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::{Access, is_damage};
use api::{ApiError, ErrorKind, Reply, Result};
use disk::Volumes;
use units::{Error, Kind};

impl Appliance {
    pub(crate) async fn export_pool(&self, name: &str, force: bool, by: &By) -> Result<Reply> {
        self.give_up(name, force, "export", by).await
    }

    pub(crate) async fn destroy_pool(&self, name: &str, force: bool, by: &By) -> Result<Reply> {
        self.give_up(name, force, "destroy", by).await
    }

    async fn give_up(&self, name: &str, force: bool, verb: &str, by: &By) -> Result<Reply> {
        loop {
            if let Some(done) = self.give_up_what_is_there(name, force, verb, by).await? {
                return Ok(done);
            }
        }
    }

    /// `None` when the pool was on its way, out or in: what has this name by now is another matter.
    async fn give_up_what_is_there(
        &self,
        name: &str,
        force: bool,
        verb: &str,
        by: &By,
    ) -> Result<Option<Reply>> {
        let doing = format!("{verb} '{name}'");
        let open = match self.pool(name, Access::Change).await {
            Ok(open) => open,
            Err(e) if self.is_leaving(name).await => {
                // A request to destroy it is not answered with success: it may only be exported.
                if verb == "destroy" {
                    return Err(e);
                }
                drop(self.0.turns.of(name).await);
                return Ok(None);
            }
            // A pool whose devices are gone is forgotten; there is nothing to write that to.
            Err(_) if self.known(name).await.is_some() && verb == "export" => return self.forget(name).await,
            Err(e) if e.kind == ErrorKind::NotFound => return Err(e),
            Err(e) => {
                return Err(ApiError::new(
                    e.kind,
                    e.message.replacen("cannot open", &format!("cannot {verb}"), 1),
                ));
            }
        };
        if verb == "destroy" && open.known.read_only {
            return Err(cannot(About::Pool, &doing, &Error::new(Kind::ReadOnly, "destroy pool")));
        }
        if let Some(why) = open.pool.suspended().filter(|_| !force) {
            let message = format!(
                "cannot {doing}: pool is suspended: {why}; mend its devices and use 'zpool clear {name}', or '-f' to leave \
                 it as it is on disk: what was not flushed is lost"
            );
            return Err(ApiError::new(ErrorKind::Busy, message));
        }
        // By force it goes without what its devices do not take; clients must not wait for them.
        if open.pool.suspended().is_some() {
            open.pool.hurry();
        }
        if !force {
            // Where that is so, no client is turned away.
            self.free_volumes(name, false, &doing).await?;
        }
        let _closed = self.close_pool_to_clients(name);
        self.free_volumes(name, force, &doing).await?;
        if open.pool.suspended().is_none() {
            let left = self.0.volumes.used_below(name);
            self.check_ended(&left, &format!("cannot {doing}: pool is busy")).await?;
        }
        self.unmount_below(name, force).await?;
        let failed = |e: &Error| cannot(About::Pool, &doing, e);
        let _turn = self.0.turns.of(name).await;
        // It may have gone, or come back as another one, while this waited.
        let open = self.pool(name, Access::Change).await?;
        self.look_for_the_last_time(&open.pool).await;
        let is_suspended = open.pool.suspended().is_some();
        if !is_suspended {
            // What waits for a device that does not answer waits here, where the pool can still be asked for.
            // A pool in which the note of it has no place, as metadata is damaged, would otherwise be here for ever.
            let recorded = self.record(&open.pool, by).await;
            recorded.or_else(|e| if is_damage(&e) { Ok(()) } else { Err(failed(&e)) })?;
            let _ = open.pool.sync().await;
        }
        self.0.pools.lock().await.begin_to_leave(name);
        let left = if verb == "destroy" { open.pool.destroy().await } else { open.pool.export().await };
        self.post_pool_event(if verb == "destroy" { "pool_destroy" } else { "pool_export" }, &open.pool);
        // Whatever became of the labels, the pool is closed, and what has its name next is another one.
        self.0.volumes.forget(name);
        let mut pools = self.0.pools.lock().await;
        pools.remove(name);
        let gone = if verb == "destroy" { "destroyed" } else { "exported" };
        let kept = self.remember_done(&pools, &format!("'{name}' is {gone}"));
        match left {
            // That is what was asked for.
            Err(_) if is_suspended && verb == "export" => kept,
            left => left.map_err(|e| failed(&e)).and(kept),
        }?;
        Ok(Some(Reply::Done))
    }

    async fn is_leaving(&self, name: &str) -> bool {
        self.0.pools.lock().await.is_leaving(name)
    }

    /// Of a pool that cannot be opened; `None` when one with this name is open by now.
    async fn forget(&self, name: &str) -> Result<Option<Reply>> {
        let _turn = self.0.turns.of(name).await;
        let mut pools = self.0.pools.lock().await;
        if !pools.remove_closed(name) {
            return Ok(None);
        }
        self.remember_done(&pools, &format!("'{name}' is forgotten"))?;
        Ok(Some(Reply::Done))
    }

    /// Makes sure that no client uses the volumes of a pool; with force, by ending their sessions.
    async fn free_volumes(&self, pool: &str, force: bool, doing: &str) -> Result<()> {
        let below = |volumes: &Volumes| volumes.used_below(pool);
        let used = if force { below(&self.0.volumes) } else { self.left_in_use(below).await };
        if used.is_empty() {
            return Ok(());
        }
        if !force {
            let message = format!(
                "cannot {doing}: pool is busy: clients use {}; use '-f' to end them",
                self.with_users(&used).await
            );
            return Err(ApiError::new(ErrorKind::Busy, message));
        }
        self.disconnect(&used).await;
        Ok(())
    }
}
