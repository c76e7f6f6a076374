//! POSIX access control lists, as Linux keeps them in extended attributes. Pure.
//!
//! ```text
//!   system.posix_acl_access    what counts for the file
//!   system.posix_acl_default   of a directory: what new files in it get
//!
//!   version 2, 4 bytes │ entries: tag, permissions, id — 2 + 2 + 4 bytes; little-endian all
//! ```
//!
//! A list of owner, group and others alone is the mode; it is not kept. With a mask, the mode's group bits show the mask.

use units::{Error, Result};

pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
/// More would not fit into an extended attribute.
const ENTRIES_MAX: usize = 8190;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub(crate) enum Tag {
    Owner = 1,
    User = 2,
    Group = 4,
    NamedGroup = 8,
    Mask = 16,
    Other = 32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub tag: Tag,
    /// rwx.
    pub bits: u16,
    pub id: u32,
}

/// A list that makes sense: one entry each of owner, group and others, a mask if anybody is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PosixAcl(Vec<Entry>);

impl PosixAcl {
    pub fn decode(bytes: &[u8]) -> Result<PosixAcl> {
        let odd = |why: &str| Error::invalid(format!("POSIX ACL of {} bytes: {why}", bytes.len()));
        let (version, entries) = bytes.split_first_chunk().ok_or_else(|| odd("no version"))?;
        if u32::from_le_bytes(*version) != VERSION {
            return Err(odd("unknown version"));
        }
        let (entries, rest) = entries.as_chunks::<8>();
        if !rest.is_empty() || entries.len() > ENTRIES_MAX {
            return Err(odd("no whole entries"));
        }
        let mut list = Vec::with_capacity(entries.len());
        for [t0, t1, p0, p1, id @ ..] in entries {
            let tag = match u16::from_le_bytes([*t0, *t1]) {
                1 => Tag::Owner,
                2 => Tag::User,
                4 => Tag::Group,
                8 => Tag::NamedGroup,
                16 => Tag::Mask,
                32 => Tag::Other,
                _ => return Err(odd("unknown tag")),
            };
            let bits = u16::from_le_bytes([*p0, *p1]);
            if bits > 7 {
                return Err(odd("unknown permissions"));
            }
            list.push(Entry { tag, bits, id: u32::from_le_bytes(*id) });
        }
        let acl = PosixAcl(list);
        acl.check().map_err(odd)?;
        Ok(acl)
    }

