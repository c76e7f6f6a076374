//! What is asked for, and how words on a command line say it.

use std::path::PathBuf;
use units::{Error, ObjectId, Result};

/// See the crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectArgs {
    pub what: What,
    /// Where devices are looked for; the current directory if there is none.
    pub dirs: Vec<PathBuf>,
    pub json: bool,
    /// Exact numbers in text; JSON always has them.
    pub exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Labels {
        device: PathBuf,
    },
    Uberblocks {
        device: PathBuf,
    },
    /// A pool by name or guid.
    Mos {
        pool: String,
    },
    Objects {
        dataset: String,
    },
    Blocks {
        dataset: String,
        object: ObjectId,
    },
    Block {
        dataset: String,
        object: ObjectId,
        level: u8,
        blkid: u64,
    },
    Verify {
        pool: String,
    },
}

/// What [`InspectArgs::parse`] understands.
pub const USAGE: &str = "\
usage: inspect [-jp] labels DEVICE
       inspect [-jp] uberblocks DEVICE
       inspect [-jp] [-d DIR]... mos POOL
       inspect [-jp] [-d DIR]... objects DATASET
       inspect [-jp] [-d DIR]... block DATASET OBJECT [[LEVEL:]BLOCK]
       inspect [-jp] [-d DIR]... --verify POOL
DATASET may be 'mos:POOL', the pool's own objects; numbers may be hexadecimal (0x1f)";

impl InspectArgs {
    pub fn new(what: What) -> InspectArgs {
        InspectArgs { what, dirs: Vec::new(), json: false, exact: false }
    }

    /// Reads the words after the command's name.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<InspectArgs> {
        let (mut dirs, mut json, mut exact, mut plain) = (Vec::new(), false, false, Vec::new());
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-d" => dirs.push(words.next().ok_or_else(|| wrong("-d needs a directory"))?.into()),
                "-j" => json = true,
                "-p" => exact = true,
                "-jp" | "-pj" => (json, exact) = (true, true),
                "--verify" => plain.insert(0, "verify".into()),
                flag if flag.starts_with('-') => return Err(wrong(&format!("unknown option '{flag}'"))),
                _ => plain.push(word),
            }
        }
        Ok(InspectArgs { what: what(&plain)?, dirs, json, exact })
    }
}

fn what(words: &[String]) -> Result<What> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words[..] {
        ["labels", device] => What::Labels { device: device.into() },
        ["uberblocks", device] => What::Uberblocks { device: device.into() },
        ["mos", pool] => What::Mos { pool: pool.into() },
        ["objects", dataset] => What::Objects { dataset: dataset.into() },
        ["block", dataset, object] => {
            What::Blocks { dataset: dataset.into(), object: ObjectId(number(object)?) }
        }
        ["block", dataset, object, block] => {
            let (level, blkid) = block.split_once(':').unwrap_or(("0", block));
            let level = u8::try_from(number(level)?).map_err(|_| wrong("a level is less than 256"))?;
            What::Block {
                dataset: dataset.into(),
                object: ObjectId(number(object)?),
                level,
                blkid: number(blkid)?,
            }
        }
        ["verify", pool] => What::Verify { pool: pool.into() },
        _ => return Err(wrong("what is to be inspected?")),
    })
}

fn number(text: &str) -> Result<u64> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| wrong(&format!("'{text}' is not a number")))
}

fn wrong(why: &str) -> Error {
    Error::invalid(format!("{why}\n{USAGE}"))
}
