//! Proving a leaf sound before it is changed.

use super::{CHAIN_END, Leaf, Plain, chunks_for, name_size, prefix_of};
use crate::hash::Rules;
use std::ops::Deref;
use units::{Error, Result};

/// Chunks met so far: each may be part of one chain only.
struct Seen(Vec<bool>);

impl Seen {
    fn mark(&mut self, chunk: u16) -> Result<()> {
        match self.0.get_mut(usize::from(chunk)) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(Error::corrupt(format!("ZAP leaf: chunk {chunk} is linked twice"))),
        }
        Ok(())
    }
}

impl<B: Deref<Target = [u8]>> Leaf<B> {
    /// Proves that every chain ends, that no chunk is in two of them, that each entry lies where its hash belongs,
    /// and that the counts are right. A few microseconds for 16 KiB.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        let mut seen = Seen(vec![false; self.geometry.chunks()]);
        self.check_free_list(&mut seen)?;
        let mut entries = 0;
        for bucket in 0..self.geometry.buckets() {
            entries += self.check_bucket(bucket, rules, &mut seen)?;
        }
        if entries != self.len() {
            return Err(Error::corrupt(format!("ZAP leaf: {entries} entries, {} by its count", self.len())));
        }
        Ok(())
    }

    fn check_free_list(&self, seen: &mut Seen) -> Result<()> {
        let mut next = self.header.first_free;
        let mut count = 0;
        while next != CHAIN_END {
            let (_, behind) = self.plain(next, Plain::Free)?;
            seen.mark(next)?;
            count += 1;
            next = behind;
        }
        if count != self.free_chunks() {
            return Err(Error::corrupt(format!(
                "ZAP leaf: {count} free chunks, {} by its count",
                self.free_chunks()
            )));
        }
        Ok(())
    }

    fn check_bucket(&self, bucket: usize, rules: &Rules, seen: &mut Seen) -> Result<usize> {
        let mut entries = 0;
        let mut next = self.bucket(bucket);
        while next != CHAIN_END {
            let entry = self.entry(next)?.phys;
            seen.mark(next)?;
            if prefix_of(entry.hash, self.prefix_len()) != self.prefix()
                || self.bucket_of(entry.hash) != bucket
            {
                return Err(Error::corrupt(format!(
                    "ZAP leaf: hash {:x} in bucket {bucket} of prefix {:x}/{}",
                    entry.hash,
                    self.prefix(),
                    self.prefix_len()
                )));
            }
            self.check_array(entry.name_chunk, name_size(&entry, rules), seen)?;
            self.check_array(entry.value_chunk, entry.value_size(), seen)?;
            entries += 1;
            next = entry.next;
        }
        Ok(entries)
    }

    /// A chain may be longer than its content needs, but not shorter.
    fn check_array(&self, first: u16, len: usize, seen: &mut Seen) -> Result<()> {
        let mut next = first;
        let mut count = 0;
        while next != CHAIN_END {
            let (_, behind) = self.plain(next, Plain::Array)?;
            seen.mark(next)?;
            count += 1;
            next = behind;
        }
        if count < chunks_for(len) {
            return Err(Error::corrupt(format!("ZAP leaf: {count} chunks for {len} bytes")));
        }
        Ok(())
    }
}
