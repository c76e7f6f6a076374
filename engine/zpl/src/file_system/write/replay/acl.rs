//! Access control lists of records: the entries as they are stored, and the mode that says the same as far as a mode can.

use crate::acl::decode;
use crate::acl_rules::{Acl, hints};
use crate::file_system::node::Node;
use crate::file_system::write::COST;
use crate::sa::Attr;
use ondisk::zil::{Ace, LogAcl};
use units::{Endian, Error, Result};

/// Owner, group that owns, everyone: entries whose flags say who is meant.
const WHO: u16 = 0x1000 | 0x2000 | 0x4000;
/// What whoever sets a list decides, as records say it, and as files do.
const DECIDED: [(u64, u64); 3] = [(1, hints::AUTO_INHERIT), (2, hints::PROTECTED), (4, hints::DEFAULTED)];

impl Node {
    /// Replaces the list of a file by one of a log, and its mode by the one that the list says.
    pub(super) async fn replace_acl(&self, acl: &LogAcl<'_>) -> Result<()> {
        if !acl.identities.is_empty() {
            return Err(Error::unsupported("owners of other systems' domains"));
        }
        let fs = self.file_system();
        let mut file = self.load().await?;
        let stored: Vec<u8> = acl.entries.iter().flat_map(store).collect();
        let list = decode(&stored, Endian::NATIVE).map_err(|e| self.place(e))?;
        let decided = DECIDED.iter().filter(|(wanted, _)| acl.flags & wanted != 0).map(|(_, hint)| hint);
        let has_objects = acl.entries.iter().any(|ace| ace.objects.is_some());
        let says = decided.sum::<u64>() | if has_objects { hints::OBJECTS } else { 0 };
        let owner = (file.word(Attr::Uid)?, file.word(Attr::Gid)?);
        let new = Acl::of(file.word(Attr::Mode)?, list, says, owner);
        let own = file.word(Attr::Flags)?;
        let tx = fs.begin(COST + stored.len() as u64).await?;
        file.set(Attr::Mode, &[new.mode])?;
        file.set(Attr::DaclCount, &[acl.entries.len() as u64])?;
        file.attributes.set(Attr::DaclAces, &stored, fs.tables()).map_err(|e| self.place(e))?;
        file.set(Attr::Flags, &[own & !hints::ALL | new.hints])?;
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
