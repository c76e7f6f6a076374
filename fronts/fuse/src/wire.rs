//! The protocol of `/dev/fuse`: a request's bytes taken apart, an answer's put together.
//!
//! ```text
//!   request   40 bytes of header │ a structure, by opcode │ names, each with a zero behind it; data
//!             length u32, opcode u32, unique u64, node u64, uid u32, gid u32, pid u32, ...
//!   answer    16 bytes of header │ a structure, by opcode │ names, data
//!             length u32, error i32, unique u64
//! ```
//!
//! Layouts and numbers are those of the kernel's `include/uapi/linux/fuse.h`, 7.31 (Linux 5.4) and later; all numbers are of
//! the machine's order. Nothing that a request says of lengths is trusted: what does not lie in its bytes is no request.

use crate::attr::Attr;
use std::time::Duration;
use zpl::Time;

pub(crate) const IN_HEADER: usize = 40;
pub(crate) const OUT_HEADER: usize = 16;
/// The oldest protocol that is spoken.
pub(crate) const MINOR_MIN: u32 = 31;
const MAJOR: u32 = 7;
/// The newest that is known.
const MINOR: u32 = 45;

/// What a connection can do, as `FUSE_INIT` says it.
pub(crate) mod init {
    pub const ASYNC_READ: u64 = 1 << 0;
    pub const EXPORT_SUPPORT: u64 = 1 << 4;
    pub const BIG_WRITES: u64 = 1 << 5;
    pub const DONT_MASK: u64 = 1 << 6;
    pub const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub const DO_READDIRPLUS: u64 = 1 << 13;
    pub const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub const ASYNC_DIO: u64 = 1 << 15;
    pub const NO_OPEN_SUPPORT: u64 = 1 << 17;
    pub const PARALLEL_DIROPS: u64 = 1 << 18;
    pub const POSIX_ACL: u64 = 1 << 20;
    pub const MAX_PAGES: u64 = 1 << 22;
    pub const CACHE_SYMLINKS: u64 = 1 << 23;
    pub const NO_OPENDIR_SUPPORT: u64 = 1 << 24;
    pub const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    /// There are more than 32 of them.
    pub const EXT: u64 = 1 << 30;
    pub const OVER_IO_URING: u64 = 1 << 41;
}

/// Answers of `open` and `opendir`: cached pages and listings stay.
pub(crate) const KEEP_CACHE: u32 = 1 << 1;
pub(crate) const CACHE_DIR: u32 = 1 << 3;
/// A write must take set-user-id and the like away.
pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;

/// The beginning of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub opcode: u32,
    pub unique: u64,
    pub node: u64,
    pub uid: u32,
    pub gid: u32,
    pub process: u32,
}

/// What is asked for. Names and values are copies: what is asked lives longer than the bytes it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Lookup {
        name: Vec<u8>,
    },
    /// Each node with how many times it was told of.
    Forget(Vec<(u64, u64)>),
    GetAttr,
    SetAttr(SetAttr),
    ReadLink,
    Symlink {
        name: Vec<u8>,
        target: Vec<u8>,
    },
    Mknod {
        name: Vec<u8>,
        mode: u32,
        umask: u32,
        rdev: u32,
    },
    Mkdir {
        name: Vec<u8>,
        mode: u32,
        umask: u32,
    },
    Unlink {
        name: Vec<u8>,
    },
    Rmdir {
        name: Vec<u8>,
    },
    Rename {
        name: Vec<u8>,
        to: u64,
        new_name: Vec<u8>,
        flags: u32,
    },
    Link {
        node: u64,
        name: Vec<u8>,
    },
    Open,
    OpenDir,
    Create {
        name: Vec<u8>,
        mode: u32,
        umask: u32,
    },
    Read {
        offset: u64,
        size: u32,
        flags: u32,
    },
    /// The data are the last `size` bytes of the request.
    Write {
        offset: u64,
        size: usize,
        write_flags: u32,
        flags: u32,
    },
    StatFs,
    /// Nothing is kept for what is open.
    Release,
    Fsync,
    SetXattr {
        name: Vec<u8>,
        value: Vec<u8>,
        flags: u32,
    },
    GetXattr {
        name: Vec<u8>,
        room: u32,
    },
    ListXattr {
        room: u32,
    },
    RemoveXattr {
        name: Vec<u8>,
    },
    ReadDir {
        offset: u64,
        size: u32,
        plus: bool,
    },
    Fallocate {
        offset: u64,
        len: u64,
        mode: u32,
    },
    Lseek {
        offset: u64,
        whence: u32,
    },
    /// `wide`: the answer has 64 bits.
    CopyRange {
        offset: u64,
        to: u64,
        to_offset: u64,
        len: u64,
        flags: u64,
        wide: bool,
    },
    Statx,
    /// The mount is going away.
    Destroy,
    /// Neither an answer nor a deed.
    Nothing,
    /// It is not done here, and the kernel need not ask again.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetAttr {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<When>,
    pub mtime: Option<When>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    At(Time),
    Now,
}

