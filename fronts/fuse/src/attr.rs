//! What a file says of itself, in the kernel's words and back.

use zpl::{FileKind, Stat, Time};

/// The attributes of a file, as a request is answered with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attr {
    pub number: u64,
    pub size: u64,
    /// Of 512 bytes.
    pub blocks: u64,
    pub atime: Time,
    pub mtime: Time,
    pub ctime: Time,
    /// When it was made.
    pub crtime: Time,
    /// The kind in the upper bits, and permissions.
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub block_size: u32,
}

/// The kind as the upper bits of a mode.
pub(crate) fn kind_bits(kind: FileKind) -> u32 {
    match kind {
        FileKind::Fifo => 0o010_000,
        FileKind::CharDevice => 0o020_000,
        FileKind::Directory => 0o040_000,
        FileKind::BlockDevice => 0o060_000,
        FileKind::Regular => 0o100_000,
        FileKind::Symlink => 0o120_000,
        FileKind::Socket => 0o140_000,
    }
}

/// The kind in the upper bits of a mode, as mknod takes it; plain files may be asked for by nothing.
pub(crate) fn kind_of(mode: u32) -> Option<FileKind> {
    Some(match mode & 0o170_000 {
        0 | 0o100_000 => FileKind::Regular,
        0o010_000 => FileKind::Fifo,
        0o020_000 => FileKind::CharDevice,
        0o060_000 => FileKind::BlockDevice,
        0o140_000 => FileKind::Socket,
        _ => return None,
    })
}

/// Device numbers travel with the minor number around the major one.
pub(crate) fn encode_device((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12
}

pub(crate) fn decode_device(rdev: u32) -> (u32, u32) {
    ((rdev >> 8) & 0xfff, (rdev & 0xff) | (rdev >> 12) & 0xf_ff00)
}

pub(crate) fn file_attr(number: u64, stat: &Stat) -> Attr {
    Attr {
        number,
        size: stat.size,
        blocks: stat.blocks,
        atime: shown(stat.atime),
        mtime: shown(stat.mtime),
        ctime: shown(stat.ctime),
        crtime: shown(stat.crtime),
        mode: kind_bits(stat.kind) | stat.permissions & 0o7777,
        nlink: u32::try_from(stat.links).unwrap_or(u32::MAX),
        uid: stat.uid,
        gid: stat.gid,
        rdev: encode_device(stat.rdev),
        block_size: stat.block_size.max(512),
    }
}

/// What a damaged file may claim is no time for the kernel.
fn shown(time: Time) -> Time {
    Time { nanos: time.nanos.min(999_999_999), ..time }
}

/// A directory that is stored nowhere.
pub(crate) fn made_up_directory(number: u64, made: Time) -> Attr {
    let time = shown(made);
    Attr {
        number,
        size: 2,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        mode: kind_bits(FileKind::Directory) | 0o555,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        block_size: 512,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_device_numbers_come_back() {
        for kind in [FileKind::Fifo, FileKind::CharDevice, FileKind::BlockDevice, FileKind::Socket] {
            assert_eq!(kind_of(kind_bits(kind) | 0o644), Some(kind));
        }
        assert_eq!(kind_of(0o644), Some(FileKind::Regular));
        for device in [(0, 0), (8, 1), (259, 0xf_ffff), (0xfff, 256)] {
            assert_eq!(decode_device(encode_device(device)), device);
        }
        assert_eq!(
            shown(Time { seconds: i64::MIN, nanos: u32::MAX }),
            Time { seconds: i64::MIN, nanos: 999_999_999 }
        );
    }
}
