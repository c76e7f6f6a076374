//! NFSv4 access control lists, as they are stored.
//!
//! ```text
//!   version 5   attributes ZPL_DACL_COUNT and ZPL_DACL_ACES: entries one behind the other
//!   before      attribute ZPL_ZNODE_ACL:  | object | size │ version │ count | 72 bytes of entries |
//!                                           entries that do not fit are in the object
//!
//!   entry       type, flags, rights (2 + 2 + 4 bytes), then 8 bytes of who unless the flags say who;
//!               types 5 to 8 have two guids of 16 bytes behind that
//!   version 1   who, rights, flags, type (4 + 4 + 2 + 2 bytes)
//! ```
//!
//! POSIX ACLs are extended attributes, `system.posix_acl_access` and `system.posix_acl_default`.

use crate::file_system::node::Node;
use crate::sa::{Attr, Attributes};
use ondisk::Reader;
use units::{Endian, Error, ObjectId, Result};

/// Whom an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    Owner,
    Group,
    Everyone,
    User(u64),
    NamedGroup(u64),
}

/// One entry; type, flags and rights as NFSv4 has them (`ACE4_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ace {
    /// 0 allows, 1 denies, 2 audits, 3 alarms.
    pub kind: u16,
    pub flags: u16,
    pub rights: u32,
    pub who: Who,
}

const OWNER: u16 = 0x1000;
const GROUP: u16 = 0x2000;
const EVERYONE: u16 = 0x4000;
const IDENTIFIER_GROUP: u16 = 0x40;
/// Types whose entries have guids.
const OBJECT_TYPES: std::ops::RangeInclusive<u16> = 5..=8;
/// A list is never longer: OpenZFS's limit.
const ENTRIES_MAX: usize = 1024;
const INLINE: usize = 72;
/// In a record, the number of whom the flags say.
const NOBODY: u32 = u32::MAX;

impl Node {
    /// The list; empty when the file has none.
    pub async fn acl(&self) -> Result<Vec<Ace>> {
        self.acl_in(&self.attributes().await?).await
    }

    /// The list among these attributes of the file.
    pub(crate) async fn acl_in(&self, attributes: &Attributes) -> Result<Vec<Ace>> {
        let order = attributes.acl_order();
        let list = match attributes.bytes(Attr::DaclAces) {
            Some(entries) => decode(entries, order),
            None => match attributes.bytes(Attr::ZnodeAcl) {
                Some(old) => self.old_acl(old, order).await,
                None => Ok(Vec::new()),
            },
        };
        list.map_err(|e| self.place(e))
    }

    async fn old_acl(&self, bytes: &[u8], order: Endian) -> Result<Vec<Ace>> {
        let mut r = Reader::new(bytes, order, "ACL of znode");
        let outside = ObjectId(r.u64()?);
        let (size, version, count) = (r.u32()? as usize, r.u16()?, r.u16()?);
        let inline = r.bytes(INLINE)?;
        // The first version has the count where the second has the size.
        let len = if version == 0 { size.saturating_mul(OLD_ENTRY) } else { size };
        if len > ENTRIES_MAX * LARGEST_ENTRY {
            return Err(Error::corrupt(format!("ACL of {size} with {count} entries")));
        }
        let external;
        let entries = match outside.some() {
            Some(id) => {
                external = self.file_system().object_set().object(id).await?.read(0, len).await?;
                &external[..]
            }
            None => inline.get(..len).ok_or_else(|| Error::corrupt(format!("ACL of {len} bytes in 72")))?,
        };
        if version == 0 { decode_first(entries, order) } else { decode(entries, order) }
    }
}

const OLD_ENTRY: usize = 12;
const LARGEST_ENTRY: usize = 48;

pub(crate) fn decode(bytes: &[u8], order: Endian) -> Result<Vec<Ace>> {
    let mut r = Reader::new(bytes, order, "ACL");
    let mut list = Vec::new();
    while !r.is_empty() && list.len() < ENTRIES_MAX {
        let (kind, flags, rights) = (r.u16()?, r.u16()?, r.u32()?);
        let who = match who_of(flags) {
            Some(who) => who,
            None => named(flags, r.u64()?),
        };
        if OBJECT_TYPES.contains(&kind) {
            r.skip(32)?;
        }
        list.push(Ace { kind, flags, rights, who });
    }
    Ok(list)
}

