//! Requests of a FUSE connection by io_uring, as Linux has it from 6.14 on: a queue for each core, which the kernel fills
//! with what programs on that core ask for.
//!
//! ```text
//!   kernel ── request ──▶ Slot ── wait ──▶ its taker ── Back::give ──▶ commit: the answer, and the next request, in one
//!                          ▲                (any thread)                       │   system call
//!                          └───────────────────────────────────────────────────┘
//!
//!   Slot      head      0 fuse_in_header, or fuse_out_header of the answer      128 the arguments of the request
//!                     256 flags u64   264 number for the commit u64   272 length of the payload u32
//!             payload   what does not fit there: names, data; of an answer all but its header
//! ```
//!
//! Layouts are those of `struct fuse_uring_req_header` and `struct fuse_uring_cmd_req` in the kernel's `uapi/linux/fuse.h`;
//! an SQE has the latter from its byte 48 on, and at the registration the address of two `iovec`s, head and payload.
//!
//! A thread that answers what it has taken itself makes one system call for each request, and the program that asked runs on
//! the same core: none is woken on another. [`Ring::wait`] must be called by the thread that made the ring.
//!
//! Invariants: the memory of a slot is either the kernel's (the ring holds the slot) or that of its one owner; it is given
//! back to the system when neither has it. A payload takes as much memory as it was used for: large ones are given back when
//! there are more than [`LARGE_KEPT`], and all when nothing was asked for [`IDLE`].
//!
//! Not here: what requests mean, forgetting and notices, which go by `/dev/fuse` itself.

#![allow(unsafe_code)] // Memory that the kernel fills, and entries of a ring.

use io_uring::squeue::Entry128;
use io_uring::{IoUring, opcode, types};
use rustix::event::EventfdFlags;
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;
/// `IORING_OP_URING_CMD`.
const URING_CMD: u8 = 46;

const HEAD: usize = 288;
const ARGUMENTS: usize = 128;
const COMMIT: usize = 264;
const PAYLOAD: usize = 272;
const IN_HEADER: usize = 40;
const OUT_HEADER: u32 = 16;

/// Of what a payload was used beyond, it is large.
const LARGE: usize = 64 << 10;
/// Large payloads that a ring keeps while it is busy.
const LARGE_KEPT: usize = 8;
/// After which, or at most twice that, all of them are given back.
static IDLE: types::Timespec = types::Timespec::new().sec(1);

/// The answer to the ring's own read of its bell.
const BELL: u64 = u64::MAX;
/// That [`IDLE`] has passed: a timer for all waits meanwhile, where one for each would cost as much as some requests.
const TIMER: u64 = u64::MAX - 1;

/// A place for one request and its answer.
pub struct Slot {
    head: Box<Head>,
    payload: Payload,
    queue: u16,
    number: u32,
    /// How much of the payload was used since it was given back.
    used: usize,
}

#[repr(C, align(8))]
struct Head([u8; HEAD]);

/// Memory of the system's, zeroed and not there until it is touched.
struct Payload {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone, as that of a `Box` would.
unsafe impl Send for Payload {}

impl Payload {
    fn new(len: usize) -> io::Result<Payload> {
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, rights, flags) }?;
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Payload { at, len })
    }

    /// Its pages go back to the system.
    fn give_up(&mut self) {
        // SAFETY: private memory of this value's, of which nothing is referred to while it is borrowed here.
        let _ = unsafe { rustix::mm::madvise(self.at.as_ptr().cast(), self.len, Advice::LinuxDontNeed) };
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `len` bytes long, initialised, and borrowed for as long as the result.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and alone.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slot")
    }
}

impl Slot {
    fn number_at(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.head.0[at..at + 4].try_into().unwrap_or_default())
    }

    fn lengths(&self) -> (usize, usize) {
        let payload = (self.number_at(PAYLOAD) as usize).min(self.payload.len);
        let arguments = (self.number_at(0) as usize).saturating_sub(IN_HEADER + payload);
        (arguments.min(ARGUMENTS), payload)
    }

    /// `struct fuse_in_header` of the request.
    pub fn header(&self) -> &[u8; IN_HEADER] {
        self.head.0.first_chunk().unwrap_or(&[0; IN_HEADER])
    }

    /// The structure that follows the header; may be empty.
    pub fn arguments(&self) -> &[u8] {
        &self.head.0[ARGUMENTS..][..self.lengths().0]
    }

    /// What follows that: names, data.
    pub fn payload(&self) -> &[u8] {
        &self.payload.bytes()[..self.lengths().1]
    }

    /// Puts the answer to the request in its place: an errno below zero or zero, and all that follows `fuse_out_header`.
    pub fn answer(&mut self, error: i32, parts: &[&[u8]]) {
        self.used = self.used.max(self.lengths().1);
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let (error, parts, len) =
            if len > self.payload.len { (-libc::EIO, &[][..], 0) } else { (error, parts, len) };
        let mut room = self.payload.bytes_mut();
        for part in parts {
            let (here, rest) = room.split_at_mut(part.len());
            here.copy_from_slice(part);
            room = rest;
        }
        self.used = self.used.max(len);
        // `unique` lies in both headers at the same place.
        let head = &mut self.head.0;
        head[..4].copy_from_slice(&(OUT_HEADER + len as u32).to_ne_bytes());
        head[4..8].copy_from_slice(&error.to_ne_bytes());
        head[PAYLOAD..PAYLOAD + 4].copy_from_slice(&(len as u32).to_ne_bytes());
    }

    fn commit(&self) -> u64 {
        u64::from_ne_bytes(self.head.0[COMMIT..COMMIT + 8].try_into().unwrap_or_default())
    }
}

