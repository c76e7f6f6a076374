//! Which features a new pool gets. Pure.

use api::{ApiError, ErrorKind, Result};
use ondisk::Feature;
use ondisk::feature::{
    DEFAULT_COMPATIBILITY, Support, compatibility_names, compatibility_set, features_of_list,
};
use std::collections::BTreeSet;

/// The features of `compatibility` (by default what OpenZFS 2.1 and later import), as changed by `feature@NAME`, with
/// all they depend on.
pub(crate) fn choose(
    compatibility: Option<&str>,
    none_by_default: bool,
    wishes: &[(String, bool)],
    read: impl Fn(&str) -> std::io::Result<String>,
) -> Result<Vec<Feature>> {
    let mut chosen = match none_by_default {
        true => BTreeSet::new(),
        false => of_property(compatibility.unwrap_or(DEFAULT_COMPATIBILITY), read)?,
    };
    // A feature that this program cannot keep up does no harm while nothing uses it.
    chosen.retain(|f| f.info().support == Support::ReadWrite || !f.info().activate_on_enable);
    for (name, enable) in wishes {
        let feature = Feature::by_name(name)
            .ok_or_else(|| ApiError::new(ErrorKind::Invalid, format!("invalid feature '{name}'")))?;
        match enable {
            true => drop(chosen.insert(feature)),
            false => drop(chosen.remove(&feature)),
        }
    }
    // Until nothing new is needed: dependencies have dependencies.
    loop {
        let needed: Vec<Feature> =
            chosen.iter().flat_map(|f| f.info().dependencies.iter().copied()).collect();
        let before = chosen.len();
        chosen.extend(needed);
        if chosen.len() == before {
            return Ok(chosen.into_iter().collect());
        }
    }
}

/// A list of sets and files means what all of them have in common.
fn of_property(value: &str, read: impl Fn(&str) -> std::io::Result<String>) -> Result<BTreeSet<Feature>> {
    let mut common: Option<BTreeSet<Feature>> = None;
    for word in value.split(',') {
        let features = match compatibility_set(word) {
            Some(features) => features,
            None if word.starts_with('/') => of_file(word, &read)?,
            None => return Err(unknown(word)),
        };
        common = Some(match common {
            Some(common) => common.intersection(&features).copied().collect(),
            None => features,
        });
    }
    Ok(common.unwrap_or_default())
}

fn of_file(path: &str, read: impl Fn(&str) -> std::io::Result<String>) -> Result<BTreeSet<Feature>> {
    let failed = |e: &dyn std::fmt::Display| {
        ApiError::new(ErrorKind::Invalid, format!("bad property value 'compatibility={path}': {e}"))
    };
    let text = read(path).map_err(|e| failed(&e))?;
    features_of_list(&text).map_err(|e| failed(&e))
}

fn unknown(word: &str) -> ApiError {
    let known: Vec<&str> =
        compatibility_names().filter(|n| n.starts_with("openzfs-") && n.ends_with("-linux")).collect();
    let message = format!(
        "bad property value 'compatibility={word}': it is off, legacy, a file, or one of {}",
        known.join(" ")
    );
    ApiError::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_files(_: &str) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    #[test]
    fn a_new_pool_has_what_openzfs_2_1_imports() {
        let features = choose(None, false, &[], no_files).unwrap();
        assert!(features.contains(&Feature::LargeBlocks));
        assert!(!features.contains(&Feature::Blake3), "2.2 brought it");
        assert_eq!(choose(None, true, &[], no_files).unwrap(), []);
        assert_eq!(choose(Some("legacy"), false, &[], no_files).unwrap(), []);
    }

    #[test]
    fn wishes_bring_what_they_depend_on() {
        let features = choose(None, true, &[("large_blocks".into(), true)], no_files).unwrap();
        assert_eq!(features, [Feature::ExtensibleDataset, Feature::LargeBlocks]);
        let without = choose(None, false, &[("zstd_compress".into(), false)], no_files).unwrap();
        assert!(!without.contains(&Feature::ZstdCompress));
        assert!(choose(None, false, &[("nonsense".into(), true)], no_files).is_err());
    }

    #[test]
    fn files_and_sets_are_intersected() {
        let read = |_: &str| Ok("lz4_compress, large_blocks # and no more\n".to_string());
        let features = choose(Some("openzfs-2.1-linux,/etc/mine"), false, &[], read).unwrap();
        assert!(features.contains(&Feature::Lz4Compress) && !features.contains(&Feature::ZstdCompress));
        let error = choose(Some("openzfs-9"), false, &[], no_files).unwrap_err();
        assert!(error.message.contains("it is off, legacy, a file, or one of openzfs-2.0-linux"), "{error}");
    }
}
