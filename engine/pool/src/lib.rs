//! The assembly: an open pool, from its devices up to its datasets.
//!
//! ```text
//!   create ─┐                       ┌─ change(task) ──▶ sync task ─┐
//!           ├──▶ Pool (open) ───────┤                              ├──▶ sync(txg) ──▶ commit: labels, uberblock
//!   open ───┘        │              └─ writes of volumes ─▶ Tx ────┘
//!                    └─ export / close
//! ```
//!
//! The layers below state their needs as small traits and know nothing of each other's upper half; `assemble.rs` ties
//! those knots, in one place. `sync.rs` is the heart: what one txg does from the last writer's leave to the uberblock that
//! makes it the pool's state. [`Pool::change`] runs administrative changes inside of that.
//!
//! Invariants: nothing of a txg is visible on disk before its uberblock is; an uberblock is written only after all it
//! leads to was flushed; a pool opened read-only is never written to.
//!
//! Not here: what a dataset is (`dsl`), what is in it (`zvol`, `zpl`), who may ask for what (`control`).

mod add_vdevs;
mod assemble;
mod attach;
mod autotrim;
mod cache_devices;
mod create;
mod detach;
mod device_state;
mod device_watch;
mod dtl;
mod error_scrub;
mod errors;
mod expand;
mod export;
mod file_systems;
mod guids;
mod heal;
mod intent_log;
mod lock;
mod log_space_maps;
mod logs;
mod mos_writing;
mod multihost;
mod open;
mod parts;
mod place;
mod pool;
mod prefetch;
mod properties;
mod rebuild;
mod reguid;
mod remove_log;
mod report;
mod resilver;
mod rewind;
mod scrub;
mod side_devices;
mod snapshots;
mod spares;
mod split;
mod split_off;
mod statistics;
mod suspend;
mod sweep;
mod sync;
mod tasks;
mod uberblocks;
mod vdev_properties;
mod vdev_zaps;
mod verify;
mod volumes;
mod walk;

pub use create::{CreateOptions, create, create_as};
pub use device_state::Offline;
pub use error_scrub::ErrorScrubStatus;
pub use errors::{DataError, DataErrors};
pub use logs::{LogSurvey, WaitingLog};
pub use multihost::is_active;
pub use open::{OpenOptions, open, open_as, open_at};
pub use pool::{Host, Pool, VdevProperties};
pub use probe::Hub;
pub use properties::PoolProperty;
pub use rebuild::RebuildStatus;
pub use report::{PoolReport, TopSpace};
pub use rewind::{Back, open_back};
pub use scrub::ScanStatus;
pub use snapshots::RollbackReach;
pub use sweep::{Sweep, SweepState, SweepStatus};
pub use uberblocks::{Estranged, Stranger, txgs_of};
pub use vdev::scan::{Candidate, scan, scan_dirs};
pub use vdev_properties::{NO_CACHE_FLUSH, THRESHOLDS};
pub use verify::{Damage, Tally, VerifyReport};
pub use volumes::Content;

#[cfg(test)]
mod tests;
