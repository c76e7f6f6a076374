//! What is to be said of a pool's health, and what to do: the `status:` and `action:` of `zpool status`.
//!
//! The conditions and their order are OpenZFS's, the worst first.

use api::{Importable, Pool, ScanState, Vdev};

/// A condition of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Resilvering,
    /// What must be written waits for the devices.
    Suspended,
    /// It was tried, and something else than its devices and its data was in the way.
    NotOpen,
    /// Too much is missing for the pool to work; so for the next two.
    FaultedUnusable,
    MissingUnusable,
    BadLabelUnusable,
    CorruptPool,
    /// Data was lost.
    CorruptData,
    Faulted,
    Missing,
    /// What it has the others have not: it was used without them.
    WentOn,
    BadLabel,
    /// There were errors, and they were corrected.
    Failing,
    Offline,
    Removed,
    /// A device did not take what the others have, and is not being made whole.
    Behind,
    /// A device was copied to, and no checksum was verified since.
    Unverified,
    OldVersion,
}

/// What a person reads: what is wrong, and what helps. Lines after the first begin with a tab.
pub(super) struct Words {
    pub status: &'static str,
    pub action: &'static str,
    /// The page of OpenZFS's documentation.
    pub message: Option<&'static str>,
}

pub(super) fn of_pool(pool: &Pool) -> Option<Reason> {
    if pool.suspended.is_some() {
        return Some(Reason::Suspended);
    }
    let Some(root) = &pool.vdevs else { return Some(Reason::CorruptPool) };
    let is_rebuilt = |top: &Vdev| top.rebuild.as_ref().is_some_and(|r| r.state == ScanState::Running);
    let is_resilvered = pool.scan.as_ref().is_some_and(|s| s.is_resilver && s.state == ScanState::Running);
    if is_resilvered || root.children.iter().any(is_rebuilt) {
        return Some(Reason::Resilvering);
    }
    if let Some(reason) = unusable(root) {
        return Some(reason);
    }
    if pool.problem.is_some() {
        return Some(Reason::NotOpen);
    }
    if !pool.errors.is_empty() {
        return Some(Reason::CorruptData);
    }
    let version = pool.property("version").and_then(|p| p.value.as_ref()?.number());
    let is_old = version.is_some_and(|v| v < dsl::pool_props::VERSION_FEATURES);
    let unverified = is_unverified(pool, root).then_some(Reason::Unverified);
    in_devices(root).or(unverified).or(is_old.then_some(Reason::OldVersion))
}

/// No scrub has ended since a device was copied to in the order of the disk, and none is under way.
fn is_unverified(pool: &Pool, root: &Vdev) -> bool {
    let ends = root.children.iter().filter_map(|top| top.rebuild.as_ref());
    let last = ends.filter(|rebuild| rebuild.state == ScanState::Finished).map(|rebuild| rebuild.ended).max();
    // Of a resilver since nothing is known of the scrub before it: as OpenZFS, nothing is said then.
    let is_verified = |end: u64| {
        pool.scan.as_ref().is_some_and(|scan| match scan.state {
            ScanState::Running => true,
            ScanState::Finished => scan.ended >= end,
            ScanState::Canceled => scan.is_resilver && scan.ended >= end,
        })
    };
    last.is_some_and(|end| !is_verified(end))
}

pub(super) fn of_importable(pool: &Importable) -> Option<Reason> {
    unusable(&pool.vdevs).or_else(|| in_devices(&pool.vdevs))
}

fn is_up(vdev: &Vdev) -> bool {
    matches!(vdev.state.as_str(), "ONLINE" | "DEGRADED")
}

fn unusable(root: &Vdev) -> Option<Reason> {
    if is_up(root) {
        return None;
    }
    let any = |test: fn(&Vdev) -> bool| leaves(root).any(test);
    Some(if any(is_faulted) {
        Reason::FaultedUnusable
    } else if any(is_bad_label) {
        Reason::BadLabelUnusable
    } else if any(is_missing) || root.children.iter().any(|t| t.kind == "missing") {
        Reason::MissingUnusable
    } else {
        Reason::CorruptPool
    })
}

