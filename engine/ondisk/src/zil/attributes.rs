//! Records that set attributes of a file, and the part of a record that holds attributes beyond those of POSIX.

use crate::bytes::{Reader, Writer};
use crate::zil::{LogRecordHeader, text};
use units::{ObjectId, Result};

/// Attributes beyond those of POSIX: read-only, hidden, immutable, project ...
///
/// ```text
///   0  words of the map    4  map, 4 bytes each    then  attributes 8, creation time 8 + 8, stamp 32
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedAttributes {
    /// Which attributes are set by this record, as bits (`XAT_*`).
    pub requested: Vec<u32>,
    /// Their values, for those that are yes or no (`XAT0_*`).
    pub values: u64,
    /// Seconds and nanoseconds.
    pub created: [u64; 2],
    /// What a virus scanner left; or the project, in the first 8 bytes.
    pub stamp: [u8; 32],
}

impl ExtendedAttributes {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<ExtendedAttributes> {
        let words = r.u32()?;
        if words as usize > r.remaining() / 4 {
            return Err(r.corrupt(format_args!("a map of {words} words in {} bytes", r.remaining())));
        }
        let requested = (0..words).map(|_| r.u32()).collect::<Result<_>>()?;
        Ok(ExtendedAttributes { requested, values: r.u64()?, created: r.u64s()?, stamp: r.array()? })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.requested.len() as u32);
        self.requested.iter().for_each(|&word| w.u32(word));
        w.u64(self.values);
        w.u64s(&self.created);
        w.bytes(&self.stamp);
    }

    pub(super) fn length(&self) -> usize {
        4 + self.requested.len() * 4 + 8 + 16 + 32
    }
}

/// Mode, owner, size, times.
///
/// ```text
///   32  object   40  mask   48  mode   56  uid   64  gid   72  size   80  atime 8 + 8   96  mtime 8 + 8
///  112  attributes, if the mask says so     then  domains of foreign owners
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAttr<'a> {
    pub object: ObjectId,
    /// Which of the fields count (`ATTR_*` of Linux).
    pub mask: u64,
    pub mode: u64,
    pub uid: u64,
    pub gid: u64,
    pub size: u64,
    /// Seconds and nanoseconds, as is `modified`.
    pub accessed: [u64; 2],
    pub modified: [u64; 2],
    /// Present exactly if `mask` has [`SetAttr::HAS_EXTENDED`].
    pub extended: Option<ExtendedAttributes>,
    pub domains: Vec<&'a [u8]>,
}

impl<'a> SetAttr<'a> {
    /// In `mask`: attributes beyond those of POSIX follow.
    pub const HAS_EXTENDED: u64 = 1 << 31;

    pub(super) fn decode(r: &mut Reader<'a>) -> Result<SetAttr<'a>> {
        let [object, mask, mode, uid, gid, size] = r.u64s()?;
        let (accessed, modified) = (r.u64s()?, r.u64s()?);
        let has_extended = mask & SetAttr::HAS_EXTENDED != 0;
        let extended = has_extended.then(|| ExtendedAttributes::decode(r)).transpose()?;
        let domains = text::decode_all(r, text::domains_of(uid, gid))?;
        let object = ObjectId(object);
        Ok(SetAttr { object, mask, mode, uid, gid, size, accessed, modified, extended, domains })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        let has_extended = self.mask & SetAttr::HAS_EXTENDED != 0;
        assert_eq!(has_extended, self.extended.is_some(), "the mask says whether there are more attributes");
        assert_eq!(self.domains.len() as u64, text::domains_of(self.uid, self.gid), "as the owners say");
        w.u64s(&[self.object.0, self.mask, self.mode, self.uid, self.gid, self.size]);
        w.u64s(&self.accessed);
        w.u64s(&self.modified);
        self.extended.iter().for_each(|extended| extended.encode(w));
        text::encode_all(&self.domains, w);
    }

    pub(super) fn length(&self) -> usize {
        let extended = self.extended.as_ref().map_or(0, ExtendedAttributes::length);
        LogRecordHeader::SIZE + 80 + extended + text::length_all(&self.domains)
    }
}

/// An extended attribute that is kept in the dnode.
///
/// ```text
///   32  object    40  bytes of the value    48  name, value
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetSaXattr<'a> {
    pub object: ObjectId,
    pub name: &'a [u8],
    /// Empty: the attribute is removed.
    pub value: &'a [u8],
}

impl<'a> SetSaXattr<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<SetSaXattr<'a>> {
        let [object, size] = r.u64s()?;
        let name = text::decode(r)?;
        if size > r.remaining() as u64 {
            return Err(r.corrupt(format_args!("a value of {size} bytes in {}", r.remaining())));
        }
        Ok(SetSaXattr { object: ObjectId(object), name, value: r.bytes(size as usize)? })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[self.object.0, self.value.len() as u64]);
        text::encode(self.name, w);
        w.bytes(self.value);
    }

    pub(super) fn length(&self) -> usize {
        LogRecordHeader::SIZE + 16 + text::length(self.name) + self.value.len()
    }
}
