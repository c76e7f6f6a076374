//! What is done to a pool before its power is cut.
//!
//! Short workloads are words: each letter is one operation, and they are all the words of up to so many letters, with
//! a flush after each of the letters in turn. Where the operations touch is fixed so that most of them overlap:
//!
//! ```text
//!   block    0     1     2     3     4     5  …  11
//!   S              ·▪····                            small: one sector inside a block
//!   L                    ■■■■■■■■■■■■■■■■■           large: three blocks
//!   U                 ■■■■■■■■■■■■                   unaligned: half, whole, half
//!   F                    ■■■■■                       one block, FUA
//!   T              ×××××××××××                       trim
//!   Z                      000000                    write zeroes, unaligned
//!   R                          ┆ size ↔ twelve blocks: cut to three, or grown again
//!   N  snapshot     f  flush     Y  txg sync
//! ```
//!
//! Long ones are drawn from a seed: several clients at once, on two volumes.

use std::fmt;
use std::str::FromStr;

/// One operation of a client. Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Write { offset: u64, len: u64, fua: bool },
    Zero { offset: u64, len: u64, fua: bool },
    Trim { offset: u64, len: u64, fua: bool },
    Resize { size: u64 },
    Snapshot,
    Flush,
    Sync,
}

/// Blocks of a volume.
pub const BLOCKS: u64 = 12;
const BLOCKS_FEW: u64 = 3;
const SECTOR: u64 = 512;
/// Every letter but the flush.
const ALPHABET: &str = "SLUFTZRNY";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One client on the first volume, letter after letter.
    Word(String),
    /// Several clients, drawn from this seed.
    Random(u64),
}

impl Workload {
    /// All the words of up to `letters` letters around one flush.
    pub fn words(letters: usize) -> Vec<Workload> {
        let mut words = Vec::new();
        let mut stems = vec![String::new()];
        for len in 1..=letters {
            stems = stems.iter().flat_map(|s| ALPHABET.chars().map(move |c| format!("{s}{c}"))).collect();
            for stem in &stems {
                words.extend((1..=len).map(|at| Workload::Word(format!("{}f{}", &stem[..at], &stem[at..]))));
            }
        }
        words
    }
}

/// What a letter stands for, on a volume with blocks of so many bytes and this size by now.
pub fn act(letter: char, block: u64, size: u64) -> Option<Act> {
    let write = |offset, len| Act::Write { offset, len, fua: false };
    let act = match letter {
        'S' => write(block + SECTOR, SECTOR),
        'L' => write(2 * block, 3 * block),
        'U' => write(block + block / 2, 2 * block),
        'F' => Act::Write { offset: 2 * block, len: block, fua: true },
        'T' => Act::Trim { offset: block, len: 2 * block, fua: false },
        'Z' => Act::Zero { offset: 2 * block + SECTOR, len: block, fua: false },
        'R' if size > BLOCKS_FEW * block => Act::Resize { size: BLOCKS_FEW * block },
        'R' => Act::Resize { size: BLOCKS * block },
        'N' => Act::Snapshot,
        'f' => Act::Flush,
        'Y' => Act::Sync,
        _ => return None,
    };
    Some(act.clipped(size))
}

impl Act {
    /// As much of it as lies inside of a volume; its length may become 0.
    pub fn clipped(self, size: u64) -> Act {
        let clip = |offset: u64, len: u64| len.min(size.saturating_sub(offset));
        match self {
            Act::Write { offset, len, fua } => Act::Write { offset, len: clip(offset, len), fua },
            Act::Zero { offset, len, fua } => Act::Zero { offset, len: clip(offset, len), fua },
            Act::Trim { offset, len, fua } => Act::Trim { offset, len: clip(offset, len), fua },
            other => other,
        }
    }

    /// Draws one for a client of a long workload.
    pub fn draw(rng: &mut sim::Rng, block: u64, size: u64) -> Act {
        let fua = rng.below(4) == 0;
        let (offset, len) = range(rng, block, size);
        match rng.below(100) {
            0..=59 => Act::Write { offset, len, fua },
            60..=67 => Act::Trim { offset, len, fua },
            68..=75 => Act::Zero { offset, len, fua },
            76..=94 => Act::Flush,
            95 | 96 => Act::Sync,
            97 => Act::Snapshot,
            98 => Act::Resize { size: (1 + rng.below(2 * BLOCKS)) * block },
            _ => Act::Write { offset: 0, len: size, fua },
        }
    }
}

fn range(rng: &mut sim::Rng, block: u64, size: u64) -> (u64, u64) {
    let at = rng.below(size);
    let (offset, len) = match rng.below(4) {
        0 => (at / block * block, block),
        1 => (at / block * block, block * (1 + rng.below(4))),
        2 => (at / SECTOR * SECTOR, SECTOR * (1 + rng.below(16))),
        _ => (at, 1 + rng.below(3 * block)),
    };
    (offset, len.min(size - offset))
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Word(word) => f.write_str(word),
            Workload::Random(seed) => write!(f, "{seed}"),
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        if let Ok(seed) = text.parse() {
            return Ok(Workload::Random(seed));
        }
        let unknown = text.chars().find(|&c| act(c, SECTOR, SECTOR).is_none());
        match unknown {
            None if !text.is_empty() => Ok(Workload::Word(text.to_string())),
            _ => Err(format!("'{text}' is no workload: a word of {ALPHABET}f, or a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_all_there_each_once_with_one_flush() {
        let words: std::collections::BTreeSet<String> =
            Workload::words(3).iter().map(Workload::to_string).collect();
        assert_eq!(words.len(), 9 + 2 * 81 + 3 * 729);
        assert!(words.iter().all(|w| w.matches('f').count() == 1 && !w.starts_with('f')));
        assert!(words.contains("UfTR") && words.contains("NNNf"));
        for word in ["SfL", "17"] {
            assert_eq!(word.parse::<Workload>().map(|w| w.to_string()), Ok(word.into()));
        }
        assert!("SxL".parse::<Workload>().is_err() && "".parse::<Workload>().is_err());
    }
}
