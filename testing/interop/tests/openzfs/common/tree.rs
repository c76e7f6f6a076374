//! All of a file system as the manifests of the golden pools describe it.

use std::collections::{BTreeMap, BTreeSet};

use interop::trees::{Tree, text};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zpl::{FileKind, FileSystem, Node};

/// Files larger than this are told by their extents.
const LARGE: u64 = 64 << 20;
const CHUNK: usize = 1 << 20;

/// A line for each difference, but for those in the fields to `ignore`.
pub fn compare(tree: &Tree, mut found: BTreeMap<String, Map<String, Value>>, ignore: &[&str]) -> Vec<String> {
    let mut differences = Vec::new();
    for line in &tree.lines {
        let wanted: Map<String, Value> = serde_json::from_str(line).unwrap();
        let path = wanted["path"].as_str().unwrap().to_owned();
        let Some(found) = found.remove(&path) else {
            differences.push(format!("{}: no {path}", tree.name));
            continue;
        };
        let mut fields: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
        fields.retain(|field| !ignore.contains(&field.as_str()));
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

/// All files of a file system.
pub struct Walk<'a> {
    pool: &'a pool::Pool,
    datasets: &'a BTreeSet<String>,
    found: BTreeMap<String, Map<String, Value>>,
}

impl Walk<'_> {
    /// Everything in a file system, by path.
    pub async fn of(
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
