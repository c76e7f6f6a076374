//! Real clients of a volume that the daemon serves.

use crate::home::Home;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, find, run};
use interop::zdb;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const FUSE: Need = Need::Other("/dev/fuse", || Path::new("/dev/fuse").exists());
pub const LOOP: Need = Need::Other("loop devices", || Path::new("/dev/loop-control").exists());
pub const XFS: Need = Need::Other("xfs in the kernel", knows_xfs);

pub fn trials() -> Vec<Trial> {
    let program = Need::Program;
    let mounts = [
        ROOT,
        FUSE,
        LOOP,
        XFS,
        program("nbdfuse"),
        program("losetup"),
        program("mkfs.xfs"),
        program("xfs_repair"),
        program("zdb"),
    ];
    vec![
        trial("what_nbdcopy_brings_it_takes_away_again", &[program("nbdcopy"), program("zdb")], copy),
        trial("an_xfs_lives_on_a_volume_through_nbdfuse_and_a_loop_device", &mounts, xfs),
    ]
}

/// Loaded, or loaded by a mount.
fn knows_xfs() -> bool {
    let lists = |path: &str| std::fs::read_to_string(path).is_ok_and(|text| text.contains("xfs"));
    let module = || Command::new(find("modprobe")?).args(["-n", "-q", "xfs"]).status().ok();
    lists("/proc/filesystems") || module().is_some_and(|status| status.success())
}

/// Waits until a program has made its file or socket.
pub fn until_there(file: &Path) {
    let until = Instant::now() + Duration::from_secs(120);
    while !file.exists() {
        assert!(Instant::now() < until, "{} does not come", file.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nothing is wrong with an XFS that was unmounted. A mount namespace that another trial has made meanwhile may have it
/// still, as long as that trial lasts: then its log is not empty.
pub fn assert_clean_xfs(device: &str) {
    let mounted = Path::new("/sys/fs/xfs").join(device.trim_start_matches("/dev/"));
    let until = Instant::now() + Duration::from_secs(240);
    while mounted.exists() {
        assert!(Instant::now() < until, "{device} is still mounted somewhere");
        std::thread::sleep(Duration::from_millis(50));
    }
    run(command("xfs_repair").args(["-n", device]));
}

fn noise(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn copy() {
    let home = Home::new();
    let (daemon, uri) = home.up("64M");
    let bytes = noise(8 << 20);
    let (source, back) = (home.scratch.join("source"), home.scratch.join("back"));
    std::fs::write(&source, &bytes).unwrap();
    run(command("nbdcopy").arg("--flush").arg(&source).arg(&uri));
    run(command("nbdcopy").arg(&uri).arg(&back));
    assert!(std::fs::read(&back).unwrap()[..bytes.len()] == bytes, "what was copied in comes out again");
    // Who is in the way is said. This one has begun to read, and nobody takes what it has.
    let mut reader = command("nbdcopy").arg(&uri).arg("-").stdout(Stdio::piped()).spawn().unwrap();
    reader.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    for line in ["zfs destroy tank/vol1", "zpool export tank"] {
        let said = home.fails(line, 1);
        assert!(said.contains("clients use tank/vol1 (NBD client "), "{said}");
    }
    reader.kill().unwrap();
    reader.wait().unwrap();
    daemon.end();
    zdb::assert_clean(&home.dir().join("disks"), "tank");
}

fn xfs() {
    let home = Home::new();
    let (daemon, uri) = home.up("512M");
    let (fuse, mount) = (home.scratch.join("fuse"), home.scratch.join("mount"));
    std::fs::create_dir(&fuse).unwrap();
    std::fs::create_dir(&mount).unwrap();
    let mut server: Child = command("nbdfuse").arg(&fuse).arg(&uri).spawn().unwrap();
    let file = fuse.join("nbd");
    until_there(&file);
    let device = run(command("losetup").args(["--find", "--show"]).arg(&file)).trim().to_string();
    run(command("mkfs.xfs").args(["-q", &device]));
    run(command("mount").arg(&device).arg(&mount));
    let bytes = noise(20 << 20);
    std::fs::write(mount.join("file"), &bytes).unwrap();
    run(command("umount").arg(&mount));
    run(command("mount").arg(&device).arg(&mount));
    let same = std::fs::read(mount.join("file")).unwrap() == bytes;
    run(command("umount").arg(&mount));
    assert_clean_xfs(&device);
    run(command("losetup").args(["--detach", &device]));
    run(command("umount").arg(&fuse));
    let _ = server.wait();
    assert!(same, "what was written before the unmount is read after it");
    daemon.end();
    zdb::assert_clean(&home.dir().join("disks"), "tank");
}
