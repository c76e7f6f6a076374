//! The second level of the cache, on flash.

mod chain;
mod ring;

pub use chain::{Chain, Source, decode_header, decode_log, header_size, read_header};
pub use ring::Ring;
