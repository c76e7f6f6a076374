//! What is asked for.

use std::path::PathBuf;
use units::ObjectId;

/// See the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectArgs {
    pub what: What,
    /// Where devices are looked for; the current directory if there is none.
    pub dirs: Vec<PathBuf>,
    pub json: bool,
    /// Exact numbers in text; JSON always has them.
    pub exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Labels {
        device: PathBuf,
    },
    Uberblocks {
        device: PathBuf,
    },
    /// A cache device.
    Cache {
        device: PathBuf,
    },
    /// A pool by name or guid.
    Mos {
        pool: String,
    },
    Objects {
        dataset: String,
    },
    Blocks {
        dataset: String,
        object: ObjectId,
    },
    Block {
        dataset: String,
        object: ObjectId,
        level: u8,
        blkid: u64,
    },
    Log {
        dataset: String,
    },
    Verify {
        pool: String,
    },
}

impl InspectArgs {
    pub fn new(what: What) -> InspectArgs {
        InspectArgs { what, dirs: Vec::new(), json: false, exact: false }
    }
}
