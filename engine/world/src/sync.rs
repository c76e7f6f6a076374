//! Waiting for one another, without a runtime and without chance: all queues are first come, first served.

mod notify;
pub mod oneshot;
pub use notify::Notify;
