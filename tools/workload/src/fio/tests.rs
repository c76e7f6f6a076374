use super::*;
use crate::choose::Random;
use crate::describe::{Arrival, Flush, Lanes, Sizes, Spread, Stream};

/// The published measurement of large blocks: 64 threads, 1 MiB requests, files of 4 GiB, read and written at random.
const PUBLISHED: &str = "\
[global]
directory=/tank/fs
ioengine=psync
bs=1m
size=4g
numjobs=64
runtime=60
time_based
group_reporting

[randread]
rw=randread

[randwrite]
stonewall
rw=randwrite
";

fn read(text: &str) -> Description {
    parse("t", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn one(text: &str) -> Stream {
    let description = read(text);
    assert_eq!((description.runs.len(), description.runs[0].streams.len()), (1, 1));
    description.runs[0].streams[0].clone()
}

fn refused(text: &str) -> String {
    parse("t", text.as_bytes()).map_or_else(|e| e.to_string(), |d| panic!("taken: {d:?}"))
}

#[test]
fn the_published_job_is_understood() {
    let description = read(PUBLISHED);
    let [reads, writes] = description.runs.as_slice() else { panic!("{description:?}") };
    assert_eq!((reads.streams.len(), writes.streams.len()), (64, 64));
    assert_eq!(reads.elapsed, Some(Duration::from_secs(60)));
    let stream = &reads.streams[63];
    assert_eq!((stream.name.as_str(), stream.lanes), ("randread", Lanes::Together(1)));
    assert_eq!((stream.read_percent, stream.walk.seek_percent, stream.amount), (100.0, 100.0, None));
    assert_eq!(stream.read_sizes, Sizes::one(1 << 20));
    let store = &description.stores[stream.stores[0]];
    assert_eq!((store.place.as_str(), store.size), ("/tank/fs/randread.63.0", Some(4 << 30)));
    assert_eq!(writes.streams[0].read_percent, 0.0);
}

#[test]
fn keys_act() {
    let job = one(
        "; a comment\n# another\n[j]\nfilename=/a:/b\\:c\nsize=1g\nrw=randrw\nrwmixread=70\nbs=4k,8k\niodepth=32\n\
         ioengine=io_uring\ndirect=1\nsync=dsync\nfdatasync=16\nrate_iops=1000\nrate_process=poisson\nthinktime=50\n\
         percentage_random=60\nrandom_distribution=zipf:1.2\nverify=crc32c\nramp_time=5s\noffset=1m\n",
    );
    assert_eq!((job.lanes, job.read_percent), (Lanes::Together(32), 70.0));
    assert_eq!((job.read_sizes.clone(), job.write_sizes.clone()), (Sizes::one(4096), Sizes::one(8192)));
    assert_eq!((job.flush, job.rate, job.arrival), (Flush::Every(16), Some(1000.0), Arrival::Poisson));
    assert_eq!((job.walk.seek_percent, job.walk.spread), (60.0, Spread::Zipf(1.2)));
    assert_eq!((job.think, job.verify, job.amount), (Duration::from_micros(50), true, Some(1 << 30)));
    assert_eq!(job.stores.len(), 2);
    let stores = read("[j]\nfilename=/a:/b\\:c\nsize=1g\ndirect=1\noffset=1m\n").stores;
    assert_eq!(
        (stores[1].place.as_str(), stores[1].size, stores[1].offset),
        ("/b:c", Some(1 << 29), 1 << 20)
    );
    assert!(stores[0].direct && !stores[0].durable);
    assert!(stores[0].cold && !read("[j]\nfilename=/a\nsize=1g\ninvalidate=0\n").stores[0].cold);
    for (engine, hint, in_place, tells_order) in [("psync", 1, true, true), ("libaio", 0, false, false)] {
        let job = one(&format!("[j]\nfilename=/a\nsize=1g\nioengine={engine}\nfadvise_hint={hint}\n"));
        assert_eq!((job.in_place, job.tells_order), (in_place, tells_order), "{engine}");
    }
    for (more, spread) in [
        ("", Spread::EachOnce),
        ("norandommap=1\n", Spread::Uniform),
        ("bs=4k,8k\n", Spread::Uniform),
        ("percentage_random=90\n", Spread::Uniform),
        ("random_distribution=zipf:1.2\n", Spread::Zipf(1.2)),
    ] {
        let job = one(&format!("[j]\nfilename=/a\nsize=1g\nrw=randrw\n{more}"));
        assert_eq!(job.walk.spread, spread, "{more}");
    }
    let split = one("[j]\nfilename=/a\nsize=1g\nbssplit=4k/10:64k:32k\n").read_sizes;
    assert_eq!(split, Sizes::Weighted(vec![(4096, 10.0), (65_536, 45.0), (32_768, 45.0)]));
    let nbd = read("[j]\nioengine=nbd\nuri=nbd://127.0.0.1:10809/tank/vol1\nruntime=5\ntime_based\n");
    assert_eq!(nbd.stores[0].place, "nbd://127.0.0.1:10809/tank/vol1");
    let whole = one("[j]\nfilename=/dev/sdx\n");
    assert!(!whole.walk.wraps && whole.amount.is_none(), "a place without a size is gone through once");
}

#[test]
fn jobs_run_side_by_side_until_one_waits() {
    let description = read(
        "[global]\nfilename=/a\nsize=1m\n[a]\n[b]\nruntime=3\n[c]\nstonewall\n[global]\nbs=8k\n[d]\nnumjobs=2\n",
    );
    let names: Vec<&str> = description.runs.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["a+b", "c+d"]);
    assert_eq!(description.stores.len(), 1);
    let streams: Vec<&str> = description.runs[1].streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(streams, ["c", "d.0", "d.1"]);
    assert_eq!(description.runs[0].elapsed, None, "the job without a runtime ends by itself");
    assert_eq!(description.runs[1].streams[1].read_sizes, Sizes::one(8192));
}

#[test]
fn what_is_not_supported_is_named_with_file_line_and_key() {
    for (text, complaint) in [
        ("[j]\nfilename=/a\nzonemode=zbd\n", "t:3: zonemode: not supported"),
        ("[j]\nioengine=mmap\n", "t:2: ioengine: 'mmap' is not supported"),
        ("[j]\nrw=trim\n", "t:2: rw: 'trim' is not supported"),
        ("[j]\nbs=1000\n", "t:2: bs: '1000' is not a multiple of 512"),
        ("[j]\nbssplit=4k/60:8k/30\n", "t:2: bssplit: the percentages sum up to 90"),
        ("[j]\nrandom_distribution=normal:10\n", "t:2: random_distribution: 'normal:10' is none of"),
        ("[j]\nfilename=/a\nsize=$mb\n", "t:3: size: '$mb': variables"),
        ("bs=4k\n", "t:1: bs: a key before the first section"),
        ("[]\n", "t:1: a section is [name]"),
        ("[j\n", "t:1: a section is [name]"),
        ("[global]\nbs=4k\n", "t:1: there is no job"),
        ("", "t:1: there is no job"),
        ("[j]\n", "t:1: job 'j': it has a filename, or a size"),
        ("[j]\nioengine=nbd\n", "t:1: job 'j': ioengine=nbd has uri="),
        ("[j]\nioengine=libiscsi\nfilename=/a\n", "t:1: job 'j': ioengine=libiscsi"),
        ("[j]\nfilename=/a\ntime_based\n", "t:1: job 'j' is time_based without a runtime"),
        ("[j]\nfilename=/a\nthread=0\n", "t:3: thread: it cannot be switched off"),
        ("[j]\nfilename=/a\nrw=randread\n", "t:1: run 'j': it has neither a time nor an amount"),
        ("[j]\nnumjobs=100000\n", "t:2: numjobs: 100000 is not between 1 and 10000"),
        ("[j]\nfilename=/a\nsize=1m\niodepth=60000\nioengine=libaio\nnumjobs=9\n", "65536 is the most"),
    ] {
        let said = refused(text);
        assert!(said.contains(complaint), "{text}: {said}");
    }
}

#[test]
fn the_listed_keys_are_those_that_are_taken() {
    let place = Place::new("t", 1, "k");
    let values = ["1", "4k", "4k/100", "4k-8k", "read", "psync", "zipf:1", "linear", "x"];
    for key in KEYS.iter().flat_map(|(names, _)| names.split(", ")) {
        let is_taken = |value: &&str| keys::take(&mut Job::default(), key, value, &place).is_ok();
        assert!(values.iter().any(is_taken), "{key}");
    }
    let page = include_str!("../../../../docs/work.md");
    for (names, does) in KEYS {
        let row = format!(
            "| {} | {does} |",
            names.split(", ").map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
        );
        assert!(page.contains(&row), "docs/work.md lacks: {row}");
    }
}

#[test]
fn whatever_a_file_holds_it_is_read_or_its_line_is_named() {
    let whole =
        format!("{PUBLISHED}[x]\nbssplit=4k/60:64k/40\nrandom_distribution=pareto:0.2\nrate_iops=10\n");
    let pieces = [
        "[",
        "]",
        "=",
        "\n",
        ":",
        "/",
        "global",
        "stonewall\n",
        "99999999999999999999",
        "-",
        ",",
        "$",
        "\u{fc}",
    ];
    let mut random = Random(17);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            let end = (at + random.below(12) as usize).min(bytes.len());
            match random.below(3) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes[at] = random.next() as u8,
                _ => {
                    let piece = pieces[random.below(pieces.len() as u64) as usize];
                    drop(bytes.splice(at..at, piece.bytes()));
                }
            }
        }
        let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
        match parse("t", &bytes) {
            Ok(description) => {
                description.check().unwrap();
                taken += 1;
            }
            Err(complaint) => {
                assert!((1..=lines).contains(&complaint.line), "{complaint}");
                refused += 1;
            }
        }
    }
    assert!(taken > 500 && refused > 1000, "{taken} taken, {refused} refused");
}
