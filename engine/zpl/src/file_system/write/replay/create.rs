//! Files, directories, symbolic links and devices come to be again, with the numbers that they had.

use super::Replay;
use crate::file_system::node::Node;
use crate::file_system::write::make::{Birth, NewFile, Plan};
use crate::file_system::write::{COST, Refusal};
use crate::sa::Attr;
use crate::stat::{FileKind, device, kind_of};
use dmu::Owner;
use ondisk::zil::{Create, CreateKind, NewNode};
use units::{Error, Result};

impl Replay {
    pub(super) async fn create(&self, create: &Create<'_>) -> Result<()> {
        let directory = self.node(create.directory).await?;
        if create.what == CreateKind::XattrDirectory {
            return directory.make_xattr_directory(&create.node).await;
        }
        let node = self.make(&directory, create.name, &create.node, create.target).await?;
        if let Some(extended) = &create.extended {
            node.set_extended(extended).await?;
        }
        // OpenZFS 2.3 leaves the entries out of what it logs of a new file: then there is nothing to be had.
        match create.acl.as_ref().filter(|acl| !acl.entries.is_empty()) {
            Some(acl) => node.replace_acl(acl).await,
            None => Ok(()),
        }
    }

    pub(super) async fn make(
        &self,
        directory: &Node,
        name: &[u8],
        node: &NewNode,
        target: &[u8],
    ) -> Result<Node> {
        let new = NewFile {
            rdev: device(node.device),
            target,
            uid: owner(node.uid)?,
            gid: owner(node.gid)?,
            ..NewFile::new(kind_of(node.mode)?, node.mode as u32)
        };
        directory.create_as(name, &new, Some(&birth(node)?)).await
    }
}

fn birth(node: &NewNode) -> Result<Birth> {
    let slots = u8::try_from(node.slots).map_err(|_| Error::corrupt("a dnode of 256 slots"))?;
    let object = node.object.some().ok_or_else(|| Error::corrupt("a file that is object 0"))?;
    Ok(Birth { object, slots, generation: node.generation, at: node.created })
}

/// An owner as Linux has them; one of another system's domain has no number here.
pub(super) fn owner(id: u64) -> Result<u32> {
    u32::try_from(id).map_err(|_| Error::unsupported("owners of other systems' domains"))
}

impl Node {
    /// Makes the directory for the extended attributes of this file.
    pub(super) async fn make_xattr_directory(&self, node: &NewNode) -> Result<()> {
        let fs = self.file_system();
        let birth = birth(node)?;
        let mut file = self.load().await?;
        if file.attributes.word(Attr::Xattr).map_err(|e| self.place(e))?.is_some_and(|id| id != 0) {
            return Err(self.refuse(Refusal::Stale, "make a directory of extended attributes for"));
        }
        let owner = Owner { user: owner(node.uid)?.into(), group: owner(node.gid)?.into(), project: 0 };
        let plan = Plan::of_xattrs(self, &file.attributes, FileKind::Directory, owner)?.again(Some(birth));
        let tx = fs.begin(COST).await?;
        fs.make_object(&tx, &plan).await?;
        file.set(Attr::Xattr, &[birth.object.0])?;
        file.store(&tx).await
    }
}
