//! Buffers: written once, read in place.
//!
//! ```text
//!   IoBuf ── unique, mutable, aligned ── freeze ──▶ Buf ── shared, immutable, sliceable
//!     ▲                                              │
//!     └───────── into_mut, when nobody else holds it ┘
//! ```
//!
//! Every allocation is aligned to [`ALIGN`], so that any buffer may go to a device opened with O_DIRECT. The bytes
//! of a new buffer are always initialised; they are zero only where the constructor says so.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// The strictest alignment of any device we serve.
pub const ALIGN: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; ALIGN]);

/// A buffer that one owner fills.
pub struct IoBuf {
    pages: Vec<Page>,
    len: usize,
}

impl IoBuf {
    pub fn zeroed(len: usize) -> IoBuf {
        IoBuf { pages: vec![Page([0; ALIGN]); len.div_ceil(ALIGN)], len }
    }

    /// A buffer to be overwritten whole: its content is unspecified.
    pub fn scratch(len: usize) -> IoBuf {
        IoBuf::zeroed(len)
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

    pub fn freeze(self) -> Buf {
        let range = 0..self.len;
        Buf { whole: Arc::new(self), range }
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: a Page is ALIGN initialised bytes without padding, and `len <= pages.len() * ALIGN`.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for IoBuf {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the borrow unique.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuf({} bytes)", self.len)
    }
}

/// Bytes shared by whoever holds a clone; never changed.
#[derive(Clone)]
pub struct Buf {
    whole: Arc<IoBuf>,
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
        Buf { whole: self.whole.clone(), range: self.range.start + range.start..self.range.start + range.end }
    }

    /// The buffer to change: itself when nobody else holds it, else a copy.
    pub fn into_mut(self) -> IoBuf {
        if self.range.start != 0 {
            return IoBuf::copy_from(&self);
        }
        let Buf { whole, range } = self;
        match Arc::try_unwrap(whole) {
            Ok(mut buf) => {
                buf.truncate(range.end);
                buf
            }
            Err(shared) => IoBuf::copy_from(&shared[range]),
        }
    }
}

impl Deref for Buf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.whole[self.range.clone()]
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
