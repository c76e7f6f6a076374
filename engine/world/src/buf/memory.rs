//! Where the bytes of buffers come from: memory that is used again.
//!
//! ```text
//!   take ──▶ this thread's shelf ──▶ the shared shelf ──▶ pages ──▶ the system (faulted in once)
//!   drop ──▶ this thread's shelf ──▶ the shared shelf ──▶ pages ──▶ the system, past the bound, and when unused
//!            (no lock)               (a lock per class, half a shelf at a time)
//! ```
//!
//! The first touch of a page costs more than copying a page: the kernel zeroes it, the hypervisor finds it. So memory
//! that was touched is kept, by size class, up to a bound. Classes are powers of two and three quarters of them, so
//! that at most a third of a buffer is slack; what one class keeps and does not use is cut anew for another ([`recut`]).
//! When the bound is reached, other classes give way to the one in use; what no load has needed from one [`age`] to the
//! next goes in any case, so that an idle process keeps nothing.
//!
//! ```text
//!   in use ────────────▶│◀── kept ──▶│                all buffers together may be as many as the cache may have
//!   0                                 held max            (set_held_max): what is kept within that is no memory more
//!   in use ─────────────────────────────▶│◀ kept ▶│     beyond it, up to a bound of its own (set_kept_max)
//! ```
//!
//! Classes of whole pages come from [`pages`]; smaller ones, and what is larger than all, from the system.
//!
//! Invariants: the bytes of a `Memory` are initialised, and its own as long as it lives; memory of class `c` is
//! `c`'s capacity long and aligned to [`ALIGN`](super::ALIGN), or to 512 when it is smaller than that. What is lent is not
//! written to: its bytes are the lender's.

mod pages;
mod recut;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SMALLEST_SHIFT: u32 = 9;
/// 16 MiB, the largest block of a pool.
const LARGEST_SHIFT: u32 = 24;
/// Two classes for each power of two: three quarters, and the whole.
const CLASSES: usize = 2 * (LARGEST_SHIFT - SMALLEST_SHIFT + 1) as usize;
/// The smallest page there is.
const PAGE: usize = 4096;
/// Larger memory is never kept.
const UNKEPT: usize = CLASSES;

/// What a thread keeps of each class: enough for a batch, not enough to matter when a thread falls silent.
const SHELF_BYTES: usize = 1 << 20;
const SHELF_COUNT: usize = 64;
/// Kept by default for the whole process; [`set_kept_max`] knows better.
const KEPT_MAX: usize = 256 << 20;

/// A piece of initialised memory: owned, or lent by another that has more holders than this one's.
pub(super) struct Memory {
    start: NonNull<u8>,
    /// Its class, or `UNKEPT`.
    class: usize,
    capacity: usize,
    lender: Option<Arc<Memory>>,
}

// SAFETY: it owns its bytes as a Box<[u8]> does, or keeps alive what does, and then only reads.
#[allow(unsafe_code)]
unsafe impl Send for Memory {}
// SAFETY: as above; shared references only read.
#[allow(unsafe_code)]
unsafe impl Sync for Memory {}

/// When the pages of memory come that was not used before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    ByTouch,
    AtOnce,
}

/// Where memory comes from.
enum Place {
    Heap,
    Pages,
    Mapping,
}

/// The smallest class that holds `len` bytes.
fn class_of(len: usize) -> usize {
    let power = len.max(1 << SMALLEST_SHIFT).next_power_of_two();
    let shift = power.trailing_zeros();
    if shift > LARGEST_SHIFT {
        return UNKEPT;
    }
    let whole = 2 * (shift - SMALLEST_SHIFT) as usize + 1;
    // Below four pages three quarters would not be a whole number of pages.
    if power >= 4 * PAGE && len <= power / 4 * 3 { whole - 1 } else { whole }
}

fn capacity_of(class: usize) -> usize {
    let power = 1 << (SMALLEST_SHIFT as usize + class / 2);
    if class % 2 == 1 { power } else { power / 4 * 3 }
}

fn shelf_room(class: usize) -> usize {
    (SHELF_BYTES / capacity_of(class)).min(SHELF_COUNT)
}

impl Memory {
    pub fn take(len: usize) -> Memory {
        Memory::take_as(len, Fault::ByTouch)
    }

    /// As [`Memory::take`], for what will be filled at once.
    pub fn take_whole(len: usize) -> Memory {
        Memory::take_as(len, Fault::AtOnce)
    }

    fn take_as(len: usize, fault: Fault) -> Memory {
        if len == 0 {
            return Memory { start: NonNull::dangling(), class: UNKEPT, capacity: 0, lender: None };
        }
        let class = class_of(len);
        if class == UNKEPT {
            return Memory::from_system(class, len.next_multiple_of(super::ALIGN), fault);
        }
        // A thread that is ending has no shelf any more.
        let kept = SHELVES.try_with(|s| s.borrow_mut().take(class)).unwrap_or_else(|_| shared_take(class));
        let of_others = || if recut::recut_for(class) { shared_take(class) } else { None };
        kept.or_else(of_others).unwrap_or_else(|| Memory::from_system(class, capacity_of(class), fault))
    }

