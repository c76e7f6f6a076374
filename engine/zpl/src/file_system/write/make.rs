//! What a new file is, and making its object.
//!
//! ```text
//!   NewFile (asked for) + directory (group, project, lists to be inherited) ─▶ Plan ─▶ attributes ─▶ object
//! ```

use super::{now, padded};
use crate::acl::encode;
use crate::acl_rules::{Acl, hints};
use crate::attributes::NEW_FILE;
use crate::file_system::FileSystem;
use crate::file_system::node::Node;
use crate::flags;
use crate::posix_acl::{self, PosixAcl};
use crate::sa::{Attr, Attributes};
use crate::settings::AclType;
use crate::stat::FileKind;
use dmu::{NewObject, Object, Owner, Tx};
use ondisk::{DnodePhys, NvList, NvValue, ObjectType, ObjsetFlags};
use units::{ObjectId, Result};
use zap::{Options, Zap};

const SET_GID: u64 = 0o2000;

/// What a new file is.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    pub kind: FileKind,
    /// The lower twelve bits of its mode.
    pub permissions: u32,
    /// Permissions that it does not get, unless the directory has a default list.
    pub umask: u32,
    pub uid: u32,
    /// In a directory with the set-group-id bit it is the directory's instead.
    pub gid: u32,
    /// Of devices.
    pub rdev: (u32, u32),
    /// Of symbolic links.
    pub target: &'a [u8],
}

impl NewFile<'_> {
    /// A file or directory of root's.
    pub fn new(kind: FileKind, permissions: u32) -> NewFile<'static> {
        NewFile { kind, permissions, umask: 0, uid: 0, gid: 0, rdev: (0, 0), target: b"" }
    }

    /// The number of a device, as it is stored; 0 for other files.
    pub(super) fn device(&self) -> u64 {
        match self.kind {
            FileKind::BlockDevice | FileKind::CharDevice => {
                u64::from(self.rdev.0) << 20 | u64::from(self.rdev.1 & 0xf_ffff)
            }
            _ => 0,
        }
    }
}

/// What a log says of the making of a file: it becomes the same one again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Birth {
    pub object: ObjectId,
    pub slots: u8,
    pub generation: u64,
    /// Seconds and nanoseconds.
    pub at: [u64; 2],
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Made {
    pub object: ObjectId,
    pub slots: u8,
    /// With the kind.
    pub mode: u64,
    pub gid: u64,
    pub generation: u64,
    pub at: [u64; 2],
}

/// All that is decided about a new file before its object is made.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    new: NewFile<'a>,
    parent: ObjectId,
    gid: u64,
    /// None where files have no projects.
    project: Option<u64>,
    /// Besides those of the list.
    flags: u64,
    acl: Acl,
    /// Those that it has from the start.
    xattrs: NvList,
    /// Of its dnode.
    slots: u8,
    /// It was made before, and the log says how.
    born: Option<Birth>,
}

impl<'a> Plan<'a> {
    /// Of a file in `directory`, whose attributes are these.
    pub async fn below(directory: &Node, above: &Attributes, new: &NewFile<'a>) -> Result<Plan<'a>> {
        let fs = directory.file_system();
        let place = |e| directory.place(e);
        let flags_above = above.word(Attr::Flags).map_err(place)?.unwrap_or(0);
        let mode_above = above.require(Attr::Mode).map_err(place)?;
        let settings = fs.settings();
        let mut gid = u64::from(new.gid);
        let mut mode = u64::from(new.kind.mode_bits() | new.permissions & 0o7777);
        if mode_above & SET_GID != 0 {
            gid = above.require(Attr::Gid).map_err(place)?;
            mode |= if new.kind == FileKind::Directory { SET_GID } else { 0 };
        }
        let mut xattrs = NvList::new();
        match default_list(directory, new, settings.acl_type).await? {
            Some(default) => {
                let (own, its_mode) = default.clone().create(mode);
                mode = its_mode;
                let mut keep = |name: &[u8], list: &PosixAcl| {
                    xattrs.set(String::from_utf8_lossy(name).as_ref(), NvValue::ByteArray(list.encode()));
                };
                if !own.is_mode() {
                    keep(posix_acl::ACCESS, &own);
                }
                if new.kind == FileKind::Directory {
                    keep(posix_acl::DEFAULT, &default);
                }
            }
            None => mode &= !u64::from(new.umask & 0o777),
        }
        let has_list = flags_above & (hints::INHERIT | flags::XATTR) == hints::INHERIT;
        let acl = match has_list {
            true => Acl::inherited(mode, &directory.acl_in(above).await?, &settings, (new.uid.into(), gid)),
            false => Acl::trivial(mode),
        };
        let gives = matches!(new.kind, FileKind::Regular | FileKind::Directory);
        Ok(Plan {
            new: *new,
            parent: directory.id().object,
            gid,
            project: project_of(fs, above, flags_above).map_err(place)?,
            flags: flags_above & (flags::XATTR | if gives { flags::PROJINHERIT } else { 0 }),
            acl,
            xattrs,
            slots: settings.slots(),
            born: None,
        })
    }

    /// Of the directory of extended attributes of `node`, whose attributes are these; or, with it as `node`, of one of the
    /// files in it. They belong to the file's owner.
    pub fn of_xattrs(node: &Node, above: &Attributes, kind: FileKind, owner: Owner) -> Result<Plan<'a>> {
        let fs = node.file_system();
        let permissions = if kind == FileKind::Directory { 0o1777 } else { 0o644 };
        let new = NewFile { uid: owner.user as u32, ..NewFile::new(kind, permissions) };
        let flags_above = above.word(Attr::Flags).map_err(|e| node.place(e))?.unwrap_or(0);
        Ok(Plan {
            new,
            parent: node.id().object,
            gid: owner.group,
            project: project_of(fs, above, flags_above).map_err(|e| node.place(e))?,
            flags: flags::XATTR,
            acl: Acl::trivial(u64::from(kind.mode_bits() | permissions)),
            xattrs: NvList::new(),
            slots: fs.settings().slots(),
            born: None,
        })
    }

