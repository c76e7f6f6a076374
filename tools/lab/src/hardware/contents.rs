//! The bytes of a modelled disk, small where they are dull.
//!
//! ```text
//!   pages   0 .. 255      256        257 .. 260           4096 .. 5119
//!           word 5a5a..   bytes      word 5a5a..   hole   word 0017      one entry each, however long a run of a word is
//! ```
//!
//! A page whose 64-bit words are all the same is that word, and neighbours of the same word are one run. The experiments
//! write such pages, so that hundreds of gigabytes fit into memory, and a request costs as much as it has runs rather than
//! pages. Metadata, which are not dull, are kept as they are, a page each. What was never written reads as zeros.
//!
//! That a long buffer is one word is found out once: both sides of a mirror are given the same buffer, and a client may
//! write one many times.
//!
//! Invariant: runs do not overlap; none is of zeros, and two of one word do not touch.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use world::Buf;

const PAGE: usize = 4096;
/// A shorter buffer is looked through as soon as it is found.
const REMEMBERED_MIN: usize = 32 << 10;
/// So many buffers are remembered, and so many bytes of them.
const REMEMBERED: usize = 64;
const REMEMBERED_BYTES: usize = 64 << 20;

#[derive(Clone, Debug)]
enum Run {
    Word { word: u64, pages: u64 },
    Bytes(Box<[u8; PAGE]>),
}

impl Run {
    fn pages(&self) -> u64 {
        match self {
            Run::Word { pages, .. } => *pages,
            Run::Bytes(_) => 1,
        }
    }
}

/// By the number of their first page.
#[derive(Debug, Default)]
pub struct Contents(BTreeMap<u64, Run>);

impl Contents {
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        let first = self.at(offset / PAGE as u64).unwrap_or(offset / PAGE as u64);
        let (end, mut done) = (offset + out.len() as u64, 0);
        for (page, run) in self.0.range(first..end.div_ceil(PAGE as u64)) {
            let (from, to) =
                ((page * PAGE as u64).max(offset), ((page + run.pages()) * PAGE as u64).min(end));
            let (part, within) =
                ((from - offset) as usize..(to - offset) as usize, (from % PAGE as u64) as usize);
            out[done..part.start].fill(0);
            done = part.end;
            match run {
                Run::Bytes(bytes) => out[part.clone()].copy_from_slice(&bytes[within..within + part.len()]),
                Run::Word { word, .. } => fill(&mut out[part], within, *word),
            }
        }
        out[done..].fill(0);
    }

    /// Writes `parts`, one behind the other.
    pub fn write_parts(&mut self, offset: u64, parts: &[Buf]) {
        let mut at = offset;
        for part in parts {
            let is_long = part.len() >= REMEMBERED_MIN;
            let whole = (at.is_multiple_of(PAGE as u64) && is_long).then(|| part.as_chunks::<PAGE>());
            match whole {
                Some((pages, [])) => {
                    let (first, count) = (at / PAGE as u64, pages.len() as u64);
                    match OneWord::word_of(part) {
                        Some(word) => {
                            self.clear(first, first + count);
                            self.put_word(first, word, count);
                        }
                        None => self.put(first, pages).into_iter().for_each(|word| OneWord::keep(part, word)),
                    }
                }
                _ => self.write(at, part),
            }
            at += part.len() as u64;
        }
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let within = (offset % PAGE as u64) as usize;
        let head = ((PAGE - within) % PAGE).min(bytes.len());
        let (head, rest) = bytes.split_at(head);
        let (pages, tail) = rest.as_chunks::<PAGE>();
        let page = (offset + head.len() as u64) / PAGE as u64;
        self.patch(offset / PAGE as u64, within, head);
        self.put(page, pages);
        self.patch(page + pages.len() as u64, 0, tail);
    }

    /// A part of one page.
    fn patch(&mut self, page: u64, within: usize, part: &[u8]) {
        if part.is_empty() {
            return;
        }
        let mut whole = [0; PAGE];
        self.read(page * PAGE as u64, &mut whole);
        whole[within..within + part.len()].copy_from_slice(part);
        self.put(page, &[whole]);
    }

    /// The word, if all pages are of one.
    fn put(&mut self, first: u64, pages: &[[u8; PAGE]]) -> Option<u64> {
        self.clear(first, first + pages.len() as u64);
        let mut done = 0;
        while done < pages.len() {
            let page = first + done as u64;
            match dull(&pages[done..]) {
                None => {
                    self.0.insert(page, Run::Bytes(Box::new(pages[done])));
                    done += 1;
                }
                Some((word, count)) => {
                    self.put_word(page, word, count as u64);
                    if count == pages.len() {
                        return Some(word);
                    }
                    done += count;
                }
            }
        }
        None
    }

    /// Where there is nothing. Joined to what is before and behind; zeros are nothing.
    fn put_word(&mut self, page: u64, word: u64, pages: u64) {
        if word == 0 {
            return;
        }
        let (mut from, mut end) = (page, page + pages);
        let before = self.0.range(..page).next_back();
        if let Some((&start, Run::Word { word: same, pages })) = before
            && *same == word
            && start + pages == page
        {
            from = start;
        }
        if let Some(Run::Word { word: same, pages }) = self.0.get(&end)
            && *same == word
        {
            let behind = end + pages;
            self.0.remove(&end);
            end = behind;
        }
        self.0.insert(from, Run::Word { word, pages: end - from });
    }

    /// Forgets pages: what reaches into them from either side is cut.
    fn clear(&mut self, from: u64, end: u64) {
        if from == end {
            return;
        }
        self.cut(from);
        self.cut(end);
        while let Some((&page, _)) = self.0.range(from..end).next() {
            self.0.remove(&page);
        }
    }

    /// No run is on both sides of this page's beginning.
    fn cut(&mut self, at: u64) {
        let Some((&start, Run::Word { word, pages })) = self.0.range_mut(..at).next_back() else { return };
        let end = start + *pages;
        if end > at {
            *pages = at - start;
            let word = *word;
            self.0.insert(at, Run::Word { word, pages: end - at });
        }
    }

    /// Where the run begins that has this page.
    fn at(&self, page: u64) -> Option<u64> {
        let (start, run) = self.0.range(..=page).next_back()?;
        (start + run.pages() > page).then_some(*start)
    }

    /// How many bytes of memory the runs take, without what the map itself takes.
    pub fn kept(&self) -> usize {
        let size = |run: &Run| if matches!(run, Run::Bytes(_)) { PAGE } else { 8 };
        self.0.values().map(size).sum()
    }
}

