//! Changing a leaf that [`Leaf::check`] found sound.

use super::*;
use world::IoBuf;

const SOUND: &str = "the leaf was checked before the change";

/// Whether a change found room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Done,
    /// Nothing was changed: the leaf must be split first.
    Full,
}

/// An entry on its way from one leaf to another.
struct Loose {
    entry: EntryChunk,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// How many chunks an entry takes.
pub(crate) fn cost(name_len: usize, value_len: usize) -> usize {
    1 + chunks_for(name_len) + chunks_for(value_len)
}

impl Leaf<Buf> {
    /// For changing: checked, and in a block of its own.
    pub fn into_mut(self, rules: &Rules) -> Result<Leaf<IoBuf>> {
        self.check(rules)?;
        Ok(Leaf { bytes: self.bytes.into_mut(), shift: self.shift })
    }
}

impl Leaf<IoBuf> {
    /// An empty leaf for the hashes that start with `prefix`.
    pub fn format(shift: u32, rules: &Rules, prefix: u64, prefix_len: u32) -> Leaf<IoBuf> {
        let mut leaf = Leaf { bytes: IoBuf::zeroed(1 << shift), shift };
        let chunks = leaf.chunk_count();
        let bytes = &mut leaf.bytes;
        le::put_u64(bytes, 0, LEAF);
        le::put_u64(bytes, 16, prefix);
        le::put_u32(bytes, 24, MAGIC);
        le::put_u16(bytes, 32, prefix_len as u16);
        bytes[36] = if rules.norm.is_none() { 0 } else { FLAG_CD_SORTED };
        bytes[HEADER..HEADER + 2 * bucket_count(shift)].fill(0xff);
        leaf.set_free(chunks, 0);
        for chunk in 0..chunks as u16 {
            let next = if usize::from(chunk) + 1 == chunks { CHAIN_END } else { chunk + 1 };
            leaf.write_chunk(chunk, FREE, &[], next);
        }
        leaf
    }

    pub fn freeze(self) -> Buf {
        self.bytes.freeze()
    }

    /// Moves the entries whose hash has the next bit set to a new leaf, and makes both prefixes one bit longer.
    pub fn split(&mut self, rules: &Rules) -> Leaf<IoBuf> {
        let (len, prefix) = (self.prefix_len() + 1, self.prefix() << 1);
        let mut low = Leaf::format(self.shift, rules, prefix, len);
        let mut high = Leaf::format(self.shift, rules, prefix | 1, len);
        for entry in self.entries() {
            let loose = self.loosen(&entry.expect(SOUND), rules);
            let side = if prefix_of(loose.entry.hash, len) & 1 == 1 { &mut high } else { &mut low };
            side.put(&loose);
        }
        *self = low;
        high
    }

    /// Makes this leaf, which is empty, stand for its sibling's hashes too.
    pub fn widen(&mut self, rules: &Rules) {
        assert!(self.len() == 0 && self.prefix_len() > 0, "only an empty leaf takes over for its sibling");
        *self = Leaf::format(self.shift, rules, self.prefix() >> 1, self.prefix_len() - 1);
    }

    fn loosen(&self, entry: &EntryChunk, rules: &Rules) -> Loose {
        let name_len = usize::from(entry.name_ints) * rules.key_int_size();
        Loose {
            name: self.array_bytes(entry.name, name_len).expect(SOUND),
            value: self.array_bytes(entry.value, self.value_len(entry)).expect(SOUND),
            entry: *entry,
        }
    }

    /// Adds an entry whose key is not here. The caller has chosen its `cd` and knows that an empty leaf could hold it.
    pub fn insert(&mut self, needle: &Needle<'_>, cd: u32, value: &Value) -> Fit {
        let stored = value.to_stored();
        if self.free_chunks() < cost(needle.stored.len(), stored.len()) {
            return Fit::Full;
        }
        let entry = EntryChunk {
            chunk: CHAIN_END,
            next: CHAIN_END,
            int_size: value.int_size() as u8,
            name: CHAIN_END,
            name_ints: needle.stored_ints() as u16,
            value: CHAIN_END,
            value_ints: value.len() as u16,
            cd,
            hash: needle.hash,
        };
        self.put(&Loose { entry, name: needle.stored.to_vec(), value: stored.into_owned() });
        Fit::Done
    }

    /// Replaces the value of an entry.
    pub fn update(&mut self, entry: &EntryChunk, value: &Value) -> Fit {
        let stored = value.to_stored();
        let freed = self.chain_len(entry.value);
        if self.free_chunks() + freed < chunks_for(stored.len()) {
            return Fit::Full;
        }
        self.free_array(entry.value);
        let changed = EntryChunk {
            int_size: value.int_size() as u8,
            value: self.write_array(&stored),
            value_ints: value.len() as u16,
            ..*entry
        };
        self.write_entry(&changed);
        Fit::Done
    }

