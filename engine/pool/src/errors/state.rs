//! What a pool knows of its data errors while it is open, and what a listing of them is.

use crate::lock::lock;
use dsl::error_log::LoggedError;
use ondisk::BlockBookmark;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use units::{HashMap, ObjectId, ObjsetId, Txg};
use zio::Bookmark;

/// An object of which something is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// The file system, volume or snapshot by its full name; none of the pool's own metadata, or when it has no name.
    pub dataset: Option<String>,
    /// 0 is the pool's own.
    pub objset: ObjsetId,
    pub object: ObjectId,
    /// From the root of the file system on, with a slash before; of files that have a place in the tree.
    pub path: Option<String>,
    /// Of a volume, what is lost of its data: bytes, as offset and length, in order.
    pub ranges: Vec<(u64, u64)>,
}

/// What is known to be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataErrors {
    pub errors: Vec<DataError>,
    /// Blocks that `errors` are about.
    pub blocks: u64,
    /// Blocks that are not among them; some may be good again.
    pub more: u64,
}

/// See the module above. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    pub(super) state: Mutex<State>,
    pub(super) room: world::sync::Notify,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// To be logged.
    pub(super) met: BTreeMap<Bookmark, Txg>,
    /// To be taken out.
    pub(super) gone: BTreeSet<LoggedError>,
    /// Entries on disk.
    pub(super) logged: u64,
    /// Counts changes of all this.
    pub(super) version: u64,
    pub(super) births: HashMap<BlockBookmark, Txg>,
    pub(super) listed: Option<Memo>,
}

impl Errors {
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.state);
        state.version += 1;
        change(&mut state)
    }

    /// Whether something waits for the next txg.
    pub(super) fn is_waiting(&self) -> bool {
        let state = lock(&self.state);
        !state.met.is_empty() || !state.gone.is_empty()
    }
}

/// A listing, and what it was made of.
#[derive(Debug)]
pub(super) struct Memo {
    pub(super) version: u64,
    pub(super) txg: Txg,
    pub(super) errors: Arc<DataErrors>,
}
