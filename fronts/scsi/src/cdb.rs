//! The bytes of a command. Pure: nothing of a unit is known here.
//!
//! Every field that a command does not have must be 0 where the standard reserves it for something we would have to
//! refuse (protection information, anchors, the obsolete address bits); other reserved bits are ignored, as most
//! targets do.

use crate::BLOCK;
use crate::copy::limits;
use crate::sense::Sense;

/// A range of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub lba: u64,
    pub count: u64,
}

impl Blocks {
    /// In bytes. Only for ranges that were checked against a unit.
    pub fn offset(&self) -> u64 {
        self.lba * BLOCK
    }

    pub fn len(&self) -> u64 {
        self.count * BLOCK
    }
}

/// What data is compared in a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Only that the medium can be read.
    Medium,
    /// Every block with one sent for it.
    Each,
    /// Every block with the same one.
    Same,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reporting {
    All,
    One {
        opcode: u8,
    },
    OneAction {
        opcode: u8,
        action: u16,
    },
    /// Either, as the command has actions or not.
    Whichever {
        opcode: u8,
        action: u16,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    TestUnitReady,
    RequestSense { descriptors: bool, room: usize },
    Inquiry { page: Option<u8>, room: usize },
    ReportLuns { select: u8, room: usize },
    ReadCapacity10,
    ReadCapacity16 { room: usize },
    Read { blocks: Blocks, fua: bool },
    Write { blocks: Blocks, fua: bool, then: Option<Compare> },
    Verify { blocks: Blocks, compare: Compare },
    Prefetch { blocks: Blocks },
    Synchronize { blocks: Blocks, at_once: bool },
    Unmap { len: usize },
    WriteSame { blocks: Blocks, unmap: bool, no_data: bool },
    CompareAndWrite { blocks: Blocks, fua: bool },
    OrWrite { blocks: Blocks, fua: bool },
    GetLbaStatus { lba: u64, room: usize },
    ModeSense { ten: bool, descriptor: bool, long: bool, control: u8, page: u8, subpage: u8, room: usize },
    ModeSelect { ten: bool, len: usize },
    StartStop { start_only: bool },
    PreventAllow { prevent: bool },
    ReportOpcodes { timeouts: bool, what: Reporting, room: usize },
    ReportTaskFunctions { long: bool, room: usize },
    ReportPortGroups { extended: bool, room: usize },
    PersistentIn { action: u8, room: usize },
    PersistentOut { action: u8, kind: u8, len: usize },
    ExtendedCopy { len: usize },
    PopulateToken { list: u32, len: usize },
    WriteUsingToken { list: u32, len: usize },
    AbortCopy { list: u32 },
    CopyStatus { list: u8, room: usize },
    CopyParameters { room: usize },
    TokenInformation { list: u32, room: usize },
    Reserve { ten: bool },
    Release,
}

/// Read fields of a command; those beyond its end are 0, which the length check makes impossible.
struct Cdb<'a>(&'a [u8]);

impl Cdb<'_> {
    fn u8(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn number(&self, at: usize, len: usize) -> u64 {
        (at..at + len).fold(0, |n, i| n << 8 | u64::from(self.u8(i)))
    }

    fn bit(&self, at: usize, bit: u8) -> bool {
        self.u8(at) >> bit & 1 == 1
    }

    fn room(&self, at: usize, len: usize) -> usize {
        self.number(at, len) as usize
    }

    /// The bits of `mask` must be 0.
    fn clear(&self, at: usize, mask: u8) -> Result<(), Sense> {
        let wrong = self.u8(at) & mask;
        if wrong == 0 {
            return Ok(());
        }
        Err(Sense::field(at as u16, Some(7 - wrong.leading_zeros() as u8)))
    }

    /// Address and count of the commands of this length.
    fn blocks(&self) -> Blocks {
        let (lba, count) = match self.0.len() {
            6 => ((1, 3), (4, 1)),
            10 => ((2, 4), (7, 2)),
            12 => ((2, 4), (6, 4)),
            _ => ((2, 8), (10, 4)),
        };
        Blocks { lba: self.number(lba.0, lba.1), count: self.number(count.0, count.1) }
    }

    fn compare(&self) -> Result<Compare, Sense> {
        match self.u8(1) >> 1 & 3 {
            0 => Ok(Compare::Medium),
            1 => Ok(Compare::Each),
            3 => Ok(Compare::Same),
            _ => Err(Sense::field(1, Some(2))),
        }
    }
}

