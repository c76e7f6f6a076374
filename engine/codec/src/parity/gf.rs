//! Arithmetic in the field of 256 elements in which parity is computed.
//!
//! A byte is a polynomial over single bits. Addition is xor. Every element but zero is a power of 2, so products
//! are sums of logarithms; that is good enough for the few factors of a reconstruction, and [`Factor`] prepares
//! those for multiplying whole columns.

/// x^8 is replaced by x^4 + x^3 + x^2 + 1.
pub const REDUCTION: u8 = 0x1d;

/// The powers of 2 from 0 to 254, and once more, so that the sum of two logarithms is an index.
const POWERS: [u8; 510] = {
    let mut powers = [0; 510];
    let (mut i, mut value) = (0, 1u8);
    while i < 510 {
        powers[i] = value;
        value = double(value);
        i += 1;
    }
    powers
};

/// The inverse of [`POWERS`]; the entry for 0 means nothing.
const LOGARITHMS: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut i = 0;
    while i < 255 {
        logarithms[POWERS[i] as usize] = i as u8;
        i += 1;
    }
    logarithms
};

pub const fn double(a: u8) -> u8 {
    (a << 1) ^ (REDUCTION * (a >> 7))
}

pub const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[LOGARITHMS[a as usize] as usize + LOGARITHMS[b as usize] as usize]
}

/// 2 to the power of `exponent`.
pub fn power(exponent: usize) -> u8 {
    POWERS[exponent % 255]
}

/// The number whose product with `a` is 1. Zero has none.
pub fn inverse(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    POWERS[255 - LOGARITHMS[a as usize] as usize]
}

/// A square matrix of up to three rows, in the corner of one of three.
pub type Matrix = [[u8; 3]; 3];

/// The inverse of the upper left `size` x `size` corner of `matrix`, by elimination. `None` if there is none.
pub fn invert(size: usize, mut matrix: Matrix) -> Option<Matrix> {
    let mut inverse = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    for pivot in 0..size {
        let row = (pivot..size).find(|&row| matrix[row][pivot] != 0)?;
        matrix.swap(pivot, row);
        inverse.swap(pivot, row);
        let scale = self::inverse(matrix[pivot][pivot]);
        matrix[pivot] = matrix[pivot].map(|a| multiply(a, scale));
        inverse[pivot] = inverse[pivot].map(|a| multiply(a, scale));
        for row in (0..size).filter(|&row| row != pivot) {
            let factor = matrix[row][pivot];
            matrix[row] = eliminate(matrix[row], matrix[pivot], factor);
            inverse[row] = eliminate(inverse[row], inverse[pivot], factor);
        }
    }
    Some(inverse)
}

fn eliminate(row: [u8; 3], pivot: [u8; 3], factor: u8) -> [u8; 3] {
    std::array::from_fn(|i| row[i] ^ multiply(pivot[i], factor))
}

/// A constant, ready to multiply columns by.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    pub value: u8,
    /// Products of all lower and all upper halves of a byte: a product is the sum of two of them. For processors
    /// that look up sixteen bytes in a register at once.
    pub low: [u8; 16],
    pub high: [u8; 16],
    /// Multiplication as a matrix of bits, rows from the lowest output bit in the highest byte down, as
    /// `gf2p8affineqb` takes it.
    pub matrix: u64,
}

impl Factor {
    pub const fn new(value: u8) -> Factor {
        let mut factor = Factor { value, low: [0; 16], high: [0; 16], matrix: 0 };
        let mut i = 0;
        while i < 16 {
            factor.low[i] = multiply(value, i as u8);
            factor.high[i] = multiply(value, (i as u8) << 4);
            i += 1;
        }
        factor.matrix = bit_matrix(value);
        factor
    }
}

const fn bit_matrix(value: u8) -> u64 {
    let mut matrix = 0;
    let mut input = 0;
    while input < 8 {
        let product = multiply(value, 1 << input);
        let mut output = 0;
        while output < 8 {
            let bit = (product >> output & 1) as u64;
            matrix |= bit << (8 * (7 - output) + input);
            output += 1;
        }
        input += 1;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: a product of polynomials, reduced bit by bit.
    fn product(a: u8, b: u8) -> u8 {
        (0..8).rev().fold(0, |sum, bit| double(sum) ^ if b >> bit & 1 == 1 { a } else { 0 })
    }

    #[test]
    fn products_by_logarithm_tables_and_matrices_follow_the_definition() {
        for a in 0..=255 {
            let factor = Factor::new(a);
            for b in 0..=255u8 {
                assert_eq!(multiply(a, b), product(a, b));
                let halves = factor.low[usize::from(b & 15)] ^ factor.high[usize::from(b >> 4)];
                assert_eq!(halves, product(a, b));
                assert_eq!(affine(factor.matrix, b), product(a, b));
            }
        }
    }

    /// What the manual says `gf2p8affineqb` does to a byte.
    fn affine(matrix: u64, byte: u8) -> u8 {
        let row = |bit: u32| (matrix >> (8 * (7 - bit))) as u8;
        (0..8).map(|bit| (((row(bit) & byte).count_ones() & 1) as u8) << bit).sum()
    }

    #[test]
    fn the_powers_of_two_are_all_elements_but_zero() {
        let all: std::collections::BTreeSet<u8> = (0..255).map(power).collect();
        assert_eq!(all.len(), 255);
        assert_eq!(power(8), REDUCTION);
        assert_eq!(power(255), 1);
        assert!((1..=255).all(|a| multiply(a, inverse(a)) == 1));
    }

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = [[1, 1, 1], [power(7), power(3), 1], [power(14), power(6), 1]];
        let inverse = invert(3, matrix).expect("its columns are independent");
        let dot = |row: [u8; 3], j: usize| (0..3).fold(0, |sum, k| sum ^ multiply(row[k], inverse[k][j]));
        let product = matrix.map(|row| [dot(row, 0), dot(row, 1), dot(row, 2)]);
        assert_eq!(product, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]);
        assert_eq!(invert(2, [[1, 1, 0], [1, 1, 0], [0, 0, 0]]), None);
    }
}
