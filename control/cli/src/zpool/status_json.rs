//! `zpool status -j`.

use super::list::{key, summary};
use super::list_vdevs::{class_word, is_of, state};
use super::{reason, scan};
use crate::args::zpool::Status;
use crate::text::vdev_name::vdev_name;
use crate::text::{date, json, number};
use api::{Class, ErrorScrub, Pool, Rebuild, Scan, ScanState, Vdev};
use serde_json::{Map, Value as Json, json};

pub(super) fn document(pools: &[Pool], args: &Status) -> String {
    let shown = |pool: &&Pool| !args.problems || !reason::of_pool(pool).is_none_or(reason::Reason::is_mild);
    let pools = pools.iter().filter(shown);
    let content = pools.map(|p| (key(p, args.json.json_pool_key_guid), Json::Object(describe(p, args))));
    json::document("zpool status", "pools", content.collect())
}

fn describe(pool: &Pool, args: &Status) -> Map<String, Json> {
    let as_int = args.json.json_int;
    let mut item = summary(pool, as_int);
    if let Some(reason) = reason::of_pool(pool) {
        let words = reason.words();
        item.insert("status".into(), json!(words.status));
        item.insert("action".into(), json!(words.action));
        if let Some(message) = words.message {
            item.insert("msgid".into(), json!(message));
            item.insert(
                "moreinfo".into(),
                json!(format!("https://openzfs.github.io/openzfs-docs/msg/{message}")),
            );
        }
    }
    if let Some(scan) = &pool.scan {
        item.insert("scan_stats".into(), scan_stats(scan, args));
    }
    if let Some(scrub) = pool.newest_error_scrub() {
        let stats = item.entry("scan_stats").or_insert_with(|| json!({}));
        if let Some(stats) = stats.as_object_mut() {
            stats.extend(error_scrub_stats(scrub, args));
        }
    }
    if let Some(root) = &pool.vdevs {
        add_vdevs(&mut item, root, pool, args);
    }
    item.insert("error_count".into(), json::number(pool.errors.count(), as_int));
    if args.verbose && !pool.errors.is_empty() {
        item.insert("errlist".into(), json!(pool.errors.lines()));
    }
    item
}

fn add_vdevs(item: &mut Map<String, Json>, root: &Vdev, pool: &Pool, args: &Status) {
    if args.json_flat_vdevs {
        let all = root.walk();
        let flat =
            all.iter().map(|v| (vdev_name(v, &pool.name, args.style), Json::Object(facts(v, pool, args))));
        item.insert("vdevs".into(), Json::Object(flat.collect()));
        return;
    }
    let mut tree = facts(root, pool, args);
    let named = |class| {
        let tops = root.children.iter().filter(move |t| is_of(t, class));
        tops.map(|t| (vdev_name(t, &pool.name, args.style), nested(t, pool, args))).collect::<Map<_, _>>()
    };
    tree.insert("vdevs".into(), Json::Object(named(Class::Normal)));
    let mut vdevs = Map::new();
    vdevs.insert(pool.name.clone(), Json::Object(tree));
    item.insert("vdevs".into(), Json::Object(vdevs));
    let classes = [
        (Class::Dedup, "dedup"),
        (Class::Special, "special"),
        (Class::Log, "logs"),
        (Class::Cache, "l2cache"),
        (Class::Spare, "spares"),
    ];
    for (class, key) in classes {
        let tops = named(class);
        if !tops.is_empty() {
            item.insert(key.into(), Json::Object(tops));
        }
    }
}

fn nested(vdev: &Vdev, pool: &Pool, args: &Status) -> Json {
    let mut item = facts(vdev, pool, args);
    if !vdev.children.is_empty() {
        let children =
            vdev.children.iter().map(|c| (vdev_name(c, &pool.name, args.style), nested(c, pool, args)));
        item.insert("vdevs".into(), Json::Object(children.collect()));
    }
    Json::Object(item)
}

