//! A process that is killed with writes under way: they reach the disk when it is long gone, and until then nothing else may
//! write there.
//!
//! ```text
//!   child    writes begun ──┐ killed, and gone
//!   kernel                  └──── still writing ────────┐ done
//!   parent                   refused  refused  refused  └─ opens, and finds all of them
//! ```

#![allow(clippy::unwrap_used)]

use interop::harness::{self, Need, ROOT, trial};
use interop::slow::{self, SlowDisk};
use interop::{Scratch, programs};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use world::{Buf, IoBuf, OpenMode};

const MIB: u64 = 1 << 20;
const WRITES: u64 = 24;
/// All are under way for some two seconds.
const BYTES_PER_SECOND: u64 = 12 * MIB;
/// In the child's environment: what it is to write to.
const DISK: &str = "CENOTE_TEST_DISK";

fn main() -> ExitCode {
    if let Some(disk) = std::env::var_os(DISK) {
        linux::block_on(begin_writes(disk.into()));
    }
    const SLOW: Need =
        Need::Other("a limit for writes to the disk of temporary files (blkio or io.max)", slow::is_there);
    const LOOP: Need = Need::Other("loop devices", || Path::new("/dev/loop-control").exists());
    let device = &[ROOT, SLOW, LOOP, Need::Program("losetup")];
    harness::main(vec![
        trial(
            "a_file_has_one_writer_until_the_last_write_of_a_killed_process_is_done",
            &[ROOT, SLOW],
            || {
                let scratch = Scratch::new();
                kill_and_open(&scratch, &file_of(&scratch));
            },
        ),
        trial("a_device_has_one_writer_until_the_last_write_of_a_killed_process_is_done", device, || {
            let scratch = Scratch::new();
            let attach = ["--direct-io=on", "--show", "-f"];
            let device = programs::run(programs::command("losetup").args(attach).arg(file_of(&scratch)));
            let device = PathBuf::from(device.trim());
            kill_and_open(&scratch, &device);
            programs::run(programs::command("losetup").arg("-d").arg(device));
        }),
    ])
}

fn file_of(scratch: &Scratch) -> PathBuf {
    let file = scratch.join("file");
    // Blocks that are there: a write that must allocate first is done by a thread, and that the kill would wait for.
    std::fs::write(&file, vec![0; (WRITES * MIB) as usize]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    file
}

fn pattern(number: u64) -> Buf {
    let mut buf = IoBuf::scratch(MIB as usize);
    buf.fill(number as u8 + 1);
    buf.freeze()
}

/// The child: does not return.
async fn begin_writes(path: PathBuf) {
    let disk = world::open(&path, OpenMode::ReadWrite).unwrap();
    let _writes: Vec<_> = (0..WRITES).map(|n| disk.write(n * MIB, vec![pattern(n)])).collect();
    // They are submitted when the loop turns.
    world::sleep(Duration::from_millis(100)).await;
    println!("begun");
    world::sleep(Duration::from_secs(3600)).await;
}

fn kill_and_open(scratch: &Scratch, path: &Path) {
    let group = SlowDisk::new(scratch.path(), BYTES_PER_SECOND).unwrap();
    let mut command = group.command(&std::env::current_exe().unwrap());
    let mut child = command.env(DISK, path).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "begun\n");
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    let path = path.to_path_buf();
    linux::block_on(async move {
        let mut refused = 0;
        let disk = loop {
            match world::open(&path, OpenMode::ReadWrite) {
                Ok(disk) => break disk,
                Err(e) => assert_eq!(e.kind(), ErrorKind::ResourceBusy, "{e}"),
            }
            refused += 1;
            assert!(killed.elapsed() < Duration::from_secs(60), "it stays locked");
            world::sleep(Duration::from_millis(20)).await;
        };
        println!("refused {refused} times, for {:.1} s", killed.elapsed().as_secs_f64());
        let mut lacking = Vec::new();
        for n in 0..WRITES {
            let (found, outcome) = disk.read(n * MIB, IoBuf::scratch(MIB as usize)).await;
            outcome.unwrap();
            if found[..] != pattern(n)[..] {
                lacking.push(n);
            }
        }
        assert!(
            lacking.is_empty(),
            "it was opened while {} of {WRITES} writes were under way",
            lacking.len()
        );
        assert!(refused > 0, "nothing was under way any more: this shows nothing");
    });
}