/// `FUSE_INIT`, the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Init {
    pub major: u32,
    pub minor: u32,
    pub read_ahead: u32,
    pub can: u64,
}

/// What is left of a request, in one piece or two: no element lies in both.
struct Rest<'a>(&'a [u8], &'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.piece().split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn piece(&mut self) -> &'a [u8] {
        if self.0.is_empty() {
            self.0 = std::mem::take(&mut self.1);
        }
        self.0
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    fn name(&mut self) -> Option<Vec<u8>> {
        let end = self.piece().iter().position(|b| *b == 0)?;
        let name = self.take(end)?.to_vec();
        self.take(1)?;
        Some(name)
    }
}

impl Head {
    /// The header, and how long it says that the whole is.
    pub fn read(bytes: &[u8]) -> Option<(Head, usize)> {
        let mut rest = Rest(bytes.get(..IN_HEADER)?, &[]);
        let (len, opcode) = (rest.u32()?, rest.u32()?);
        let (unique, node) = (rest.u64()?, rest.u64()?);
        let (uid, gid, process) = (rest.u32()?, rest.u32()?, rest.u32()?);
        Some((Head { opcode, unique, node, uid, gid, process }, len as usize))
    }
}

impl Init {
    pub const OPCODE: u32 = 26;

    pub fn read(body: &[u8]) -> Option<Init> {
        let mut rest = Rest(body, &[]);
        let (major, minor, read_ahead, low) = (rest.u32()?, rest.u32()?, rest.u32()?, u64::from(rest.u32()?));
        let high = if low & init::EXT != 0 { u64::from(rest.u32()?) } else { 0 };
        Some(Init { major, minor, read_ahead, can: high << 32 | low })
    }

    pub fn is_spoken(&self) -> bool {
        self.major == MAJOR && self.minor >= MINOR_MIN
    }

    /// The answer: what is to be done of what the kernel can, with requests of up to `io_max` bytes.
    pub fn answer(&self, wanted: u64, io_max: u32, background: u16) -> Vec<u8> {
        let flags = self.can & (wanted | init::EXT);
        let mut out = Vec::with_capacity(64);
        put32(&mut out, [MAJOR, MINOR.min(self.minor), self.read_ahead, flags as u32]);
        put16(&mut out, [background, background / 4 * 3]);
        // The times of files are told by the nanosecond.
        put32(&mut out, [io_max, 1]);
        put16(&mut out, [u16::try_from(io_max / 4096).unwrap_or(u16::MAX), 0]);
        put32(&mut out, [(flags >> 32) as u32]);
        out.resize(64, 0);
        out
    }
}

