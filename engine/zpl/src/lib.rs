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
//! All that serves or saves files asks through one small interface: a [`FileSystem`] gives [`Node`]s, by its root,
//! by path or by the [`NodeId`] (object and generation) that a client kept; a node is asked for its attributes, names,
//! data, extended attributes and ACL. All of it waits asynchronously and holds nothing between calls.
//!
//! ```text
//!   FileSystem ── root, resolve(path), node(id) ──▶ Node ─┬─ stat                      stat.rs, sa/
//!                                                         ├─ lookup, list, read_link   directory.rs
//!                                                         ├─ read, seek_data/_hole     data.rs
//!                                                         └─ xattrs, acl               xattr.rs, acl.rs
//! ```
//!
//! Changes are made in the open txg, each in one transaction, so that a crash leaves it whole or not at all (`write/`):
//!
//! ```text
//!   create, link, unlink, remove_directory, rename     write/names.rs, write/rename.rs
//!   write, truncate, punch_hole, allocate, sync        write/data.rs, write/direct.rs
//!   change, set_xattr, remove_xattr                    write/attributes.rs
//! ```
//!
//! After a crash the records of the intent log make them once more (`write/replay/`).
//!
//! What each user, group and project takes is counted as txgs sync (`accounts.rs`), and may be limited (`quotas.rs`). What
//! properties say of how files are kept is in `settings.rs`. A lister of directories is read ahead of (`read_ahead.rs`).
//!
//! Versions 1 to 5 are read, snapshots as well as heads. What is on disk is not believed: an attribute, a name or a
//! pointer that makes no sense is an error that names dataset and object, and a damaged block costs its own range.
//! A loop of directories is the caller's to notice: a node knows nothing of the way that led to it.

mod access;
mod acl;
mod acl_rules;
mod attributes;
mod create;
mod data;
mod directory;
mod file_system;
pub mod flags;
mod path;
mod posix_acl;
mod quotas;
mod refusal;
mod sa;
mod settings;
mod stat;
mod times;
mod xattr;

pub use access::{Credentials, Permissions};
pub use acl::{Ace, Who};
pub use acl_rules::rights;
pub use create::{Accounting, NewFileSystem, create};
pub use directory::{DirEntry, Listing, Salvaged};
pub use dmu::{Account, Direct};
pub use file_system::node::{Node, NodeId};
pub use file_system::write::{Changes, NewFile, Renaming, Replay, WriteOptions, Writing, XattrMode};
pub use file_system::{Case, FileSystem, WeakFileSystem};
pub use quotas::Resource;
pub use refusal::Refusal;
pub use settings::{AclInherit, AclMode, AclType, Atime, Settings, Xattrs};
pub use stat::{FileKind, Stat, Time};
pub use zap::Gap;

/// The object that everything else is found from.
pub const MASTER_NODE: units::ObjectId = units::ObjectId(1);
/// The version of the layout that we write (`ZPL_VERSION`).
pub const VERSION: u64 = 5;
