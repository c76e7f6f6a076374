//! Many cases, in a process beside this one: a case that spins, or takes all memory, ends that process and not the
//! campaign.
//!
//! ```text
//!   campaign ── starts ──▶ worker: begin CASE │ failed CASE: why │ begin CASE …
//!       ▲                     │
//!       └── ended early: the case that was begun last has failed; another worker goes on with the next
//! ```

use super::case::{ForgedCase, ForgedRunner};
use super::watch::Watch;
use crate::power::Failure;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Address space of a worker, in KiB: more than its memory may be, for what is only reserved counts too.
const ADDRESS_SPACE: u64 = 6 << 20;

/// Says how a campaign goes on.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub cases: u64,
    pub failures: Vec<Failure>,
}

/// Runs the cases of `seeds`, of all pools by turns or of one; `tell` hears of each case. No case is begun after `limit`.
pub fn campaign(
    seeds: Range<u64>,
    pool: Option<&str>,
    limit: Option<Duration>,
    mut tell: impl FnMut(&Progress, Option<&Failure>),
) -> std::io::Result<Progress> {
    let (mut progress, mut next) = (Progress::default(), seeds.start);
    let end = limit.map(|limit| Instant::now() + limit);
    while next < seeds.end && end.is_none_or(|end| Instant::now() < end) {
        let program = std::env::current_exe()?;
        let mut worker = Command::new("sh")
            .args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")])
            .arg(program)
            .args(["forged-worker", "--from", &next.to_string(), "--seeds", &(seeds.end - next).to_string()])
            .args(pool)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut begun = None;
        let fail = |case: &str, why: &str, progress: &mut Progress| {
            let failure = Failure { case: case.into(), why: why.into() };
            progress.failures.push(failure.clone());
            failure
        };
        for line in BufReader::new(worker.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?).lines() {
            let line = line?;
            if let Some(case) = line.strip_prefix("begin ") {
                (begun, next) = (Some(case.to_string()), next + 1);
                progress.cases += 1;
                tell(&progress, None);
            } else if let Some((case, why)) = line.strip_prefix("failed ").and_then(|l| l.split_once(' ')) {
                let failure = fail(case, why, &mut progress);
                tell(&progress, Some(&failure));
                begun = None;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                _ = worker.kill();
                _ = worker.wait();
                return Ok(progress);
            }
        }
        let status: ExitStatus = worker.wait()?;
        match begun {
            Some(case) if !status.success() => {
                let failure = fail(&case, &format!("the program ended: {status}"), &mut progress);
                tell(&progress, Some(&failure));
            }
            None if next == seeds.start => {
                return Err(std::io::Error::other(format!("the worker: {status}")));
            }
            _ => {}
        }
    }
    Ok(progress)
}

/// The worker's part.
pub fn worker(seeds: Range<u64>, pool: Option<&str>) {
    let watch = Watch::new(|case, why| {
        println!("failed {case} {why}");
        std::process::exit(3);
    });
    let mut runner = ForgedRunner::new(watch);
    for seed in seeds {
        let case = match pool {
            Some(pool) => ForgedCase { pool: pool.into(), seed },
            None => ForgedCase::of(seed),
        };
        println!("begin {case}");
        if let Some(failure) = runner.run(&case) {
            println!("failed {} {}", failure.case, failure.why.replace('\n', " "));
        }
    }
}
