//! Consoles in documents: what is typed, what is printed, and whether that is what the document says.
//!
//! ````text
//!   ```console
//!   $ cenote zpool list -H -o name         typed as it stands; a line that ends with \ goes on in the next
//!   tank                                   must be printed
//!   ...                                    here may be any lines, or none
//!   $ cenote zpool list lake    # exits 1  it must fail so; without that it must succeed
//!   ```
//! ````
//!
//! Lines are compared word by word, so that columns may move. A word equals another also when both are sizes of about
//! the same size, times, or guids, since those differ from run to run; numbers alone must be the same.

use interop::harness::{Trial, trial};

/// One command of a console.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it stands in the document.
    pub line: usize,
    pub command: String,
    pub expected: Vec<String>,
    pub code: i32,
}

/// All commands of all consoles of a document.
pub fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = document.lines().enumerate();
    let mut is_console = false;
    while let Some((at, line)) = lines.next() {
        match (line.strip_prefix("```"), is_console) {
            (Some(kind), false) => is_console = kind == "console",
            (Some(_), true) => is_console = false,
            (None, true) => match line.strip_prefix("$ ") {
                Some(typed) => {
                    let mut typed = typed.to_string();
                    // The shell joins lines, not this test: what is pasted from the page is what is run.
                    while typed.ends_with('\\') {
                        typed += "\n";
                        typed += lines.next().map_or("", |(_, more)| more);
                    }
                    let (command, code) = match typed.rsplit_once("# exits ") {
                        Some((command, code)) => {
                            (command.trim_end().to_string(), code.trim().parse().unwrap())
                        }
                        None => (typed, 0),
                    };
                    steps.push(Step { line: at + 1, command, expected: Vec::new(), code });
                }
                None => steps.last_mut().expect("a command before its output").expected.push(line.into()),
            },
            (None, false) => {}
        }
    }
    for step in &mut steps {
        while step.expected.last().is_some_and(|line| line.trim().is_empty()) {
            step.expected.pop();
        }
    }
    steps
}

