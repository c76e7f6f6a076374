//! What the kernel's side of FUSE costs: a file system in memory that does nothing but answer, with no line of Cenote's in
//! it, for the first rows of `cenote bench files`.
//!
//! ```text
//!   /dev/fuse    threads that read a request and write its answer, bound to a core each or not
//!   io_uring     a thread for each core, whose queue it serves (Linux 6.14, with `enable_uring` of the module fuse)
//! ```
//!
//! A tree is unpacked by `tar` and removed by `rm`, three times each way. Extended attributes are asked for and there are
//! none, as where a file system has them. What the kernel was told it believes for an hour.
//!
//! `cargo run --profile dist -p bench --example floor_fuse -- FILE.tar [DIR]` mounts in DIR, as root, and prints a table:
//! seconds, and CPU seconds of this program, medians.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_CQ_RING, IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringSetupFlags,
    io_uring_cqe, io_uring_enter, io_uring_params, io_uring_setup,
};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::io::Result;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

const ROUNDS: usize = 3;
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
const IO_MAX: usize = 1 << 20;
/// Requests that each queue has room for.
const DEPTH: usize = 8;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Read { threads: usize, are_bound: bool },
    Ring { are_bound: bool },
}

const WAYS: [(&str, Way); 5] = [
    ("/dev/fuse, one thread", Way::Read { threads: 1, are_bound: false }),
    ("/dev/fuse, two threads", Way::Read { threads: 2, are_bound: false }),
    ("/dev/fuse, two threads, each bound to a core", Way::Read { threads: 2, are_bound: true }),
    ("io_uring", Way::Ring { are_bound: false }),
    ("io_uring, each thread bound to the core of its queue", Way::Ring { are_bound: true }),
];

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let tar = words.next().expect("which tar file?");
    let dir = words.next().unwrap_or_else(|| "/tmp".into());
    let at = Path::new(&dir).join(format!("floor-fuse-{}", std::process::id()));
    std::fs::create_dir(&at)?;
    println!("| | unpacking, s | CPU, s | removing, s | CPU, s |\n|---|---:|---:|---:|---:|");
    for (name, way) in WAYS {
        let was = std::fs::read_to_string(SWITCH).unwrap_or_default();
        if matches!(way, Way::Ring { .. }) && std::fs::write(SWITCH, "Y").is_err() {
            println!("| {name} | not here |||");
            continue;
        }
        let mut taken: [Vec<f64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            let round = mounted(&at, way, || round(&tar, &at))?;
            taken.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
        }
        let _ = std::fs::write(SWITCH, was.trim());
        taken.iter_mut().for_each(|all| all.sort_by(f64::total_cmp));
        let middle: Vec<String> = taken.iter().map(|all| format!("{:.2}", all[ROUNDS / 2])).collect();
        println!("| {name} | {} |", middle.join(" | "));
    }
    std::fs::remove_dir(&at)
}

/// Seconds and CPU seconds, of unpacking and of removing.
fn round(tar: &str, at: &Path) -> [f64; 4] {
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let run = |program: &mut Command| {
        let (began, before) = (Instant::now(), cpu());
        assert!(program.status().expect("it can be run").success());
        (began.elapsed().as_secs_f64(), cpu() - before)
    };
    let (unpacking, unpacking_cpu) = run(Command::new("tar").arg("xf").arg(tar).arg("-C").arg(at));
    let (removing, removing_cpu) = run(Command::new("sh").arg("-c").arg("rm -rf ./*").current_dir(at));
    [unpacking, unpacking_cpu, removing, removing_cpu]
}

