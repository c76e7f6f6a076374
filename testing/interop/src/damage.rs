//! Damage that the real kernel has been seen to cope with, repeated to the byte.
//!
//! A run is 4 KiB that holds anything but zeros, outside the four labels. Runs are chosen and overwritten by the
//! random numbers of a seed, so that a seed and a number of runs name the damage.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::twister::Twister;

const RUN: usize = 4096;
/// The two labels at the front and the reserved space behind them, and a little more.
const FRONT: u64 = 0x48_0000;
/// The two labels at the end.
const BACK: u64 = 512 << 10;

/// Overwrites `count` of the runs of `image` that hold data; returns how many it was.
pub fn overwrite(image: &Path, seed: u64, count: usize) -> io::Result<usize> {
    let file = OpenOptions::new().read(true).write(true).open(image)?;
    let length = file.metadata()?.len();
    let mut runs = Vec::new();
    let mut run = vec![0; RUN];
    for at in (FRONT..length - BACK).step_by(RUN) {
        file.read_exact_at(&mut run, at)?;
        if run.iter().any(|byte| *byte != 0) {
            runs.push(at);
        }
    }
    let mut twister = Twister::new(seed);
    twister.shuffle(&mut runs);
    runs.truncate(count);
    for at in &runs {
        twister.fill(&mut run);
        file.write_all_at(&run, *at)?;
    }
    Ok(runs.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn only_runs_that_hold_data_and_are_no_labels_are_hit() {
        let scratch = Scratch::new();
        let image = scratch.join("image");
        let mut bytes = vec![0; 8 << 20];
        let (label, data, last) = (0, 6 << 20, (8 << 20) - 1);
        for at in [label, data, last] {
            bytes[at] = 1;
        }
        std::fs::write(&image, &bytes).unwrap();
        assert_eq!(overwrite(&image, 1, 400).unwrap(), 1);
        let hit = std::fs::read(&image).unwrap();
        let differs = |from: usize, to: usize| hit[from..to] != bytes[from..to];
        assert!(differs(data, data + RUN));
        assert!(!differs(0, data) && !differs(data + RUN, hit.len()));
    }
}