/// As version 5 stores it, in our order. Entries with guids cannot be written: what the guids were is not known.
pub(crate) fn encode(list: &[Ace]) -> Result<Vec<u8>> {
    if list.len() > ENTRIES_MAX {
        return Err(crate::Refusal::TooLarge.when("store an ACL"));
    }
    let mut bytes = Vec::with_capacity(list.len() * 16);
    for ace in list {
        if OBJECT_TYPES.contains(&ace.kind) {
            return Err(Error::unsupported("writing ACL entries of objects"));
        }
        let (flags, id) = stored_who(ace);
        bytes.extend(ace.kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(ace.rights.to_ne_bytes());
        bytes.extend(id.into_iter().flat_map(u64::to_ne_bytes));
    }
    Ok(bytes)
}

/// The entries as records of the log have them; none if one cannot be said there: of somebody with a large number, or
/// of objects.
pub(crate) fn log_entries(list: &[Ace]) -> Option<Vec<ondisk::zil::Ace>> {
    let entry = |ace: &Ace| {
        let (flags, id) = stored_who(ace);
        let who = id.map_or(Some(NOBODY), |id| u32::try_from(id).ok())?;
        let is_short = !OBJECT_TYPES.contains(&ace.kind);
        is_short.then_some(ondisk::zil::Ace { who, mask: ace.rights, flags, kind: ace.kind, objects: None })
    };
    list.iter().map(entry).collect()
}

/// The flags of an entry with those that say who, and the number of whom they do not say.
fn stored_who(ace: &Ace) -> (u16, Option<u64>) {
    let (who, id) = match ace.who {
        Who::Owner => (OWNER, None),
        Who::Group => (GROUP | IDENTIFIER_GROUP, None),
        Who::Everyone => (EVERYONE, None),
        Who::User(id) => (0, Some(id)),
        Who::NamedGroup(id) => (IDENTIFIER_GROUP, Some(id)),
    };
    (ace.flags & !(OWNER | GROUP | EVERYONE | IDENTIFIER_GROUP) | who, id)
}

fn decode_first(bytes: &[u8], order: Endian) -> Result<Vec<Ace>> {
    let mut r = Reader::new(bytes, order, "ACL");
    let mut list = Vec::new();
    while !r.is_empty() && list.len() < ENTRIES_MAX {
        let (who, rights, flags, kind) = (r.u32()?, r.u32()?, r.u16()?, r.u16()?);
        let who = who_of(flags).unwrap_or_else(|| named(flags, who.into()));
        list.push(Ace { kind, flags, rights, who });
    }
    Ok(list)
}

fn who_of(flags: u16) -> Option<Who> {
    match flags & (OWNER | GROUP | EVERYONE) {
        OWNER => Some(Who::Owner),
        GROUP => Some(Who::Group),
        EVERYONE => Some(Who::Everyone),
        _ => None,
    }
}

fn named(flags: u16, id: u64) -> Who {
    if flags & IDENTIFIER_GROUP != 0 { Who::NamedGroup(id) } else { Who::User(id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_both_versions_are_read_and_cut_ones_are_errors() {
        let mut new = Vec::new();
        for (kind, flags, rights) in [(0u16, OWNER, 0x1e01ffu32), (1, 0x3, 0x2), (5, IDENTIFIER_GROUP, 0x4)] {
            new.extend(kind.to_le_bytes());
            new.extend(flags.to_le_bytes());
            new.extend(rights.to_le_bytes());
            if flags & OWNER == 0 {
                new.extend(1000u64.to_le_bytes());
            }
            if kind == 5 {
                new.extend([0; 32]);
            }
        }
        let list = decode(&new, Endian::Little).unwrap();
        let who: Vec<Who> = list.iter().map(|ace| ace.who).collect();
        assert_eq!(who, [Who::Owner, Who::User(1000), Who::NamedGroup(1000)]);
        assert_eq!(list[1], Ace { kind: 1, flags: 3, rights: 2, who: Who::User(1000) });
        assert!(decode(&new[..new.len() - 1], Endian::Little).is_err());
        let old = [7u32.to_be_bytes(), 0x21u32.to_be_bytes(), [0, 0, 0, 1]].concat();
        let ace = Ace { kind: 1, flags: 0, rights: 0x21, who: Who::User(7) };
        assert_eq!(decode_first(&old, Endian::Big).unwrap(), [ace]);
    }
}
