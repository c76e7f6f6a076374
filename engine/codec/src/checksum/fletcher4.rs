//! Fletcher4: the checksum of nearly every block.
//!
//! Over 32-bit words `x`, in order, four sums of 64 bits that wrap around:
//!
//! ```text
//!   a += x;  b += a;  c += b;  d += c        so that, with n words, word i counts
//!                                            1, m, m(m+1)/2, m(m+1)(m+2)/6 times, m = n - i
//! ```
//!
//! Each step waits for the one before, so a plain loop moves four bytes per cycle. But the weights are polynomials
//! in a word's distance from the end, so the words may be dealt to L lanes, summed there independently, and put
//! together afterwards:
//!
//! ```text
//!   word     0  1  2  3 | 4  5  6  7 | ...        lane j has words j, j+L, j+2L ...
//!   lane     0  1  2  3   0  1  2  3              seen from the end of its lane, word m of lane j is
//!                                                 word L*m - j of the whole
//! ```
//!
//! A weight `f` of the whole at `L*m - j` is a polynomial in `m`, and Newton's backward differences write it in
//! exactly the four weights a lane has summed: `f(m) = f(0) + m Df + m(m+1)/2 DDf + m(m+1)(m+2)/6 DDDf`, where
//! `D` is the difference at 0 to the value before. These factors in turn are polynomials in the lane's number `j`, so the
//! lanes' sums are summed as the words were, from the last lane to the first, and what comes of that counts by the
//! differences of the factors at `j = -1`: additions, and a few products at the end. [`join_lanes`] does it.
//!
//! The same polynomials let two neighbouring pieces be summed apart: see [`Sums::then`].

mod lanes;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::Words;
use crate::cpu::{self, Level};
use units::Endian;

/// The four sums over some run of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

pub fn compute(endian: Endian, data: &[u8]) -> Words {
    resume([0; 4], endian, data)
}

/// Goes on from the words of what came before. A tail short of 4 bytes is not covered; blocks have none.
pub fn resume(start: Words, endian: Endian, data: &[u8]) -> Words {
    resume_by(cpu::level(), start, endian, data)
}

fn resume_by(level: Level, start: Words, endian: Endian, data: &[u8]) -> Words {
    let (body, tail) = data.split_at(data.len() - data.len() % lanes::GRAIN);
    let [a, b, c, d] = start;
    let body_words = body.len() as u64 / 4;
    let sums = Sums { a, b, c, d }.then(lanes::sums(level, endian, body), body_words).over(endian, tail);
    [sums.a, sums.b, sums.c, sums.d]
}

impl Sums {
    /// The definition, word by word.
    fn over(mut self, endian: Endian, data: &[u8]) -> Sums {
        for word in data.as_chunks::<4>().0 {
            let word = match endian {
                Endian::Little => u32::from_le_bytes(*word),
                Endian::Big => u32::from_be_bytes(*word),
            };
            self.a = self.a.wrapping_add(word.into());
            self.b = self.b.wrapping_add(self.a);
            self.c = self.c.wrapping_add(self.b);
            self.d = self.d.wrapping_add(self.c);
        }
        self
    }

    /// The sums over these words and then the `n` words that `next` is about: everything here moves `n` words
    /// further from the end, which raises each weight by the lower ones.
    fn then(self, next: Sums, n: u64) -> Sums {
        let [n1, n2, n3] = weights(n as i64);
        let Sums { a, b, c, d } = self;
        let mul = u64::wrapping_mul;
        Sums {
            a: sum([a, next.a]),
            b: sum([b, mul(n1, a), next.b]),
            c: sum([c, mul(n1, b), mul(n2, a), next.c]),
            d: sum([d, mul(n1, c), mul(n2, b), mul(n3, a), next.d]),
        }
    }
}

