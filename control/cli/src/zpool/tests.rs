//! Layouts against what OpenZFS 2.3 printed for the same pools, and against the examples of its manual pages.

use super::*;
use crate::args::zpool::{History, Iostat, List, Status, Style};
use crate::args::{Cenote, normalize};
use api::{
    Class, DataErrors, Did, HistoryRecord, Importable, PoolHistory, Property, Scan, ScanState, Source, Vdev,
    VdevStats,
};
use clap::Parser;

fn leaf(path: &str, size: u64) -> Vdev {
    Vdev {
        kind: "disk".into(),
        path: Some(path.into()),
        state: "ONLINE".into(),
        size,
        guid: size,
        ..Vdev::default()
    }
}

fn top(kind: &str, id: u64, class: Class, children: Vec<Vdev>) -> Vdev {
    Vdev { kind: kind.into(), id, class: Some(class), state: "ONLINE".into(), children, ..Vdev::default() }
}

fn class(vdev: Vdev, class: Class) -> Vdev {
    Vdev { class: Some(class), ..vdev }
}

/// The pool of the golden image `aux`.
pub(super) fn aux() -> Pool {
    let mirror = Vdev {
        space: Some((83_886_080, 4_557_312)),
        fragmentation: Some(8),
        ..top("mirror", 0, Class::Normal, vec![leaf("/dev/p0", 100_663_296), leaf("/dev/p1", 100_663_296)])
    };
    let device = |path, size, of, space, used, frag| Vdev {
        space: Some((space, used)),
        fragmentation: Some(frag),
        ..class(leaf(path, size), of)
    };
    let tops = vec![
        mirror,
        device("/dev/p6", 67_108_864, Class::Dedup, 50_331_648, 23_040, 0),
        device("/dev/p2", 100_663_296, Class::Special, 83_886_080, 665_600, 24),
        device("/dev/p3", 67_108_864, Class::Log, 50_331_648, 36_864, 15),
        device("/dev/p4", 83_886_080, Class::Cache, 79_168_976, 3_373_056, 0),
        class(leaf("/dev/p5", 100_663_296), Class::Spare),
    ];
    let root = Vdev { kind: "root".into(), state: "ONLINE".into(), children: tops, ..Vdev::default() };
    let number = |name: &str, n: u64| Property::computed(name, n);
    Pool {
        name: "aux".into(),
        guid: 15_329_126_267_914_775_052,
        txg: 53,
        health: "ONLINE".into(),
        properties: vec![
            number("size", 218_103_808),
            number("allocated", 5_245_952),
            number("free", 212_857_856),
            number("checkpoint", 0),
            number("expandsize", 0),
            number("fragmentation", 8),
            number("capacity", 2),
            number("dedupratio", 200),
            Property::new("altroot", None, Source::Default),
        ],
        vdevs: Some(root),
        scan: None,
        error_scrub: None,
        errors: api::DataErrors::default(),
        unusable: Vec::new(),
        suspended: None,
        problem: None,
        logs: Vec::new(),
        clock_ns: 2_000_000_000,
    }
}

fn command(line: &str) -> Command {
    let words = line.split_whitespace().map(String::from);
    let parsed = Cenote::try_parse_from(normalize(words)).expect("a good command line");
    match parsed.command {
        crate::args::Command::Zpool(zpool) => zpool.command,
        other => panic!("{other:?}"),
    }
}

fn list(line: &str) -> List {
    match command(line) {
        Command::List(list) => list,
        other => panic!("{other:?}"),
    }
}

fn columns() -> Vec<String> {
    "name,size,allocated,free,checkpoint,expandsize,fragmentation,capacity,dedupratio,health,altroot"
        .split(',')
        .map(String::from)
        .collect()
}

#[test]
fn a_spare_is_at_hand_or_in_use_here_or_in_another_pool() {
    let spare =
        |why: Option<&str>| Vdev { why: why.map(String::from), ..class(leaf("/dev/s", 1), Class::Spare) };
    assert_eq!(list_vdevs::state(&spare(None)), "AVAIL");
    assert_eq!(list_vdevs::state(&spare(Some("currently in use"))), "INUSE");
    assert_eq!(list_vdevs::state(&spare(Some("in use by pool 'lake'"))), "INUSE");
    let gone = Vdev { state: "UNAVAIL".into(), ..spare(Some("cannot open")) };
    assert_eq!(list_vdevs::state(&gone), "UNAVAIL");
}