fn in_devices(root: &Vdev) -> Option<Reason> {
    let tests: [(fn(&Vdev) -> bool, Reason); 8] = [
        (is_faulted, Reason::Faulted),
        (|v| v.why.as_deref() == Some("used without the pool"), Reason::WentOn),
        (is_missing, Reason::Missing),
        (is_bad_label, Reason::BadLabel),
        (
            |v| v.read_errors + v.write_errors + v.checksum_errors > 0 || v.state == "DEGRADED",
            Reason::Failing,
        ),
        (|v| v.state == "OFFLINE", Reason::Offline),
        (|v| v.state == "REMOVED", Reason::Removed),
        (|v| v.why.as_deref() == Some("(awaiting resilver)"), Reason::Behind),
    ];
    tests.into_iter().find(|(test, _)| leaves(root).any(test)).map(|(_, reason)| reason)
}

fn leaves(root: &Vdev) -> impl Iterator<Item = &Vdev> {
    root.walk().into_iter().filter(|v| v.is_leaf() && v.kind != "hole" && v.kind != "root")
}

fn is_faulted(vdev: &Vdev) -> bool {
    vdev.state == "FAULTED" && !is_bad_label(vdev)
}

fn is_missing(vdev: &Vdev) -> bool {
    vdev.state == "UNAVAIL" && vdev.why.as_deref() == Some("cannot open")
}

fn is_bad_label(vdev: &Vdev) -> bool {
    !is_up(vdev) && matches!(vdev.why.as_deref(), Some("corrupted data" | "invalid label"))
}

impl Reason {
    /// Whether `status -x` passes over it.
    pub fn is_mild(self) -> bool {
        self == Reason::OldVersion
    }

