//! Address space for buffers, and which of it is in memory.
//!
//! ```text
//!   extent    │ chunk │ chunk │ chunk │ …              mapped once, and never unmapped
//!   chunk     │ piece │ piece │ piece │ piece │ …      of one class; large pieces are cut from an extent
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
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Addresses are plenty: an extent has many pieces, and is one entry of the kernel's.
const EXTENT: usize = 32 << 20;
/// What smaller pieces are cut from, and what can be cut anew once none of them is in use; it is aligned to its size.
pub const CHUNK: usize = 2 << 20;
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
/// Chunks of extents that are not cut yet.
static UNCUT: Mutex<Vec<Piece>> = Mutex::new(Vec::new());

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

/// Whether pieces of a class are cut from chunks.
pub fn is_in_chunks(class: usize) -> bool {
    (super::PAGE..=CHUNK / 2).contains(&capacity_of(class))
}

/// The address of the chunk in which a piece lies.
pub fn chunk_of(start: NonNull<u8>) -> usize {
    start.as_ptr().addr() & !(CHUNK - 1)
}

/// Cuts a chunk or an extent; answers the first piece.
fn cut(class: usize, capacity: usize) -> Option<NonNull<u8>> {
    let (start, count) = match is_in_chunks(class) {
        true => (chunk()?, CHUNK / capacity),
        false => (map((EXTENT / capacity).max(1) * capacity)?, (EXTENT / capacity).max(1)),
    };
    // The lowest are taken first.
    let rest = (1..count).rev().filter_map(|n| NonNull::new(start.as_ptr().wrapping_add(n * capacity)));
    empty(class).extend(rest.map(Piece));
    Some(start)
}

/// A chunk that is cut for no class; an extent is mapped when there is none.
fn chunk() -> Option<NonNull<u8>> {
    let mut uncut = UNCUT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Piece(start)) = uncut.pop() {
        return Some(start);
    }
    // Where the first chunk begins is known afterwards; what lies before it, and behind the last, is never touched.
    let start = map(EXTENT + CHUNK)?.as_ptr();
    let first = start.map_addr(|address| address.next_multiple_of(CHUNK));
    let all = (1..EXTENT / CHUNK).rev().filter_map(|n| NonNull::new(first.wrapping_add(n * CHUNK)));
    uncut.extend(all.map(Piece));
    NonNull::new(first)
}

/// A chunk of which no piece is in use, and which of them are empty.
pub struct Unused {
    start: NonNull<u8>,
    empty: Vec<usize>,
}

/// Chunks of which each piece is among the `kept` ones or empty, `most` of them, by their addresses. Their empty pieces are
/// on no list any more; the caller, which has the `kept` ones under its lock, takes those as well.
pub fn take_unused(
    class: usize,
    kept: impl Iterator<Item = NonNull<u8>>,
    most: usize,
) -> BTreeMap<usize, Unused> {
    let mut chunks: BTreeMap<usize, (usize, Unused)> = BTreeMap::new();
    for piece in kept {
        let start = piece.as_ptr().map_addr(|address| address & !(CHUNK - 1));
        let Some(start) = NonNull::new(start) else { continue };
        chunks.entry(chunk_of(piece)).or_insert((0, Unused { start, empty: Vec::new() })).0 += 1;
    }
    let mut list = empty(class);
    for Piece(piece) in list.iter() {
        if let Some((count, unused)) = chunks.get_mut(&chunk_of(*piece)) {
            *count += 1;
            unused.empty.push(piece.as_ptr().addr());
        }
    }
    let whole = CHUNK / capacity_of(class);
    chunks.retain(|_, (count, _)| *count == whole);
    let found: BTreeMap<usize, Unused> =
        chunks.into_iter().take(most).map(|(at, (_, unused))| (at, unused)).collect();
    if found.values().any(|unused| !unused.empty.is_empty()) {
        list.retain(|Piece(piece)| !found.contains_key(&chunk_of(*piece)));
    }
    found
}

/// Cuts a chunk for another class; answers the pieces whose pages are all in memory, and lists the others as empty.
pub fn cut_again(chunk: &Unused, from: usize, to: usize) -> Vec<NonNull<u8>> {
    let (old, new) = (capacity_of(from), capacity_of(to));
    let first = chunk.start.as_ptr().addr();
    let was_cut = CHUNK / old * old;
    let is_there = |at: usize| {
        let overlaps = |empty: &usize| *empty < first + at + new && first + at < *empty + old;
        at + new <= was_cut && !chunk.empty.iter().any(overlaps)
    };
    let place = |at: usize| NonNull::new(chunk.start.as_ptr().wrapping_add(at));
    let count = CHUNK / new;
    let (whole, others): (Vec<usize>, Vec<usize>) = (0..count).map(|n| n * new).partition(|at| is_there(*at));
    others.iter().filter_map(|at| place(*at)).for_each(|start| drop_pages(start, new));
    if let Some(rest) = place(count * new).filter(|_| count * new < CHUNK) {
        drop_pages(rest, CHUNK - count * new);
    }
    empty(to).extend(others.into_iter().rev().filter_map(place).map(Piece));
    whole.into_iter().filter_map(place).collect()
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
