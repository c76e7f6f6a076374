//! What every record of the log begins with.

use crate::bytes::{Reader, Writer};
use units::{Result, Txg};

/// See the module above for the drawing: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecordHeader {
    /// The code of its kind (`TX_*`); a log by a newer program may hold kinds that we do not know.
    pub code: u64,
    /// The request ignored case in names.
    pub ignores_case: bool,
    /// Bytes of the whole record, this header included: a multiple of 8.
    pub length: u64,
    /// The txg the change itself belongs to: replay skips records of txgs already synced.
    pub txg: Txg,
    pub seq: u64,
}

/// What a record of the log repeats (`TX_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogRecordKind {
    /// Never on disk: it marks in memory where a caller waits.
    Commit = 0,
    Create = 1,
    Mkdir = 2,
    MkXattrDir = 3,
    Symlink = 4,
    Remove = 5,
    Rmdir = 6,
    Link = 7,
    Rename = 8,
    /// With its data; or, when it is exactly as long as its fields, with a pointer to the block that holds them.
    Write = 9,
    Truncate = 10,
    SetAttr = 11,
    AclV0 = 12,
    Acl = 13,
    CreateAcl = 14,
    CreateAttr = 15,
    CreateAclAttr = 16,
    MkdirAcl = 17,
    MkdirAttr = 18,
    MkdirAclAttr = 19,
    /// A write into a block that an earlier [`Write`](LogRecordKind::Write) points to already: only the size is news.
    Write2 = 20,
    SetSaXattr = 21,
    RenameExchange = 22,
    RenameWhiteout = 23,
    CloneRange = 24,
}

/// In the order of their codes, and with the names that `zdb` prints.
const KINDS: [(LogRecordKind, &str); 25] = {
    use LogRecordKind::*;
    [
        (Commit, "TX_COMMIT"),
        (Create, "TX_CREATE"),
        (Mkdir, "TX_MKDIR"),
        (MkXattrDir, "TX_MKXATTR"),
        (Symlink, "TX_SYMLINK"),
        (Remove, "TX_REMOVE"),
        (Rmdir, "TX_RMDIR"),
        (Link, "TX_LINK"),
        (Rename, "TX_RENAME"),
        (Write, "TX_WRITE"),
        (Truncate, "TX_TRUNCATE"),
        (SetAttr, "TX_SETATTR"),
        (AclV0, "TX_ACL_V0"),
        (Acl, "TX_ACL_ACL"),
        (CreateAcl, "TX_CREATE_ACL"),
        (CreateAttr, "TX_CREATE_ATTR"),
        (CreateAclAttr, "TX_CREATE_ACL_ATTR"),
        (MkdirAcl, "TX_MKDIR_ACL"),
        (MkdirAttr, "TX_MKDIR_ATTR"),
        (MkdirAclAttr, "TX_MKDIR_ACL_ATTR"),
        (Write2, "TX_WRITE2"),
        (SetSaXattr, "TX_SETSAXATTR"),
        (RenameExchange, "TX_RENAME_EXCHANGE"),
        (RenameWhiteout, "TX_RENAME_WHITEOUT"),
        (CloneRange, "TX_CLONE_RANGE"),
    ]
};

impl LogRecordKind {
    pub fn all() -> impl Iterator<Item = LogRecordKind> {
        KINDS.iter().map(|(kind, _)| *kind)
    }

    pub fn from_code(code: u64) -> Option<LogRecordKind> {
        KINDS.get(usize::try_from(code).ok()?).map(|(kind, _)| *kind)
    }

    /// As zdb writes it.
    pub fn name(self) -> &'static str {
        KINDS.get(self as usize).map_or("", |(_, name)| name)
    }

    /// Whether records of this kind may stand in the log in another order than that in which they happened, so that
    /// their object may be gone when they are replayed.
    pub fn is_unordered(self) -> bool {
        use LogRecordKind::*;
        matches!(self, Write | Truncate | SetAttr | AclV0 | Acl | Write2 | SetSaXattr | CloneRange)
    }
}

/// In the word that holds the kind.
const IGNORES_CASE: u64 = 1 << 63;

impl LogRecordHeader {
    pub const SIZE: usize = 32;

    /// What OpenZFS calls it, or the number when we do not know it.
    pub fn kind(&self) -> Option<LogRecordKind> {
        LogRecordKind::from_code(self.code)
    }

    /// Proves that the length can be one; whether the record ends in its block is for code that holds the block.
    pub fn decode(r: &mut Reader<'_>) -> Result<LogRecordHeader> {
        let code = r.u64()?;
        let length = r.u64()?;
        if length < LogRecordHeader::SIZE as u64 || !length.is_multiple_of(8) {
            return Err(r.corrupt(format_args!("a record of {length} bytes")));
        }
        let ignores_case = code & IGNORES_CASE != 0;
        Ok(LogRecordHeader {
            code: code & !IGNORES_CASE,
            ignores_case,
            length,
            txg: Txg(r.u64()?),
            seq: r.u64()?,
        })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let case = if self.ignores_case { IGNORES_CASE } else { 0 };
        w.u64s(&[self.code | case, self.length, self.txg.0, self.seq]);
    }
}
