//! Extended attributes, and the POSIX ACLs that are some of them.

use super::{Asker, Place, Served};
use crate::acl::{self, Acl};
use crate::errno::{Result, errno, errno_if_large};
use fuser::Errno;
use zpl::{Changes, Node};

const CREATE: i32 = 1;
const REPLACE: i32 = 2;
/// The largest value that the system call takes.
const VALUE_MAX: usize = 64 << 10;
const NAME_MAX: usize = 255;

fn is_acl(name: &[u8]) -> bool {
    name == acl::ACCESS || name == acl::DEFAULT
}

impl Served {
    fn check_kind(&self, name: &[u8]) -> Result<()> {
        match name {
            name if name.len() > NAME_MAX => Err(Errno::ERANGE),
            name if is_acl(name) && !self.posix_acl => Err(Errno::EOPNOTSUPP),
            _ => Ok(()),
        }
    }

    /// A list of a file; one that makes no sense is damage.
    pub(super) async fn acl_of(&self, node: &Node, name: &[u8]) -> Result<Option<Acl>> {
        match node.xattr(name).await.map_err(|e| errno(&e))? {
            Some(bytes) => Acl::decode(&bytes).map(Some).ok_or(Errno::EIO),
            None => Ok(None),
        }
    }

    pub async fn get_xattr(&self, number: u64, name: &[u8]) -> Result<Vec<u8>> {
        self.check_kind(name)?;
        let Place::File(file) = self.place(number).await? else { return Err(Errno::ENODATA) };
        file.node.xattr(name).await.map_err(|e| errno(&e))?.ok_or(Errno::ENODATA)
    }

    /// The names that somebody may see, each with a zero behind it.
    pub async fn list_xattrs(&self, asker: Asker, number: u64) -> Result<Vec<u8>> {
        let Place::File(file) = self.place(number).await? else { return Ok(Vec::new()) };
        let names = file.node.xattr_names().await.map_err(|e| errno(&e))?;
        let is_shown = |name: &Vec<u8>| {
            (asker.uid == 0 || !name.starts_with(b"trusted.")) && (self.posix_acl || !is_acl(name))
        };
        Ok(names
            .into_iter()
            .filter(is_shown)
            .flat_map(|mut name| {
                name.push(0);
                name
            })
            .collect())
    }

    pub async fn set_xattr(&self, number: u64, name: &[u8], value: &[u8], flags: i32) -> Result<()> {
        self.check_kind(name)?;
        if value.len() > VALUE_MAX {
            return Err(Errno::E2BIG);
        }
        let node = self.file(number).await?.node;
        if flags & (CREATE | REPLACE) != 0 {
            let is_there = node.xattr(name).await.map_err(|e| errno(&e))?.is_some();
            match is_there {
                true if flags & CREATE != 0 => return Err(Errno::EEXIST),
                false if flags & REPLACE != 0 => return Err(Errno::ENODATA),
                _ => {}
            }
        }
        if name == acl::ACCESS {
            return self.set_access(&node, value).await;
        }
        if name == acl::DEFAULT {
            if !node.is_directory() {
                return Err(Errno::EACCES);
            }
            Acl::decode(value).ok_or(Errno::EINVAL)?;
        }
        node.set_xattr(name, value).await.map_err(errno_if_large(Errno::ENOSPC))
    }

    /// The mode says the same as the list; when it says all of it there is no list.
    async fn set_access(&self, node: &Node, value: &[u8]) -> Result<()> {
        let list = Acl::decode(value).ok_or(Errno::EINVAL)?;
        if !list.is_trivial() {
            node.set_xattr(acl::ACCESS, value).await.map_err(errno_if_large(Errno::ENOSPC))?;
        }
        let has = node.stat().await.map_err(|e| errno(&e))?.permissions;
        let permissions = Some(has & !0o777 | list.mode());
        node.change(&Changes { permissions, ..Changes::default() }).await.map_err(|e| errno(&e))?;
        if list.is_trivial() { remove_if_there(node, acl::ACCESS).await } else { Ok(()) }
    }

    pub async fn remove_xattr(&self, number: u64, name: &[u8]) -> Result<()> {
        self.check_kind(name)?;
        let node = self.file(number).await?.node;
        if is_acl(name) {
            return remove_if_there(&node, name).await;
        }
        node.remove_xattr(name).await.map_err(|e| match e.kind() {
            units::Kind::NotFound => Errno::ENODATA,
            _ => errno(&e),
        })
    }
}

async fn remove_if_there(node: &Node, name: &[u8]) -> Result<()> {
    match node.remove_xattr(name).await {
        Err(e) if e.kind() != units::Kind::NotFound => Err(errno(&e)),
        _ => Ok(()),
    }
}
