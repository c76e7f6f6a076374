//! `cargo run --release -p bench -- DIR [SIZE [SECONDS [ROUNDS]]]`: the table, on standard output.

use bench::{Options, engine, render};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(dir) = args.first().map(PathBuf::from) else {
        eprintln!("usage: bench DIR [SIZE [SECONDS [ROUNDS]]]");
        return ExitCode::from(2);
    };
    let default = Options::default();
    let options = Options {
        size: args.get(1).and_then(|s| units::parse_size(s).ok()).unwrap_or(default.size),
        seconds: args.get(2).and_then(|s| s.parse().ok()).unwrap_or(default.seconds),
        rounds: args.get(3).and_then(|s| s.parse().ok()).unwrap_or(default.rounds),
    };
    match linux::block_on(async move { engine(&dir, options, |what| eprintln!("{what}")).await }) {
        Ok(cells) => {
            print!("{}", render(&cells));
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("bench: {e}");
            ExitCode::FAILURE
        }
    }
}
