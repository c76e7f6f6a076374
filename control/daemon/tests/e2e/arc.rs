//! A cache device under a daemon whose memory is small: what leaves memory comes from it, and `cenote arc` tells so.

use crate::home::Home;
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const VOLUME: u64 = 160 << 20;

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "what_left_memory_comes_from_a_cache_device_and_is_explained",
        &[Need::Program("nbdcopy")],
        explained,
    )]
}

fn explained() {
    let home = Home::new();
    let (disk, cache) = (home.disk("a.img"), home.disk("cache.img"));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let said = home.run("arc");
    assert!(said.contains("of at most 64M (zfs_arc_max)") && !said.contains("Cache devices"), "{said}");
    home.run(&format!("zpool create tank {disk} cache {cache}"));
    home.run("tunable set l2arc_write_max=256M");
    home.run(&format!("zfs create -s -V {VOLUME} -b 64K tank/v"));
    let uri = format!("nbd+unix:///tank/v?socket={}", home.dir().join("nbd.sock").display());
    let source = home.scratch.join("source");
    let mut noise = sim::Rng::new(3);
    let bytes: Vec<u8> = (0..VOLUME / 8).flat_map(|_| noise.next_u64().to_le_bytes()).collect();
    std::fs::write(&source, &bytes).unwrap();
    run(command("nbdcopy").arg(&source).arg(&uri));

    let begun = Instant::now();
    let hits = loop {
        let copy = home.scratch.join("copy");
        run(command("nbdcopy").arg(&uri).arg(&copy));
        assert!(std::fs::read(&copy).unwrap() == bytes, "what was written is read");
        let document: serde_json::Value = serde_json::from_str(&home.run("arc -j")).unwrap();
        let devices = &document["arc"]["cache"]["devices"][0];
        assert_eq!((&devices["pool"], &devices["bad_checksums"]), (&"tank".into(), &0.into()), "{devices}");
        if let Some(hits) = devices["hits"].as_u64().filter(|hits| *hits > 100) {
            break hits;
        }
        assert!(begun.elapsed() < PATIENCE, "{document}");
    };
    let said = home.run("arc");
    for part in ["\nCache devices of tank, since it was opened\n", "  headers", "of what was not in memory\n"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("too large"), "a small cache takes in all blocks: {said}");
    println!("{hits} reads came from the cache device\n{said}");
    let lines = home.run("arc 0.1 3");
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(
        lines.lines().next().is_some_and(|line| line.ends_with("DEVICES      SIZE     LIMIT")),
        "{lines}"
    );
    assert!(home.fails("arc tank", 2).contains("'tank' is not a number"));
    daemon.end();
    home.fails("arc", 1);
}
