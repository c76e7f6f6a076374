//! `zpool scrub`.

use super::{pools, scan};
use crate::args::zpool::Scrub;
use crate::session::{Failure, Outcome, Session};
use crate::text::number;
use api::{Request, Scan, ScanState, ScrubAction};
use std::time::Duration;

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn run(session: &mut Session<'_>, args: &Scrub) -> Outcome {
    let names: Vec<String> = match args.all {
        true => pools(session, &[])?.into_iter().map(|p| p.name).collect(),
        false => args.pools.clone(),
    };
    let action = match (args.stop, args.pause) {
        (true, _) => ScrubAction::Stop,
        (_, true) => ScrubAction::Pause,
        _ if args.errors => ScrubAction::Errors,
        _ => ScrubAction::Start,
    };
    session
        .for_each(&names, |session, name| session.order(Request::PoolScrub { name: name.into(), action }))?;
    // Without a daemon the scrub ends with this program, so it has to wait.
    let is_begun = matches!(action, ScrubAction::Start | ScrubAction::Errors);
    if is_begun && (args.wait || !session.caller.outlives_us()) {
        return session.for_each(&names, if args.errors { wait_for_errors } else { wait });
    }
    Ok(())
}

/// Waits for a scrub of the error log.
fn wait_for_errors(session: &mut Session<'_>, name: &str) -> Outcome {
    loop {
        let Some(pool) = pools(session, &[name.to_string()])?.pop() else { return Ok(()) };
        let Some(scrub) = &pool.error_scrub else { return Ok(()) };
        match scrub.state {
            ScanState::Running if scrub.paused.is_none() => std::thread::sleep(LOOK),
            // The last one may have ended long ago, and the log be empty since.
            ScanState::Finished if scrub.errors > 0 && !pool.errors.is_empty() => {
                return Err(Failure::Failed(format!(
                    "error scrub of '{name}' found {} errors that could not be repaired",
                    scrub.errors
                )));
            }
            _ => return Ok(()),
        }
    }
}

fn wait(session: &mut Session<'_>, name: &str) -> Outcome {
    loop {
        let pool = pools(session, &[name.to_string()])?.pop();
        let Some(scan) = pool.and_then(|p| p.scan) else { return Ok(()) };
        match scan.state {
            ScanState::Running if scan.paused.is_none() => {
                show(session, name, &scan);
                std::thread::sleep(LOOK);
            }
            ScanState::Running => return Ok(()),
            ScanState::Canceled => return clear(session),
            ScanState::Finished => return finish(session, name, &scan),
        }
    }
}

fn finish(session: &mut Session<'_>, name: &str, scan: &Scan) -> Outcome {
    clear(session)?;
    if scan.errors > 0 {
        return Err(Failure::Failed(format!(
            "scrub of '{name}' found {} errors that could not be repaired",
            scan.errors
        )));
    }
    Ok(())
}

/// A bar, for the terminal.
fn show(session: &mut Session<'_>, name: &str, scan: &Scan) {
    if !session.is_watched {
        return;
    }
    const WIDTH: usize = 30;
    let percent = scan::percent(scan).clamp(0.0, 100.0);
    let full = (percent / 100.0 * WIDTH as f64) as usize;
    let rate = number::bytes(scan.pass_examined / scan.elapsed.max(1), false);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(WIDTH - full));
    let repaired = number::bytes(scan.repaired, false);
    // Without the end of line: the next one is written over it.
    let _ =
        write!(session.err, "\rscrub {name} [{bar}] {percent:5.1}%  {rate}/s  {repaired} repaired \x1b[K");
    let _ = session.err.flush();
}

fn clear(session: &mut Session<'_>) -> Outcome {
    if session.is_watched {
        let _ = write!(session.err, "\r\x1b[K");
        let _ = session.err.flush();
    }
    Ok(())
}