/// Whether the lines that were printed are those that were expected.
pub fn matches(expected: &[String], printed: &[String]) -> bool {
    match expected {
        [] => printed.iter().all(|line| line.trim().is_empty()),
        [any, rest @ ..] if any.trim() == "..." => (0..=printed.len()).any(|n| matches(rest, &printed[n..])),
        [first, rest @ ..] => match printed {
            [line, others @ ..] => line_matches(first, line) && matches(rest, others),
            [] => false,
        },
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (words(expected), words(printed));
    let after_process = |i: usize| i > 0 && expected[i - 1] == "process";
    // What a daemon holds just after it has begun is little, and more with every moment.
    let is_little = |i: usize| {
        let is_size = |word: &str| word.ends_with('K') && word[..word.len() - 1].parse::<u64>().is_ok();
        expected[0] == "memory" && is_size(&expected[i]) && is_size(&printed[i])
    };
    let is_same = |i: usize| after_process(i) || is_little(i) || word_matches(&expected[i], &printed[i]);
    expected.len() == printed.len() && (0..expected.len()).all(is_same)
}

fn word_matches(expected: &str, printed: &str) -> bool {
    let strip = |word: &str| word.trim_end_matches([',', '.', ';', ':']).to_string();
    let (a, b) = (strip(expected), strip(printed));
    a == b
        || is_near(&a, &b)
        || (is_rule(&a) && is_rule(&b))
        || (is_guid(&a) && is_guid(&b))
        || (is_time(&a) && is_time(&b))
        || ["nbd://", "https://", "http://"]
            .iter()
            .any(|s| a.starts_with(s) && without_port(&a, s) == without_port(&b, s))
}

/// Sizes and ratios with a unit, within a factor of two; a few mebibytes of memory are as good as none.
fn is_near(a: &str, b: &str) -> bool {
    let size = |word: &str| -> Option<(f64, char)> {
        let unit = word.chars().last().filter(|c| "BKMGT%x".contains(*c))?;
        let number: f64 = word[..word.len() - 1].parse().ok()?;
        let scale = "BKMGT".find(unit).map_or(1.0, |power| 1024f64.powi(power as i32));
        Some((number * scale, if unit == '%' || unit == 'x' { unit } else { 'B' }))
    };
    let in_mebibytes = a.ends_with('M') && b.ends_with('M');
    let (Some((a, of_a)), Some((b, of_b))) = (size(a), size(b)) else { return false };
    let few = match of_a {
        '%' => 2.0,
        _ if in_mebibytes => 2.0 * 1024.0 * 1024.0,
        _ => 0.0,
    };
    of_a == of_b && (a.max(b) <= 2.0 * a.min(b) || (a - b).abs() <= few)
}

/// The line below a heading.
fn is_rule(word: &str) -> bool {
    word.len() >= 5 && word.bytes().all(|b| b == b'-')
}

fn is_guid(word: &str) -> bool {
    word.len() >= 15 && word.bytes().all(|b| b.is_ascii_digit())
}

/// `00:01:02` and `2026-11-21.05:37:00`; an address with its port passes too.
fn is_time(word: &str) -> bool {
    word.contains(':') && word.bytes().all(|b| b.is_ascii_digit() || b":-.".contains(&b))
}

/// The words of a line; a date as ctime(3) writes it is one.
fn words(line: &str) -> Vec<String> {
    const DAYS: &str = "Sun Mon Tue Wed Thu Fri Sat";
    let mut words = Vec::new();
    let mut rest = line.split_whitespace();
    while let Some(word) = rest.next() {
        match DAYS.split(' ').any(|day| day == word) {
            true => {
                // Month, day, time and year.
                rest.by_ref().take(4).for_each(drop);
                words.push("a date".into());
            }
            false => words.push(word.into()),
        }
    }
    words
}

fn without_port(uri: &str, scheme: &str) -> String {
    let (host, path) = uri.trim_start_matches(scheme).split_once('/').unwrap_or((uri, ""));
    format!("{}/{path}", host.split(':').next().unwrap_or(host))
}

pub fn trials() -> Vec<Trial> {
    vec![trial("consoles_are_read_and_drift_is_noticed", &[], || {
        let document = "text\n```\n$ not run\n```\n```console\n$ a b \\\n  c\nx\n\n$ d    # exits 2\n```\n";
        let step = |line, command: &str, expected: &[&str], code| Step {
            line,
            command: command.into(),
            expected: expected.iter().map(ToString::to_string).collect(),
            code,
        };
        assert_eq!(steps(document), [step(6, "a b \\\n  c", &["x"], 0), step(10, "d", &[], 2)]);
        for (expected, printed, same) in [
            ("tank  9.50G  528K", "tank   9.5G  530K", true),
            ("tank  9.50G  528K", "lake   9.5G  530K", false),
            ("USED  AVAIL", "USED  FREE", false),
            ("used  56K", "used  200K", false),
            ("used  56K", "used  56%", false),
            ("1073741824", "1073741825", false),
            ("id: 9129415271038914000", "id: 12345678901234567", true),
            ("for 00:00:04, process 7", "for 00:01:00, process 9876", true),
            ("ready nbd://127.0.0.1/t/v", "ready nbd://127.0.0.1:4711/t/v", true),
            ("ready nbd://127.0.0.1/t/v", "ready nbd://127.0.0.1:4711/t/w", false),
            ("cap 0%", "cap 1%", true),
            ("on Sat Nov 21 05:37:00 2026", "on Sun Jan  1 00:00:00 2034", true),
            ("7 errors", "8 errors", false),
        ] {
            assert_eq!(line_matches(expected, printed), same, "{expected} and {printed}");
        }
        let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
        assert!(matches(&lines("a\n...\nz"), &lines("a\nb\nc\nz")));
        assert!(!matches(&lines("a\n...\nz"), &lines("a\nb\nc")));
        assert!(!matches(&lines("a"), &lines("a\nb")));
    })]
}
