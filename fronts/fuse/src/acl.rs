//! POSIX ACLs, as Linux keeps them in extended attributes.
//!
//! ```text
//!   | version 2 |  then for each entry  | tag | rights | who |       4; 2 + 2 + 4 bytes, little endian
//! ```
//!
//! The kernel checks rights by them; what is ours is that mode and list say the same: who sets a list changes the mode,
//! who changes the mode changes the list, and what is made in a directory with a default list begins with that.
//!
//! ```text
//!   mode   user ── USER_OBJ     group ── MASK, or GROUP_OBJ when there is none     other ── OTHER
//! ```

/// The list of a file, and the one that what is made in a directory begins with.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
/// USER and GROUP name somebody.
const NAMED: [u16; 2] = [0x02, 0x08];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    rights: u16,
    who: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl(Vec<Entry>);

impl Acl {
    /// `None` when it is no list.
    pub fn decode(bytes: &[u8]) -> Option<Acl> {
        let (version, entries) = bytes.split_first_chunk()?;
        if u32::from_le_bytes(*version) != VERSION || !entries.len().is_multiple_of(8) {
            return None;
        }
        let entry = |e: &[u8]| Entry {
            tag: u16::from_le_bytes([e[0], e[1]]),
            rights: u16::from_le_bytes([e[2], e[3]]),
            who: u32::from_le_bytes([e[4], e[5], e[6], e[7]]),
        };
        let acl = Acl(entries.chunks_exact(8).map(entry).collect());
        let count = |tag| acl.0.iter().filter(|e| e.tag == tag).count();
        let is_known = |e: &Entry| {
            e.rights <= 7 && (matches!(e.tag, USER_OBJ | GROUP_OBJ | MASK | OTHER) || NAMED.contains(&e.tag))
        };
        let needs_mask = acl.0.iter().any(|e| NAMED.contains(&e.tag));
        let whole = [USER_OBJ, GROUP_OBJ, OTHER].iter().all(|tag| count(*tag) == 1)
            && count(MASK) <= 1
            && (!needs_mask || count(MASK) == 1)
            && acl.0.iter().all(is_known);
        whole.then_some(acl)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for e in &self.0 {
            bytes.extend(e.tag.to_le_bytes());
            bytes.extend(e.rights.to_le_bytes());
            bytes.extend(e.who.to_le_bytes());
        }
        bytes
    }

    fn rights(&mut self, tag: u16) -> Option<&mut u16> {
        self.0.iter_mut().find(|e| e.tag == tag).map(|e| &mut e.rights)
    }

    /// A mode says as much.
    pub fn is_trivial(&self) -> bool {
        self.0.len() == 3
    }

    /// The lower nine bits of the mode that goes with it.
    pub fn mode(&self) -> u32 {
        let mut copy = self.clone();
        let mut bits = |tag| u32::from(copy.rights(tag).map_or(0, |r| *r));
        let group = if self.has_mask() { bits(MASK) } else { bits(GROUP_OBJ) };
        bits(USER_OBJ) << 6 | group << 3 | bits(OTHER)
    }

    fn has_mask(&self) -> bool {
        self.0.iter().any(|e| e.tag == MASK)
    }

    fn each_with_bits(&mut self, mode: u32, change: impl Fn(&mut u16, u16)) {
        let group = if self.has_mask() { MASK } else { GROUP_OBJ };
        for (tag, shift) in [(USER_OBJ, 6), (group, 3), (OTHER, 0)] {
            if let Some(rights) = self.rights(tag) {
                change(rights, (mode >> shift & 7) as u16);
            }
        }
    }

    /// As after a change of the mode.
    pub fn with_mode(mut self, mode: u32) -> Acl {
        self.each_with_bits(mode, |rights, bits| *rights = bits);
        self
    }

    /// What a file that was asked for with `mode` begins with in a directory of this default list.
    pub fn inherited(mut self, mode: u32) -> Acl {
        self.each_with_bits(mode, |rights, bits| *rights &= bits);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(u16, u16, u32)]) -> Acl {
        Acl(entries.iter().map(|&(tag, rights, who)| Entry { tag, rights, who }).collect())
    }

    #[test]
    fn mode_and_list_say_the_same() {
        let plain = acl(&[(1, 7, !0), (4, 5, !0), (32, 1, !0)]);
        assert!(plain.is_trivial());
        assert_eq!(plain.mode(), 0o751);
        let named = acl(&[(1, 7, !0), (2, 7, 1000), (4, 5, !0), (16, 6, !0), (32, 0, !0)]);
        assert_eq!(named.mode(), 0o760);
        assert_eq!(named.clone().with_mode(0o640).mode(), 0o640);
        assert_eq!(named.clone().with_mode(0o640).0[2].rights, 5, "the group's own entry stays");
        assert_eq!(named.clone().inherited(0o644).mode(), 0o640);
        assert_eq!(Acl::decode(&named.encode()), Some(named));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let good = acl(&[(1, 7, !0), (4, 5, !0), (32, 1, !0)]).encode();
        for bad in [&good[..3], &good[..good.len() - 1], &good[..12], &[]] {
            assert_eq!(Acl::decode(bad), None);
        }
        let named_without_mask = acl(&[(1, 7, !0), (2, 7, 5), (4, 5, !0), (32, 1, !0)]);
        assert_eq!(Acl::decode(&named_without_mask.encode()), None);
        assert_eq!(Acl::decode(&acl(&[(1, 9, !0), (4, 5, !0), (32, 1, !0)]).encode()), None);
    }
}
