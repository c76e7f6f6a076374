//! The `scan:` lines of `zpool status`.

use crate::text::{date::ctime, number};
use api::{Scan, ScanState};

/// An issue rate below this tells nothing about when it will be done.
const TELLING_RATE: u64 = 10 << 20;

pub(super) fn render(scan: &Scan) -> String {
    let (past, word) =
        if scan.is_resilver { ("resilvered", "resilver") } else { ("scrub repaired", "scrub") };
    match scan.state {
        ScanState::Finished => format!(
            "  scan: {past} {} in {} with {} errors on {}\n",
            number::bytes(scan.repaired, false),
            number::duration(scan.ended.saturating_sub(scan.started)),
            scan.errors,
            ctime(scan.ended)
        ),
        ScanState::Canceled => format!("  scan: {word} canceled on {}\n", ctime(scan.ended)),
        ScanState::Running => {
            let head = match scan.paused {
                None => format!("  scan: {word} in progress since {}\n", ctime(scan.started)),
                Some(at) => {
                    format!(
                        "  scan: {word} paused since {}\n\t{word} started on {}\n",
                        ctime(at),
                        ctime(scan.started)
                    )
                }
            };
            head + &progress(scan)
        }
    }
}

fn progress(scan: &Scan) -> String {
    let bytes = |n| number::bytes(n, false);
    let scan_rate = scan.pass_examined / scan.elapsed.max(1);
    // What was looked at was read as well, so these go at one rate.
    let issue_rate = scan_rate;
    let is_going = scan.paused.is_none();
    let rate = |n: u64| if is_going && n > 0 { format!(" at {}/s", bytes(n)) } else { String::new() };
    let total = bytes(scan.to_examine);
    let (examined, issued) = (bytes(scan.examined), bytes(scan.issued));
    let mut text = format!(
        "\t{examined} / {total} scanned{}, {issued} / {total} issued{}\n",
        rate(scan_rate),
        rate(issue_rate)
    );
    let done = if scan.is_resilver { "resilvered" } else { "repaired" };
    text += &format!("\t{} {done}, {:.2}% done", bytes(scan.repaired), percent(scan));
    if is_going {
        text += &match scan.to_examine.checked_sub(scan.issued).filter(|_| issue_rate >= TELLING_RATE) {
            Some(left) => format!(", {} to go", number::duration(left / issue_rate)),
            None => ", no estimated completion time".into(),
        };
    }
    text + "\n"
}

pub(super) fn percent(scan: &Scan) -> f64 {
    if scan.to_examine == 0 { 0.0 } else { 100.0 * scan.issued as f64 / scan.to_examine as f64 }
}
