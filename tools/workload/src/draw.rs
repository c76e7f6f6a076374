//! Which request next: read or write, how long, and where. Pure, and the same for the same seed.
//!
//! ```text
//!   read or write ─▶ length ─▶ hit area? ──▶ anywhere in it
//!                                │ no
//!                              seek? ──yes─▶ anywhere: uniform, zipf, pareto, or
//!                                │ no           the next of an order by chance ──┐
//!                                ▼                 (shared by the lanes)            ▼
//!                              where the last ended (shared by the lanes) ◀── goes on from there
//! ```

use crate::choose::Random;
use crate::describe::{Sizes, Spread, Stream, Walk};
use std::sync::atomic::{AtomicU64, Ordering};

/// A request, with its place in the part of the store that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub read: bool,
    pub offset: u64,
    pub len: u32,
    /// Whether all that there is has been asked for once, or once more.
    pub begins_again: bool,
}

/// Where the sequence of a stream, or its order by chance, is on one store.
#[derive(Debug)]
pub struct Cursor {
    /// The offset of the next request of a sequence; the number of the next of an order by chance.
    at: AtomicU64,
    /// What the order by chance follows from.
    seed: u64,
}

impl Cursor {
    pub fn new(seed: u64) -> Cursor {
        Cursor { at: AtomicU64::new(0), seed }
    }

    /// The next of `places` in an order in which each comes once; then another order of them begins.
    fn take_once(&self, places: u64) -> (u64, bool) {
        let turn = self.at.fetch_add(1, Ordering::Relaxed);
        let place = shuffled(turn % places, places, self.seed.wrapping_add(turn / places));
        (place, turn > 0 && turn.is_multiple_of(places))
    }

    /// Takes `len` bytes; `None` past the end of a sequence that does not begin again.
    fn take(&self, len: u64, align: u64, span: u64, wraps: bool) -> Option<(u64, bool)> {
        let mut at = self.at.load(Ordering::Relaxed);
        loop {
            let aligned = at.next_multiple_of(align);
            let fits = aligned.checked_add(len).is_some_and(|end| end <= span);
            let offset = match fits {
                true => aligned,
                false if wraps => 0,
                false => return None,
            };
            let next = offset + len;
            match self.at.compare_exchange_weak(at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((offset, offset < at)),
                Err(now) => at = now,
            }
        }
    }

    fn set(&self, offset: u64) {
        self.at.store(offset, Ordering::Relaxed);
    }
}

/// Draws the requests of one lane.
#[derive(Clone, Debug)]
pub struct Drawer {
    random: Random,
    read_part: f64,
    read_sizes: Lengths,
    write_sizes: Lengths,
    walk: Walk,
    scatter: Scatter,
}

impl Drawer {
    /// For a part of a store that holds `span` bytes, the stream's longest request at least.
    pub fn new(stream: &Stream, span: u64, seed: u64) -> Drawer {
        let unit = stream.sizes_in_use().map(Sizes::unit).min().unwrap_or(512);
        let block = stream.walk.align.unwrap_or(unit).max(1);
        Drawer {
            random: Random(seed),
            read_part: stream.read_percent / 100.0,
            read_sizes: Lengths::new(&stream.read_sizes),
            write_sizes: Lengths::new(&stream.write_sizes),
            walk: stream.walk.clone(),
            scatter: Scatter::new(stream.walk.spread, span / u64::from(block)),
        }
    }

    /// The next one; `None` at the end of a sequence that does not begin again.
    pub fn draw(&mut self, cursor: &Cursor, span: u64) -> Option<Ask> {
        let read = self.random.is(self.read_part);
        let sizes = if read { &self.read_sizes } else { &self.write_sizes };
        let len = sizes.draw(&mut self.random);
        let align = u64::from(self.walk.align.unwrap_or(len)).max(1);
        let hits = if read { self.walk.read_hit_percent } else { self.walk.write_hit_percent };
        if hits > 0.0 && self.random.is(hits / 100.0) {
            let area = self.walk.hit_area.clamp(u64::from(len), span.max(u64::from(len)));
            let places = (area - u64::from(len)) / align + 1;
            return Some(Ask { read, offset: self.random.below(places) * align, len, begins_again: false });
        }
        if self.walk.seek_percent > 0.0 && self.random.is(self.walk.seek_percent / 100.0) {
            let places = span.saturating_sub(u64::from(len)) / align + 1;
            let (place, begins_again) = match &self.scatter {
                Scatter::EachOnce => cursor.take_once(places),
                scatter => (scatter.draw(&mut self.random, places), false),
            };
            let offset = place * align;
            if self.walk.seek_percent < 100.0 {
                cursor.set(offset + u64::from(len));
            }
            return Some(Ask { read, offset, len, begins_again });
        }
        let (offset, begins_again) =
            cursor.take(u64::from(len), self.walk.align.map_or(1, u64::from), span, self.walk.wraps)?;
        Some(Ask { read, offset, len, begins_again })
    }
}

