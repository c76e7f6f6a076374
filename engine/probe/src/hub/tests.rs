use super::*;
use crate::names::Op;
use crate::{Compare, Filter, Key, Operand, WORDS_MAX, statistics};
use std::collections::BTreeMap;
use std::time::Duration;

fn query(text: &str) -> Query {
    text.parse().unwrap()
}

fn open(hub: &Hub, text: &str) -> Opened {
    hub.open(&query(text)).unwrap()
}

fn parts(sample: &Sample) -> BTreeMap<String, u64> {
    sample.parts.iter().map(|(key, part)| (key.to_string(), *part)).collect()
}

/// A generator for tests that say their seed.
pub(crate) struct Random(pub u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len() as u64) as usize]
    }
}

#[test]
fn what_is_told_while_open_is_what_is_taken() {
    let hub = Hub::new();
    let probe = hub.probe(Family::Iscsi, &[(Breakdown::Client, "iqn.a"), (Breakdown::Lun, "tank/v")]);
    let tell = |op, bytes, micros| {
        let latency = Duration::from_micros(micros);
        probe.tell(|| Event { op, bytes, latency, ..Event::default() });
    };
    assert!(!probe.is_open());
    tell(Op::Read, 1, 1);
    let (ops, by_size) = (open(&hub, "iscsi.ops[op]"), open(&hub, "iscsi.bytes[size]"));
    let slow = open(&hub, "iscsi.ops[op=read][latency>=10ms][lun]");
    tell(Op::Read, 512 << 10, 9_999);
    tell(Op::Read, 501 << 10, 10_000);
    tell(Op::Write, 1 << 20, 20_000);
    let sample = ops.take();
    assert_eq!((sample.value, parts(&sample)), (3, [("read".into(), 2), ("write".into(), 1)].into()));
    let sample = by_size.take();
    let (k448, k512, m1) = (448 << 10, 512 << 10, 1u64 << 20);
    let range = |from, to| Key::Range { from, to };
    assert_eq!(
        sample.parts,
        [(range(k448, k512), 501 << 10), (range(k512, 640 << 10), k512), (range(m1, m1 + (256 << 10)), m1)]
    );
    assert_eq!(parts(&slow.take()), [("tank/v".into(), 1)].into());
    assert_eq!(ops.take(), Sample::default());
    drop((ops, by_size, slow));
    assert!(!probe.is_open());
}

#[test]
fn a_word_that_is_not_there_is_a_dash() {
    let hub = Hub::new();
    let probe = hub.probe(Family::Nbd, &[(Breakdown::Project, "")]);
    let by_project = open(&hub, "nbd.ops[project]");
    let none = open(&hub, "nbd.ops[project=-]");
    probe.tell(Event::default);
    assert_eq!(parts(&by_project.take()), [("-".into(), 1)].into());
    assert_eq!(none.take().value, 1);
}

/// A million clients: a thousand are named, the rest is one part; and a name that is told all the time comes to be among
/// the named although it came late.
/// A path costs something to find out.
#[test]
fn of_which_file_an_event_is_need_be_known_only_where_it_is_asked() {
    let hub = Hub::new();
    let (files, disks) = (hub.probe(Family::Fs, &[]), hub.probe(Family::Disk, &[]));
    let _sum = open(&hub, "fs.ops[op]");
    assert!(files.is_open() && !files.wants_files());
    let by_file = open(&hub, "fs.bytes[file]");
    assert!(files.wants_files() && !disks.wants_files());
    let label = Label::new("tank/a:/b");
    files.tell(|| Event { bytes: 5, file: Some(&label), ..Event::default() });
    // Equal words are one value, however often they were made.
    let again = Label::new("tank/a:/b");
    files.tell(|| Event { bytes: 6, file: Some(&again), ..Event::default() });
    files.tell(|| Event { bytes: 7, ..Event::default() });
    assert_eq!(parts(&by_file.take()), BTreeMap::from([("tank/a:/b".into(), 11), ("-".into(), 7)]));
    drop(by_file);
    assert!(!files.wants_files());
    let _of_one = open(&hub, "fs.ops[file=tank/a:/b]");
    assert!(files.wants_files(), "a filter needs it, too");
}

