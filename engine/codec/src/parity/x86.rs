//! Registers of x86 for the loops of [`strip`](super::strip).
//!
//! AVX2 doubles by adding a byte to itself and reducing where it was negative, and multiplies by looking up both
//! halves of each byte in tables of sixteen. With GFNI both are one instruction: a matrix of bits applied to bytes.
#![allow(unsafe_code)]

use super::gf::{Factor, REDUCTION};
use super::strip::{Job, Vector, run};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2")]
pub fn run_avx2(job: &mut Job<'_, '_>) {
    run::<Avx2>(job);
}

#[target_feature(enable = "avx512f,gfni")]
pub fn run_gfni(job: &mut Job<'_, '_>) {
    run::<Gfni>(job);
}

#[derive(Clone, Copy)]
struct Avx2(__m256i);

// SAFETY, for all of this file: the vectors are private and only named by the two functions above, into which
// everything generic is inlined; a caller of those has seen that the processor has the features. Loads and stores
// take any alignment and their slices are as long as the register, which is checked.
impl Vector for Avx2 {
    const BYTES: usize = 32;
    // SAFETY: any bits are a register.
    const ZERO: Self = Avx2(unsafe { std::mem::zeroed() });

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        assert!(bytes.len() == Self::BYTES);
        // SAFETY: see above.
        Avx2(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        assert!(bytes.len() == Self::BYTES);
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Avx2(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn double(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let carry = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
            let reduction = _mm256_and_si256(carry, _mm256_set1_epi8(REDUCTION as i8));
            Avx2(_mm256_xor_si256(_mm256_add_epi8(self.0, self.0), reduction))
        }
    }

    #[inline(always)]
    fn multiply(self, factor: &Factor) -> Self {
        // SAFETY: see above; the tables are 16 bytes.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(factor.low.as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(factor.high.as_ptr().cast()));
            let half = _mm256_set1_epi8(15);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, half));
            let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(self.0, 4), half));
            Avx2(_mm256_xor_si256(of_low, of_high))
        }
    }
}

#[derive(Clone, Copy)]
struct Gfni(__m512i);

/// Multiplication by 2 as a matrix.
const DOUBLE: u64 = Factor::new(2).matrix;

impl Gfni {
    #[inline(always)]
    fn apply(self, matrix: u64) -> Self {
        // SAFETY: see above.
        Gfni(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, _mm512_set1_epi64(matrix as i64)) })
    }
}

impl Vector for Gfni {
    const BYTES: usize = 64;
    // SAFETY: any bits are a register.
    const ZERO: Self = Gfni(unsafe { std::mem::zeroed() });

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        assert!(bytes.len() == Self::BYTES);
        // SAFETY: see above.
        Gfni(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        assert!(bytes.len() == Self::BYTES);
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Gfni(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn double(self) -> Self {
        self.apply(DOUBLE)
    }

    #[inline(always)]
    fn multiply(self, factor: &Factor) -> Self {
        self.apply(factor.matrix)
    }
}
