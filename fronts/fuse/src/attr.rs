//! What a file says of itself, in the kernel's words and back.

use fuser::{FileAttr, FileType, INodeNo};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zpl::{FileKind, Stat, Time};

pub(crate) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::Directory => FileType::Directory,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::Regular => FileType::RegularFile,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Socket => FileType::Socket,
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

fn system_time(time: Time) -> SystemTime {
    let nanos = Duration::from_nanos(time.nanos.into());
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let at = if time.seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    at.and_then(|at| at.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
}

/// The time that a client gives, as `fuser` hands it over: of one before 1970 it takes the nanoseconds away, which the
/// kernel has counted forward from the second.
pub(crate) fn time_given(at: SystemTime) -> Time {
    match at.duration_since(UNIX_EPOCH) {
        Ok(since) => {
            Time { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            let seconds = i64::try_from(before.as_secs()).map_or(i64::MIN, |s| -s);
            Time { seconds, nanos: before.subsec_nanos() }
        }
    }
}

pub(crate) fn file_attr(number: u64, stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: stat.size,
        blocks: stat.blocks,
        atime: system_time(stat.atime),
        mtime: system_time(stat.mtime),
        ctime: system_time(stat.ctime),
        crtime: system_time(stat.crtime),
        kind: file_type(stat.kind),
        perm: (stat.permissions & 0o7777) as u16,
        nlink: u32::try_from(stat.links).unwrap_or(u32::MAX),
        uid: stat.uid,
        gid: stat.gid,
        rdev: encode_device(stat.rdev),
        blksize: stat.block_size.max(512),
        flags: 0,
    }
}

/// A directory that is stored nowhere.
pub(crate) fn made_up_directory(number: u64, made: Time) -> FileAttr {
    let time = system_time(made);
    FileAttr {
        ino: INodeNo(number),
        size: 2,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: FileType::Directory,
        perm: 0o555,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 512,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `utimensat` gave before 1970 was a second early or more, unless it was a whole one.
    #[test]
    fn times_before_1970_and_device_numbers_come_back() {
        // As the kernel's pair reaches a request, in the library.
        let handed = |seconds: i64, nanos| match seconds < 0 {
            true => UNIX_EPOCH - Duration::new(seconds.unsigned_abs(), nanos),
            false => UNIX_EPOCH + Duration::new(seconds.unsigned_abs(), nanos),
        };
        for (seconds, nanos) in [(0, 0), (5, 7), (-1, 0), (-1, 999_999_999), (-86_400, 1), (1 << 33, 3)] {
            assert_eq!(time_given(handed(seconds, nanos)), Time { seconds, nanos });
            let shown = system_time(Time { seconds, nanos });
            let since = UNIX_EPOCH - Duration::from_secs(1 << 20);
            let after = shown.duration_since(since).unwrap();
            assert_eq!((after.as_secs() as i64 - (1 << 20), after.subsec_nanos()), (seconds, nanos));
        }
        for device in [(0, 0), (8, 1), (259, 0xf_ffff), (0xfff, 256)] {
            assert_eq!(decode_device(encode_device(device)), device);
        }
        // No time that a damaged file claims makes trouble.
        system_time(Time { seconds: i64::MIN, nanos: 999_999_999 });
        system_time(Time { seconds: i64::MAX, nanos: 999_999_999 });
    }
}
