//! `cargo run --profile dist -p bench -- engine`: the table, on standard output.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(command) = bench::Command::parse(&words) else {
        eprintln!("{}", bench::USAGE);
        return ExitCode::from(2);
    };
    match command.run(&[], |what| eprintln!("{what}")) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("bench: {e}");
            ExitCode::FAILURE
        }
    }
}
