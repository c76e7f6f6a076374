//! Extended attributes, wherever they are.
//!
//! ```text
//!   xattr=sa    system attribute ZPL_DXATTR: an nvlist of names to bytes, in the bonus or the spill block
//!   xattr=dir   system attribute ZPL_XATTR ──▶ a directory ── name ──▶ a file with the value
//! ```
//!
//! A file may have both; what is in the nvlist counts first. Names are kept with their namespace, as Linux knows them:
//! `user.mime`, `security.selinux`, `system.posix_acl_access`. A name without one is of another system and shown as the
//! user's.

use crate::file_system::node::Node;
use crate::sa::Attr;
use ondisk::{NvList, NvValue};
use units::{Error, ObjectId, Result};

/// The largest value that is read from a file: Linux has no larger one than 64 KiB, other systems do.
const VALUE_MAX: u64 = 16 << 20;

/// The namespaces of Linux.
const NAMESPACES: [&[u8]; 4] = [b"user.", b"system.", b"security.", b"trusted."];
/// Other systems' own, which mean nothing here.
const FOREIGN: [&[u8]; 2] = [b"freebsd:", b"SUNWattr_"];

/// The name under which a stored one is shown, if at all.
fn shown(stored: &[u8]) -> Option<Vec<u8>> {
    let has = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| stored.starts_with(prefix));
    if has(&FOREIGN) {
        return None;
    }
    Some(if has(&NAMESPACES) { stored.to_vec() } else { [b"user.", stored].concat() })
}

impl Node {
    /// The nvlist of those that are kept with the attributes.
    pub(crate) async fn xattr_list(&self) -> Result<NvList> {
        let Some(packed) = self.attribute(Attr::Dxattr).await? else { return Ok(NvList::new()) };
        if packed.is_empty() {
            return Ok(NvList::new());
        }
        NvList::decode(&packed).map_err(|e| self.place(e.at("attribute ZPL_DXATTR")))
    }

    /// The directory of those that are files.
    pub(crate) async fn xattr_directory(&self) -> Result<Option<Node>> {
        let bytes = self.attribute(Attr::Xattr).await?;
        let Some(id) = bytes.and_then(|b| b.first_chunk().copied()).map(u64::from_ne_bytes) else {
            return Ok(None);
        };
        let Some(id) = ObjectId(id).some() else { return Ok(None) };
        let directory = self.file_system().object(id).await?;
        if !directory.is_directory() || !directory.is_xattr() {
            let what = format!("attribute ZPL_XATTR: object {id} is no directory of extended attributes");
            return Err(self.place(Error::corrupt(what)));
        }
        Ok(Some(directory))
    }

    /// The names, sorted.
    pub async fn xattr_names(&self) -> Result<Vec<Vec<u8>>> {
        let list = self.xattr_list().await?;
        let mut names: Vec<Vec<u8>> = list.iter().filter_map(|(name, _)| shown(name.as_bytes())).collect();
        if let Some(directory) = self.xattr_directory().await? {
            names.extend(directory.list_all().await?.iter().filter_map(|entry| shown(&entry.name)));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The value under a name; `None` when there is none.
    pub async fn xattr(&self, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let own = name
            .strip_prefix(b"user.")
            .filter(|rest| !rest.is_empty() && shown(rest).as_deref() == Some(name));
        for stored in [Some(name), own].into_iter().flatten() {
            if let Some(value) = self.stored_xattr(stored).await? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    async fn stored_xattr(&self, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let list = self.xattr_list().await?;
        let value = std::str::from_utf8(name).ok().and_then(|name| list.get(name));
        match value {
            Some(NvValue::ByteArray(value) | NvValue::Uint8Array(value)) => return Ok(Some(value.clone())),
            Some(other) => {
                let name = String::from_utf8_lossy(name);
                return Err(self.place(Error::corrupt(format!("extended attribute {name}: {other:?}"))));
            }
            None => {}
        }
        let Some(directory) = self.xattr_directory().await? else { return Ok(None) };
        let Some((object, _)) = directory.entry(name).await? else { return Ok(None) };
        let file = self.file_system().object(object).await?;
        let size = file.size()?;
        if size > VALUE_MAX {
            let name = String::from_utf8_lossy(name);
            return Err(self.place(Error::corrupt(format!("extended attribute {name} of {size} bytes"))));
        }
        Ok(Some(file.read(0, size as usize).await?.to_vec()))
    }

    /// All names with their values.
    pub async fn xattrs(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut all = Vec::new();
        for name in self.xattr_names().await? {
            if let Some(value) = self.xattr(&name).await? {
                all.push((name, value));
            }
        }
        Ok(all)
    }
}
