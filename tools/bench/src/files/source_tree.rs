//! A source tree as a tar file: the same in every run, as large as asked for.
//!
//! ```text
//!   tree/d000/s00/f000.c    12 files to a directory, 12 such to one above; a file in 16 has up to 64 KiB, half of them
//!                           less than 4 KiB; its text compresses as sources do
//! ```

use super::large::Random;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const TO_A_DIRECTORY: u64 = 12;
/// Text that files are cut from.
const TEXT: usize = 256 << 10;
const RECORD: usize = 512;

const WORDS: [&str; 24] = [
    "static",
    "int",
    "return",
    "if",
    "else",
    "struct",
    "const",
    "void",
    "buffer",
    "length",
    "offset",
    "block",
    "(",
    ")",
    "{\n\t",
    ";\n}\n",
    ";\n\t",
    " = ",
    " + ",
    "->",
    "0x1f",
    "NULL",
    "error",
    "/* see below */\n",
];

/// Writes it; says how many bytes the files have.
pub(super) fn write(path: &Path, files: u64) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let text = text();
    let mut random = Random::new(7);
    let mut bytes = 0;
    entry(&mut out, "tree/", b'5', &[])?;
    for file in 0..files {
        let (sub, name) = (file / TO_A_DIRECTORY, file % TO_A_DIRECTORY);
        let (top, sub) = (sub / TO_A_DIRECTORY, sub % TO_A_DIRECTORY);
        if sub == 0 && name == 0 {
            entry(&mut out, &format!("tree/d{top:03}/"), b'5', &[])?;
        }
        if name == 0 {
            entry(&mut out, &format!("tree/d{top:03}/s{sub:02}/"), b'5', &[])?;
        }
        let len = length(&mut random);
        let from = random.next() as usize % (TEXT - len);
        entry(&mut out, &format!("tree/d{top:03}/s{sub:02}/f{name:03}.c"), b'0', &text[from..from + len])?;
        bytes += len as u64;
    }
    // Two empty records are the end.
    out.write_all(&[0; 2 * RECORD])?;
    out.into_inner()?.sync_all()?;
    Ok(bytes)
}

fn length(random: &mut Random) -> usize {
    let scale = match random.next() % 16 {
        0..8 => 12,
        8..12 => 14,
        12..15 => 15,
        _ => 16,
    };
    random.next() as usize % (1 << scale) + 1
}

fn text() -> Vec<u8> {
    let mut random = Random::new(3);
    let mut text = Vec::with_capacity(TEXT + 64);
    while text.len() < TEXT {
        let n = random.next();
        text.extend_from_slice(WORDS[n as usize % WORDS.len()].as_bytes());
        text.extend_from_slice(
            if n >> 32 & 3 == 0 { format!("_{:x} ", n >> 52) } else { " ".into() }.as_bytes(),
        );
    }
    text
}

/// One file or directory: a record that says what it is, and its data in whole records.
fn entry(out: &mut impl Write, name: &str, kind: u8, data: &[u8]) -> io::Result<()> {
    let mut head = [0; RECORD];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, if kind == b'5' { b"0000755\0" } else { b"0000644\0" });
    put(108, b"0000000\x000000000\0");
    put(124, format!("{:011o}\0", data.len()).as_bytes());
    put(136, format!("{:011o}\0", 1_700_000_000).as_bytes());
    // The sum is taken with blanks in its place.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.write_all(&head)?;
    out.write_all(data)?;
    out.write_all(&[0; RECORD][..data.len().next_multiple_of(RECORD) - data.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::said;

    #[test]
    fn tar_takes_it_and_it_is_the_same_every_time() {
        let dir = std::env::temp_dir().join(format!("cenote-tree-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let (first, second) = (dir.join("a.tar"), dir.join("b.tar"));
        let bytes = write(&first, 300).unwrap();
        assert_eq!(write(&second, 300).unwrap(), bytes);
        assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
        let listed = said("tar", &["-tf", first.to_str().unwrap()]).unwrap();
        // 300 files in 25 directories in 3, in one.
        assert_eq!(listed.lines().count(), 300 + 25 + 3 + 1);
        said("tar", &["-xf", first.to_str().unwrap(), "-C", dir.to_str().unwrap()]).unwrap();
        let sizes =
            said("find", &[dir.join("tree").to_str().unwrap(), "-type", "f", "-printf", "%s\n"]).unwrap();
        assert_eq!(sizes.lines().map(|size| size.parse::<u64>().unwrap()).sum::<u64>(), bytes);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
