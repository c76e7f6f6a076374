//! How a tree is opened.

use crate::Device;
use probe::Hub;
use std::sync::Arc;
use tunables::Tunables;
use units::{Guid, HashMap, Txg};
use world::OpenMode;

/// See the module.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub mode: OpenMode,
    /// Whose labels the devices must carry; `None` for devices that have none yet.
    pub pool: Option<Guid>,
    /// What that pool was called before, when a change of its guid was cut short: labels may still say so.
    pub former: Option<Guid>,
    /// Labels newer than this are of a state that was never reached.
    pub limit: Option<Txg>,
    /// Where leaves were found. Others are looked for at their path.
    pub devices: HashMap<Guid, Device>,
    /// What may change while it is open.
    pub tunables: Arc<Tunables>,
    /// Where I/O is told, and by which name of the pool.
    pub hub: Hub,
    pub pool_name: String,
}

impl OpenOptions {
    pub fn new(mode: OpenMode) -> OpenOptions {
        OpenOptions {
            mode,
            pool: None,
            former: None,
            limit: None,
            devices: HashMap::default(),
            tunables: Tunables::new(),
            hub: Hub::new(),
            pool_name: String::new(),
        }
    }
}
