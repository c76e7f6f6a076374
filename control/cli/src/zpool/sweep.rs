//! `zpool trim` and `zpool initialize`, and what `zpool status` says of them.

use super::{pools, remove};
use crate::args::zpool::{Initialize, Status, Trim};
use crate::session::{Failure, Outcome, Session};
use crate::text::date::ctime;
use api::{Pool, Request, SweepAction, SweepKind, SweepState, Swept, Vdev};
use std::time::Duration;

/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn trim(session: &mut Session<'_>, args: &Trim) -> Outcome {
    if args.secure {
        return Err(Failure::Failed(format!(
            "cannot trim '{}': secure trim is not part of this version of Cenote; \
             'blkdiscard --secure' erases a device that is in no pool",
            args.pool
        )));
    }
    let action = match (args.cancel, args.suspend) {
        (true, _) => SweepAction::Cancel,
        (_, true) => SweepAction::Suspend,
        _ => SweepAction::Start { rate: args.rate },
    };
    run(session, (SweepKind::Trim, action), &args.pool, &args.devices, args.wait)
}

pub(super) fn initialize(session: &mut Session<'_>, args: &Initialize) -> Outcome {
    let action = match (args.cancel, args.suspend, args.uninit) {
        (true, _, _) => SweepAction::Cancel,
        (_, true, _) => SweepAction::Suspend,
        (_, _, true) => SweepAction::Forget,
        _ => SweepAction::Start { rate: None },
    };
    run(session, (SweepKind::Initialize, action), &args.pool, &args.devices, args.wait)
}

fn run(
    session: &mut Session<'_>,
    (kind, action): (SweepKind, SweepAction),
    name: &str,
    devices: &[String],
    wait: bool,
) -> Outcome {
    // A relative path is one for this program; a name or a guid is the pool's.
    let pool = pool_of(session, name)?;
    let known = |device: &String| match pool.vdevs.as_ref().and_then(|root| remove::find(root, device)) {
        Some(vdev) => vdev.guid.to_string(),
        None => device.clone(),
    };
    let request =
        Request::PoolSweep { name: name.into(), devices: devices.iter().map(known).collect(), kind, action };
    session.order(request)?;
    // Without a daemon it rests when this program ends, and goes on with the next one: so it waits.
    let starts = matches!(action, SweepAction::Start { .. });
    while starts && (wait || !session.caller.outlives_us()) && left_of(&pool_of(session, name)?, kind) > 0 {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn pool_of(session: &mut Session<'_>, name: &str) -> Outcome<Pool> {
    let found = pools(session, &[name.to_string()])?.pop();
    found.ok_or_else(|| Failure::Failed(format!("cannot open '{name}': no such pool")))
}

/// Bytes of devices that are still to be looked at; 0 when none is under way.
pub(super) fn left_of(pool: &Pool, kind: SweepKind) -> u64 {
    let vdevs = pool.vdevs.iter().flat_map(|root| root.walk());
    let active = vdevs.filter_map(|vdev| {
        let swept = of(vdev, kind).filter(|swept| swept.state == SweepState::Active)?;
        Some(vdev.size.saturating_sub(swept.done).max(1))
    });
    active.sum()
}

fn of(vdev: &Vdev, kind: SweepKind) -> Option<&Swept> {
    vdev.swept.iter().find(|swept| swept.kind == kind)
}

/// What stands behind a device in `zpool status`.
pub(super) fn notes(vdev: &Vdev, args: &Status) -> String {
    if !vdev.is_leaf() || vdev.kind == "root" {
        return String::new();
    }
    let kinds =
        [(SweepKind::Initialize, args.initialized, "initializ"), (SweepKind::Trim, args.trimmed, "trimm")];
    kinds.iter().map(|(kind, is_asked, stem)| note(vdev, of(vdev, *kind), *is_asked, stem)).collect()
}

fn note(vdev: &Vdev, swept: Option<&Swept>, is_asked: bool, stem: &str) -> String {
    let Some(swept) = swept.filter(|swept| swept.state != SweepState::Canceled) else {
        return if is_asked { format!("  (un{stem}ed)") } else { String::new() };
    };
    if !is_asked {
        return if swept.state == SweepState::Active { format!("  ({stem}ing)") } else { String::new() };
    }
    let when = match swept.state {
        SweepState::Complete => "completed at",
        SweepState::Suspended => "suspended, started at",
        SweepState::Active | SweepState::Canceled => "started at",
    };
    format!("  ({}% {stem}ed, {when} {})", percent(vdev, swept), ctime(swept.since))
}

fn percent(vdev: &Vdev, swept: &Swept) -> u64 {
    match swept.state {
        SweepState::Complete => 100,
        _ => (swept.done.saturating_mul(100)).checked_div(vdev.size).unwrap_or(0).min(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zpool::tests::{aux, status};

    fn device(state: Option<SweepState>) -> Vdev {
        let swept = |state| Swept { kind: SweepKind::Trim, state, since: 0, done: 25 };
        let swept = state.map(swept).into_iter().collect();
        Vdev { kind: "file".into(), size: 100, swept, ..Vdev::default() }
    }

    #[test]
    fn a_device_says_how_far_it_was_trimmed_when_asked_and_that_it_is_being_trimmed_always() {
        let (plain, asked) = (status("zpool status"), status("zpool status -t"));
        for (state, unasked, wanted) in [
            (None, "", "  (untrimmed)"),
            (Some(SweepState::Canceled), "", "  (untrimmed)"),
            (Some(SweepState::Active), "  (trimming)", "  (25% trimmed, started at "),
            (Some(SweepState::Suspended), "", "  (25% trimmed, suspended, started at "),
            (Some(SweepState::Complete), "", "  (100% trimmed, completed at "),
        ] {
            let vdev = device(state);
            assert_eq!(notes(&vdev, &plain), unasked);
            let said = notes(&vdev, &asked);
            assert!(said.starts_with(wanted), "{state:?}: {said}");
        }
        let group = Vdev { kind: "mirror".into(), children: vec![device(None)], ..Vdev::default() };
        assert_eq!(notes(&group, &asked), "", "only devices are trimmed");
    }

    #[test]
    fn what_is_left_is_that_of_the_devices_at_work() {
        let of = |states: &[Option<SweepState>]| {
            let children = states.iter().map(|state| device(*state)).collect();
            let root = Vdev { kind: "root".into(), children, ..Vdev::default() };
            left_of(&Pool { vdevs: Some(root), ..aux() }, SweepKind::Trim)
        };
        assert_eq!(of(&[Some(SweepState::Active), Some(SweepState::Complete), None]), 75);
        assert_eq!(of(&[Some(SweepState::Suspended), Some(SweepState::Canceled)]), 0);
    }
}