/// Does `work` while the file system is mounted.
fn mounted<T>(at: &Path, way: Way, work: impl FnOnce() -> T) -> Result<T> {
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let options =
        format!("fd={},rootmode=40000,user_id=0,group_id=0,default_permissions", device.as_raw_fd());
    rustix::mount::mount("floor", at, "fuse", MountFlags::empty(), &*CString::new(options)?)?;
    let files = Files::new(matches!(way, Way::Ring { .. }));
    std::thread::scope(|scope| {
        let (device, files) = (&device, &files);
        let (tell, told) = mpsc::channel();
        let (threads, are_bound) = match way {
            Way::Read { threads, are_bound } => (threads, are_bound),
            Way::Ring { .. } => (1, false),
        };
        // The first thread has the first request; the others begin when that is answered.
        for core in 0..threads {
            let tell = tell.clone();
            scope.spawn(move || {
                bind(core, are_bound);
                read_all(device, files, &tell)
            });
        }
        told.recv().expect("the first request comes");
        if let Way::Ring { are_bound } = way {
            let (tell, told) = mpsc::channel();
            let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
            for core in 0..cores {
                let tell = tell.clone();
                scope.spawn(move || {
                    bind(core, are_bound);
                    serve_ring(device, files, core as u16, &tell).expect("a ring works");
                });
            }
            (0..cores).for_each(|_| told.recv().expect("the ring is there"));
        }
        let done = work();
        rustix::mount::unmount(at, UnmountFlags::DETACH)?;
        Ok(done)
    })
}

fn bind(core: usize, is_bound: bool) {
    let mut set = CpuSet::new();
    set.set(core);
    if is_bound {
        sched_setaffinity(None, &set).expect("the core is there");
    }
}

fn read_all(device: &OwnedFd, files: &Files, greeted: &mpsc::Sender<()>) {
    let (mut request, mut answer) = (vec![0; IO_MAX + 4096], Vec::new());
    loop {
        let n = match rustix::io::read(device, &mut request[..]) {
            Ok(n) => n,
            Err(Errno::NODEV) => return,
            Err(_) => continue,
        };
        let (head, body) = request[..n].split_at(40);
        if let Some(outcome) = files.answer(head, body, &mut answer) {
            let mut out = header(head, answer.len(), outcome).to_vec();
            out.extend_from_slice(&answer);
            let _ = rustix::io::write(device, &out);
        }
        if number(head, 4) == 26 {
            let _ = greeted.send(());
        }
    }
}

