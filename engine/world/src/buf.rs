//! Buffers: written once, read in place.
//!
//! ```text
//!   IoBuf ── unique, mutable, aligned ── freeze ──▶ Buf ── shared, immutable, sliceable
//!     ▲                                              │
//!     └───────── into_mut, by the only holder ───────┘    make_mut, resize: the same in place
//! ```
//!
//! Every allocation is aligned to [`ALIGN`] (smaller ones to 512), so that any buffer may go to a device opened with
//! O_DIRECT, and comes from memory that was used before whenever there is some ([`memory`]). The bytes of a new buffer
//! are always initialised; they are zero only where the constructor says so.

mod memory;

use memory::Memory;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

pub use memory::{age, held, kept, put_away, set_held_max, set_kept_max};

/// The strictest alignment of any device we serve.
pub const ALIGN: usize = 4096;

/// A buffer that one owner fills.
pub struct IoBuf {
    memory: Memory,
    len: usize,
}

impl IoBuf {
    pub fn zeroed(len: usize) -> IoBuf {
        let mut buf = IoBuf::scratch(len);
        buf.fill(0);
        buf
    }

    /// A buffer to be overwritten whole: its content is unspecified, and usually some former buffer's.
    pub fn scratch(len: usize) -> IoBuf {
        IoBuf { memory: Memory::take(len), len }
    }

    /// As [`IoBuf::scratch`], for what a device is about to fill: memory that was not used before is faulted in at once.
    pub fn to_fill(len: usize) -> IoBuf {
        IoBuf { memory: Memory::take_whole(len), len }
    }

    pub fn copy_from(bytes: &[u8]) -> IoBuf {
        let mut buf = IoBuf::scratch(bytes.len());
        buf.copy_from_slice(bytes);
        buf
    }

    /// Shortens the buffer; the memory stays.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The memory it occupies: its length and the slack behind it.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    pub fn freeze(self) -> Buf {
        Buf { range: 0..self.len, memory: Arc::new(self.memory) }
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.bytes(self.len)
    }
}

impl DerefMut for IoBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut(self.len)
    }
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuf({} bytes)", self.len)
    }
}

/// Bytes shared by all holders of a clone; never changed.
#[derive(Clone)]
pub struct Buf {
    memory: Arc<Memory>,
    range: Range<usize>,
}

impl Buf {
    pub fn empty() -> Buf {
        IoBuf::zeroed(0).freeze()
    }

    pub fn zeroed(len: usize) -> Buf {
        IoBuf::zeroed(len).freeze()
    }

    pub fn copy_from(bytes: &[u8]) -> Buf {
        IoBuf::copy_from(bytes).freeze()
    }

    /// A part of this buffer; no byte is copied.
    ///
    /// # Panics
    /// When the range does not lie within the buffer.
    pub fn slice(&self, range: Range<usize>) -> Buf {
        assert!(range.start <= range.end && range.end <= self.range.len(), "a slice lies within its buffer");
        Buf {
            memory: self.memory.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        }
    }

    /// The buffer to change: itself when this is the only holder, else a copy.
    pub fn into_mut(self) -> IoBuf {
        if self.range.start != 0 {
            return IoBuf::copy_from(&self);
        }
        if self.memory.is_lent() {
            return IoBuf::copy_from(&self);
        }
        let Buf { memory, range } = self;
        match Arc::try_unwrap(memory) {
            Ok(memory) => IoBuf { memory, len: range.end },
            Err(shared) => IoBuf::copy_from(&shared.bytes(range.end)[range]),
        }
    }

    /// The bytes, to be changed in place when this is the only holder, else in a copy that takes their place.
    pub fn make_mut(&mut self) -> &mut [u8] {
        if self.sole().is_none() {
            *self = Buf::copy_from(self);
        }
        let range = self.range.clone();
        let memory = self.sole().expect("a copy has one holder");
        &mut memory.bytes_mut(range.end)[range.start..]
    }

    /// The same bytes with a count of holders of its own. Clones of it change nothing that holders of `self` read or count:
    /// what one core hands out often costs the others nothing. What is lent is copied before it is changed, and keeps
    /// `self` from being changed in place.
    #[must_use]
    pub fn lend(&self) -> Buf {
        Buf { memory: Arc::new(Memory::lend(&self.memory)), range: self.range.clone() }
    }

    /// The memory, when this is its only holder.
    fn sole(&mut self) -> Option<&mut Memory> {
        Arc::get_mut(&mut self.memory).filter(|memory| !memory.is_lent())
    }

    /// Makes it `len` bytes long, with zeros behind what it has. It stays where it is when its memory has the room and
    /// it has no other holder: as memory comes in steps of a third and more, a buffer that grows a little at a time is
    /// copied now and then.
    pub fn resize(&mut self, len: usize) {
        let had = self.len();
        let end = self.range.start + len;
        if len <= had {
            self.range.end = end;
            return;
        }
        let start_of_new = self.range.end;
        match self.sole() {
            Some(memory) if end <= memory.capacity() => {
                memory.bytes_mut(end)[start_of_new..].fill(0);
                self.range.end = end;
            }
            _ => {
                let mut longer = IoBuf::scratch(len);
                longer[..had].copy_from_slice(self);
                longer[had..].fill(0);
                *self = longer.freeze();
            }
        }
    }

    /// The memory it holds on to, which may be more than its length: of a slice, the whole buffer's.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }
}

impl Deref for Buf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes(self.range.end)[self.range.start..]
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} bytes)", self.len())
    }
}

impl From<IoBuf> for Buf {
    fn from(buf: IoBuf) -> Buf {
        buf.freeze()
    }
}

#[cfg(test)]
mod tests;
