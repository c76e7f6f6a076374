//! A real block device: a file attached to a loop device, where this machine lets us.

#![allow(clippy::unwrap_used)]

use interop::harness::{self, Need, ROOT, trial};
use interop::{Scratch, programs};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use world::{Buf, DiskKind, IoBuf, OpenMode};

const MIB: u64 = 1 << 20;
const LOOP: Need = Need::Other("loop devices", || Path::new("/dev/loop-control").exists());

fn main() -> ExitCode {
    let needs = [ROOT, LOOP, Need::Program("losetup")];
    harness::main(vec![
        trial("a_block_device_is_a_disk_that_one_process_may_write", &needs, || {
            for io_uring in [true, false] {
                linux::run(linux::Config { cores: Some(2), io_uring }, is_a_disk());
            }
        }),
        trial("the_bytes_of_one_file_have_one_writer_whatever_device_shows_them", &needs, || {
            linux::block_on(one_writer());
        }),
        trial("two_parts_of_one_file_have_a_writer_each", &needs, || linux::block_on(two_parts())),
        trial(
            "what_others_use_through_a_loop_device_is_refused",
            &[ROOT, LOOP, Need::Program("mkfs.ext4")],
            || {
                linux::block_on(mounted());
            },
        ),
    ])
}

/// Detached when it is dropped.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn attach(file: &Path) -> LoopDevice {
        LoopDevice::attach_part(file, 0, 0)
    }

    /// `len` bytes from `offset`; 0 is all that follows.
    fn attach_part(file: &Path, offset: u64, len: u64) -> LoopDevice {
        let (offset, len) = (format!("--offset={offset}"), format!("--sizelimit={len}"));
        let path =
            programs::run(programs::command("losetup").args(["--show", "-f", &offset, &len]).arg(file));
        LoopDevice(path.trim().into())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = programs::command("losetup").arg("-d").arg(&self.0).status();
    }
}

fn pattern(salt: u8) -> Buf {
    let mut buf = IoBuf::scratch(65536);
    buf.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i as u8).wrapping_mul(31).wrapping_add(salt));
    buf.freeze()
}

async fn is_a_disk() {
    let scratch = Scratch::new();
    let file = scratch.join("file");
    std::fs::File::create(&file).unwrap().set_len(8 * MIB).unwrap();
    let device = LoopDevice::attach(&file);
    let disk = world::open(&device.0, OpenMode::ReadWrite).unwrap();
    let geometry = disk.geometry();
    assert!(matches!(geometry.kind, DiskKind::Block { .. }));
    assert_eq!((geometry.size, disk.current_size().unwrap()), (8 * MIB, 8 * MIB));
    assert!(geometry.logical_block >= 512 && geometry.physical_block >= geometry.logical_block);
    let error = world::open(&device.0, OpenMode::ReadWrite).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);

    for salt in 0..32u8 {
        disk.write(u64::from(salt) * 65536, vec![pattern(salt)]).await.unwrap();
    }
    disk.flush().await.unwrap();
    for salt in 0..32u8 {
        let (buf, outcome) = disk.read(u64::from(salt) * 65536, IoBuf::scratch(65536)).await;
        outcome.unwrap();
        assert!(buf[..] == pattern(salt)[..], "block {salt}");
    }
    disk.discard(65536, 65536).await.unwrap();
    let (buf, outcome) = disk.read(65536, IoBuf::scratch(65536)).await;
    outcome.unwrap();
    assert!(buf.iter().all(|&b| b == 0), "a loop device makes holes of what is discarded");
}

fn file_of(scratch: &Scratch) -> PathBuf {
    let file = scratch.join("file");
    std::fs::File::create(&file).unwrap().set_len(8 * MIB).unwrap();
    file
}

fn is_refused(path: &Path) {
    let error = world::open(path, OpenMode::ReadWrite).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    world::open(path, OpenMode::ReadOnly).unwrap();
}

/// A file was locked, and a loop device claimed, but neither knew of the other: two processes had one pool open, one by
/// its file and one by a loop device, and both acknowledged what they were to write.
async fn one_writer() {
    let scratch = Scratch::new();
    let file = file_of(&scratch);
    let (link, hard) = (scratch.join("link"), scratch.join("hard"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    std::fs::hard_link(&file, &hard).unwrap();
    let (one, two) = (LoopDevice::attach(&file), LoopDevice::attach(&file));
    let upper = LoopDevice::attach(&one.0);
    let ways = [&file, &link, &hard, &one.0, &two.0, &upper.0];
    for first in ways {
        let disk = world::open(first, OpenMode::ReadWrite).unwrap();
        for second in ways {
            is_refused(second);
        }
        drop(disk);
    }
    // A device that is attached later is no way around it either.
    let disk = world::open(&file, OpenMode::ReadWrite).unwrap();
    let three = LoopDevice::attach(&file);
    is_refused(&three.0);
    drop(disk);
    // Nor is a new name.
    let disk = world::open(&file, OpenMode::ReadWrite).unwrap();
    std::fs::rename(&file, scratch.join("renamed")).unwrap();
    is_refused(&three.0);
    drop(disk);
    world::open(&three.0, OpenMode::ReadWrite).unwrap();
}

async fn two_parts() {
    let scratch = Scratch::new();
    let file = file_of(&scratch);
    let parts = [0, 4].map(|at| LoopDevice::attach_part(&file, at * MIB, 4 * MIB));
    let both = parts.each_ref().map(|part| world::open(&part.0, OpenMode::ReadWrite).unwrap());
    is_refused(&file);
    let overlapping = LoopDevice::attach_part(&file, 2 * MIB, 4 * MIB);
    is_refused(&overlapping.0);
    drop(both);
    world::open(&file, OpenMode::ReadWrite).unwrap();
}

async fn mounted() {
    let scratch = Scratch::new();
    let file = file_of(&scratch);
    let device = LoopDevice::attach(&file);
    programs::run(programs::command("mkfs.ext4").arg("-q").arg(&device.0));
    let place = scratch.join("mounted");
    std::fs::create_dir(&place).unwrap();
    programs::run(programs::command("mount").arg(&device.0).arg(&place));
    is_refused(&file);
    programs::run(programs::command("umount").arg(&place));
    world::open(&file, OpenMode::ReadWrite).unwrap();
}