#[test]
fn a_million_words_are_bounded_and_the_sum_agrees() {
    let hub = Hub::new();
    let by_client = open(&hub, "nbd.ops[client]");
    let client = |name: &str| hub.probe(Family::Nbd, &[(Breakdown::Client, name)]);
    for i in 0..1_000_000 {
        client(&format!("client {i}")).tell(Event::default);
    }
    let sample = by_client.take();
    assert_eq!(sample.value, 1_000_000);
    assert_eq!(sample.parts.len(), WORDS_MAX + 1);
    assert_eq!(sample.parts.iter().map(|(_, part)| part).sum::<u64>(), 1_000_000);
    assert!(lock(&hub.0.labels).all.len() < 10_000, "names that are not used are forgotten");
    let often = client("often");
    let mut named = 0;
    for _ in 0..3 {
        for _ in 0..100 {
            often.tell(Event::default);
        }
        let sample = by_client.take();
        assert_eq!(sample.value, 100);
        named = sample.parts.iter().find(|(key, _)| *key == Key::Text("often".into())).map_or(0, |p| p.1);
    }
    assert_eq!(named, 100);
}

#[test]
fn buckets_of_offsets_widen_with_the_volume() {
    let hub = Hub::new();
    let probe = hub.probe(Family::Disk, &[]);
    let by_offset = open(&hub, "io.ops[offset]");
    let tell = |offset| probe.tell(|| Event { offset, ..Event::default() });
    (0..256).for_each(|mib| tell(mib << 20));
    let sample = by_offset.take();
    assert_eq!((sample.value, sample.parts.len()), (256, 256));
    (0..256).for_each(|mib| tell(mib << 20));
    tell((1 << 40) - 1);
    let sample = by_offset.take();
    let range = |from: u64| Key::Range { from, to: from + (4 << 30) };
    assert_eq!(sample.parts, [(range(0), 256), (range((1 << 40) - (4 << 30)), 1)]);
    tell(u64::MAX);
    assert_eq!(by_offset.take().value, 1);
}

/// Threads that come and go, statistics that are opened and closed meanwhile, and looks in between: what is taken is what
/// was told.
#[test]
#[allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]
fn nothing_is_lost_however_many_threads_tell() {
    const EACH: u64 = 20_000;
    let hub = Hub::new();
    let whole = ["nbd.ops[client]", "nbd.ops[size]", "nbd.ops", "nbd.ops[offset]"].map(|q| open(&hub, q));
    let mut sums = [0u64; 4];
    let mut look = || {
        for (sum, opened) in sums.iter_mut().zip(&whole) {
            let sample = opened.take();
            let parts: u64 = sample.parts.iter().map(|(_, part)| part).sum();
            assert!(sample.parts.is_empty() || parts == sample.value);
            *sum += sample.value;
        }
    };
    for round in 0..5 {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let hub = hub.clone();
                scope.spawn(move || {
                    let mut random = Random(round * 8 + thread);
                    let clients: Vec<Probe> = (0..100)
                        .map(|i| hub.probe(Family::Nbd, &[(Breakdown::Client, &format!("c{i}"))]))
                        .collect();
                    for _ in 0..EACH {
                        let (bytes, shift) = (random.next(1 << 21), random.next(20));
                        let offset = random.next(1 << (20 + shift));
                        clients[random.next(100) as usize].tell(|| Event {
                            bytes,
                            offset,
                            ..Event::default()
                        });
                    }
                });
            }
            for _ in 0..50 {
                let _short = open(&hub, "nbd.bytes[op]");
                look();
            }
        });
    }
    look();
    assert_eq!(sums, [5 * 8 * EACH; 4]);
    assert_eq!(lock(&hub.0.families[Family::Nbd.index()].state).open.len(), 4);
}

/// An event as the oracle has it.
struct Told {
    op: Op,
    kind: &'static str,
    client: String,
    bytes: u64,
    offset: u64,
    nanos: u64,
}

impl Told {
    fn random(random: &mut Random) -> Told {
        let shift = random.next(26);
        Told {
            op: random.of(&[Op::Read, Op::Write, Op::Flush]),
            kind: random.of(&["READ(16)", "WRITE(16)", ""]),
            client: random.of(&["iqn.a", "iqn.b", "iqn.c"]).to_string(),
            bytes: random.next(1 << shift) + 1,
            offset: random.next(1 << (shift + 10)),
            nanos: random.next(1 << (shift + 8)),
        }
    }

