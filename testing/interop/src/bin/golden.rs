//! Unpacks the golden pools and prints where each image is; with `streams ARCHIVE FILE`, writes what an archive is a
//! difference to, for making a new one.

use std::process::ExitCode;

use interop::golden::{self, Kept};

const USAGE: &str = "\
golden                       unpack all, print the paths of the images
golden POOL...               the same for these pools
golden streams ARCHIVE FILE  write the random streams that testing/golden/ARCHIVE.tar.zst is a difference to
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["streams", archive, file] => {
            let done = interop::streams(archive).and_then(|streams| std::fs::write(file, streams));
            if let Err(e) = done {
                eprintln!("golden: {archive}: {e}");
                return ExitCode::FAILURE;
            }
        }
        [first, ..] if first.starts_with('-') => print!("{USAGE}"),
        [] => print(golden::POOLS.iter().filter(|(_, _, kept)| *kept != Kept::Not).map(|(name, ..)| *name)),
        _ => print(words.iter().copied().filter(|name| is_known(name))),
    }
    ExitCode::SUCCESS
}

fn is_known(name: &str) -> bool {
    let known = golden::is_available(name);
    if !known {
        eprintln!("golden: there is no pool {name} here");
    }
    known
}

fn print<'a>(pools: impl Iterator<Item = &'a str>) {
    for image in pools.flat_map(|name| golden::pool(name).images) {
        println!("{}", image.display());
    }
}
