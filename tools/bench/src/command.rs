//! The words after `bench`.

use crate::{Options, Part, Progress, engine, servers};
use std::path::PathBuf;
use units::{Result, parse_size};

pub const USAGE: &str = "\
usage: bench engine [--dir DIR]... [--size BYTES] [--seconds N] [--rounds N] [--sustained N]
                    [--only engine|nbd]
  --dir       where to make the files, each measured by itself (memory, if there is some, and this directory)
  --size      of the volume and of each sequential row (512M)
  --seconds   of each row at random (1)
  --rounds    whose medians are printed (3)
  --sustained seconds of rows of writes over NBD that go on through many txgs (none)
  --only      the tables of the engine, or that of NBD (all)";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The table.
    Engine(Options),
    /// For the table: a server to be measured, until it is told to end.
    Serve(servers::Served),
}

impl Command {
    /// `None` when the words make no sense: then [`USAGE`] does.
    pub fn parse(words: &[String]) -> Option<Command> {
        let (first, rest) = words.split_first()?;
        let value = |i: usize| rest.get(i).map(String::as_str);
        match first.as_str() {
            "engine" => options(rest).map(Command::Engine),
            "serve" => Some(Command::Serve(servers::Served {
                socket: value(0)?.into(),
                dir: value(1)?.into(),
                size: parse_size(value(2)?).ok()?,
                block: parse_size(value(3)?).ok()?,
            })),
            _ => None,
        }
    }

    /// Does it, and returns what is to be printed. `own` are the words that make this program run a command.
    pub fn run(self, own: &[&str], progress: Progress) -> Result<String> {
        match self {
            Command::Engine(options) => engine(&options, own, progress),
            Command::Serve(served) => linux::block_on(served.run()).map(|()| String::new()),
        }
    }
}

fn options(words: &[String]) -> Option<Options> {
    let mut options = Options::default();
    let mut dirs: Vec<PathBuf> = Vec::new();
    let mut words = words.iter();
    while let Some(flag) = words.next() {
        let value = words.next()?;
        match flag.as_str() {
            "--dir" => dirs.push(value.into()),
            "--size" => options.size = parse_size(value).ok()?,
            "--seconds" => options.seconds = value.parse().ok()?,
            "--rounds" => options.rounds = value.parse().ok().filter(|&n| n > 0)?,
            "--sustained" => options.sustained = Some(value.parse().ok().filter(|&n| n > 0)?),
            "--only" => options.only = Some(Part::parse(value)?),
            _ => return None,
        }
    }
    if !dirs.is_empty() {
        options.dirs = dirs;
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options_or_nothing() {
        let parse = |line: &str| Command::parse(&line.split(' ').map(String::from).collect::<Vec<_>>());
        assert_eq!(parse("engine"), Some(Command::Engine(Options::default())));
        let dirs = vec!["/a".into(), "/b".into()];
        let wanted = Options {
            dirs,
            size: 64 << 20,
            seconds: 2,
            rounds: 1,
            sustained: Some(20),
            only: Some(Part::Nbd),
        };
        let line = "engine --dir /a --size 64M --seconds 2 --dir /b --rounds 1 --sustained 20 --only nbd";
        assert_eq!(parse(line), Some(Command::Engine(wanted)));
        for nonsense in [
            "",
            "engines",
            "engine --dir",
            "engine --only x",
            "engine --rounds 0",
            "engine --size x",
            "serve a b 1G",
        ] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
