//! CHAP: who knows the secret proves it by the digest of a challenge. Pure.

// The crate `md-5` calls its library `md5`.
use crate::params::parse;
use md_5::Digest as _;
use md5 as md_5;
use std::fmt;

/// A name and the secret that goes with it. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub name: String,
    pub secret: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5 = 5,
    Sha256 = 7,
}

impl Algorithm {
    /// The first of the client's list that we have.
    pub fn choose(list: &str) -> Option<Algorithm> {
        list.split(',').find_map(|number| match parse(number.trim()) {
            Some(5) => Some(Algorithm::Md5),
            Some(7) => Some(Algorithm::Sha256),
            _ => None,
        })
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    /// The proof that one knows `secret`.
    pub fn respond(self, id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        let parts = [&[id][..], secret, challenge];
        match self {
            Algorithm::Md5 => md_5::Md5::digest(parts.concat()).to_vec(),
            Algorithm::Sha256 => sha2::Sha256::digest(parts.concat()).to_vec(),
        }
    }
}

/// Whether two byte strings are equal, in a time that does not tell where they differ.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |differs, (a, b)| std::hint::black_box(differs | (a ^ b)));
    a.len() == b.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_is_the_digest_of_id_secret_and_challenge() {
        let md5 = Algorithm::Md5.respond(b'a', b"b", b"c");
        assert_eq!(crate::text::as_hexadecimal(&md5), "0x900150983cd24fb0d6963f7d28e17f72");
        let sha = Algorithm::Sha256.respond(b'a', b"b", b"c");
        assert_eq!(sha[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert!(is_same(b"abc", b"abc") && !is_same(b"abc", b"abd") && !is_same(b"abc", b"ab"));
        assert_eq!(Algorithm::choose("6,7,5"), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::choose("6"), None);
    }
}
