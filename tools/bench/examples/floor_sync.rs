//! What a durable write costs without an engine: a program with no line of Cenote's in it, for the first rows of
//! `cenote bench sync`.
//!
//! ```text
//!   write, flush     ring: O_DIRECT write ▶ wait ▶ fdatasync ▶ wait      what a commit of the log is, 8K for 4K of data
//!   linked           ring: both at once, the second when the first is done
//!   one operation    ring: a write with RWF_DSYNC
//!   waits            pwrite ▶ fdatasync, the thread waits in the kernel
//! ```
//!
//! Each asked by the thread itself, and by another one, which rings a bell that the ring reads, and is answered through a
//! channel. The ways take turns, request by request, so that all meet the same machine. On one that has other work to do the
//! figures tell more than on one that has not: each way waits for other threads of the kernel.
//!
//! `cargo run --profile dist -p bench --example floor_sync -- DIR [REQUESTS]` prints a table: microseconds, of so many
//! requests of each way.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fdatasync, open};
use rustix::io::{ReadWriteFlags, pwrite, write};
use rustix::io_uring::{
    IORING_OFF_CQ_RING, IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFsyncFlags, IoringOp,
    IoringSetupFlags, IoringSqeFlags, io_uring_cqe, io_uring_enter, io_uring_params, io_uring_ptr,
    io_uring_setup, io_uring_sqe,
};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::io::Result;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

const SIZE: u64 = 256 << 20;
const ENTRIES: u32 = 8;
const WAYS: [(&str, usize); 6] = [
    ("write, flush, 4K", 4 << 10),
    ("write, flush", 8 << 10),
    ("linked", 8 << 10),
    ("one operation", 8 << 10),
    ("waits, 4K", 4 << 10),
    ("waits", 8 << 10),
];

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let dir = words.next().unwrap_or_else(|| ".".into());
    let count: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(3000);
    let path = Path::new(&dir).join(format!("floor-sync-{}", std::process::id()));
    let printed = fill(&path).and_then(|()| table(&path, count));
    std::fs::remove_file(&path)?;
    print!("{}", printed?);
    Ok(())
}

/// Blocks that are there already: nothing is allocated on the way.
fn fill(path: &Path) -> Result<()> {
    let file = std::fs::File::create(path)?;
    let block = vec![7; 1 << 20];
    for at in (0..SIZE).step_by(block.len()) {
        std::os::unix::fs::FileExt::write_all_at(&file, &block, at)?;
    }
    file.sync_all()
}

fn table(path: &Path, count: usize) -> Result<String> {
    let mut out =
        "| µs | own: 10 % | median | 90 % | mean | of another thread: 10 % | median | 90 % | mean |\n\
                   |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_string();
    let (own, others) = (own(path, count)?, of_another(path, count)?);
    for (way, (name, _)) in WAYS.iter().enumerate() {
        out += &format!("| {name} |{}{}\n", cells(&own[way]), cells(&others[way]));
    }
    Ok(out)
}

fn cells(times: &[f64]) -> String {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    format!(" {:.0} | {:.0} | {:.0} | {mean:.0} |", at(10), at(50), at(90))
}

/// Microseconds of each request, by way.
type Times = Vec<Vec<f64>>;

fn own(path: &Path, count: usize) -> Result<Times> {
    let mut disk = Disk::open(path)?;
    let mut times = vec![Vec::new(); WAYS.len()];
    for _ in 0..count {
        for (way, times) in times.iter_mut().enumerate() {
            let began = Instant::now();
            disk.make_durable(way)?;
            times.push(micros(began));
        }
    }
    Ok(times)
}

fn of_another(path: &Path, count: usize) -> Result<Times> {
    let mut disk = Disk::open(path)?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let (answer, answered) = channel::<()>();
    let mut times = vec![Vec::new(); WAYS.len()];
    std::thread::scope(|scope| -> Result<()> {
        let (bell, times) = (&bell, &mut times);
        let client = scope.spawn(move || {
            for _ in 0..count {
                for times in times.iter_mut() {
                    let began = Instant::now();
                    let is_gone = write(bell, &1u64.to_ne_bytes()).is_err() || answered.recv().is_err();
                    if is_gone {
                        return;
                    }
                    times.push(micros(began));
                }
            }
        });
        for turn in 0..count * WAYS.len() {
            disk.wait_for(bell)?;
            disk.make_durable(turn % WAYS.len())?;
            if answer.send(()).is_err() {
                break;
            }
        }
        drop(answer);
        client.join().map_err(|_| std::io::Error::other("the client panicked"))
    })?;
    Ok(times)
}

fn micros(began: Instant) -> f64 {
    began.elapsed().as_nanos() as f64 / 1e3
}

/// A file as a leaf has it: one descriptor past the page cache, one to flush, and a ring.
struct Disk {
    direct: OwnedFd,
    plain: OwnedFd,
    ring: Ring,
    block: Box<Block>,
    count: Box<u64>,
    next: u64,
}

#[repr(align(4096))]
struct Block([u8; 8 << 10]);

