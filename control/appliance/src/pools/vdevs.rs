//! Trees of vdevs as they travel.

use api::ScanState as ScanningState;
use api::{Class, DeviceWear, Flushes, IoClass, IoKind, Property, Rebuild, Vdev, VdevStats};
use ondisk::RebuildState;
use ondisk::dsl::{ScanFunc, ScanState};
use pool::{Pool, PoolReport, RebuildStatus, VdevProperties};
use units::Guid;
use vdev::{
    Aux, AuxKind, Bias, Candidate, ClassSnapshot, Health, KindSnapshot, Priority, Snapshot, Spec, Tree,
    VdevStatus,
};

/// The tree of an open pool, its caches and spares at the end.
pub(crate) fn of_report(report: &PoolReport) -> Vdev {
    let status = &report.vdevs;
    let mut root = Vdev { space: Some((report.size, report.allocated)), ..one(status) };
    for top in &status.children {
        let space = report.space.get(&top.guid);
        let last = report.rebuilds.iter().find(|rebuild| rebuild.guid == top.guid).map(rebuild);
        root.children.push(Vdev {
            rebuild: last.map(Box::new),
            class: Some(class(top.bias)),
            space: space.map(|s| (s.size, s.allocated)),
            fragmentation: space.and_then(|s| s.fragmentation),
            ..below(top)
        });
    }
    for (devices, class) in [(&status.caches, Class::Cache), (&status.spares, Class::Spare)] {
        root.children.extend(devices.iter().map(|device| {
            let space = report.space.get(&device.guid).map(|s| (s.size, s.allocated));
            let fragmentation = (class == Class::Cache).then_some(0);
            let vdev = Vdev { class: Some(class), space, fragmentation, ..below(device) };
            match &device.detail {
                // It is well, and another pool has it.
                Some(user) if device.health.aux == Aux::Spared => used(vdev, user.clone()),
                _ => vdev,
            }
        }));
    }
    let tops = root.children.iter().filter(|t| !matches!(t.class, Some(Class::Cache | Class::Spare)));
    let sum = tops.fold(VdevStats::default(), |mut sum, top| {
        add_stats(&mut sum, &top.stats);
        sum
    });
    root.stats = sum;
    if report.scan.as_ref().is_some_and(|s| s.func == ScanFunc::Resilver && s.state == ScanState::Scanning) {
        say_resilvering(&mut root);
    }
    let is_going = |top: &&mut Vdev| top.rebuild.as_ref().is_some_and(|r| r.state == ScanningState::Running);
    root.children.iter_mut().filter(is_going).for_each(say_resilvering);
    root
}

fn used(spare: Vdev, user: String) -> Vdev {
    Vdev { state: Health::ONLINE.word().into(), why: Some(user), ..spare }
}

/// Says of spares that are in use by another pool that is open here, by which.
pub(crate) fn add_users(root: &mut Vdev, others: &[&Pool]) {
    let free = root.children.iter_mut().filter(|vdev| vdev.class == Some(Class::Spare) && vdev.why.is_none());
    for spare in free {
        let user = others.iter().find(|pool| pool.tree().find_leaf(Guid(spare.guid)).is_some());
        if let Some(user) = user {
            spare.why = Some(vdev::in_use_by(&user.name()));
        }
    }
}

fn rebuild(status: &RebuildStatus) -> Rebuild {
    let phys = &status.phys;
    Rebuild {
        state: match phys.state {
            RebuildState::Complete => ScanningState::Finished,
            RebuildState::Canceled => ScanningState::Canceled,
            RebuildState::Active | RebuildState::None => ScanningState::Running,
        },
        started: phys.start_time,
        ended: phys.end_time,
        elapsed_ms: phys.scan_time_ms,
        scanned: phys.bytes_scanned,
        issued: phys.bytes_issued,
        expected: phys.bytes_expected,
        rebuilt: phys.bytes_rebuilt,
        errors: phys.errors,
        pass_ms: status.pass_ms,
        pass_scanned: status.pass_scanned,
        pass_issued: status.pass_issued,
    }
}

/// What a device that is behind waits for, and what it says while it is waited for.
const AWAITING: &str = "(awaiting resilver)";
const AVOIDED: &str = "slow, reads avoid it";
const RESILVERING: &str = "(resilvering)";

