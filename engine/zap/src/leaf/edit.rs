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

/// An entry on its way into a leaf: which chunks it takes there is not known yet.
struct Loose {
    phys: LeafEntry,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// How many chunks an entry takes.
pub(crate) fn cost(name_len: usize, value_len: usize) -> usize {
    1 + chunks_for(name_len) + chunks_for(value_len)
}

impl Leaf<Buf> {
    pub fn bytes(&self) -> &Buf {
        &self.bytes
    }

    /// For changing: checked, unless it is known to be sound, and in a block of its own.
    pub fn into_mut(self, rules: &Rules, is_sound: bool) -> Result<Leaf<IoBuf>> {
        if !is_sound {
            self.check(rules)?;
        }
        let Leaf { bytes, header, shift, geometry } = self;
        Ok(Leaf { bytes: bytes.into_mut(), header, shift, geometry })
    }
}

impl Leaf<IoBuf> {
    /// An empty leaf for the hashes that start with `prefix`.
    pub fn format(shift: u32, rules: &Rules, prefix: u64, prefix_len: u32) -> Leaf<IoBuf> {
        let geometry = LeafGeometry::new(shift);
        let chunks = geometry.chunks() as u16;
        let header = LeafHeader {
            prefix,
            prefix_len: prefix_len as u16,
            free_chunks: chunks,
            entries: 0,
            first_free: 0,
            flags: if rules.norm.is_none() { 0 } else { LeafHeader::ENTRIES_SORTED },
        };
        let mut leaf = Leaf { bytes: IoBuf::zeroed(1 << shift), header, shift, geometry };
        (0..geometry.buckets()).for_each(|bucket| leaf.set_bucket(bucket, CHAIN_END));
        for chunk in 0..chunks {
            leaf.write_plain(
                chunk,
                Plain::Free,
                &[],
                if chunk + 1 == chunks { CHAIN_END } else { chunk + 1 },
            );
        }
        leaf
    }

    pub fn freeze(mut self) -> Buf {
        self.header.encode(&mut Writer::new(&mut self.bytes, Endian::Little));
        self.bytes.freeze()
    }