/// Lengths, ready to be drawn.
#[derive(Clone, Debug)]
enum Lengths {
    One(u32),
    /// Each with the sum of the weights up to it, as parts of 1.
    Several(Vec<(u32, f64)>),
    Range {
        min: u32,
        steps: u64,
        unit: u32,
    },
}

impl Lengths {
    fn new(sizes: &Sizes) -> Lengths {
        match sizes {
            Sizes::Weighted(sizes) if sizes.len() == 1 => Lengths::One(sizes[0].0),
            Sizes::Weighted(sizes) => {
                let all: f64 = sizes.iter().map(|(_, weight)| *weight).sum();
                let mut sum = 0.0;
                let add = |(len, weight): &(u32, f64)| {
                    sum += weight / all;
                    (*len, sum)
                };
                Lengths::Several(sizes.iter().map(add).collect())
            }
            Sizes::Range { min, max, unit } => {
                let unit = (*unit).max(1);
                Lengths::Range { min: *min, steps: u64::from(max.saturating_sub(*min) / unit) + 1, unit }
            }
        }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        match self {
            Lengths::One(len) => *len,
            Lengths::Several(sizes) => {
                let at = random.part();
                let found = sizes.iter().find(|(_, sum)| at < *sum).or(sizes.last());
                found.map_or(512, |(len, _)| *len)
            }
            Lengths::Range { min, steps, unit } => min + random.below(*steps) as u32 * unit,
        }
    }
}

/// Which of many blocks.
#[derive(Clone, Debug)]
enum Scatter {
    Uniform,
    EachOnce,
    Zipf(Zipf),
    Pareto(f64),
}

impl Scatter {
    fn new(spread: Spread, blocks: u64) -> Scatter {
        match spread {
            Spread::Uniform => Scatter::Uniform,
            Spread::EachOnce => Scatter::EachOnce,
            Spread::Zipf(theta) => Scatter::Zipf(Zipf::new(theta, blocks.max(1))),
            Spread::Pareto(h) => Scatter::Pareto(h.ln() / (1.0 - h).ln()),
        }
    }

    /// One of `places`.
    fn draw(&self, random: &mut Random, places: u64) -> u64 {
        let rank = match self {
            Scatter::Uniform | Scatter::EachOnce => return random.below(places),
            Scatter::Zipf(zipf) => zipf.draw(random),
            Scatter::Pareto(power) => (places as f64 * random.part().powf(*power)) as u64,
        };
        // The likely ones do not lie side by side: a multiplication by an odd number mixes, the remainder finds a place.
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) % places
    }
}

/// Where `number` is in an order by chance of the numbers below `count`; another seed is another order.
///
/// A Feistel network permutes the numbers of an even count of bits, at most four times as many as these; what falls
/// outside goes through it again, and no table is needed.
fn shuffled(number: u64, count: u64, seed: u64) -> u64 {
    const ROUNDS: u64 = 4;
    let half = (u64::BITS - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1 << half) - 1;
    let mut at = number;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..ROUNDS {
            let mixed = Random(right ^ seed.wrapping_mul(ROUNDS).wrapping_add(round) << 32).next();
            (left, right) = (right, left ^ mixed & mask);
        }
        at = left << half | right;
        if at < count {
            return at;
        }
    }
}

/// Numbers from 0 up, k with a weight of 1 / (k + 1)^theta, by inversion of the integral and rejection (Hörmann and
/// Derflinger): no table, and less than two tries for any theta.
#[derive(Clone, Debug)]
struct Zipf {
    theta: f64,
    count: f64,
    /// The integral of the weights' hat at the first, and at the last.
    low: f64,
    high: f64,
    /// Below this distance a try is taken without looking further.
    sure: f64,
}

impl Zipf {
    fn new(theta: f64, count: u64) -> Zipf {
        let mut zipf = Zipf { theta, count: count as f64, low: 0.0, high: 0.0, sure: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.count + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    fn integral(&self, x: f64) -> f64 {
        match self.is_harmonic() {
            true => x.ln(),
            false => (x.powf(1.0 - self.theta) - 1.0) / (1.0 - self.theta),
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        match self.is_harmonic() {
            true => y.exp(),
            false => (1.0 + y * (1.0 - self.theta)).max(0.0).powf(1.0 / (1.0 - self.theta)),
        }
    }

    fn is_harmonic(&self) -> bool {
        (self.theta - 1.0).abs() < 1e-9
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.high + random.part() * (self.low - self.high);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.count);
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
