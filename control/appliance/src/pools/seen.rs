//! What is new in a pool since the last look at it, as events. Pure.
//!
//! ```text
//!   report of the pool, its data errors, its trims ─▶ Seen::note ─▶ classes with fields
//!                                                        └ what was seen, by pool
//! ```
//!
//! A scan is known by its kind, its second and the txg it began in: two may begin in one second. A report that is older
//! than one that was noted is passed over.

use api::DataErrors;
use ondisk::RebuildState;
use ondisk::dsl::{ScanFunc, ScanState};
use pool::{ErrorScrubStatus, PoolReport, RebuildStatus, ScanStatus, SweepState, SweepStatus};
use std::collections::{BTreeMap, BTreeSet};
use units::{Guid, Txg};
use vdev::{Errors as Counters, VdevStatus};

/// Data errors of one pool that are events of their own, at one look.
const DATA_MAX: usize = 256;

/// How far each device was trimmed.
pub(crate) type Trims = Vec<(Guid, SweepStatus)>;

/// What each event of a pool begins with, as OpenZFS has it: a pool that is told of is in use, and not being opened.
pub(crate) fn of_pool(name: &str, guid: Guid) -> Vec<(String, String)> {
    let active = || "0x0".to_string();
    vec![
        ("pool".into(), name.into()),
        ("pool_guid".into(), format!("{:#x}", guid.0)),
        ("pool_state".into(), active()),
        ("pool_context".into(), active()),
    ]
}

/// The state of a device that the pool has no more.
pub(crate) const CLOSED: &str = "CLOSED";

/// What an event of a device says of it, after what it says of the pool.
pub(crate) fn of_vdev(guid: Guid, state: &str, path: Option<&str>) -> Vec<(String, String)> {
    let fields = [("vdev_guid", format!("{:#x}", guid.0)), ("vdev_state", state.to_string())];
    let path = path.map(|path| ("vdev_path", path.to_string()));
    fields.into_iter().chain(path).map(|(name, value)| (name.to_string(), value)).collect()
}

/// What was seen of the pools at the last look.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<Guid, SeenPool>);

#[derive(Debug, Default)]
struct SeenPool {
    scan: Option<ScanStatus>,
    error_scrub: Option<ErrorScrubStatus>,
    /// Of each vdev that was rebuilt in the order of the disk.
    rebuilds: Vec<RebuildStatus>,
    is_suspended: bool,
    devices: BTreeMap<Guid, Device>,
    lost: BTreeSet<String>,
    trims: BTreeMap<Guid, Trim>,
    /// When that was, by the clock of the reports.
    at_ns: u64,
}

#[derive(Debug)]
struct Device {
    state: &'static str,
    errors: Counters,
    path: Option<String>,
}

/// A trim at one look: its state, since when it is in it, and which one it is: two may end within a second.
type Trim = (SweepState, (u64, u64));

type Told = (String, Vec<(String, String)>);

impl Seen {
    pub fn forget_all_but(&mut self, pools: &[Guid]) {
        self.0.retain(|guid, _| pools.contains(guid));
    }

    /// The pool has these devices now, and what became of the others is told otherwise.
    pub fn settle(&mut self, pool: Guid, devices: &BTreeSet<Guid>) {
        if let Some(seen) = self.0.get_mut(&pool) {
            seen.devices.retain(|guid, _| devices.contains(guid));
        }
    }

    /// A pool that comes back is a new one.
    pub fn forget(&mut self, pool: Guid) {
        self.0.remove(&pool);
    }

