//! Tells events, so that an instruction counter can say what one costs: `tell EVENTS [STATISTIC …] [record:STATISTIC]`.
//!
//! The instructions of two runs that differ in EVENTS alone, divided by the difference, are those of one event. What is
//! recorded is not taken away: events beyond 200,000 are dropped, which is another cost.

use probe::{Breakdown, Event, Family, Hub, Op, Opened, Recording};
use std::hint::black_box;
use std::time::Duration;

/// As many as `cenote trace record` lets the daemon hold.
const HELD: usize = 200_000;

fn main() {
    // What is recorded has a time, which is that of a world.
    sim::run(1, sim::Config::default(), async { tell() });
}

fn tell() {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let hub = Hub::new();
    let (mut opened, mut recordings) = (Vec::<Opened>::new(), Vec::<Recording>::new());
    for text in arguments {
        match text.strip_prefix("record:") {
            Some(text) => recordings
                .push(hub.record(&text.parse().expect("a statistic"), HELD).expect("one that has events")),
            None => opened.push(hub.open(&text.parse().expect("a statistic")).expect("one that is told")),
        }
    }
    let clients = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|client| {
        let labels = [(Breakdown::Client, client), (Breakdown::Dataset, "tank/v"), (Breakdown::Pool, "tank")];
        hub.probe(Family::Nbd, &labels)
    });
    let mut random = 1u64;
    for i in 0..events {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let probe = black_box(&clients[(i / 64 % 3) as usize]);
        probe.tell(|| Event {
            op: Op::Read,
            offset: random >> 34,
            bytes: 4096,
            latency: Duration::from_nanos(random >> 44),
            ..Event::default()
        });
    }
    let told: u64 = opened.iter().map(|opened| opened.take().value).sum();
    black_box(told);
}
