#![allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]
#![allow(clippy::disallowed_types, reason = "the kernel's table of this process's pages is a file")]

use super::*;

/// The shelves are the whole process's: tests that look at them go one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_class_holds_its_lengths_with_little_slack() {
    for len in (1..100_000).chain([(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 12 << 20, 16 << 20]) {
        let capacity = capacity_of(class_of(len));
        assert!(capacity >= len, "{len}");
        assert!(len < 4096 || capacity <= len * 3 / 2 || capacity - len < 4096, "{len} takes {capacity}");
        assert!(capacity < 4096 || capacity.is_multiple_of(4096), "{capacity}");
    }
    assert_eq!(class_of((16 << 20) + 1), UNKEPT);
    assert_eq!(class_of(16 << 20), CLASSES - 1);
}

/// Not run beside other tests' buffers: a length that only this test uses.
#[test]
fn memory_is_used_again_on_the_same_thread_and_on_another() {
    const LEN: usize = 700 * 1000;
    let _alone = alone();
    let first = Memory::take(LEN).start;
    let again = Memory::take(LEN);
    assert_eq!(again.start, first);
    let elsewhere = std::thread::spawn(move || {
        drop(again);
        // The thread ends, and its shelf goes to the others.
    });
    elsewhere.join().unwrap();
    assert_eq!(Memory::take(LEN).start, first);
}

#[test]
fn memory_freed_by_another_thread_comes_back_without_bound_on_threads() {
    const LEN: usize = 90 * 1000;
    let _alone = alone();
    let mut places = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let batch: Vec<Memory> = (0..8).map(|_| Memory::take(LEN)).collect();
        places.extend(batch.iter().map(|m| m.start.as_ptr() as usize));
        std::thread::spawn(move || drop(batch)).join().unwrap();
    }
    assert!(places.len() <= 32, "800 takes were served by {} pieces", places.len());
}

#[test]
fn other_classes_give_way_when_the_bound_is_reached() {
    const LEN: usize = 8 << 20;
    const BOUND: usize = 64 << 20;
    let _alone = alone();
    set_kept_max(BOUND);
    // Twice the bound of memory comes back at once: more than the bound is never kept.
    let batch: Vec<Memory> = (0..2 * BOUND / LEN).map(|_| Memory::take(LEN)).collect();
    std::thread::spawn(move || drop(batch)).join().unwrap();
    assert!(kept() <= BOUND, "{} bytes are kept", kept());
    assert!(shared_shelf(class_of(LEN)).len() >= 4, "and not much less");
    let other: Vec<Memory> = (0..8).map(|_| Memory::take(5 << 20)).collect();
    std::thread::spawn(move || drop(other)).join().unwrap();
    // Other tests may shelve a little of their own meanwhile.
    assert!(shared_shelf(class_of(5 << 20)).len() >= 6, "the class in use keeps its memory");
    assert!(kept() <= BOUND);
    set_kept_max(0);
    assert!(kept() < 4 << 20);
    set_kept_max(KEPT_MAX);
}

/// Memory that the cache had given up was returned to the system beyond a small bound, and faulted in by the next load.
#[test]
fn what_is_kept_has_no_bound_while_all_buffers_are_no_more_than_expected() {
    const LEN: usize = 2 << 20;
    let _alone = alone();
    let load = |count| {
        let batch: Vec<Memory> = (0..count).map(|_| Memory::take(LEN)).collect();
        std::thread::spawn(move || drop(batch)).join().unwrap();
    };
    set_kept_max(4 << 20);
    let others = held() - kept();
    set_held_max(others + (128 << 20));
    load(32);
    assert!(shared_shelf(class_of(LEN)).len() >= 30, "64 MiB stay");
    // In use beside them, another class of buffers reaches the bound: then what is kept gives way.
    let beside: Vec<Memory> = (0..24).map(|_| Memory::take(5 << 20)).collect();
    assert!(kept() <= 32 << 20, "{} bytes are kept beside 144 MiB in use", kept());
    drop(beside);
    set_held_max(0);
    assert!(kept() <= 8 << 20, "{} bytes are kept", kept());
    set_kept_max(KEPT_MAX);
}

/// How many bytes of these stretches are resident, by the kernel's table of this process's pages: what
/// other tests hold meanwhile does not count.
///
/// An entry has 8 bytes and its top bit says that the page is present (Documentation/admin-guide/mm/pagemap.rst).
fn resident(starts: &[usize], len: usize) -> usize {
    use std::os::unix::fs::FileExt as _;
    let table = std::fs::File::open("/proc/self/pagemap").unwrap();
    let mut entries = vec![0; len / PAGE * 8];
    let mut present = 0;
    for start in starts {
        table.read_exact_at(&mut entries, (start / PAGE * 8) as u64).unwrap();
        present += entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count();
    }
    present * PAGE
}

#[test]
fn what_was_given_back_is_not_resident_and_comes_again_as_zeros() {
    const LEN: usize = 3 << 20;
    const COUNT: usize = 64;
    let _alone = alone();
    set_kept_max(0);
    let mut batch: Vec<Memory> = (0..COUNT).map(|_| Memory::take(LEN)).collect();
    let starts: Vec<usize> = batch.iter().map(|memory| memory.start.as_ptr() as usize).collect();
    batch.iter_mut().for_each(|memory| memory.bytes_mut(LEN).fill(7));
    assert_eq!(resident(&starts, LEN), COUNT * LEN, "pages that were touched are resident");
    std::thread::spawn(move || drop(batch)).join().unwrap();
    // Another test may have taken one of the pieces meanwhile.
    let left = resident(&starts, LEN);
    assert!(left <= COUNT * LEN / 8, "{left} of {} bytes are still there", COUNT * LEN);
    let mut taken = Memory::take(LEN);
    assert!(taken.bytes(LEN).iter().all(|byte| *byte == 0));
    taken.bytes_mut(LEN).fill(7);
    set_kept_max(KEPT_MAX);
}

