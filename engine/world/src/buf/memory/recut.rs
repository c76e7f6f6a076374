//! Memory that one class keeps, cut anew for another, so that a load of other blocks needs none that is new.
//!
//! ```text
//!   chunk of one class    │k│k│e│k│k│k│k│k│…      k kept, e empty: no piece of it is in use
//!                          off the shelf, and off the list of the empty ones, under the locks of both
//!   chunk of another      │  e  │  k  │  k  │…    over an empty one: empty as well, and its pages are given back
//! ```
//!
//! The first touch of a page costs more than a copy of it, and on a virtual machine several times that
//! (docs/rfd/0047-what-a-cold-read-costs.md). Tried when a class keeps nothing while others keep much. A search that finds
//! nothing is not made again before as much new memory was needed as one makes at the most.
//!
//! Invariants: those of the shelves and of the pages; between the two steps a chunk is the caller's alone.

use super::pages::{self, CHUNK};
use super::*;

/// Chunks at a time: what they hold is listed under a lock.
const AT_ONCE: usize = 16;
/// Pieces of a shelf that are looked at: some milliseconds of looking at the most.
const LOOKED_AT: usize = 64 << 10;

/// Bytes that were needed from the system since a search that found nothing.
static NEEDED: AtomicUsize = AtomicUsize::new(AT_ONCE * CHUNK);

/// Puts memory of other classes on the shelf of this one; false when none has a chunk to spare.
pub(super) fn recut_for(class: usize) -> bool {
    if !pages::is_in_chunks(class) || KEPT.load(Relaxed) < CHUNK {
        return false;
    }
    if NEEDED.fetch_add(capacity_of(class), Relaxed) < AT_ONCE * CHUNK {
        return false;
    }
    // A few pieces that this thread keeps would hold up a chunk each.
    put_away();
    let found = (0..CLASSES).any(|from| from != class && pages::is_in_chunks(from) && recut(from, class));
    if !found {
        NEEDED.store(0, Relaxed);
    }
    found
}

fn recut(from: usize, to: usize) -> bool {
    let mut shelf = shared_shelf(from);
    if shelf.len() * capacity_of(from) < CHUNK / 2 {
        return false;
    }
    let unused = pages::take_unused(from, shelf.iter().take(LOOKED_AT).map(|memory| memory.start), AT_ONCE);
    if unused.is_empty() {
        return false;
    }
    let (leaving, staying) = std::mem::take(&mut *shelf)
        .into_iter()
        .partition::<Vec<_>, _>(|memory| unused.contains_key(&pages::chunk_of(memory.start)));
    *shelf = staying;
    note_low(from, shelf.len());
    drop(shelf);
    let bytes = leaving.len() * capacity_of(from);
    KEPT.fetch_sub(bytes, Relaxed);
    HELD.fetch_sub(bytes, Relaxed);
    // Their memory is the chunks' now.
    leaving.into_iter().for_each(std::mem::forget);
    let capacity = capacity_of(to);
    let whole: Vec<Memory> = unused
        .into_values()
        .flat_map(|chunk| pages::cut_again(&chunk, from, to))
        .map(|start| Memory { start, class: to, capacity, lender: None })
        .collect();
    HELD.fetch_add(whole.len() * capacity, Relaxed);
    shared_put(to, whole);
    true
}
