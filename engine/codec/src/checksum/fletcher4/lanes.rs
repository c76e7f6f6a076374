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

use super::{Sums, join_lanes};
use units::Endian;

/// The vectors take data in multiples of this; it is the widest register there is.
pub const GRAIN: usize = 64;

/// The sums over `data`, whose length is a multiple of [`GRAIN`].
pub fn sums(endian: Endian, data: &[u8]) -> Sums {
    debug_assert!(data.len().is_multiple_of(GRAIN));
    match endian {
        Endian::Little => plain::<false>(data),
        Endian::Big => plain::<true>(data),
    }
}

fn plain<const BIG: bool>(data: &[u8]) -> Sums {
    let mut lanes = [[0; 4]; 8];
    sum_lanes::<[u64; 4], BIG>(data, &mut lanes);
    join_lanes(&lanes)
}

/// What the loop needs of a register of 64-bit elements.
trait Vector: Copy {
    const BYTES: usize;
    const ZERO: Self;
    /// The first [`Vector::BYTES`] of `bytes`, which is at least as long, in little-endian order.
    fn load(bytes: &[u8]) -> Self;
    /// Turns the bytes of each 32-bit word around.
    fn swap_words(self) -> Self;
    fn even_words(self) -> Self;
    fn odd_words(self) -> Self;
    fn add(self, other: Self) -> Self;
    fn element(self, index: usize) -> u64;
}

/// `lanes` has one entry per word of a register. Inlined so that it is compiled with the features of its caller.
#[inline(always)]
fn sum_lanes<V: Vector, const BIG: bool>(data: &[u8], lanes: &mut [[u64; 4]]) {
    let mut even = [V::ZERO; 4];
    let mut odd = [V::ZERO; 4];
    for bytes in data.chunks_exact(V::BYTES) {
        let loaded = V::load(bytes);
        let words = if BIG { loaded.swap_words() } else { loaded };
        even = step(even, words.even_words());
        odd = step(odd, words.odd_words());
    }
    for (i, lane) in lanes.iter_mut().enumerate() {
        let sums = if i % 2 == 0 { even } else { odd };
        *lane = sums.map(|sum| sum.element(i / 2));
    }
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
    fn element(self, index: usize) -> u64 {
        self[index]
    }
}