#[test]
fn what_no_load_needs_any_more_goes_and_what_is_in_use_stays() {
    const LEN: usize = 6 << 20;
    let _alone = alone();
    let class = class_of(LEN);
    set_kept_max(1 << 30);
    let batch: Vec<Memory> = (0..16).map(|_| Memory::take(LEN)).collect();
    std::thread::spawn(move || drop(batch)).join().unwrap();
    let full = shared_shelf(class).len();
    assert!(full >= 8);
    age();
    // A load that needs four at a time.
    for _ in 0..3 {
        let batch: Vec<Memory> = (0..4).map(|_| shared_take(class).unwrap()).collect();
        shared_put(class, batch);
    }
    age();
    assert_eq!(shared_shelf(class).len(), 4);
    age();
    age();
    assert_eq!(shared_shelf(class).len(), 0, "nobody needs any");
    set_kept_max(KEPT_MAX);
}

#[test]
fn what_a_thread_puts_away_goes_when_nobody_needs_it() {
    const LEN: usize = 96 << 10;
    let _alone = alone();
    let class = class_of(LEN);
    let own = || SHELVES.with(|shelves| shelves.borrow().0[class].len());
    set_kept_max(1 << 30);
    let batch: Vec<Memory> = (0..4).map(|_| Memory::take(LEN)).collect();
    drop(batch);
    age();
    age();
    assert!(own() >= 4, "the thread keeps them");
    put_away();
    assert_eq!(own(), 0);
    age();
    age();
    assert_eq!(shared_shelf(class).len(), 0, "nobody needs any");
    set_kept_max(KEPT_MAX);
}

#[test]
fn what_one_class_kept_serves_another_without_new_pages() {
    const LEN: usize = 40 << 10;
    const OTHER: usize = 200 << 10;
    let _alone = alone();
    set_kept_max(1 << 30);
    let mut batch: Vec<Memory> = (0..512).map(|_| Memory::take(LEN)).collect();
    let chunks: std::collections::BTreeSet<usize> = batch.iter().map(|m| pages::chunk_of(m.start)).collect();
    batch.iter_mut().for_each(|memory| memory.bytes_mut(LEN).fill(7));
    std::thread::spawn(move || drop(batch)).join().unwrap();
    let before = held();
    let mut taken: Vec<Memory> = Vec::new();
    // Until a search is made again, some are new.
    for _ in 0..400 {
        taken.push(Memory::take(OTHER));
    }
    let again: Vec<usize> = taken
        .iter()
        .filter(|m| chunks.contains(&pages::chunk_of(m.start)))
        .map(|m| m.start.as_ptr().addr())
        .collect();
    assert!(again.len() > 8 * 4, "{} of 400 lie in {} chunks of the class before", again.len(), chunks.len());
    let there = resident(&again, OTHER);
    assert!(there >= again.len() * OTHER / 2, "{there} bytes of {} are there", again.len() * OTHER);
    assert!(held() - before < 400 * (256 << 10), "what is cut anew is not counted twice");
    set_kept_max(KEPT_MAX);
}

/// Threads take, fill, check and drop buffers of many lengths, while the bound comes and goes: no two have a byte in
/// common, whatever is cut anew, and what is given back comes as zeros or as it was left, never torn.
#[test]
fn buffers_of_all_classes_never_share_a_byte() {
    let _alone = alone();
    let before = held() - kept();
    let seeds = 1..=4u64;
    let threads: Vec<_> = seeds.map(|seed| std::thread::spawn(move || churn(seed))).collect();
    for bound in [1 << 30, 8 << 20, 0, 1 << 30, 64 << 20].into_iter().cycle().take(60) {
        set_kept_max(bound);
        std::thread::sleep(std::time::Duration::from_millis(5));
        age();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    set_kept_max(0);
    let left = (held() - kept()).saturating_sub(before);
    assert!(left < 16 << 20, "{left} bytes are counted as in use");
    set_kept_max(KEPT_MAX);
}

fn churn(seed: u64) {
    const LENGTHS: [usize; 9] =
        [4096, 8192, 16 << 10, 24 << 10, 64 << 10, 128 << 10, 384 << 10, 1 << 20, 3 << 20];
    let mut state = seed;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let check = |(memory, len, mark): (Memory, usize, u8)| {
        assert!(memory.bytes(len).iter().all(|byte| *byte == mark), "of {len} bytes, seed {seed}");
    };
    let mut mine: Vec<(Memory, usize, u8)> = Vec::new();
    for step in 0..120usize {
        // One length at a time, so that whole chunks of another fall free.
        let len = LENGTHS[random(LENGTHS.len())];
        let most = (24 << 20) / len;
        for _ in 0..random(most.min(1500)) + 1 {
            let mut memory = Memory::take(len);
            let mark = (step % 250) as u8 ^ (seed as u8) << 6 | 1;
            memory.bytes_mut(len).fill(mark);
            mine.push((memory, len, mark));
        }
        match random(4) {
            0 => mine.drain(..).for_each(check),
            1 => (0..mine.len() / 2).for_each(|_| check(mine.swap_remove(random(mine.len())))),
            _ => {
                let keep = mine.len() / 3;
                mine.drain(keep..).for_each(check);
            }
        }
    }
    mine.drain(..).for_each(check);
}
