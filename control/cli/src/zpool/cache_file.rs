//! The cache file of OpenZFS, `zpool import -c`: which pools a machine had, and where their devices were.
//!
//! ```text
//!   packed nvlist   pool name ─▶ its configuration ─▶ pool_guid
//!                                                  └▶ vdev_tree ─▶ children … ─▶ path
//! ```
//!
//! Only names, numbers and paths are taken from it: what a pool is like is read from its devices.

use crate::session::{Failure, Outcome};
use ondisk::{NvList, NvValue};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

/// A cache file holds some kilobytes for each pool.
const LEN_MAX: u64 = 64 << 20;

/// What a cache file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CacheFile {
    pub guids: BTreeSet<u64>,
    /// Of devices that are there.
    pub paths: Vec<String>,
}

/// Reads a cache file.
///
/// # Errors
/// It cannot be read, is none, or none of the devices in it is there.
pub(super) fn read(file: &str) -> Outcome<CacheFile> {
    let failed = |why: String| Failure::Failed(format!("cannot read the cache file '{file}': {why}"));
    let mut bytes = Vec::new();
    let open = std::fs::File::open(file).map_err(|e| failed(e.to_string()))?;
    // A pipe does not say how much will come, and a device may have no end.
    open.take(LEN_MAX + 1).read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(failed(format!("it has more than {}", units::pretty_size(LEN_MAX))));
    }
    let list = NvList::decode(&bytes).map_err(|e| failed(e.to_string()))?;
    let mut found = of_list(&list);
    found.paths.retain(|path| Path::new(path).exists());
    match found.guids.is_empty() || !found.paths.is_empty() {
        true => Ok(found),
        false => Err(failed("none of the devices in it is there; say where they are with '-d'".into())),
    }
}

fn of_list(list: &NvList) -> CacheFile {
    let mut found = CacheFile::default();
    for (_, value) in list.iter() {
        let NvValue::List(config) = value else { continue };
        found.guids.extend(config.opt_u64("pool_guid").ok().flatten());
        if let Ok(Some(tree)) = config.opt_list("vdev_tree") {
            add_paths(tree, &mut found.paths);
        }
    }
    found
}

fn add_paths(vdev: &NvList, paths: &mut Vec<String>) {
    paths.extend(vdev.opt_str("path").ok().flatten().map(String::from));
    let children = vdev.opt_lists("children").ok().flatten().unwrap_or_default();
    children.iter().for_each(|child| add_paths(child, paths));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(guid: u64, paths: &[&str]) -> NvList {
        let leaf = |path: &&str| NvList::new().with("type", "disk").with("path", *path);
        let mirror = NvList::new()
            .with("type", "mirror")
            .with("children", NvValue::ListArray(paths.iter().map(leaf).collect()));
        let tree = NvList::new().with("type", "root").with("children", NvValue::ListArray(vec![mirror]));
        NvList::new().with("pool_guid", guid).with("vdev_tree", NvValue::List(tree))
    }

    #[test]
    fn what_has_no_end_is_no_cache_file() {
        let Failure::Failed(why) = read("/dev/zero").unwrap_err() else { panic!("it was read") };
        assert!(why.ends_with("it has more than 64M"), "{why}");
    }

    #[test]
    fn pools_and_the_places_of_their_devices_are_taken_from_a_cache_file() {
        let list = NvList::new()
            .with("tank", NvValue::List(config(7, &["/d/a", "/d/b"])))
            .with("lake", NvValue::List(config(8, &["/d/c"])))
            .with("odd", 1_u64);
        let found = of_list(&NvList::decode(&list.encode()).unwrap());
        assert_eq!(found.guids, BTreeSet::from([7, 8]));
        assert_eq!(found.paths, ["/d/a", "/d/b", "/d/c"]);
    }
}
