//! Names: looking one up, making, linking, removing and renaming files.

use super::{File, Place, Served};
use crate::attr::{Attr, decode_device, kind_of, made_up_directory};
use crate::errno::{Result, errno, errno_if_large};
use crate::nodes::{CONTROL, number};
use rustix::fs::RenameFlags;
use rustix::io::Errno;
use zpl::{FileKind, NewFile, Renaming};

/// The longest name that a file can have anywhere; how long new ones may be, the file system says (`longname`).
const NAME_MAX: usize = 1023;
/// The directory of snapshots, in the root.
pub(super) const CONTROL_NAME: &[u8] = b".zfs";
pub(super) const SNAPSHOTS_NAME: &[u8] = b"snapshot";

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub uid: u32,
    pub gid: u32,
    /// Its number in /proc.
    pub process: u32,
}

/// What a file is to be.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub mode: u32,
    pub umask: u32,
    pub rdev: u32,
    /// Of links; empty else.
    pub target: Vec<u8>,
    pub kind: FileKind,
}

impl New {
    pub fn file(mode: u32, umask: u32) -> New {
        New { mode, umask, rdev: 0, target: Vec::new(), kind: FileKind::Regular }
    }

    /// As mknod says it.
    pub fn node(mode: u32, umask: u32, rdev: u32) -> Result<New> {
        Ok(New { rdev, kind: kind_of(mode).ok_or(Errno::INVAL)?, ..New::file(mode, umask) })
    }
}

