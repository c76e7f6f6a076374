//! Looking into a pool without touching it: what is on the devices, and whether all of it can be read.
//!
//! ```text
//!   labels DEVICE             the four labels and the configuration in them
//!   uberblocks DEVICE         the ring, newest first
//!   cache DEVICE              the header of a cache device, its logs, and the blocks that they tell of
//!   mos POOL                  the object directory and the objects of the pool's own set
//!   objects DATASET           the objects of a file system, volume or snapshot
//!   block DATASET OBJECT      the dnode and every block of one object
//!   block DATASET OBJECT N    the way from the root to one block, and from there to the bytes on each device
//!   log DATASET               the intent log: its blocks, and what every record says
//!   --verify POOL             reads and checks every block of every object, snapshots included
//! ```
//!
//! Each command gathers a [`Report`]: sections that are tables or trees. A report is written as aligned text or as JSON;
//! no command knows which. Everything is read afresh from the devices, which are opened for reading only.
//!
//! Not here: words on a command line, which are the program's (`cli`), and a terminal. The caller prints what it gets, and
//! shows progress if it likes.

mod args;
mod blocks;
mod cache_device;
mod devices;
mod find;
mod log;
mod objects;
mod report;
mod verify;

pub use args::{InspectArgs, What};
pub use report::{Cell, Column, Report, Section};

use std::sync::Arc;
use units::Result;

/// Told how many bytes are done, and of how many.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// What a command found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// To be printed as it is.
    pub text: String,
    /// Nothing is lost of what was looked at: else the program ends with a failure.
    pub is_sound: bool,
}

/// Runs one command.
pub async fn run(args: InspectArgs) -> Result<Output> {
    run_with(args, Arc::new(|_, _| ())).await
}

/// As [`run`], telling how far it is with what takes long.
pub async fn run_with(args: InspectArgs, progress: Progress) -> Result<Output> {
    let (report, is_sound) = match &args.what {
        What::Labels { device } => (devices::labels(device).await?, true),
        What::Uberblocks { device } => (devices::uberblocks(device).await?, true),
        What::Cache { device } => cache_device::report(device).await?,
        What::Mos { pool } => (objects::mos(&find::open(&args.dirs, pool).await?).await?, true),
        What::Objects { dataset } => {
            (objects::dataset(&find::open_pool_of(&args.dirs, dataset).await?, dataset).await?, true)
        }
        What::Blocks { dataset, object } => {
            (blocks::all(&find::open_pool_of(&args.dirs, dataset).await?, dataset, *object).await?, true)
        }
        What::Block { dataset, object, level, blkid } => {
            let pool = find::open_pool_of(&args.dirs, dataset).await?;
            (blocks::one(&pool, dataset, *object, *level, *blkid).await?, true)
        }
        What::Log { dataset } => {
            log::dataset(&find::open_pool_of(&args.dirs, dataset).await?, dataset).await?
        }
        What::Verify { pool } => verify::verify(&find::open(&args.dirs, pool).await?, progress).await?,
    };
    let text = if args.json { report.to_json() } else { report.to_text(args.exact) };
    Ok(Output { text, is_sound })
}
