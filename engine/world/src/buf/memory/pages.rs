//! Address space for buffers, and which of it is in memory.
//!
//! ```text
//!   extent    │ piece │ piece │ piece │ piece │ …      mapped once, for one class, and never unmapped
//!              in use   shelved  empty    empty
//!                          └──────▲
//!                     give_back: its pages go to the system, its addresses stay
//! ```
//!
//! An allocator for everything would clear what it hands out by hand, though the kernel has cleared it just then, and keep
//! freed memory among what is in use. Here a piece is whole pages, so that each can be given back by itself, and what is
//! large is faulted in at once rather than a page at a time.
//!
//! Invariants: a piece is in one place only; the pages of an empty one are not in memory, and read as zeros.

use super::{CLASSES, Fault, capacity_of};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Addresses are plenty: an extent has many pieces, and is one entry of the kernel's.
const EXTENT: usize = 32 << 20;
/// From here on pieces are faulted in whole, which is cheaper than by touching. Smaller ones may be of clients that are
/// silent, and use a page of them, unless it is known that they will be filled: then from here on.
const POPULATE_MIN: usize = 512 << 10;
const POPULATE_FILLED_MIN: usize = 16 << 10;

/// Addresses of a piece; nothing refers to its bytes.
struct Piece(NonNull<u8>);

// SAFETY: it is a number, as long as the piece has no owner.
#[allow(unsafe_code)]
unsafe impl Send for Piece {}

static EMPTY: [Mutex<Vec<Piece>>; CLASSES] = [const { Mutex::new(Vec::new()) }; CLASSES];

fn empty(class: usize) -> MutexGuard<'static, Vec<Piece>> {
    EMPTY[class].lock().unwrap_or_else(PoisonError::into_inner)
}

/// A piece of a class whose capacity is whole pages, all zeros; `None` when the system has no memory.
pub fn take(class: usize, fault: Fault) -> Option<NonNull<u8>> {
    let capacity = capacity_of(class);
    let reused = empty(class).pop();
    let start = match reused {
        Some(Piece(start)) => start,
        None => cut(class, capacity)?,
    };
    if capacity >= if fault == Fault::AtOnce { POPULATE_FILLED_MIN } else { POPULATE_MIN } {
        populate(start, capacity);
    }
    Some(start)
}

/// Maps an extent and cuts it; answers the first piece.
fn cut(class: usize, capacity: usize) -> Option<NonNull<u8>> {
    let count = (EXTENT / capacity).max(1);
    let start = map(count * capacity)?;
    // The lowest are taken first.
    let rest = (1..count).rev().filter_map(|n| NonNull::new(start.as_ptr().wrapping_add(n * capacity)));
    empty(class).extend(rest.map(Piece));
    Some(start)
}

/// Gives the pages of a piece to the system.
pub fn give_back(class: usize, start: NonNull<u8>) {
    drop_pages(start, capacity_of(class));
    empty(class).push(Piece(start));
}

/// Memory beside all classes; ended by [`unmap`].
#[allow(unsafe_code)]
pub fn map(len: usize) -> Option<NonNull<u8>> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a mapping at a place that the kernel chooses, of nothing that exists.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, flags) };
    NonNull::new(start.ok()?.cast())
}

#[allow(unsafe_code)]
pub fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: from `map`, with this length; its owner has given it up. A failure leaves it mapped, which does no harm.
    let _ = unsafe { munmap(start.as_ptr().cast(), len) };
}

/// Kernels before 5.14 cannot: then pages come as they are touched.
#[allow(unsafe_code)]
fn populate(start: NonNull<u8>, len: usize) {
    // SAFETY: the range is mapped, and has no other owner; its bytes stay what they are.
    let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) };
}

#[allow(unsafe_code)]
fn drop_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: the range is mapped, and nothing refers to its bytes, which are zeros from now on.
    let dropped = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxDontNeed) };
    if dropped.is_err() {
        // Pages that are locked in memory stay there; they must read as zeros all the same.
        // SAFETY: as above.
        unsafe { start.as_ptr().write_bytes(0, len) };
    }
}