    /// The events that explain what is new in a report. Pure. A pool that is seen for the first time explains itself.
    pub fn note(&mut self, report: &PoolReport, errors: &DataErrors, trims: &Trims) -> Vec<Told> {
        let is_first = !self.0.contains_key(&report.guid);
        let seen = self.0.entry(report.guid).or_default();
        if report.clock_ns < seen.at_ns {
            return Vec::new();
        }
        seen.at_ns = report.clock_ns;
        let mut told = Vec::new();
        let mut tell = |class: &str, more: Vec<(String, String)>| {
            let fields = of_pool(&report.name, report.guid).into_iter().chain(more).collect();
            told.push((class.to_string(), fields));
        };
        for device in leaves(&report.vdevs) {
            let state = device.health.word();
            let known = Device { state, errors: device.errors, path: device.path.clone() };
            let before = seen.devices.insert(device.guid, known).map(|before| (before.state, before.errors));
            let (was, counted) =
                before.unwrap_or((state, if is_first { Counters::default() } else { device.errors }));
            if was != state {
                let mut fields = of_vdev(device.guid, state, device.path.as_deref());
                fields.push(("vdev_laststate".into(), was.into()));
                tell("resource.fs.zfs.statechange", fields);
            }
            let now = device.errors;
            if now.read > counted.read || now.write > counted.write {
                tell("ereport.fs.zfs.io", of_device(device));
            }
            if now.checksum > counted.checksum {
                tell("ereport.fs.zfs.checksum", of_device(device));
            }
        }
        let there: BTreeSet<Guid> = leaves(&report.vdevs).iter().map(|leaf| leaf.guid).collect();
        let gone: Vec<Guid> = seen.devices.keys().filter(|guid| !there.contains(guid)).copied().collect();
        for (guid, device) in gone.into_iter().filter_map(|guid| Some((guid, seen.devices.remove(&guid)?))) {
            // One that was replaced, or a spare that is not needed any more.
            tell("sysevent.fs.zfs.vdev_remove", of_vdev(guid, CLOSED, device.path.as_deref()));
        }
        let lost: BTreeSet<String> = errors.names.iter().cloned().collect();
        for name in lost.difference(&seen.lost).take(DATA_MAX) {
            tell("ereport.fs.zfs.data", vec![("name".into(), name.clone())]);
        }
        seen.lost = lost;
        let is_suspended = report.suspended.is_some();
        if is_suspended && !seen.is_suspended {
            let why = report.suspended.clone().unwrap_or_default();
            tell("ereport.fs.zfs.io_failure", vec![("why".into(), why)]);
        }
        seen.is_suspended = is_suspended;
        let scans = of_scan(seen.scan.as_ref(), report.scan.as_ref(), is_first);
        seen.scan = report.scan.clone();
        for what in scans {
            let scan = report.scan.as_ref();
            let errors = scan.map_or(0, |s| s.errors).to_string();
            tell(&format!("sysevent.fs.zfs.{what}"), vec![("errors".into(), errors)]);
        }
        let before = seen.error_scrub.as_ref().map(Look::of_error_scrub);
        let now = report.error_scrub.as_ref().map(Look::of_error_scrub);
        for what in of_activity("errorscrub", before, now, is_first) {
            let errors = report.error_scrub.as_ref().map_or(0, |s| s.errors).to_string();
            tell(&format!("sysevent.fs.zfs.{what}"), vec![("errors".into(), errors)]);
        }
        seen.error_scrub = report.error_scrub.clone();
        for rebuild in &report.rebuilds {
            let before = seen.rebuilds.iter().find(|before| before.vdev == rebuild.vdev);
            for what in of_rebuild(before, rebuild, is_first) {
                let fields =
                    [("errors", rebuild.phys.errors.to_string()), ("resilver_type", "sequential".into())];
                let vdev = ("vdev_guid".to_string(), format!("{:#x}", rebuild.guid.0));
                let fields = fields.map(|(name, value)| (name.to_string(), value)).into_iter().chain([vdev]);
                tell(&format!("sysevent.fs.zfs.{what}"), fields.collect());
            }
        }
        seen.rebuilds = report.rebuilds.clone();
        for (guid, trim) in trims {
            let now = (trim.state, (trim.since, trim.begun));
            let before = seen.trims.insert(*guid, now);
            let device = leaves(&report.vdevs).into_iter().find(|leaf| leaf.guid == *guid);
            let (state, path) =
                device.map_or((CLOSED, None), |device| (device.health.word(), device.path.as_deref()));
            for what in of_trim(before.or_else(|| is_first.then_some(now)), now) {
                tell(&format!("sysevent.fs.zfs.{what}"), of_vdev(*guid, state, path));
            }
        }
        seen.trims.retain(|guid, _| trims.iter().any(|(other, _)| other == guid));
        told
    }
}

/// What has happened to a rebuild between two looks; canceled is finished, as OpenZFS tells it.
fn of_rebuild(before: Option<&RebuildStatus>, now: &RebuildStatus, is_first: bool) -> Vec<&'static str> {
    let is_over = |rebuild: &RebuildStatus| rebuild.phys.state != RebuildState::Active;
    // One that begins anew for another device, while it is under way, keeps its second and takes in another txg.
    let same = before.filter(|before| {
        before.phys.start_time == now.phys.start_time
            && (before.phys.max_txg == now.phys.max_txg || !is_over(before))
    });
    let mut events = Vec::new();
    if same.is_none() && !(is_first && is_over(now)) {
        events.push("resilver_start");
    }
    if is_over(now) && !same.map_or(is_first, is_over) {
        events.push("resilver_finish");
    }
    events
}

