//! What a pool keeps of its trimming while it is open.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use world::Task;
use world::sync::Event;

/// Whether devices are told, and the task that tells them.
#[derive(Debug, Default)]
pub(crate) struct Trimmer {
    pub(super) on: AtomicBool,
    pub(super) at_work: Mutex<Option<(Arc<Event>, Task<()>)>>,
}
