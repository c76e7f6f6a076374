//! Registers of x86 for the loop of [`lanes`](super::lanes).
#![allow(unsafe_code)]

use super::Sums;
use super::lanes::{Vector, sums_by};
use std::arch::x86_64::*;
use units::Endian;

#[target_feature(enable = "avx2")]
pub fn sums_avx2(endian: Endian, data: &[u8]) -> Sums {
    sums_by::<Avx2, 4>(endian, data)
}

#[target_feature(enable = "avx512f")]
pub fn sums_avx512(endian: Endian, data: &[u8]) -> Sums {
    sums_by::<Avx512, 8>(endian, data)
}

#[derive(Clone, Copy)]
struct Avx2(__m256i);

// SAFETY, for all of this file: the vectors are private and only named by the two functions above, into which
// everything generic is inlined; a caller of those has seen that the processor has the features. Loads take any
// alignment and their slice is as long as the register, which is checked.
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
    fn fetch(at: *const u8) {
        // SAFETY: a hint, which no address makes fail.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    fn swap_words(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let order = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
            Avx2(_mm256_shuffle_epi8(self.0, _mm256_broadcastsi128_si256(order)))
        }
    }

    #[inline(always)]
    fn even_words(self) -> Self {
        // SAFETY: see above.
        Avx2(unsafe { _mm256_and_si256(self.0, _mm256_set1_epi64x(0xffff_ffff)) })
    }

    #[inline(always)]
    fn odd_words(self) -> Self {
        // SAFETY: see above.
        Avx2(unsafe { _mm256_srli_epi64::<32>(self.0) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Avx2(unsafe { _mm256_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn store(self, elements: &mut [u64]) {
        assert!(size_of_val(elements) == Self::BYTES);
        // SAFETY: the slice is as long as the register.
        unsafe { _mm256_storeu_si256(elements.as_mut_ptr().cast(), self.0) }
    }
}

#[derive(Clone, Copy)]
struct Avx512(__m512i);

impl Vector for Avx512 {
    const BYTES: usize = 64;
    // SAFETY: any bits are a register.
    const ZERO: Self = Avx512(unsafe { std::mem::zeroed() });

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        assert!(bytes.len() == Self::BYTES);
        // SAFETY: see above.
        Avx512(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn fetch(at: *const u8) {
        // SAFETY: a hint, which no address makes fail.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    /// The first processors with AVX-512 cannot shuffle bytes of so wide a register; two rotations do.
    #[inline(always)]
    fn swap_words(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let lower = _mm512_and_si512(_mm512_rol_epi32::<8>(self.0), _mm512_set1_epi32(0x00ff_00ff));
            let upper = _mm512_andnot_si512(_mm512_set1_epi32(0x00ff_00ff), _mm512_rol_epi32::<24>(self.0));
            Avx512(_mm512_or_si512(lower, upper))
        }
    }

    #[inline(always)]
    fn even_words(self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_and_si512(self.0, _mm512_set1_epi64(0xffff_ffff)) })
    }

    #[inline(always)]
    fn odd_words(self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_srli_epi64::<32>(self.0) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Avx512(unsafe { _mm512_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn store(self, elements: &mut [u64]) {
        assert!(size_of_val(elements) == Self::BYTES);
        // SAFETY: the slice is as long as the register.
        unsafe { _mm512_storeu_si512(elements.as_mut_ptr().cast(), self.0) }
    }
}
