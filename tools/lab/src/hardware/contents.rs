//! The bytes of a modelled disk, small where they are dull.
//!
//! A page whose 64-bit words are all the same is kept as that word. The experiments write such pages, so that hundreds of
//! gigabytes fit into memory; metadata, which are not, are kept as they are. What was never written reads as zeros.

use std::collections::BTreeMap;

const PAGE: usize = 4096;

#[derive(Debug)]
enum Page {
    Word(u64),
    Bytes(Box<[u8; PAGE]>),
}

#[derive(Debug, Default)]
pub struct Contents(BTreeMap<u64, Page>);

impl Contents {
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        let mut pages = self.0.range(offset / PAGE as u64..).peekable();
        for (page, within, part) in pieces(offset, out) {
            while pages.peek().is_some_and(|(number, _)| **number < page) {
                pages.next();
            }
            match pages.peek().filter(|(number, _)| **number == page) {
                Some((_, Page::Bytes(bytes))) => part.copy_from_slice(&bytes[within..within + part.len()]),
                Some((_, Page::Word(word))) => fill(part, within, *word),
                None => part.fill(0),
            }
        }
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (page, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let len = (PAGE - within).min(bytes.len() - done);
            let part = &bytes[done..done + len];
            done += len;
            if len == PAGE {
                self.put(page, part);
                continue;
            }
            let mut whole = [0; PAGE];
            self.read(page * PAGE as u64, &mut whole);
            whole[within..within + len].copy_from_slice(part);
            self.put(page, &whole);
        }
    }

    fn put(&mut self, page: u64, bytes: &[u8]) {
        let words = bytes.as_chunks::<8>().0;
        // Each word is the one before it. Most pages that are not dull differ soon.
        let is_dull = words[1] == words[0] && bytes[8..] == bytes[..PAGE - 8];
        let kept = match is_dull {
            true => Page::Word(u64::from_le_bytes(words[0])),
            false => Page::Bytes(Box::new(bytes.try_into().expect("a page was given"))),
        };
        match kept {
            Page::Word(0) => drop(self.0.remove(&page)),
            kept => drop(self.0.insert(page, kept)),
        }
    }

    /// How many bytes of memory the pages take, without what the map itself takes.
    pub fn kept(&self) -> usize {
        let size = |page: &Page| if matches!(page, Page::Bytes(_)) { PAGE } else { 8 };
        self.0.values().map(size).sum()
    }
}

/// `part` begins `within` bytes into a page of `word`.
fn fill(part: &mut [u8], within: usize, word: u64) {
    let bytes = word.to_le_bytes();
    if within.is_multiple_of(8) {
        let (words, rest) = part.as_chunks_mut::<8>();
        words.fill(bytes);
        rest.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        return;
    }
    part.iter_mut().enumerate().for_each(|(i, to)| *to = bytes[(within + i) % 8]);
}

/// A range cut at the ends of pages: the page, where in it, and the bytes.
fn pieces(offset: u64, mut out: &mut [u8]) -> Vec<(u64, usize, &mut [u8])> {
    let (mut at, mut all) = (offset, Vec::with_capacity(out.len() / PAGE + 2));
    while !out.is_empty() {
        let within = (at % PAGE as u64) as usize;
        let (part, rest) = out.split_at_mut((PAGE - within).min(out.len()));
        let page = at / PAGE as u64;
        at += part.len() as u64;
        all.push((page, within, part));
        out = rest;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_dull_pages_take_no_room() {
        let (mut contents, mut plain) = (Contents::default(), vec![0u8; 64 << 10]);
        let mut rng = sim::Rng::new(7);
        for round in 0..400u64 {
            let len = rng.below(9000) as usize + 1;
            let offset = rng.below((plain.len() - len) as u64);
            let dull = rng.below(2) == 0;
            let bytes: Vec<u8> =
                (0..len).map(|i| if dull { round as u8 } else { (i as u64 * round) as u8 }).collect();
            contents.write(offset, &bytes);
            plain[offset as usize..offset as usize + len].copy_from_slice(&bytes);
        }
        let mut read = vec![1; plain.len()];
        contents.read(0, &mut read);
        assert!(read == plain);
        let mut some = vec![1; 5000];
        contents.read(3333, &mut some);
        assert!(some == plain[3333..8333]);
        contents.write(0, &vec![9; 64 << 10]);
        assert_eq!(contents.kept(), 16 * 8);
        contents.write(0, &vec![0; 64 << 10]);
        assert_eq!(contents.kept(), 0);
    }
}