fn facts(vdev: &Vdev, pool: &Pool, args: &Status) -> Map<String, Json> {
    let (exact, as_int) = (args.style.exact || args.json.json_int, args.json.json_int);
    let count = |n| json::text(&number::count(n, exact), as_int);
    let bytes = |n| json::text(&number::bytes(n, exact), as_int);
    let mut item = Map::new();
    item.insert("name".into(), json!(vdev_name(vdev, &pool.name, args.style)));
    item.insert("vdev_type".into(), json!(vdev.kind));
    item.insert("guid".into(), json::number(vdev.guid, as_int));
    item.insert("class".into(), json!(class_word(vdev.class)));
    item.insert("state".into(), json!(state(vdev)));
    if let Some(path) = &vdev.path {
        item.insert("path".into(), json!(path));
    }
    if let Some(why) = &vdev.why {
        item.insert("aux".into(), json!(why));
    }
    if let Some((space, used)) = vdev.space {
        item.insert("alloc_space".into(), bytes(used));
        item.insert("total_space".into(), bytes(space));
    }
    if let Some(rebuild) = &vdev.rebuild {
        item.insert("rebuild_stats".into(), rebuild_stats(rebuild, args));
    }
    if vdev.class != Some(Class::Spare) {
        item.insert("read_errors".into(), count(vdev.read_errors));
        item.insert("write_errors".into(), count(vdev.write_errors));
        item.insert("checksum_errors".into(), count(vdev.checksum_errors));
        if args.slow && vdev.is_leaf() {
            item.insert("slow_ios".into(), count(vdev.slow_ios));
        }
    }
    if let Some(wear) = &vdev.wear {
        item.insert("wear_seconds".into(), json::number(wear.seconds, as_int));
        item.insert("wear_written".into(), bytes(wear.written_bytes));
        item.insert("wear_per_day".into(), bytes(wear.bytes_per_day()));
        if let Some(again) = wear.again_bytes {
            item.insert("wear_read_again".into(), bytes(again));
        }
    }
    item
}

fn rebuild_stats(rebuild: &Rebuild, args: &Status) -> Json {
    let (exact, as_int) = (args.style.exact || args.json.json_int, args.json.json_int);
    let bytes = |n| json::text(&number::bytes(n, exact), as_int);
    let time = |n: u64| if exact { json::number(n, as_int) } else { json!(date::ctime(n)) };
    let state = match rebuild.state {
        ScanState::Running => "ACTIVE",
        ScanState::Finished => "COMPLETE",
        ScanState::Canceled => "CANCELED",
    };
    json!({
        "state": state,
        "start_time": time(rebuild.started),
        "end_time": if rebuild.ended == 0 { json!("-") } else { time(rebuild.ended) },
        "scan_time_ms": json::number(rebuild.elapsed_ms, as_int),
        "scanned": bytes(rebuild.scanned),
        "issued": bytes(rebuild.issued),
        "rebuilt": bytes(rebuild.rebuilt),
        "to_scan": bytes(rebuild.expected),
        "errors": json::number(rebuild.errors, as_int),
    })
}

fn error_scrub_stats(scrub: &ErrorScrub, args: &Status) -> Map<String, Json> {
    let (exact, as_int) = (args.style.exact || args.json.json_int, args.json.json_int);
    let time = |n: u64| if exact { json::number(n, as_int) } else { json!(date::ctime(n)) };
    let state = match scrub.state {
        ScanState::Running => "ERRORSCRUBBING",
        ScanState::Finished => "FINISHED",
        ScanState::Canceled => "CANCELED",
    };
    Map::from_iter([
        ("err_scrub_func".to_string(), json!("ERRORSCRUB")),
        ("err_scrub_state".into(), json!(state)),
        ("err_scrub_start_time".into(), time(scrub.started)),
        ("err_scrub_end_time".into(), if scrub.ended == 0 { json!("-") } else { time(scrub.ended) }),
        ("err_scrub_examined".into(), json::number(scrub.examined, as_int)),
        ("err_scrub_to_examine".into(), json::number(scrub.to_examine, as_int)),
        ("err_scrub_pause".into(), json::number(scrub.paused.unwrap_or(0), as_int)),
    ])
}

fn scan_stats(scan: &Scan, args: &Status) -> Json {
    let (exact, as_int) = (args.style.exact || args.json.json_int, args.json.json_int);
    let bytes = |n| json::text(&number::bytes(n, exact), as_int);
    let time = |n: u64| if exact { json::number(n, as_int) } else { json!(date::ctime(n)) };
    let state = match scan.state {
        ScanState::Running => "SCANNING",
        ScanState::Finished => "FINISHED",
        ScanState::Canceled => "CANCELED",
    };
    json!({
        "function": if scan.is_resilver { "RESILVER" } else { "SCRUB" },
        "state": state,
        "start_time": time(scan.started),
        "end_time": if scan.ended == 0 { json!("-") } else { time(scan.ended) },
        "to_examine": bytes(scan.to_examine),
        "examined": bytes(scan.examined),
        "issued": bytes(scan.issued),
        "processed": bytes(scan.repaired),
        "errors": json::number(scan.errors, as_int),
        "percent_done": format!("{:.2}", scan::percent(scan)),
    })
}