    fn passes(&self, filter: &Filter) -> bool {
        let word = |word: &str, wanted: &str| {
            let word = if word.is_empty() { "-" } else { word };
            (word == wanted) == (filter.compare == Compare::Is)
        };
        let number = |number: u64, than: u64| match filter.compare {
            Compare::AtLeast => number >= than,
            Compare::Above => number > than,
            Compare::AtMost => number <= than,
            Compare::Below => number < than,
            Compare::Is | Compare::IsNot => {
                let scale = filter.by.scale().unwrap();
                (scale.bucket(number) == scale.bucket(than)) == (filter.compare == Compare::Is)
            }
        };
        match (filter.by, &filter.operand) {
            (Breakdown::Op, Operand::Word(w)) => word(self.op.name(), w),
            (Breakdown::Command, Operand::Word(w)) => word(self.kind, w),
            (Breakdown::Client, Operand::Word(w)) => word(&self.client, w),
            (Breakdown::Size, Operand::Number(n)) => number(self.bytes, *n),
            (Breakdown::Latency, Operand::Number(n)) => number(self.nanos, *n),
            (Breakdown::Offset, Operand::Number(n)) => number(self.offset, *n),
            _ => unreachable!(),
        }
    }
}

fn random_filter(random: &mut Random) -> Filter {
    use Breakdown::{Client, Command, Latency, Offset, Op, Size};
    let by = random.of(&[Op, Command, Client, Size, Latency, Offset]);
    let order = [Compare::AtLeast, Compare::Above, Compare::AtMost, Compare::Below];
    let both = [Compare::Is, Compare::IsNot];
    let shift = random.next(30);
    let number = Operand::Number(random.next(1 << shift));
    let (compare, operand) = match by {
        Op => (random.of(&both), Operand::Word(random.of(&["read", "flush", "lookup"]).to_string())),
        Command => (random.of(&both), Operand::Word(random.of(&["READ(16)", "-"]).to_string())),
        Client => (random.of(&both), Operand::Word(random.of(&["iqn.a", "iqn.x"]).to_string())),
        Offset => (random.of(&order), number),
        _ => (if random.next(3) == 0 { random.of(&both) } else { random.of(&order) }, number),
    };
    Filter { by, compare, operand }
}

/// Operations and bytes of random events, held against a list of them: the whole, each breakdown, and random filters.
#[test]
fn sums_agree_with_what_was_told_whatever_is_filtered() {
    let row = |name: &str| statistics().iter().find(|s| s.name == name).unwrap();
    for seed in 0..200 {
        let mut random = Random(seed);
        let hub = Hub::new();
        let queries: Vec<Query> = (0..12)
            .map(|_| Query {
                statistic: row(random.of(&["iscsi.ops", "iscsi.bytes"])),
                filters: (0..random.next(4)).map(|_| random_filter(&mut random)).collect(),
                breakdown: match random.next(12) {
                    0 => None,
                    _ => Some(random.of(row("iscsi.ops").breakdowns)),
                },
            })
            .collect();
        let opened: Vec<Opened> = queries.iter().map(|q| hub.open(q).unwrap()).collect();
        for _ in 0..3 {
            let told: Vec<Told> = (0..200).map(|_| Told::random(&mut random)).collect();
            for t in &told {
                let probe = hub.probe(Family::Iscsi, &[(Breakdown::Client, &t.client)]);
                probe.tell(|| Event {
                    op: t.op,
                    kind: t.kind,
                    bytes: t.bytes,
                    offset: t.offset,
                    latency: Duration::from_nanos(t.nanos),
                    ..Event::default()
                });
            }
            for opened in &opened {
                let query = opened.query();
                let counted = told.iter().filter(|t| query.filters.iter().all(|f| t.passes(f)));
                let expected: u64 = match query.statistic.name {
                    "iscsi.ops" => counted.count() as u64,
                    _ => counted.map(|t| t.bytes).sum(),
                };
                let sample = opened.take();
                assert_eq!(sample.value, expected, "seed {seed}: {query}");
                let parts: u64 = sample.parts.iter().map(|(_, part)| part).sum();
                assert_eq!(
                    parts,
                    if query.breakdown.is_some() { expected } else { 0 },
                    "seed {seed}: {query}"
                );
            }
        }
    }
}

#[test]
fn an_offset_in_one_bucket_is_asked_for_by_its_ends() {
    let refused = Hub::new().open(&query("iscsi.ops[offset=1M]")).unwrap_err();
    assert_eq!(refused.to_string(), "offset is compared with >=, >, < or <=, not with =");
}
