//! A device as initiators see it, over a unit in memory.

#![allow(clippy::unwrap_used)]

mod commands;
mod common;
mod copy;
mod fencing;
mod limits;
