//! What the real kernel said is in the file systems of the golden pools.
//!
//! `trees.tar.zst` holds a file for each file system and snapshot, `POOL/fs.DATASET.jsonl` and
//! `POOL/snap.DATASET@SNAPSHOT.jsonl`, with `__` for each `/`. A line is one file: its path and all that `lstat` said,
//! the SHA-256 of its bytes (of a file over 64 MiB those of its data, and where they are), its target, its extended
//! attributes. Bytes of names that are no UTF-8 stand as lone surrogates, as Python writes them, which JSON does not
//! allow: [`text`] gives them a place in the private area, here and in what is compared.

use std::path::Path;

use crate::archive::unpacked;

/// One file system or snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// `pool/path`, or `pool/path@snapshot`.
    pub name: String,
    /// A line of JSON for each file.
    pub lines: Vec<String>,
}

/// The trees of a pool; none when it has no file system, or none is kept.
///
/// # Panics
/// When the archive is malformed.
pub fn trees(pool: &str) -> Vec<Tree> {
    let directory = unpacked("trees").unwrap_or_else(|e| panic!("golden trees: {e}")).join(pool);
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut trees: Vec<Tree> = entries.map(|entry| tree(&entry.path())).collect();
    trees.sort_by(|a, b| a.name.cmp(&b.name));
    trees
}

fn tree(path: &Path) -> Tree {
    let file = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
    let name =
        file.strip_suffix(".jsonl").and_then(|f| f.strip_prefix("fs.").or_else(|| f.strip_prefix("snap.")));
    let name = name.unwrap_or_else(|| panic!("{file} is no manifest")).replace("__", "/");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Tree { name, lines: text.lines().map(|line| line.replace("\\udc", "\\uf7")).collect() }
}

/// Bytes as the manifests write them: those that are no UTF-8 as characters from U+F700 on.
pub fn text(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => return text + rest,
            Err(e) => {
                let (good, bad) = bytes.split_at(e.valid_up_to());
                text += &String::from_utf8_lossy(good);
                text.extend(char::from_u32(0xf700 + u32::from(bad[0])));
                bytes = &bad[1..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_found_by_pool_and_names_of_any_bytes_are_text() {
        let trees = trees("aux");
        let names: Vec<&str> = trees.iter().map(|tree| tree.name.as_str()).collect();
        assert_eq!(names, ["aux", "aux/dd", "aux@s1"]);
        assert!(trees[0].lines.iter().any(|line| line.contains("bad-utf8-\\uf7ff\\uf7fe")));
        assert_eq!(text(b"bad-utf8-\xff\xfe."), "bad-utf8-\u{f7ff}\u{f7fe}.");
        assert!(super::trees("zilc").is_empty());
    }
}
