//! Whose a file is: user, group and project, whom it is charged to.
//!
//! ```text
//!   file, given to somebody ──▶ its hidden directory ──▶ each extended attribute in it
//! ```
//!
//! The three follow in the same transaction, so that what somebody takes is all of his files and no more.

use super::{Changes, Loaded};
use crate::file_system::accounts::owner_of;
use crate::file_system::node::Node;
use crate::flags;
use crate::quotas::Resource;
use crate::sa::Attr;
use dmu::Owner;
use ondisk::ObjsetFlags;
use units::{Error, Result};

/// What one more file that follows may take on the devices, in bytes: a block of dnodes.
pub(super) const COST_OF_HIDDEN: u64 = 16 << 10;

impl Node {
    /// Owner, group and project, for all of which there must be room.
    pub(super) async fn change_owner(&self, file: &mut Loaded<'_>, changes: &Changes) -> Result<()> {
        let old = owner_of(&file.attributes).map_err(|e| self.place(e))?;
        let new = Owner {
            user: changes.uid.map_or(old.user, u64::from),
            group: changes.gid.map_or(old.group, u64::from),
            project: changes.project.map_or(old.project, u64::from),
        };
        // Who stays the owner takes no more than before.
        let only = |is_new: bool, id: u64| if is_new { id } else { u64::MAX };
        let charged = Owner {
            user: only(new.user != old.user, new.user),
            group: only(new.group != old.group, new.group),
            project: only(new.project != old.project, new.project),
        };
        if new != old {
            self.file_system().check_quota(charged, &Resource::ALL, "change the owner of").await?;
        }
        file.give_to(new)
    }

    /// The hidden directory and the extended attributes in it.
    pub(super) async fn hidden_nodes(&self) -> Result<Vec<Node>> {
        let Some(directory) = self.xattr_directory().await? else { return Ok(Vec::new()) };
        let mut nodes = Vec::new();
        for entry in directory.list_all().await? {
            nodes.push(self.file_system().object(entry.object).await?);
        }
        nodes.push(directory);
        Ok(nodes)
    }
}

impl Loaded<'_> {
    /// Those of its hidden files that belong to others than it does now, loaded and given to its owner.
    pub(super) async fn given_with<'a>(&self, hidden: &'a [Node]) -> Result<Vec<Loaded<'a>>> {
        let owner = owner_of(&self.attributes).map_err(|e| self.node.place(e))?;
        let mut given = Vec::new();
        for node in hidden {
            let mut one = node.load().await?;
            if owner_of(&one.attributes).map_err(|e| node.place(e))? != owner {
                one.give_to(owner)?;
                one.touch(false)?;
                given.push(one);
            }
        }
        Ok(given)
    }

    fn give_to(&mut self, new: Owner) -> Result<()> {
        let place = |e: Error| self.node.place(e);
        let fs = self.node.file_system();
        let old = owner_of(&self.attributes).map_err(place)?;
        if new.project != old.project && !fs.0.set.flags().has(ObjsetFlags::PROJECT_QUOTA_COMPLETE) {
            return Err(place(Error::unsupported("projects in a file system that does not count them")));
        }
        self.set(Attr::Uid, &[new.user])?;
        self.set(Attr::Gid, &[new.group])?;
        if new.project == old.project { Ok(()) } else { self.put_project(new.project) }
    }

    /// The attribute, which files need not have, stands where OpenZFS puts it.
    pub(super) fn put_project(&mut self, project: u64) -> Result<()> {
        let tables = self.node.file_system().tables();
        self.attributes
            .insert_behind(Attr::Links, Attr::Projid, &project.to_ne_bytes(), tables)
            .map_err(|e| self.node.place(e))?;
        let own = self.word(Attr::Flags)?;
        self.set(Attr::Flags, &[own | flags::PROJID])
    }
}
