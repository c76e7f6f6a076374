//! Closing a pool: leaving it for the next opener, which may do so at once.
//!
//! A pool that is suspended, or becomes it on the way, is closed as it is on disk: with its last txg and its logs, which
//! have all that was promised. Closing never waits for a device to come back.

use crate::pool::Pool;
use ondisk::PoolState;
use units::Result;
use world::Boxed;

impl Pool {
    /// Syncs all there is and stops. The pool stays this machine's; its devices are closed on return.
    pub fn close(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let inner = &self.0;
            if inner.read_only {
                self.let_go().await;
                return Ok(());
            }
            self.come_to_rest().await;
            let synced = inner.txgs.sync().await;
            self.stop().await;
            synced
        })
    }

    /// Gives the pool up: labels say that any host may import it. Its devices are closed on return.
    pub fn export(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move { self.leave(PoolState::Exported).await })
    }

    /// Gives the pool and all its data up.
    pub fn destroy(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move { self.leave(PoolState::Destroyed).await })
    }

    async fn leave(&self, state: PoolState) -> Result<()> {
        let inner = &self.0;
        if inner.read_only {
            self.let_go().await;
            return Ok(());
        }
        self.come_to_rest().await;
        let doing = if state == PoolState::Exported { "export" } else { "destroy" };
        // A change of nothing, so that the txg is not an empty one and writes the labels.
        let left = self
            .change(doing, move |pool, tx| async move {
                pool.update_config(|config| config.state = state);
                pool.0.touch(&tx).await
            })
            .await;
        self.stop().await;
        left
    }

    /// Ends what works beside the clients, so that the next txg is the last.
    async fn come_to_rest(&self) {
        self.hurry();
        self.stop_device_watch().await;
        self.halt_rebuilds().await;
        self.halt_scrub().await;
        self.halt_error_scrub().await;
        self.stop_healer().await;
        self.halt_sweeps().await;
        self.retire_logs().await;
    }

    /// Ends what is under way, without a last txg.
    pub(crate) async fn stop(&self) {
        self.hurry();
        self.stop_autotrim().await;
        self.stop_device_watch().await;
        self.halt_rebuilds().await;
        self.halt_sweeps().await;
        self.0.txgs.close();
        self.end_of_syncing().await;
        self.end_rest().await;
        // Not before the last txg: until then the pool is in use.
        self.0.multihost.stop().await;
        self.let_go().await;
    }

    async fn let_go(&self) {
        self.0.space_log.cut();
        self.stop_feeding().await;
        self.0.tree.close().await;
    }
}

impl crate::pool::Inner {
    /// Makes the MOS dirty without changing it.
    pub(crate) async fn touch(&self, tx: &dmu::Tx) -> Result<()> {
        self.mos.update_phys(tx, |_| ());
        Ok(())
    }
}