fn header(head: &[u8], len: usize, outcome: std::result::Result<(), Errno>) -> [u8; 16] {
    let mut out = [0; 16];
    out[..4].copy_from_slice(&(16 + len as u32).to_ne_bytes());
    out[4..8].copy_from_slice(&outcome.map_or_else(|e| -e.raw_os_error(), |()| 0).to_ne_bytes());
    out[8..].copy_from_slice(&head[8..16]);
    out
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn wide(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn name(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// A request's place: header and arguments, as `struct fuse_uring_req_header` has them, and a payload.
struct Slot {
    head: Box<[u64; 36]>,
    payload: Vec<u8>,
}

/// Serves one queue until the mount has gone.
#[allow(unsafe_code)]
fn serve_ring(device: &OwnedFd, files: &Files, queue: u16, tell: &mpsc::Sender<()>) -> Result<()> {
    let mut ring = Ring::new(2 * DEPTH as u32)?;
    let mut slots: Vec<Slot> =
        (0..DEPTH).map(|_| Slot { head: Box::new([0; 36]), payload: vec![0; IO_MAX] }).collect();
    // Pairs of address and length, as `struct iovec` has them.
    let places: Vec<[usize; 4]> = slots
        .iter()
        .map(|slot| [slot.head.as_ptr() as usize, 288, slot.payload.as_ptr() as usize, IO_MAX])
        .collect();
    let command = |what: u32, slot: usize, place: (u64, u32), commit: u64| {
        let mut entry = [0u8; 128];
        entry[0] = 46;
        entry[4..8].copy_from_slice(&device.as_raw_fd().to_ne_bytes());
        entry[8..12].copy_from_slice(&what.to_ne_bytes());
        entry[16..24].copy_from_slice(&place.0.to_ne_bytes());
        entry[24..28].copy_from_slice(&place.1.to_ne_bytes());
        entry[32..40].copy_from_slice(&(slot as u64).to_ne_bytes());
        entry[56..64].copy_from_slice(&commit.to_ne_bytes());
        entry[64..66].copy_from_slice(&queue.to_ne_bytes());
        entry
    };
    places.iter().enumerate().for_each(|(n, place)| ring.push(&command(1, n, (place.as_ptr() as u64, 2), 0)));
    ring.enter(0)?;
    let _ = tell.send(());
    let (mut answer, mut body) = (Vec::new(), Vec::new());
    loop {
        for (n, result) in ring.enter(1)? {
            if result < 0 {
                // All of them end with the connection.
                std::mem::forget((slots, places));
                return Ok(());
            }
            let slot = &mut slots[n];
            // SAFETY: the kernel has filled these 288 bytes and waits for their answer.
            let head = unsafe { std::slice::from_raw_parts_mut(slot.head.as_mut_ptr().cast::<u8>(), 288) };
            let (len, payload, commit) =
                (number(head, 0) as usize, number(head, 272) as usize, wide(head, 264));
            body.clear();
            body.extend_from_slice(&head[128..][..len - 40 - payload]);
            body.extend_from_slice(&slot.payload[..payload]);
            let outcome = files.answer(&head[..40], &body, &mut answer).unwrap_or(Ok(()));
            slot.payload[..answer.len()].copy_from_slice(&answer);
            let out = header(&head[..40], answer.len(), outcome);
            head[..16].copy_from_slice(&out);
            head[272..276].copy_from_slice(&(answer.len() as u32).to_ne_bytes());
            ring.push(&command(2, n, (0, 0), commit));
        }
    }
}

/// A ring of entries of 128 bytes, mapped until the program ends.
struct Ring {
    fd: OwnedFd,
    params: io_uring_params,
    submissions: *mut u8,
    completions: *mut u8,
    entries: *mut [u8; 128],
    pushed: u32,
}

#[allow(unsafe_code)]
impl Ring {
    fn new(entries: u32) -> Result<Ring> {
        let mut params = io_uring_params::default();
        params.flags =
            IoringSetupFlags::SQE128 | IoringSetupFlags::SINGLE_ISSUER | IoringSetupFlags::DEFER_TASKRUN;
        // SAFETY: no memory of ours is given to the kernel with these flags.
        let fd = unsafe { io_uring_setup(entries, &mut params) }?;
        let map = |len: u32, offset| {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a mapping at a place that the kernel chooses, of the ring that has just been made.
            unsafe { mmap(std::ptr::null_mut(), len as usize, access, MapFlags::SHARED, &fd, offset) }
        };
        let submissions = map(params.sq_off.array + params.sq_entries * 4, IORING_OFF_SQ_RING)?.cast();
        let completions = map(params.cq_off.cqes + params.cq_entries * 16, IORING_OFF_CQ_RING)?.cast();
        let entries = map(params.sq_entries * 128, IORING_OFF_SQES)?.cast();
        Ok(Ring { fd, params, submissions, completions, entries, pushed: 0 })
    }

    fn word(&self, ring: *mut u8, offset: u32) -> &AtomicU32 {
        // SAFETY: an aligned word of a mapping that lasts, which the kernel writes atomically.
        unsafe { AtomicU32::from_ptr(ring.add(offset as usize).cast()) }
    }

    fn push(&mut self, entry: &[u8; 128]) {
        let tail = self.word(self.submissions, self.params.sq_off.tail);
        let at = tail.load(Ordering::Relaxed);
        let slot = at % self.params.sq_entries;
        // SAFETY: the slot lies in its mapping, and is the kernel's only after the tail has moved past it; there are fewer
        // requests than slots.
        unsafe { self.entries.add(slot as usize).write(*entry) };
        self.word(self.submissions, self.params.sq_off.array + slot * 4).store(slot, Ordering::Relaxed);
        tail.store(at.wrapping_add(1), Ordering::Release);
        self.pushed += 1;
    }

    /// Submits, waits for so many answers, and takes what is there.
    fn enter(&mut self, wanted: u32) -> Result<Vec<(usize, i32)>> {
        let submitted = std::mem::take(&mut self.pushed);
        // SAFETY: what the entries point to stays where it is until the connection has ended.
        unsafe { io_uring_enter(&self.fd, submitted, wanted, IoringEnterFlags::GETEVENTS) }?;
        let head = self.word(self.completions, self.params.cq_off.head);
        let tail = self.word(self.completions, self.params.cq_off.tail).load(Ordering::Acquire);
        let mut at = head.load(Ordering::Relaxed);
        let mut taken = Vec::new();
        while at != tail {
            let offset = self.params.cq_off.cqes + at % self.params.cq_entries * 16;
            // SAFETY: an answer that the kernel has put there, before the tail that was read.
            let done = unsafe { &*self.completions.add(offset as usize).cast::<io_uring_cqe>() };
            taken.push((done.user_data.u64_() as usize, done.res));
            at = at.wrapping_add(1);
        }
        head.store(at, Ordering::Release);
        Ok(taken)
    }
}

#[derive(Default)]
struct File {
    mode: u32,
    owner: [u32; 2],
    links: u32,
    data: Vec<u8>,
    names: BTreeMap<Vec<u8>, u64>,
    changed: (u64, u32),
}

struct Files {
    by_ring: bool,
    all: Mutex<(HashMap<u64, File>, u64)>,
}

fn now() -> (u64, u32) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (since.as_secs(), since.subsec_nanos())
}

fn put<const N: usize>(out: &mut Vec<u8>, words: [u64; N]) {
    words.iter().for_each(|word| out.extend(word.to_ne_bytes()));
}

fn put_attr(out: &mut Vec<u8>, id: u64, file: &File) {
    let (size, (seconds, nanos)) = (file.data.len() as u64, file.changed);
    put(out, [id, size, size.div_ceil(512), seconds, seconds, seconds]);
    let [uid, gid] = file.owner;
    for word in [nanos, nanos, nanos, file.mode, file.links, uid, gid, 0, 131_072, 0] {
        out.extend(word.to_ne_bytes());
    }
}

fn put_entry(out: &mut Vec<u8>, id: u64, file: &File) {
    put(out, [id, 1, 3600, 3600, 0]);
    put_attr(out, id, file);
}

impl Files {
    fn new(by_ring: bool) -> Files {
        let root = File { mode: 0o40755, links: 2, changed: now(), ..File::default() };
        Files { by_ring, all: Mutex::new((HashMap::from([(1, root)]), 2)) }
    }

    /// What follows the header of the answer; `None` where there is to be none.
    fn answer(&self, head: &[u8], body: &[u8], out: &mut Vec<u8>) -> Option<std::result::Result<(), Errno>> {
        out.clear();
        let opcode = number(head, 4);
        let outcome = self.done(opcode, wide(head, 16), [number(head, 24), number(head, 28)], body, out);
        if outcome.is_err() {
            out.clear();
        }
        // Forgetting, once or many times.
        (!matches!(opcode, 2 | 42)).then_some(outcome)
    }

    fn done(
        &self,
        opcode: u32,
        id: u64,
        owner: [u32; 2],
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Errno> {
        let mut all = self.all.lock().expect("no thread panics");
        let (files, next) = &mut *all;
        match opcode {
            // FUSE_INIT: what Cenote asks for.
            26 => {
                let wanted = 0x51c6_f031u64 | if self.by_ring { 1 << 41 } else { 0 };
                let flags = wanted & (u64::from(number(body, 12)) | u64::from(number(body, 16)) << 32);
                for word in [
                    7,
                    number(body, 4).min(45),
                    number(body, 8),
                    flags as u32,
                    48 << 16 | 64,
                    1 << 20,
                    1,
                    256,
                ] {
                    out.extend(word.to_ne_bytes());
                }
                out.extend(((flags >> 32) as u32).to_ne_bytes());
                out.resize(64, 0);
            }
            // LOOKUP
            1 => match files[&id].names.get(name(body)) {
                Some(found) => put_entry(out, *found, &files[found]),
                None => {
                    put(out, [0, 0, 3600, 3600, 0]);
                    out.resize(128, 0);
                }
            },
            // GETATTR, SETATTR
            3 | 4 => {
                let file = files.get_mut(&id).ok_or(Errno::NOENT)?;
                let valid = if opcode == 4 { number(body, 0) } else { 0 };
                let has = |bit: u32| valid & 1 << bit != 0;
                if has(0) {
                    file.mode = file.mode & 0o170_000 | number(body, 68) & 0o7777;
                }
                if has(1) || has(2) {
                    file.owner = [number(body, 76), number(body, 80)];
                }
                if has(3) {
                    file.data.resize(wide(body, 16) as usize, 0);
                }
                if has(5) {
                    file.changed = if has(8) { now() } else { (wide(body, 40), number(body, 60)) };
                }
                put(out, [3600, 0]);
                put_attr(out, id, file);
            }
            // SYMLINK, MKNOD, MKDIR
            6 | 8 | 9 => {
                let (mode, called, data) = match opcode {
                    8 => (number(body, 0), name(&body[16..]), Vec::new()),
                    9 => (number(body, 0) & 0o7777 | 0o40000, name(&body[8..]), Vec::new()),
                    _ => (0o120_777, name(body), name(&body[name(body).len() + 1..]).to_vec()),
                };
                let (new, file) =
                    (*next, File { mode, owner, links: 1, data, changed: now(), ..File::default() });
                *next += 1;
                put_entry(out, new, &file);
                files.insert(new, file);
                files.get_mut(&id).ok_or(Errno::NOENT)?.names.insert(called.to_vec(), new);
            }
            // READLINK
            5 => out.extend_from_slice(&files[&id].data),
            // UNLINK, RMDIR
            10 | 11 => {
                let gone = files.get_mut(&id).ok_or(Errno::NOENT)?.names.remove(name(body));
                files.remove(&gone.ok_or(Errno::NOENT)?);
            }
            // WRITE
            16 => {
                let (at, data) = (wide(body, 8) as usize, &body[40..]);
                let file = files.get_mut(&id).ok_or(Errno::NOENT)?;
                if file.data.len() < at + data.len() {
                    file.data.resize(at + data.len(), 0);
                }
                file.data[at..at + data.len()].copy_from_slice(data);
                put(out, [data.len() as u64]);
            }
            // FSYNC, of a file or a directory
            20 | 30 => {}
            // GETXATTR
            22 => return Err(Errno::NODATA),
            // READDIR, READDIRPLUS
            28 | 44 => {
                let (from, room) = (wide(body, 8) as usize, number(body, 16) as usize);
                for (n, (called, id)) in files[&id].names.iter().enumerate().skip(from) {
                    let entry = if opcode == 44 { 128 } else { 0 };
                    if out.len() + entry + (24 + called.len()).next_multiple_of(8) > room {
                        break;
                    }
                    if opcode == 44 {
                        put_entry(out, *id, &files[id]);
                    }
                    put(out, [*id, n as u64 + 1]);
                    out.extend((called.len() as u32).to_ne_bytes());
                    out.extend((files[id].mode >> 12).to_ne_bytes());
                    out.extend_from_slice(called);
                    out.resize(out.len().next_multiple_of(8), 0);
                }
            }
            _ => return Err(Errno::NOSYS),
        }
        Ok(())
    }
}
