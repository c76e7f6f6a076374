//! The power-cut proof over files: what was synced is there, and nothing is there that cannot be.
//!
//! A workload is a word: each letter is one operation on a few fixed names, chosen so that most of them meet.
//!
//! ```text
//!   /old  /other  /dir/x        what there is at first; the *subject* is /new if there is one, else /old, else /other
//!
//!   C create /new     W write in the subject    A append to it    S write in it, durably
//!   D write in it past the cache: parts of records and whole ones
//!   T truncate it     P punch a hole            O change its mode
//!   E set its extended attribute, small, then large, or remove it       N give it a list
//!   R rename /new over /old, or /old to /new    X exchange /old and /other
//!   L link it as dir/hard, or unlink that       U unlink it
//!   M make dir/sub, or remove it                V rename /dir to /moved, or back
//!   f fsync the subject    d fsync /    s sync the file system    Y sync the pool
//! ```
//!
//! After each cut the pool is imported, its log replayed, all files read, every block verified, and the tree held against
//! the [`Track`]: names are one sequence, of which some prefix is there; what a file holds is one sequence too, of that
//! file; and a file that was written and then renamed is never found without what was written. A change is whole or not
//! there; one of several blocks of a file, block by block in order.

mod case;
mod check;
mod client;
mod track;

pub use case::{FileCase, FileRunner};
pub use check::FoundFile;
pub use track::Track;

/// The letters that change something.
const ALPHABET: &str = "CWASDTPOENRXLUMV";
/// Those that promise something.
const PROMISES: &str = "fds";
/// And one more, the txg.
const SYNC: char = 'Y';

/// All the words of up to `letters` letters with one promise among them.
pub fn words(letters: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut stems = vec![String::new()];
    for len in 1..=letters {
        stems = stems.iter().flat_map(|s| ALPHABET.chars().map(move |c| format!("{s}{c}"))).collect();
        for (i, stem) in stems.iter().enumerate() {
            let promise = |at: usize| PROMISES.as_bytes()[(i + at) % PROMISES.len()] as char;
            words.extend((1..=len).map(|at| format!("{}{}{}", &stem[..at], promise(at), &stem[at..])));
        }
    }
    words
}

/// A long word, from a seed.
pub fn random_word(seed: u64) -> String {
    let mut rng = sim::Rng::new(seed);
    let letters: Vec<char> = format!("{ALPHABET}{ALPHABET}WAS{PROMISES}{PROMISES}{SYNC}").chars().collect();
    (0..30 + rng.below(30)).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_all_there_each_with_one_promise() {
        let all: std::collections::BTreeSet<String> = words(2).into_iter().collect();
        assert_eq!(all.len(), 16 + 2 * 256);
        let promises = |word: &String| word.chars().filter(|c| PROMISES.contains(*c)).count();
        assert!(all.iter().all(|word| promises(word) == 1 && ALPHABET.contains(&word[..1])));
        assert_eq!(random_word(3), random_word(3));
    }
}