#[test]
fn list_prints_the_columns_of_openzfs() {
    let expected = "\
NAME   SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
aux    208M  5.00M   203M        -         -     8%     2%  2.00x    ONLINE  -
";
    assert_eq!(list::render(&[aux()], &columns(), &list("zpool list"), true), expected);
}

#[test]
fn list_for_scripts_prints_what_openzfs_printed_for_the_same_pool() {
    let golden = "\
aux\t218103808\t5245952\t212857856\t-\t-\t8\t2\t2.00\tONLINE\t-
\tmirror-0\t83886080\t4557312\t79328768\t-\t-\t8\t5\t-\tONLINE
\t/dev/p0\t100663296\t-\t-\t-\t-\t-\t-\t-\tONLINE
\t/dev/p1\t100663296\t-\t-\t-\t-\t-\t-\t-\tONLINE
dedup           -      -      -        -         -      -      -      -         -
\t/dev/p6\t67108864\t23040\t50308608\t-\t-\t0\t0\t-\tONLINE
special         -      -      -        -         -      -      -      -         -
\t/dev/p2\t100663296\t665600\t83220480\t-\t-\t24\t0\t-\tONLINE
logs            -      -      -        -         -      -      -      -         -
\t/dev/p3\t67108864\t36864\t50294784\t-\t-\t15\t0\t-\tONLINE
cache           -      -      -        -         -      -      -      -         -
\t/dev/p4\t83886080\t3373056\t75795920\t-\t-\t0\t4\t-\tONLINE
spare           -      -      -        -         -      -      -      -         -
\t/dev/p5\t100663296\t-\t-\t-\t-\t-\t-\t-\tAVAIL
";
    assert_eq!(list::render(&[aux()], &columns(), &list("zpool list -HpvP"), true), golden);
}

#[test]
fn list_with_vdevs_stands_in_columns() {
    let text = list::render(&[aux()], &columns(), &list("zpool list -vP"), true);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "NAME          SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT"
    );
    assert_eq!(
        lines[1],
        "aux           208M  5.00M   203M        -         -     8%     2%  2.00x    ONLINE  -"
    );
    assert_eq!(
        lines[2],
        "  mirror-0     80M  4.35M  75.7M        -         -     8%  5.43%      -    ONLINE"
    );
    assert_eq!(
        lines[3],
        "    /dev/p0    96M      -      -        -         -      -      -      -    ONLINE"
    );
}

