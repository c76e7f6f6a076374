use super::*;
use trace::{Header, Layout, Op, Place, Present, Request};

const SIZE: u64 = 64 << 20;

fn place(block: u64, properties: &[(&str, &str)]) -> Place {
    let properties = properties.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Place {
        dataset: "tank/v".into(),
        present: Some(Present {
            is_volume: true,
            size: SIZE,
            block,
            referenced: SIZE,
            ratio: 1.0,
            properties,
            layout: Some(Layout::parse("stripe:1").unwrap()),
            ashift: 12,
            allocated: SIZE,
            has_log: false,
        }),
        ..Place::default()
    }
}

/// Requests of 16K at random, each on a block of 128K of its own, one every 20 ms.
fn trace(op: Op, place: Place) -> Contents {
    let mut random = sim::Rng::new(9);
    let requests = (0..300u64)
        .map(|n| Request {
            at: n * 20_000_000,
            latency: 40_000_000,
            place: 0,
            op,
            object: 0,
            offset: (n * 37 % 512) * (128 << 10) + random.below(8) * (16 << 10),
            bytes: 16 << 10,
            durable: false,
            failed: false,
        })
        .collect();
    let header = Header { statistic: "nbd.ops".into(), cache: 64 << 20, ..Header::default() };
    Contents { header, places: vec![place], requests, end: None }
}

fn words(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter(|word| !word.is_empty());
    pairs.map(|word| word.split_once('=').unwrap()).map(|(key, value)| (key.into(), value.into())).collect()
}

fn asked(change: &str) -> Asked {
    Asked { change: words(change), present: Vec::new(), fast: false, warm: false, seed: 1 }
}

fn replay(trace: &Contents, asked: &Asked) -> Outcome {
    run(trace, asked, &|_| ()).unwrap()
}

fn each(figures: &Figures) -> (f64, f64) {
    let (requests, devices) = (figures.played.requests() as f64, &figures.devices);
    (devices.read_bytes as f64 / figures.played.bytes as f64, devices.reads as f64 / requests)
}

