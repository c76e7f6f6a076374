//! Random work on whole pools, checked against a model that is slow and obvious.
//!
//! ```text
//!   Bench ── a pool on some devices, and the Model of what its volumes hold
//!     │ step(): one random change of both, or a comparison
//!     └ reopen(): export or close, find the pool on its devices again, compare everything
//! ```
//!
//! The same bench runs in the simulated world, where the power can be cut and every run replays from its seed, and on
//! real files, where `zdb` has the last word. Work is done one operation after another, so the order of operations is the
//! order of txgs: after a crash the pool must hold the result of the first `k` operations, for some `k` not smaller than
//! what was acknowledged as durable. [`Work`] is such a run with reopening and power cuts.
//!
//! What many clients at once may rely on when the power goes is proved in [`power`]; what they may rely on when devices
//! fail and come back, by [`Suspensions`], and of a host that fills up, by [`FullHosts`]; that devices can be exchanged
//! under them, by [`DeviceCase`]; that a pool whose bytes lie does no harm, in [`forged`].

mod bench;
mod branches;
mod devices;
pub mod forged;
mod full_hosts;
mod layout;
mod model;
pub mod power;
pub mod seeds;
mod suspended;
mod work;

pub use bench::{Bench, Mix};
pub use devices::{DeviceCase, DeviceDeeds, DeviceFigures};
pub use full_hosts::{FullHostFigures, FullHosts};
pub use layout::Shape;
pub use model::{Change, Model, pattern};
pub use suspended::{SuspensionFigures, Suspensions};
pub use work::{Work, WorkFigures};