/// Where slots with answers are brought, by any thread.
pub struct Back {
    answered: Mutex<Vec<Slot>>,
    has_ended: AtomicBool,
    bell: OwnedFd,
    owner: ThreadId,
}

impl std::fmt::Debug for Back {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Back")
    }
}

impl Back {
    /// The connection is gone. The kernel says so in the slots that it has: there may be none, where all requests wait.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub fn give(&self, slot: Slot) {
        let was_empty = {
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            answered.push(slot);
            answered.len() == 1
        };
        // The owner looks before it waits; of others one rings for all.
        if was_empty && std::thread::current().id() != self.owner {
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }
}

/// What [`Ring::wait`] came back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Arrived,
    /// The connection is gone, and no slot is with the kernel any more.
    Over,
}

/// Some queues of a connection, served by one thread.
pub struct Ring {
    ring: IoUring<Entry128>,
    device: Arc<OwnedFd>,
    back: Arc<Back>,
    /// Those that the kernel has, by their numbers.
    held: Vec<Option<Slot>>,
    with_kernel: usize,
    /// Of these, with a large payload.
    large: usize,
    /// Some payload has been used since all were given back.
    is_used: bool,
    /// And since the timer was set.
    is_used_again: bool,
    is_timed: bool,
    is_over: bool,
    bell: Box<[u8; 8]>,
    /// Where the slots are, as they were registered.
    places: Vec<[libc::iovec; 2]>,
    /// Empty ones, with the room that they had when they were last used.
    spare: (Vec<Slot>, Vec<(u64, i32)>),
}

fn build(entries: u32) -> io::Result<IoUring<Entry128>> {
    IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries)
}

/// Whether this process may make such rings.
pub fn is_permitted() -> bool {
    build(2).is_ok()
}

/// The numbers of the cores that this machine has or may get: a connection has a queue for each.
pub fn queues() -> Option<u16> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
    // "0", "0-7", "0-3,8-11": the kernel has a place for each up to the last.
    let last: u16 = list.trim().rsplit([',', '-']).next()?.parse().ok()?;
    last.checked_add(1)
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