impl Ask {
    /// Takes a request apart; `None` where its bytes are not one.
    pub fn read(head: &Head, (first, second): (&[u8], &[u8])) -> Option<Ask> {
        let (opcode, mut rest) = (head.opcode, Rest(first, second));
        let of = &mut rest;
        Some(match opcode {
            1 => Ask::Lookup { name: of.name()? },
            2 => Ask::Forget(vec![(head.node, of.u64()?)]),
            3 => Ask::GetAttr,
            4 => Ask::SetAttr(SetAttr::read(of)?),
            5 => Ask::ReadLink,
            6 => Ask::Symlink { name: of.name()?, target: of.name()? },
            8 => {
                let (mode, rdev, umask) = (of.u32()?, of.u32()?, of.u32()?);
                of.u32()?;
                Ask::Mknod { name: of.name()?, mode, umask, rdev }
            }
            9 => {
                let (mode, umask) = (of.u32()?, of.u32()?);
                Ask::Mkdir { name: of.name()?, mode, umask }
            }
            10 => Ask::Unlink { name: of.name()? },
            11 => Ask::Rmdir { name: of.name()? },
            12 | 45 => {
                let to = of.u64()?;
                let flags = if opcode == 45 { of.u64()? as u32 } else { 0 };
                Ask::Rename { name: of.name()?, to, new_name: of.name()?, flags }
            }
            13 => Ask::Link { node: of.u64()?, name: of.name()? },
            14 => Ask::Open,
            27 => Ask::OpenDir,
            15 | 28 | 44 => {
                of.u64()?;
                let (offset, size) = (of.u64()?, of.u32()?);
                of.take(12)?;
                let flags = of.u32()?;
                match opcode {
                    15 => Ask::Read { offset, size, flags },
                    _ => Ask::ReadDir { offset, size, plus: opcode == 44 },
                }
            }
            16 => {
                of.u64()?;
                let (offset, size, write_flags) = (of.u64()?, of.u32()? as usize, of.u32()?);
                of.u64()?;
                let flags = of.u32()?;
                of.u32()?;
                (of.piece().len() == size).then_some(Ask::Write { offset, size, write_flags, flags })?
            }
            17 => Ask::StatFs,
            18 | 29 => Ask::Release,
            20 | 30 => Ask::Fsync,
            21 => {
                let (size, flags) = (of.u32()? as usize, of.u32()?);
                let name = of.name()?;
                Ask::SetXattr { name, value: of.take(size)?.to_vec(), flags }
            }
            22 => {
                let room = of.u64()? as u32;
                Ask::GetXattr { name: of.name()?, room }
            }
            23 => Ask::ListXattr { room: of.u64()? as u32 },
            24 => Ask::RemoveXattr { name: of.name()? },
            35 => {
                let (_, mode, umask, _) = (of.u32()?, of.u32()?, of.u32()?, of.u32()?);
                Ask::Create { name: of.name()?, mode, umask }
            }
            38 => Ask::Destroy,
            41 => Ask::Nothing,
            42 => {
                let count = of.u64()? as u32 as usize;
                let all = of.piece().chunks_exact(16).take(count).map(|one| {
                    let mut one = Rest(one, &[]);
                    Some((one.u64()?, one.u64()?))
                });
                let all: Vec<_> = all.collect::<Option<_>>()?;
                (all.len() == count).then_some(Ask::Forget(all))?
            }
            43 => {
                of.u64()?;
                let (offset, len, mode) = (of.u64()?, of.u64()?, of.u32()?);
                Ask::Fallocate { offset, len, mode }
            }
            46 => {
                of.u64()?;
                Ask::Lseek { offset: of.u64()?, whence: of.u32()? }
            }
            47 | 53 => {
                of.u64()?;
                let (offset, to, _, to_offset) = (of.u64()?, of.u64()?, of.u64()?, of.u64()?);
                let (len, flags) = (of.u64()?, of.u64()?);
                Ask::CopyRange { offset, to, to_offset, len, flags, wide: opcode == 53 }
            }
            52 => Ask::Statx,
            _ => Ask::Unknown,
        })
    }
}

