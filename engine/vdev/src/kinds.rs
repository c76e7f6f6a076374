//! The kinds of vdev that have others below them.

pub(crate) mod mirror;
pub(crate) mod raidz;
