//! System attributes, between a file's bonus and spill block and values, by the tables of its file system.
//!
//! ```text
//!   master node ─ SA_ATTRS ─┬─ REGISTRY   name → number, length (0: variable), size of words          tables.rs
//!                           └─ LAYOUTS    number → attributes in order
//!
//!   bonus   magic, layout 3, header of 16 bytes │ lengths of variable ones │ values, each padded to 8      decode.rs
//!   spill   magic, layout 7, ...                │                          │ the rest of the values
//!
//!   the way back: which values go where, and layouts that are new                                           encode.rs
//!
//!   before version 5:  bonus of a fixed structure, the ZNODE                                                legacy.rs
//! ```
//!
//! A value is found by what it means ([`Attr`]); numbers may differ from file system to file system, and attributes
//! that we do not know are kept as they are. Decoding believes nothing: a layout that is not in the table, a length that
//! reaches past the end or an attribute that is not as long as its meaning wants is an error that names it.

mod decode;
mod encode;
mod legacy;
mod tables;

pub use decode::Attributes;
pub use tables::Tables;

use crate::attributes::REGISTRY;

/// What an attribute means: the row of [`REGISTRY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Attr {
    Atime,
    Mtime,
    Ctime,
    Crtime,
    Gen,
    Mode,
    Size,
    Parent,
    Links,
    Xattr,
    Rdev,
    Flags,
    Uid,
    Gid,
    Pad,
    ZnodeAcl,
    DaclCount,
    Symlink,
    Scanstamp,
    DaclAces,
    Dxattr,
    Projid,
}

use Attr::*;

impl Attr {
    pub const ALL: [Attr; 22] = [
        Atime, Mtime, Ctime, Crtime, Gen, Mode, Size, Parent, Links, Xattr, Rdev, Flags, Uid, Gid, Pad,
        ZnodeAcl, DaclCount, Symlink, Scanstamp, DaclAces, Dxattr, Projid,
    ];

    pub fn name(self) -> &'static str {
        REGISTRY[self as usize].name
    }

    pub fn from_name(name: &str) -> Option<Attr> {
        Attr::ALL.into_iter().find(|attr| attr.name() == name)
    }
}

#[cfg(test)]
mod tests;
