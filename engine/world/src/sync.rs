//! Waiting for one another, without a runtime and without chance: all queues are first come, first served.

pub mod oneshot;
