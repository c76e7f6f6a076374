//! What the iSCSI service asks of the appliance that it serves the LUNs of.

use crate::san::SanView;
use disk::{Held, SharedVolume};
use std::fmt;
use std::sync::Arc;
use store::Store;
use units::Result;
use world::Pending;

/// LUNs, and which initiators they are given to.
pub(crate) trait Lans: fmt::Debug + Send + Sync {
    /// What each initiator sees now. Reads pools where it must.
    fn view(&self) -> Pending<api::Result<Arc<SanView>>>;

    /// Waits until the generation of the view is another than `seen`, and returns it.
    fn change(&self, seen: u64) -> Pending<u64>;

    /// A LUN may be seen otherwise from now on.
    fn changed(&self);

    /// Nothing can be seen by any initiator.
    fn has_no_target(&self) -> bool;

    /// The volume of a dataset, open for as long as it is held.
    fn use_volume(&self, dataset: &str) -> Pending<Result<(SharedVolume, Held)>>;

    fn configuration(&self) -> Result<Store>;

    /// An initiator showed a wrong proof.
    fn login_failed(&self, initiator: &str, address: &str);
}