    /// Moves the entries whose hash has the next bit set to a new leaf, and makes both prefixes one bit longer.
    pub fn split(&mut self, rules: &Rules) -> Leaf<IoBuf> {
        let (len, prefix) = (self.prefix_len() + 1, self.prefix() << 1);
        let mut low = Leaf::format(self.shift, rules, prefix, len);
        let mut high = Leaf::format(self.shift, rules, prefix | 1, len);
        for entry in self.entries() {
            let loose = self.loosen(&entry.expect(SOUND), rules);
            let side = if prefix_of(loose.phys.hash, len) & 1 == 1 { &mut high } else { &mut low };
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

    fn loosen(&self, EntryChunk { phys, .. }: &EntryChunk, rules: &Rules) -> Loose {
        Loose {
            name: self.array_bytes(phys.name_chunk, name_size(phys, rules)).expect(SOUND),
            value: self.array_bytes(phys.value_chunk, phys.value_size()).expect(SOUND),
            phys: *phys,
        }
    }

    /// Adds an entry whose key is not here. The caller has chosen its `cd` and knows that an empty leaf could hold it.
    pub fn insert(&mut self, needle: &Needle<'_>, cd: u32, value: &Value) -> Fit {
        let stored = value.to_stored();
        if self.free_chunks() < cost(needle.stored.len(), stored.len()) {
            return Fit::Full;
        }
        let phys = LeafEntry {
            value_int_size: value.int_size() as u8,
            next: CHAIN_END,
            name_chunk: CHAIN_END,
            name_len: needle.stored_ints() as u16,
            value_chunk: CHAIN_END,
            value_count: value.len() as u16,
            differentiator: cd,
            hash: needle.hash,
        };
        self.put(&Loose { phys, name: needle.stored.to_vec(), value: stored.into_owned() });
        Fit::Done
    }

    /// Replaces the value of an entry.
    pub fn update(&mut self, entry: &EntryChunk, value: &Value) -> Fit {
        let stored = value.to_stored();
        let freed = self.chain_len(entry.phys.value_chunk);
        if self.free_chunks() + freed < chunks_for(stored.len()) {
            return Fit::Full;
        }
        self.free_array(entry.phys.value_chunk);
        let phys = LeafEntry {
            value_int_size: value.int_size() as u8,
            value_chunk: self.write_array(&stored),
            value_count: value.len() as u16,
            ..entry.phys
        };
        self.write_entry(entry.chunk, phys);
        Fit::Done
    }

    pub fn remove(&mut self, entry: &EntryChunk) {
        self.unlink(entry);
        self.free_array(entry.phys.value_chunk);
        self.free_array(entry.phys.name_chunk);
        self.free_chunk(entry.chunk);
        self.header.entries -= 1;
    }

    fn put(&mut self, loose: &Loose) {
        let chunk = self.take_free();
        let name_chunk = self.write_array(&loose.name);
        let value_chunk = self.write_array(&loose.value);
        self.link(chunk, LeafEntry { name_chunk, value_chunk, ..loose.phys });
        self.header.entries += 1;
    }

    /// Puts the entry in the chain of its bucket, behind those with a lower cd.
    fn link(&mut self, chunk: u16, phys: LeafEntry) {
        let bucket = self.bucket_of(phys.hash);
        let is_before = |e: &EntryChunk| e.phys.differentiator <= phys.differentiator;
        let before = self.chain(bucket).map(|e| e.expect(SOUND)).take_while(is_before).last();
        match before {
            Some(before) => {
                self.write_entry(chunk, LeafEntry { next: before.phys.next, ..phys });
                self.write_entry(before.chunk, LeafEntry { next: chunk, ..before.phys });
            }
            None => {
                self.write_entry(chunk, LeafEntry { next: self.bucket(bucket), ..phys });
                self.set_bucket(bucket, chunk);
            }
        }
    }

    fn unlink(&mut self, entry: &EntryChunk) {
        let bucket = self.bucket_of(entry.phys.hash);
        let before = self.chain(bucket).map(|e| e.expect(SOUND)).find(|e| e.phys.next == entry.chunk);
        match before {
            Some(before) => {
                self.write_entry(before.chunk, LeafEntry { next: entry.phys.next, ..before.phys })
            }
            None => self.set_bucket(bucket, entry.phys.next),
        }
    }

    /// Writes bytes into a chain of new chunks and returns the first one.
    fn write_array(&mut self, bytes: &[u8]) -> u16 {
        let mut next = CHAIN_END;
        // From the end to the start: each chunk must know the one behind it.
        for piece in bytes.chunks(ARRAY).rev() {
            let chunk = self.take_free();
            self.write_plain(chunk, Plain::Array, piece, next);
            next = chunk;
        }
        next
    }

    fn chain_len(&self, first: u16) -> usize {
        let mut next = first;
        let mut len = 0;
        while next != CHAIN_END {
            next = self.plain(next, Plain::Array).expect(SOUND).1;
            len += 1;
        }
        len
    }

    fn free_array(&mut self, first: u16) {
        let mut next = first;
        while next != CHAIN_END {
            let chunk = next;
            next = self.plain(chunk, Plain::Array).expect(SOUND).1;
            self.free_chunk(chunk);
        }
    }

    fn take_free(&mut self) -> u16 {
        let chunk = self.header.first_free;
        assert_ne!(chunk, CHAIN_END, "the caller made sure of the room");
        self.header.first_free = self.plain(chunk, Plain::Free).expect(SOUND).1;
        self.header.free_chunks -= 1;
        chunk
    }

    fn free_chunk(&mut self, chunk: u16) {
        self.write_plain(chunk, Plain::Free, &[], self.header.first_free);
        self.header.first_free = chunk;
        self.header.free_chunks += 1;
    }

    fn write_plain(&mut self, chunk: u16, kind: Plain, content: &[u8], next: u16) {
        let at = self.geometry.chunk_offset(chunk);
        let bytes = &mut self.bytes[at..at + CHUNK];
        // What is not used is zero, which helps compression and discloses no old content.
        bytes.fill(0);
        bytes[0] = kind as u8;
        bytes[1..1 + content.len()].copy_from_slice(content);
        le::put_u16(bytes, 1 + ARRAY, next);
    }

    fn write_entry(&mut self, chunk: u16, phys: LeafEntry) {
        let at = self.geometry.chunk_offset(chunk);
        let mut writer = Writer::new(&mut self.bytes[at..at + CHUNK], Endian::Little);
        LeafChunk::Entry(phys).encode(&mut writer);
    }

    fn set_bucket(&mut self, bucket: usize, chunk: u16) {
        le::put_u16(&mut self.bytes, self.geometry.bucket_offset(bucket), chunk);
    }
}
