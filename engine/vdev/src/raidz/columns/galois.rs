//! Parity, plainly: the field of 256 elements, byte by byte.
//!
//! With n data columns, row k of parity is the sum of `(2^k)^(n-1-i) * column i`: P with powers of 1, Q of 2, R of 4.

use world::IoBuf;

fn double(a: u8) -> u8 {
    (a << 1) ^ if a & 0x80 != 0 { 0x1d } else { 0 }
}

fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = double(a);
        b >>= 1;
    }
    product
}

fn power(a: u8, n: usize) -> u8 {
    (0..n % 255).fold(1, |p, _| multiply(p, a))
}

fn inverse(a: u8) -> u8 {
    power(a, 254)
}

fn coefficient(row: usize, columns: usize, column: usize) -> u8 {
    power(1 << row, columns - 1 - column)
}

fn add_multiple(to: &mut [u8], from: &[u8], factor: u8) {
    let mut table = [0u8; 256];
    (0..=255u8).for_each(|b| table[usize::from(b)] = multiply(b, factor));
    to.iter_mut().zip(from).for_each(|(t, f)| *t ^= table[usize::from(*f)]);
}

/// Adds to each zeroed parity column what it should hold.
pub(super) fn generate(data: &[&[u8]], parity: &mut [IoBuf]) {
    for (row, parity) in parity.iter_mut().enumerate() {
        for (i, column) in data.iter().enumerate() {
            add_multiple(parity, column, coefficient(row, data.len(), i));
        }
    }
}

/// The missing data columns: as many equations as there are unknowns, solved by elimination.
pub(super) fn reconstruct(
    parity: &[Option<&[u8]>],
    data: &[Option<&[u8]>],
    lens: &[usize],
    missing: &[usize],
) -> Vec<(usize, Vec<u8>)> {
    let n = data.len();
    let len = lens.iter().copied().max().unwrap_or(0);
    let rows = parity.iter().enumerate().filter_map(|(row, p)| p.map(|p| (row, p))).take(missing.len());
    let mut equations: Vec<(Vec<u8>, Vec<u8>)> = rows
        .map(|(row, parity)| {
            let mut known = vec![0; len];
            known[..parity.len()].copy_from_slice(parity);
            for (i, column) in data.iter().enumerate() {
                if let (Some(column), false) = (column, missing.contains(&i)) {
                    add_multiple(&mut known, column, coefficient(row, n, i));
                }
            }
            (missing.iter().map(|&m| coefficient(row, n, m)).collect(), known)
        })
        .collect();
    eliminate(&mut equations);
    missing.iter().copied().zip(equations.into_iter().map(|e| e.1)).collect()
}

fn eliminate(equations: &mut [(Vec<u8>, Vec<u8>)]) {
    for pivot in 0..equations.len() {
        let with = (pivot..equations.len()).find(|&r| equations[r].0[pivot] != 0);
        equations.swap(pivot, with.expect("any rows of the parity matrix are independent"));
        let factor = inverse(equations[pivot].0[pivot]);
        scale(&mut equations[pivot].0, factor);
        scale(&mut equations[pivot].1, factor);
        let (row, known) = equations[pivot].clone();
        for (other, equation) in equations.iter_mut().enumerate() {
            let factor = equation.0[pivot];
            if other != pivot && factor != 0 {
                add_multiple(&mut equation.0, &row, factor);
                add_multiple(&mut equation.1, &known, factor);
            }
        }
    }
}

fn scale(bytes: &mut [u8], factor: u8) {
    bytes.iter_mut().for_each(|b| *b = multiply(*b, factor));
}
