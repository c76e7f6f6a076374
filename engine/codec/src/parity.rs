//! Parity of RAIDZ: up to three columns from which up to three lost data columns come back.
//!
//! Bytes are elements of the field of 256, where addition is xor and multiplication is that of polynomials modulo
//! `x^8 + x^4 + x^3 + x^2 + 1` (module `gf`). At each offset, over the bytes `d` of the `n` data columns:
//!
//! ```text
//!   P = d0          +  d1          + ... + dn-1
//!   Q = d0 2^(n-1)  +  d1 2^(n-2)  + ... + dn-1      Horner: for each column, multiply by 2 and add
//!   R = d0 4^(n-1)  +  d1 4^(n-2)  + ... + dn-1      the same with 4
//! ```
//!
//! With `k` columns missing, `k` of these are equations for their bytes. Summing only what is there leaves the
//! *syndromes*, which the missing bytes alone make up; the inverse of a `k` x `k` matrix gives them back. Any
//! choice of rows and columns has an inverse, as the first 255 powers of 2 all differ, and so do those of 4.
//!
//! ```text
//!   lost d1 d3, read P R     sP = P - (d0 + d2 ...) = d1 + d3          d1 = a sP + b sR
//!                            sR = R - (..)          = 4^i d1 + 4^j d3  d3 = c sP + d sR
//! ```
//!
//! Columns may differ in length: a block rarely fills its last row. A short column counts as if it went on with
//! zeros, and only its own bytes come back.
//!
//! The work goes strip by strip, a few registers wide, through all columns, so each byte of memory is touched once:
//! module `strip` has the loops, `x86` the registers.
//!
//! Not here: which device holds which column, and whether a reconstruction was right; the block's checksum tells.

mod gf;
mod strip;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cpu::{self, Level};
use gf::Factor;
use strip::Job;
use units::{Error, Result};

/// P, Q and R.
pub const PARITY_MAX: usize = 3;
/// With a column more, two columns would have the same power of 2.
pub const DATA_MAX: usize = 255;

/// Fills P, or P and Q, or P, Q and R. Each is at least as long as the longest of the data.
pub fn generate(data: &[&[u8]], parity: &mut [&mut [u8]]) {
    generate_by(cpu::level(), data, parity);
}

fn generate_by(level: Level, data: &[&[u8]], parity: &mut [&mut [u8]]) {
    assert!(parity.len() <= PARITY_MAX, "there is no fourth parity");
    assert!(data.len() <= DATA_MAX, "two columns would look the same");
    let longest = data.iter().map(|column| column.len()).max().unwrap_or(0);
    assert!(parity.iter().all(|parity| parity.len() >= longest), "parity covers all data");
    let rows = &[0, 1, 2][..parity.len()];
    run(level, &mut Job { columns: data, rows, read: &[], factors: None, results: parity });
}

/// Brings back the missing of the data columns, those that are `None`, into `missing`, in order. `parity` are P, Q
/// and R as far as they were read; as many are needed as columns are missing, and more are ignored. A column is
/// brought back in the length that its slice in `missing` has.
pub fn reconstruct(
    data: &[Option<&[u8]>],
    parity: &[Option<&[u8]>],
    missing: &mut [&mut [u8]],
) -> Result<()> {
    reconstruct_by(cpu::level(), data, parity, missing)
}

fn reconstruct_by(
    level: Level,
    data: &[Option<&[u8]>],
    parity: &[Option<&[u8]>],
    missing: &mut [&mut [u8]],
) -> Result<()> {
    let lost: Vec<usize> = (0..data.len()).filter(|&i| data[i].is_none()).collect();
    assert!(missing.len() == lost.len(), "a slice for each missing column");
    let (rows, read): (Vec<usize>, Vec<&[u8]>) = parity
        .iter()
        .take(PARITY_MAX)
        .enumerate()
        .filter_map(|(row, read)| Some((row, (*read)?)))
        .take(lost.len())
        .unzip();
    if rows.len() < lost.len() {
        let counts = format!("{} columns from {} of parity", lost.len(), rows.len());
        return Err(Error::invalid(format!("cannot reconstruct {counts}")));
    }
    let longest = missing.iter().map(|column| column.len()).max().unwrap_or(0);
    assert!(read.iter().all(|parity| parity.len() >= longest), "parity covers what is missing");
    let columns: Vec<&[u8]> = data.iter().map(|column| column.unwrap_or(&[])).collect();
    let factors = solve(data.len(), &lost, &rows);
    run(level, &mut Job { columns: &columns, rows: &rows, read: &read, factors, results: missing });
    Ok(())
}

/// How each lost column of `n` is made of the syndromes of `rows`. `None` if there is nothing to multiply: a single
/// column is the syndrome of P itself.
fn solve(n: usize, lost: &[usize], rows: &[usize]) -> Option<[[Factor; PARITY_MAX]; PARITY_MAX]> {
    if matches!(rows, [] | [0]) {
        return None;
    }
    assert!(n <= DATA_MAX, "two columns would look the same");
    let mut matrix = [[0; PARITY_MAX]; PARITY_MAX];
    for (equation, row) in rows.iter().enumerate() {
        for (unknown, column) in lost.iter().enumerate() {
            matrix[equation][unknown] = gf::power(row * (n - 1 - column));
        }
    }
    let inverse = gf::invert(lost.len(), matrix).expect("columns have different powers");
    Some(inverse.map(|row| row.map(Factor::new)))
}

fn run(level: Level, job: &mut Job<'_, '_>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor was seen to have GFNI and AVX-512.
        #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
        Level::Avx512Gfni => unsafe { x86::run_gfni(job) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor was seen to have AVX2.
        #[expect(unsafe_code, reason = "the compiler cannot see what the processor has")]
        Level::Avx2 | Level::Avx512 => unsafe { x86::run_avx2(job) },
        _ => strip::run::<[u8; 32]>(job),
    }
}

#[cfg(test)]
mod tests;