/// How long the commands of this opcode's group are.
fn length(opcode: u8) -> Option<usize> {
    match opcode >> 5 {
        0 => Some(6),
        1 | 2 => Some(10),
        4 => Some(16),
        5 => Some(12),
        _ => None,
    }
}

/// The whole byte of protection bits of a read or write.
const PROTECT: u8 = 0xe0;
const FUA: u8 = 3;
/// A list of registrations is no longer, bytes: room for more identifiers than anybody names.
const MAX_RESERVE_LIST: usize = 64 << 10;
const FUA_NV: u8 = 1;

pub(crate) fn parse(bytes: &[u8]) -> Result<Command, Sense> {
    let &opcode = bytes.first().ok_or(Sense::INVALID_OPCODE)?;
    let len = length(opcode).ok_or(Sense::INVALID_OPCODE)?;
    let cdb = Cdb(bytes.get(..len).ok_or(Sense::INVALID_OPCODE)?);
    let command = command(opcode, &cdb)?;
    // NACA: there is no auto contingent allegiance.
    cdb.clear(len - 1, 0x04)?;
    Ok(command)
}

fn command(opcode: u8, cdb: &Cdb<'_>) -> Result<Command, Sense> {
    Ok(match opcode {
        0x00 => Command::TestUnitReady,
        0x03 => Command::RequestSense { descriptors: cdb.bit(1, 0), room: cdb.room(4, 1) },
        0x12 => inquiry(cdb)?,
        0x1a => mode_sense(cdb, false),
        0x5a => mode_sense(cdb, true),
        0x15 => mode_select(cdb, false)?,
        0x55 => mode_select(cdb, true)?,
        0x16 => reserve(cdb, false)?,
        0x56 => reserve(cdb, true)?,
        0x17 | 0x57 => Command::Release,
        0x1b => Command::StartStop { start_only: cdb.bit(4, 0) && cdb.u8(4) >> 4 == 0 },
        0x1e => Command::PreventAllow { prevent: cdb.u8(4) & 3 != 0 },
        0x08 => read6(cdb),
        0x0a => match read6(cdb) {
            Command::Read { blocks, .. } => Command::Write { blocks, fua: false, then: None },
            other => other,
        },
        0x28 | 0xa8 | 0x88 => {
            let (blocks, fua) = transfer(cdb)?;
            Command::Read { blocks, fua }
        }
        0x2a | 0xaa | 0x8a => {
            let (blocks, fua) = transfer(cdb)?;
            Command::Write { blocks, fua, then: None }
        }
        0x2e | 0xae | 0x8e => {
            cdb.clear(1, PROTECT)?;
            let then = cdb.compare()?;
            if then == Compare::Same {
                return Err(Sense::field(1, Some(2)));
            }
            Command::Write { blocks: cdb.blocks(), fua: true, then: Some(then) }
        }
        0x2f | 0xaf | 0x8f => {
            cdb.clear(1, PROTECT)?;
            Command::Verify { blocks: cdb.blocks(), compare: cdb.compare()? }
        }
        0x34 | 0x90 => Command::Prefetch { blocks: cdb.blocks() },
        0x35 | 0x91 => Command::Synchronize { blocks: cdb.blocks(), at_once: cdb.bit(1, 1) },
        0x25 => read_capacity10(cdb)?,
        0x42 => {
            cdb.clear(1, 0x01)?;
            Command::Unmap { len: cdb.room(7, 2) }
        }
        0x41 => write_same(cdb, false)?,
        0x93 => write_same(cdb, true)?,
        0x89 => {
            cdb.clear(1, PROTECT)?;
            let blocks = Blocks { lba: cdb.number(2, 8), count: cdb.number(13, 1) };
            Command::CompareAndWrite { blocks, fua: cdb.bit(1, FUA) || cdb.bit(1, FUA_NV) }
        }
        0x8b => {
            let (blocks, fua) = transfer(cdb)?;
            Command::OrWrite { blocks, fua }
        }
        0x83 => copy_out(cdb)?,
        0x84 => copy_in(cdb)?,
        0x9e => match cdb.u8(1) & 0x1f {
            0x10 => Command::ReadCapacity16 { room: cdb.room(10, 4) },
            0x12 => Command::GetLbaStatus { lba: cdb.number(2, 8), room: cdb.room(10, 4) },
            _ => return Err(Sense::field(1, Some(4))),
        },
        0xa0 => Command::ReportLuns { select: cdb.u8(2), room: cdb.room(6, 4) },
        0xa3 => maintenance_in(cdb)?,
        0x5e => Command::PersistentIn { action: cdb.u8(1) & 0x1f, room: cdb.room(7, 2) },
        0x5f => persistent_out(cdb)?,
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

fn inquiry(cdb: &Cdb<'_>) -> Result<Command, Sense> {
    cdb.clear(1, 0x02)?;
    let page = cdb.bit(1, 0).then(|| cdb.u8(2));
    if page.is_none() {
        cdb.clear(2, 0xff)?;
    }
    Ok(Command::Inquiry { page, room: cdb.room(3, 2) })
}

fn mode_sense(cdb: &Cdb<'_>, ten: bool) -> Command {
    Command::ModeSense {
        ten,
        descriptor: !cdb.bit(1, 3),
        long: ten && cdb.bit(1, 4),
        control: cdb.u8(2) >> 6,
        page: cdb.u8(2) & 0x3f,
        subpage: cdb.u8(3),
        room: if ten { cdb.room(7, 2) } else { cdb.room(4, 1) },
    }
}

fn mode_select(cdb: &Cdb<'_>, ten: bool) -> Result<Command, Sense> {
    // Pages must be in the page format, and nothing is saved.
    cdb.clear(1, 0x01)?;
    let len = if ten { cdb.room(7, 2) } else { cdb.room(4, 1) };
    match cdb.bit(1, 4) || len == 0 {
        true => Ok(Command::ModeSelect { ten, len }),
        false => Err(Sense::field(1, Some(4))),
    }
}

fn reserve(cdb: &Cdb<'_>, ten: bool) -> Result<Command, Sense> {
    // Third parties and extents are obsolete.
    cdb.clear(1, 0x11)?;
    Ok(Command::Reserve { ten })
}

fn read6(cdb: &Cdb<'_>) -> Command {
    let count = if cdb.u8(4) == 0 { 256 } else { cdb.u8(4).into() };
    Command::Read { blocks: Blocks { lba: cdb.number(1, 3) & 0x1f_ffff, count }, fua: false }
}

fn transfer(cdb: &Cdb<'_>) -> Result<(Blocks, bool), Sense> {
    cdb.clear(1, PROTECT)?;
    Ok((cdb.blocks(), cdb.bit(1, FUA) || cdb.bit(1, FUA_NV)))
}

fn read_capacity10(cdb: &Cdb<'_>) -> Result<Command, Sense> {
    // PMI and its address are obsolete.
    if !cdb.bit(8, 0) && cdb.number(2, 4) != 0 {
        return Err(Sense::field(2, None));
    }
    Ok(Command::ReadCapacity10)
}

fn write_same(cdb: &Cdb<'_>, sixteen: bool) -> Result<Command, Sense> {
    // Protection, ANCHOR, and the obsolete PBDATA and LBDATA.
    cdb.clear(1, PROTECT | 0x10 | 0x06)?;
    if !sixteen {
        cdb.clear(1, 0x01)?;
    }
    let no_data = sixteen && cdb.bit(1, 0);
    Ok(Command::WriteSame { blocks: cdb.blocks(), unmap: cdb.bit(1, 3), no_data })
}

fn copy_out(cdb: &Cdb<'_>) -> Result<Command, Sense> {
    let (list, len) = (cdb.number(6, 4) as u32, cdb.room(10, 4));
    let (command, most) = match cdb.u8(1) & 0x1f {
        0x00 => (Command::ExtendedCopy { len }, limits::MAX_COPY_LIST),
        0x10 => (Command::PopulateToken { list, len }, limits::MAX_POPULATE_LIST),
        0x11 => (Command::WriteUsingToken { list, len }, limits::MAX_WRITE_LIST),
        0x1c => return Ok(Command::AbortCopy { list: cdb.number(2, 4) as u32 }),
        _ => return Err(Sense::field(1, Some(4))),
    };
    if len > most { Err(Sense::LIST_LENGTH) } else { Ok(command) }
}

fn copy_in(cdb: &Cdb<'_>) -> Result<Command, Sense> {
    let room = cdb.room(10, 4);
    Ok(match cdb.u8(1) & 0x1f {
        0x00 => Command::CopyStatus { list: cdb.u8(2), room },
        0x03 => Command::CopyParameters { room },
        0x07 => Command::TokenInformation { list: cdb.number(2, 4) as u32, room },
        _ => return Err(Sense::field(1, Some(4))),
    })
}

fn maintenance_in(cdb: &Cdb<'_>) -> Result<Command, Sense> {
    let room = cdb.room(6, 4);
    match cdb.u8(1) & 0x1f {
        0x0a => match cdb.u8(1) >> 5 {
            0 => Ok(Command::ReportPortGroups { extended: false, room }),
            1 => Ok(Command::ReportPortGroups { extended: true, room }),
            _ => Err(Sense::field(1, Some(7))),
        },
        0x0c => {
            let (opcode, action) = (cdb.u8(3), cdb.number(4, 2) as u16);
            let what = match cdb.u8(2) & 7 {
                0 => Reporting::All,
                1 => Reporting::One { opcode },
                2 => Reporting::OneAction { opcode, action },
                3 => Reporting::Whichever { opcode, action },
                _ => return Err(Sense::field(2, Some(2))),
            };
            Ok(Command::ReportOpcodes { timeouts: cdb.bit(2, 7), what, room })
        }
        0x0d => Ok(Command::ReportTaskFunctions { long: cdb.bit(2, 7), room }),
        _ => Err(Sense::field(1, Some(4))),
    }
}

fn persistent_out(cdb: &Cdb<'_>) -> Result<Command, Sense> {
    let (action, scope, kind) = (cdb.u8(1) & 0x1f, cdb.u8(2) >> 4, cdb.u8(2) & 0x0f);
    // Only whole units are reserved; the commands that register have no scope.
    if scope != 0 && matches!(action, 1 | 2 | 4 | 5) {
        return Err(Sense::field(2, Some(7)));
    }
    let len = cdb.room(5, 4);
    if len > MAX_RESERVE_LIST {
        Err(Sense::LIST_LENGTH)
    } else {
        Ok(Command::PersistentOut { action, kind, len })
    }
}

impl Command {
    /// Bytes of data that the client sends for it, and where on the unit they go, so that they can be received into
    /// buffers cut at its blocks.
    pub fn intake(&self) -> (u64, u64) {
        match *self {
            Command::Write { blocks, .. } | Command::OrWrite { blocks, .. } => {
                (blocks.count * BLOCK, blocks.lba.wrapping_mul(BLOCK))
            }
            Command::Verify { blocks, compare: Compare::Each } => {
                (blocks.count * BLOCK, blocks.lba.wrapping_mul(BLOCK))
            }
            Command::Verify { blocks, compare: Compare::Same } if blocks.count > 0 => (BLOCK, 0),
            Command::CompareAndWrite { blocks, .. } => (blocks.count * BLOCK * 2, 0),
            Command::WriteSame { no_data: false, .. } => (BLOCK, 0),
            Command::Unmap { len }
            | Command::ModeSelect { len, .. }
            | Command::PersistentOut { len, .. }
            | Command::ExtendedCopy { len }
            | Command::PopulateToken { len, .. }
            | Command::WriteUsingToken { len, .. } => (len as u64, 0),
            _ => (0, 0),
        }
    }

    /// Whether the client must announce exactly the length of the data: a part of it would be no command.
    pub fn is_exact(&self) -> bool {
        matches!(self, Command::CompareAndWrite { .. } | Command::WriteSame { .. })
    }
}

#[cfg(test)]
mod tests;
