//! Commands that need no appliance: they look at devices, or make pools of their own.

use crate::report;
use cli::Failure;
use inspect::InspectArgs;
use std::io::Write;

/// `cenote inspect`: what is on devices, read without changing them.
pub fn inspect(words: &[String]) -> Result<(), Failure> {
    let args = InspectArgs::parse(words.iter().cloned()).map_err(|e| Failure::Usage(e.to_string()))?;
    let output = linux::block_on(inspect::run(args)).map_err(|e| Failure::Failed(e.to_string()))?;
    print(&output.text)?;
    if output.is_sound { Ok(()) } else { Err(Failure::Told) }
}

/// `cenote bench engine [DIR [SIZE [SECONDS [ROUNDS]]]]`.
pub fn bench(words: &[String]) -> Result<(), Failure> {
    let usage = || Failure::Usage("usage: cenote bench engine [DIR [SIZE [SECONDS [ROUNDS]]]]".into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["engine", rest @ ..] = &words[..] else { return Err(usage()) };
    let dir = rest.first().map_or_else(std::env::temp_dir, |dir| dir.into());
    let mut options = bench::Options::default();
    if let Some(size) = rest.get(1) {
        options.size = units::parse_size(size).map_err(|_| usage())?;
    }
    if let Some(seconds) = rest.get(2) {
        options.seconds = seconds.parse().map_err(|_| usage())?;
    }
    if let Some(rounds) = rest.get(3) {
        options.rounds = rounds.parse().map_err(|_| usage())?;
    }
    let cells = linux::block_on(async move { bench::engine(&dir, options, report::complain).await });
    print(&bench::render(&cells.map_err(|e| Failure::Failed(e.to_string()))?))
}

/// Prints, and ends quietly when nobody reads any more.
fn print(text: &str) -> Result<(), Failure> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Failure::Told)
}
