//! The committed archives of golden images, unpacked once for all tests.
//!
//! Most of what lies in the golden pools is random, and was drawn from the random numbers of Python. So an archive is
//! not compressed alone but as a difference to those numbers, which anybody can draw again:
//!
//! ```text
//!   pools.seeds ── Twister ──▶ streams (41 MB) ─┐
//!                                               ├─ zstd, the streams as its prefix ─▶ tar ─▶ images, sparse
//!   pools.tar.zst (22 MB) ──────────────────────┘
//! ```
//!
//! Several test programs may want the images at once: the first takes a lock and unpacks beside the final place, and the
//! finished directory appears by a rename. Its name holds a digest of the archive, so a new archive is unpacked anew.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::root;
use crate::twister::Twister;

/// The archives compress with a window of 2^28 bytes, so that equal blocks of all pools find one another.
const WINDOW_LOG_MAX: u32 = 28;

/// The directory that holds the archive `name`, unpacked.
pub fn unpacked(name: &str) -> io::Result<PathBuf> {
    let archive = std::fs::read(committed(&format!("{name}.tar.zst")))?;
    let home = target_directory().join("golden");
    let place = home.join(format!("{name}-{:016x}", digest(&archive)));
    std::fs::create_dir_all(&home)?;
    let lock = File::create(home.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !place.exists() {
        let half = home.join(format!("{name}.unpacking"));
        _ = std::fs::remove_dir_all(&half);
        std::fs::create_dir_all(&half)?;
        unpack(&archive, &streams(name)?, &half)?;
        std::fs::rename(&half, &place)?;
    }
    Ok(place)
}

/// The streams of random numbers that the archive `name` is a difference to.
pub fn streams(name: &str) -> io::Result<Vec<u8>> {
    let seeds = std::fs::read_to_string(committed(&format!("{name}.seeds")))?;
    let mut streams = Vec::new();
    for line in seeds.lines() {
        let (seed, length) = seed_and_length(line).ok_or_else(|| malformed(line))?;
        let start = streams.len();
        streams.resize(start + length, 0);
        Twister::new(seed).fill(&mut streams[start..]);
    }
    Ok(streams)
}

fn seed_and_length(line: &str) -> Option<(u64, usize)> {
    let (seed, length) = line.split_once(' ')?;
    Some((seed.parse().ok()?, length.parse().ok()?))
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{line:?} is not SEED LENGTH"))
}

/// A file of testing/golden.
pub fn committed(name: &str) -> PathBuf {
    root().join("testing/golden").join(name)
}

/// Where cargo puts what it builds, and tests what they keep.
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// FNV-1a over words: it only has to notice that an archive was replaced.
fn digest(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
}

/// Decompresses into `tar`, which knows how to leave holes.
fn unpack(archive: &[u8], prefix: &[u8], into: &Path) -> io::Result<()> {
    let mut tar =
        Command::new("tar").args(["-x", "-S", "-f", "-", "-C"]).arg(into).stdin(Stdio::piped()).spawn()?;
    let decompressed = decompress(archive, prefix, &mut tar);
    let status = tar.wait()?;
    decompressed?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("tar failed: {status}"))) }
}

fn decompress(archive: &[u8], prefix: &[u8], tar: &mut Child) -> io::Result<()> {
    let mut pipe = tar.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(explained)?;
    context.ref_prefix(prefix).map_err(explained)?;
    let mut input = InBuffer::around(archive);
    let mut chunk = vec![0; 1 << 20];
    loop {
        let mut output = OutBuffer::around(&mut chunk[..]);
        let more = context.decompress_stream(&mut output, &mut input).map_err(explained)?;
        pipe.write_all(output.as_slice())?;
        if more == 0 {
            return Ok(());
        }
        if input.pos == archive.len() && output.as_slice().is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn explained(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}
