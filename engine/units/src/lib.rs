//! The words everyone speaks: identifiers, sizes and the engine's one error shape.
//!
//! Sizes and addresses are types, so that adding bytes to sectors does not compile. A block has three sizes:
//!
//! ```text
//!   lsize   what the caller sees                 128 KiB
//!   psize   after compression, as checksummed     36 KiB
//!   asize   taken from the devices: parity, padding and gang headers included
//! ```
//!
//! Not here: what the bytes of a structure mean (`ondisk`), and anything that computes on them (`codec`).

mod algo;
mod error;
mod ids;
mod size;

pub use algo::{CHECKSUMS, Checksum, ChecksumRow, Compression, Endian, Strength, ZstdLevel};
pub use error::{Error, Kind, Result};
pub use ids::{Guid, ObjectId, ObjsetId, Txg, VdevId};
pub use size::{Asize, Lsize, Psize, SECTOR, SECTOR_SHIFT, Sectors, parse_size, pretty_size};

/// A hash map whose order depends only on its contents and history: the engine must replay exactly from a seed,
/// and the standard map draws its hash keys from the operating system.
#[allow(clippy::disallowed_types, reason = "this is what takes its place")]
pub type HashMap<K, V> = std::collections::HashMap<K, V, rustc_hash::FxBuildHasher>;
/// The set that goes with [`HashMap`].
#[allow(clippy::disallowed_types, reason = "this is what takes its place")]
pub type HashSet<K> = std::collections::HashSet<K, rustc_hash::FxBuildHasher>;