/// How often the word `m` places from the end counts in b, c and d: 64-bit arithmetic that wraps around, but whose
/// divisions are exact. [`join_lanes`] also asks about distances beyond the end.
const fn weights(m: i64) -> [u64; 3] {
    let pairs = if m % 2 == 0 { (m / 2).wrapping_mul(m + 1) } else { m.wrapping_mul((m + 1) / 2) } as u64;
    // Three divides this product before it wraps, so multiplying by the inverse of three divides it after.
    const THIRD: u64 = 0xaaaa_aaaa_aaaa_aaab;
    let triples = pairs.wrapping_mul((m + 2) as u64).wrapping_mul(THIRD);
    [m as u64, pairs, triples]
}

fn sum<const N: usize>(terms: [u64; N]) -> u64 {
    terms.into_iter().fold(0, u64::wrapping_add)
}

/// The sums over all words, from those of the lanes they were dealt to: each lane's a, then each lane's b, and so on, of
/// the lanes with even numbers and of those with odd ones. Each lane has had as many words.
#[inline(always)]
fn join_lanes<const HALF: usize>(even: &[[u64; HALF]; 4], odd: &[[u64; HALF]; 4]) -> Sums {
    let over_lanes: [[u64; 4]; 4] = std::array::from_fn(|i| {
        let mut sums = [0u64; 4];
        for pair in (0..HALF).rev() {
            for lane in [odd[i][pair], even[i][pair]] {
                sums[0] = sums[0].wrapping_add(lane);
                // That of lanes' c enters by a polynomial of first degree at most, and so on.
                for above in 1..4 - i {
                    sums[above] = sums[above].wrapping_add(sums[above - 1]);
                }
            }
        }
        sums
    });
    let factors = const { factors(2 * HALF as i64) };
    let total = |by: &[[u64; 4]; 4]| sum(std::array::from_fn::<u64, 4, _>(|i| dot(&over_lanes[i], &by[i])));
    Sums { a: over_lanes[0][0], b: total(&factors[0]), c: total(&factors[1]), d: total(&factors[2]) }
}

fn dot(sums: &[u64; 4], factors: &[u64; 4]) -> u64 {
    sum(std::array::from_fn::<u64, 4, _>(|i| sums[i].wrapping_mul(factors[i])))
}

/// For each of b, c, d of the whole, and each of the lanes' a, b, c, d: how the sums of these over the lanes enter into it.
const fn factors(lanes: i64) -> [[[u64; 4]; 4]; 3] {
    let of = [factors_of(lanes, -1), factors_of(lanes, -2), factors_of(lanes, -3), factors_of(lanes, -4)];
    let mut factors = [[[0; 4]; 4]; 3];
    let mut sum = 0;
    while sum < 3 {
        let mut i = 0;
        while i < 4 {
            factors[sum][i] = differences(of[0][sum][i], of[1][sum][i], of[2][sum][i], of[3][sum][i]);
            i += 1;
        }
        sum += 1;
    }
    factors
}

/// For each of b, c, d of the whole: how a lane's a, b, c, d enter into it.
const fn factors_of(lanes: i64, lane: i64) -> [[u64; 4]; 3] {
    // The weights at m = 0, -1, -2, -3.
    let at = [weights(-lane), weights(-lanes - lane), weights(-2 * lanes - lane), weights(-3 * lanes - lane)];
    let mut factors = [[0; 4]; 3];
    let mut sum = 0;
    while sum < 3 {
        factors[sum] = differences(at[0][sum], at[1][sum], at[2][sum], at[3][sum]);
        sum += 1;
    }
    factors
}

/// A value and its first three backward differences.
const fn differences(f0: u64, f1: u64, f2: u64, f3: u64) -> [u64; 4] {
    let first = f0.wrapping_sub(f1);
    let second = first.wrapping_sub(f1.wrapping_sub(f2));
    let before = f1.wrapping_sub(f2).wrapping_sub(f2.wrapping_sub(f3));
    [f0, first, second, second.wrapping_sub(before)]
}

#[cfg(test)]
mod tests;
