//! Labels: by them a device says whose it is, and which state of the pool is the last one.
//!
//! Each leaf carries four copies, two at either end. A label holds the configuration of its top-level vdev and a ring
//! of uberblocks. When a state of the pool is committed, these are written in an order such that power may fail at any
//! moment:
//!
//! ```text
//!                               labels even   uberblocks    labels odd
//!   1  flush the data           old           old           old
//!   2  even labels, flush       NEW           old           old         odd ones fit the last uberblock
//!   3  uberblocks, flush        NEW           NEW           old         even ones fit it
//!   4  odd labels, flush        NEW           NEW           NEW
//! ```
//!
//! A reader takes the newest uberblock, then a label that is not newer than it. Steps 2 and 4 are left out when the
//! configuration did not change, and the uberblock then goes to the leaves of a few top-level vdevs only.
//!
//! `part` seals and opens the parts of a label, [`read`] reads a device's labels, [`ring`] its uberblocks, [`config`] makes
//! what labels say, [`commit`] writes them in this order, [`fresh`] makes new ones and clears old ones.

pub mod commit;
pub mod config;
pub mod fresh;

mod part;
pub mod read;
pub mod ring;
