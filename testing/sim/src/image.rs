//! The bytes of a disk, held only where something was written. Copies share their pages until one is changed, so
//! that a whole machine's disks can be set aside and tried again.

use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct Image(BTreeMap<u64, Arc<[u8; PAGE]>>);

impl Image {
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        for_each_page(offset, out.len(), |page, within, range| match self.0.get(&page) {
            Some(bytes) => out[range.clone()].copy_from_slice(&bytes[within..within + range.len()]),
            None => out[range].fill(0),
        });
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for_each_page(offset, bytes.len(), |page, within, range| {
            let to = Arc::make_mut(self.0.entry(page).or_insert_with(|| Arc::new([0; PAGE])));
            to[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Forgets whole pages inside the range.
    pub fn discard(&mut self, offset: u64, len: u64) {
        let (first, end) = (offset.div_ceil(PAGE as u64), (offset + len) / PAGE as u64);
        if first < end {
            let gone: Vec<u64> = self.0.range(first..end).map(|(&p, _)| p).collect();
            gone.iter().for_each(|p| {
                self.0.remove(p);
            });
        }
    }

    /// Forgets everything from `size` on.
    pub fn truncate(&mut self, size: u64) {
        self.0.split_off(&size.div_ceil(PAGE as u64));
    }
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
