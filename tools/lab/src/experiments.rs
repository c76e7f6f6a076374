//! The experiments, one file each: what a document measured before and after a change, on modelled hardware.

mod blocks;
mod elevator;
mod filesync;
mod metadata;
mod split;
mod warm_up;
mod warm_up_time;

use crate::experiment::Experiment;

/// In the order of the table.
pub const ALL: &[Experiment] = &[
    filesync::EXPERIMENT,
    split::EXPERIMENT,
    blocks::EXPERIMENT,
    blocks::CURVE,
    metadata::EXPERIMENT,
    warm_up::EXPERIMENT,
    warm_up_time::EXPERIMENT,
    elevator::EXPERIMENT,
];

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|one| one.name == name)
}
