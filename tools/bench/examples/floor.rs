//! What the machine asks for the rows of `cenote bench engine` that move each byte once, without an engine: a program with
//! no line of Cenote's in it.
//!
//! ```text
//!   write + sync    copy a block into memory ▶ sum it ▶ write it into a file ▶ fsync     (an engine must own what it was
//!                                                                                         given before it answers)
//!   read, cold      read a block into memory ▶ sum it ▶ keep it                          (a cache that is being filled)
//! ```
//!
//! Each with memory that the process has used before, and with memory that it has not: the kernel zeroes that first, and the
//! host of a virtual machine may have to find it. The sum is of words of eight bytes, less than any checksum. No tree, no
//! second level, no client, one thread.
//!
//! `cargo run --profile dist -p bench --example floor -- DIR [MIB]` prints a table: CPU seconds per GiB, medians of three.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;

const ROUNDS: usize = 3;
const BLOCKS: [usize; 3] = [16 << 10, 128 << 10, 1 << 20];

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let dir = words.next().unwrap_or_else(|| "/dev/shm".into());
    let mib: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(512);
    let path = Path::new(&dir).join(format!("floor-{}", std::process::id()));
    let printed = table(&path, mib << 20);
    std::fs::remove_file(&path)?;
    print!("{}", printed?);
    Ok(())
}

fn table(path: &Path, size: usize) -> Result<String> {
    let mut out = "| CPU s/GiB | 16K | 128K | 1M |\n|---|---:|---:|---:|\n".to_string();
    for (name, is_write, is_used) in [
        ("write+sync, memory used before", true, true),
        ("write+sync, new memory", true, false),
        ("read, cold, memory used before", false, true),
        ("read, cold, new memory", false, false),
    ] {
        out += &format!("| {name} |");
        for block in BLOCKS {
            let mut costs = Vec::new();
            for _ in 0..ROUNDS {
                costs.push(if is_write {
                    write(path, size, block, is_used)?
                } else {
                    read(path, size, block, is_used)?
                });
            }
            costs.sort_by(f64::total_cmp);
            out += &format!(" {:.2} |", costs[ROUNDS / 2] * (1u64 << 30) as f64 / size as f64);
        }
        out.push('\n');
    }
    Ok(out)
}

/// CPU seconds of it; so does [`read`].
fn write(path: &Path, size: usize, block: usize, is_used: bool) -> Result<f64> {
    let file = fresh(path, size)?;
    let (given, mut memory) = (noise(block), Memory::new(size, is_used)?);
    let before = cpu_seconds();
    for (at, own) in (0..).step_by(block).zip(memory.bytes().chunks_exact_mut(block)) {
        fault_in(own, is_used);
        own.copy_from_slice(&given);
        black_box(sum(own));
        file.write_all_at(own, at)?;
    }
    file.sync_all()?;
    Ok(cpu_seconds() - before)
}

fn read(path: &Path, size: usize, block: usize, is_used: bool) -> Result<f64> {
    let file = fresh(path, size)?;
    let given = noise(block);
    for at in (0..size as u64).step_by(block) {
        file.write_all_at(&given, at)?;
    }
    let mut memory = Memory::new(size, is_used)?;
    let before = cpu_seconds();
    for (at, own) in (0..).step_by(block).zip(memory.bytes().chunks_exact_mut(block)) {
        fault_in(own, is_used);
        file.read_exact_at(own, at)?;
        black_box(sum(own));
    }
    Ok(cpu_seconds() - before)
}

/// An empty file of this size.
fn fresh(path: &Path, size: usize) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    file.set_len(size as u64)?;
    Ok(file)
}

/// What does not compress, and is no page of zeros.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len / 8).flat_map(|_| next()).collect()
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// All pages of a block at once, which is cheaper than one at a time.
#[allow(unsafe_code)]
fn fault_in(own: &mut [u8], is_used: bool) {
    if !is_used {
        // SAFETY: the range is of this slice, whose bytes stay what they are. Before Linux 5.14 it fails, and pages come
        // by touching.
        let _ = unsafe { madvise(own.as_mut_ptr().cast(), own.len(), Advice::LinuxPopulateWrite) };
    }
}

fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Memory of the system's own, given back when it is dropped.
struct Memory {
    start: *mut u8,
    len: usize,
}

impl Memory {
    #[allow(unsafe_code)]
    fn new(len: usize, is_used: bool) -> Result<Memory> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a mapping at a place that the kernel chooses, of nothing that exists.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
        let mut memory = Memory { start: start.cast(), len };
        if is_used {
            memory.bytes().fill(1);
        }
        Ok(memory)
    }

    #[allow(unsafe_code)]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped, and this struct's alone, as long as it lives.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Memory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: from `new`, with this length; nothing refers to it any more. A failure leaves it mapped.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}