pub(super) fn check_name(name: &[u8]) -> Result<()> {
    match name {
        name if name.len() > NAME_MAX => Err(Errno::NAMETOOLONG),
        b"" => Err(Errno::INVAL),
        name if name.iter().any(|b| matches!(b, 0 | b'/')) => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

impl Served {
    fn is_root(&self, file: &File) -> bool {
        file.tree == 0 && file.node.id() == self.root().id()
    }

    /// The name is not taken by what we show there.
    fn check_free(&self, parent: &File, name: &[u8]) -> Result<()> {
        check_name(name)?;
        if name.len() > self.name_max() {
            return Err(Errno::NAMETOOLONG);
        }
        if self.is_root(parent) && name == CONTROL_NAME { Err(Errno::EXIST) } else { Ok(()) }
    }

    /// How long a new name may be, in bytes.
    pub fn name_max(&self) -> usize {
        self.root().file_system().settings().name_max()
    }

    /// The file under a name, and its generation; `None` when there is none, which the kernel may remember.
    pub async fn lookup(&self, directory: u64, name: &[u8]) -> Result<Option<(Attr, u64)>> {
        check_name(name)?;
        match self.place(directory).await? {
            Place::Control => Ok(match name {
                SNAPSHOTS_NAME => Some((self.snapshots_attr().await?, 0)),
                _ => None,
            }),
            Place::Snapshots => match self.snapshot_root(name).await? {
                Some(file) => self.told(&file, Some((directory, name))).await.map(Some),
                None => Ok(None),
            },
            Place::File(parent) if self.is_root(&parent) && name == CONTROL_NAME => {
                let control = self.reaches_snapshots().then(|| made_up_directory(CONTROL, self.made));
                Ok(control.map(|control| (control, 0)))
            }
            Place::File(parent) => {
                let node = match name {
                    // Only handles that a client kept are asked for that.
                    b"." => parent.node.clone(),
                    b".." => parent.node.parent().await.map_err(|e| errno(&e))?,
                    name => match parent.node.lookup(name).await {
                        Ok(node) => node,
                        // A name whose file is gone is damage; one that is not there is not.
                        Err(e) if e.kind() == units::Kind::NotFound => {
                            let entry = parent.node.entry(name).await.map_err(|e| errno(&e))?;
                            return match entry {
                                Some(_) => Err(Errno::IO),
                                // A long one that is there is found, also once they are switched off.
                                None if name.len() > self.name_max() => Err(Errno::NAMETOOLONG),
                                None => Ok(None),
                            };
                        }
                        Err(e) => return Err(errno(&e)),
                    },
                };
                let file = File { tree: parent.tree, node };
                let own = (!matches!(name, b"." | b"..")).then_some((directory, name));
                let told = self.told(&file, own).await;
                if told.is_err() {
                    self.let_go(file.node).await;
                }
                told.map(Some)
            }
        }
    }

    /// Makes a file; what it is given of group and rights depends on the directory.
    pub async fn make(&self, asker: Asker, parent: u64, name: &[u8], new: New) -> Result<(Attr, u64)> {
        let directory = parent;
        let parent = self.file(parent).await?;
        self.check_free(&parent, name)?;
        let is_link = new.kind == FileKind::Symlink;
        let file = NewFile {
            permissions: if is_link { 0o777 } else { new.mode & 0o7777 },
            umask: if is_link { 0 } else { new.umask },
            uid: asker.uid,
            gid: asker.gid,
            rdev: decode_device(new.rdev),
            target: &new.target,
            ..NewFile::new(new.kind, 0)
        };
        let node = parent.node.create(name, &file).await.map_err(|e| errno(&e))?;
        self.told(&File { tree: parent.tree, node }, Some((directory, name))).await
    }

    pub async fn link(&self, number: u64, parent: u64, name: &[u8]) -> Result<(Attr, u64)> {
        let directory = parent;
        let (file, parent) = (self.file(number).await?, self.file(parent).await?);
        self.check_free(&parent, name)?;
        if file.tree != parent.tree {
            return Err(Errno::XDEV);
        }
        parent.node.link(name, &file.node).await.map_err(|e| match zpl::Refusal::of(&e) {
            Some(zpl::Refusal::IsDirectory) => Errno::PERM,
            // It lost its last name meanwhile.
            Some(zpl::Refusal::Stale) => Errno::NOENT,
            _ => errno_if_large(Errno::MLINK)(e),
        })?;
        self.told(&file, Some((directory, name))).await
    }

    pub async fn unlink(&self, parent: u64, name: &[u8]) -> Result<()> {
        let parent = self.file(parent).await?;
        self.check_kept(&parent, name)?;
        parent.node.unlink(name).await.map_err(|e| errno(&e))
    }

    pub async fn remove_directory(&self, parent: u64, name: &[u8]) -> Result<()> {
        let parent = self.file(parent).await?;
        self.check_kept(&parent, name)?;
        parent.node.remove_directory(name).await.map_err(|e| errno(&e))
    }

    /// The name is not of what we show there.
    fn check_kept(&self, parent: &File, name: &[u8]) -> Result<()> {
        check_name(name)?;
        if self.is_root(parent) && name == CONTROL_NAME { Err(Errno::PERM) } else { Ok(()) }
    }

    pub async fn rename(
        &self,
        asker: Asker,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        flags: RenameFlags,
    ) -> Result<()> {
        let how = match flags {
            f if f.is_empty() => Renaming::Replace,
            RenameFlags::NOREPLACE => Renaming::NoReplace,
            RenameFlags::EXCHANGE => Renaming::Exchange,
            RenameFlags::WHITEOUT => Renaming::Whiteout { uid: asker.uid, gid: asker.gid },
            _ => return Err(Errno::INVAL),
        };
        let (source, target) = (self.file(from.0).await?, self.file(to.0).await?);
        self.check_kept(&source, from.1)?;
        self.check_free(&target, to.1)?;
        if source.tree != target.tree {
            return Err(Errno::XDEV);
        }
        source.node.rename(from.1, &target.node, to.1, how).await.map_err(|e| errno(&e))?;
        self.note_name(&target, to).await;
        if how == Renaming::Exchange {
            self.note_name(&source, from).await;
        }
        Ok(())
    }

    /// A name stands for another file since just now. Without it statistics call that file as before, and nothing else
    /// is wrong.
    async fn note_name(&self, directory: &File, (parent, name): (u64, &[u8])) {
        if let Ok(Some((object, _))) = directory.node.entry(name).await {
            self.nodes.renamed(number(directory.tree, object.0), parent, name);
        }
    }

    pub async fn read_link(&self, number: u64) -> Result<Vec<u8>> {
        self.file(number).await?.node.read_link().await.map_err(|e| errno(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_client_of_the_kernel_could_send_are_refused() {
        for (name, refused) in [
            (&b"a"[..], None),
            (b"..", None),
            (&[0xff; 255], None),
            (&[0xff; 1023], None),
            (&[b'n'; 1024], Some(Errno::NAMETOOLONG)),
            (b"", Some(Errno::INVAL)),
            (b"a/b", Some(Errno::INVAL)),
            (b"/", Some(Errno::INVAL)),
            (b"a\0b", Some(Errno::INVAL)),
        ] {
            assert_eq!(check_name(name).err(), refused, "{name:?}");
        }
        assert!(New::node(0o120_777, 0, 0).is_err(), "a link is not made by mknod");
        assert!(New::node(0o150_000, 0, 0).is_err());
    }
}
