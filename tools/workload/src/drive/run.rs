//! One run: lanes are started, watched at every interval, ended and waited for.

use super::gate::Gate;
use super::lane::{Common, Shared, samples, work};
use super::open::Opened;
use super::{News, Summary};
use crate::describe::{Lanes, Run, Stream};
use crate::draw::Cursor;
use crate::pace::Pacer;
use crate::tally::{Figures, Tally, cpu_time};
use futures_util::future::{select, select_all};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::Result;
use world::Instant;
use world::sync::Event;

/// More rows than these are not told apart: what is left is one.
const ROWS_MAX: usize = 256;
const OTHERS: &str = "(others)";
/// What is read again at the end, at a time.
const READ_AGAIN: u64 = 1 << 20;

type Tell<'a> = dyn FnMut(News<'_>) + Send + 'a;

pub async fn carry_out(
    run: &Run,
    asked: Option<f64>,
    opened: &Opened<'_>,
    seed: u64,
    stop: &Arc<Event>,
    tell: &mut Tell<'_>,
) -> Result<Summary> {
    if !run.pause.is_zero() {
        let pause = std::pin::pin!(world::sleep(run.pause));
        select(pause, std::pin::pin!(stop.wait())).await;
    }
    let names = row_names(run);
    let spans = run.streams.iter().map(|s| opened.spans(s)).collect::<Result<Vec<_>>>()?;
    tell(News::Begins { run, asked });
    let tallies: Vec<Vec<Arc<Tally>>> =
        names.iter().map(|_| (0..world::cores()).map(|_| Arc::default()).collect()).collect();
    let common = Arc::new(Common {
        begun: world::now(),
        over: Event::new(),
        is_over: AtomicBool::new(false),
        failure: Mutex::new(None),
        lanes_left: AtomicUsize::new(run.lanes() as usize),
        all_left: Event::new(),
        gate: gate(run, asked, &names),
    });
    let whole: f64 = run.streams.iter().map(|s| s.share).sum();
    for (number, (stream, spans)) in run.streams.iter().zip(spans).enumerate() {
        let core = number % world::cores();
        let row = row_of(&names, &stream.name);
        let rate = stream.rate.or(asked.map(|rate| rate * stream.share / whole));
        let seed = seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shared = Arc::new(Shared {
            common: common.clone(),
            cursors: spans.iter().map(|_| Cursor::new(seed)).collect(),
            pacer: rate.map(|rate| Mutex::new(Pacer::new(rate, stream.arrival, seed))),
            row,
            tally: tallies[row][core].clone(),
            deadline: stream.elapsed.map(|elapsed| common.begun.after(run.warmup + elapsed)),
            moved: AtomicU64::new(0),
            lanes_left: AtomicUsize::new(stream.lane_count() as usize),
            samples: samples(stream, seed),
            seed,
            spans,
            stream: limited(stream),
        });
        start(&shared, core);
    }
    let (last, cpu) = (common.begun, cpu_time());
    let mut watch = Watch { run, names: &names, tallies: &tallies, common: &common, tell, last, cpu };
    let (mut figures, mut rows, is_interrupted) = watch.until_the_end(stop).await;
    common.end();
    common.all_left.wait().await;
    watch.take_late(&mut figures, &mut rows);
    let failure = common.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(e) = failure {
        return Err(e);
    }
    let verified = read_again(run, opened).await?;
    Ok(Summary { run: run.name.clone(), lanes: run.lanes(), asked, figures, rows, is_interrupted, verified })
}

/// A stream that ends by time has an amount that its end can exhaust.
fn limited(stream: &Stream) -> Stream {
    let mut stream = stream.clone();
    if stream.elapsed.is_some() {
        stream.amount = Some(stream.amount.unwrap_or(u64::MAX / 2).min(u64::MAX / 2));
    }
    stream
}

fn start(shared: &Arc<Shared>, core: usize) {
    let stores = shared.spans.len();
    let lanes: Vec<(usize, usize)> = match shared.stream.lanes {
        Lanes::Each(count) => (0..stores).flat_map(|store| (0..count).map(move |_| (store, 0))).collect(),
        // Each begins at another store, and all go on from there.
        Lanes::Together(count) => (0..count as usize).map(|lane| (lane % stores, 1)).collect(),
    };
    for (number, (store, step)) in lanes.into_iter().enumerate() {
        let step = if stores == 1 { 0 } else { step };
        drop(world::spawn_on(core, work(shared.clone(), number as u64, store, step)));
    }
}

/// The names of the rows, in the order of the streams.
fn row_names(run: &Run) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for stream in &run.streams {
        if !names.contains(&stream.name) {
            if names.len() == ROWS_MAX {
                names.push(OTHERS.into());
                break;
            }
            names.push(stream.name.clone());
        }
    }
    names
}

fn row_of(names: &[String], name: &str) -> usize {
    names.iter().position(|n| n == name).unwrap_or(names.len() - 1)
}

fn gate(run: &Run, asked: Option<f64>, names: &[String]) -> Option<Gate> {
    if !run.keeps_shares || asked.is_some() || names.len() < 2 {
        return None;
    }
    let of = |row: usize| run.streams.iter().filter(move |s| row_of(names, &s.name) == row);
    Some(Gate::new((0..names.len()).map(|row| (of(row).map(|s| s.share).sum(), of(row).count()))))
}

