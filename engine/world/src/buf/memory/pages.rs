//! Address space for buffers, and which of it is in memory.
//!
//! ```text
//!   extent  │ unit │ unit │ unit │ …     mapped once, for one class, and never unmapped
//!   unit    │ piece │ piece │ piece │    of 2 MiB, or one piece where that is larger, or is no part of 2 MiB
//!
//!   whole units ─┬─ a class that has begun ──▶ loose pieces ──▶ taken one by one, in small pages
//!                └─ a class under load ──▶ all of it at once, as one huge page: a piece is taken, the others are shelved
//!   give_back: the pages of a piece go to the system; it is loose, or with the others of its unit whole again
//! ```
//!
//! An allocator for everything would clear what it hands out by hand, though the kernel has cleared it just then, and keep
//! freed memory among what is in use. Here a piece is whole pages, so that each can be given back by itself, and what is
//! large is faulted in at once rather than a page at a time. A huge page is faulted in for a quarter of what its 512 small
//! ones cost, and copied into for less.
//!
//! The kernel is asked for huge pages only while a unit is faulted in: it must not put one in the place of pages that were
//! given back. A part of one that was given back is free for the system when it looks for memory.
//!
//! Invariants: a piece is in one place only; the pages of an empty one are not in memory, and read as zeros.

use super::{CLASSES, capacity_of};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Addresses are plenty: an extent has many units, and is one entry of the kernel's.
const EXTENT: usize = 32 << 20;
/// A huge page of most processors; of the others it is only what is faulted in together.
pub const UNIT: usize = 2 << 20;
/// So many units of a class are taken piece by piece: they may be of clients that are silent, and use a page of them.
const SMALL_UNITS: usize = 4;
/// From here on pieces are faulted in whole, which is cheaper than by touching.
const POPULATE_MIN: usize = 512 << 10;

/// Addresses of a piece or of a unit; nothing refers to its bytes.
struct Piece(NonNull<u8>);

// SAFETY: it is a number, as long as the piece has no owner.
#[allow(unsafe_code)]
unsafe impl Send for Piece {}

/// The empty part of what a class has mapped.
struct Space {
    whole: Vec<Piece>,
    /// Pieces of units that are not whole, by the address of the unit.
    loose: BTreeMap<usize, Vec<Piece>>,
    /// Units that are not whole.
    begun: usize,
}

static SPACES: [Mutex<Space>; CLASSES] =
    [const { Mutex::new(Space { whole: Vec::new(), loose: BTreeMap::new(), begun: 0 }) }; CLASSES];

fn space(class: usize) -> MutexGuard<'static, Space> {
    SPACES[class].lock().unwrap_or_else(PoisonError::into_inner)
}

/// A piece that was taken, and what came with it: as large, and in memory.
pub struct Taken {
    pub piece: NonNull<u8>,
    pub others: Vec<NonNull<u8>>,
}

/// What is cut from a unit.
fn unit_of(capacity: usize) -> usize {
    if UNIT.is_multiple_of(capacity) { UNIT } else { capacity }
}

/// A piece of a class whose capacity is whole pages, all zeros; `None` when the system has no memory. It comes alone unless
/// `may_bring_others`.
pub fn take(class: usize, may_bring_others: bool) -> Option<Taken> {
    let capacity = capacity_of(class);
    let unit = unit_of(capacity);
    let mut space = space(class);
    if space.whole.is_empty() && space.loose.is_empty() {
        space.whole = extent(unit)?;
    }
    let is_load = may_bring_others && space.begun >= SMALL_UNITS;
    let begins = is_load || unit == capacity || space.loose.is_empty();
    if let Some(Piece(start)) = begins.then(|| space.whole.pop()).flatten() {
        space.begun += 1;
        if is_load || unit == capacity {
            drop(space);
            populate(start, unit);
            return Some(Taken { piece: start, others: pieces(start, unit, capacity).skip(1).collect() });
        }
        // The lowest are taken first.
        let all: Vec<Piece> = pieces(start, unit, capacity).map(Piece).collect();
        space.loose.insert(start.as_ptr() as usize, all.into_iter().rev().collect());
    }
    let mut entry = space.loose.first_entry()?;
    let piece = entry.get_mut().pop();
    if entry.get().is_empty() {
        entry.remove();
    }
    drop(space);
    let Piece(piece) = piece?;
    populate(piece, capacity);
    Some(Taken { piece, others: Vec::new() })
}

fn pieces(unit: NonNull<u8>, len: usize, capacity: usize) -> impl Iterator<Item = NonNull<u8>> {
    let start = unit.as_ptr();
    (0..len / capacity).filter_map(move |n| NonNull::new(start.wrapping_add(n * capacity)))
}

/// Maps an extent of units, aligned to [`UNIT`], of which the first is the last of the list.
fn extent(unit: usize) -> Option<Vec<Piece>> {
    let len = (EXTENT / unit).max(1) * unit;
    let mapped = map(len + UNIT)?.as_ptr();
    let start = NonNull::new(mapped.wrapping_add(mapped.align_offset(UNIT)))?;
    if unit.is_multiple_of(UNIT) {
        advise(start, len, Advice::LinuxNoHugepage);
    }
    let units: Vec<Piece> = pieces(start, len, unit).map(Piece).collect();
    Some(units.into_iter().rev().collect())
}

/// Gives the pages of a piece to the system.
pub fn give_back(class: usize, start: NonNull<u8>) {
    let capacity = capacity_of(class);
    drop_pages(start, capacity);
    let mut space = space(class);
    if unit_of(capacity) == capacity {
        space.begun -= 1;
        space.whole.push(Piece(start));
        return;
    }
    let address = start.as_ptr() as usize / UNIT * UNIT;
    let loose = space.loose.entry(address).or_default();
    loose.push(Piece(start));
    if loose.len() < UNIT / capacity {
        return;
    }
    space.loose.remove(&address);
    space.begun -= 1;
    let Some(unit) = NonNull::new(start.as_ptr().wrapping_sub(start.as_ptr() as usize - address)) else {
        return;
    };
    // Now that all of it is empty the table of its pages can go as well, where a huge page could not be.
    advise(unit, UNIT, Advice::LinuxDontNeed);
    space.whole.push(Piece(unit));
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

/// Kernels before 5.14 cannot: then pages come as they are touched. Where there are no huge pages, or none is free, the pages
/// are small.
fn populate(start: NonNull<u8>, len: usize) {
    let is_huge = len.is_multiple_of(UNIT);
    if is_huge {
        advise(start, len, Advice::LinuxHugepage);
    }
    if len >= POPULATE_MIN {
        advise(start, len, Advice::LinuxPopulateWrite);
    }
    if is_huge {
        advise(start, len, Advice::LinuxNoHugepage);
    }
}

/// Whether the kernel took the advice. None that is given here changes what bytes are in use.
#[allow(unsafe_code)]
fn advise(start: NonNull<u8>, len: usize, advice: Advice) -> bool {
    // SAFETY: the range is mapped, and has no other owner; what it holds is kept, or referred to by nothing.
    unsafe { madvise(start.as_ptr().cast(), len, advice) }.is_ok()
}

#[allow(unsafe_code)]
fn drop_pages(start: NonNull<u8>, len: usize) {
    if !advise(start, len, Advice::LinuxDontNeed) {
        // Pages that are locked in memory stay there; they must read as zeros all the same.
        // SAFETY: nothing refers to the bytes, which are zeros from now on.
        unsafe { start.as_ptr().write_bytes(0, len) };
    }
}
