//! The `scan:` lines of `zpool status`, and those of a scrub of the error log.

use crate::args::zpool::Style;
use crate::text::vdev_name::shown_name;
use crate::text::{date::ctime, number};
use api::{ErrorScrub, Pool, Rebuild, Scan, ScanState, Vdev};

/// An issue rate below this tells nothing about when it will be done.
const TELLING_RATE: u64 = 10 << 20;

/// All that is to be said: of the last scrub, and of the last resilver or sequential rebuild.
pub(super) fn of_pool(pool: &Pool, style: Style) -> String {
    let tops = pool.vdevs.iter().flat_map(|root| &root.children);
    let rebuilds: Vec<(&Vdev, &Rebuild)> =
        tops.filter_map(|top| top.rebuild.as_deref().map(|rebuild| (top, rebuild))).collect();
    let is_going = rebuilds.iter().any(|(_, rebuild)| rebuild.state == ScanState::Running);
    let ended = rebuilds.iter().map(|(_, rebuild)| rebuild.ended).max().unwrap_or(0);
    let mut text = String::new();
    let mut is_resilver_newer = false;
    let error_scrub = pool.newest_error_scrub();
    text += &error_scrub.map(render_error_scrub).unwrap_or_default();
    if let Some(scan) = &pool.scan {
        let is_running = scan.state == ScanState::Running;
        is_resilver_newer = scan.is_resilver && (is_running || (!is_going && scan.ended > ended));
        if (!scan.is_resilver && error_scrub.is_none()) || is_resilver_newer {
            text += &render(scan);
        }
    }
    if !is_resilver_newer {
        let line =
            |(top, rebuild): &(&Vdev, &Rebuild)| render_rebuild(rebuild, &shown_name(top, &pool.name, style));
        text += &rebuilds.iter().map(line).collect::<String>();
    }
    text
}

/// In OpenZFS's words, its "scrub:" among them.
pub(super) fn render_error_scrub(scrub: &ErrorScrub) -> String {
    match scrub.state {
        ScanState::Finished => {
            let seconds = scrub.ended.saturating_sub(scrub.started);
            format!(
                " scrub: scrubbed {} error blocks in {} days {:02}:{:02}:{:02} on {}\n",
                scrub.examined,
                seconds / 86_400,
                seconds / 3600 % 24,
                seconds / 60 % 60,
                seconds % 60,
                ctime(scrub.ended)
            )
        }
        ScanState::Canceled => format!(" scrub: error scrub canceled on {}\n", ctime(scrub.ended)),
        ScanState::Running => {
            let head = match scrub.paused {
                None => format!(" scrub: error scrub in progress since {}\n", ctime(scrub.started)),
                Some(at) => format!(
                    " scrub: error scrub paused since {}\n\terror scrub started on {}\n",
                    ctime(at),
                    ctime(scrub.started)
                ),
            };
            let all = scrub.examined.saturating_add(scrub.to_examine).max(1);
            let done = 100.0 * scrub.examined as f64 / all as f64;
            format!("{head}\t{done:.2}% done, issued I/O for {} error blocks\n", scrub.examined)
        }
    }
}

fn render_rebuild(rebuild: &Rebuild, vdev: &str) -> String {
    let bytes = |n| number::bytes(n, false);
    match rebuild.state {
        ScanState::Finished => format!(
            "  scan: resilvered ({vdev}) {} in {} with {} errors on {}\n",
            bytes(rebuild.rebuilt),
            number::duration(rebuild.elapsed_ms / 1000),
            rebuild.errors,
            ctime(rebuild.ended)
        ),
        ScanState::Canceled => format!("  scan: resilver ({vdev}) canceled on {}\n", ctime(rebuild.ended)),
        ScanState::Running => {
            let per_second = |n: u64| n / (rebuild.pass_ms + 1) * 1000;
            let rate = |n: u64| if n > 0 { format!(" at {}/s", bytes(n)) } else { String::new() };
            let (scan_rate, issue_rate) = (per_second(rebuild.pass_scanned), per_second(rebuild.pass_issued));
            let (scanned, issued) = (bytes(rebuild.scanned), bytes(rebuild.issued));
            let expected = bytes(rebuild.expected);
            let done = rebuild.scanned as f64 * 100.0 / (rebuild.expected + 1) as f64;
            let left = rebuild.expected.checked_sub(rebuild.scanned).filter(|_| scan_rate >= TELLING_RATE);
            let left = match left {
                Some(left) => format!(", {} to go", number::duration(left / scan_rate)),
                None => ", no estimated completion time".into(),
            };
            format!(
                "  scan: resilver ({vdev}) in progress since {}\n\t{scanned} / {expected} scanned{}, {issued} / {expected} \
                 issued{}\n\t{} resilvered, {:.2}% done{left}\n",
                ctime(rebuild.started),
                rate(scan_rate),
                rate(issue_rate),
                bytes(rebuild.rebuilt),
                done.min(100.0)
            )
        }
    }
}

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
