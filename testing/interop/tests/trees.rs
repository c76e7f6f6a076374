//! File trees that OpenZFS wrote are, file by file, what its kernel said: names, kinds, modes, owners, times, link counts,
//! sizes, blocks, data, holes, targets and extended attributes, POSIX ACLs among them.
//!
//! Left out is what the kernel did not read from the file: the number that its `.zfs` gives the root of a snapshot, and the
//! root of an encrypted file system as seen in the directory that it was mounted on.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use common::open;
use interop::golden;
use interop::harness::{self, Need, Trial, trial};
use interop::trees::{self, Tree, text};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zpl::{FileKind, FileSystem, Node};

/// The pools with file systems that are committed and readable.
const POOLS: [&str; 18] = [
    "aux", "basic", "ckpt", "dsl", "gang", "gpt", "grub", "leak", "matrix", "mir2", "nofeat", "rz1", "rz2",
    "snd", "st", "v1", "v28", "zvol",
];
/// Files larger than this are told by their extents.
const LARGE: u64 = 64 << 20;
const CHUNK: usize = 1 << 20;
/// So many differences are shown.
const SHOWN: usize = 20;

fn main() -> ExitCode {
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
    harness::main(trials)
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
                    differences.extend(compare(&tree, found));
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

fn compare(tree: &Tree, mut found: BTreeMap<String, Map<String, Value>>) -> Vec<String> {
    let mut differences = Vec::new();
    for line in &tree.lines {
        let wanted: Map<String, Value> = serde_json::from_str(line).unwrap();
        let path = wanted["path"].as_str().unwrap().to_owned();
        let Some(found) = found.remove(&path) else {
            differences.push(format!("{}: no {path}", tree.name));
            continue;
        };
        let mut fields: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
        fields.retain(|field| match found.get("closed") {
            Some(_) => *field == "type",
            None => *field != "ino" || path != "." || !tree.name.contains('@'),
        });
        let differ = fields.into_iter().filter(|field| wanted.get(*field) != found.get(*field));
        let show = |value: Option<&Value>| {
            value.map_or("nothing".into(), |v| v.to_string().chars().take(200).collect::<String>())
        };
        differences.extend(differ.map(|field| {
            let (wanted, found) = (show(wanted.get(field)), show(found.get(field)));
            format!("{} {path}: {field} is {found}, not {wanted}", tree.name)
        }));
    }
    differences.extend(found.into_keys().map(|path| format!("{}: {path} is too much", tree.name)));
    differences
}

struct Walk<'a> {
    pool: &'a pool::Pool,
    datasets: &'a BTreeSet<String>,
    found: BTreeMap<String, Map<String, Value>>,
}

impl Walk<'_> {
    /// Everything in a file system, by path.
    async fn of(
        pool: &pool::Pool,
        datasets: &BTreeSet<String>,
        fs: FileSystem,
    ) -> BTreeMap<String, Map<String, Value>> {
        let mut walk = Walk { pool, datasets, found: BTreeMap::new() };
        let mut todo = vec![(Vec::new(), fs.root().await.unwrap())];
        while let Some((path, node)) = todo.pop() {
            let is_mounted_on = walk.mounted_on(&fs, &path);
            let name = if path.is_empty() { ".".into() } else { text(&path) };
            let entry = match &is_mounted_on {
                Some(child) => walk.root_of(child, &name).await,
                None => describe(&node, &name).await.unwrap(),
            };
            walk.found.insert(name, entry);
            if !node.is_directory() || is_mounted_on.is_some() {
                continue;
            }
            for entry in node.list_all().await.unwrap() {
                let child = fs.object(entry.object).await.unwrap();
                assert!(entry.kind.is_none_or(|kind| kind == child.kind()), "{:?}", entry.name);
                assert_eq!(node.lookup(&entry.name).await.unwrap().id(), child.id());
                let path =
                    if path.is_empty() { entry.name } else { [&path, &b"/"[..], &entry.name].concat() };
                todo.push((path, child));
            }
        }
        walk.found
    }

    /// The root of another file system in this place.
    async fn root_of(&self, child: &str, path: &str) -> Map<String, Value> {
        match self.pool.open_file_system(child).await {
            Ok(fs) => describe(&fs.root().await.unwrap(), path).await.unwrap(),
            Err(e) => {
                assert_eq!(e.kind(), units::Kind::Encrypted, "{e}");
                [("closed".into(), json!(true)), ("type".into(), json!("d"))].into_iter().collect()
            }
        }
    }

    /// The file system that covered this directory when the kernel looked.
    fn mounted_on(&self, fs: &FileSystem, path: &[u8]) -> Option<String> {
        let name = format!("{}/{}", fs.name(), std::str::from_utf8(path).ok()?);
        self.datasets.get(&name).cloned()
    }
}

/// A file as the manifest describes it.
async fn describe(node: &Node, path: &str) -> units::Result<Map<String, Value>> {
    let stat = node.stat().await?;
    let nanos = |time: zpl::Time| number(time.as_nanos());
    let mut entry = json!({
        "path": path, "type": stat.kind.letter().to_string(), "mode": format!("{:04o}", stat.permissions),
        "uid": stat.uid, "gid": stat.gid, "nlink": stat.links, "size": stat.size, "blocks": stat.blocks,
        "ino": stat.object.0, "mtime_ns": nanos(stat.mtime), "ctime_ns": nanos(stat.ctime),
    });
    match stat.kind {
        FileKind::CharDevice | FileKind::BlockDevice => entry["rdev"] = json!([stat.rdev.0, stat.rdev.1]),
        FileKind::Symlink => entry["target"] = json!(text(&node.read_link().await?)),
        FileKind::Regular => {
            let mut hash = Sha256::new();
            if stat.size > LARGE {
                let extents = extents(node).await?;
                for &(from, to) in &extents {
                    feed(node, from, to, &mut hash).await?;
                }
                entry["extents"] = json!(extents);
                entry["hash"] = json!("extents");
            } else {
                feed(node, 0, stat.size, &mut hash).await?;
            }
            entry["sha256"] = json!(hex(&hash.finalize()));
        }
        _ => {}
    }
    // The kernel of Linux does not show these; that they can be read is what there is to see.
    assert!(!node.acl().await?.is_empty(), "every file of OpenZFS has an ACL");
    let xattrs = node.xattrs().await?;
    if !xattrs.is_empty() {
        entry["xattr"] = xattrs.iter().map(|(name, value)| (text(name), json!(hex(value)))).collect();
    }
    let Value::Object(entry) = entry else { unreachable!("it is made as one") };
    Ok(entry)
}

/// As JSON's reader has it: numbers that are too large for a word are not exact.
fn number(value: i128) -> Value {
    let signed = i64::try_from(value).map(Value::from);
    signed.or_else(|_| u64::try_from(value).map(Value::from)).unwrap_or_else(|_| json!(value as f64))
}

async fn feed(node: &Node, from: u64, to: u64, hash: &mut Sha256) -> units::Result<()> {
    let mut at = from;
    while at < to {
        let part = node.read(at, CHUNK.min((to - at) as usize)).await?;
        assert!(!part.is_empty());
        hash.update(&part[..]);
        at += part.len() as u64;
    }
    Ok(())
}

async fn extents(node: &Node) -> units::Result<Vec<(u64, u64)>> {
    let mut extents = Vec::new();
    let mut at = 0;
    while let Some(data) = node.seek_data(at).await? {
        at = node.seek_hole(data).await?.unwrap();
        extents.push((data, at));
    }
    Ok(extents)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
