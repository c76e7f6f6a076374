//! Access control lists: the entries as they are stored, and the mode that says the same as far as a mode can.

use crate::node::Node;
use crate::sa::Attr;
use crate::write::COST;
use ondisk::zil::{Ace, LogAcl};
use units::{Error, Result};

const OWNER: u16 = 0x1000;
const GROUP: u16 = 0x2000;
const EVERYONE: u16 = 0x4000;
const WHO: u16 = OWNER | GROUP | EVERYONE;
const INHERIT_ONLY: u16 = 0x8;
/// Flags of an entry that its heirs look at.
const INHERITED: u16 = 0x3;
/// Of rights: reading, writing, executing.
const RIGHTS: [(u32, u64); 3] = [(0x1, 4), (0x2, 2), (0x20, 1)];

/// Bits of a file's flags that say what its list is like (`ZFS_INHERIT_ACE`, `ZFS_ACL_TRIVIAL`, `ZFS_ACL_OBJ_ACE`,
/// `ZFS_NO_EXECS_DENIED`).
const HAS_HEIRS: u64 = 0x2;
const TRIVIAL: u64 = 0x4;
const HAS_OBJECTS: u64 = 0x8;
const NO_EXECS_DENIED: u64 = 0x100;
/// Those that whoever sets a list decides, as records say it, and as files do: inherited automatically, protected,
/// defaulted.
const DECIDED: [(u64, u64); 3] = [(1, 0x40), (2, 0x10), (4, 0x20)];

impl Node {
    /// Replaces the list of a file by one of a log, and its mode by the one that the list says.
    pub(super) async fn replace_acl(&self, acl: &LogAcl<'_>) -> Result<()> {
        if !acl.identities.is_empty() {
            return Err(Error::unsupported("owners of other systems' domains"));
        }
        let fs = self.file_system();
        let mut file = self.load().await?;
        let own = file.attributes.word(Attr::Flags).map_err(|e| self.place(e))?.unwrap_or(0);
        let stored: Vec<u8> = acl.entries.iter().flat_map(store).collect();
        let mode = mode_of(file.word(Attr::Mode)?, &acl.entries);
        let tx = fs.begin(COST + stored.len() as u64).await?;
        file.set(Attr::Mode, &[mode])?;
        file.set(Attr::DaclCount, &[acl.entries.len() as u64])?;
        file.attributes.set(Attr::DaclAces, &stored, fs.tables()).map_err(|e| self.place(e))?;
        let heirs = acl.entries.iter().any(|ace| ace.flags & INHERITED != 0);
        let objects = acl.entries.iter().any(|ace| ace.objects.is_some());
        let denied = acl.entries.iter().any(|ace| ace.kind == 1 && ace.mask & 0x20 != 0);
        let kept = own & !(HAS_HEIRS | TRIVIAL | HAS_OBJECTS | NO_EXECS_DENIED | 0x70);
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let decided: u64 = DECIDED.iter().map(|(wanted, flag)| bit(acl.flags & wanted != 0, *flag)).sum();
        let open = !denied && mode & 0o111 == 0o111;
        let says = bit(heirs, HAS_HEIRS) | bit(objects, HAS_OBJECTS) | bit(open, NO_EXECS_DENIED) | decided;
        file.set(Attr::Flags, &[kept | says])?;
        file.touch(false)?;
        file.store(&tx).await
    }
}

/// An entry as files have it.
fn store(ace: &Ace) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(48);
    bytes.extend(ace.kind.to_ne_bytes());
    bytes.extend(ace.flags.to_ne_bytes());
    bytes.extend(ace.mask.to_ne_bytes());
    if ace.flags & WHO == 0 {
        bytes.extend(u64::from(ace.who).to_ne_bytes());
    }
    ace.objects.iter().flatten().for_each(|object| bytes.extend(object));
    bytes
}

/// The mode with the permissions that a list gives the owner, the group and everybody else: of each right the first entry
/// that speaks of it decides.
fn mode_of(old: u64, entries: &[Ace]) -> u64 {
    let (mut seen, mut mode) = (0, 0);
    for ace in entries.iter().filter(|ace| ace.flags & INHERIT_ONLY == 0) {
        let whom: &[u32] = match ace.flags & WHO {
            OWNER => &[6],
            GROUP => &[3],
            EVERYONE => &[6, 3, 0],
            _ => continue,
        };
        for (_, bit) in RIGHTS.into_iter().filter(|(right, _)| ace.mask & right != 0) {
            for shift in whom {
                let bit = bit << shift;
                if seen & bit == 0 && ace.kind == 0 {
                    mode |= bit;
                }
                seen |= bit;
            }
        }
    }
    old & !0o777 | mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_what_the_first_entries_say() {
        let ace = |kind, flags, mask| Ace { kind, flags, mask, ..Ace::default() };
        let list = [
            ace(1, OWNER, 0x20),
            ace(0, OWNER, 0x23),
            ace(0, 0x40, 0x7f),
            ace(0, GROUP | 0x40, 0x1),
            ace(1, EVERYONE, 0x2),
            ace(0, EVERYONE, 0x3),
            ace(0, EVERYONE | INHERIT_ONLY, 0x20),
        ];
        assert_eq!(mode_of(0o104_777, &list), 0o104_644);
        assert_eq!(mode_of(0o100_644, &[]), 0o100_000);
        assert_eq!(store(&list[0]).len(), 8);
        assert_eq!(store(&list[2]).len(), 16);
    }
}