    /// The same file that a log knows.
    pub fn again(self, born: Option<Birth>) -> Plan<'a> {
        let slots = born.map_or(self.slots, |born| born.slots);
        Plan { born, slots, ..self }
    }

    /// Whether all that it is follows from what a log says of every file.
    pub fn is_plain(&self) -> bool {
        self.xattrs.is_empty() && self.acl.hints & hints::TRIVIAL != 0
    }

    /// What it is.
    pub fn new_file(&self) -> &NewFile<'a> {
        &self.new
    }

    /// What it has taken over from its directory, and a log must say besides.
    pub fn taken_over(&self) -> (&Acl, &NvList) {
        (&self.acl, &self.xattrs)
    }

    /// Whom it will be charged to.
    pub fn owner(&self) -> Owner {
        Owner { user: self.new.uid.into(), group: self.gid, project: self.project.unwrap_or(0) }
    }

    /// In the order in which OpenZFS stores them, so that layouts are shared.
    fn attributes(&self, fs: &FileSystem, (generation, time): (u64, [u64; 2])) -> Result<Attributes> {
        let NewFile { kind, uid, target, .. } = self.new;
        let is_directory = kind == FileKind::Directory;
        let mut attributes = Attributes::of_new_file();
        let mut set = |attr, words: &[u64]| attributes.set_words(attr, words, fs.tables());
        set(Attr::Mode, &[self.acl.mode])?;
        let size = if is_directory { 2 } else { target.len() as u64 };
        set(Attr::Size, &[size])?;
        set(Attr::Gen, &[generation])?;
        set(Attr::Uid, &[uid.into()])?;
        set(Attr::Gid, &[self.gid])?;
        set(Attr::Parent, &[self.parent.0])?;
        let project = self.project.map_or(0, |_| flags::PROJID);
        set(Attr::Flags, &[NEW_FILE | self.flags | self.acl.hints | project])?;
        for attr in [Attr::Atime, Attr::Mtime, Attr::Ctime, Attr::Crtime] {
            set(attr, &time)?;
        }
        set(Attr::Links, &[if is_directory { 2 } else { 1 }])?;
        if let Some(project) = self.project {
            set(Attr::Projid, &[project])?;
        }
        if matches!(kind, FileKind::BlockDevice | FileKind::CharDevice) {
            set(Attr::Rdev, &[self.new.device()])?;
        }
        set(Attr::DaclCount, &[self.acl.list.len() as u64])?;
        attributes.set(Attr::DaclAces, &encode(&self.acl.list)?, fs.tables())?;
        if kind == FileKind::Symlink {
            attributes.set(Attr::Symlink, target, fs.tables())?;
        }
        if !self.xattrs.is_empty() {
            attributes.set(Attr::Dxattr, &self.xattrs.encode(), fs.tables())?;
        }
        Ok(attributes)
    }
}

/// The list that a directory gives to what is made in it.
async fn default_list(directory: &Node, new: &NewFile<'_>, acl_type: AclType) -> Result<Option<PosixAcl>> {
    if acl_type != AclType::Posix || new.kind == FileKind::Symlink {
        return Ok(None);
    }
    let list = directory.xattr(posix_acl::DEFAULT).await?;
    list.map(|list| PosixAcl::decode(&list)).transpose().map_err(|e| directory.place(e))
}

/// The project of what is made in a directory with these attributes.
fn project_of(fs: &FileSystem, above: &Attributes, flags_above: u64) -> Result<Option<u64>> {
    if !fs.0.set.flags().has(ObjsetFlags::PROJECT_QUOTA_COMPLETE) {
        return Ok(None);
    }
    let is_given = flags_above & (flags::PROJINHERIT | flags::XATTR) != 0;
    Ok(Some(if is_given { above.word(Attr::Projid)?.unwrap_or(0) } else { 0 }))
}

impl FileSystem {
    /// Makes the object of a new file, which has no name yet; a directory is empty.
    pub(super) async fn make_object(&self, tx: &Tx, plan: &Plan<'_>) -> Result<(Object, Made)> {
        let (generation, at) =
            plan.born.map_or_else(|| (tx.txg().0, now()), |born| (born.generation, born.at));
        let attributes = plan.attributes(self, (generation, at))?;
        let room = DnodePhys::bonus_max(plan.slots.into(), 1, false);
        let encoded = attributes.encode(self.tables(), tx, room).await?;
        let content = match plan.new.kind {
            FileKind::Directory => ObjectType::DIRECTORY_CONTENTS,
            _ => ObjectType::PLAIN_FILE_CONTENTS,
        };
        let mut object = NewObject::new(content, 512)
            .with_bonus(ObjectType::SA, encoded.bonus)
            .with_indirect_shift(self.settings().indirect_shift);
        object.slots = plan.slots;
        let object = match plan.born {
            Some(born) => self.0.set.claim_free(tx, born.object, &object).await?,
            None => self.0.set.allocate(tx, object).await?,
        };
        object.set_spill(tx, encoded.spill.as_deref().map(padded))?;
        if plan.new.kind == FileKind::Directory {
            let options = Options { normalization: self.normalization(), ..Options::default() };
            Zap::format(object.clone(), tx, options, world::random_u64())?;
        }
        let (slots, mode, gid) = (plan.slots, plan.acl.mode, plan.gid);
        let made = Made { object: object.id(), slots, mode, gid, generation, at };
        Ok((object, made))
    }
}
