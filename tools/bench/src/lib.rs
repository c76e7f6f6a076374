//! What the engine costs, beside what the bare file costs.
//!
//! ```text
//!   cell ── raw file ┐ the same size, pattern and depth, one after the other, several rounds
//!        └─ engine   ┘ ─▶ medians, and their ratio
//! ```
//!
//! Machines are shared and noisy, so no throughput stands alone: each is printed with the figure of the bare file from the
//! same rounds, and with CPU seconds per GiB, which drift least. Cold means that the pool was exported and opened again with
//! an empty cache; the file's pages are dropped by reading past them with O_DIRECT where the file system has it.

mod cell;
mod rig;
mod table;

pub use cell::{Cell, Figure};
pub use table::render;

use rig::Rig;
use std::path::Path;
use units::Result;

/// How long and how large.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes written and read by each sequential cell.
    pub size: u64,
    /// Seconds of each random cell.
    pub seconds: u64,
    pub rounds: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { size: 512 << 20, seconds: 2, rounds: 3 }
    }
}

/// Runs every cell with its files in `dir`, telling `progress` what comes next.
pub async fn engine(dir: &Path, options: Options, progress: impl Fn(&str)) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for block in [16 << 10, 128 << 10, 1 << 20] {
        let rig = Rig::new(dir, options, vdev::Layout::Stripe, block, "off").await?;
        cells.extend(rig.sequential(&progress).await?);
    }
    for block in [4 << 10, 16 << 10] {
        let rig = Rig::new(dir, options, vdev::Layout::Stripe, block, "off").await?;
        cells.extend(rig.random(&progress).await?);
    }
    for compression in ["lz4", "zstd-3"] {
        let rig = Rig::new(dir, options, vdev::Layout::Stripe, 128 << 10, compression).await?;
        cells.extend(rig.write_only(&format!("write+sync {compression}"), &progress).await?);
    }
    for (name, layout) in [
        ("mirror", vdev::Layout::Mirror),
        ("raidz1", vdev::Layout::Raidz { parity: 1 }),
        ("raidz2", vdev::Layout::Raidz { parity: 2 }),
    ] {
        let rig = Rig::new(dir, options, layout, 128 << 10, "off").await?;
        cells.extend(rig.write_only(&format!("write+sync {name}"), &progress).await?);
    }
    Ok(cells)
}
