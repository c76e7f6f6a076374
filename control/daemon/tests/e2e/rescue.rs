//! Files of pools that are not mounted: listed, copied and archived, whole or as far as they can be read.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::{damage, golden, programs};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files above this size are mostly hole, and looked at by their size alone.
const LARGE: u64 = 64 << 20;

pub fn trials() -> Vec<Trial> {
    let rz1 = [Need::Golden("rz1"), Need::Program("tar")];
    vec![
        trial("a_tree_is_copied_and_archived_from_two_of_three_disks", &rz1, whole),
        trial("a_damaged_disk_costs_what_lies_in_its_damage", &[Need::Golden("gpt")], damaged),
        trial("files_of_imported_pools_are_read_with_a_daemon_and_without", &[], imported),
    ]
}

/// The words to look for a golden pool's disks in a directory that has all but one of them.
fn evidence(home: &Home) -> String {
    let place = home.scratch.join("evidence");
    std::fs::create_dir(&place).unwrap();
    for image in golden::pool("rz1").images.iter().filter(|image| !image.ends_with("rz1-1.img")) {
        std::os::unix::fs::symlink(image, place.join(image.file_name().unwrap())).unwrap();
    }
    format!("-d {}", place.display())
}

fn whole() {
    let home = Home::new();
    let from = evidence(&home);
    // What this machine's file system cannot keep of the largest extended attributes is said.
    let copied = home.output(&format!("cp -r {from} rz1@s1:/tree copy"));
    let said = String::from_utf8_lossy(&copied.stderr).into_owned();
    assert!(said.lines().all(|line| line.contains("extended attribute ")), "{said}");
    home.run(&format!("tar {from} -f archive.tar rz1@s1:/tree"));
    let unpacked = home.scratch.join("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    let mut tar = programs::command("tar");
    tar.arg("-xf").arg(home.scratch.join("archive.tar")).arg("-C").arg(&unpacked);
    programs::run(&mut tar);
    let (copy, unpacked) = (tree(&home.scratch.join("copy")), tree(&unpacked.join("tree")));
    assert!(copy.len() > 500);
    for (path, file) in &copy {
        // The format of archives has no sockets.
        if let Some(other) = unpacked.get(path) {
            assert_eq!(file, other, "{path}");
        } else {
            assert!(path.ends_with("/sock"), "{path}");
        }
    }
    // A copy that was cut short is gone on with: what is missing is made, and what is there is not said to be in the way.
    let missing = home.scratch.join("copy/grown");
    std::fs::remove_file(&missing).unwrap();
    // What was there before stays, whatever it is called.
    std::fs::write(home.scratch.join("copy/.cenote-half-0"), "half").unwrap();
    std::fs::rename(home.scratch.join("copy"), home.scratch.join("tree")).unwrap();
    let again = home.output(&format!("cp -r {from} rz1@s1:/tree ."));
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.lines().all(|line| line.contains("extended attribute ")), "{said}");
    std::fs::rename(home.scratch.join("tree"), home.scratch.join("copy")).unwrap();
    let mut again = tree(&home.scratch.join("copy"));
    assert!(again.remove("/.cenote-half-0").is_some_and(|there| there.4 == b"half"));
    assert!(again == copy);
    assert_eq!(home.run(&format!("ls {from}")), "rz1\n", "without a place, the pools");
    let paths = home.run(&format!("find {from} rz1@s1:/tree"));
    assert_eq!(paths.lines().count(), copy.len());
    assert!(home.run(&format!("stat {from} rz1:tree/xattr/dir")).contains("xattr  user.d, 7 bytes"));
    // Nothing is written over, and what is not there is one line.
    let fails = |line: &str| home.fails(&line.replace("FROM", &from), 1);
    assert!(fails("cp FROM rz1:tree/grown copy/grown").contains("File exists"));
    assert!(fails("cat FROM rz1:tree/nothing").starts_with("cannot read 'rz1:tree/nothing': "));
    assert!(fails("ls FROM rz1/nothing").contains("there is no dataset 'rz1/nothing'"));
    assert!(fails("ls FROM lake").contains("there is no pool 'lake' on these devices"));
    assert!(fails("ls lake").contains("pool 'lake' is not imported; -d says where its devices are"));
    assert!(fails("cp FROM rz1:tree x").contains("-r copies all of it"));
    assert!(fails("ls -T 1 FROM rz1").contains("no uberblock of txg 1 or older is left"));
}