    pub fn words(self) -> Words {
        use Reason::*;
        let (status, action, message) = match self {
            Resilvering => (
                "One or more devices is currently being resilvered.  The pool will\n\tcontinue to function, possibly in a degraded state.",
                "Wait for the resilver to complete.",
                None,
            ),
            Suspended => (
                "One or more devices are faulted in response to IO failures.",
                "Make sure the affected devices are connected and that files have\n\troom to grow, then run 'zpool clear'.",
                Some("ZFS-8000-HC"),
            ),
            NotOpen => (
                "The pool could not be opened.  Its devices are there, and what is on\n\tthem was not changed.",
                "Remove what stands in the way, as said below, then run 'zpool clear':\n\tit is tried again.",
                None,
            ),
            Missing => (
                "One or more devices could not be opened.  Sufficient replicas exist for\n\tthe pool to continue functioning in a degraded state.",
                "Attach the missing device and online it using 'zpool online', or\n\treplace it using 'zpool replace'.",
                Some("ZFS-8000-2Q"),
            ),
            MissingUnusable => (
                "One or more devices could not be opened.  There are insufficient\n\treplicas for the pool to continue functioning.",
                "Attach the missing device: it is used again when the pool is opened\n\tnext, as by 'zpool clear'.",
                Some("ZFS-8000-3C"),
            ),
            WentOn => (
                "One or more devices were used without the pool, and are not taken back:\n\tthey have what the pool has not.",
                "Copy that from an import of them alone, then have each taken as a new\n\tdevice by 'zpool detach' and 'zpool attach -f', or 'zpool replace -f'.",
                None,
            ),
            BadLabel => (
                "One or more devices could not be used because the label is missing or\n\tinvalid.  Sufficient replicas exist for the pool to continue\n\tfunctioning in a degraded state.",
                "Replace the device using 'zpool replace'.",
                Some("ZFS-8000-4J"),
            ),
            BadLabelUnusable => (
                "One or more devices could not be used because the label is missing \n\tor invalid.  There are insufficient replicas for the pool to continue\n\tfunctioning.",
                "Destroy and re-create the pool from\n\ta backup source.",
                Some("ZFS-8000-5E"),
            ),
            Failing => (
                "One or more devices has experienced an unrecoverable error.  An\n\tattempt was made to correct the error.  Applications are unaffected.",
                "Determine if the device needs to be replaced, and clear the errors\n\tusing 'zpool clear' or replace the device with 'zpool replace'.",
                Some("ZFS-8000-9P"),
            ),
            Offline => (
                "One or more devices has been taken offline by the administrator.\n\tSufficient replicas exist for the pool to continue functioning in a\n\tdegraded state.",
                "Online the device using 'zpool online' or replace the device with\n\t'zpool replace'.",
                None,
            ),
            Removed => (
                "One or more devices have been removed.\n\tSufficient replicas exist for the pool to continue functioning in a\n\tdegraded state.",
                "Online the device using 'zpool online' or replace the device with\n\t'zpool replace'.",
                None,
            ),
            CorruptData => (
                "One or more devices has experienced an error resulting in data\n\tcorruption.  Applications may be affected.",
                "Restore the file in question if possible.  Otherwise restore the\n\tentire pool from backup.",
                Some("ZFS-8000-8A"),
            ),
            CorruptPool => (
                "The pool metadata is incomplete or corrupted and the pool cannot be opened.",
                "Destroy and re-create the pool from\n\ta backup source.",
                Some("ZFS-8000-72"),
            ),
            Faulted => (
                "One or more devices are faulted in response to persistent errors.\n\tSufficient replicas exist for the pool to continue functioning in a\n\tdegraded state.",
                "Replace the faulted device, or use 'zpool clear' to mark the device\n\trepaired.",
                None,
            ),
            FaultedUnusable => (
                "One or more devices are faulted in response to persistent errors.  There are insufficient replicas for the pool to\n\tcontinue functioning.",
                "Destroy and re-create the pool from a backup source.  Manually marking the device\n\trepaired using 'zpool clear' may allow some data to be recovered.",
                None,
            ),
            Behind => (
                "One or more devices did not take all that was written, which the others\n\thave: their host may be full.",
                "Make sure that files have room to grow, then run 'zpool clear': what is\n\tmissing is written again.",
                None,
            ),
            Unverified => (
                "One or more devices have been sequentially resilvered, scrubbing\n\tthe pool is recommended.",
                "Use 'zpool scrub' to verify all data checksums.",
                None,
            ),
            OldVersion => (
                "The pool is formatted using a legacy on-disk format.  The pool can\n\tstill be used, but some features are unavailable.",
                "Upgrade the pool with OpenZFS, after 'zpool export'.  Once this is done,\n\tthe pool will no longer be accessible on software that does not support\n\tfeature flags.",
                None,
            ),
        };
        Words { status, action, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Reason; 18] = [
        Reason::Resilvering,
        Reason::Suspended,
        Reason::NotOpen,
        Reason::FaultedUnusable,
        Reason::MissingUnusable,
        Reason::BadLabelUnusable,
        Reason::CorruptPool,
        Reason::CorruptData,
        Reason::Faulted,
        Reason::Missing,
        Reason::WentOn,
        Reason::BadLabel,
        Reason::Failing,
        Reason::Offline,
        Reason::Removed,
        Reason::Behind,
        Reason::Unverified,
        Reason::OldVersion,
    ];

    /// `status` told people to use 'zpool online', 'replace', 'clear' and 'upgrade', each of which was refused as no part of
    /// this version.
    #[test]
    fn no_condition_advises_a_command_that_is_refused() {
        for reason in ALL {
            let Words { status, action, .. } = reason.words();
            for text in [status, action] {
                assert_eq!(crate::args::refused_in(text), Vec::<String>::new(), "{reason:?}: {text}");
            }
        }
        // What would be found.
        assert_eq!(crate::args::refused_in("use 'zpool ddtprune' or 'zfs list'"), ["zpool ddtprune"]);
    }
    /// What `status` can say is in one table for people, with what makes it true and what helps.
    #[test]
    fn every_sentence_is_in_the_documents_word_for_word() {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = plain(include_str!("../../../../docs/status.md"));
        for reason in ALL {
            let Words { status, action, message } = reason.words();
            let row = format!("| {} | ", plain(status));
            assert!(
                page.contains(&row) && page.contains(&format!(" | {} |", plain(action))),
                "{reason:?}: {row}"
            );
            if let Some(message) = message {
                assert!(page.contains(message), "{message}");
            }
        }
        // One that was never added would not be asked for: the count of rows tells.
        let rows = include_str!("../../../../docs/status.md").lines().filter(|line| line.starts_with("| "));
        assert_eq!(rows.count(), ALL.len() + 1, "each condition has a row, and the table a heading");
    }
}