fn say_resilvering(vdev: &mut Vdev) {
    if vdev.why.as_deref() == Some(AWAITING) {
        vdev.why = Some(RESILVERING.to_string());
    }
    vdev.children.iter_mut().for_each(say_resilvering);
}

/// Adds what was set on single vdevs.
pub(crate) fn add_properties(vdev: &mut Vdev, all: &VdevProperties) {
    if let Some(own) = all.get(&Guid(vdev.guid)) {
        let local = |(name, value): (&String, &String)| {
            Property::new(name, Some(value.clone().into()), api::Source::Local)
        };
        vdev.properties = own.iter().map(local).collect();
    }
    vdev.children.iter_mut().for_each(|child| add_properties(child, all));
}

/// Adds what was written to cache and log devices.
pub(crate) fn add_wear(vdev: &mut Vdev, all: &[(Guid, DeviceWear)]) {
    let own = all.iter().find(|(guid, _)| guid.0 == vdev.guid);
    vdev.wear = own.map(|(_, wear)| Box::new(wear.clone()));
    vdev.children.iter_mut().for_each(|child| add_wear(child, all));
}

/// The vdev that is called so: by its guid, its path or a part of it, or its name in listings.
pub(crate) fn find<'a>(spec: &'a Spec, name: &str) -> Option<&'a Spec> {
    let is_it = |spec: &Spec| {
        let file = spec.path.as_ref().and_then(|p| std::path::Path::new(p).file_name());
        spec.guid.0.to_string() == name
            || spec.path.as_deref() == Some(name)
            || file.is_some_and(|file| file == name)
            || spec.name() == name
    };
    spec.children.iter().find_map(|child| if is_it(child) { Some(child) } else { find(child, name) })
}

/// The spare or cache device that is called so.
pub(crate) fn find_beside(tree: &Tree, kind: AuxKind, name: &str) -> Option<Guid> {
    let is_it = |spec: &Spec| spec.path.as_deref() == Some(name) || spec.guid.0.to_string() == name;
    tree.aux(kind).into_iter().map(|device| device.spec).find(is_it).map(|spec| spec.guid)
}

fn class(bias: Bias) -> Class {
    match bias {
        Bias::Normal => Class::Normal,
        Bias::Log => Class::Log,
        Bias::Special => Class::Special,
        Bias::Dedup => Class::Dedup,
    }
}

/// What labels take of a device: two of them and the boot block in front of the data, two behind it.
const LABELS: u64 = (4 << 20) + (512 << 10);

fn below(status: &VdevStatus) -> Vdev {
    Vdev { children: status.children.iter().map(below).collect(), ..one(status) }
}

fn one(status: &VdevStatus) -> Vdev {
    let is_leaf = status.vdev_type.is_leaf();
    Vdev {
        kind: status.vdev_type.word().into(),
        guid: status.guid.0,
        id: status.id.unwrap_or(0),
        path: status.path.clone(),
        parity: status.parity,
        class: None,
        state: status.health.word().into(),
        why: why(status.health)
            .or_else(|| status.is_behind.then(|| AWAITING.to_string()))
            .or_else(|| status.is_avoided.then(|| AVOIDED.to_string())),
        read_errors: status.errors.read,
        write_errors: status.errors.write,
        checksum_errors: status.errors.checksum,
        slow_ios: status.slow_operations,
        space: None,
        size: if is_leaf && status.asize > 0 { status.asize + LABELS } else { 0 },
        expandable: status.expandable,
        rebuild: None,
        fragmentation: None,
        ashift: status.ashift,
        physical_block: status.physical_block,
        stats: stats(&status.stats),
        properties: Vec::new(),
        wear: None,
        swept: Vec::new(),
        children: Vec::new(),
    }
}

fn why(health: Health) -> Option<String> {
    Some(health.aux.phrase()).filter(|words| !words.is_empty()).map(String::from)
}

/// The tree of a pool that was too incomplete to be opened.
pub(crate) fn of_status(status: &VdevStatus) -> Vdev {
    let top = |top: &VdevStatus| Vdev { class: Some(class(top.bias)), ..below(top) };
    Vdev { children: status.children.iter().map(top).collect(), ..one(status) }
}

