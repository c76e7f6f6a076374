//! The words after `cenote bench files`.

use std::path::PathBuf;
use std::time::Duration;
use units::parse_size;

pub const USAGE: &str = "\
usage: cenote bench files [DIR] [OPTION]...     files in DIR (the directory for temporary files); as root
  --minutes M        what does not fit is left out (3)
  --rounds N         whose medians are printed (1)
  --only LIST        of names, objects, large (all)
  --peers LIST       of cenote, ext4, xfs, btrfs, zfs-fuse, bindfs (all)
  --size BYTES       of the large file (256M)         --seconds S   of each of its rows (0.3)
  --streams N        that read and write it at random (8)
  --files N          of the source tree (6000)        --tar FILE    a source tree instead
  --objects DIR      where the pools of the object storage are (memory, if there is some)
  --zfs-fuse DIR     the root under which that package was unpacked
  --cenote PROGRAM   that serves (this one)";

const PARTS: [&str; 3] = ["names", "objects", "large"];

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub dir: PathBuf,
    pub limit: Duration,
    pub rounds: usize,
    /// Of the three parts; empty for all.
    pub only: Vec<String>,
    /// Of those that are compared; empty for all.
    pub peers: Vec<String>,
    pub size: u64,
    pub seconds: f64,
    pub streams: usize,
    pub files: u64,
    pub tar: Option<PathBuf>,
    pub objects: PathBuf,
    pub zfs_fuse: PathBuf,
    pub cenote: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        let memory = crate::place::default_dirs().swap_remove(0);
        Options {
            dir: std::env::temp_dir(),
            limit: Duration::from_secs(180),
            rounds: 1,
            only: Vec::new(),
            peers: Vec::new(),
            size: 256 << 20,
            seconds: 0.3,
            streams: 8,
            files: 6000,
            tar: None,
            objects: memory,
            zfs_fuse: "/".into(),
            cenote: std::env::current_exe().unwrap_or_else(|_| "cenote".into()),
        }
    }
}

impl Options {
    pub(super) fn has(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|p| p == part)
    }

    pub(super) fn compares(&self, peer: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|p| p == peer)
    }
}

/// Reads them; `None` when they make no sense.
pub fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options::default();
    let (mut dir, mut words) = (None, words.iter());
    let list = |words: &str, known: &[&str]| -> Option<Vec<String>> {
        words.split(',').map(|word| known.contains(&word).then(|| word.to_string())).collect()
    };
    let positive = |word: &str| word.parse::<f64>().ok().filter(|n| *n > 0.0 && *n < 1e6);
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            let path = PathBuf::from(word);
            if dir.replace(path).is_some() {
                return None;
            }
            continue;
        }
        let value = words.next()?;
        match *word {
            "--minutes" => options.limit = Duration::from_secs_f64(positive(value)? * 60.0),
            "--rounds" => options.rounds = value.parse().ok().filter(|n| *n > 0)?,
            "--only" => options.only = list(value, &PARTS)?,
            "--peers" => options.peers = list(value, &super::peers::NAMES)?,
            "--size" => options.size = parse_size(value).ok().filter(|n| (4 << 20..=1 << 40).contains(n))?,
            "--seconds" => options.seconds = positive(value)?,
            "--streams" => options.streams = value.parse().ok().filter(|n| (1..=256).contains(n))?,
            "--files" => options.files = value.parse().ok().filter(|n| (1..=1 << 24).contains(n))?,
            "--tar" => options.tar = Some(value.into()),
            "--objects" => options.objects = value.into(),
            "--zfs-fuse" => options.zfs_fuse = value.into(),
            "--cenote" => options.cenote = value.into(),
            _ => return None,
        }
    }
    options.dir = dir.unwrap_or(options.dir);
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Options> {
        parse(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn a_directory_what_and_how_long() {
        let asked =
            parsed("/d --minutes 1.5 --only large,names --peers cenote,ext4 --size 64M --tar /t").unwrap();
        assert_eq!((asked.dir, asked.limit), ("/d".into(), Duration::from_secs(90)));
        assert_eq!((asked.size, asked.tar), (64 << 20, Some("/t".into())));
        let asked = parsed("--only objects --peers zfs-fuse").unwrap();
        assert!(asked.has("objects") && !asked.has("large"));
        assert!(asked.compares("zfs-fuse") && !asked.compares("ext4"));
        assert!(parsed("").unwrap().has("large") && parsed("").unwrap().compares("xfs"));
        for nonsense in
            ["/a /b", "--only", "--only x", "--peers ntfs", "--size 1K", "--rounds 0", "--minutes -1"]
        {
            assert_eq!(parsed(nonsense), None, "{nonsense}");
        }
    }
}
