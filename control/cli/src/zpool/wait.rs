//! `zpool wait`.

use super::{pools, print_stamp, sweep};
use crate::args::zpool::{Activity, Wait};
use crate::session::{Failure, Outcome, Session};
use crate::text::number;
use api::{Pool, Request, ScanState, SweepKind};
use clap::ValueEnum;
use std::time::{Duration, Instant};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);
/// How often the header is printed again.
const ROWS: usize = 20;

pub(super) fn run(session: &mut Session<'_>, args: &Wait) -> Outcome {
    let all = Activity::value_variants();
    let wanted = if args.activities.is_empty() { all } else { &args.activities[..] };
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    if !session.caller.outlives_us() {
        // Without a daemon nothing goes on unless the pool is opened to be changed.
        session.order(Request::PoolSync { names: vec![args.pool.clone()] })?;
    }
    let (mut rows, mut shown) = (0_usize, None::<Instant>);
    loop {
        let pool = pool_of(session, &args.pool)?;
        let left: Vec<u64> = wanted.iter().map(|activity| left_of(&pool, *activity)).collect();
        if let Some(every) = args.interval
            && shown.is_none_or(|at| at.elapsed() >= every)
        {
            print_stamp(session, args.stamp)?;
            if rows.is_multiple_of(ROWS) && !args.scripted {
                session.print(&header(&wanted))?;
            }
            session.print(&row(&left, args))?;
            (rows, shown) = (rows + 1, Some(Instant::now()));
        }
        if left.iter().all(|left| *left == 0) {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// Without a daemon a resilver ends with this program, and goes on with the next one: so it waits.
pub(super) fn in_direct_mode(session: &mut Session<'_>, names: &[String]) -> Outcome {
    if session.caller.outlives_us() {
        return Ok(());
    }
    for name in names {
        while left_of(&pool_of(session, name)?, Activity::Resilver) > 0 {
            std::thread::sleep(LOOK);
        }
    }
    Ok(())
}

fn pool_of(session: &mut Session<'_>, name: &str) -> Outcome<Pool> {
    let found = pools(session, &[name.to_string()])?.pop();
    found.ok_or_else(|| Failure::Failed(format!("cannot open '{name}': no such pool")))
}

/// Bytes or blocks that an activity still has to do, or devices that are in it; 0 when it is not under way.
fn left_of(pool: &Pool, activity: Activity) -> u64 {
    let going = pool.scan.as_ref().filter(|scan| scan.state == ScanState::Running && scan.paused.is_none());
    let of_scan = |is_resilver: bool| {
        let scan = going.filter(|scan| scan.is_resilver == is_resilver);
        // More may have been allocated than there was when it began.
        scan.map_or(0, |scan| scan.to_examine.saturating_sub(scan.issued).max(1))
    };
    let vdevs = || pool.vdevs.iter().flat_map(|root| root.walk());
    match activity {
        Activity::Scrub => {
            let errors = pool.error_scrub.as_ref();
            let errors = errors.filter(|scrub| scrub.state == ScanState::Running && scrub.paused.is_none());
            of_scan(false).max(errors.map_or(0, |scrub| scrub.to_examine.max(1)))
        }
        Activity::Resilver => {
            let waits = vdevs().any(|vdev| vdev.why.as_deref().is_some_and(|why| why.contains("resilver")));
            let going = vdevs().filter_map(|vdev| vdev.rebuild.as_ref());
            let going = going.filter(|rebuild| rebuild.state == ScanState::Running);
            let copied = going.map(|rebuild| rebuild.expected.saturating_sub(rebuild.scanned).max(1)).sum();
            of_scan(true).max(u64::from(waits)).max(copied)
        }
        Activity::Replace => vdevs().filter(|vdev| vdev.kind == "replacing").count() as u64,
        Activity::Free => pool.property("freeing").and_then(|p| p.value.as_ref()?.number()).unwrap_or(0),
        Activity::Trim => sweep::left_of(pool, SweepKind::Trim),
        Activity::Initialize => sweep::left_of(pool, SweepKind::Initialize),
        // Nothing of that is ever under way here.
        Activity::Discard | Activity::Remove | Activity::RaidzExpand => 0,
    }
}

fn name_of(activity: Activity) -> String {
    activity.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

fn header(activities: &[Activity]) -> String {
    let columns = activities.iter().map(|activity| format!("{:>12}", name_of(*activity)));
    columns.collect::<Vec<_>>().join("  ") + "\n"
}

fn row(left: &[u64], args: &Wait) -> String {
    let column = |left: &u64| match (*left, args.exact) {
        (0, false) => "-".to_string(),
        (left, true) => left.to_string(),
        (left, false) => number::bytes(left, false),
    };
    let columns = left.iter().map(column);
    match args.scripted {
        true => columns.collect::<Vec<_>>().join("\t") + "\n",
        false => columns.map(|column| format!("{column:>12}")).collect::<Vec<_>>().join("  ") + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Scan, Vdev};

    fn pool(scan: Option<Scan>, kinds: &[&str]) -> Pool {
        let vdev = |kind: &&str| Vdev { kind: (*kind).into(), state: "ONLINE".into(), ..Vdev::default() };
        let children = kinds.iter().map(vdev).collect();
        let root = Vdev { kind: "root".into(), state: "ONLINE".into(), children, ..Vdev::default() };
        Pool { vdevs: Some(root), scan, ..crate::zpool::tests::aux() }
    }

    fn scan(is_resilver: bool, state: ScanState, paused: Option<u64>) -> Option<Scan> {
        Some(Scan { is_resilver, state, paused, to_examine: 100, issued: 40, ..Scan::default() })
    }

    #[test]
    fn each_activity_is_under_way_when_the_pool_says_so() {
        let running = pool(scan(false, ScanState::Running, None), &["mirror"]);
        assert_eq!([Activity::Scrub, Activity::Resilver].map(|a| left_of(&running, a)), [60, 0]);
        let paused = pool(scan(false, ScanState::Running, Some(5)), &["mirror"]);
        assert_eq!(left_of(&paused, Activity::Scrub), 0, "one that pauses would be waited for, for ever");
        let errors = api::ErrorScrub { state: ScanState::Running, to_examine: 7, ..Default::default() };
        let errors = Pool { error_scrub: Some(errors), ..pool(None, &["mirror"]) };
        assert_eq!(left_of(&errors, Activity::Scrub), 7);
        let resilver = pool(scan(true, ScanState::Running, None), &["replacing", "file"]);
        let wanted = [Activity::Scrub, Activity::Resilver, Activity::Replace];
        assert_eq!(wanted.map(|a| left_of(&resilver, a)), [0, 60, 1]);
        let over = pool(scan(true, ScanState::Finished, None), &["mirror"]);
        assert!(Activity::value_variants().iter().all(|a| left_of(&over, *a) == 0));
    }
}