/// The tree of a pool of which nothing was found but where its devices were.
pub(crate) fn of_nothing(devices: &[String]) -> Vdev {
    let unavailable = |kind: &str, path: Option<String>, why: &str| Vdev {
        kind: kind.into(),
        path,
        state: "UNAVAIL".into(),
        why: Some(why.into()),
        ..Vdev::default()
    };
    let kind = |path: &String| if path.starts_with("/dev/") { "disk" } else { "file" };
    let leaf = |path: &String| Vdev {
        class: Some(Class::Normal),
        ..unavailable(kind(path), Some(path.clone()), "cannot open")
    };
    Vdev {
        children: devices.iter().map(leaf).collect(),
        ..unavailable("root", None, "insufficient replicas")
    }
}

/// The tree of a pool that was found on devices.
pub(crate) fn of_candidate(candidate: &Candidate) -> Vdev {
    let mut root = of_spec(candidate, &candidate.tree);
    let health = candidate.health();
    (root.state, root.why) = (health.word().into(), why(health));
    for top in &mut root.children {
        top.class.get_or_insert(Class::Normal);
    }
    root
}

fn of_spec(candidate: &Candidate, spec: &Spec) -> Vdev {
    let health = candidate.health_of(spec);
    Vdev {
        kind: spec.vdev_type.word().into(),
        guid: spec.guid.0,
        id: spec.id.unwrap_or(0),
        path: spec.path.clone(),
        parity: spec.nparity.unwrap_or(0),
        class: spec.is_log().then_some(Class::Log),
        state: health.word().into(),
        why: why(health),
        children: spec.children.iter().map(|c| of_spec(candidate, c)).collect(),
        ..Vdev::default()
    }
}

fn stats(snapshot: &Snapshot) -> VdevStats {
    let class = |priority| io_class(snapshot.class(priority));
    VdevStats {
        read: io_kind(&snapshot.read),
        write: io_kind(&snapshot.write),
        trim: io_kind(&snapshot.trim),
        sync_read: class(Priority::SyncRead),
        sync_write: class(Priority::SyncWrite),
        async_read: class(Priority::AsyncRead),
        async_write: class(Priority::AsyncWrite),
        scrub: class(Priority::Scrub),
        trim_class: class(Priority::Trim),
        rebuild: class(Priority::Rebuild),
        flush: Flushes {
            asked: snapshot.flushes_asked,
            sent: snapshot.flushes,
            wait_ns: snapshot.flush_ns,
            wait: snapshot.flush_wait.to_vec(),
        },
    }
}

fn io_kind(kind: &KindSnapshot) -> IoKind {
    IoKind {
        ops: kind.ops,
        bytes: kind.bytes,
        total_wait: kind.total_wait.to_vec(),
        disk_wait: kind.disk_wait.to_vec(),
    }
}

fn io_class(class: &ClassSnapshot) -> IoClass {
    IoClass {
        pending: class.waiting,
        active: class.active,
        queue_wait: class.queue_wait.to_vec(),
        individual: class.individual.to_vec(),
        aggregated: class.aggregated.to_vec(),
    }
}

fn add_stats(to: &mut VdevStats, from: &VdevStats) {
    for (to, from) in [(&mut to.read, &from.read), (&mut to.write, &from.write), (&mut to.trim, &from.trim)] {
        to.ops += from.ops;
        to.bytes += from.bytes;
        add_histogram(&mut to.total_wait, &from.total_wait);
        add_histogram(&mut to.disk_wait, &from.disk_wait);
    }
    to.flush.asked += from.flush.asked;
    to.flush.sent += from.flush.sent;
    to.flush.wait_ns += from.flush.wait_ns;
    add_histogram(&mut to.flush.wait, &from.flush.wait);
    let classes = [
        (&mut to.sync_read, &from.sync_read),
        (&mut to.sync_write, &from.sync_write),
        (&mut to.async_read, &from.async_read),
        (&mut to.async_write, &from.async_write),
        (&mut to.scrub, &from.scrub),
        (&mut to.trim_class, &from.trim_class),
        (&mut to.rebuild, &from.rebuild),
    ];
    for (to, from) in classes {
        to.pending += from.pending;
        to.active += from.active;
        add_histogram(&mut to.queue_wait, &from.queue_wait);
        add_histogram(&mut to.individual, &from.individual);
        add_histogram(&mut to.aggregated, &from.aggregated);
    }
}

fn add_histogram(to: &mut Vec<u64>, from: &[u64]) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}
