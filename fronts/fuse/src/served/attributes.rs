//! What is said of files, and of the file system.

use super::{Asker, Place, Served, Space};
use crate::attr::{Attr, kind_bits, made_up_directory};
use crate::errno::{Result, errno};
use crate::nodes::{CONTROL, SNAPSHOTS};
use zpl::{Changes, Node, Time};

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
    pub async fn get_attr(&self, number: u64) -> Result<Attr> {
        match self.place(number).await? {
            Place::Control => Ok(made_up_directory(CONTROL, self.made)),
            Place::Snapshots => self.snapshots_attr().await,
            Place::File(file) => self.attr(&file).await,
        }
    }

    /// The kernel keeps the listing as long as the time is the same. Where that is not known it lists anew each time.
    pub(super) async fn snapshots_attr(&self) -> Result<Attr> {
        let now = || {
            let now = world::wall_clock();
            Time { seconds: now.seconds as i64, nanos: now.nanos }
        };
        let changed = self.dataset.snapshots_changed().await.map_err(|e| errno(&e))?;
        Ok(made_up_directory(SNAPSHOTS, changed.unwrap_or_else(now)))
    }

    pub async fn set_attr(&self, asker: Asker, number: u64, setting: Setting) -> Result<Attr> {
        let file = self.file(number).await?;
        let node = &file.node;
        if let Some(size) = setting.size {
            node.truncate(size).await.map_err(|e| errno(&e))?;
            self.drop_rights(asker, number, node, false).await?;
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
        if setting.uid.is_some() || setting.gid.is_some() {
            drop_capabilities(node).await?;
        }
        self.attr(&file).await
    }

    pub async fn space(&self) -> Result<Space> {
        self.dataset.space().await.map_err(|e| errno(&e))
    }
}

pub(super) async fn drop_capabilities(node: &Node) -> Result<()> {
    match node.xattr(CAPABILITIES).await.map_err(|e| errno(&e))? {
        Some(_) => node.remove_xattr(CAPABILITIES).await.map_err(|e| errno(&e)),
        None => Ok(()),
    }
}

/// As [`super::Served::get_attr`] for what cannot be opened: enough to list it, and an error for whoever looks closer.
pub(super) fn unknown(mut attr: Attr, kind: Option<zpl::FileKind>) -> Attr {
    attr.nlink = 1;
    attr.size = 0;
    attr.mode = kind_bits(kind.unwrap_or(zpl::FileKind::Regular));
    attr
}