pub(super) fn status(line: &str) -> Status {
    match command(line) {
        Command::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn status_prints_what_openzfs_printed_for_the_same_pool() {
    let golden = "  pool: aux
 state: ONLINE
config:

\tNAME         STATE     READ WRITE CKSUM
\taux          ONLINE       0     0     0
\t  mirror-0   ONLINE       0     0     0
\t    /dev/p0  ONLINE       0     0     0
\t    /dev/p1  ONLINE       0     0     0
\tdedup\t
\t  /dev/p6    ONLINE       0     0     0
\tspecial\t
\t  /dev/p2    ONLINE       0     0     0
\tlogs\t
\t  /dev/p3    ONLINE       0     0     0
\tcache
\t  /dev/p4    ONLINE       0     0     0
\tspares
\t  /dev/p5    AVAIL   

errors: No known data errors
";
    assert_eq!(status::render(&aux(), &status("zpool status -P")), golden);
}

#[test]
fn status_says_what_is_wrong_and_what_to_do() {
    let mut pool = aux();
    pool.health = "DEGRADED".into();
    let root = pool.vdevs.as_mut().unwrap();
    root.state = "DEGRADED".into();
    root.children.truncate(1);
    root.children[0].state = "DEGRADED".into();
    let gone = &mut root.children[0].children[1];
    (gone.state, gone.why) = ("UNAVAIL".into(), Some("cannot open".into()));
    root.children[0].children[0].checksum_errors = 2048;
    let text = status::render(&pool, &status("zpool status -P"));
    let expected = " state: DEGRADED
status: One or more devices could not be opened.  Sufficient replicas exist for
\tthe pool to continue functioning in a degraded state.
action: Attach the missing device and online it using 'zpool online', or
	replace it using 'zpool replace'.
   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-2Q
config:
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\t    /dev/p0  ONLINE       0     0    2K\n"), "{text}");
    assert!(text.contains("\t    /dev/p1  UNAVAIL      0     0     0  cannot open\n"), "{text}");
    let only_bad = status::render(&pool, &status("zpool status -eP"));
    assert!(only_bad.contains("/dev/p1"), "{only_bad}");
}

/// A user's file with a damaged block cleared the administrator's screen, or wrote "No known data errors" to it.
#[test]
fn names_that_others_chose_act_on_no_terminal_and_make_no_lines() {
    let is_clean = |text: &str| text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t');
    let mut pool = aux();
    let evil = "f\u{1b}[31m\n\nerrors: No known data errors\u{1b}[2J";
    let shown = "f\u{2039}U+001B\u{203a}[31m\u{2039}U+000A\u{203a}\u{2039}U+000A\u{203a}errors: No known data errors\u{2039}U+001B\u{203a}[2J";
    (pool.errors.blocks, pool.errors.names) = (1, vec![format!("/aux/{evil}")]);
    pool.unusable = vec![evil.into()];
    pool.logs = vec![evil.into()];
    let mirror = &mut pool.vdevs.as_mut().unwrap().children[0];
    mirror.children[0].path = Some(format!("/dev/{evil}"));
    mirror.children[0].why = Some(evil.into());
    let text = status::render(&pool, &status("zpool status -vP"));
    assert!(is_clean(&text) && text.contains(&format!("\n        /aux/{shown}\n")), "{text}");
    assert_eq!(text.matches("\nerrors: ").count(), 1, "{text}");
    pool.problem = Some("gone".into());
    assert!(is_clean(&status::render(&pool, &status("zpool status"))));
    assert!(is_clean(&list::render(&[pool.clone()], &columns(), &list("zpool list -vP"), true)));
    // A program has to have the path.
    let scripted = list::render(&[pool.clone()], &columns(), &list("zpool list -HvP"), true);
    assert!(scripted.contains(&format!("\t/dev/{evil}\t")), "{scripted}");
    let importable = Importable {
        name: evil.into(),
        guid: 1,
        health: "ONLINE".into(),
        destroyed: false,
        exported: true,
        version: 5000,
        comment: Some(evil.into()),
        other_host: None,
        unsupported: vec![evil.into()],
        vdevs: pool.vdevs.unwrap(),
    };
    let text = importable::render(&importable);
    assert!(is_clean(&text) && text.matches("\nerrors: ").count() == 0, "{text}");
    let record = HistoryRecord {
        time: None,
        elapsed_ns: None,
        did: Did::Command(evil.into()),
        who: Some(1),
        host: Some(evil.into()),
        zone: Some(evil.into()),
    };
    let history = PoolHistory { pool: "aux".into(), records: vec![record] };
    assert!(is_clean(&history::render(&history, true, true)));
}

/// "No known data errors" stood below devices with ten thousand of them.
#[test]
fn errors_of_data_are_counted_and_listed_and_their_absence_is_said_of_none_alone() {
    let mut pool = aux();
    let told = |pool: &Pool, line: &str| {
        let text = status::render(pool, &status(line));
        text[text.find("\nerrors: ").unwrap()..].to_string()
    };
    assert_eq!(told(&pool, "zpool status -v"), "\nerrors: No known data errors\n");
    pool.errors.blocks = 3;
    assert_eq!(told(&pool, "zpool status"), "\nerrors: 3 data errors, use '-v' for a list\n");
    (pool.errors.names, pool.errors.more) = (vec!["/aux/f".into()], 2);
    let listed = "\nerrors: Permanent errors have been detected in the following files:\n\n        /aux/f\n        and 2 more \
                  blocks\n";
    assert_eq!(told(&pool, "zpool status -v"), listed);
    // What is no block, but was met all the same.
    pool.errors = DataErrors { problems: vec!["'aux/v': a log was lost".into()], ..DataErrors::default() };
    assert_eq!(told(&pool, "zpool status"), "\nerrors: 1 data errors, use '-v' for a list\n");
    assert!(told(&pool, "zpool status -v").ends_with("        'aux/v': a log was lost\n"));
}

#[test]
fn a_sequential_rebuild_is_told_of_beside_the_scrub_and_instead_of_an_older_resilver() {
    let style = status("zpool status").style;
    let mut pool = aux();
    let mut rebuild = api::Rebuild {
        started: 1_795_215_611,
        scanned: 1 << 30,
        issued: 1 << 30,
        expected: 4 << 30,
        rebuilt: 1 << 30,
        pass_ms: 9_999,
        pass_scanned: 1 << 30,
        pass_issued: 1 << 30,
        ..api::Rebuild::default()
    };
    let set = |pool: &mut Pool, rebuild: &api::Rebuild| {
        pool.vdevs.as_mut().unwrap().children[0].rebuild = Some(Box::new(rebuild.clone()));
    };
    set(&mut pool, &rebuild);
    pool.scan =
        Some(Scan { is_resilver: true, state: ScanState::Finished, ended: 1_795_215_000, ..Scan::default() });
    let going = "  scan: resilver (mirror-0) in progress since Fri Nov 20 23:00:11 2026
\t1G / 4G scanned at 102M/s, 1G / 4G issued at 102M/s
\t1G resilvered, 25.00% done, 00:00:30 to go
";
    assert_eq!(scan::of_pool(&pool, style), going);
    assert_eq!(reason::of_pool(&pool), Some(reason::Reason::Resilvering));
    (rebuild.state, rebuild.ended, rebuild.elapsed_ms) = (ScanState::Finished, 1_795_215_803, 192_999);
    set(&mut pool, &rebuild);
    assert_eq!(reason::of_pool(&pool), Some(reason::Reason::Unverified));
    let done = "  scan: resilvered (mirror-0) 1G in 00:03:12 with 0 errors on Fri Nov 20 23:03:23 2026\n";
    assert_eq!(scan::of_pool(&pool, style), done);
    pool.scan = Some(Scan { state: ScanState::Finished, ended: 1_795_215_900, ..Scan::default() });
    assert!(scan::of_pool(&pool, style).starts_with("  scan: scrub repaired"));
    assert!(scan::of_pool(&pool, style).ends_with(done));
    assert_eq!(reason::of_pool(&pool), None, "every checksum was verified since");
    pool.scan = Some(Scan { state: ScanState::Canceled, ended: 1_795_215_900, ..Scan::default() });
    assert_eq!(reason::of_pool(&pool), Some(reason::Reason::Unverified));
    rebuild.state = ScanState::Canceled;
    set(&mut pool, &rebuild);
    pool.scan = None;
    let canceled = "  scan: resilver (mirror-0) canceled on Fri Nov 20 23:03:23 2026\n";
    assert_eq!(scan::of_pool(&pool, style), canceled);
    assert_eq!(reason::of_pool(&pool), None);
}

#[test]
fn a_scrub_is_told_of_while_it_runs_and_afterwards() {
    let mut scan = Scan {
        state: ScanState::Finished,
        started: 1_795_215_611,
        ended: 1_795_215_803,
        repaired: 1536,
        ..Scan::default()
    };
    assert_eq!(
        scan::render(&scan),
        "  scan: scrub repaired 1.50K in 00:03:12 with 0 errors on Fri Nov 20 23:03:23 2026\n"
    );
    scan.state = ScanState::Running;
    (scan.to_examine, scan.examined, scan.issued, scan.elapsed) = (4 << 30, 2 << 30, 1 << 30, 10);
    scan.pass_examined = 1 << 30;
    assert_eq!(
        scan::render(&scan),
        "  scan: scrub in progress since Fri Nov 20 23:00:11 2026
\t2G / 4G scanned at 102M/s, 1G / 4G issued at 102M/s
\t1.50K repaired, 25.00% done, 00:00:30 to go
"
    );
    scan.paused = Some(1_795_215_700);
    assert_eq!(
        scan::render(&scan),
        "  scan: scrub paused since Fri Nov 20 23:01:40 2026
\tscrub started on Fri Nov 20 23:00:11 2026
\t2G / 4G scanned, 1G / 4G issued
\t1.50K repaired, 25.00% done
"
    );
    scan.state = ScanState::Canceled;
    assert_eq!(scan::render(&scan), "  scan: scrub canceled on Fri Nov 20 23:03:23 2026\n");
}

#[test]
fn a_scrub_of_the_error_log_is_told_of_until_another_scan_begins() {
    let scrub = |state, paused| api::ErrorScrub {
        state,
        started: 1_795_215_611,
        ended: 1_795_215_803,
        paused,
        to_examine: 3,
        examined: 1,
        errors: 0,
    };
    let render = |state, paused| scan::render_error_scrub(&scrub(state, paused));
    assert_eq!(
        render(ScanState::Finished, None),
        " scrub: scrubbed 1 error blocks in 0 days 00:03:12 on Fri Nov 20 23:03:23 2026\n"
    );
    assert_eq!(
        render(ScanState::Canceled, None),
        " scrub: error scrub canceled on Fri Nov 20 23:03:23 2026\n"
    );
    assert_eq!(
        render(ScanState::Running, None),
        " scrub: error scrub in progress since Fri Nov 20 23:00:11 2026\n\t25.00% done, issued I/O for 1 error blocks\n"
    );
    assert_eq!(
        render(ScanState::Running, Some(1_795_215_700)),
        " scrub: error scrub paused since Fri Nov 20 23:01:40 2026\n\terror scrub started on Fri Nov 20 23:00:11 2026\n\t25.00% \
         done, issued I/O for 1 error blocks\n"
    );
    let style = status("zpool status").style;
    let mut pool = aux();
    pool.error_scrub = Some(scrub(ScanState::Finished, None));
    pool.scan = Some(Scan { state: ScanState::Finished, started: 1_795_215_600, ..Scan::default() });
    assert!(scan::of_pool(&pool, style).starts_with(" scrub: scrubbed 1 error blocks"));
    pool.scan = Some(Scan { state: ScanState::Finished, started: 1_795_215_900, ..Scan::default() });
    assert!(scan::of_pool(&pool, style).starts_with("  scan: scrub repaired"));
}

#[test]
fn what_can_be_imported_is_listed_as_zpool_import_lists_it() {
    let mut root = aux().vdevs.unwrap();
    root.children.truncate(1);
    let mut pool = Importable {
        name: "aux".into(),
        guid: 15_329_126_267_914_775_052,
        health: "ONLINE".into(),
        destroyed: false,
        exported: true,
        version: 5000,
        comment: None,
        other_host: None,
        unsupported: Vec::new(),
        vdevs: root,
    };
    let expected = "  pool: aux
    id: 15329126267914775052
 state: ONLINE
action: The pool can be imported using its name or numeric identifier.
config:

\taux         ONLINE
\t  mirror-0  ONLINE
\t    p0      ONLINE
\t    p1      ONLINE
";
    assert_eq!(importable::render(&pool), expected);
    pool.destroyed = true;
    pool.other_host = Some(("golden".into(), 12_235_020));
    let text = importable::render(&pool);
    assert!(
        text.contains(" state: ONLINE (DESTROYED)\nstatus: The pool was last accessed by another system.\n"),
        "{text}"
    );
    assert!(text.contains(
        "action: The pool can be imported using its name or numeric identifier and\n\tthe '-f' flag.\n"
    ));
}

fn iostat(line: &str) -> Iostat {
    match command(line) {
        Command::Iostat(iostat) => iostat,
        other => panic!("{other:?}"),
    }
}

/// The heading of zpool-iostat(8).
#[test]
fn iostat_prints_the_columns_of_openzfs() {
    let mut pool = aux();
    let root = pool.vdevs.as_mut().unwrap();
    root.space = Some((208 << 20, 5 << 20));
    root.stats.read.ops = 200;
    root.stats.read.bytes = 3 << 20;
    root.stats.write.ops = 5000;
    let expected = "              capacity     operations     bandwidth \n\
pool        alloc   free   read  write   read  write
----------  -----  -----  -----  -----  -----  -----
aux            5M   203M    100  2.44K  1.50M      0
";
    let text = iostat::render(std::slice::from_ref(&pool), &[], &iostat("zpool iostat"), true, None);
    assert_eq!(text, expected);
    // Nothing happened since: all rates are zero.
    let mut later = pool.clone();
    later.clock_ns += 1_000_000_000;
    let text = iostat::render(&[later], &[pool], &iostat("zpool iostat"), false, None);
    assert_eq!(text, "aux            5M   203M      0      0      0      0\n");
}

#[test]
fn iostat_shows_latencies_queues_and_histograms() {
    let mut pool = aux();
    let root = pool.vdevs.as_mut().unwrap();
    root.children.clear();
    let mut waits = vec![0; 37];
    waits[20] = 10;
    root.stats = VdevStats::default();
    root.stats.read.total_wait = waits;
    root.stats.sync_write.pending = 3;
    root.stats.async_write.individual = {
        let mut sizes = vec![0; 25];
        sizes[17] = 7;
        sizes
    };
    let render = |line: &str| iostat::render(std::slice::from_ref(&pool), &[], &iostat(line), true, None);
    let text = render("zpool iostat -lq");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "              capacity     operations     bandwidth    total_wait     disk_wait    syncq_wait    asyncq_wait  scrub   trim  rebuild   syncq_read    syncq_write   asyncq_read  asyncq_write   scrubq_read   trimq_write  rebuildq_write"
    );
    assert_eq!(
        lines[3],
        "aux             -      -      0      0      0      0    1ms      -      -      -      -      -      -      -      -      -      -      0      0      3      0      0      0      0      0      0      0      0      0      0      0"
    );
    let text = render("zpool iostat -w");
    assert!(
        text.contains(
            "\nlatency      read  write   read  write   read  write   read  write  scrub   trim  rebuild\n"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "\n2ms            10      0      0      0      0      0      0      0      0      0      0\n"
        ),
        "{text}"
    );
    let text = render("zpool iostat -r");
    assert!(text.contains("\n128K            0      0      0      0      0      0      7      0      0      0      0      0      0      0\n"), "{text}");
    assert!(!text.contains("\n256 "), "the smallest request has 512 bytes");
}

/// Their columns come after those of OpenZFS, and only when asked for; JSON always has them.
#[test]
fn iostat_shows_what_flushes_cost() {
    let mut pool = aux();
    let root = pool.vdevs.as_mut().unwrap();
    root.children.clear();
    root.stats = VdevStats::default();
    root.stats.flush = api::Flushes { asked: 200, sent: 50, wait_ns: 50 * 5_200_000, wait: vec![0; 37] };
    root.stats.flush.wait[22] = 50;
    let show = |line: &str| iostat::render(std::slice::from_ref(&pool), &[], &iostat(line), true, None);
    let expected = "              capacity     operations     bandwidth        flush         \n\
pool        alloc   free   read  write   read  write  asked   sent   wait\n\
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----\n\
aux             -      -      0      0      0      0    100     25    5ms\n";
    assert_eq!(show("zpool iostat -f"), expected);
    let text = show("zpool iostat -wf");
    assert!(text.contains("  scrub   trim  rebuild  flush\n"), "{text}");
    let zeros = "      0".repeat(10);
    assert!(text.contains(&format!("\n8ms             0{zeros}     50\n")), "{text}");
    let text = super::iostat_json::document(std::slice::from_ref(&pool), &iostat("zpool iostat -j"));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let flush = &json["pools"]["aux"]["vdevs"]["aux"]["stats"]["flush"];
    assert_eq!((flush["asked"].as_u64(), flush["sent"].as_u64()), (Some(200), Some(50)));
    assert_eq!(flush["wait"][22], 50);
}

#[test]
fn history_is_told_as_openzfs_tells_it() {
    let record = |did| HistoryRecord {
        time: Some(1_795_215_614),
        elapsed_ns: None,
        did,
        who: Some(0),
        host: Some("golden".into()),
        zone: Some("linux".into()),
    };
    let internal = HistoryRecord {
        who: None,
        zone: None,
        ..record(Did::Internal {
            txg: 28,
            name: "snapshot".into(),
            text: " ".into(),
            dataset: Some(("aux@s1".into(), 114)),
        })
    };
    let history = PoolHistory {
        pool: "aux".into(),
        records: vec![internal, record(Did::Command("zfs snapshot aux@s1".into()))],
    };
    let History { internal, long, .. } = match command("zpool history") {
        Command::History(history) => history,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        history::render(&history, internal, long),
        "History for 'aux':\n2026-11-20.23:00:14 zfs snapshot aux@s1\n\n"
    );
    // The golden manifest has exactly these two lines.
    assert_eq!(
        history::render(&history, true, true),
        "History for 'aux':
2026-11-20.23:00:14 [txg:28] snapshot aux@s1 (114)   [on golden]
2026-11-20.23:00:14 zfs snapshot aux@s1 [user 0 (root) on golden:linux]

"
    );
}

#[test]
fn a_layout_that_would_be_created_is_drawn() {
    let words: Vec<String> = "mirror /a /b raidz2 /c /d /e log /f".split(' ').map(String::from).collect();
    let groups = crate::args::vdevs::parse(&words).unwrap();
    let expected =
        "\ttank\n\t  mirror\n\t    /a\n\t    /b\n\t  raidz2\n\t    /c\n\t    /d\n\t    /e\n\tlogs\n\t  /f\n";
    assert_eq!(tree::render("tank", &tree::of_groups(&groups)), expected);
}

#[test]
fn devices_are_named_as_asked() {
    use crate::text::vdev_name::vdev_name;
    let disk =
        Vdev { kind: "disk".into(), path: Some("/dev/disk/by-id/x".into()), guid: 7, ..Vdev::default() };
    assert_eq!(vdev_name(&disk, "", Style::default()), "x");
    assert_eq!(vdev_name(&disk, "", Style { paths: true, ..Style::default() }), "/dev/disk/by-id/x");
    assert_eq!(vdev_name(&disk, "", Style { guids: true, ..Style::default() }), "7");
    assert_eq!(
        vdev_name(&Vdev { kind: "file".into(), ..leaf("/d/a.img", 1) }, "", Style::default()),
        "/d/a.img"
    );
    let raidz = Vdev { parity: 2, ..top("raidz", 3, Class::Normal, vec![disk]) };
    assert_eq!(vdev_name(&raidz, "", Style::default()), "raidz2-3");
}

#[test]
fn what_would_be_added_stands_behind_what_is_there() {
    let pool = aux();
    let words = ["log", "mirror", "/d/a", "/d/b", "cache", "/d/c"].map(String::from);
    let new = tree::of_groups(&crate::args::vdevs::parse_more(&words).unwrap());
    let expected = "\taux
\t  mirror-0
\t    p0
\t    p1
\tdedup
\t  p6
\tspecial
\t  p2
\tlogs
\t  p3
\t  mirror
\t    /d/a
\t    /d/b
\tcache
\t  p4
\t  /d/c
\tspares
\t  p5
";
    assert_eq!(tree::render_grown("aux", pool.vdevs.as_ref(), &new, Style::default()), expected);
}

#[test]
fn a_vdev_to_be_removed_is_found_by_name_path_or_guid() {
    let root = aux().vdevs.unwrap();
    let found =
        |word: &str| remove::find(&root, word).map(|v| v.path.clone().unwrap_or_else(|| v.kind.clone()));
    assert_eq!(found("mirror-0").as_deref(), Some("mirror"));
    assert_eq!(found("/dev/p3").as_deref(), Some("/dev/p3"));
    assert_eq!(found("p3").as_deref(), Some("/dev/p3"));
    assert_eq!(found("83886080").as_deref(), Some("/dev/p4"), "its guid");
    assert_eq!(found("mirror-7"), None);
}