    /// The same bytes, to be read only.
    pub fn lend(lender: &Arc<Memory>) -> Memory {
        // Of one that is lent itself the owner is kept.
        let owner = lender.lender.as_ref().unwrap_or(lender);
        Memory { start: owner.start, class: UNKEPT, capacity: owner.capacity, lender: Some(owner.clone()) }
    }

    pub fn is_lent(&self) -> bool {
        self.lender.is_some()
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn layout(&self) -> Layout {
        let align = if self.capacity < super::ALIGN { 1 << SMALLEST_SHIFT } else { super::ALIGN };
        Layout::from_size_align(self.capacity, align).expect("a length that was allocated is a layout")
    }

    #[allow(unsafe_code)]
    fn from_system(class: usize, capacity: usize, fault: Fault) -> Memory {
        let mut memory = Memory { start: NonNull::dangling(), class, capacity, lender: None };
        let layout = memory.layout();
        let place = memory.place();
        let start = match place {
            Place::Pages => pages::take(class, fault),
            Place::Mapping => pages::map(capacity),
            // SAFETY: the capacity is not zero.
            Place::Heap => NonNull::new(unsafe { alloc_zeroed(layout) }),
        };
        match start {
            Some(start) => {
                memory.start = start;
                if !matches!(place, Place::Heap) {
                    HELD.fetch_add(capacity, Relaxed);
                    keep_bounds(class, KEPT.load(Relaxed));
                }
            }
            None => {
                std::mem::forget(memory); // it holds nothing
                handle_alloc_error(layout)
            }
        }
        memory
    }

    #[allow(unsafe_code)]
    fn return_to_system(self) {
        if self.capacity > 0 {
            let place = self.place();
            if !matches!(place, Place::Heap) {
                HELD.fetch_sub(self.capacity, Relaxed);
            }
            match place {
                Place::Pages => pages::give_back(self.class, self.start),
                Place::Mapping => pages::unmap(self.start, self.capacity),
                // SAFETY: allocated by `from_system` with this layout; no other pointer to it exists.
                Place::Heap => unsafe { dealloc(self.start.as_ptr(), self.layout()) },
            }
        }
        std::mem::forget(self);
    }

    fn place(&self) -> Place {
        match (self.class, self.capacity) {
            (UNKEPT, _) => Place::Mapping,
            (_, capacity) if capacity < PAGE => Place::Heap,
            _ => Place::Pages,
        }
    }

    #[allow(unsafe_code)]
    pub fn bytes(&self, len: usize) -> &[u8] {
        assert!(len <= self.capacity, "a buffer lies within its memory");
        // SAFETY: `capacity` bytes from `start` are initialised and ours or the lender's, which lives as long as `self`; and
        // are borrowed as long as `self` is.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), len) }
    }

    #[allow(unsafe_code)]
    pub fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.capacity, "a buffer lies within its memory");
        assert!(!self.is_lent(), "what is lent is only read");
        // SAFETY: as in `bytes`; it is ours alone, and `&mut self` makes the borrow unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_lent() {
            return;
        }
        let memory = Memory { start: self.start, class: self.class, capacity: self.capacity, lender: None };
        if memory.class == UNKEPT {
            memory.return_to_system();
            return;
        }
        let mut memory = Some(memory);
        let shelved = SHELVES.try_with(|s| memory.take().map(|m| s.borrow_mut().put(m)));
        if let (Err(_), Some(memory)) = (shelved, memory) {
            shared_put(memory.class, [memory]);
        }
    }
}

/// What one thread keeps.
struct Shelves([Vec<Memory>; CLASSES]);

thread_local! {
    static SHELVES: RefCell<Shelves> = const { RefCell::new(Shelves([const { Vec::new() }; CLASSES])) };
}

impl Shelves {
    fn take(&mut self, class: usize) -> Option<Memory> {
        let shelf = &mut self.0[class];
        if shelf.is_empty() {
            let batch = (shelf_room(class) / 2).max(1);
            let mut shared = shared_shelf(class);
            let rest = shared.len().saturating_sub(batch);
            shelf.extend(shared.drain(rest..));
            note_low(class, shared.len());
            KEPT.fetch_sub(shelf.len() * capacity_of(class), Relaxed);
        }
        shelf.pop()
    }

    fn clear(&mut self) {
        for (class, shelf) in self.0.iter_mut().enumerate().filter(|(_, shelf)| !shelf.is_empty()) {
            shared_put(class, std::mem::take(shelf));
        }
    }

    fn put(&mut self, memory: Memory) {
        let class = memory.class;
        let shelf = &mut self.0[class];
        let room = shelf_room(class);
        if shelf.len() < room {
            shelf.push(memory);
            return;
        }
        // The older half goes; what was used last is still in the processor's cache.
        let surplus = shelf.drain(..room / 2);
        shared_put(class, surplus.chain([memory]));
    }
}

