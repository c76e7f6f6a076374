//! The tree of devices in the simulated world, without a pool above it.

#![allow(clippy::unwrap_used)]

mod blocks;
mod common;
mod flush;
mod labels;
