//! What the kernel tells of a file or block device: size, sector sizes, caching, and what O_DIRECT demands.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, SeekFrom, Stat, StatxFlags, fstat, fstatfs, ioctl_blkpbszget, ioctl_blksszget,
};
use std::io;
use std::path::PathBuf;
use world::{DiskKind, Geometry};

/// The smallest unit a file accepts: any, but an address on disk is in these.
const FILE_SECTOR: u32 = 512;
const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;
/// Whether a block device is read-only.
const BLKROGET: libc::c_ulong = 0x125e;
/// FUSE, NFS, SMB in two versions, 9P, Ceph, AFS: what statfs(2) says of file systems that a server answers for.
const SERVED: [i64; 7] =
    [0x6573_5546, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, 0x5346_414f];

/// What I/O with O_DIRECT must be multiples of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectAlignment {
    pub memory: usize,
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    File,
    /// A file whose bytes are in memory: there is nothing to wait for, and nothing to bypass.
    MemoryFile,
    BlockDevice,
}

pub(crate) fn nature(fd: &OwnedFd) -> io::Result<Nature> {
    match FileType::from_raw_mode(fstat(fd)?.st_mode) {
        FileType::BlockDevice => Ok(Nature::BlockDevice),
        FileType::RegularFile => {
            let magic = fstatfs(fd)?.f_type as i64;
            let in_memory = magic == TMPFS_MAGIC || magic == RAMFS_MAGIC;
            Ok(if in_memory { Nature::MemoryFile } else { Nature::File })
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a block device")),
    }
}

/// Whether it is a file that a server answers for, which may be gone.
pub(crate) fn is_served(fd: &OwnedFd, nature: Nature) -> io::Result<bool> {
    Ok(nature == Nature::File && SERVED.contains(&(fstatfs(fd)?.f_type as i64)))
}

/// Whether a block device takes no writes, though it can be opened for them.
#[allow(unsafe_code)]
pub(crate) fn is_read_only(fd: &OwnedFd) -> bool {
    let mut is_set: libc::c_int = 0;
    // SAFETY: fills an int, which lives as long as the call. A device that does not know the question is no disk.
    unsafe { libc::ioctl(fd.as_raw_fd(), BLKROGET as _, &raw mut is_set) == 0 && is_set != 0 }
}

pub(crate) fn size(fd: &OwnedFd, nature: Nature) -> io::Result<u64> {
    match nature {
        // A device's inode has no size; its end does.
        Nature::BlockDevice => Ok(rustix::fs::seek(fd, SeekFrom::End(0))?),
        _ => Ok(u64::try_from(fstat(fd)?.st_size).unwrap_or(0)),
    }
}

pub(crate) fn geometry(fd: &OwnedFd, nature: Nature) -> io::Result<Geometry> {
    let size = size(fd, nature)?;
    let stat = fstat(fd)?;
    Ok(match nature {
        Nature::BlockDevice => Geometry {
            size,
            logical_block: ioctl_blksszget(fd)?,
            physical_block: ioctl_blkpbszget(fd)?,
            kind: DiskKind::Block {
                rotational: attribute(&stat, "rotational").is_some_and(|v| v == "1"),
                // Unless the kernel is sure that it is not.
                volatile_cache: attribute(&stat, "write_cache").is_none_or(|v| v != "write through"),
            },
        },
        _ => Geometry {
            size,
            logical_block: FILE_SECTOR,
            // Less than a block of the file system is read, changed and written.
            physical_block: u32::try_from(stat.st_blksize).unwrap_or(4096).clamp(FILE_SECTOR, 4096),
            kind: DiskKind::File,
        },
    })
}

/// An attribute of a device's queue; a partition has its disk's.
fn attribute(stat: &Stat, name: &str) -> Option<String> {
    let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let text = std::fs::read_to_string(device.join("queue").join(name))
        .or_else(|_| std::fs::read_to_string(device.join("../queue").join(name)));
    text.ok().map(|t| t.trim().to_string())
}

/// What O_DIRECT demands of this file; kernels before 6.1 do not tell, and then a page is enough for every device.
pub(crate) fn direct_alignment(fd: &OwnedFd, nature: Nature) -> DirectAlignment {
    let told = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = told.filter(|s| s.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && s.stx_dio_offset_align != 0);
    match told {
        Some(s) => DirectAlignment {
            memory: (s.stx_dio_mem_align as usize).max(1),
            offset: u64::from(s.stx_dio_offset_align),
        },
        None if nature == Nature::BlockDevice => {
            let sector = ioctl_blksszget(fd).unwrap_or(4096);
            DirectAlignment { memory: sector as usize, offset: u64::from(sector) }
        }
        None => DirectAlignment { memory: 4096, offset: 4096 },
    }
}