/// What has happened to the trim of a device between two looks.
fn of_trim<K: PartialEq>(before: Option<(SweepState, K)>, now: (SweepState, K)) -> Vec<&'static str> {
    use SweepState::{Active, Canceled, Complete, None as Never, Suspended};
    if before.as_ref() == Some(&now) {
        return Vec::new();
    }
    let was = before.map_or(Never, |(state, _)| state);
    let began = if was == Suspended { "trim_resume" } else { "trim_start" };
    match now.0 {
        Never => Vec::new(),
        Active if was == Active => Vec::new(),
        Active => vec![began],
        ended => {
            let end = match ended {
                Complete => "trim_finish",
                Canceled => "trim_cancel",
                _ => "trim_suspend",
            };
            let is_known = was == Active || (was == Suspended && ended == Canceled);
            if is_known { vec![end] } else { vec![began, end] }
        }
    }
}

/// A scan at one look.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    /// Which one it is: what it does, the second and the txg in which it began.
    key: (ScanFunc, u64, Txg),
    state: ScanState,
    is_paused: bool,
}

impl Look {
    fn of_scan(scan: &ScanStatus) -> Look {
        Look {
            key: (scan.func, scan.start_time, scan.begun),
            state: scan.state,
            is_paused: scan.paused.is_some(),
        }
    }

    fn of_error_scrub(scrub: &ErrorScrubStatus) -> Look {
        let key = (ScanFunc::ErrorScrub, scrub.start_time, scrub.begun);
        Look { key, state: scrub.state, is_paused: scrub.paused.is_some() }
    }

    fn is_over(self) -> bool {
        !matches!(self.state, ScanState::Scanning | ScanState::ErrorScrubbing)
    }
}

/// What has happened to scans between two looks.
fn of_scan(before: Option<&ScanStatus>, now: Option<&ScanStatus>, is_first: bool) -> Vec<String> {
    let word = if now.is_some_and(|now| now.func == ScanFunc::Resilver) { "resilver" } else { "scrub" };
    of_activity(word, before.map(Look::of_scan), now.map(Look::of_scan), is_first)
}

fn of_activity(word: &str, before: Option<Look>, now: Option<Look>, is_first: bool) -> Vec<String> {
    let Some(now) = now else { return Vec::new() };
    let same = before.filter(|before| before.key == now.key);
    let mut events = Vec::new();
    // One that was over when the pool was opened is history.
    if same.is_none() && !(is_first && now.is_over()) {
        events.push(format!("{word}_start"));
    }
    let was_over = same.map_or(is_first, Look::is_over);
    let was_paused = same.is_some_and(|scan| scan.is_paused);
    match now.state {
        ScanState::Finished if !was_over => events.push(format!("{word}_finish")),
        ScanState::Canceled if !was_over => events.push(format!("{word}_abort")),
        _ if now.is_over() => {}
        _ if now.is_paused && !was_paused => events.push(format!("{word}_paused")),
        _ if !now.is_paused && was_paused => events.push(format!("{word}_resume")),
        _ => {}
    }
    events
}

fn of_device(device: &VdevStatus) -> Vec<(String, String)> {
    let Counters { read, write, checksum } = device.errors;
    let mut fields = vec![("vdev_guid".into(), format!("{:#x}", device.guid.0))];
    fields.extend(device.path.as_ref().map(|path| ("vdev_path".to_string(), path.clone())));
    let counters =
        [("vdev_read_errors", read), ("vdev_write_errors", write), ("vdev_cksum_errors", checksum)];
    fields.extend(counters.map(|(name, count)| (name.to_string(), count.to_string())));
    fields
}

