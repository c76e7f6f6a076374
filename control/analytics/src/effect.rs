//! Whether a change did anything: the figures after it against those before, judged by moments at which nothing changed.
//!
//! ```text
//!    ... quiet ...   [before: 30 s] m [5 s] [after: 30 s]         a quiet moment m: |after - before| of each figure
//!      ... quiet ...      [before: 30 s] m [5 s] [after: 30 s]    the next, 5 s later
//!                                          ...
//!                              [before: 30 s] CHANGE [5 s] [after: 30 s]
//! ```
//!
//! A load goes up and down by itself, by how much its own past tells: the same two windows are laid around moments of the
//! last [`HISTORY`] seconds. Differences of a figure are measured by their median over all moments, so that figures can
//! be compared; of a moment only the greatest of its figures counts. The change has an effect on a figure when at most
//! [`RIVALS`] in a hundred moments had any figure that differed as much. So however many figures are looked at, a change
//! of nothing claims an effect about once in a hundred times, whatever the load is like, as long as it goes on as it was.
//!
//! The gap is a transaction group's: what was set holds from the next one on. A figure counts at a moment where it was more
//! than zero in a tenth of the seconds of both windows, as often as disks are written to at least: work that begins or ends
//! is no effect of a setting.
//!
//! Not here: where samples come from (`recorder`), and which changes there were (`ledger`).

/// Seconds before a change, and after it, that are compared.
pub(crate) const WINDOW: u64 = 30;
/// Seconds after a change that belong to neither.
pub(crate) const GAP: u64 = 5;
/// Seconds from one quiet moment to the next.
const STEP: u64 = 5;
/// Seconds before a change that are looked at.
pub(crate) const HISTORY: u64 = 1_800;
/// Fewer moments can tell nothing.
pub(crate) const MOMENTS_MIN: usize = 100;
/// Of a figure's value: differences below that are all alike.
const STILL: f64 = 0.01;
/// Per cent of the moments that may have differed as much.
const RIVALS: usize = 1;

/// The values of one figure, second by second, from [`HISTORY`] before the change on; `None`: there is no figure.
pub(crate) type Series = Vec<Option<f64>>;

/// What a figure did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compared {
    pub before: f64,
    pub after: f64,
    pub rivals: usize,
    pub is_effect: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judged {
    /// No figure has enough samples around the change.
    Idle,
    /// As many moments as there were.
    Short(usize),
    /// For each series in turn; `None` where it has not enough samples.
    Known { moments: usize, figures: Vec<Option<Compared>> },
}

/// How many seconds a series has.
pub(crate) const LENGTH: usize = (HISTORY + GAP + WINDOW) as usize;

/// Judges a change at [`HISTORY`]. `is_quiet` tells of a stretch of seconds whether nothing else was changed in it.
pub(crate) fn judge(all: &[Series], is_quiet: impl Fn(std::ops::Range<usize>) -> bool) -> Judged {
    let [window, gap, step, at] = [WINDOW, GAP, STEP, HISTORY].map(|n| n as usize);
    let mut own: Vec<Option<(f64, f64)>> = all.iter().map(|series| around(series, at)).collect();
    if own.iter().all(Option::is_none) {
        return Judged::Idle;
    }
    // A moment ends before the change begins to count.
    let quiet = (window..=at.saturating_sub(gap + window)).rev().step_by(step);
    let quiet = quiet.filter(|m| is_quiet(m - window..m + gap + window));
    let mut moments: Vec<Vec<Option<(f64, f64)>>> =
        quiet.map(|m| all.iter().map(|series| around(series, m)).collect()).collect();
    // What has begun lately is not judged, and keeps no other figure from it.
    let known = |n: usize| moments.iter().filter(|moment| moment[n].is_some()).count();
    let longest = (0..all.len()).filter(|n| own[*n].is_some()).map(known).max().unwrap_or(0);
    (0..all.len()).filter(|n| known(*n) < MOMENTS_MIN).for_each(|n| own[n] = None);
    if own.iter().all(Option::is_none) {
        return Judged::Short(longest);
    }
    // Where not every figure of the change has its samples, the moment could not have been a rival.
    moments.retain(|moment| own.iter().zip(moment).all(|(own, found)| own.is_none() || found.is_some()));
    if moments.len() < MOMENTS_MIN {
        return Judged::Short(moments.len());
    }
    let difference = |pair: &Option<(f64, f64)>| pair.map(|(before, after)| (after - before).abs());
    // A figure that hardly moves, as that of a load with a fixed rate, must not drown the others by its last digit.
    let least = |n: usize| median(moments.iter().filter_map(|m| Some(m[n]?.0)).collect()) * STILL;
    let usual = |n: usize| median(moments.iter().filter_map(|m| difference(&m[n])).collect());
    let scales: Vec<f64> = (0..all.len()).map(|n| usual(n).max(least(n))).collect();
    let measured = |n: usize, pair: &Option<(f64, f64)>| {
        own[n]?;
        Some(difference(pair)? / scales[n])
    };
    let greatest: Vec<f64> = moments
        .iter()
        .map(|m| m.iter().enumerate().filter_map(|(n, pair)| measured(n, pair)).fold(0.0, f64::max))
        .collect();
    let figures = own.iter().enumerate().map(|(n, pair)| {
        let (before, after) = (*pair)?;
        let measure = measured(n, pair)?;
        let rivals = greatest.iter().filter(|greatest| **greatest >= measure).count();
        let is_effect = measure > 0.0 && rivals * 100 <= greatest.len() * RIVALS;
        Some(Compared { before, after, rivals, is_effect })
    });
    Judged::Known { moments: greatest.len(), figures: figures.collect() }
}

