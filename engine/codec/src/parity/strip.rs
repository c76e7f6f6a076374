//! The loops of parity, strip by strip, written once over [`Vector`] and compiled for each width of register.

use super::gf::Factor;
use super::{PARITY_MAX, gf};

/// What to compute: sums over columns and, if something is to be reconstructed, what to make of them.
pub struct Job<'a, 'b> {
    /// The data columns in order; one that is missing is empty, which counts as zeros.
    pub columns: &'a [&'a [u8]],
    /// Which of P (0), Q (1) and R (2) to sum.
    pub rows: &'a [usize],
    /// The parity that was read for each of the rows, to be added to the sum. None when generating.
    pub read: &'a [&'a [u8]],
    /// How each result is made of the sums. Without: result `i` is sum `i`.
    pub factors: Option<[[Factor; PARITY_MAX]; PARITY_MAX]>,
    /// The results. Each may be shorter than what there is to compute.
    pub results: &'a mut [&'b mut [u8]],
}

/// What the loops need of a register full of field elements.
pub trait Vector: Copy {
    const BYTES: usize;
    const ZERO: Self;
    /// From and to exactly [`Vector::BYTES`] bytes.
    fn load(bytes: &[u8]) -> Self;
    fn store(self, bytes: &mut [u8]);
    fn add(self, other: Self) -> Self;
    fn double(self) -> Self;
    fn multiply(self, factor: &Factor) -> Self;
}

/// Registers handled together: enough independent work to hide the latency of doubling.
const REGISTERS: usize = 4;
type Strip<V> = [V; REGISTERS];
/// For the ends of columns that are no whole strip; the widest register has 64 bytes.
const STRIP_BYTES_MAX: usize = REGISTERS * 64;

/// Inlined so that it is compiled with the features of its caller.
#[inline(always)]
pub fn run<V: Vector>(job: &mut Job<'_, '_>) {
    let length = job.results.iter().map(|result| result.len()).max().unwrap_or(0);
    for at in (0..length).step_by(REGISTERS * V::BYTES) {
        let mut sums = [[V::ZERO; REGISTERS]; PARITY_MAX];
        for (i, row) in job.rows.iter().enumerate() {
            let sum = match row {
                0 => sum::<V, 0>(job.columns, at),
                1 => sum::<V, 1>(job.columns, at),
                _ => sum::<V, 2>(job.columns, at),
            };
            sums[i] = job.read.get(i).map_or(sum, |read| add(sum, load(read, at)));
        }
        for (i, result) in job.results.iter_mut().enumerate() {
            let value = match &job.factors {
                Some(factors) => combine(&sums[..job.rows.len()], &factors[i]),
                None => sums[i],
            };
            store(value, result, at);
        }
    }
}

/// The Horner sum of one strip over all columns, with a step of 2 to the power of `DOUBLINGS`.
#[inline(always)]
fn sum<V: Vector, const DOUBLINGS: usize>(columns: &[&[u8]], at: usize) -> Strip<V> {
    let mut sum = [V::ZERO; REGISTERS];
    for column in columns {
        for _ in 0..DOUBLINGS {
            sum = sum.map(|register| register.double());
        }
        if at < column.len() {
            sum = add(sum, load(column, at));
        }
    }
    sum
}

#[inline(always)]
fn combine<V: Vector>(sums: &[Strip<V>], factors: &[Factor; PARITY_MAX]) -> Strip<V> {
    let mut combined = [V::ZERO; REGISTERS];
    for (sum, factor) in sums.iter().zip(factors) {
        combined = add(combined, sum.map(|register| register.multiply(factor)));
    }
    combined
}

#[inline(always)]
fn add<V: Vector>(a: Strip<V>, b: Strip<V>) -> Strip<V> {
    std::array::from_fn(|i| a[i].add(b[i]))
}

/// The strip at `at`, with zeros where the column has ended.
#[inline(always)]
fn load<V: Vector>(column: &[u8], at: usize) -> Strip<V> {
    if let Some(bytes) = column.get(at..at + REGISTERS * V::BYTES) {
        return std::array::from_fn(|i| V::load(&bytes[i * V::BYTES..(i + 1) * V::BYTES]));
    }
    let mut padded = [0; STRIP_BYTES_MAX];
    let rest = column.get(at..).unwrap_or(&[]);
    padded[..rest.len()].copy_from_slice(rest);
    std::array::from_fn(|i| V::load(&padded[i * V::BYTES..(i + 1) * V::BYTES]))
}

/// As much of the strip as the column has room for.
#[inline(always)]
fn store<V: Vector>(strip: Strip<V>, column: &mut [u8], at: usize) {
    if let Some(bytes) = column.get_mut(at..at + REGISTERS * V::BYTES) {
        for (register, bytes) in strip.into_iter().zip(bytes.chunks_exact_mut(V::BYTES)) {
            register.store(bytes);
        }
        return;
    }
    let mut padded = [0; STRIP_BYTES_MAX];
    for (register, bytes) in strip.into_iter().zip(padded.chunks_exact_mut(V::BYTES)) {
        register.store(bytes);
    }
    if let Some(rest) = column.get_mut(at..) {
        let length = rest.len();
        rest.copy_from_slice(&padded[..length]);
    }
}

/// Whatever registers the target is sure to have: the compiler finds them.
impl Vector for [u8; 32] {
    const BYTES: usize = 32;
    const ZERO: Self = [0; 32];

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        *bytes.first_chunk().expect("a register's worth of bytes")
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self);
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (a, b) in self.iter_mut().zip(other) {
            *a ^= b;
        }
        self
    }

    #[inline(always)]
    fn double(mut self) -> Self {
        for a in &mut self {
            // All ones if the highest bit is set: vectors have a shift for that, but no multiplication of bytes.
            let carry = (*a as i8 >> 7) as u8;
            *a = (*a << 1) ^ (carry & gf::REDUCTION);
        }
        self
    }

    /// By doubling and adding, from the highest bit of the factor: no tables, and vectors throughout.
    #[inline(always)]
    fn multiply(self, factor: &Factor) -> Self {
        (0..8).rev().fold([0; 32], |sum, bit| {
            let doubled = sum.double();
            if factor.value >> bit & 1 == 1 { doubled.add(self) } else { doubled }
        })
    }
}
