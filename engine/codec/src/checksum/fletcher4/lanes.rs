//! Fletcher4 in vectors: one loop, written once over [`Vector`], compiled for each width of register.
//!
//! A register of 64-bit elements is loaded with twice as many words; its lower halves are the even words, its
//! upper halves the odd ones. Both are summed on their own, so no instruction is spent on widening:
//!
//! ```text
//!   loaded    | w1 w0 | w3 w2 | w5 w4 | w7 w6 |      32 bytes, 8 lanes
//!   even      | 0  w0 | 0  w2 | 0  w4 | 0  w6 |      lanes 0 2 4 6
//!   odd       | 0  w1 | 0  w3 | 0  w5 | 0  w7 |      lanes 1 3 5 7
//! ```
//!
//! What a device has just written is in memory and in no cache of the processor, which by itself fetches in advance no
//! further than to the end of a page: so the loop asks for what is [`AHEAD`].

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{Sums, join_lanes};
use crate::cpu::Level;
use units::Endian;

/// The vectors take data in multiples of this; it is the widest register there is.
pub const GRAIN: usize = 64;
/// Bytes: half a page. What is in memory then takes 0.093 s/GiB instead of 0.12, what is at hand 0.023 as before.
const AHEAD: usize = 2 << 10;

/// The sums over `data`, whose length is a multiple of [`GRAIN`].
pub fn sums(level: Level, endian: Endian, data: &[u8]) -> Sums {
    debug_assert!(data.len().is_multiple_of(GRAIN));
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor was seen to have AVX-512.
        #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
        Level::Avx512 | Level::Avx512Gfni => unsafe { x86::sums_avx512(endian, data) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor was seen to have AVX2.
        #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
        Level::Avx2 => unsafe { x86::sums_avx2(endian, data) },
        _ => sums_by::<[u64; 4], 4>(endian, data),
    }
}

/// What the loop needs of a register of 64-bit elements.
pub trait Vector: Copy {
    const BYTES: usize;
    const ZERO: Self;
    /// From exactly [`Vector::BYTES`] bytes, in little-endian order.
    fn load(bytes: &[u8]) -> Self;
    /// Has the processor fetch what is at this address, if there is something.
    #[inline(always)]
    fn fetch(_: *const u8) {}
    /// Turns the bytes of each 32-bit word around.
    fn swap_words(self) -> Self;
    fn even_words(self) -> Self;
    fn odd_words(self) -> Self;
    fn add(self, other: Self) -> Self;
    /// Its elements, lowest first: as many as there is room for.
    fn store(self, elements: &mut [u64]);
}

/// See [`sums`]; a register has `ELEMENTS` of 64 bits. Inlined so that it is compiled with the features of its caller.
#[inline(always)]
pub fn sums_by<V: Vector, const ELEMENTS: usize>(endian: Endian, data: &[u8]) -> Sums {
    let (even, odd) = match endian {
        Endian::Little => sum::<V>(data, |loaded| loaded),
        Endian::Big => sum::<V>(data, V::swap_words),
    };
    let mut stored = [[[0; ELEMENTS]; 4]; 2];
    for (to, from) in stored.iter_mut().flatten().zip(even.into_iter().chain(odd)) {
        from.store(to);
    }
    join_lanes(&stored[0], &stored[1])
}

#[inline(always)]
fn sum<V: Vector>(data: &[u8], in_order: impl Fn(V) -> V) -> ([V; 4], [V; 4]) {
    let mut even = [V::ZERO; 4];
    let mut odd = [V::ZERO; 4];
    for bytes in data.chunks_exact(V::BYTES) {
        V::fetch(bytes.as_ptr().wrapping_add(AHEAD));
        let words = in_order(V::load(bytes));
        even = step(even, words.even_words());
        odd = step(odd, words.odd_words());
    }
    (even, odd)
}

#[inline(always)]
fn step<V: Vector>([a, b, c, d]: [V; 4], words: V) -> [V; 4] {
    let a = a.add(words);
    let b = b.add(a);
    let c = c.add(b);
    [a, b, c, d.add(c)]
}

/// Whatever registers the target is sure to have: the compiler finds them.
impl<const N: usize> Vector for [u64; N] {
    const BYTES: usize = 8 * N;
    const ZERO: Self = [0; N];

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let (elements, _) = bytes.as_chunks::<8>();
        std::array::from_fn(|i| u64::from_le_bytes(elements[i]))
    }

    #[inline(always)]
    fn swap_words(self) -> Self {
        self.map(|element| element.swap_bytes().rotate_left(32))
    }

    #[inline(always)]
    fn even_words(self) -> Self {
        self.map(|element| element & 0xffff_ffff)
    }

    #[inline(always)]
    fn odd_words(self) -> Self {
        self.map(|element| element >> 32)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].wrapping_add(other[i]))
    }

    #[inline(always)]
    fn store(self, elements: &mut [u64]) {
        elements.copy_from_slice(&self);
    }
}
