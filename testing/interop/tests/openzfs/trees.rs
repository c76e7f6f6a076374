//! File trees that OpenZFS wrote are, file by file, what its kernel said: names, kinds, modes, owners, times, link counts,
//! sizes, blocks, data, holes, targets and extended attributes, POSIX ACLs among them.
//!
//! Left out is what the kernel did not read from the file: the number that its `.zfs` gives the root of a snapshot, and the
//! root of an encrypted file system as seen in the directory that it was mounted on.

use std::collections::BTreeSet;

use crate::common::open;
use crate::common::tree::{Walk, compare};
use interop::golden;
use interop::harness::{Need, Trial, trial};
use interop::trees;

/// The pools with file systems that are committed and readable.
const POOLS: [&str; 18] = [
    "aux", "basic", "ckpt", "dsl", "gang", "gpt", "grub", "leak", "matrix", "mir2", "nofeat", "rz1", "rz2",
    "snd", "st", "v1", "v28", "zvol",
];
/// So many differences are shown.
const SHOWN: usize = 20;

pub fn trials() -> Vec<Trial> {
    let of = |pool: &'static str| {
        trial(format!("{pool}_holds_the_trees_that_openzfs_saw"), &[Need::Golden(pool)], move || equal(pool))
    };
    let mut trials: Vec<Trial> = POOLS.into_iter().map(of).collect();
    let dsl = [Need::Golden("dsl")];
    trials.push(trial(
        "names_are_found_by_the_spellings_that_their_file_system_takes_for_the_same",
        &dsl,
        spellings,
    ));
    trials
}

fn equal(name: &'static str) {
    let images = golden::pool(name).images;
    let wanted = trees::trees(name);
    assert!(!wanted.is_empty(), "{name} has trees");
    let differences = linux::block_on(async move {
        let pool = open(images, name, true).await.unwrap();
        let datasets: BTreeSet<String> = pool.dsl().descendants(name).await.unwrap().into_iter().collect();
        let mut differences = Vec::new();
        for tree in wanted {
            match pool.open_file_system(&tree.name).await {
                Ok(fs) => {
                    let found = Walk::of(&pool, &datasets, fs).await;
                    differences.extend(compare(&tree, found, &[]));
                }
                Err(e) if e.kind() == units::Kind::Encrypted => {
                    let dataset = pool.dsl().open_by_name(&tree.name).await.unwrap();
                    assert!(dataset.is_encrypted(), "{}", tree.name);
                }
                Err(e) => differences.push(format!("{}: {e}", tree.name)),
            }
        }
        pool.close().await.unwrap();
        differences
    });
    let shown = differences.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences, such as\n{shown}", differences.len());
}

/// `casesensitivity` and `normalization` decide which other spellings lead to a name.
fn spellings() {
    let images = golden::pool("dsl").images;
    linux::block_on(async move {
        let pool = open(images, "dsl", true).await.unwrap();
        let names = async |dataset: &str, path: &str| {
            let fs = pool.open_file_system(dataset).await.unwrap();
            let directory = fs.resolve(path.as_bytes(), true).await.unwrap();
            let entries = directory.list_all().await.unwrap();
            assert!(entries.len() >= 2, "{dataset}/{path}");
            let text = |name| String::from_utf8(name).unwrap();
            (directory, entries.into_iter().map(|entry| (text(entry.name), entry.object)).collect::<Vec<_>>())
        };
        // In capitals, and by a path that is in capitals from the root.
        let (directory, all) = names("dsl/ci", "/./dir//").await;
        for (name, object) in all {
            let found = directory.lookup(name.to_uppercase().as_bytes()).await.unwrap();
            assert_eq!(found.id().object, object);
        }
        let (directory, all) = names("dsl/cm", "").await;
        for (name, object) in &all {
            assert_eq!(directory.lookup(name.as_bytes()).await.unwrap().id().object, *object);
            let other = name.to_uppercase();
            let is_there = all.iter().any(|(name, _)| *name == other);
            assert_eq!(directory.entry(other.as_bytes()).await.unwrap().is_some(), is_there);
        }
        // An umlaut as one character, and as a letter with two dots.
        let (directory, all) = names("dsl/norm-formC", "dir").await;
        for (name, object) in all {
            let (one, two) = ("\u{fc}", "u\u{308}");
            assert!(name.contains(one) || name.contains(two), "{name}");
            for other in [name.replace(one, two), name.replace(two, one)] {
                assert_eq!(directory.lookup(other.as_bytes()).await.unwrap().id().object, object);
            }
        }
        pool.close().await.unwrap();
    });
}