/// The devices of a tree of vdevs.
pub(crate) fn leaves(status: &VdevStatus) -> Vec<&VdevStatus> {
    if status.children.is_empty() {
        let is_place = matches!(status.vdev_type, vdev::VdevType::Root | vdev::VdevType::Hole);
        return if is_place { Vec::new() } else { vec![status] };
    }
    status.children.iter().flat_map(leaves).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(start_time: u64, state: ScanState, paused: Option<u64>) -> ScanStatus {
        ScanStatus {
            func: ScanFunc::Scrub,
            state,
            start_time,
            begun: Txg(start_time),
            end_time: 0,
            paused,
            to_examine: 0,
            examined: 0,
            repaired: 0,
            errors: 0,
            pass_elapsed: 0,
            pass_examined: 0,
        }
    }

    #[test]
    fn a_rebuild_is_told_of_when_it_begins_and_ends() {
        let rebuild = |start_time, state| RebuildStatus {
            vdev: units::VdevId(0),
            guid: units::Guid(7),
            phys: ondisk::RebuildPhys { state, start_time, ..Default::default() },
            pass_ms: 0,
            pass_scanned: 0,
            pass_issued: 0,
        };
        use RebuildState::{Active, Complete};
        let (going, over) = (rebuild(5, Active), rebuild(5, Complete));
        assert_eq!(of_rebuild(None, &going, false), ["resilver_start"]);
        assert_eq!(of_rebuild(Some(&going), &over, false), ["resilver_finish"]);
        assert_eq!(
            of_rebuild(Some(&over), &rebuild(6, Complete), false),
            ["resilver_start", "resilver_finish"]
        );
        assert_eq!(of_rebuild(None, &over, true), [""; 0], "history");
        assert_eq!(of_rebuild(Some(&going), &going, false), [""; 0]);
    }

    #[test]
    fn a_scan_is_told_of_by_openzfs_s_classes_however_short_it_is() {
        use ScanState::{Canceled, Finished, Scanning};
        let (running, paused) = (scan(1, Scanning, None), scan(1, Scanning, Some(2)));
        let check = |before: Option<&ScanStatus>, now: &ScanStatus, is_first, expected: &[&str]| {
            assert_eq!(of_scan(before, Some(now), is_first), expected);
        };
        check(None, &running, false, &["scrub_start"]);
        check(Some(&running), &paused, false, &["scrub_paused"]);
        check(Some(&paused), &running, false, &["scrub_resume"]);
        check(Some(&running), &scan(1, Finished, None), false, &["scrub_finish"]);
        check(Some(&running), &scan(1, Canceled, None), false, &["scrub_abort"]);
        check(
            Some(&scan(1, Finished, None)),
            &scan(9, Finished, None),
            false,
            &["scrub_start", "scrub_finish"],
        );
        check(None, &scan(1, Finished, None), false, &["scrub_start", "scrub_finish"]);
        check(None, &scan(1, Finished, None), true, &[]);
        check(Some(&running), &running, false, &[]);
        let next = ScanStatus { begun: Txg(2), ..scan(1, Finished, None) };
        let both = ["scrub_start", "scrub_finish"];
        check(Some(&scan(1, Finished, None)), &next, false, &both);
    }

    #[test]
    fn a_trim_is_told_of_however_short_it_is() {
        use SweepState::{Active, Canceled, Complete, None as Never, Suspended};
        let told = |before, now| of_trim(before, now).join(" ");
        assert_eq!(told(None, (Active, 5)), "trim_start");
        assert_eq!(told(Some((Active, 5)), (Complete, 6)), "trim_finish");
        assert_eq!(told(Some((Complete, 6)), (Complete, 6)), "");
        assert_eq!(told(Some((Complete, 6)), (Complete, 9)), "trim_start trim_finish");
        assert_eq!(told(Some((Active, 5)), (Suspended, 6)), "trim_suspend");
        assert_eq!(told(Some((Suspended, 6)), (Active, 7)), "trim_resume");
        assert_eq!(told(Some((Suspended, 6)), (Canceled, 7)), "trim_cancel");
        assert_eq!(told(Some((Complete, 6)), (Never, 0)), "");
        // Two within a second.
        assert_eq!(of_trim(Some((Complete, (6, 1))), (Complete, (6, 2))), ["trim_start", "trim_finish"]);
    }

    #[test]
    fn a_scrub_of_the_error_log_has_classes_of_its_own() {
        let look = |state, is_paused| Some(Look { key: (ScanFunc::ErrorScrub, 1, Txg(1)), state, is_paused });
        let (going, paused) = (look(ScanState::ErrorScrubbing, false), look(ScanState::ErrorScrubbing, true));
        let over = |state| look(state, false);
        let told = |before, now| of_activity("errorscrub", before, now, false).join(" ");
        assert_eq!(told(None, going), "errorscrub_start");
        assert_eq!(told(going, paused), "errorscrub_paused");
        assert_eq!(told(paused, going), "errorscrub_resume");
        assert_eq!(told(going, over(ScanState::Finished)), "errorscrub_finish");
        assert_eq!(told(going, over(ScanState::Canceled)), "errorscrub_abort");
        assert_eq!(told(going, going), "");
        let finished = over(ScanState::Finished);
        let next = finished.map(|look| Look { key: (ScanFunc::ErrorScrub, 1, Txg(2)), ..look });
        assert_eq!(told(finished, next), "errorscrub_start errorscrub_finish", "within the same second");
    }
}
