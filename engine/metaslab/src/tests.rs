//! The whole allocator against a bitmap, over space maps kept in memory.

mod damage;
mod logs;
mod memory;
mod oracle;
mod parallel;
mod policy;

pub(crate) use memory::{Dice, MemoryLog, run, spec};