    pub fn remove(&mut self, entry: &EntryChunk) {
        self.unlink(entry);
        self.free_array(entry.value);
        self.free_array(entry.name);
        self.free_chunk(entry.chunk);
        self.set_len(self.len() - 1);
    }

    fn put(&mut self, loose: &Loose) {
        let chunk = self.take_free();
        let name = self.write_array(&loose.name);
        let value = self.write_array(&loose.value);
        self.link(EntryChunk { chunk, name, value, ..loose.entry });
        self.set_len(self.len() + 1);
    }

    /// Puts the entry in the chain of its bucket, behind those with a lower cd.
    fn link(&mut self, entry: EntryChunk) {
        let bucket = self.bucket_of(entry.hash);
        let before = self.chain(bucket).map(|e| e.expect(SOUND)).take_while(|e| e.cd <= entry.cd).last();
        match before {
            Some(before) => {
                self.write_entry(&EntryChunk { next: before.next, ..entry });
                self.write_entry(&EntryChunk { next: entry.chunk, ..before });
            }
            None => {
                self.write_entry(&EntryChunk { next: self.bucket(bucket), ..entry });
                self.set_bucket(bucket, entry.chunk);
            }
        }
    }

    fn unlink(&mut self, entry: &EntryChunk) {
        let bucket = self.bucket_of(entry.hash);
        let before = self.chain(bucket).map(|e| e.expect(SOUND)).find(|e| e.next == entry.chunk);
        match before {
            Some(before) => self.write_entry(&EntryChunk { next: entry.next, ..before }),
            None => self.set_bucket(bucket, entry.next),
        }
    }

    /// Writes bytes into a chain of new chunks and returns the first one.
    fn write_array(&mut self, bytes: &[u8]) -> u16 {
        let mut next = CHAIN_END;
        // From the end to the start: each chunk must know the one behind it.
        for piece in bytes.chunks(ARRAY).rev() {
            let chunk = self.take_free();
            self.write_chunk(chunk, ARRAY_KIND, piece, next);
            next = chunk;
        }
        next
    }

    fn chain_len(&self, first: u16) -> usize {
        let mut len = 0;
        let mut next = first;
        while next != CHAIN_END {
            next = self.next_of(next);
            len += 1;
        }
        len
    }

    fn free_array(&mut self, first: u16) {
        let mut next = first;
        while next != CHAIN_END {
            let chunk = next;
            next = self.next_of(chunk);
            self.free_chunk(chunk);
        }
    }

    /// The chunk behind a free one or one of an array.
    fn next_of(&self, chunk: u16) -> u16 {
        le::u16_at(&self.bytes, self.chunk_at(chunk) + CHUNK - 2)
    }

    fn take_free(&mut self) -> u16 {
        let chunk = self.free_list();
        assert_ne!(chunk, CHAIN_END, "the caller made sure of the room");
        self.set_free(self.free_chunks() - 1, self.next_of(chunk));
        chunk
    }

    fn free_chunk(&mut self, chunk: u16) {
        self.write_chunk(chunk, FREE, &[], self.free_list());
        self.set_free(self.free_chunks() + 1, chunk);
    }

    fn write_chunk(&mut self, chunk: u16, kind: u8, content: &[u8], next: u16) {
        let at = self.chunk_at(chunk);
        let bytes = &mut self.bytes[at..at + CHUNK];
        // What is not used is zero, which helps compression and shows nobody old content.
        bytes.fill(0);
        bytes[0] = kind;
        bytes[1..1 + content.len()].copy_from_slice(content);
        le::put_u16(bytes, CHUNK - 2, next);
    }

    fn write_entry(&mut self, entry: &EntryChunk) {
        let at = self.chunk_at(entry.chunk);
        let bytes = &mut self.bytes[at..at + CHUNK];
        bytes[0] = ENTRY;
        bytes[1] = entry.int_size;
        le::put_u16(bytes, 2, entry.next);
        le::put_u16(bytes, 4, entry.name);
        le::put_u16(bytes, 6, entry.name_ints);
        le::put_u16(bytes, 8, entry.value);
        le::put_u16(bytes, 10, entry.value_ints);
        le::put_u32(bytes, 12, entry.cd);
        le::put_u64(bytes, 16, entry.hash);
    }

    fn set_bucket(&mut self, bucket: usize, chunk: u16) {
        le::put_u16(&mut self.bytes, HEADER + 2 * bucket, chunk);
    }

    fn set_len(&mut self, entries: usize) {
        le::put_u16(&mut self.bytes, 30, entries as u16);
    }

    fn set_free(&mut self, count: usize, first: u16) {
        le::put_u16(&mut self.bytes, 28, count as u16);
        le::put_u16(&mut self.bytes, 34, first);
    }
}
