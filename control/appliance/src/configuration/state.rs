//! The configuration as it is open, and which client sees which LUN by it.

use crate::san::SanView;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use store::Store;
use world::sync::Notify;

/// What an administrator configured, and what is known of it in memory.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub(super) store: std::sync::Mutex<Option<Store>>,
    /// Counts changes of anything that decides who sees which LUN.
    pub(super) generation: AtomicU64,
    pub(super) changed: Notify,
    pub(super) view: std::sync::Mutex<Arc<SanView>>,
}
