//! What can be asked of an appliance, said once: requests, replies and errors, as plain data.
//!
//! ```text
//!   cli ── Caller::call ──┬─ client: the daemon's socket, one JSON value per line ──┐
//!                         └─ in this process, when no daemon runs ──────────────────┤
//!                                                                                   ▼
//!                                                            Service::call (appliance)
//! ```
//!
//! A reply carries exact numbers and words, never text laid out for a screen: what shows it decides how. Errors are
//! the other way round: their message is the whole line that a person reads, since only the appliance knows what was
//! asked of what. Values of properties that are one of a few words travel as that word, whatever its code on disk.
//!
//! Not here: how anything is done (`appliance`), spoken (`client`), or shown (`cli`).

pub mod alerts;
pub mod analytics;
pub mod attributes;
pub mod automatic;
mod cache;
pub mod changes;
mod daemon;
mod dataset;
pub mod declared;
mod doctor;
mod error;
mod event;
mod history;
pub mod http;
mod layout;
mod mounts;
mod nbd;
mod pool;
mod property;
mod request;
pub mod san;
pub mod schema;
pub mod secret;
mod services;
pub mod shares;
mod snapshots;
mod space;
mod stats;
mod sweep;
mod tunable;
mod updates;

pub use automatic::{Automatic, AutomaticDeed};
pub use cache::{CacheDevices, CacheState, CachedKind, DeviceWear, endurance};
pub use daemon::{Daemon, Memory};
pub use dataset::{Dataset, DatasetKind, DatasetQuery, NewDataset, NewKind};
pub use doctor::Doctor;
pub use error::{ApiError, ErrorKind, Result};
pub use event::Event;
pub use history::{Did, HistoryRecord, Item, PoolHistory};
pub use layout::{LAYOUTS, Layout, LayoutKind};
pub use mounts::{Mount, Mounted, Unmount};
pub use nbd::{Nbd, NbdClient, NbdExport};
pub use pool::{
    Class, DataErrors, Device, ErrorScrub, Importable, NewPool, NewVdevs, Pool, PoolChoice, PoolImport,
    PoolSplit, Rebuild, Rewind, Scan, ScanState, Vdev, VdevGroup, WentBack,
};
pub use property::{Property, Source, Value};
pub use request::{Call, DeviceAction, Joining, Reply, Request, ScrubAction};
pub use schema::{Custom, CustomProperty, CustomType, Schema};
pub use secret::Secret;
pub use services::{ServiceState, Services, Switch};
pub use snapshots::{Hold, ShareDeed, ShareSnapshot, Snapshots};
pub use space::{FileProject, ObjectUsage, ProjectOf, Usage, Whose};
pub use stats::{Flushes, IoClass, IoKind, VdevStats};
pub use sweep::{SweepAction, SweepKind, SweepState, Swept};
pub use tunable::Tunable;
pub use updates::DeferredUpdate;

use std::future::Future;
use std::pin::Pin;

/// What carries requests out.
pub trait Service: Send + Sync {
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;
}

/// What takes requests to a [`Service`] and waits for the reply.
pub trait Caller {
    fn call(&mut self, call: Call) -> Result<Reply>;

    /// Whether the service goes on after this program has ended: then what takes long need not be waited for.
    fn outlives_us(&self) -> bool;
}