impl SetAttr {
    fn read(of: &mut Rest<'_>) -> Option<SetAttr> {
        let (valid, _, _) = (of.u32()?, of.u32()?, of.u64()?);
        let (size, _, atime, mtime, _) = (of.u64()?, of.u64()?, of.u64()?, of.u64()?, of.u64()?);
        let (atime_nanos, mtime_nanos, _) = (of.u32()?, of.u32()?, of.u32()?);
        let (mode, _, uid, gid, _) = (of.u32()?, of.u32()?, of.u32()?, of.u32()?, of.u32()?);
        let has = |bit: u32| valid & (1 << bit) != 0;
        let at = |bit: u32, now: u32, seconds: u64, nanos: u32| match (has(bit), has(now)) {
            (false, _) => None,
            (true, true) => Some(When::Now),
            // Of times before 1970 the kernel counts nanoseconds forward from the second too.
            (true, false) => Some(When::At(Time { seconds: seconds as i64, nanos: nanos.min(999_999_999) })),
        };
        Some(SetAttr {
            mode: has(0).then_some(mode),
            uid: has(1).then_some(uid),
            gid: has(2).then_some(gid),
            size: has(3).then_some(size),
            atime: at(4, 7, atime, atime_nanos),
            mtime: at(5, 8, mtime, mtime_nanos),
        })
    }
}

fn put16<const N: usize>(out: &mut Vec<u8>, values: [u16; N]) {
    values.iter().for_each(|value| out.extend(value.to_ne_bytes()));
}

fn put32<const N: usize>(out: &mut Vec<u8>, values: [u32; N]) {
    values.iter().for_each(|value| out.extend(value.to_ne_bytes()));
}

fn put64<const N: usize>(out: &mut Vec<u8>, values: [u64; N]) {
    values.iter().for_each(|value| out.extend(value.to_ne_bytes()));
}

