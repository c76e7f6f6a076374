//! One record: which kind has which fields.
//!
//! ```text
//!   | head, 32 bytes | fields of its kind, 8 bytes each | names, data, lists ... | zeros to a multiple of 8 |
//! ```
//!
//! Numbers and lists are in the byte order of the log block, names and data are bytes. A record borrows names and data
//! from the block it was read from, or from the writer that is about to write it.

use crate::bytes::{Reader, Writer};
use crate::zil::acl::Counts;
use crate::zil::{
    Ace, CloneRange, Create, LogAcl, LogRecordHeader, LogRecordKind, NewNode, SetAttr, SetSaXattr, Write,
    text,
};
use units::{ObjectId, Result, Txg};

/// A record with its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The txg the change itself belongs to.
    pub txg: Txg,
    pub seq: u64,
    pub ignores_case: bool,
    pub record: Record<'a>,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    Commit,
    Create(Create<'a>),
    Remove(Remove<'a>),
    Link(Link<'a>),
    Rename(Rename<'a>),
    Write(Write<'a>),
    /// The block that holds the data is that of an earlier record: see [`LogRecordKind::Write2`].
    Write2(Write<'a>),
    Truncate(Truncate),
    SetAttr(SetAttr<'a>),
    AclV0(AclV0),
    Acl(Acl<'a>),
    SetSaXattr(SetSaXattr<'a>),
    CloneRange(CloneRange),
}

/// A name is taken away.
///
/// ```text
///   32  directory    40  name
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remove<'a> {
    pub directory: ObjectId,
    pub name: &'a [u8],
    /// What it named was a directory.
    pub is_directory: bool,
}

/// A further name of a file.
///
/// ```text
///   32  directory    40  object    48  name
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link<'a> {
    pub directory: ObjectId,
    pub object: ObjectId,
    pub name: &'a [u8],
}

/// Another name, perhaps in another directory.
///
/// ```text
///   32  directory of the source    40  of the target    48  the whiteout, 64 bytes, if any
///       name of the source, name of the target
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename<'a> {
    pub how: RenameKind,
    pub source: ObjectId,
    pub target: ObjectId,
    pub source_name: &'a [u8],
    pub target_name: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameKind {
    Plain,
    /// Both names stay, and change what they name.
    Exchange,
    /// The old name stays too, and names this new object.
    Whiteout(NewNode),
}

/// A range becomes zeros; of a file also its end, when the length is 0.
///
/// ```text
///   32  object    40  offset    48  length
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncate {
    pub object: ObjectId,
    /// In bytes, as is `length`.
    pub offset: u64,
    pub length: u64,
}

/// An access control list in file systems before version 3.
///
/// ```text
///   32  object    40  entries    48  the entries
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AclV0 {
    pub object: ObjectId,
    pub entries: Vec<Ace>,
}

/// An access control list.
///
/// ```text
///   32  object    40  counts    80  the list's data
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acl<'a> {
    pub object: ObjectId,
    pub acl: LogAcl<'a>,
}

impl<'a> LogRecord<'a> {
    /// Reads one record and nothing behind it. Of the padding nothing is demanded: older programs left it as it was.
    pub fn decode(r: &mut Reader<'a>) -> Result<LogRecord<'a>> {
        let header = LogRecordHeader::decode(r)?;
        let Some(kind) = header.kind() else {
            return Err(r.corrupt(format_args!("unknown record type {}", header.code)));
        };
        let body = usize::try_from(header.length).unwrap_or(usize::MAX) - LogRecordHeader::SIZE;
        let record = Record::decode(kind, &mut r.within(body, kind.name())?)?;
        let LogRecordHeader { txg, seq, ignores_case, .. } = header;
        Ok(LogRecord { txg, seq, ignores_case, record })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let (start, length) = (w.position(), self.length());
        let &LogRecord { txg, seq, ignores_case, .. } = self;
        let code = self.record.kind() as u64;
        LogRecordHeader { code, ignores_case, length: length as u64, txg, seq }.encode(w);
        self.record.encode(w);
        w.pad_to(start + length);
    }

    /// Bytes of the whole record.
    pub fn length(&self) -> usize {
        self.record.length()
    }
}

impl<'a> Record<'a> {
    pub fn kind(&self) -> LogRecordKind {
        match self {
            Record::Commit => LogRecordKind::Commit,
            Record::Create(create) => create.kind(),
            Record::Remove(remove) if remove.is_directory => LogRecordKind::Rmdir,
            Record::Remove(_) => LogRecordKind::Remove,
            Record::Link(_) => LogRecordKind::Link,
            Record::Rename(rename) => match rename.how {
                RenameKind::Plain => LogRecordKind::Rename,
                RenameKind::Exchange => LogRecordKind::RenameExchange,
                RenameKind::Whiteout(_) => LogRecordKind::RenameWhiteout,
            },
            Record::Write(_) => LogRecordKind::Write,
            Record::Write2(_) => LogRecordKind::Write2,
            Record::Truncate(_) => LogRecordKind::Truncate,
            Record::SetAttr(_) => LogRecordKind::SetAttr,
            Record::AclV0(_) => LogRecordKind::AclV0,
            Record::Acl(_) => LogRecordKind::Acl,
            Record::SetSaXattr(_) => LogRecordKind::SetSaXattr,
            Record::CloneRange(_) => LogRecordKind::CloneRange,
        }
    }

    /// The object whose content or attributes it changes, for the kinds that [may be out of order].
    ///
    /// [may be out of order]: LogRecordKind::is_unordered
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            Record::Write(write) | Record::Write2(write) => Some(write.object),
            Record::Truncate(truncate) => Some(truncate.object),
            Record::SetAttr(set) => Some(set.object),
            Record::AclV0(acl) => Some(acl.object),
            Record::Acl(acl) => Some(acl.object),
            Record::SetSaXattr(set) => Some(set.object),
            Record::CloneRange(clone) => Some(clone.object),
            _ => None,
        }
    }

    /// Bytes of the record with its head, and with zeros to a multiple of 8.
    pub fn length(&self) -> usize {
        let head = LogRecordHeader::SIZE;
        let length = match self {
            Record::Commit => head,
            Record::Create(create) => create.length(),
            Record::Remove(remove) => head + 8 + text::length(remove.name),
            Record::Link(link) => head + 16 + text::length(link.name),
            Record::Rename(rename) => rename.length(),
            Record::Write(write) | Record::Write2(write) => write.length(),
            Record::Truncate(_) => head + 24,
            Record::SetAttr(set) => set.length(),
            Record::AclV0(acl) => head + 16 + acl.entries.len() * Ace::SIZE,
            Record::Acl(acl) => head + 8 + Counts::SIZE + acl.acl.data_length(),
            Record::SetSaXattr(set) => set.length(),
            Record::CloneRange(clone) => clone.length(),
        };
        length.next_multiple_of(8)
    }

    fn decode(kind: LogRecordKind, r: &mut Reader<'a>) -> Result<Record<'a>> {
        use LogRecordKind as K;
        if let Some(create) = Create::decode(kind, r)? {
            return Ok(Record::Create(create));
        }
        Ok(match kind {
            K::Remove | K::Rmdir => Record::Remove(Remove {
                directory: ObjectId(r.u64()?),
                name: text::decode(r)?,
                is_directory: kind == K::Rmdir,
            }),
            K::Link => Record::Link(Link {
                directory: ObjectId(r.u64()?),
                object: ObjectId(r.u64()?),
                name: text::decode(r)?,
            }),
            K::Rename | K::RenameExchange | K::RenameWhiteout => Record::Rename(Rename::decode(kind, r)?),
            K::Write => Record::Write(Write::decode(r)?),
            K::Write2 => Record::Write2(Write::decode(r)?),
            K::Truncate => {
                let [object, offset, length] = r.u64s()?;
                Record::Truncate(Truncate { object: ObjectId(object), offset, length })
            }
            K::SetAttr => Record::SetAttr(SetAttr::decode(r)?),
            K::AclV0 => Record::AclV0(AclV0::decode(r)?),
            K::Acl => {
                let object = ObjectId(r.u64()?);
                let counts = Counts::decode(r)?;
                Record::Acl(Acl { object, acl: LogAcl::decode_data(counts, r)? })
            }
            K::SetSaXattr => Record::SetSaXattr(SetSaXattr::decode(r)?),
            K::CloneRange => Record::CloneRange(CloneRange::decode(r)?),
            // Every other kind makes something, and was dealt with above.
            _ => Record::Commit,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Record::Commit => {}
            Record::Create(create) => create.encode(w),
            Record::Remove(remove) => {
                w.u64(remove.directory.0);
                text::encode(remove.name, w);
            }
            Record::Link(link) => {
                w.u64s(&[link.directory.0, link.object.0]);
                text::encode(link.name, w);
            }
            Record::Rename(rename) => rename.encode(w),
            Record::Write(write) | Record::Write2(write) => write.encode(w),
            Record::Truncate(t) => w.u64s(&[t.object.0, t.offset, t.length]),
            Record::SetAttr(set) => set.encode(w),
            Record::AclV0(acl) => {
                w.u64s(&[acl.object.0, acl.entries.len() as u64]);
                acl.entries.iter().for_each(|ace| ace.encode(w));
            }
            Record::Acl(acl) => {
                w.u64(acl.object.0);
                acl.acl.encode_counts(w);
                acl.acl.encode_data(w);
            }
            Record::SetSaXattr(set) => set.encode(w),
            Record::CloneRange(clone) => clone.encode(w),
        }
    }
}

impl<'a> Rename<'a> {
    fn decode(kind: LogRecordKind, r: &mut Reader<'a>) -> Result<Rename<'a>> {
        let [source, target] = r.u64s()?;
        let how = match kind {
            LogRecordKind::RenameExchange => RenameKind::Exchange,
            LogRecordKind::RenameWhiteout => RenameKind::Whiteout(NewNode::decode(r)?),
            _ => RenameKind::Plain,
        };
        let (source_name, target_name) = (text::decode(r)?, text::decode(r)?);
        Ok(Rename { how, source: ObjectId(source), target: ObjectId(target), source_name, target_name })
    }

    fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.source.0, self.target.0]);
        if let RenameKind::Whiteout(node) = &self.how {
            node.encode(w);
        }
        text::encode(self.source_name, w);
        text::encode(self.target_name, w);
    }

    fn length(&self) -> usize {
        let whiteout = if matches!(self.how, RenameKind::Whiteout(_)) { NewNode::SIZE } else { 0 };
        let names = text::length(self.source_name) + text::length(self.target_name);
        LogRecordHeader::SIZE + 16 + whiteout + names
    }
}

impl AclV0 {
    fn decode(r: &mut Reader<'_>) -> Result<AclV0> {
        let [object, count] = r.u64s()?;
        if count > (r.remaining() / Ace::SIZE) as u64 {
            return Err(r.corrupt(format_args!("{count} entries in {} bytes", r.remaining())));
        }
        let entries = (0..count).map(|_| Ace::decode_short(r)).collect::<Result<_>>()?;
        Ok(AclV0 { object: ObjectId(object), entries })
    }
}
