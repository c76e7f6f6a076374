//! Histograms on a logarithmic scale.
//!
//! ```text
//!   sub_bits = 2:   … | 1024  1280  1536  1792 | 2048  2560 …      each power of two in four equal steps
//!   sub_bits = 0:   … | 1024                   | 2048       …      zpool iostat's
//!   ends: everything below the first goes into the first bucket, everything above the last into the last
//! ```

/// How values are sorted into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The first bucket begins here (as a power of two), but holds all below it too.
    pub first_shift: u32,
    /// The last bucket begins here, and has no end.
    pub last_shift: u32,
    /// Each power of two has `1 << sub_bits` buckets.
    pub sub_bits: u32,
}

impl Scale {
    /// 256 ns to 4.6 minutes, off by an eighth at most.
    pub const LATENCY: Scale = Scale { first_shift: 8, last_shift: 38, sub_bits: 2 };
    /// 512 bytes to 16 MiB, by powers of two.
    pub const SIZE: Scale = Scale { first_shift: 9, last_shift: 24, sub_bits: 0 };

    /// 64 bytes to 64 MiB, off by an eighth at most: a request of 501 KiB is in another bucket than one of 512.
    pub const TRANSFER: Scale = Scale { first_shift: 6, last_shift: 26, sub_bits: 2 };
    /// Each number up to 8 has its own bucket.
    pub const NUMBER: Scale = Scale { first_shift: 2, last_shift: 20, sub_bits: 2 };

    pub const fn buckets(self) -> usize {
        (((self.last_shift - self.first_shift) << self.sub_bits) + 1) as usize
    }

    pub fn bucket(self, value: u64) -> usize {
        let shift = value.checked_ilog2().unwrap_or(0);
        if shift < self.first_shift {
            return 0;
        }
        if shift >= self.last_shift {
            return self.buckets() - 1;
        }
        let sub = (value >> (shift - self.sub_bits)) as usize & ((1 << self.sub_bits) - 1);
        (((shift - self.first_shift) as usize) << self.sub_bits) + sub
    }

    /// What lies in a bucket: the first value, and the first of the next bucket.
    pub fn bounds(self, bucket: usize) -> (u64, u64) {
        let from = if bucket == 0 { 0 } else { self.lower_bound(bucket) };
        let last = bucket + 1 == self.buckets();
        (from, if last { u64::MAX } else { self.lower_bound(bucket + 1) })
    }

    /// The smallest value of a bucket, the first bucket's excepted.
    pub fn lower_bound(self, bucket: usize) -> u64 {
        let shift = self.first_shift + (bucket >> self.sub_bits) as u32;
        let sub = bucket as u64 & ((1 << self.sub_bits) - 1);
        (1 << shift) + (sub << (shift - self.sub_bits))
    }
}

/// Counts by bucket, as read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub scale: Scale,
    pub counts: Vec<u64>,
}

impl Histogram {
    pub fn new(scale: Scale) -> Histogram {
        Histogram { scale, counts: vec![0; scale.buckets()] }
    }

    pub fn record(&mut self, value: u64) {
        self.counts[self.scale.bucket(value)] += 1;
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The value that `percent` of all values do not exceed, to the precision of the scale: the upper end of its
    /// bucket. `None` of nothing.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let total = self.total();
        let rank = ((total as f64 * percent / 100.0).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && total > 0 {
                // The last bucket has no end; its beginning is what is known.
                let last = bucket + 1 == self.counts.len();
                return Some(self.scale.lower_bound(if last { bucket } else { bucket + 1 }));
            }
        }
        None
    }

    /// The counts by powers of two: `(lower bound, count)`, the first bucket's bound included.
    pub fn by_powers_of_two(&self) -> Vec<(u64, u64)> {
        let per_power = 1 << self.scale.sub_bits;
        let powers = self.counts.chunks(per_power).enumerate();
        powers.map(|(i, c)| (self.scale.lower_bound(i * per_power), c.iter().sum())).collect()
    }

    pub fn add(&mut self, other: &Histogram) {
        assert_eq!(self.scale, other.scale, "histograms of one scale are added");
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
    }

    /// What was counted after `earlier` was read.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        assert_eq!(self.scale, earlier.scale, "histograms of one scale are compared");
        let counts = self.counts.iter().zip(&earlier.counts).map(|(a, b)| a.saturating_sub(*b)).collect();
        Histogram { scale: self.scale, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_between_the_bounds_of_its_bucket() {
        for scale in [Scale::LATENCY, Scale::SIZE, Scale { first_shift: 4, last_shift: 12, sub_bits: 3 }] {
            let last = scale.buckets() - 1;
            for value in (0..5000).chain((0..64).map(|s| 1u64 << s)).chain((1..64).map(|s| (1u64 << s) - 1)) {
                let bucket = scale.bucket(value);
                assert!(bucket == 0 || scale.lower_bound(bucket) <= value, "{value} in {bucket}");
                assert!(bucket == last || value < scale.lower_bound(bucket + 1), "{value} in {bucket}");
            }
        }
    }

    #[test]
    fn percentiles_are_right_to_the_precision_of_the_scale() {
        let mut h = Histogram::new(Scale::LATENCY);
        assert_eq!(h.percentile(50.0), None);
        (1..=100_000u64).for_each(|us| h.record(us * 1000));
        for percent in [1.0, 50.0, 99.0, 99.9] {
            let exact = percent * 1000.0 * 1000.0;
            let found = h.percentile(percent).unwrap() as f64;
            assert!(found >= exact && found <= exact * 1.26, "{percent}: {found} for {exact}");
        }
        assert_eq!(h.by_powers_of_two().iter().map(|p| p.1).sum::<u64>(), 100_000);
        let (bound, count) = h.by_powers_of_two()[12];
        assert_eq!((bound, count), (1 << 20, 2097 - 1048));
    }

    #[test]
    fn a_difference_holds_what_came_between() {
        let mut h = Histogram::new(Scale::SIZE);
        h.record(4096);
        let before = h.clone();
        h.record(4096);
        h.record(100);
        let between = h.since(&before);
        assert_eq!((between.total(), between.counts[3], between.counts[0]), (2, 1, 1));
        let mut sum = before.clone();
        sum.add(&between);
        assert_eq!(sum, h);
    }
}