impl Disk {
    fn open(path: &Path) -> Result<Disk> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        Ok(Disk {
            direct: open(path, flags | OFlags::DIRECT, Mode::empty())?,
            plain: open(path, flags, Mode::empty())?,
            ring: Ring::new()?,
            block: Box::new(Block([7; 8 << 10])),
            count: Box::new(0),
            next: 0,
        })
    }

    fn make_durable(&mut self, way: usize) -> Result<()> {
        let (at, len) = (self.next, WAYS[way].1);
        self.next = (at + (8 << 10)) % SIZE;
        match way {
            0 | 1 => {
                self.ring.push(self.write(at, len));
                self.ring.exchange(1)?;
                self.ring.push(self.flush());
                self.ring.exchange(1)
            }
            2 => {
                self.ring.push(io_uring_sqe { flags: IoringSqeFlags::IO_LINK, ..self.write(at, len) });
                self.ring.push(self.flush());
                self.ring.exchange(2)
            }
            3 => {
                let mut write = self.write(at, len);
                write.op_flags.rw_flags = ReadWriteFlags::DSYNC;
                self.ring.push(write);
                self.ring.exchange(1)
            }
            _ => {
                pwrite(&self.direct, &self.block.0[..len], at)?;
                Ok(fdatasync(&self.plain)?)
            }
        }
    }

    fn wait_for(&mut self, bell: &OwnedFd) -> Result<()> {
        let mut read = io_uring_sqe { opcode: IoringOp::Read, fd: bell.as_raw_fd(), ..Default::default() };
        read.addr_or_splice_off_in.addr = io_uring_ptr::new((&raw mut *self.count).cast());
        read.len.len = 8;
        self.ring.push(read);
        self.ring.exchange(1)
    }

    fn write(&self, at: u64, len: usize) -> io_uring_sqe {
        let mut write =
            io_uring_sqe { opcode: IoringOp::Write, fd: self.direct.as_raw_fd(), ..Default::default() };
        write.off_or_addr2.off = at;
        write.addr_or_splice_off_in.addr = io_uring_ptr::new(self.block.0.as_ptr().cast_mut().cast());
        write.len.len = len as u32;
        write
    }

    fn flush(&self) -> io_uring_sqe {
        let mut flush =
            io_uring_sqe { opcode: IoringOp::Fsync, fd: self.plain.as_raw_fd(), ..Default::default() };
        flush.op_flags.fsync_flags = IoringFsyncFlags::DATASYNC;
        flush
    }
}

/// A ring set up as the loops of Cenote set theirs up. It is mapped until the program ends.
struct Ring {
    fd: OwnedFd,
    params: io_uring_params,
    submissions: *mut u8,
    completions: *mut u8,
    entries: *mut io_uring_sqe,
    pushed: u32,
}

#[allow(unsafe_code)]
impl Ring {
    fn new() -> Result<Ring> {
        let flags = IoringSetupFlags::SINGLE_ISSUER
            | IoringSetupFlags::DEFER_TASKRUN
            | IoringSetupFlags::TASKRUN_FLAG;
        let mut params = io_uring_params::default();
        params.flags = flags;
        // SAFETY: no memory of ours is given to the kernel with these flags.
        let fd = unsafe { io_uring_setup(ENTRIES, &mut params) }?;
        let map = |len: u32, offset| {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a mapping at a place that the kernel chooses, of the ring that has just been made.
            unsafe { mmap(std::ptr::null_mut(), len as usize, access, MapFlags::SHARED, &fd, offset) }
        };
        let submissions = map(params.sq_off.array + params.sq_entries * 4, IORING_OFF_SQ_RING)?.cast();
        // Sixteen bytes each.
        let completions = map(params.cq_off.cqes + params.cq_entries * 16, IORING_OFF_CQ_RING)?.cast();
        let entries = map(params.sq_entries * size_of::<io_uring_sqe>() as u32, IORING_OFF_SQES)?.cast();
        Ok(Ring { fd, params, submissions, completions, entries, pushed: 0 })
    }

    fn word(&self, ring: *mut u8, offset: u32) -> &AtomicU32 {
        // SAFETY: an aligned word of a mapping that lasts, which the kernel writes atomically.
        unsafe { AtomicU32::from_ptr(ring.add(offset as usize).cast()) }
    }

    fn push(&mut self, entry: io_uring_sqe) {
        let tail = self.word(self.submissions, self.params.sq_off.tail);
        let (at, slot) =
            (tail.load(Ordering::Relaxed), tail.load(Ordering::Relaxed) % self.params.sq_entries);
        // SAFETY: the slot lies in its mapping, and is the kernel's only after the tail has moved past it: no more than
        // two are pushed before it takes them.
        unsafe { self.entries.add(slot as usize).write(entry) };
        self.word(self.submissions, self.params.sq_off.array + slot * 4).store(slot, Ordering::Relaxed);
        tail.store(at.wrapping_add(1), Ordering::Release);
        self.pushed += 1;
    }

    /// Submits, and takes `count` answers.
    fn exchange(&mut self, count: u32) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let submitted = std::mem::take(&mut self.pushed);
            // SAFETY: what the entries point to is of `Disk`, which waits here until the kernel has done with it.
            unsafe { io_uring_enter(&self.fd, submitted, left, IoringEnterFlags::GETEVENTS) }?;
            let head = self.word(self.completions, self.params.cq_off.head);
            let tail = self.word(self.completions, self.params.cq_off.tail).load(Ordering::Acquire);
            let mut at = head.load(Ordering::Relaxed);
            while at != tail {
                let offset = self.params.cq_off.cqes + at % self.params.cq_entries * 16;
                // SAFETY: an answer that the kernel has put there, before the tail that was read.
                let result = unsafe { (*self.completions.add(offset as usize).cast::<io_uring_cqe>()).res };
                if result < 0 {
                    return Err(std::io::Error::from_raw_os_error(-result));
                }
                at = at.wrapping_add(1);
                left -= 1;
            }
            head.store(at, Ordering::Release);
        }
        Ok(())
    }
}
