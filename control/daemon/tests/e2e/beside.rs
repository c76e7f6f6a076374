//! `zpool` beside OpenZFS's own: the same commands, their use and their misuse, and what each of both programs says.
//!
//! `beside/openzfs.txt` is a session of OpenZFS 2.3.9 on its own kernel: each command after `$ `, what it printed, and the
//! exit code in brackets where it is not 0. This program runs the same commands, from top to bottom, and must print the
//! same, to the column. Where it says something else on purpose, `beside/ours.txt` has its words, below a line with the
//! reason. Names of pools and files are the same on both sides; dates, times, guids, numbers of bytes and processes are not
//! compared.

use crate::home::{CENOTE, Daemon};
use interop::harness::{Trial, trial};
use interop::programs::said;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OPENZFS: &str = include_str!("beside/openzfs.txt");
const OURS: &str = include_str!("beside/ours.txt");
/// Where the session had its files; a test has another place, whose name is as long.
const PLACE: &str = "/tmp/zp000000";

pub fn trials() -> Vec<Trial> {
    vec![trial("zpool_says_what_openzfs_says_in_use_and_in_misuse", &[], compared)]
}

/// A command, and what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    command: String,
    lines: Vec<String>,
}

/// The commands of a session, in their order; lines with `#` in front of the first are left out.
fn session(text: &str) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Said { command: command.into(), lines: Vec::new() }),
            (None, Some(last)) => last.lines.push(line.into()),
            (None, None) => {}
        }
    }
    all
}

/// Our words by the command and how often it had been given before. A reason must stand above them.
fn ours() -> BTreeMap<(String, usize), Vec<String>> {
    let (mut reasoned, mut found) = (false, BTreeMap::new());
    let mut text = String::new();
    for line in OURS.lines() {
        if line.starts_with("# ") {
            reasoned = true;
            continue;
        }
        assert!(reasoned, "what is said otherwise has a reason: {line}");
        text += line;
        text.push('\n');
    }
    for said in session(&text) {
        // "$ zpool status tank (3)" is the third of them.
        let (command, nth) = match said
            .command
            .rsplit_once(" (")
            .and_then(|(c, n)| Some((c.to_string(), n.strip_suffix(')')?.parse::<usize>().ok()?)))
        {
            Some((command, nth)) => (command, nth),
            None => (said.command.clone(), 1),
        };
        found.insert((command, nth), said.lines);
    }
    found
}

/// A directory whose name is as long as [`PLACE`]; it is removed with everything in it.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        for n in 0..u32::MAX {
            let number = std::process::id().wrapping_mul(7919).wrapping_add(n) % 0x00ff_ffff;
            let path = PathBuf::from(format!("/tmp/zp{number:06x}"));
            if std::fs::create_dir(&path).is_ok() {
                return Place(path);
            }
        }
        unreachable!("one of sixteen million names is free")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn cenote(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(CENOTE);
    command.arg("--home").arg(place.join("home")).args(words);
    command
}

fn compared() {
    let place = Place::new();
    let here = place.0.display().to_string();
    let bin = place.0.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(CENOTE, bin.join("zpool")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-https"];
    let daemon = Daemon::started_by(cenote(&place.0, &serve).stderr(Stdio::null())).0;
    let (ours, mut counts, mut wrong) = (ours(), BTreeMap::<String, usize>::new(), Vec::new());
    let mut unused: Vec<_> = ours.keys().cloned().collect();
    for Said { command, lines } in session(OPENZFS) {
        let nth = counts.entry(command.clone()).and_modify(|n| *n += 1).or_insert(1);
        let key = (command.clone(), *nth);
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(&command).env("PATH", &path).env("D", &here).stdin(Stdio::null());
        let output = shell.env("CENOTE_HOME", place.0.join("home")).output().unwrap();
        let mut printed = said(&output).replace(&here, PLACE);
        if let Some(code) = output.status.code().filter(|code| *code != 0) {
            printed += &format!("[{code}]\n");
        }
        let printed: Vec<String> = printed.lines().map(plain).collect();
        let expected: Vec<String> = lines.iter().map(|line| plain(line)).collect();
        let own = ours.get(&key).map(|own| own.iter().map(|line| plain(line)).collect::<Vec<_>>());
        unused.retain(|other| *other != key);
        match own {
            None if printed == expected => {}
            Some(own) if printed == own && own != expected => {}
            own => {
                let number = if *nth > 1 { format!(" ({nth})") } else { String::new() };
                let kept = if own.is_some() { "kept as ours" } else { "OpenZFS" };
                let wanted = own.unwrap_or(expected).join("\n");
                wrong.push(format!("$ {command}{number}\n{}\n  --- {kept}:\n{wanted}\n", printed.join("\n")));
            }
        }
    }
    daemon.end();
    unused
        .iter()
        .for_each(|(command, nth)| wrong.push(format!("$ {command} ({nth}) is not in the session\n")));
    assert!(wrong.is_empty(), "{} commands say something else:\n{}", wrong.len(), wrong.join("\n"));
}

/// A line without what no two runs have in common. A number that stands to the right in a column keeps its place.
fn plain(line: &str) -> String {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut blanks = 0;
    for part in line.split(' ') {
        if part.is_empty() {
            blanks += 1;
            continue;
        }
        words.push((blanks, part.to_string()));
        blanks = 0;
    }
    let trailing = blanks;
    let mut text = String::new();
    let mut at = 0;
    while let Some((blanks, word)) = words.get(at) {
        let is_first = at == 0;
        let is_date =
            is_weekday(word) && words.get(at + 3).is_some_and(|(_, clock)| clock.split(':').count() == 3);
        let mut space = blanks + usize::from(!is_first);
        at += 1;
        let shown = if is_date {
            at += 4;
            // "DATE" may be followed by what closes a bracket.
            format!("DATE{}", words[at - 1].1.trim_start_matches(|c: char| c.is_ascii_digit()))
        } else if at > 1 && ["process", "cleared"].contains(&words[at - 2].1.as_str()) {
            "#".into()
        } else if is_number(word) {
            // As wide as it is with the blanks in front of it, if there is more than one.
            if space > 1 {
                space += word.chars().count() - 1;
            }
            "#".into()
        } else {
            let tabs = word.chars().take_while(|c| *c == '\t').count();
            let (tabs, rest) = word.split_at(tabs);
            format!("{tabs}{}", timeless(rest))
        };
        text += &" ".repeat(space);
        text += &shown;
    }
    text + &" ".repeat(trailing)
}

fn is_weekday(word: &str) -> bool {
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&word)
}

/// `0B`, `24.5K`, `112M`, `9%`, a guid.
fn is_number(word: &str) -> bool {
    let digits = word.trim_end_matches(['B', 'K', 'M', 'G', '%']).trim_end_matches("B/s");
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let has_unit = digits.len() < word.len();
    !digits.is_empty() && is_plain && (has_unit || digits.len() > 14)
}

/// `00:00:01` and `2026-11-26.12:38:57` say when, and how long it took.
fn timeless(word: &str) -> String {
    let is_clock = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        parts.len() == 3 && parts.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_day = |text: &str| text.len() == 10 && text.starts_with("20") && text.matches('-').count() == 2;
    match word.split_once('.') {
        Some((day, clock)) if is_day(day) && is_clock(clock) => "DATE".into(),
        _ if is_clock(word) => "TIME".into(),
        _ => word.into(),
    }
}