#[test]
fn a_small_read_of_a_large_block_reads_all_of_it() {
    let outcome = replay(&trace(Op::Read, place(128 << 10, &[])), &asked("volblocksize=16K"));
    let [large, small] = [0, 1].map(|n| each(&outcome.figures[n]));
    assert!((8.0..8.8).contains(&large.0), "bytes read per byte: {large:?}");
    assert!((1.0..1.8).contains(&small.0), "{small:?}");
    assert!((1.0..1.4).contains(&large.1) && (1.0..1.4).contains(&small.1), "{large:?} {small:?}");
    let text = outcome.text();
    for part in ["300 requests", "stripe:1 of 7200 rpm disks", "volblocksize=16K", "the trace was cut"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_small_write_to_a_large_block_reads_the_rest_of_it() {
    let outcome = replay(&trace(Op::Write, place(128 << 10, &[])), &asked("volblocksize=16K"));
    let [large, small] = [0, 1].map(|n| &outcome.figures[n]);
    assert!(each(large).0 > 7.9, "{:?}", large.devices);
    assert!(each(small).0 < 0.8, "whole blocks are overwritten unread: {:?}", small.devices);
    assert!(large.devices.written_bytes > 4 * small.devices.written_bytes);
}

#[test]
fn each_setting_acts() {
    let writes = trace(Op::Write, place(16 << 10, &[("sync", "standard"), ("compression", "lz4")]));
    let of = |change: &str| {
        let outcome = replay(&writes, &asked(change));
        (outcome.figures[0].clone(), outcome.figures[1].clone())
    };
    let (now, always) = of("sync=always");
    assert!(always.devices.flushes > now.devices.flushes + 100, "{:?} {:?}", now.devices, always.devices);
    assert!(always.played.writes.mean() > now.played.writes.mean() * 2);
    let (now, mirrored) = of("layout=mirror:3");
    assert!(mirrored.devices.written_bytes > now.devices.written_bytes * 5 / 2);
    let (now, halved) = of("ratio=4,compression=zstd");
    assert!(halved.devices.written_bytes < now.devices.written_bytes * 2 / 3);
    let reads = trace(Op::Read, place(16 << 10, &[]));
    let outcome = replay(&reads, &asked("disks=ssd"));
    let [disk, ssd] = [0, 1].map(|n| outcome.figures[n].played.all().mean());
    assert!(ssd * 10 < disk, "{ssd:?} {disk:?}");
    let warm = replay(&reads, &Asked { warm: true, ..asked("cache=16M") });
    let [roomy, little] = [0, 1].map(|n| warm.figures[n].devices.reads);
    assert!(little > roomy, "{little} {roomy}");
}

#[test]
fn a_replay_is_the_same_for_the_same_seed_and_faster_when_it_need_not_wait() {
    let reads = trace(Op::Read, place(128 << 10, &[]));
    let json = |asked: &Asked| replay(&reads, asked).json(asked);
    assert_eq!(json(&asked("")), json(&asked("")));
    let fast = Asked { fast: true, ..asked("") };
    let figures = replay(&reads, &fast).figures;
    assert_eq!(figures.len(), 1, "without a change there is one column");
    assert!(figures[0].played.elapsed.as_secs() < 5, "{:?}", figures[0].played.elapsed);
    assert_eq!(json(&fast), json(&fast));
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let reads = trace(Op::Read, place(16 << 10, &[("compression", "off")]));
    let refused =
        |trace: &Contents, change: &str| run(trace, &asked(change), &|_| ()).unwrap_err().to_string();
    for (change, said) in [
        ("volblocksize=17K", "no power of two"),
        ("recordsize=1M", "of file systems"),
        ("layout=raidz2:2", "3 to 255 devices"),
        ("disks=floppy", "there are 7200, 15000, ssd"),
        ("colour=red", "cannot be set for a replay"),
        ("compression=lz4", "'ratio=1.5' says it"),
        ("sync=sometimes", "sync"),
        ("cache=1", "at least"),
    ] {
        let text = refused(&reads, change);
        assert!(text.contains(said), "{change}: {text}");
    }
    for (change, said) in [
        ("log=floppy", "there are 7200, 15000, ssd"),
        ("log=ssd:9", "of 8 at most"),
        ("recordsize=17K", "no power of two"),
    ] {
        let text = refused(&reads, change);
        assert!(text.contains(said), "{change}: {text}");
    }
    assert!(refused(&files(reads.clone()), "volblocksize=16K").contains("of file systems: recordsize"));
    let mut many = files(reads.clone());
    let one = many.requests[0];
    many.requests = (0..100_001).map(|object| Request { object, ..one }).collect();
    assert!(refused(&many, "").contains("100001 files"));
    let mut huge = reads.clone();
    huge.requests[0].bytes = 1 << 39;
    assert!(refused(&huge, "").contains("touches 512G"));
    let mut other = reads.clone();
    other.requests.iter_mut().for_each(|request| request.op = Op::Lookup);
    assert!(refused(&other, "").contains("no request"));
    let mut unknown = reads;
    unknown.places[0].present = None;
    assert!(refused(&unknown, "").contains("--present layout"));
}

/// The same requests, of four files.
fn files(mut trace: Contents) -> Contents {
    trace.header.statistic = "fs.ops".into();
    if let Some(present) = trace.places[0].present.as_mut() {
        (present.is_volume, present.size) = (false, 0);
    }
    trace.requests.iter_mut().zip(0u64..).for_each(|(request, n)| request.object = 100 + n / 2 % 4);
    trace
}

#[test]
fn files_are_replayed_with_records_of_another_size() {
    let reads = files(trace(Op::Read, place(128 << 10, &[])));
    let outcome = replay(&reads, &asked("recordsize=16K"));
    let [large, small] = [0, 1].map(|n| each(&outcome.figures[n]));
    assert!((7.5..8.8).contains(&large.0), "bytes read per byte: {large:?}");
    assert!((1.0..2.0).contains(&small.0), "{small:?}");
    let text = outcome.text();
    assert!(text.contains("4 files, each as long as the trace reaches"), "{text}");
    let writes = files(trace(Op::Write, place(128 << 10, &[])));
    let outcome = replay(&writes, &asked("recordsize=16K"));
    let [large, small] = [0, 1].map(|n| &outcome.figures[n]);
    assert!(each(large).0 > 7.5 && each(small).0 < 1.0, "{:?} {:?}", large.devices, small.devices);
    // Each fsync is one commit of a log.
    let mut synced = writes;
    let every = synced.requests.iter_mut().skip(1).step_by(2);
    every.for_each(|request| (request.op, request.bytes) = (Op::Fsync, 0));
    let figures = replay(&synced, &asked("")).figures;
    let (flushes, others) = (figures[0].devices.flushes, figures[0].played.others.count());
    assert!(others == 150 && flushes > 100, "{others} {flushes}");
}

#[test]
fn a_log_device_takes_the_synchronous_writes() {
    let mut writes = trace(Op::Write, place(128 << 10, &[]));
    writes.requests.iter_mut().for_each(|request| request.durable = true);
    writes.places[0].present.as_mut().unwrap().has_log = true;
    // Warm: nothing is read before a part of a block is written.
    let outcome = replay(&writes, &Asked { warm: true, ..asked("log=ssd:2") });
    let [without, with] = [0, 1].map(|n| outcome.figures[n].played.writes.mean());
    assert!(with * 3 < without, "{without:?} {with:?}");
    let text = outcome.text();
    assert!(text.contains("--present log=ssd"), "{text}");
    let asked = Asked { present: words("log=ssd"), ..asked("log=none") };
    let text = replay(&writes, &asked).text();
    assert!(!text.contains("the model has none") && text.contains("a log on 1 of SATA"), "{text}");
}
