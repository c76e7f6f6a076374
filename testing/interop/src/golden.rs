//! The golden pools: images made by a real OpenZFS kernel, and what it said is in them.
//!
//! The repository holds as many of them as fit into its 25 MB: `testing/golden/README.md` says which and how they were
//! made smaller. The directory of the full set, unpacked, is named by `CENOTE_GOLDEN_FULL` in the environment; then
//! all pools are taken from there.

use std::io;
use std::path::{Path, PathBuf};

use crate::archive::{committed, unpacked};
use crate::{Scratch, copy_sparse};

/// The variable that names the directory of the full set.
pub const FULL_SET: &str = "CENOTE_GOLDEN_FULL";

/// How much of a pool is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The images to the byte.
    Whole,
    /// Zeros where no block pointer leads.
    Live,
    /// The labels alone.
    Labels,
    /// Only in the full set.
    Not,
}

/// Every golden pool, the archive it is in, and how much of it.
pub const POOLS: &[(&str, &str, Kept)] = &[
    ("aux", "pools", Kept::Whole),
    ("basic", "pools", Kept::Live),
    ("ckpt", "pools", Kept::Whole),
    ("dr", "pools", Kept::Labels),
    ("dsl", "pools", Kept::Live),
    ("enc", "", Kept::Not),
    ("gang", "pools", Kept::Whole),
    ("gpt", "pools", Kept::Whole),
    ("grub", "pools", Kept::Live),
    ("leak", "pools", Kept::Live),
    ("matrix", "matrix", Kept::Whole),
    ("mir2", "pools", Kept::Live),
    ("nofeat", "pools", Kept::Live),
    ("rmv", "pools", Kept::Whole),
    ("rz1", "pools", Kept::Live),
    ("rz2", "pools", Kept::Live),
    ("rzx", "pools", Kept::Labels),
    ("snd", "pools", Kept::Live),
    ("st", "pools", Kept::Live),
    ("v1", "pools", Kept::Live),
    ("v28", "pools", Kept::Live),
    ("zila", "pools", Kept::Whole),
    ("zilb", "pools", Kept::Whole),
    ("zilc", "", Kept::Not),
    ("zvol", "pools", Kept::Live),
];

/// The images of one pool. They are shared: copy before writing.
#[derive(Clone, Debug)]
pub struct Pool {
    pub name: String,
    pub images: Vec<PathBuf>,
}

/// Whether [`pool`] would find it.
pub fn is_available(name: &str) -> bool {
    full_set().is_some_and(|directory| !images_in(&directory, name).is_empty())
        || POOLS.iter().any(|(pool, archive, _)| *pool == name && !archive.is_empty())
}

/// The images of a pool, unpacked if they are not yet.
///
/// # Panics
/// When there are none: then the test does not say that it needs them.
pub fn pool(name: &str) -> Pool {
    let directory = match full_set() {
        Some(directory) => Ok(directory),
        None => archive_of(name).and_then(unpacked),
    };
    let directory = directory.unwrap_or_else(|e| panic!("golden pool {name}: {e}"));
    let images = images_in(&directory, name);
    assert!(!images.is_empty(), "{} holds no image of {name}", directory.display());
    Pool { name: name.to_owned(), images }
}

fn archive_of(name: &str) -> io::Result<&'static str> {
    let found = POOLS.iter().find(|(pool, archive, _)| *pool == name && !archive.is_empty());
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("not committed; {FULL_SET} has it"));
    found.map(|(_, archive, _)| *archive).ok_or_else(missing)
}

fn full_set() -> Option<PathBuf> {
    std::env::var_os(FULL_SET).map(PathBuf::from)
}

/// `NAME.img` or `NAME-….img`.
fn images_in(directory: &Path, name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut images: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| belongs(path, name)).collect();
    images.sort();
    images
}

fn belongs(path: &Path, name: &str) -> bool {
    let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let Some(rest) = file.strip_prefix(name).and_then(|rest| rest.strip_suffix(".img")) else {
        return false;
    };
    rest.is_empty() || rest.starts_with('-')
}

impl Pool {
    /// Copies the images into a scratch directory, where they may be written; all but those named, without `.img`.
    ///
    /// # Panics
    /// When the copy fails.
    pub fn copy(&self, scratch: &Scratch, without: &[&str]) -> Vec<PathBuf> {
        let stem = |image: &Path| image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let kept = self.images.iter().filter(|image| !without.contains(&stem(image).as_str()));
        kept.map(|image| {
            let copy = scratch.join(image.file_name().expect("an image has a name"));
            copy_sparse(image, &copy).unwrap_or_else(|e| panic!("{}: {e}", image.display()));
            copy
        })
        .collect()
    }
}

/// A volume or a snapshot of one, as the real kernel read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// `pool/path`, or `pool/path@snapshot`.
    pub name: String,
    pub size: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// The volumes of a pool by its manifest; none when it has none.
///
/// # Panics
/// When the manifest is malformed.
pub fn volumes(pool: &str) -> Vec<Volume> {
    let text = std::fs::read_to_string(committed(&format!("manifest/{pool}/zvols.txt"))).unwrap_or_default();
    text.lines()
        .map(|line| volume(line).unwrap_or_else(|| panic!("{line:?} is not NAME SIZE SHA256")))
        .collect()
}

/// A file of a pool's manifest.
///
/// # Panics
/// When there is none.
pub fn manifest(pool: &str, file: &str) -> String {
    let path = committed(&format!("manifest/{pool}/{file}"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn volume(line: &str) -> Option<Volume> {
    let [name, size, sha256] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some(Volume { name: name.to_owned(), size: size.parse().ok()?, sha256: sha256.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn images_of_a_pool_are_told_by_their_names() {
        assert!(belongs(Path::new("/g/rz1-0.img"), "rz1") && belongs(Path::new("/g/zvol.img"), "zvol"));
        assert!(!belongs(Path::new("/g/zila.img"), "zil") && !belongs(Path::new("/g/rz1-0.tar"), "rz1"));
    }

    #[test]
    fn manifests_of_volumes_are_read() {
        let volumes = volumes("zvol");
        assert_eq!(volumes.len(), 10);
        let big = volumes.iter().find(|volume| volume.name == "zvol/big").unwrap();
        assert_eq!((big.size, &big.sha256[..8]), (1 << 30, "c4f53a30"));
        assert!(super::volumes("v1").is_empty());
    }

    /// A label begins at byte 16 KiB of an image with the nvlist's encoding: the archive was unpacked to sense.
    #[test]
    fn every_committed_pool_unpacks_to_images_with_labels() {
        for (name, _, kept) in POOLS.iter().filter(|(_, _, kept)| *kept != Kept::Not) {
            let pool = pool(name);
            for image in &pool.images {
                // A whole disk has its label inside a partition.
                let at = if *name == "gpt" { (1 << 20) + (16 << 10) } else { 16 << 10 };
                let mut bytes = [0; 4];
                std::fs::File::open(image).unwrap().read_exact_at(&mut bytes, at).unwrap();
                // XDR encoding, little-endian host.
                assert_eq!(bytes, [1, 1, 0, 0], "{} ({kept:?})", image.display());
            }
        }
    }
}