/// Everything in a directory: kind and mode, size, time, and the bytes or the target.
fn tree(root: &Path) -> BTreeMap<String, (u32, u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut todo: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let meta = path.symlink_metadata().unwrap();
        let data = if meta.is_symlink() {
            path.read_link().unwrap().into_os_string().into_encoded_bytes()
        } else if meta.is_file() && meta.len() < LARGE {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        if meta.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let size = if meta.is_file() { meta.len() } else { 0 };
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        // The host's file system may not keep times that are centuries away.
        let (seconds, nanos) =
            if name.starts_with("times/") { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
        found.insert(format!("/{name}"), (meta.permissions().mode(), size, seconds, nanos, data));
    }
    found
}

fn damaged() {
    let home = Home::new();
    let good = home.scratch.join("good");
    let bad = home.scratch.join("bad");
    for place in [&good, &bad] {
        std::fs::create_dir(place).unwrap();
    }
    let image = &golden::pool("gpt").images[0];
    let name = image.file_name().unwrap();
    std::os::unix::fs::symlink(image, good.join(name)).unwrap();
    interop::copy_sparse(image, &bad.join(name)).unwrap();
    damage::overwrite(&bad.join(name), 5, 300).unwrap();
    home.output(&format!("cp -r -d {} gpt:/tree whole", good.display()));
    // In the first txg after its creation the pool was empty.
    let before = home.output(&format!("ls -T 5 -d {} gpt", good.display()));
    assert!(before.status.success() && before.stdout.is_empty());
    assert!(String::from_utf8_lossy(&before.stderr).contains("as it was in txg 5, 2026-11-20"));
    assert!(home.run(&format!("ls -T 8 -d {} gpt", good.display())).contains("tree\n"));
    let copied = home.output(&format!("cp -r -d {} gpt:/tree part", bad.display()));
    let said = String::from_utf8_lossy(&copied.stderr).into_owned();
    assert_eq!(copied.status.code(), Some(1), "{said}");
    assert!(said.contains(" are missing: "), "{said}");
    let (whole, part) = (tree(&home.scratch.join("whole")), tree(&home.scratch.join("part")));
    let mut lost = 0;
    for (path, (mode, size, seconds, nanos, data)) in &whole {
        let Some(saved) = part.get(path) else {
            lost += 1;
            continue;
        };
        assert_eq!((mode, size, seconds, nanos), (&saved.0, &saved.1, &saved.2, &saved.3), "{path}");
        let missing = missing(&said, &format!("'gpt:/tree{path}'"));
        for (at, (wanted, found)) in data.iter().zip(&saved.4).enumerate() {
            let is_missing = missing.iter().any(|range| range.contains(&(at as u64)));
            assert!(wanted == found || (is_missing && *found == 0), "{path}: byte {at}");
        }
    }
    // Whatever is not there at all, or lies below something that is not, was said.
    let complaints = said.lines().filter(|line| line.starts_with("cannot ")).count();
    assert!(lost == 0 || complaints > 0, "{lost} files are gone without a word");
}

/// The ranges that a copy complained of under this name.
fn missing(said: &str, shown: &str) -> Vec<std::ops::RangeInclusive<u64>> {
    let of = said.lines().filter_map(|line| line.strip_prefix(shown)?.strip_prefix(": bytes "));
    of.map(|rest| {
        let words: Vec<&str> = rest.split(' ').collect();
        words[0].parse().unwrap()..=words[2].parse().unwrap()
    })
    .collect()
}

fn imported() {
    let home = Home::with_pool();
    home.run("zfs create tank/fs");
    assert_eq!(home.run("ls tank/fs"), "");
    assert!(home.run("stat tank/fs:/").contains("kind  directory"));
    assert_eq!(home.run("find --type d tank/fs"), "tank/fs\n");
    home.run("zfs create -s -V 16M tank/vol");
    assert!(home.fails("ls tank/vol", 1).contains("'tank/vol' is not a file system"));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0");
    home.run("zfs create tank/later");
    assert_eq!(home.run("ls -R tank/later"), "");
    daemon.end();
}
