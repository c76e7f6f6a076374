//! The kinds of vdev that have others below them: one row of [`OPS`] each, and a file that says how it holds blocks.
//!
//! What is known of a kind without devices, its name among it, is in [`crate::vdev_type`].

mod mirror;
mod raidz;

use crate::node::VdevOps;
use crate::{Spec, VdevType};
use std::sync::Arc;
use units::{Error, Result};

/// What opens a group that `spec` describes, in a top-level vdev of this ashift.
type Open = fn(&Spec, u64) -> Result<Arc<dyn VdevOps>>;

const OPS: [(VdevType, Open); 4] = [
    (VdevType::Mirror, mirror::open),
    (VdevType::Replacing, mirror::open),
    (VdevType::Spare, mirror::open),
    (VdevType::Raidz, raidz::open),
];

/// How the group holds blocks.
///
/// # Errors
/// `Unsupported` or `Corrupt`, with the name of the vdev.
pub(crate) fn ops_of(spec: &Spec, ashift: u64) -> Result<Arc<dyn VdevOps>> {
    if let Some(what) = spec.vdev_type.row().unsupported {
        return Err(unsupported(what, spec));
    }
    match OPS.iter().find(|(kind, _)| *kind == spec.vdev_type) {
        Some((_, open)) => open(spec, ashift),
        None => Err(Error::corrupt(format!("a {} is no group", spec.vdev_type)).at(spec.name())),
    }
}

pub(crate) fn unsupported(what: &str, spec: &Spec) -> Error {
    Error::unsupported(format!("the pool uses {what} (vdev {}), which this version cannot read", spec.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vdev_type::KINDS;

    #[test]
    fn each_kind_of_group_can_be_opened_and_nothing_else() {
        for row in &KINDS {
            let is_opened = OPS.iter().any(|(kind, _)| *kind == row.vdev_type);
            assert_eq!(is_opened, row.vdev_type.is_group(), "{row:?}");
        }
    }
}
