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
    harness::main(vec![trial(
        "a_block_device_is_a_disk_that_one_process_may_write",
        &[ROOT, LOOP, Need::Program("losetup")],
        || {
            for io_uring in [true, false] {
                linux::run(linux::Config { cores: Some(2), io_uring }, is_a_disk());
            }
        },
    )])
}

/// Detached when it is dropped.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn attach(file: &Path) -> LoopDevice {
        let path = programs::run(programs::command("losetup").args(["--show", "-f"]).arg(file));
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
