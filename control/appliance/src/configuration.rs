//! The configuration: opened when it is first needed, saved to a file and brought back, and who is told of changes.

mod check;
mod state;

pub use check::{USERS, USERS_KEY};
pub(crate) use state::Configuration;

use crate::appliance::Appliance;
use crate::san::SanView;
use api::{ApiError, Reply, Result, Secret};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use store::Store;

impl Appliance {
    /// The configuration; opened when it is first needed, so that commands that need none leave no file.
    pub fn configuration(&self) -> units::Result<Store> {
        let mut open = self.0.configuration.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*open {
            return Ok(store.clone());
        }
        let store = Store::open(&self.0.config.home.configuration())?;
        Ok(open.insert(store).clone())
    }

    pub(crate) async fn back_up(&self, to: &str) -> Result<Reply> {
        let failed = |e: units::Error| ApiError::cannot("back up the configuration", &e);
        let (configuration, to) = (self.configuration().map_err(failed)?, PathBuf::from(to));
        // Where the path leads may be slow, or hang; no client waits for that.
        world::compute(move || configuration.backup(&to)).await.map_err(failed)?;
        Ok(Reply::Done)
    }

    pub(crate) async fn restore(&self, from: &str) -> Result<Reply> {
        let failed = |e: units::Error| ApiError::cannot("restore the configuration", &e);
        let from = PathBuf::from(from);
        let text = world::compute(move || store::read_backup(&from)).await.map_err(failed)?;
        self.take_configuration(&Secret::new(text)).await
    }

    pub(crate) fn tell_configuration(&self) -> Result<Reply> {
        let text = self.configuration().and_then(|c| c.backup_text());
        let text = text.map_err(|e| ApiError::cannot("back up the configuration", &e))?;
        Ok(Reply::Configuration { text: Secret::new(text) })
    }

    /// Replaces the configuration by that of a backup, if it is one that could have been made here; else it stays.
    pub(crate) async fn take_configuration(&self, text: &Secret) -> Result<Reply> {
        let failed = |e: units::Error| ApiError::cannot("restore the configuration", &e);
        // Numbers of LUNs are given and groups are changed in turns.
        let _turn = self.0.san.numbering.lock().await;
        let before = self.network().map_err(failed)?;
        let luns = self.luns_by_claims(&before).await?;
        let configuration = self.configuration().map_err(failed)?;
        let check = |writer: &store::Writer| check::check(writer, &luns.held);
        configuration.restore_text(text.reveal(), check).map_err(failed)?;
        self.san_changed();
        Ok(Reply::Done)
    }

    /// Which LUN is seen by whom may be another from now on.
    pub(crate) fn san_changed(&self) {
        self.0.configuration.generation.fetch_add(1, Ordering::AcqRel);
        self.0.configuration.changed.notify_all();
    }

    /// Counts changes of anything that decides who sees which LUN, and what of it: cheap enough to look at for each
    /// command of a client.
    pub fn san_generation(&self) -> u64 {
        self.0.configuration.generation.load(Ordering::Acquire)
    }

    /// Waits until the generation is another than `seen`.
    pub async fn san_change(&self, seen: u64) -> u64 {
        let configuration = &self.0.configuration;
        configuration.changed.until(|| Some(self.san_generation()).filter(|now| *now != seen)).await
    }

    /// Who sees what, now.
    pub async fn san_view(&self) -> Result<Arc<SanView>> {
        let kept = |view: &std::sync::Mutex<Arc<SanView>>| {
            view.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        // Read first: what changes meanwhile makes the view out of date, not wrong for ever. None is of generation 0.
        let generation = self.san_generation();
        let view = kept(&self.0.configuration.view);
        if view.generation() == generation && generation != 0 {
            return Ok(view);
        }
        let network = self.network().map_err(|e| ApiError::cannot("read the configuration", &e))?;
        let luns = self.luns_by_claims(&network).await?.held;
        let view = Arc::new(SanView { network, luns, generation });
        *self.0.configuration.view.lock().unwrap_or_else(PoisonError::into_inner) = view.clone();
        Ok(view)
    }
}

#[cfg(test)]
mod tests;
