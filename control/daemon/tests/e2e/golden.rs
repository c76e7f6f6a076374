//! Pools that OpenZFS made, listed by our commands and by its own: line by line the same.
//!
//! What differs on purpose is named in [`OURS`]: properties of the import, not of the pool.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::{golden, root};
use std::path::PathBuf;

/// Pools whose listings by OpenZFS 2.3 are kept.
const POOLS: [&str; 1] = ["rz1"];
/// They are imported read-only here, from files, and mounted nowhere; and OpenZFS was asked before it exported them,
/// which frees some space.
const OURS: [&str; 11] = [
    "altroot",
    "readonly",
    "load_guid",
    "mounted",
    "free",
    "allocated",
    "fragmentation",
    "used",
    "available",
    "usedbychildren",
    "logicalused",
];

pub fn trials() -> Vec<Trial> {
    let of = |pool: &'static str| {
        trial(format!("{pool}_is_listed_as_openzfs_listed_it"), &[Need::Golden(pool)], move || listed(pool))
    };
    let mut trials: Vec<Trial> = POOLS.into_iter().map(of).collect();
    let needs = [Need::Golden("dsl"), Need::Golden("v28")];
    trials.push(trial("what_everybody_takes_is_shown_as_openzfs_showed_it", &needs, || {
        ["dsl", "v28"].into_iter().for_each(shared_out);
    }));
    trials
}

/// `zfs userspace`, `groupspace` and `projectspace` of every file system.
fn shared_out(pool: &str) {
    let home = Home::new();
    let devices =
        golden::pool(pool).images.iter().map(|i| format!(" -d {}", i.display())).collect::<String>();
    home.run(&format!("zpool import -o readonly=on -N{devices} {pool}"));
    let manifest: PathBuf = root().join("testing/golden/manifest").join(pool);
    let mut compared = 0;
    for file in std::fs::read_dir(&manifest).unwrap() {
        let name = file.as_ref().unwrap().file_name().into_string().unwrap();
        let Some(dataset) = name.strip_prefix("userspace.").and_then(|name| name.strip_suffix(".tsv")) else {
            continue;
        };
        let dataset = dataset.replace("__", "/");
        let shown: String = ["userspace -n", "groupspace -n", "projectspace"]
            .into_iter()
            .map(|command| home.run(&format!("zfs {command} -Hp {dataset}")))
            .collect();
        assert_eq!(shown, std::fs::read_to_string(file.unwrap().path()).unwrap(), "{dataset}");
        compared += 1;
    }
    assert!(compared > 2, "{compared} file systems of {pool}");
}

fn listed(pool: &str) {
    let home = Home::new();
    let devices =
        golden::pool(pool).images.iter().map(|i| format!(" -d {}", i.display())).collect::<String>();
    home.run(&format!("zpool import -o readonly=on -N{devices} {pool}"));
    let manifest: PathBuf = root().join("testing/golden/manifest").join(pool);
    let kept = |file: &str| std::fs::read_to_string(manifest.join(file)).unwrap();
    compare(&kept("zpool-get.tsv"), &home.run(&format!("zpool get -Hp all {pool}")));
    compare(&kept("zfs-get.tsv"), &home.run(&format!("zfs get -Hpr -t all all {pool}")));
    // That it was exported came after it was asked.
    let history = home.run(&format!("zpool history -il {pool}"));
    let lines: Vec<&str> = history.lines().collect();
    let kept = kept("zpool-history.txt");
    let asked = lines[..lines.len().min(kept.trim_end().lines().count())].join("\n");
    compare(kept.trim_end(), &asked);
}

fn compare(kept: &str, printed: &str) {
    let differ = |line: &&str| !line.split('\t').nth(1).is_some_and(|property| OURS.contains(&property));
    let kept: Vec<&str> = kept.lines().filter(differ).map(str::trim_end).collect();
    let printed: Vec<&str> = printed.lines().filter(differ).map(str::trim_end).collect();
    let different: Vec<String> = kept
        .iter()
        .zip(&printed)
        .filter(|(kept, printed)| kept != printed)
        .map(|(kept, printed)| format!("OpenZFS {kept}\nCenote  {printed}"))
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert_eq!(kept.len(), printed.len());
}
