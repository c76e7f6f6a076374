//! The bytes of a disk, held only where something was written. Copies share their pages until one is changed, so
//! that a whole machine's disks can be set aside and tried again.
//!
//! A fingerprint tells images apart without a look at their bytes. Each page remembers its own until it is changed, so
//! that of many copies only the changed pages are hashed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

const PAGE: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct Image(BTreeMap<u64, Arc<Page>>);

#[derive(Debug)]
struct Page {
    bytes: [u8; PAGE],
    print: OnceLock<u64>,
}

impl Clone for Page {
    /// A copy for the caller to change.
    fn clone(&self) -> Page {
        Page { bytes: self.bytes, print: OnceLock::new() }
    }
}

impl Image {
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        for_each_page(offset, out.len(), |page, within, range| match self.0.get(&page) {
            Some(page) => out[range.clone()].copy_from_slice(&page.bytes[within..within + range.len()]),
            None => out[range].fill(0),
        });
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for_each_page(offset, bytes.len(), |page, within, range| {
            let empty = || Arc::new(Page { bytes: [0; PAGE], print: OnceLock::new() });
            let to = Arc::make_mut(self.0.entry(page).or_insert_with(empty));
            to.print.take();
            to.bytes[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Forgets the range: it reads as zeros.
    pub fn discard(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let (first, last) = (offset.div_ceil(PAGE as u64), end / PAGE as u64);
        if first < last {
            let gone: Vec<u64> = self.0.range(first..last).map(|(&p, _)| p).collect();
            gone.iter().for_each(|p| {
                self.0.remove(p);
            });
        }
        let edges = match first <= last {
            true => [(offset, first * PAGE as u64), (last * PAGE as u64, end)],
            false => [(offset, end), (end, end)],
        };
        for (from, to) in edges {
            if self.0.contains_key(&(from / PAGE as u64)) && from < to {
                self.write(from, &vec![0; (to - from) as usize]);
            }
        }
    }

    /// Forgets everything from `size` on.
    pub fn truncate(&mut self, size: u64) {
        self.0.split_off(&size.div_ceil(PAGE as u64));
    }

    /// The same for images that read the same, whatever was written when; the same for ever.
    pub fn print(&self) -> u64 {
        let fold = |sum, (&number, page): (&u64, &Arc<Page>)| match page.print() {
            // As where nothing was written.
            0 => sum,
            print => mix(mix(sum, number), print),
        };
        self.0.iter().fold(1, fold)
    }
}

impl Page {
    /// 0 is that of a page of zeros.
    fn print(&self) -> u64 {
        *self.print.get_or_init(|| {
            let words = self.bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            if words.clone().all(|word| word == 0) { 0 } else { words.fold(1, mix).max(1) }
        })
    }
}

/// Takes one more word into a fingerprint.
pub fn mix(sum: u64, word: u64) -> u64 {
    let product = u128::from(sum ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * 0xd6e8_feb8_6659_fd93;
    (product as u64 ^ (product >> 64) as u64).rotate_left(23).wrapping_add(word)
}

fn for_each_page(offset: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let (page, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
        let n = (PAGE - within).min(len - done);
        each(page, within, done..done + n);
        done += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_discarded_is_gone_and_nothing_beside_it() {
        for (offset, len) in
            [(0, 4096), (100, 50), (4000, 200), (4096, 8192), (5000, 9000), (8191, 2), (300, 0)]
        {
            let mut image = Image::default();
            image.write(0, &[7; 20000]);
            image.discard(offset, len);
            let mut bytes = vec![0; 20000];
            image.read(0, &mut bytes);
            let gone = offset as usize..(offset + len) as usize;
            for (at, byte) in bytes.iter().enumerate() {
                assert_eq!(*byte, if gone.contains(&at) { 0 } else { 7 }, "{at} of {gone:?}");
            }
        }
    }

    #[test]
    fn a_fingerprint_is_that_of_the_bytes_and_not_of_how_they_came() {
        let (mut a, mut b) = (Image::default(), Image::default());
        a.write(100, &[7; 9000]);
        b.write(5000, &[7; 4100]);
        assert_ne!(a.print(), b.print());
        b.write(100, &[7; 4900]);
        assert_eq!(a.print(), b.print());
        let copy = a.clone();
        a.write(5000, &[8]);
        assert_ne!(a.print(), copy.print(), "a page that was changed is hashed again");
        a.write(5000, &[7]);
        a.write(1 << 20, &[0; 10]);
        assert_eq!(a.print(), copy.print(), "zeros are as good as nothing");
        let mut moved = Image::default();
        moved.write(100 + 4096, &[7; 9000]);
        assert_ne!(moved.print(), copy.print());
    }
}
