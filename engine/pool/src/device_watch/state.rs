//! What a pool keeps of its watch over its devices while it is open.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use units::HashSet;
use world::Task;
use world::sync::Event;

/// What is looked for, and the task that looks.
#[derive(Debug, Default)]
pub(crate) struct DeviceWatch {
    pub(super) expands: AtomicBool,
    pub(super) replaces: AtomicBool,
    pub(super) at_work: Mutex<Option<(Arc<Event>, Task<()>)>>,
    /// Places whose new device was refused.
    pub(super) refused: Mutex<HashSet<String>>,
}
