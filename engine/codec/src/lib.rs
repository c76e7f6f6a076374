//! The arithmetic of the format: checksums, compression, parity and the hash of names.
//!
//! Everything here is a pure function on slices: no I/O, no waiting, no policy. Which algorithm a block uses is
//! decided above and arrives as [`units::Checksum`] or [`units::Compression`]; what comes back is four words, a
//! length, or columns of bytes.
//!
//! ```text
//!   write   bytes --compress--> fewer bytes --checksum--> words for the pointer
//!                                    |
//!                                 parity::generate --> columns for the devices
//!   read    columns --parity::reconstruct--> bytes --checksum--> same words? --decompress--> bytes
//! ```
//!
//! Invariants: what OpenZFS wrote decodes here and what is encoded here decodes there; a decoder survives any
//! input (it answers with an error, never with a panic, an overread or an allocation sized by the input); a
//! vectorised path gives the same bits as the plain one, which stays in place as its definition.
//!
//! Not here: where on a device anything lies (`vdev`), what the bytes mean (`ondisk`), encryption.

pub mod checksum;
pub mod compress;
mod cpu;
pub mod crc64;
pub mod parity;
#[cfg(test)]
mod testing;
mod zero;

pub use zero::{filled, is_zero};
