//! The words after `cenote bench filesync` and `cenote bench sync`.

use crate::filesync;
use crate::sync;
use std::path::PathBuf;

pub const FILESYNC_USAGE: &str = "\
usage: cenote bench filesync PATH N [--streams K]                 on any mounted path
       cenote bench filesync --pool POOL/VOLUME N [--streams K]   on a volume; its content stays as it is
       cenote bench filesync --array N [--streams K]              on the model of an array with a battery, with flushes
                                                                  and with zfs_nocacheflush";
pub const SYNC_USAGE: &str = "\
usage: cenote bench sync [DIR] [--blocks 4K,16K,128K] [--depths 1,8,32,128] [--seconds S] [--rounds R] [--files N]";

/// Where the filesync loop is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Path(PathBuf),
    Volume(String),
    Array,
}

/// What `cenote bench filesync` was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesync {
    pub place: Place,
    pub options: filesync::Options,
}

/// What `cenote bench sync` was asked for.
#[derive(Clone, Debug)]
pub struct Sync {
    pub dir: PathBuf,
    pub options: sync::Options,
}

/// More writers than this tell nothing more.
const STREAMS_MAX: u64 = 4096;

/// Reads them; `None` when they make no sense.
pub fn filesync(words: &[&str]) -> Option<Filesync> {
    let (mut plain, mut streams, mut volume, mut is_array) = (Vec::new(), 1, None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--streams" => streams = words.next()?.parse().ok()?,
            "--pool" => volume = Some(words.next()?.to_string()),
            "--array" => is_array = true,
            other if other.starts_with("--") => return None,
            other => plain.push(other),
        }
    }
    let (place, count) = match (volume, is_array, &plain[..]) {
        (None, false, [path, count]) => (Place::Path(path.into()), count),
        (Some(volume), false, [count]) => (Place::Volume(volume), count),
        (None, true, [count]) => (Place::Array, count),
        _ => return None,
    };
    let count = count.parse().ok().filter(|n| *n > 0)?;
    let streams = Some(streams).filter(|n| (1..=STREAMS_MAX).contains(n))? as usize;
    Some(Filesync { place, options: filesync::Options { count, streams } })
}

/// Reads them; `None` when they make no sense.
pub fn sync(words: &[&str]) -> Option<Sync> {
    let mut options = sync::Options::default();
    let mut dir = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seconds" => options.seconds = words.next()?.parse().ok().filter(|s| *s > 0.0)?,
            "--rounds" => options.rounds = words.next()?.parse().ok().filter(|n| *n > 0)?,
            "--files" => options.files = words.next()?.parse().ok()?,
            "--blocks" => options.blocks = list(words.next()?, |w| units::parse_size(w).ok())?,
            "--depths" => options.depths = list(words.next()?, |w| w.parse().ok())?,
            other if other.starts_with("--") || dir.is_some() => return None,
            other => dir = Some(PathBuf::from(other)),
        }
    }
    Some(Sync { dir: dir.unwrap_or_else(std::env::temp_dir), options })
}

/// `a,b,c`; nothing that is 0 makes sense.
fn list<T: Default + PartialEq>(words: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    words.split(',').map(|word| parse(word).filter(|value| *value != T::default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn the_loop_runs_in_one_place() {
        let parsed = |line| filesync(&words(line)).map(|f| (f.place, f.options.count, f.options.streams));
        assert_eq!(parsed("/tmp 1000"), Some((Place::Path("/tmp".into()), 1000, 1)));
        assert_eq!(parsed("--streams 4 /tmp 10"), Some((Place::Path("/tmp".into()), 10, 4)));
        assert_eq!(parsed("--pool tank/v 10"), Some((Place::Volume("tank/v".into()), 10, 1)));
        assert_eq!(parsed("--array 10 --streams 8"), Some((Place::Array, 10, 8)));
        let wrong = ["", "/tmp", "/tmp 0", "/tmp x", "/tmp 1 --streams 0", "--array --pool a 1", "/tmp 1 2"];
        wrong.iter().for_each(|line| assert_eq!(parsed(line), None, "{line}"));
    }

    #[test]
    fn the_table_takes_a_directory_and_how_long() {
        let parsed = sync(&words("/d --seconds 0.5 --rounds 2 --files 9")).unwrap();
        assert_eq!(parsed.dir, PathBuf::from("/d"));
        assert_eq!((parsed.options.seconds, parsed.options.rounds, parsed.options.files), (0.5, 2, 9));
        let few = sync(&words("--blocks 4K,1M --depths 1 --files 0")).unwrap().options;
        assert_eq!((few.blocks, few.depths, few.files), (vec![4 << 10, 1 << 20], vec![1], 0));
        assert!(sync(&words("--blocks 4K,")).is_none() && sync(&words("--depths 0")).is_none());
        assert!(sync(&words("")).is_some());
        assert!(sync(&words("--rounds 0")).is_none() && sync(&words("a b")).is_none());
    }
}