/// Looks at the tallies at every interval.
struct Watch<'a, 'b> {
    run: &'a Run,
    names: &'a [String],
    tallies: &'a [Vec<Arc<Tally>>],
    common: &'a Arc<Common>,
    tell: &'a mut Tell<'b>,
    /// When it last looked, and what this process had used then.
    last: Instant,
    cpu: Duration,
}

impl Watch<'_, '_> {
    /// The figures after the warm-up, those of each row, and whether the end came too early.
    async fn until_the_end(&mut self, stop: &Arc<Event>) -> (Figures, Vec<(String, Figures)>, bool) {
        let begun = self.common.begun;
        let measured_from = begun.after(self.run.warmup);
        let end = self.run.elapsed.map(|elapsed| measured_from.after(elapsed));
        let (mut whole, mut rows) = (Figures::default(), self.empty_rows());
        let mut number = 0;
        loop {
            let is_warmup = self.last < measured_from;
            let until = match is_warmup {
                true => next_look(begun, self.last, self.run.interval).min(measured_from),
                false => next_look(measured_from, self.last, self.run.interval),
            };
            let until = end.map_or(until, |end| until.min(end));
            let (is_stopped, is_done) = wait(until, stop, self.common).await;
            let (now, figures, these) = self.look();
            // What lanes did after the last look and before they left may be nothing.
            if !is_done || figures.requests() > 0 {
                number += 1;
                (self.tell)(News::Interval { number, is_warmup, figures: &figures });
                (self.tell)(News::Rows { number, is_warmup, rows: &these });
                if !is_warmup {
                    whole.follow(&figures);
                    rows.iter_mut().zip(&these).for_each(|((_, sum), (_, row))| sum.follow(row));
                }
            }
            let is_over = end.is_some_and(|end| now >= end);
            if is_stopped || is_done || is_over {
                return (whole, rows, is_stopped && !is_over && !is_done);
            }
        }
    }

    /// What has been done since the last look.
    fn look(&mut self) -> (Instant, Figures, Vec<(String, Figures)>) {
        let (now, used) = (world::now(), cpu_time());
        let elapsed = now.since(self.last);
        let these = self.take(now, elapsed);
        let mut figures = Figures::of(elapsed, used.saturating_sub(self.cpu));
        these.iter().for_each(|(_, row)| figures.join(row));
        (self.last, self.cpu) = (now, used);
        (now, figures, these)
    }

    /// Requests that were under way at the end count, with the time until the last of them: those that a target holds up are
    /// the slowest there are. Of a run that ended in its warm-up nothing counts.
    fn take_late(&mut self, whole: &mut Figures, rows: &mut [(String, Figures)]) {
        if self.last < self.common.begun.after(self.run.warmup) {
            return;
        }
        let (_, figures, these) = self.look();
        if figures.requests() + figures.flushes.count() > 0 {
            whole.follow(&figures);
            rows.iter_mut().zip(&these).for_each(|((_, sum), (_, row))| sum.follow(row));
        }
    }

    fn empty_rows(&self) -> Vec<(String, Figures)> {
        self.names.iter().map(|name| (name.clone(), Figures::default())).collect()
    }

    fn take(&self, now: Instant, elapsed: Duration) -> Vec<(String, Figures)> {
        let mut rows = self.empty_rows();
        for ((_, row), of_cores) in rows.iter_mut().zip(self.tallies) {
            of_cores.iter().for_each(|tally| row.join(&tally.take(now)));
            row.elapsed = elapsed;
        }
        rows
    }
}

/// The first of the moments, `interval` apart from `from` on, that is after `last`: a look that came late is followed by one
/// in its time, not by many at once.
fn next_look(from: Instant, last: Instant, interval: Duration) -> Instant {
    let passed = last.since(from).as_nanos() / interval.as_nanos().max(1);
    let next = (passed + 1).saturating_mul(interval.as_nanos());
    from.after(Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX)))
}

/// Waits for a moment, or until it is all over: whether it was told to stop, and whether every lane has left.
async fn wait(until: Instant, stop: &Event, common: &Common) -> (bool, bool) {
    let sleep = std::pin::pin!(world::sleep_until(until));
    let stopped = std::pin::pin!(stop.wait());
    let left = std::pin::pin!(common.all_left.wait());
    let waits: [std::pin::Pin<&mut (dyn Future<Output = ()> + Send)>; 3] = [sleep, stopped, left];
    select_all(waits).await;
    (stop.is_set(), common.all_left.is_set())
}

/// Reads what verified streams have written once more; how many units were right.
async fn read_again(run: &Run, opened: &Opened<'_>) -> Result<Option<u64>> {
    let places = opened.verified(run);
    if places.is_empty() {
        return Ok(None);
    }
    let mut right = 0;
    for (target, written) in places {
        let ranges: Vec<(u64, u64)> = written.ranges(READ_AGAIN).collect();
        for (offset, len) in ranges {
            let pieces = target.read(offset, len as u32).await?;
            let bytes: Vec<u8> = pieces.iter().flat_map(|p| p.iter().copied()).collect();
            right += written.check(offset, &bytes)?;
        }
    }
    Ok(Some(right))
}