/// The means of the two windows around a moment.
fn around(series: &[Option<f64>], moment: usize) -> Option<(f64, f64)> {
    let (window, gap) = (WINDOW as usize, GAP as usize);
    let before = series.get(moment.checked_sub(window)?..moment)?;
    let after = series.get(moment + gap..moment + gap + window)?;
    Some((mean(before)?, mean(after)?))
}

/// Of the seconds that have a figure, where it is more than zero in enough of them.
fn mean(window: &[Option<f64>]) -> Option<f64> {
    let there: Vec<f64> = window.iter().flatten().copied().collect();
    let at_work = there.iter().filter(|value| **value > 0.0).count();
    (at_work * 10 >= window.len()).then(|| there.iter().sum::<f64>() / there.len() as f64)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// From 0 up to 1.
        fn unit(&mut self) -> f64 {
            (self.next() >> 11) as f64 / (1u64 << 53) as f64
        }

        /// About normal: mean 0, deviation 1.
        fn noise(&mut self) -> f64 {
            (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
        }
    }

    /// A load that nothing was changed of: operations, bytes and latency that hang together, of a kind by the seed.
    fn load(seed: u64) -> Vec<Series> {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        let (memory, burst) = ([0.0, 0.6, 0.9, 0.97][(seed % 4) as usize], seed / 4 % 4);
        let period = 20 + random.next() % 400;
        let phase = random.next() % period;
        let mut wave = 0.0;
        let mut operations = Vec::new();
        for second in 0..LENGTH as u64 {
            wave = memory * wave + random.noise();
            let extra = match burst {
                0 => 0.0,
                // A job that comes every so often.
                1 if (second + phase) % period < period / 4 => 800.0,
                // Outliers.
                2 if random.unit() < 0.02 => 3_000.0,
                _ => 0.0,
            };
            // Disks are written to when a transaction group ends.
            let is_idle = burst == 3 && !(second + phase).is_multiple_of(5);
            operations.push(if is_idle { 0.0 } else { (2_000.0 + 60.0 * wave + extra).max(1.0) });
        }
        let bytes =
            operations.iter().map(|ops| Some(ops * 16_384.0 * (1.0 + 0.02 * random.noise()).max(0.1)));
        let bytes: Series = bytes.collect();
        let latency = operations.iter().map(|ops| {
            let latency = 1e9 / ops * (1.0 + 0.1 * random.noise()).max(0.1);
            Some(latency).filter(|latency| latency.is_finite())
        });
        let latency: Series = latency.collect();
        vec![operations.into_iter().map(Some).collect(), bytes, latency]
    }

    fn has_effect(judged: &Judged) -> bool {
        match judged {
            Judged::Known { figures, .. } => figures.iter().flatten().any(|figure| figure.is_effect),
            _ => false,
        }
    }

    #[test]
    fn a_hundred_changes_of_nothing_claim_an_effect_in_at_most_five() {
        for hundred in 0..12 {
            let seeds = hundred * 100..(hundred + 1) * 100;
            let claims: Vec<u64> = seeds.filter(|seed| has_effect(&judge(&load(*seed), |_| true))).collect();
            assert!(claims.len() <= 5, "of changes of nothing an effect was claimed in {claims:?}");
        }
    }

    #[test]
    fn a_figure_that_changes_by_more_than_its_load_does_is_found() {
        let (mut found, mut told) = (0, 0);
        for seed in 0..100 {
            let mut all = load(seed * 16);
            for second in all[2].iter_mut().skip(HISTORY as usize + 2) {
                *second = second.map(|latency| latency * 0.6);
            }
            let judged = judge(&all, |_| true);
            let Judged::Known { figures, .. } = &judged else { panic!("seed {seed}: {judged:?}") };
            let latency = figures[2].expect("it has samples");
            found += u32::from(latency.is_effect);
            told += u32::from((latency.after / latency.before - 0.6).abs() < 0.05);
        }
        assert!(found >= 95 && told >= 95, "found {found}, told rightly {told}");
    }

    #[test]
    fn what_disks_do_in_one_second_of_five_is_compared() {
        let mut all = load(12);
        assert!(all[0].iter().flatten().filter(|value| **value == 0.0).count() > LENGTH / 2);
        for second in all[0].iter_mut().skip(HISTORY as usize) {
            *second = second.map(|operations| operations * 2.0);
        }
        let judged = judge(&all, |_| true);
        let Judged::Known { figures, .. } = &judged else { panic!("{judged:?}") };
        assert!(figures[0].is_some_and(|operations| operations.is_effect), "{judged:?}");
    }

    #[test]
    fn work_that_begins_or_ends_and_a_short_past_claim_nothing() {
        let mut begins = load(1);
        begins.iter_mut().for_each(|s| s[..HISTORY as usize + 3].fill(None));
        assert_eq!(judge(&begins, |_| true), Judged::Idle);
        let mut ends = load(2);
        ends.iter_mut().for_each(|s| s[HISTORY as usize..].fill(Some(0.0)));
        assert_eq!(judge(&ends, |_| true), Judged::Idle);
        let mut mixed = load(4);
        mixed[1][..HISTORY as usize - 100].fill(None);
        let Judged::Known { figures, .. } = judge(&mixed, |_| true) else { panic!("two can be judged") };
        assert!(figures[0].is_some() && figures[1].is_none() && figures[2].is_some());
        let mut young = load(3);
        young.iter_mut().for_each(|s| s[..HISTORY as usize - 200].fill(None));
        let judged = judge(&young, |_| true);
        assert!(matches!(judged, Judged::Short(1..MOMENTS_MIN)), "{judged:?}");
    }

    #[test]
    fn moments_around_other_changes_are_not_compared_with() {
        let all = load(5);
        let Judged::Known { moments, .. } = judge(&all, |_| true) else { panic!("it can be judged") };
        let other = HISTORY as usize - 300;
        let Judged::Known { moments: fewer, .. } = judge(&all, |range| !range.contains(&other)) else {
            panic!("it can be judged")
        };
        assert_eq!(moments - fewer, ((2 * WINDOW + GAP) / STEP) as usize);
    }

    #[test]
    fn a_figure_that_hardly_moves_does_not_hide_what_the_others_do() {
        let mut all = load(1);
        // A load with a fixed rate: one request more or less in some seconds.
        all[0] = (0..LENGTH).map(|second| Some(if second % 47 == 0 { 401.0 } else { 400.0 })).collect();
        for second in all[2].iter_mut().skip(HISTORY as usize + 2) {
            *second = second.map(|latency| latency * 5.0);
        }
        let judged = judge(&all, |_| true);
        let Judged::Known { figures, .. } = &judged else { panic!("{judged:?}") };
        assert!(figures[2].is_some_and(|latency| latency.is_effect), "{judged:?}");
        assert!(figures[0].is_some_and(|rate| !rate.is_effect), "{judged:?}");
    }

    #[test]
    fn figures_that_never_move_are_not_an_effect_until_they_do() {
        let flat = |after: f64| {
            let mut series: Series = vec![Some(7.0); LENGTH];
            series[HISTORY as usize..].fill(Some(after));
            judge(&[series], |_| true)
        };
        assert!(!has_effect(&flat(7.0)));
        assert!(has_effect(&flat(8.0)));
    }
}