/// Buffers that were found to be of one word, with it; the newest last. They are held, so that nothing else comes to lie
/// where they are.
#[derive(Default)]
struct OneWord {
    held: VecDeque<(Buf, u64)>,
    bytes: usize,
}

thread_local! {
    /// A lab is one thread.
    static ONE_WORD: RefCell<OneWord> = RefCell::default();
}

impl OneWord {
    /// Of a buffer that is remembered, or a part of one.
    fn word_of(part: &Buf) -> Option<u64> {
        let part = part.as_ptr_range();
        let holds = |held: &Buf| {
            let held = held.as_ptr_range();
            let begins = (part.start as usize).checked_sub(held.start as usize);
            begins.is_some_and(|within| within.is_multiple_of(8)) && part.end <= held.end
        };
        ONE_WORD.with_borrow(|all| all.held.iter().rev().find(|(held, _)| holds(held)).map(|(_, word)| *word))
    }

    fn keep(part: &Buf, word: u64) {
        ONE_WORD.with_borrow_mut(|all| {
            all.bytes += part.len();
            all.held.push_back((part.clone(), word));
            while all.held.len() > REMEMBERED || all.bytes > REMEMBERED_BYTES {
                let Some((oldest, _)) = all.held.pop_front() else { return };
                all.bytes -= oldest.len();
            }
        });
    }
}

/// The word that the first page is made of, and how many pages are. Most pages that are not dull differ soon.
fn dull(pages: &[[u8; PAGE]]) -> Option<(u64, usize)> {
    let bytes = pages.as_flattened();
    let word = bytes.first_chunk::<8>()?;
    // Each word is the one before it.
    let is_one_word = |bytes: &[u8]| bytes[8..16] == *word && bytes[8..] == bytes[..bytes.len() - 8];
    if !is_one_word(&pages[0]) {
        return None;
    }
    let count = pages.iter().skip(1).take_while(|page| page[..8] == *word && is_one_word(*page)).count();
    Some((u64::from_le_bytes(*word), 1 + count))
}

