//! Extended attributes; POSIX ACLs are some of them, where the file system keeps such.

use super::{Asker, Place, Served};
use crate::errno::{Result, errno, errno_if_large};
use rustix::io::Errno;
use units::Kind;
use zpl::XattrMode;

/// POSIX ACLs: of a file, and the one that what is made in a directory begins with.
const ACLS: [&[u8]; 2] = [ACCESS, b"system.posix_acl_default"];
pub(super) const ACCESS: &[u8] = b"system.posix_acl_access";
/// Where other names may be; the kernel says to which programs.
const SPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
const CREATE: i32 = 1;
const REPLACE: i32 = 2;
/// The largest value that the system call takes.
const VALUE_MAX: usize = 64 << 10;
const NAME_MAX: usize = 255;

impl Served {
    fn check_kind(&self, name: &[u8]) -> Result<()> {
        match name {
            name if name.len() > NAME_MAX => Err(Errno::RANGE),
            name if ACLS.contains(&name) && self.posix_acl => Ok(()),
            name if SPACES.contains(&name) => Err(Errno::INVAL),
            name if SPACES.iter().any(|space| name.starts_with(space)) => Ok(()),
            // The kernel passes on what it does not know, and what only file systems of other kinds have.
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    pub async fn get_xattr(&self, number: u64, name: &[u8]) -> Result<Vec<u8>> {
        self.check_kind(name)?;
        let Place::File(file) = self.place(number).await? else { return Err(Errno::NODATA) };
        file.node.xattr(name).await.map_err(|e| errno(&e))?.ok_or(Errno::NODATA)
    }

    /// The names that the caller may see, each with a zero behind it.
    pub async fn list_xattrs(&self, asker: Asker, number: u64) -> Result<Vec<u8>> {
        let Place::File(file) = self.place(number).await? else { return Ok(Vec::new()) };
        let names = file.node.xattr_names().await.map_err(|e| errno(&e))?;
        let mut list = Vec::new();
        for name in names {
            let is_acl = ACLS.contains(&&name[..]);
            if (asker.uid == 0 || !name.starts_with(b"trusted.")) && (self.posix_acl || !is_acl) {
                list.extend(name);
                list.push(0);
            }
        }
        Ok(list)
    }

    pub async fn set_xattr(&self, number: u64, name: &[u8], value: &[u8], flags: i32) -> Result<()> {
        self.check_kind(name)?;
        if value.len() > VALUE_MAX {
            return Err(Errno::TOOBIG);
        }
        let node = self.file(number).await?.node;
        if name == ACLS[1] && !node.is_directory() {
            return Err(Errno::ACCESS);
        }
        let mode = match flags {
            f if f & CREATE != 0 => XattrMode::Create,
            f if f & REPLACE != 0 => XattrMode::Replace,
            _ => XattrMode::Any,
        };
        node.set_xattr_if(name, value, mode).await.map_err(|e| match e.kind() {
            Kind::NotFound if mode == XattrMode::Replace => Errno::NODATA,
            _ => errno_if_large(Errno::NOSPC)(e),
        })
    }

    pub async fn remove_xattr(&self, number: u64, name: &[u8]) -> Result<()> {
        self.check_kind(name)?;
        let node = self.file(number).await?.node;
        match node.remove_xattr(name).await {
            // A list that is not there says what the mode says.
            Err(e) if e.kind() == Kind::NotFound && ACLS.contains(&name) => Ok(()),
            Err(e) if e.kind() == Kind::NotFound => Err(Errno::NODATA),
            removed => removed.map_err(|e| errno(&e)),
        }
    }
}