/// The header of an answer with so many bytes behind it.
pub(crate) fn out_header(unique: u64, error: i32, len: usize) -> [u8; OUT_HEADER] {
    let mut header = [0; OUT_HEADER];
    header[..4].copy_from_slice(&((OUT_HEADER + len) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&error.to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    header
}

/// The kernel is to forget what it keeps of a node: its attributes, and from `offset` on `len` bytes; to the end with 0,
/// none where the offset is below zero.
pub(crate) fn invalidate(node: u64, offset: i64, len: i64) -> Vec<u8> {
    const NOTIFY_INVAL_INODE: i32 = 2;
    let mut out = out_header(0, NOTIFY_INVAL_INODE, 24).to_vec();
    put64(&mut out, [node, offset as u64, len as u64]);
    out
}

fn put_attr(out: &mut Vec<u8>, attr: &Attr) {
    let times = [attr.atime, attr.mtime, attr.ctime];
    put64(out, [attr.number, attr.size, attr.blocks]);
    put64(out, times.map(|time| time.seconds as u64));
    put32(out, times.map(|time| time.nanos));
    put32(out, [attr.mode, attr.nlink, attr.uid, attr.gid, attr.rdev, attr.block_size, 0]);
}

fn put_entry(out: &mut Vec<u8>, believed: Duration, (attr, generation): (&Attr, u64)) {
    put64(out, [attr.number, generation, believed.as_secs(), believed.as_secs()]);
    put32(out, [believed.subsec_nanos(); 2]);
    put_attr(out, attr);
}

/// A file under a name that was asked for, or made.
pub(crate) fn entry(believed: Duration, attr: &Attr, generation: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(144);
    put_entry(&mut out, believed, (attr, generation));
    out
}

/// As [`entry`], of a file that is open as well.
pub(crate) fn created(believed: Duration, attr: &Attr, generation: u64) -> Vec<u8> {
    let mut out = entry(believed, attr, generation);
    out.extend(opened(KEEP_CACHE));
    out
}

pub(crate) fn opened(flags: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    put64(&mut out, [0]);
    put32(&mut out, [flags, 0]);
    out
}

pub(crate) fn attributes(believed: Duration, attr: &Attr) -> Vec<u8> {
    let mut out = Vec::with_capacity(104);
    put64(&mut out, [believed.as_secs()]);
    put32(&mut out, [believed.subsec_nanos(), 0]);
    put_attr(&mut out, attr);
    out
}

/// What `statx` shows, the time it was made among it.
pub(crate) fn statx(believed: Duration, attr: &Attr) -> Vec<u8> {
    /// `STATX_BASIC_STATS | STATX_BTIME`.
    const HAS: u32 = 0xfff;
    let mut out = Vec::with_capacity(288);
    put64(&mut out, [believed.as_secs()]);
    put32(&mut out, [believed.subsec_nanos(), 0]);
    put64(&mut out, [0, 0]);
    put32(&mut out, [HAS, attr.block_size]);
    put64(&mut out, [0]);
    put32(&mut out, [attr.nlink, attr.uid, attr.gid]);
    put16(&mut out, [attr.mode as u16, 0]);
    put64(&mut out, [attr.number, attr.size, attr.blocks, 0]);
    for time in [attr.atime, attr.crtime, attr.ctime, attr.mtime] {
        put64(&mut out, [time.seconds as u64]);
        put32(&mut out, [time.nanos, 0]);
    }
    let (major, minor) = crate::attr::decode_device(attr.rdev);
    put32(&mut out, [major, minor, 0, 0]);
    out.resize(288, 0);
    out
}

/// So many bytes were written, or so much room is wanted for an extended attribute.
pub(crate) fn count(n: u32) -> [u8; 8] {
    let mut out = [0; 8];
    out[..4].copy_from_slice(&n.to_ne_bytes());
    out
}

pub(crate) fn count_wide(n: u64) -> [u8; 8] {
    n.to_ne_bytes()
}

/// What a file system has, in blocks of `unit` bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub blocks: u64,
    pub free: u64,
    pub files: u64,
    pub block_size: u32,
    pub unit: u32,
    pub name_max: u32,
}

pub(crate) fn statfs(room: &Room) -> Vec<u8> {
    let mut out = Vec::with_capacity(80);
    put64(&mut out, [room.blocks, room.free, room.free, room.files + room.free, room.free]);
    put32(&mut out, [room.block_size, room.name_max, room.unit, 0]);
    out.resize(80, 0);
    out
}

/// Names of a directory, up to so many bytes.
#[derive(Debug)]
pub(crate) struct Listing {
    out: Vec<u8>,
    room: usize,
}

impl Listing {
    pub fn new(room: u32, most: usize) -> Listing {
        Listing { out: Vec::new(), room: (room as usize).min(most) }
    }

    /// Whether it was added: else there is no room for it.
    pub fn add(&mut self, number: u64, position: u64, kind: u32, name: &[u8]) -> bool {
        self.put(None, (number, position, kind), name)
    }

    /// As [`Listing::add`], with what a look-up would have answered.
    pub fn add_entry(
        &mut self,
        (attr, generation, believed): (&Attr, u64, Duration),
        position: u64,
        name: &[u8],
    ) -> bool {
        let kind = (attr.mode >> 12) & 0xf;
        self.put(Some((attr, generation, believed)), (attr.number, position, kind), name)
    }

    fn put(&mut self, entry: Option<(&Attr, u64, Duration)>, dirent: (u64, u64, u32), name: &[u8]) -> bool {
        let len = (24 + name.len()).next_multiple_of(8) + if entry.is_some() { 128 } else { 0 };
        if self.out.len() + len > self.room {
            return false;
        }
        let end = self.out.len() + len;
        if let Some((attr, generation, believed)) = entry {
            put_entry(&mut self.out, believed, (attr, generation));
        }
        let (number, position, kind) = dirent;
        put64(&mut self.out, [number, position]);
        put32(&mut self.out, [name.len() as u32, kind]);
        self.out.extend(name);
        self.out.resize(end, 0);
        true
    }

    pub fn bytes(&self) -> &[u8] {
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Rng;

    fn ask(opcode: u32, body: &[u8]) -> Option<Ask> {
        Ask::read(&Head { opcode, unique: 1, node: 5, uid: 0, gid: 0, process: 1 }, (body, &[]))
    }

    fn head(opcode: u32, len: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        put32(&mut bytes, [len, opcode]);
        put64(&mut bytes, [77, 5]);
        put32(&mut bytes, [1000, 100, 4242, 0]);
        bytes
    }

    #[test]
    fn a_header_is_read_whole_or_not() {
        let bytes = head(1, 44);
        let (read, len) = Head::read(&bytes).unwrap();
        assert_eq!((read.opcode, read.unique, read.node, len), (1, 77, 5, 44));
        assert_eq!((read.uid, read.gid, read.process), (1000, 100, 4242));
        assert!((0..IN_HEADER).all(|n| Head::read(&bytes[..n]).is_none()));
    }

    /// Sizes as the kernel's header file has them.
    #[test]
    fn answers_are_as_long_as_the_kernel_expects() {
        let attr = Attr::default();
        let second = Duration::from_secs(1);
        assert_eq!(entry(second, &attr, 1).len(), 128);
        assert_eq!(created(second, &attr, 1).len(), 144);
        assert_eq!(attributes(second, &attr).len(), 104);
        assert_eq!(statx(second, &attr).len(), 288);
        assert_eq!(statfs(&Room::default()).len(), 80);
        let asked = Init { major: 7, minor: 45, read_ahead: 0, can: u64::MAX };
        assert_eq!(asked.answer(init::MAX_PAGES, 1 << 20, 64).len(), 64);
    }

    #[test]
    fn what_the_kernel_cannot_is_not_asked_of_it() {
        let asked = Init { major: 7, minor: 31, read_ahead: 4096, can: init::ASYNC_READ | init::MAX_PAGES };
        let answer = asked.answer(init::MAX_PAGES | init::OVER_IO_URING, 1 << 20, 64);
        assert_eq!(answer[4..8], 31u32.to_ne_bytes());
        assert_eq!(answer[12..16], (init::MAX_PAGES as u32).to_ne_bytes());
        assert_eq!(answer[28..30], 256u16.to_ne_bytes());
        assert_eq!(answer[32..36], [0; 4]);
        assert!(
            !Init { minor: MINOR_MIN - 1, ..asked }.is_spoken() && !Init { major: 8, ..asked }.is_spoken()
        );
    }

    #[test]
    fn times_come_as_they_are_set_also_before_1970() {
        let mut body = Vec::new();
        put32(&mut body, [1 << 4 | 1 << 5 | 1 << 8, 0]);
        put64(&mut body, [0, 0, 0, (-2i64) as u64, 9, 0]);
        put32(&mut body, [5, 6, 0, 0o644, 0, 1, 2, 0]);
        let Some(Ask::SetAttr(set)) = ask(4, &body) else { panic!("it is one") };
        let before = When::At(Time { seconds: -2, nanos: 5 });
        assert_eq!(set, SetAttr { atime: Some(before), mtime: Some(When::Now), ..SetAttr::default() });
    }

    #[test]
    fn a_listing_takes_what_there_is_room_for() {
        let mut listing = Listing::new(72, 1 << 20);
        assert!(listing.add(2, 1, 4, b"a") && listing.add(3, 2, 8, b"ninebytes"));
        assert!(!listing.add(4, 3, 8, b"b"), "72 bytes are full");
        assert_eq!((listing.bytes().len(), listing.bytes()[24]), (72, b'a'));
        assert!(!Listing::new(u32::MAX, 100).add_entry((&Attr::default(), 1, Duration::ZERO), 1, b"x"));
    }

    /// Any bytes under any opcode are a request or none, and what is read of them lies in them.
    #[test]
    fn no_bytes_make_trouble() {
        let mut rng = Rng::new(7);
        for _ in 0..200_000 {
            let opcode = rng.below(60) as u32;
            let mut body = vec![0; rng.below(120) as usize];
            body.iter_mut().for_each(|b| *b = if rng.below(3) == 0 { 0 } else { rng.below(256) as u8 });
            match ask(opcode, &body) {
                Some(Ask::Write { size, .. }) => assert!(size <= body.len()),
                Some(Ask::Forget(all)) => assert!(all.len() <= 1 + body.len() / 16),
                _ => {}
            }
        }
        for count in [0u32, 1, 2, u32::MAX] {
            let mut body = Vec::new();
            put32(&mut body, [count, 0]);
            put64(&mut body, [5, 1]);
            assert_eq!(ask(42, &body).is_some(), count <= 1);
        }
    }
}
