//! What is said of files, and of the file system.

use super::{Asker, Place, Served, Space, is_directory};
use crate::acl;
use crate::attr::made_up_directory;
use crate::errno::{Result, errno};
use crate::nodes::{CONTROL, SNAPSHOTS};
use fuser::FileAttr;
use zpl::{Changes, Node, Time};

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o10;
/// Rights that a program has of its file.
const CAPABILITIES: &[u8] = b"security.capability";

/// What is to change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<Time>,
    pub mtime: Option<Time>,
}

impl Served {
    pub async fn get_attr(&self, number: u64) -> Result<FileAttr> {
        match self.place(number).await? {
            Place::Control => Ok(made_up_directory(CONTROL, self.made)),
            Place::Snapshots => Ok(made_up_directory(SNAPSHOTS, self.made)),
            Place::File(file) => self.attr(&file).await,
        }
    }

    pub async fn set_attr(&self, asker: Asker, number: u64, setting: Setting) -> Result<FileAttr> {
        let file = self.file(number).await?;
        let node = &file.node;
        if let Some(size) = setting.size {
            node.truncate(size).await.map_err(|e| errno(&e))?;
            // The kernel says who may keep these rights; this request has no word for it.
            if asker.uid != 0 {
                drop_rights(node).await?;
            }
        }
        let changes = Changes {
            permissions: setting.mode.map(|mode| mode & 0o7777),
            uid: setting.uid,
            gid: setting.gid,
            atime: setting.atime,
            mtime: setting.mtime,
            ..Changes::default()
        };
        if changes != Changes::default() {
            node.change(&changes).await.map_err(|e| errno(&e))?;
        }
        if (setting.uid.is_some() || setting.gid.is_some()) && setting.mode.is_none() {
            drop_rights(node).await?;
        }
        if let Some(mode) = setting.mode
            && self.posix_acl
            && let Some(list) = self.acl_of(node, acl::ACCESS).await?
        {
            node.set_xattr(acl::ACCESS, &list.with_mode(mode).encode()).await.map_err(|e| errno(&e))?;
        }
        self.attr(&file).await
    }

    pub async fn space(&self) -> Result<Space> {
        self.dataset.space().await.map_err(|e| errno(&e))
    }
}

/// Whoever changes a program, or gives it away, takes from it what it may do in its owner's name.
pub(super) async fn drop_rights(node: &Node) -> Result<()> {
    if is_directory(node.kind()) {
        return Ok(());
    }
    let has = node.stat().await.map_err(|e| errno(&e))?.permissions;
    let group = if has & GROUP_EXECUTE != 0 { SETGID } else { 0 };
    let left = has & !(SETUID | group);
    if left != has {
        let changes = Changes { permissions: Some(left), ..Changes::default() };
        node.change(&changes).await.map_err(|e| errno(&e))?;
    }
    match node.xattr(CAPABILITIES).await.map_err(|e| errno(&e))? {
        Some(_) => node.remove_xattr(CAPABILITIES).await.map_err(|e| errno(&e)),
        None => Ok(()),
    }
}

/// As [`super::Served::get_attr`] for what cannot be opened: enough to list it, and an error for whoever looks closer.
pub(super) fn unknown(mut attr: FileAttr, kind: Option<zpl::FileKind>) -> FileAttr {
    attr.perm = 0;
    attr.nlink = 1;
    attr.size = 0;
    attr.kind = crate::attr::file_type(kind.unwrap_or(zpl::FileKind::Regular));
    attr
}