impl Ring {
    /// Offers the kernel `depth` slots on each of `queues`, for requests and answers of up to `payload` bytes beyond their
    /// headers, on behalf of this thread. The connection has been told that it will be so, and begins when all of its queues
    /// are there.
    pub fn new(device: Arc<OwnedFd>, queues: &[u16], depth: usize, payload: usize) -> io::Result<Ring> {
        let slots = queues.len() * depth;
        let entries =
            u32::try_from((slots + 1).next_power_of_two()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let (has_ended, owner) = (AtomicBool::new(false), std::thread::current().id());
        let back = Back { answered: Mutex::default(), has_ended, bell, owner };
        let mut ring = Ring {
            ring: build(entries)?,
            device,
            back: Arc::new(back),
            held: Vec::new(),
            with_kernel: 0,
            large: 0,
            is_used: false,
            is_used_again: false,
            is_timed: false,
            is_over: false,
            bell: Box::default(),
            places: Vec::with_capacity(slots),
            spare: Default::default(),
        };
        for (number, queue) in queues.iter().flat_map(|queue| vec![*queue; depth]).enumerate() {
            let (head, payload) = (Box::new(Head([0; HEAD])), Payload::new(payload)?);
            let mut slot = Slot { head, payload, queue, number: number as u32, used: 0 };
            ring.places.push([
                libc::iovec { iov_base: slot.head.0.as_mut_ptr().cast(), iov_len: HEAD },
                libc::iovec { iov_base: slot.payload.at.as_ptr().cast(), iov_len: slot.payload.len },
            ]);
            ring.held.push(Some(slot));
        }
        for number in 0..slots {
            let queue = ring.held[number].as_ref().map_or(0, |slot| slot.queue);
            let (device, place) = (ring.device.as_raw_fd(), (ring.places[number].as_ptr() as u64, 2));
            ring.push(&command(device, REGISTER, number as u64, place, 0, queue))?;
            ring.with_kernel += 1;
        }
        ring.listen()?;
        ring.ring.submit()?;
        Ok(ring)
    }

    pub fn back(&self) -> Arc<Back> {
        self.back.clone()
    }

    fn push(&mut self, entry: &Entry128) -> io::Result<()> {
        loop {
            // SAFETY: what the entry points to is held by this ring until its answer has come: slots in `held`, the bell's
            // bytes in `bell`, the places in `places`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Reads the bell, once it rings.
    fn listen(&mut self) -> io::Result<()> {
        let fd = types::Fd(self.back.bell.as_raw_fd());
        let read = opcode::Read::new(fd, self.bell.as_mut_ptr(), 8).build().user_data(BELL);
        self.push(&read.into())
    }

    /// Commits what has been answered, without waiting for anything.
    ///
    /// # Errors
    /// As [`Ring::wait`].
    pub fn commit(&mut self) -> io::Result<()> {
        self.take_back_all()?;
        self.ring.submit().map(drop)
    }

    fn take_back_all(&mut self) -> io::Result<()> {
        let mut answered = std::mem::take(&mut self.spare.0);
        std::mem::swap(
            &mut answered,
            &mut *self.back.answered.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let done = answered.drain(..).try_for_each(|slot| self.take_back(slot));
        self.spare.0 = answered;
        done
    }

    fn take_back(&mut self, slot: Slot) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        let (number, device) = (slot.number as usize, self.device.as_raw_fd());
        let entry = command(device, COMMIT_AND_FETCH, number as u64, (0, 0), slot.commit(), slot.queue);
        (self.is_used, self.is_used_again) = (true, true);
        self.large += usize::from(slot.used > LARGE);
        self.held[number] = Some(slot);
        self.with_kernel += 1;
        self.push(&entry)
    }

    /// Commits what has been answered and waits for requests, which `arrived` gets.
    ///
    /// # Errors
    /// When the kernel refuses what it should take: then the connection should be given up.
    pub fn wait(&mut self, arrived: &mut Vec<Slot>) -> io::Result<Waited> {
        loop {
            self.is_over |= self.back.has_ended.load(Ordering::SeqCst);
            self.take_back_all()?;
            if self.with_kernel == 0 && self.is_over {
                return Ok(Waited::Over);
            }
            if self.is_used && !self.is_timed {
                self.push(&opcode::Timeout::new(&IDLE).build().user_data(TIMER).into())?;
                (self.is_timed, self.is_used_again) = (true, false);
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(e) => return Err(e),
            }
            if self.take(arrived)? {
                return Ok(Waited::Arrived);
            }
        }
    }

    /// Payloads of slots that wait for requests go back to the system: all but `kept` of the large ones, and if that is
    /// none, the small ones as well. The kernel fills a slot on this thread, inside the system call that waits, and what it
    /// has filled was taken: it does not now.
    fn give_up(&mut self, kept: usize) {
        let beyond = if kept == 0 { 0 } else { LARGE };
        for slot in self.held.iter_mut().flatten().filter(|slot| slot.used > beyond).skip(kept) {
            slot.payload.give_up();
            slot.used = 0;
        }
        self.large = self.large.min(kept);
    }

    fn take(&mut self, arrived: &mut Vec<Slot>) -> io::Result<bool> {
        let mut done = std::mem::take(&mut self.spare.1);
        done.extend(self.ring.completion().map(|done| (done.user_data(), done.result())));
        let mut rang = false;
        for (number, result) in done.drain(..) {
            if number == TIMER {
                self.is_timed = false;
                continue;
            }
            if number == BELL {
                rang = true;
                continue;
            }
            let Some(slot) = self.held.get_mut(number as usize).and_then(Option::take) else { continue };
            self.with_kernel -= 1;
            match -result {
                ..=0 => {}
                // The connection has ended, and the slot goes; so will all others.
                libc::ENOTCONN | libc::ECONNABORTED | libc::ENODEV | libc::ECANCELED => {
                    self.is_over = true;
                    continue;
                }
                code => return Err(io::Error::from_raw_os_error(code)),
            }
            self.large -= usize::from(slot.used > LARGE);
            arrived.push(slot);
        }
        self.spare.1 = done;
        if rang && !self.is_over {
            self.listen()?;
        }
        if self.large > LARGE_KEPT {
            self.give_up(LARGE_KEPT);
        }
        if self.is_used && !self.is_timed && !self.is_used_again && arrived.is_empty() {
            self.give_up(0);
            self.is_used = false;
        }
        Ok(!arrived.is_empty())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.with_kernel > 0 {
            // The kernel may still write into them: they stay for as long as the process.
            self.held.drain(..).flatten().for_each(std::mem::forget);
        }
    }
}

fn command(
    device: RawFd,
    what: u32,
    number: u64,
    (at, len): (u64, u32),
    commit: u64,
    queue: u16,
) -> Entry128 {
    let mut sqe = [0u8; 128];
    sqe[0] = URING_CMD;
    sqe[4..8].copy_from_slice(&device.to_ne_bytes());
    sqe[8..12].copy_from_slice(&what.to_ne_bytes());
    sqe[16..24].copy_from_slice(&at.to_ne_bytes());
    sqe[24..28].copy_from_slice(&len.to_ne_bytes());
    sqe[32..40].copy_from_slice(&number.to_ne_bytes());
    sqe[56..64].copy_from_slice(&commit.to_ne_bytes());
    sqe[64..66].copy_from_slice(&queue.to_ne_bytes());
    // SAFETY: both are 128 bytes of which every value is one; the order of the fields is the kernel's.
    unsafe { std::mem::transmute::<[u8; 128], Entry128>(sqe) }
}
