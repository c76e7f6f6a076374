use super::*;
use crate::sample::Key;
use crate::{Hub, Opened};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

fn open(hub: &Hub, text: &str) -> Opened {
    hub.open(&text.parse().unwrap()).unwrap()
}

fn word(by: Breakdown, word: &str) -> (Breakdown, Mark) {
    (by, Mark::Word(word.into()))
}

#[test]
fn a_gauge_is_the_sum_of_its_sources_until_they_leave() {
    let hub = Hub::new();
    let reading = |pool: &str, value| Reading { marks: vec![word(Breakdown::Pool, pool)], value };
    let (a, b) = (reading("a", 3), reading("b", 5));
    let first = hub.readings("txg.dirty", Arc::new(move || vec![a.clone()]));
    let _second = hub.readings("txg.dirty", Arc::new(move || vec![b.clone()]));
    let (whole, by_pool, of_a) =
        (open(&hub, "txg.dirty"), open(&hub, "txg.dirty[pool]"), open(&hub, "txg.dirty[pool=a]"));
    assert_eq!((whole.take().value, of_a.take().value), (8, 3));
    let text = |s: &str| Key::Text(s.into());
    assert_eq!(by_pool.take().parts, [(text("b"), 5), (text("a"), 3)]);
    drop(first);
    assert_eq!((whole.take().value, of_a.take().value), (5, 0));
}

#[test]
fn a_source_is_asked_by_what_is_wanted_and_filtered_by_that_alone() {
    let hub = Hub::new();
    let sizes = [("data", 70), ("metadata", 20), ("headers", 10)];
    let _source = hub.source(
        "arc.size",
        Arc::new(move |by| match by {
            None => Sample::whole(100),
            Some(_) => Sample::of(sizes.map(|(name, size)| (Key::Text(name.into()), size))),
        }),
    );
    assert_eq!(open(&hub, "arc.size").take(), Sample::whole(100));
    assert_eq!(open(&hub, "arc.size[component]").take().parts.len(), 3);
    assert_eq!(open(&hub, "arc.size[component=data]").take(), Sample::whole(70));
    assert_eq!(open(&hub, "arc.size[component!=data]").take(), Sample::whole(30));
    let _plain = hub.source("nic.kilobytes", Arc::new(|_| Sample::whole(1)));
    let refused = hub.open(&"nic.kilobytes[device=eth0][direction]".parse().unwrap()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "nic.kilobytes[device=eth0][direction]: nic.kilobytes takes only filters of what it is broken down by"
    );
}

#[test]
fn a_running_total_counts_from_where_it_was_and_percent_by_the_time_that_passed() {
    sim::run(1, sim::Config::default(), async {
        let hub = Hub::new();
        let total = Arc::new(AtomicU64::new(1000));
        let ghosts = total.clone();
        let _ghosts = hub.source("arc.ghosts", Arc::new(move |_| Sample::whole(ghosts.load(Relaxed))));
        let busy = total.clone();
        let disk = move |name: &str, value| Reading {
            marks: vec![word(Breakdown::Disk, name), word(Breakdown::Pool, "tank")],
            value,
        };
        let _disks =
            hub.readings("io.disks", Arc::new(move || vec![disk("sda", busy.load(Relaxed)), disk("sdb", 7)]));
        let (hits, disks, full) = (
            open(&hub, "arc.ghosts"),
            open(&hub, "io.disks[utilization]"),
            open(&hub, "io.disks[utilization=95][disk]"),
        );
        world::sleep(Duration::from_secs(1)).await;
        total.fetch_add(960_000_000, Relaxed);
        assert_eq!(hits.take().value, 960_000_000);
        assert_eq!(hits.take().value, 0);
        let range = |from, to| Key::Range { from, to };
        assert_eq!(disks.take().parts, [(range(0, 5), 1), (range(95, 100), 1)]);
        assert_eq!(full.take().parts, [(Key::Text("sda".into()), 1)]);
        world::sleep(Duration::from_secs(1)).await;
        assert_eq!(full.take().value, 0);
    });
}
