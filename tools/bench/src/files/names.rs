//! A source tree: unpacked, searched, looked at and removed, by the programs that people use for it.
//!
//! ```text
//!   tar -xf ─▶ find, cold ─▶ find, warm ─▶ stat of every file, cold ─▶ rm -r
//!   and sync                                                          and sync
//! ```

use super::peers::{Peer, Slot};
use super::{Options, Sample, everywhere, source_tree};
use crate::Progress;
use crate::programs::{Stop, run};
use std::path::Path;
use std::time::Instant;
use units::{Error, Kind, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Untar,
    Find { cold: bool },
    Stat,
    Remove,
}

const WORKS: [Work; 5] =
    [Work::Untar, Work::Find { cold: true }, Work::Find { cold: false }, Work::Stat, Work::Remove];

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Work::Untar => "untar, sync",
            Work::Find { cold: true } => "find, cold",
            Work::Find { cold: false } => "find, warm",
            Work::Stat => "stat of every file, cold",
            Work::Remove => "rm -r, sync",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub work: Work,
    /// For each of the places, one a round; their operations are the names.
    pub samples: Vec<Vec<Sample>>,
}

pub(super) fn measure(
    slots: &mut [Slot],
    options: &Options,
    scratch: &Path,
    stop: &Stop,
    progress: Progress,
) -> Result<Vec<Row>> {
    let tar = match &options.tar {
        Some(tar) => tar.clone(),
        None => {
            let tar = scratch.join("tree.tar");
            let failed = |e| Error::new(Kind::Io, "write").at(tar.display()).because(e);
            let bytes = source_tree::write(&tar, options.files).map_err(failed)?;
            progress(&format!("a source tree of {} files, {}", options.files, units::pretty_size(bytes)));
            tar
        }
    };
    let names = run(stop, "tar", &["-tf", &tar.display().to_string()])?.lines().count() as u64;
    let mut rows = WORKS.map(|work| Row { work, samples: vec![Vec::new(); slots.len()] });
    for round in 1..=options.rounds {
        for row in &mut rows {
            if stop.is_over() {
                break;
            }
            progress(&format!("{}, round {round}", row.work.name()));
            let job = Job { work: row.work, tar: &tar, names };
            everywhere(slots, stop, &mut row.samples, |peer| job.run(peer, stop))?;
        }
    }
    Ok(rows.into())
}

struct Job<'a> {
    work: Work,
    tar: &'a Path,
    names: u64,
}

impl Job<'_> {
    fn run(&self, peer: &mut dyn Peer, stop: &Stop) -> Result<Sample> {
        let root = peer.root().join("source");
        let at = root.display().to_string();
        let failed = |e: std::io::Error| Error::new(Kind::Io, self.work.name()).at(&at).because(e);
        let mut files = Vec::new();
        match self.work {
            Work::Untar => std::fs::create_dir(&root).map_err(failed)?,
            Work::Find { cold: true } => peer.cold(stop)?,
            Work::Stat => {
                files = run(stop, "find", &[&at])?.lines().map(String::from).collect();
                peer.cold(stop)?;
            }
            Work::Find { cold: false } | Work::Remove => {}
        }
        let (cpu, begun) = (peer.cpu(), Instant::now());
        let mut found = self.names;
        match self.work {
            Work::Untar => {
                run(stop, "tar", &["-xf", &self.tar.display().to_string(), "-C", &at])?;
                sync(peer.root()).map_err(failed)?;
            }
            // The caller has made a directory for it.
            Work::Find { .. } => found = run(stop, "find", &[&at])?.lines().count() as u64 - 1,
            Work::Stat => {
                for file in &files {
                    std::fs::symlink_metadata(file).map_err(failed)?;
                }
                found = files.len() as u64 - 1;
            }
            Work::Remove => {
                run(stop, "rm", &["-r", &at])?;
                sync(peer.root()).map_err(failed)?;
            }
        }
        let elapsed = begun.elapsed();
        let cpu = peer.cpu().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        // A tar may name no directories, or one file twice; but it has none that is not there.
        if found == 0 || self.names > 0 && found < self.names / 2 {
            return Err(failed(std::io::Error::other(format!("{found} names of {}", self.names))));
        }
        Ok(Sample { bytes: 0, ops: found, elapsed, cpu })
    }
}

/// All of a file system.
fn sync(root: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(std::fs::File::open(root)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Loses what was unpacked when it is mounted anew, if it is `bad`.
    struct Plain {
        root: PathBuf,
        bad: bool,
    }

    impl Peer for Plain {
        fn root(&self) -> &Path {
            &self.root
        }

        fn cold(&mut self, _: &Stop) -> Result<()> {
            if self.bad {
                std::fs::remove_dir_all(self.root.join("source/tree")).unwrap();
            }
            Ok(())
        }

        fn cpu(&self) -> Option<Duration> {
            None
        }
    }

    #[test]
    fn a_tree_comes_and_goes_and_who_loses_it_is_found_out() {
        let dir = std::env::temp_dir().join(format!("cenote-names-{}", std::process::id()));
        let mut slots = Vec::new();
        for (name, bad) in [("good", false), ("bad", true)] {
            let root = dir.join(name);
            std::fs::create_dir_all(&root).unwrap();
            slots.push(Slot { name, peer: Ok(Box::new(Plain { root, bad })) });
        }
        let options = Options { files: 40, ..Options::default() };
        let stop = Stop::after(Duration::from_secs(600));
        let rows = measure(&mut slots, &options, &dir, &stop, |_| ()).unwrap();
        for row in &rows {
            // 40 files in 4 directories in one in one.
            assert_eq!(row.samples[0][0].ops, 46, "{row:?}");
        }
        assert_eq!(rows.iter().map(|row| row.samples[1].len()).collect::<Vec<_>>(), [1, 0, 0, 0, 0]);
        assert!(slots[1].peer.as_ref().err().unwrap().contains("names of 46"));
        assert!(!dir.join("good/source").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