/// `part` begins `within` bytes into a page of `word`.
fn fill(part: &mut [u8], within: usize, word: u64) {
    let bytes = word.rotate_right(8 * (within % 8) as u32).to_le_bytes();
    if bytes == [bytes[0]; 8] {
        part.fill(bytes[0]);
        return;
    }
    let (words, rest) = part.as_chunks_mut::<8>();
    words.fill(bytes);
    rest.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers of one word and others, written whole, in parts, several times, and to two disks.
    #[test]
    fn what_is_remembered_of_a_buffer_is_true_of_each_part_of_it_and_of_no_other() {
        const SIZE: usize = 1 << 20;
        let mut disks = [Contents::default(), Contents::default()];
        let mut plain = vec![0u8; SIZE];
        let mut rng = sim::Rng::new(11);
        let mut kept: Vec<Buf> = Vec::new();
        for round in 0..3000 {
            let (len, word) = (((rng.below(40) + 1) * 4096) as usize, rng.below(3) * 0x0102_0304_0506_0708);
            let buf = match rng.below(4) {
                0 if !kept.is_empty() => {
                    let old = &kept[rng.below(kept.len() as u64) as usize];
                    let from = rng.below(old.len() as u64 / 512) as usize * 512;
                    old.slice(from..old.len())
                }
                1 => Buf::copy_from(&(0..len).map(|i| (i * round / 4096) as u8).collect::<Vec<_>>()),
                _ => Buf::copy_from(&word.to_le_bytes().repeat(len / 8)),
            };
            let at = rng.below((SIZE - buf.len()) as u64 / 512) * 512;
            let at = if rng.below(2) == 0 { at / 4096 * 4096 } else { at };
            disks.iter_mut().for_each(|disk| disk.write_parts(at, std::slice::from_ref(&buf)));
            plain[at as usize..at as usize + buf.len()].copy_from_slice(&buf);
            // Most are gone soon, and their memory is that of others.
            if rng.below(8) == 0 {
                kept.push(buf);
                kept.truncate(20);
            }
            for disk in &disks {
                let mut read = vec![1; SIZE];
                disk.read(0, &mut read);
                assert!(read == plain, "round {round}");
            }
        }
    }

    #[test]
    fn what_was_written_is_read_and_dull_pages_take_no_room() {
        let (mut contents, mut plain) = (Contents::default(), vec![0u8; 64 << 10]);
        let mut rng = sim::Rng::new(7);
        for round in 0..2000u64 {
            let len = rng.below(20_000) as usize + 1;
            let offset = rng.below((plain.len() - len) as u64);
            let dull = rng.below(2) == 0;
            let bytes: Vec<u8> =
                (0..len).map(|i| if dull { (round % 3) as u8 } else { (i as u64 * round) as u8 }).collect();
            contents.write(offset, &bytes);
            plain[offset as usize..offset as usize + len].copy_from_slice(&bytes);
            let mut read = vec![1; plain.len()];
            contents.read(0, &mut read);
            assert!(read == plain, "round {round}");
            let touching = contents.0.iter().filter(|(page, run)| {
                let behind = contents.0.get(&(*page + run.pages()));
                matches!((run, behind), (Run::Word { word: a, .. }, Some(Run::Word { word: b, .. })) if a == b)
            });
            assert_eq!(touching.count(), 0, "round {round}");
        }
        let mut some = vec![1; 5000];
        contents.read(3333, &mut some);
        assert!(some == plain[3333..8333]);
        contents.write(0, &vec![9; 64 << 10]);
        assert_eq!(contents.kept(), 8, "one run");
        contents.write(5 * 4096, &[1; 4096]);
        assert_eq!(contents.kept(), 3 * 8, "cut in the middle");
        contents.write(5 * 4096, &[9; 4096]);
        assert_eq!(contents.kept(), 8, "and one again");
        contents.write(0, &vec![0; 64 << 10]);
        assert_eq!(contents.kept(), 0);
        let words: Vec<u8> = [1u8, 2, 3, 4, 5, 6, 7, 8].into_iter().cycle().take(12288).collect();
        contents.write(4096, &words);
        let mut odd = vec![0; 4000];
        contents.read(4096 + 5, &mut odd);
        assert!(odd == words[5..4005], "a run is read from the middle of a word");
        assert_eq!(contents.kept(), 8);
    }
}
