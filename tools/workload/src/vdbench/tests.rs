use super::*;
use crate::choose::Random;
use crate::describe::{Arrival, Lanes, Load, Part, Sizes};
use std::time::Duration;

/// The published file, on four LUNs.
const PUBLISHED: &str = "\
sd=sd1,lun=/dev/mapper/mpatha,size=1g,openflags=o_direct,threads=128
sd=sd2,lun=/dev/mapper/mpathb,size=1g,openflags=o_direct,threads=128
sd=sd3,lun=/dev/mapper/mpathc,size=1g,openflags=o_direct,threads=128
sd=sd4,lun=/dev/mapper/mpathd,size=1g,openflags=o_direct,threads=128

wd=wd1,sd=sd*,xfersize=1m,readpct=70,seekpct=0

rd=run1,wd=wd1,iorate=max,elapsed=999h,interval=1
";

fn read(text: &str) -> Description {
    parse("t", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> String {
    parse("t", text.as_bytes()).map_or_else(|e| e.to_string(), |d| panic!("taken: {d:?}"))
}

#[test]
fn the_published_file_is_understood() {
    let description = read(PUBLISHED);
    let places: Vec<&str> = description.stores.iter().map(|s| s.place.as_str()).collect();
    assert_eq!(places, ["a", "b", "c", "d"].map(|c| format!("/dev/mapper/mpath{c}")));
    assert!(description.stores.iter().all(|s| s.direct && s.size == Some(1 << 30)));
    let [run] = description.runs.as_slice() else { panic!("{description:?}") };
    assert_eq!((run.name.as_str(), run.load), ("run1", Load::Max));
    assert_eq!(run.elapsed, Some(Duration::from_secs(999 * 3600)));
    assert_eq!(run.interval, Duration::from_secs(1));
    assert_eq!(run.lanes(), 512);
    for (index, stream) in run.streams.iter().enumerate() {
        assert_eq!(stream.stores, [index]);
        assert_eq!(stream.read_sizes, Sizes::one(1 << 20));
        assert_eq!((stream.read_percent, stream.walk.seek_percent, stream.share), (70.0, 0.0, 25.0));
    }
}

#[test]
fn comments_continued_lines_and_defaults() {
    let description = read(
        "* a comment\n/ another\n# a third\n\
         sd=default,threads=4,openflags=(o_direct,o_dsync)\n\
         sd=sd1,lun=/a,    all of this is a comment\n   size=10m,range=(10,50)\n\
         sd=x,lun=\"/with blank\",count=(3,2)\n\
         wd=default,xfersize=(4k,50,8k,50)\nwd=wd1,sd=(sd1),rdpct=25,rhpct=20,hitarea=2m\nwd=wd2,sd=x*,threads=3\n\
         rd=default,elapsed=10,warmup=2\nrd=r,wd=(wd1,wd2),iorate=500,distribution=d\n",
    );
    let places: Vec<&str> = description.stores.iter().map(|s| s.place.as_str()).collect();
    assert_eq!(places, ["/a", "/with blank3", "/with blank4"]);
    assert!(description.stores.iter().all(|s| s.direct && s.durable));
    let run = &description.runs[0];
    assert_eq!((run.load, run.warmup), (Load::PerSecond(500.0), Duration::from_secs(2)));
    assert_eq!(run.streams.len(), 3);
    let first = &run.streams[0];
    assert_eq!(first.read_sizes, Sizes::Weighted(vec![(4096, 50.0), (8192, 50.0)]));
    assert_eq!((first.walk.range, first.walk.hit_area), (Some(Part::Percent(10, 50)), 2 << 20));
    assert_eq!((first.lanes, first.share, first.arrival), (Lanes::Each(4), 50.0, Arrival::Even));
    assert_eq!((run.streams[1].lanes, run.streams[1].share), (Lanes::Each(3), 25.0));
}

#[test]
fn loops_make_a_run_each_the_first_outermost() {
    let description = read(
        "sd=sd1,lun=/a\nwd=wd1,sd=sd1\n\
         rd=r,wd=wd1,iorate=(100,200),forxfersize=(4k,1m),forthreads=(1-4,d),forrdpct=(0-100,50),forseekpct=(0,100)\n",
    );
    assert_eq!(description.runs.len(), 2 * 3 * 3 * 2 * 2);
    let run = &description.runs[3];
    assert_eq!(run.name, "r (xfersize=4k,threads=1,rdpct=0,seekpct=100)");
    assert_eq!(run.load, Load::PerSecond(200.0));
    let last = &description.runs.last().unwrap().streams[0];
    assert_eq!((last.lanes, last.read_percent, last.read_sizes.longest()), (Lanes::Each(4), 100.0, 1 << 20));
}

#[test]
fn a_curve_is_the_maximum_and_parts_of_it() {
    let head = "sd=sd1,lun=/a\nwd=wd1,sd=sd1\n";
    let loads = |rd: &str| read(&format!("{head}{rd}")).runs.iter().map(|r| r.load).collect::<Vec<_>>();
    let all = loads("rd=r,wd=wd1,iorate=curve");
    assert_eq!((all.len(), all[0], all[9]), (10, Load::Max, Load::OfMax(90.0)));
    assert_eq!(
        loads("rd=r,wd=wd1,iorate=curve,curve=(50,100)"),
        [Load::Max, Load::OfMax(50.0), Load::OfMax(100.0)]
    );
    assert!(refused(&format!("{head}rd=r,wd=wd1,curve=(50,100)")).contains("without iorate=curve"));
}

#[test]
fn skews_are_shares_and_threads_follow_them() {
    let head = "sd=sd1,lun=/a,threads=100\n";
    let run = |wds: &str| read(&format!("{head}{wds}rd=r,wd=*,iorate=max\n")).runs[0].clone();
    let run = run("wd=a,sd=sd1,skew=70\nwd=b,sd=sd1\nwd=c,sd=sd1\n");
    let shares: Vec<(f64, Lanes)> = run.streams.iter().map(|s| (s.share, s.lanes)).collect();
    assert_eq!(shares, [(70.0, Lanes::Each(70)), (15.0, Lanes::Each(15)), (15.0, Lanes::Each(15))]);
    assert!(run.keeps_shares);
    let wrong = format!("{head}wd=a,sd=sd1,skew=70\nwd=b,sd=sd1,skew=40\nrd=r,wd=*\n");
    assert!(refused(&wrong).contains("sum up to 110"));
}

#[test]
fn what_is_not_supported_is_named_with_file_line_and_key() {
    let sd = "sd=sd1,lun=/a\n";
    let both = "sd=sd1,lun=/a\nwd=wd1,sd=sd1\n";
    for (text, complaint) in [
        ("sd=sd1,lun=/a,journal=/j\n".into(), "t:1: journal: not supported in a storage definition"),
        (format!("{sd}wd=wd1,sd=sd1,priority=1\n"), "t:2: priority: not supported in a workload definition"),
        (format!("{sd}wd=wd1,\n  sd=sd1,\n  stride=4k\n"), "t:4: stride: not supported"),
        (format!("{both}rd=r,wd=wd1,format=yes\n"), "t:3: format: not supported in a run definition"),
        (format!("{both}rd=r,wd=wd1,iorate=fast\n"), "t:3: iorate: 'fast' is not a number above 0"),
        (format!("{sd}wd=wd1,sd=sd2\n"), "t:2: sd: there is no storage definition 'sd2'"),
        (format!("{both}rd=r,wd=wd2\n"), "t:3: wd: there is no workload definition 'wd2'"),
        (format!("{both}rd=r,iorate=max\n"), "t:3: rd: a run definition has wd="),
        (format!("{sd}wd=wd1,xfersize=(4k,50,8k,40)\n"), "t:2: xfersize: the percentages sum up to 90"),
        (format!("{sd}wd=wd1,xfersize=1000\n"), "t:2: xfersize: '1000' is not a multiple of 512"),
        (format!("{sd}wd=wd1,readpct=101\n"), "t:2: readpct: '101' is not a percentage"),
        ("sd=sd1,lun=/a,openflags=fsync_on_close\n".into(), "t:1: openflags: 'fsync_on_close'"),
        ("sd=sd1,lun=/a,host=h1\n".into(), "t:1: host: other hosts"),
        ("fsd=fsd1,anchor=/d\n".into(), "t:1: fsd: file system definitions"),
        ("hd=h1,system=other\n".into(), "t:1: hd: other hosts"),
        ("compratio=2\n".into(), "t:1: compratio: not supported; a definition is"),
        ("sd=sd1,size=1g\n".into(), "t:1: sd: a storage definition has lun="),
        ("sd=sd1,lun=(a\n".into(), "t:1: '(' without ')'"),
        ("sd=sd1,lun=a)\n".into(), "t:1: ')' without '('"),
        ("sd=sd1,lun\n".into(), "t:1: 'lun' is not key=value"),
        ("sd=sd1,lun=\n".into(), "t:1: lun: 'lun=' has no value"),
        ("sd=sd1,lun=/a,\n".into(), "t:1: sd: the last definition ends with a comma"),
        (both.into(), "t:2: there is no run definition"),
        (String::new(), "t:1: there is no run definition"),
        (
            format!("{both}rd=r,wd=wd1,forthreads=(1-1000000,1),forrdpct=(0-100,1)\n"),
            "t:3: forthreads: the step",
        ),
        (format!("{both}rd=r,wd=wd1,forxfersize=(512-1m,512),forrdpct=(0-100,1)\n"), "more than 10000 runs"),
        ("sd=sd1,lun=/a,count=(1,99999)\n".into(), "t:1: count: 99999 is not between 1 and 10000"),
    ] {
        let said = refused(&text);
        assert!(said.contains(complaint), "{text}: {said}");
    }
    assert_eq!(parse("t", b"sd=\xff\n").unwrap_err().to_string(), "t:1: the line is not text");
}

/// Mutated files: read or refused, and what is refused names a line that there is.
#[test]
fn whatever_a_file_holds_it_is_read_or_its_line_is_named() {
    let whole = format!(
        "{PUBLISHED}wd=wd2,sd=(sd1-sd3),xfersize=(4k,50,8k,50),rhpct=10,skew=20,range=(1,5)\n\
         rd=run2,wd=wd*,iorate=curve,curve=(10-100,10),forthreads=(1-64,d),warmup=1m,\n  distribution=u\n"
    );
    let pieces = [
        "(",
        ")",
        ",",
        "=",
        "-",
        "*",
        "\n",
        "99999999999999999999",
        "rd=",
        "wd=",
        "sd*",
        "d",
        "\"",
        " ",
        "0",
        "\u{fc}",
    ];
    let mut random = Random(42);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            let end = (at + random.below(12) as usize).min(bytes.len());
            match random.below(4) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes[at] = random.next() as u8,
                2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
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
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused");
}
