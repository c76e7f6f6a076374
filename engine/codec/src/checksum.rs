//! Checksums of blocks: data in, four words out, as a block pointer carries them.
//!
//! A pointer's words are numbers, kept on disk in the byte order of the writing host. The functions differ
//! in what the writer's order means to them:
//!
//! ```text
//!   fletcher2, fletcher4       data is read as words in the writer's order; the sums are the words
//!   sha256                     the digest is cut into big-endian words, on every host
//!   sha512 skein edonr blake3  the digest is cut into words in the writer's order
//!   off, noparity              four zeros
//! ```
//!
//! Skein, Edon-R and BLAKE3 are keyed by the pool's salt. Preparing the keys costs a few hash blocks, so a
//! [`Checksummer`] is made once per pool and shared by all readers and writers.
//!
//! Labels, gang headers and log blocks carry their checksum inside: see [`sealed`]. Encrypted blocks give half of
//! their words to the MAC: see [`mac`].

mod edonr;
mod fletcher2;
mod fletcher4;
pub mod mac;
pub mod sealed;
mod skein;

use sha2::Digest;
use units::{Checksum, Endian};

/// The four words of a checksum.
pub type Words = [u64; 4];

/// The pool's secret for keyed checksums, from the MOS.
#[derive(Clone)]
pub struct Salt(pub [u8; 32]);

impl std::fmt::Debug for Salt {
    /// An attacker with the salt can forge blocks that collide; it does not go into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt(..)")
    }
}

/// Computes checksums for one pool.
pub struct Checksummer {
    salt: Salt,
    skein: skein::Keyed,
    edonr: edonr::Pipe,
}

impl std::fmt::Debug for Checksummer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Checksummer(..)")
    }
}

impl Checksummer {
    pub fn new(salt: &Salt) -> Checksummer {
        Checksummer {
            salt: salt.clone(),
            skein: skein::Keyed::new(&salt.0, 256),
            edonr: edonr::Pipe::keyed(&salt.0),
        }
    }

    /// For the time before the salt has been read: labels and the pool's own metadata do not need it. Keyed
    /// checksums computed by this one match no pool's.
    pub fn unsalted() -> Checksummer {
        Checksummer::new(&Salt([0; 32]))
    }

    /// The words of `data`, written by a machine of order `endian`. Self-contained kinds are computed over the
    /// bytes as they are; [`sealed`] puts the verifier in place first.
    pub fn compute(&self, kind: Checksum, endian: Endian, data: &[u8]) -> Words {
        match kind {
            Checksum::Off | Checksum::NoParity => [0; 4],
            Checksum::Fletcher2 | Checksum::Zilog => fletcher2::compute(endian, data),
            Checksum::Fletcher4 | Checksum::Zilog2 => fletcher4::compute(endian, data),
            Checksum::Sha256 | Checksum::Label | Checksum::GangHeader => sha256(data),
            Checksum::Sha512 => words(endian, &sha2::Sha512_256::digest(data).into()),
            Checksum::Skein => words(endian, first_half(&self.skein.digest(data))),
            Checksum::EdonR => words(endian, first_half(&self.edonr.digest(data))),
            Checksum::Blake3 => words(endian, blake3::keyed_hash(&self.salt.0, data).as_bytes()),
        }
    }
}

fn first_half(digest: &[u8; 64]) -> &[u8; 32] {
    digest.first_chunk().expect("64 bytes have a first half")
}

fn sha256(data: &[u8]) -> Words {
    words(Endian::Big, &sha2::Sha256::digest(data).into())
}

fn words(endian: Endian, digest: &[u8; 32]) -> Words {
    let (words, _) = digest.as_chunks::<8>();
    std::array::from_fn(|i| read_u64(endian, words[i]))
}

pub(crate) fn read_u64(endian: Endian, bytes: [u8; 8]) -> u64 {
    match endian {
        Endian::Little => u64::from_le_bytes(bytes),
        Endian::Big => u64::from_be_bytes(bytes),
    }
}

fn write_u64(endian: Endian, value: u64) -> [u8; 8] {
    match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    }
}

#[cfg(test)]
mod tests;
