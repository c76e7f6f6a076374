//! The LUNs of the appliance, for its iSCSI service.

use crate::appliance::Appliance;
use crate::san::SanView;
use crate::san::iscsi::Iscsi;
use crate::san::lans::Lans;
use disk::{Held, SharedVolume};
use std::sync::Arc;
use store::Store;
use units::Result;
use world::Pending;

impl Appliance {
    /// Starts the iSCSI service, which listens nowhere yet.
    pub async fn start_iscsi(&self) -> Iscsi {
        let iscsi = Iscsi::start(Arc::new(self.clone()), self.hub().clone(), self.request_bytes()).await;
        self.0.san.set_iscsi(iscsi.clone());
        iscsi
    }

    pub(crate) fn iscsi(&self) -> Option<Iscsi> {
        self.0.san.iscsi()
    }
}

impl Lans for Appliance {
    fn view(&self) -> Pending<api::Result<Arc<SanView>>> {
        let appliance = self.clone();
        Box::pin(async move { appliance.san_view().await })
    }

    fn change(&self, seen: u64) -> Pending<u64> {
        let appliance = self.clone();
        Box::pin(async move { appliance.san_change(seen).await })
    }

    fn changed(&self) {
        self.san_changed();
    }

    fn has_no_target(&self) -> bool {
        self.network().is_ok_and(|network| network.targets.is_empty())
    }

    fn use_volume(&self, dataset: &str) -> Pending<Result<(SharedVolume, Held)>> {
        let (appliance, dataset) = (self.clone(), dataset.to_string());
        Box::pin(async move { Appliance::use_volume(&appliance, &dataset).await })
    }

    fn configuration(&self) -> Result<Store> {
        Appliance::configuration(self)
    }

    fn login_failed(&self, initiator: &str, address: &str) {
        Appliance::login_failed(self, initiator, address, "iscsi");
    }
}