    fn check(&self) -> std::result::Result<(), &'static str> {
        let count = |tag| self.0.iter().filter(|e| e.tag == tag).count();
        if [Tag::Owner, Tag::Group, Tag::Other].into_iter().any(|tag| count(tag) != 1) {
            return Err("owner, group and others must each be there once");
        }
        if !self.0.is_sorted_by_key(|e| e.tag) {
            return Err("entries are not in order");
        }
        let named = count(Tag::User) + count(Tag::NamedGroup);
        if count(Tag::Mask) > 1 || (named > 0 && count(Tag::Mask) == 0) {
            return Err("there must be one mask where somebody is named");
        }
        Ok(())
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            bytes.extend((entry.tag as u16).to_le_bytes());
            bytes.extend(entry.bits.to_le_bytes());
            bytes.extend(entry.id.to_le_bytes());
        }
        bytes
    }

    fn bits(&self, tag: Tag) -> Option<u16> {
        self.0.iter().find(|e| e.tag == tag).map(|e| e.bits)
    }

    /// The permissions that a mode shows for it; the group's are the mask's.
    pub fn permissions(&self) -> u64 {
        let of = |tag| u64::from(self.bits(tag).unwrap_or(0));
        let group = self.bits(Tag::Mask).map_or(of(Tag::Group), u64::from);
        of(Tag::Owner) << 6 | group << 3 | of(Tag::Other)
    }

    /// Whether it says no more than a mode.
    pub fn is_mode(&self) -> bool {
        self.0.iter().all(|e| matches!(e.tag, Tag::Owner | Tag::Group | Tag::Other))
    }

    /// As `chmod` leaves it.
    pub fn set_mode(&mut self, mode: u64) {
        let has_mask = self.bits(Tag::Mask).is_some();
        for entry in &mut self.0 {
            entry.bits = match entry.tag {
                Tag::Owner => (mode >> 6 & 7) as u16,
                Tag::Mask => (mode >> 3 & 7) as u16,
                Tag::Group if !has_mask => (mode >> 3 & 7) as u16,
                Tag::Other => (mode & 7) as u16,
                _ => continue,
            };
        }
    }

    /// What a new file gets from its directory's default list, when `mode` is asked for: its list, and its mode.
    pub fn create(mut self, mode: u64) -> (PosixAcl, u64) {
        let has_mask = self.bits(Tag::Mask).is_some();
        for entry in &mut self.0 {
            entry.bits &= match entry.tag {
                Tag::Owner => (mode >> 6 & 7) as u16,
                Tag::Mask => (mode >> 3 & 7) as u16,
                Tag::Group if !has_mask => (mode >> 3 & 7) as u16,
                Tag::Other => (mode & 7) as u16,
                _ => 7,
            };
        }
        let mode = mode & !0o777 | self.permissions();
        (self, mode)
    }

    /// What somebody may of what he wants (rwx); `is_member` says of which groups he is.
    pub fn allows(
        &self,
        uid: u32,
        is_owner: bool,
        is_group: bool,
        is_member: impl Fn(u32) -> bool,
        wanted: u16,
    ) -> u16 {
        let mask = self.bits(Tag::Mask).unwrap_or(7);
        if is_owner {
            return self.bits(Tag::Owner).unwrap_or(0);
        }
        if let Some(entry) = self.0.iter().find(|e| e.tag == Tag::User && e.id == uid) {
            return entry.bits & mask;
        }
        let is_his =
            |e: &&Entry| (e.tag == Tag::Group && is_group) || (e.tag == Tag::NamedGroup && is_member(e.id));
        let mut groups = self.0.iter().filter(is_his).map(|e| e.bits & mask).peekable();
        if groups.peek().is_none() {
            return self.bits(Tag::Other).unwrap_or(0);
        }
        // One of his groups must give all of it.
        groups.find(|bits| bits & wanted == wanted).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(Tag, u16, u32)]) -> PosixAcl {
        let list = entries.iter().map(|&(tag, bits, id)| Entry { tag, bits, id }).collect();
        let acl = PosixAcl(list);
        assert_eq!(acl.check(), Ok(()));
        acl
    }

    fn example() -> PosixAcl {
        acl(&[
            (Tag::Owner, 7, u32::MAX),
            (Tag::User, 6, 1000),
            (Tag::Group, 5, u32::MAX),
            (Tag::NamedGroup, 7, 100),
            (Tag::Mask, 5, u32::MAX),
            (Tag::Other, 0, u32::MAX),
        ])
    }

    #[test]
    fn lists_survive_the_round_trip_and_nonsense_is_refused() {
        let bytes = example().encode();
        assert_eq!(PosixAcl::decode(&bytes).unwrap(), example());
        for len in 0..bytes.len() {
            assert!(PosixAcl::decode(&bytes[..len]).is_err(), "{len}");
        }
        for (at, value) in [(0, 1), (4, 3), (6, 8), (12, 1)] {
            let mut bad = bytes.clone();
            bad[at] = value;
            assert!(PosixAcl::decode(&bad).is_err(), "{at}");
        }
    }

    #[test]
    fn the_mask_limits_the_named_and_is_what_the_mode_shows() {
        let mut list = example();
        assert_eq!(list.permissions(), 0o750);
        assert_eq!(list.allows(1000, false, false, |_| false, 4), 4);
        assert_eq!(list.allows(1, false, false, |g| g == 100, 5), 5);
        assert_eq!(list.allows(1, false, true, |_| false, 1), 5);
        assert_eq!(list.allows(1, false, false, |_| false, 4), 0);
        assert_eq!(list.allows(1000, true, false, |_| false, 7), 7);
        list.set_mode(0o604);
        assert_eq!((list.permissions(), list.allows(1000, false, false, |_| false, 4)), (0o604, 0));
        let (new, mode) = example().create(0o100_666);
        assert_eq!((mode, new.permissions()), (0o100_640, 0o640));
        assert!(!new.is_mode());
    }
}
