//! `zpool iostat -j`: the counters as they are, for programs that make their own differences.
//!
//! Histograms are lists: bucket n counts what lies in `2^n ..= 2^(n+1) - 1`, nanoseconds or bytes.

use super::list_vdevs::class_word;
use crate::args::zpool::Iostat;
use crate::text::json;
use crate::text::vdev_name::vdev_name;
use api::{IoClass, IoKind, Pool, Vdev, VdevStats};
use serde_json::{Map, Value as Json, json};

pub(super) fn document(pools: &[Pool], args: &Iostat) -> String {
    let describe = |pool: &Pool| {
        let vdevs = pool.vdevs.as_ref().map(|root| json!({ pool.name.clone(): vdev(root, pool, args) }));
        let item =
            json!({ "name": pool.name, "pool_guid": pool.guid, "clock_ns": pool.clock_ns, "vdevs": vdevs });
        (pool.name.clone(), item)
    };
    json::document("zpool iostat", "pools", pools.iter().map(describe).collect())
}

fn vdev(vdev: &Vdev, pool: &Pool, args: &Iostat) -> Json {
    let mut item = Map::new();
    item.insert("vdev_type".into(), json!(vdev.kind));
    item.insert("guid".into(), json!(vdev.guid));
    item.insert("class".into(), json!(class_word(vdev.class)));
    if let Some((space, used)) = vdev.space {
        item.insert("alloc_space".into(), json!(used));
        item.insert("total_space".into(), json!(space));
    }
    item.insert("stats".into(), stats(&vdev.stats));
    if !vdev.children.is_empty() {
        let named = |c: &Vdev| (vdev_name(c, &pool.name, args.style), self::vdev(c, pool, args));
        item.insert("vdevs".into(), Json::Object(vdev.children.iter().map(named).collect()));
    }
    Json::Object(item)
}

fn stats(stats: &VdevStats) -> Json {
    let kind = |k: &IoKind| json!({ "ops": k.ops, "bytes": k.bytes, "total_wait": k.total_wait, "disk_wait": k.disk_wait });
    let class = |c: &IoClass| {
        json!({ "pending": c.pending, "active": c.active, "queue_wait": c.queue_wait,
                "individual": c.individual, "aggregated": c.aggregated })
    };
    let flush = &stats.flush;
    json!({
        "read": kind(&stats.read),
        "write": kind(&stats.write),
        "trim": kind(&stats.trim),
        "queues": {
            "sync_read": class(&stats.sync_read),
            "sync_write": class(&stats.sync_write),
            "async_read": class(&stats.async_read),
            "async_write": class(&stats.async_write),
            "scrub": class(&stats.scrub),
            "trim": class(&stats.trim_class),
            "rebuild": class(&stats.rebuild),
        },
        "flush": { "asked": flush.asked, "sent": flush.sent, "wait_ns": flush.wait_ns, "wait": flush.wait },
    })
}