impl Drop for Shelves {
    fn drop(&mut self) {
        self.clear();
    }
}

static SHARED: [Mutex<Vec<Memory>>; CLASSES] = [const { Mutex::new(Vec::new()) }; CLASSES];
/// Bytes of buffers that are not on the heap, in use or kept.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Bytes on the shared shelves.
static KEPT: AtomicUsize = AtomicUsize::new(0);
static BOUND: AtomicUsize = AtomicUsize::new(KEPT_MAX);
/// Buffers in use and kept up to here are expected: until then what is kept has no other bound.
static HELD_BOUND: AtomicUsize = AtomicUsize::new(0);
/// The fewest that each shared shelf has had since [`age`] looked last: so many were not needed.
static LOW: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
/// The class that gives way next.
static HAND: AtomicUsize = AtomicUsize::new(0);

fn shared_shelf(class: usize) -> MutexGuard<'static, Vec<Memory>> {
    SHARED[class].lock().unwrap_or_else(PoisonError::into_inner)
}

fn shared_take(class: usize) -> Option<Memory> {
    let mut shared = shared_shelf(class);
    let memory = shared.pop()?;
    note_low(class, shared.len());
    KEPT.fetch_sub(memory.capacity, Relaxed);
    Some(memory)
}

fn shared_put(class: usize, batch: impl IntoIterator<Item = Memory>) {
    let kept = {
        let mut shelf = shared_shelf(class);
        let before = shelf.len();
        shelf.extend(batch);
        let added = (shelf.len() - before) * capacity_of(class);
        // Counted before another thread can take it and count it out again.
        KEPT.fetch_add(added, Relaxed) + added
    };
    keep_bounds(class, kept);
}

/// Has kept memory give way that is beyond both bounds, other classes before the one in use.
fn keep_bounds(in_use: usize, kept: usize) {
    let beyond = |now: usize, bound: &AtomicUsize| now.saturating_sub(bound.load(Relaxed));
    let surplus = beyond(kept, &BOUND).min(beyond(HELD.load(Relaxed), &HELD_BOUND));
    if surplus > 0 {
        give_way(in_use, surplus);
    }
}

/// Returns `surplus` bytes to the system: of the other classes in turn, so that what a former load needed does not
/// stay for ever, and only then of the one in use.
fn give_way(in_use: usize, surplus: usize) {
    let mut returned = 0;
    for _ in 0..CLASSES {
        let class = HAND.fetch_add(1, Relaxed) % CLASSES;
        if class != in_use {
            returned += return_some(class, surplus - returned);
        }
        if returned >= surplus {
            return;
        }
    }
    if in_use < CLASSES {
        return_some(in_use, surplus - returned);
    }
}

fn return_some(class: usize, surplus: usize) -> usize {
    let leaving: Vec<Memory> = {
        let mut shelf = shared_shelf(class);
        let count = surplus.div_ceil(capacity_of(class)).min(shelf.len());
        shelf.drain(..count).collect()
    };
    let bytes = leaving.len() * capacity_of(class);
    KEPT.fetch_sub(bytes, Relaxed);
    leaving.into_iter().for_each(Memory::return_to_system);
    bytes
}

fn note_low(class: usize, count: usize) {
    LOW[class].fetch_min(count, Relaxed);
}

/// Returns to the system what was not needed since the call before, and answers how many bytes; to be called every few
/// seconds.
pub fn age() -> usize {
    let mut returned = 0;
    for (class, low) in LOW.iter().enumerate() {
        let unused = low.load(Relaxed);
        if unused > 0 {
            returned += return_some(class, unused * capacity_of(class));
        }
        low.store(shared_shelf(class).len(), Relaxed);
    }
    returned
}

/// Puts what the calling thread keeps for itself on the shared shelves, for others to use, and for [`age`].
pub fn put_away() {
    // A thread that is ending has done so.
    let _ = SHELVES.try_with(|shelves| shelves.borrow_mut().clear());
}

/// Bounds the memory kept for buffers to come, beside what buffers use now and a little per thread.
pub fn set_kept_max(bytes: usize) {
    BOUND.store(bytes, Relaxed);
    // No class is in use more than another: all give way in turn.
    keep_bounds(UNKEPT, KEPT.load(Relaxed));
}

/// Up to so many bytes of buffers in all, in use or kept, nothing that is kept goes for [`set_kept_max`]: as many as a
/// cache may come to have. Beyond, that bound holds.
pub fn set_held_max(bytes: usize) {
    HELD_BOUND.store(bytes, Relaxed);
    keep_bounds(UNKEPT, KEPT.load(Relaxed));
}

/// Bytes kept for buffers to come.
pub fn kept() -> usize {
    KEPT.load(Relaxed)
}

/// Bytes of all buffers of a page and more, in use or kept. The smaller ones are on the heap.
pub fn held() -> usize {
    HELD.load(Relaxed)
}

#[cfg(test)]
mod tests;
