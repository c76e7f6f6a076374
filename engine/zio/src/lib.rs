//! One block read or written.

mod mem;
mod store;

pub use mem::MemStore;
pub use store::{BlockStore, Bookmark, ReadClass, WriteSpec, same_block};
