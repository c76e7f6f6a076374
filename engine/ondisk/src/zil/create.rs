//! Records that make a file, a directory or a symbolic link.

use crate::bytes::{Reader, Writer};
use crate::zil::acl::Counts;
use crate::zil::{ExtendedAttributes, LogAcl, LogRecordHeader, LogRecordKind, text};
use units::{ObjectId, Result};

/// The object that a record makes: 64 bytes.
///
/// ```text
///   0  object (48 bits), dnode slots beyond the first (bits 56 to 63)
///   8  mode    16  uid    24  gid    32  generation    40  creation time 8 + 8    56  device
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode {
    pub object: ObjectId,
    /// How large its dnode is, in slots of 512 bytes: 1 to 256.
    pub slots: u16,
    pub mode: u64,
    pub uid: u64,
    pub gid: u64,
    /// The txg it was made in.
    pub generation: u64,
    /// Seconds and nanoseconds.
    pub created: [u64; 2],
    /// Of device files; otherwise 0.
    pub device: u64,
}

impl NewNode {
    pub(super) const SIZE: usize = 64;

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<NewNode> {
        let [object, mode, uid, gid, generation] = r.u64s()?;
        let slots = (object >> 56) as u16 + 1;
        let object = object & !(0xff << 56);
        if object >> 48 != 0 {
            return Err(r.corrupt(format_args!("object {object:#x}")));
        }
        let (created, device) = (r.u64s()?, r.u64()?);
        Ok(NewNode { object: ObjectId(object), slots, mode, uid, gid, generation, created, device })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        assert!(self.object.0 >> 48 == 0 && (1..=256).contains(&self.slots), "both fit their bits");
        let object = self.object.0 | u64::from(self.slots - 1) << 56;
        w.u64s(&[object, self.mode, self.uid, self.gid, self.generation]);
        w.u64s(&self.created);
        w.u64(self.device);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateKind {
    File,
    Directory,
    /// The hidden directory with the extended attributes of a file; it has no name.
    XattrDirectory,
    Symlink,
}

/// A new name in a directory, and what it names.
///
/// ```text
///   32  directory    40  the object                     104 ends here, without a list
///  104  counts of the access control list               144 ends here, with one
///       attributes, if any;  the list's data or the domains of foreign owners;  name;  target of a symbolic link
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create<'a> {
    pub what: CreateKind,
    pub directory: ObjectId,
    pub node: NewNode,
    pub extended: Option<ExtendedAttributes>,
    pub acl: Option<LogAcl<'a>>,
    /// Of foreign owners, where there is no list; otherwise they stand with the list.
    pub domains: Vec<&'a [u8]>,
    pub name: &'a [u8],
    /// What a symbolic link leads to; empty for others.
    pub target: &'a [u8],
}

/// What is made, whether with attributes, whether with a list.
fn shape(kind: LogRecordKind) -> Option<(CreateKind, bool, bool)> {
    use CreateKind::*;
    Some(match kind {
        LogRecordKind::Create => (File, false, false),
        LogRecordKind::CreateAttr => (File, true, false),
        LogRecordKind::CreateAcl => (File, false, true),
        LogRecordKind::CreateAclAttr => (File, true, true),
        LogRecordKind::Mkdir => (Directory, false, false),
        LogRecordKind::MkdirAttr => (Directory, true, false),
        LogRecordKind::MkdirAcl => (Directory, false, true),
        LogRecordKind::MkdirAclAttr => (Directory, true, true),
        LogRecordKind::MkXattrDir => (XattrDirectory, false, false),
        LogRecordKind::Symlink => (Symlink, false, false),
        _ => return None,
    })
}

impl<'a> Create<'a> {
    /// None if `kind` makes nothing.
    pub(super) fn decode(kind: LogRecordKind, r: &mut Reader<'a>) -> Result<Option<Create<'a>>> {
        let Some((what, has_attributes, has_acl)) = shape(kind) else { return Ok(None) };
        let directory = ObjectId(r.u64()?);
        let node = NewNode::decode(r)?;
        let counts = has_acl.then(|| Counts::decode(r)).transpose()?;
        let extended = has_attributes.then(|| ExtendedAttributes::decode(r)).transpose()?;
        let acl = counts.map(|counts| LogAcl::decode_data(counts, r)).transpose()?;
        let no_domains = acl.is_some() || what == CreateKind::Symlink;
        let domains = if no_domains { 0 } else { text::domains_of(node.uid, node.gid) };
        let domains = text::decode_all(r, domains)?;
        let name = text::decode(r)?;
        let target = if what == CreateKind::Symlink { text::decode(r)? } else { &[] };
        Ok(Some(Create { what, directory, node, extended, acl, domains, name, target }))
    }

    /// # Panics
    /// When there are attributes or a list for what has no such record: symbolic links, attribute directories.
    pub(super) fn kind(&self) -> LogRecordKind {
        let wanted = (self.what, self.extended.is_some(), self.acl.is_some());
        let kind = LogRecordKind::all().find(|kind| shape(*kind) == Some(wanted));
        kind.expect("files and directories only are made with attributes or a list")
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.u64(self.directory.0);
        self.node.encode(w);
        self.acl.iter().for_each(|acl| acl.encode_counts(w));
        self.extended.iter().for_each(|extended| extended.encode(w));
        self.acl.iter().for_each(|acl| acl.encode_data(w));
        text::encode_all(&self.domains, w);
        text::encode(self.name, w);
        if self.what == CreateKind::Symlink {
            text::encode(self.target, w);
        }
    }

    pub(super) fn length(&self) -> usize {
        let acl = self.acl.as_ref().map_or(0, |acl| Counts::SIZE + acl.data_length());
        let extended = self.extended.as_ref().map_or(0, ExtendedAttributes::length);
        let target = if self.what == CreateKind::Symlink { text::length(self.target) } else { 0 };
        let names = text::length_all(&self.domains) + text::length(self.name) + target;
        LogRecordHeader::SIZE + 8 + NewNode::SIZE + acl + extended + names
    }
}
