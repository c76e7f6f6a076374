//! What statistics call a file: by its path, also after it or a directory above it was renamed.

use crate::bench::{Bench, DATASET, NEEDS};
use interop::harness::{Trial, trial};
use probe::{Key, Opened};
use rustix::fs::{CWD, RenameFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("files_are_told_apart_by_their_paths", &NEEDS, paths),
        trial("a_path_follows_what_is_renamed_at_random", &NEEDS, random),
        trial("names_of_any_bytes_and_any_depth_are_told", &NEEDS, odd),
    ]
}

/// A request is told when it was answered: some time after the client has gone on.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was told, once all together it is `sum`.
fn told(opened: &Opened, sum: u64) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let began = Instant::now();
    loop {
        for (key, value) in opened.take().parts {
            let Key::Text(text) = key else { panic!("{key:?} is no file") };
            *all.entry(text.to_string()).or_default() += value;
        }
        if all.values().sum::<u64>() >= sum || began.elapsed() > PATIENCE {
            return all;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn called(path: &str) -> String {
    format!("{DATASET}:{path}")
}

fn paths() {
    let bench = Bench::new();
    let root = bench.root();
    std::fs::create_dir_all(root.join("db/old")).unwrap();
    let early = File::create(root.join("db/old/redo")).unwrap();
    let writes = bench.hub.open(&"fs.bytes[op=write][file]".parse().unwrap()).unwrap();
    let of_one = bench.hub.open(&format!("fs.bytes[op=write][file={}]", called("/db/data")).parse().unwrap());
    let of_one = of_one.unwrap();
    let all = bench.hub.open(&"fs.ops[file]".parse().unwrap()).unwrap();
    let sum = bench.hub.open(&"fs.ops".parse().unwrap()).unwrap();
    let data = File::create(root.join("db/data")).unwrap();
    early.write_all_at(&[1; 4096], 0).unwrap();
    data.write_all_at(&[2; 8192], 0).unwrap();
    let expected = [(called("/db/data"), 8192), (called("/db/old/redo"), 4096)];
    assert_eq!(
        told(&writes, 12288),
        BTreeMap::from(expected),
        "one that was there before, and one made since"
    );
    let began = Instant::now();
    let mut bytes = 0;
    while bytes < 8192 && began.elapsed() < PATIENCE {
        bytes += of_one.take().value;
    }
    assert_eq!(bytes, 8192);
    // The two writes and what came before them; what is told later than the sum is only in it.
    let ops = told(&all, sum.take().value);
    assert!(ops.contains_key(&called("/db")), "a request about a name is of its directory: {ops:?}");

    std::fs::rename(root.join("db"), root.join("base")).unwrap();
    rustix::fs::renameat_with(CWD, root.join("base/data"), CWD, root.join("base/old"), RenameFlags::EXCHANGE)
        .unwrap();
    early.write_all_at(&[1; 10], 0).unwrap();
    data.write_all_at(&[2; 20], 0).unwrap();
    let expected = [(called("/base/data/redo"), 10), (called("/base/old"), 20)];
    assert_eq!(told(&writes, 30), BTreeMap::from(expected));
    assert_eq!(of_one.take().value, 0);

    // The last name that it had; another file of that name is another file, of the same words.
    std::fs::remove_file(root.join("base/old")).unwrap();
    data.write_all_at(&[2; 30], 0).unwrap();
    std::fs::write(root.join("base/old"), [3; 4]).unwrap();
    assert_eq!(told(&writes, 34), BTreeMap::from([(called("/base/old"), 34)]));
}

/// Files that stay open, and directories, get other names at random; each write must be told under the path of the moment.
fn random() {
    const SEED: u64 = 7;
    let bench = Bench::new();
    let root = bench.root();
    let writes = bench.hub.open(&"fs.ops[op=write][file]".parse().unwrap()).unwrap();
    let mut state = SEED;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut directories = vec![PathBuf::from("/")];
    let mut files: Vec<(PathBuf, File)> = Vec::new();
    let at = |path: &Path| root.join(path.strip_prefix("/").unwrap());
    for step in 0..400 {
        let place = directories[below(directories.len())].join(format!("n{step}"));
        match below(5) {
            0 if directories.len() < 12 => {
                std::fs::create_dir(at(&place)).unwrap();
                directories.push(place);
            }
            1 if directories.len() > 1 => {
                let moved = directories[1 + below(directories.len() - 1)].clone();
                if place.starts_with(&moved) {
                    continue;
                }
                std::fs::rename(at(&moved), at(&place)).unwrap();
                let all = directories.iter_mut().chain(files.iter_mut().map(|(path, _)| path));
                for path in all.filter(|path| path.starts_with(&moved)) {
                    *path = match path.strip_prefix(&moved).unwrap() {
                        below if below.as_os_str().is_empty() => place.clone(),
                        below => place.join(below),
                    };
                }
            }
            2 if !files.is_empty() => {
                let which = below(files.len());
                std::fs::rename(at(&files[which].0), at(&place)).unwrap();
                files[which].0 = place;
            }
            3 if files.len() > 10 => {
                let (path, _) = files.swap_remove(below(files.len()));
                std::fs::remove_file(at(&path)).unwrap();
            }
            _ => {
                let file = File::create(at(&place)).unwrap();
                files.push((place, file));
            }
        }
        if let Some((path, file)) = files.get_mut(step % 16) {
            file.write_all(b"x").unwrap();
            let expected = BTreeMap::from([(called(path.to_str().unwrap()), 1)]);
            assert_eq!(told(&writes, 1), expected, "step {step} of seed {SEED}");
        }
    }
}

fn odd() {
    let bench = Bench::new();
    let writes = bench.hub.open(&"fs.bytes[op=write][file]".parse().unwrap()).unwrap();
    let hostile = bench.root().join(std::ffi::OsStr::from_bytes(b"a]\\[b\xff<script>"));
    std::fs::write(hostile, "x").unwrap();
    assert_eq!(told(&writes, 1), BTreeMap::from([(called("/a]\\[b\u{fffd}<script>"), 1)]));
    let mut deep = bench.root();
    for _ in 0..12 {
        deep.push("d".repeat(250));
        std::fs::create_dir(&deep).unwrap();
    }
    std::fs::write(deep.join("f"), "yy").unwrap();
    let told = told(&writes, 2);
    let (name, bytes) = told.first_key_value().unwrap();
    assert_eq!((told.len(), *bytes), (1, 2));
    assert!(name.starts_with(&called("/\u{2026}/d")) && name.ends_with("d/f"), "{name}");
    assert!(name.len() < 1400, "{} bytes", name.len());
}
