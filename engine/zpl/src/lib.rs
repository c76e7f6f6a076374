//! A dataset seen as a POSIX tree.
//!
//! ```text
//!   object 1   master node, a ZAP ─┬─ VERSION, utf8only, normalization, casesensitivity
//!                                  ├─ SA_ATTRS ──▶ SA master node ─┬─ REGISTRY   name → length, byte order, number
//!                                  │                               └─ LAYOUTS    number → attributes in order
//!                                  ├─ DELETE_QUEUE ──▶ files that are unlinked but still open
//!                                  └─ ROOT ──▶ the root directory: a ZAP of names, its attributes in the bonus
//! ```
//!
//! Today this crate makes the content of a new file system, empty and valid for any implementation of the format.
//! Reading and changing trees comes on top of that.

mod attributes;
mod create;

pub use create::{NewFileSystem, create};

/// The object that everything else is found from.
pub const MASTER_NODE: units::ObjectId = units::ObjectId(1);
/// The version of the layout that we write (`ZPL_VERSION`).
pub const VERSION: u64 = 5;
