//! Giving memory back while it is not needed.
//!
//! ```text
//!   every two seconds   what each loop keeps for itself       ─▶ what all share  (world::buf::put_away)
//!                       buffers that no load has needed since ─▶ the system      (world::buf::age)
//!   a load has ended    the heap's free pages                 ─▶ the system      once, on a thread that computes
//! ```
//!
//! The heap is trimmed when buffers went and no more go: then the small things of a burst (trees of blocks, requests,
//! lists of what was freed) are free as well, in holes that the heap would keep.

use std::time::Duration;

const EACH: Duration = Duration::from_secs(2);
/// Buffers that went, in bytes, from which on there was a load.
const LOAD: usize = 1 << 20;

/// Does so for ever; for programs that serve.
pub async fn keep_house() {
    let mut after_load = false;
    loop {
        world::sleep(EACH).await;
        for core in 0..world::cores() {
            world::spawn_on(core, async { world::buf::put_away() });
        }
        let returned = world::buf::age();
        if returned >= LOAD {
            after_load = true;
        } else if after_load {
            after_load = false;
            world::compute(trim_heap).await;
        }
    }
}

/// Pieces from here on are mapped by themselves, so that what of them is not touched takes no memory: the library of FUSE
/// has one of 16 MiB for each thread of each mount, of which a request seldom uses more than a page.
#[cfg(target_env = "gnu")]
const MAPPED_MIN: i32 = 8 << 20;
/// What the end of the heap may have free. By default it follows the greatest piece that was freed; as soon as one of these
/// two is set, it does not.
#[cfg(target_env = "gnu")]
const FREE_AT_THE_END: i32 = 16 << 20;

/// See [`MAPPED_MIN`]. To be called before much is on the heap.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn set_heap_up() {
    // SAFETY: settings of the heap, which may be made at any time; one that is refused changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_MIN);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_AT_THE_END);
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn set_heap_up() {}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn trim_heap() {
    // SAFETY: it may be called at any time, from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Other heaps give back by themselves, or cannot.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn trim_heap() {}

/// What the heap says of itself.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn heap() -> Option<world::Heap> {
    // SAFETY: it may be called at any time, from any thread.
    let told = unsafe { libc::mallinfo2() };
    Some(world::Heap { in_use: (told.uordblks + told.hblkhd) as u64, free: told.fordblks as u64 })
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn heap() -> Option<world::Heap> {
    None
}
