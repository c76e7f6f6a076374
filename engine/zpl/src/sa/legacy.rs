//! The bonus of files from before system attributes: one structure of 264 bytes, the ZNODE.
//!
//! ```text
//!     0  atime, mtime, ctime, crtime         16 bytes each
//!    64  gen, mode, size, parent, links      8 bytes each, as all up to gid
//!   104  xattr, rdev, flags, uid, gid
//!   144  extra attributes, padding           4 words, never used
//!   176  ACL                                 88 bytes
//!   264  a short symbolic link's target, or a virus scanner's stamp
//! ```

use super::{Attr, Attributes};
use crate::attributes::REGISTRY;
use units::{Endian, Error, Result};

pub(super) const SIZE: usize = 264;

pub(super) fn decode(bonus: &[u8]) -> Result<Attributes> {
    let Some((znode, rest)) = bonus.split_at_checked(SIZE) else {
        return Err(Error::corrupt(format!("znode of {} bytes", bonus.len())));
    };
    // Nothing says in which byte order it is, but a mode has 16 bits.
    let mode = u64::from_ne_bytes(*znode[72..].first_chunk().expect("a znode has a mode"));
    let is_foreign = mode > u64::from(u16::MAX);
    let mut attributes = Attributes::default();
    let mut at = 0;
    for attr in &Attr::ALL[..=Attr::ZnodeAcl as usize] {
        let row = &REGISTRY[*attr as usize];
        let end = at + usize::from(row.length);
        let word = if is_foreign && *attr != Attr::ZnodeAcl { 8 } else { 1 };
        attributes.push(row.number, Some(*attr), &znode[at..end], word);
        at = end;
    }
    let other = if Endian::NATIVE == Endian::Little { Endian::Big } else { Endian::Little };
    attributes.set_acl_order(if is_foreign { other } else { Endian::NATIVE });
    if !rest.is_empty() {
        let row = &REGISTRY[Attr::Symlink as usize];
        attributes.push(row.number, Some(Attr::Symlink), rest, 1);
    }
    Ok(attributes)
}
