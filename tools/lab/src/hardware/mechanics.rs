//! The mechanics of a disk that turns: where a byte is, how long the arm takes there, and when the platter brings it round.
//!
//! ```text
//!   offset ─▶ zone ─▶ track ─▶ head, cylinder                    tracks of a zone have the same number of sectors
//!                        └───▶ angle at which the track begins: each is turned against the one before by a skew,
//!                              so that the arm has arrived when the next track begins
//!
//!   begin = now + seek(cylinders) ─▶ wait until the angle comes round ─▶ transfer, with a skew at the end of each track
//! ```
//!
//! The angle follows from the clock: a write that returns just after its successor's place has passed the head costs that
//! successor a whole turn. Pure: no queue, no time of its own. Times are in seconds.

use crate::parameters::Parameters;

/// How long the arm takes for a number of cylinders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seek {
    /// A root up to a distance, a line beyond, and never less than something: a measured curve.
    RootThenLine { least: f64, root: (f64, f64), until: f64, line: (f64, f64) },
    /// c + a√(d−1) + b(d−1), through a data sheet's shortest, mean and longest (Lee and Katz).
    ThreePoints { a: f64, b: f64, c: f64 },
}

impl Seek {
    /// From the shortest, mean and longest seek of a disk of so many cylinders.
    pub fn of_sheet(shortest: f64, mean: f64, longest: f64, cylinders: f64) -> Seek {
        let a = (-10.0 * shortest + 15.0 * mean - 5.0 * longest) / (3.0 * cylinders.sqrt());
        let b = (7.0 * shortest - 15.0 * mean + 8.0 * longest) / (3.0 * cylinders);
        Seek::ThreePoints { a, b, c: shortest }
    }

    pub fn time(&self, cylinders: u64) -> f64 {
        let d = cylinders as f64;
        match *self {
            _ if cylinders == 0 => 0.0,
            Seek::RootThenLine { least, root: (base, slope), until, .. } if d <= until => {
                (base + slope * d.sqrt()).max(least)
            }
            Seek::RootThenLine { line: (base, slope), .. } => base + slope * d,
            Seek::ThreePoints { a, b, c } => c + a * (d - 1.0).sqrt() + b * (d - 1.0),
        }
    }
}

/// One kind of disk. Build it with [`Mechanics::of`].
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// Seconds of a revolution.
    pub turn: f64,
    seek: Seek,
    /// What a write's seek takes longer: it must settle.
    settle_write: f64,
    /// Of a revolution.
    skew: f64,
    heads: u64,
    zones: Vec<Zone>,
    /// Bytes of the disk stand for so many times as many, in pieces of [`GRAIN`]: arms move as far as over all of them.
    pub stretch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Zone {
    first_byte: u64,
    first_track: u64,
    track_bytes: u64,
}

/// Tracks of one surface that follow each other before the next surface is used.
const SERPENTINE: u64 = 128;
/// What stays together when a disk is stretched.
const GRAIN: u64 = 16 << 20;
const SECTOR: u64 = 512;

/// Where a byte is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    pub cylinder: u64,
    /// Of a revolution, 0 to 1.
    pub angle: f64,
}

impl Mechanics {
    /// From the parameters whose keys begin with `prefix`.
    pub fn of(parameters: &Parameters, prefix: &str, stretch: u64) -> Mechanics {
        let get = |key: &str| parameters.get(&format!("{prefix}{key}"));
        let ms = |key: &str| get(key) / 1e3;
        let cylinders = get("cylinders");
        let seek = match get("seek-shortest") {
            // A measured curve.
            0.0 => Seek::RootThenLine {
                least: ms("seek-least"),
                root: (ms("seek-root-base"), ms("seek-root")),
                until: get("seek-root-until"),
                line: (ms("seek-line-base"), ms("seek-line")),
            },
            shortest => Seek::of_sheet(shortest / 1e3, ms("seek-mean"), ms("seek-longest"), cylinders),
        };
        let turn = 60.0 / get("revolutions");
        let count = get("zones") as u64;
        let heads = get("heads") as u64;
        let (outer, inner) = (get("sectors-outer"), get("sectors-inner"));
        let tracks = (cylinders as u64 / count / SERPENTINE).max(1) * SERPENTINE * heads;
        let (mut first_byte, mut zones) = (0, Vec::new());
        for n in 0..count {
            let share = n as f64 / (count - 1).max(1) as f64;
            let track_bytes = (outer + (inner - outer) * share) as u64 * SECTOR;
            zones.push(Zone { first_byte, first_track: n * tracks, track_bytes });
            first_byte += tracks * track_bytes;
        }
        let settle_write = ms("settle-write");
        Mechanics { turn, seek, settle_write, skew: ms("skew") / turn, heads, zones, stretch }
    }

    fn zone(&self, byte: u64) -> &Zone {
        let after = self.zones.partition_point(|zone| zone.first_byte <= byte);
        &self.zones[after.max(1) - 1]
    }

    /// The byte of the real disk that stands for `offset`.
    fn physical(&self, offset: u64) -> u64 {
        offset / GRAIN * GRAIN * self.stretch + offset % GRAIN
    }

    pub fn spot(&self, offset: u64) -> Spot {
        let byte = self.physical(offset);
        let zone = self.zone(byte);
        let (track, within) =
            ((byte - zone.first_byte) / zone.track_bytes, (byte - zone.first_byte) % zone.track_bytes);
        let track = zone.first_track + track;
        let (group, place) = (track / (SERPENTINE * self.heads), track % (SERPENTINE * self.heads));
        let (head, step) = (place / SERPENTINE, place % SERPENTINE);
        let step = if head.is_multiple_of(2) { step } else { SERPENTINE - 1 - step };
        let angle = track as f64 * self.skew + within as f64 / zone.track_bytes as f64;
        Spot { cylinder: group * SERPENTINE + step, angle: angle.fract() }
    }

    /// From the arm at `cylinder` at the time `now` until the head is over the first byte.
    pub fn positioning(&self, cylinder: u64, now: f64, spot: Spot, is_write: bool) -> f64 {
        let moves = cylinder.abs_diff(spot.cylinder);
        let settle = if is_write && moves > 0 { self.settle_write } else { 0.0 };
        let seek = self.seek.time(moves) + settle;
        let turned = ((now + seek) / self.turn).fract();
        let wait = (spot.angle - turned).rem_euclid(1.0);
        // What has just been reached is not passed by the error of a sum.
        let wait = if wait > 1.0 - 1e-6 { 0.0 } else { wait };
        seek + wait * self.turn
    }

    /// How long the bytes take to pass under the head, from the first on.
    pub fn transfer(&self, offset: u64, len: u64) -> f64 {
        let byte = self.physical(offset);
        let zone = self.zone(byte);
        let within = (byte - zone.first_byte) % zone.track_bytes;
        let crossed = (within + len) / zone.track_bytes;
        (len as f64 / zone.track_bytes as f64 + crossed as f64 * self.skew) * self.turn
    }

    /// How much the disk holds, bytes.
    pub fn capacity(&self) -> u64 {
        let last = self.zones[self.zones.len() - 1];
        let tracks = self.zones.get(1).map_or(SERPENTINE * self.heads, |zone| zone.first_track);
        (last.first_byte + tracks * last.track_bytes) / self.stretch / GRAIN * GRAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{DISK_7200, DISK_15000};

    fn nearline() -> Mechanics {
        Mechanics::of(&Parameters::of(&[DISK_7200]), "disk-", 1)
    }

    #[test]
    fn the_curve_is_the_one_that_was_measured() {
        let disk = nearline();
        let ms = |d| disk.seek.time(d) * 1e3;
        // Single points of the measurement, which the fit misses by a tenth of a millisecond.
        for (distance, measured) in
            [(141, 1.4), (10_035, 3.4), (60_108, 6.2), (150_112, 9.2), (310_098, 14.2)]
        {
            assert!((ms(distance) - measured).abs() < 0.25, "{distance}: {}", ms(distance));
        }
        assert_eq!(ms(0), 0.0);
    }

    #[test]
    fn three_points_of_a_sheet_are_met() {
        let disk = Mechanics::of(&Parameters::of(&[DISK_15000]), "disk15-", 1);
        let parameters = Parameters::of(&[DISK_15000]);
        let cylinders = parameters.get("disk15-cylinders") as u64;
        let longest = disk.seek.time(cylinders) * 1e3;
        assert!((longest - parameters.get("disk15-seek-longest")).abs() < 0.05, "{longest}");
        let mut rng = sim::Rng::new(1);
        let n = 20_000;
        let sum: f64 =
            (0..n).map(|_| disk.seek.time(rng.below(cylinders).abs_diff(rng.below(cylinders)))).sum();
        let mean = sum / f64::from(n) * 1e3;
        assert!((mean - parameters.get("disk15-seek-mean")).abs() < 0.15, "{mean}");
    }

    #[test]
    fn what_follows_needs_no_positioning_and_what_was_just_passed_a_turn() {
        let disk = nearline();
        for offset in [0, 1_500_000, 3 << 40] {
            let offset = offset / 4096 * 4096;
            let spot = disk.spot(offset);
            let began = 1.0 + disk.positioning(spot.cylinder, 1.0, spot, false);
            let end = began + disk.transfer(offset, 4096);
            let next = disk.spot(offset + 4096);
            // The arm may have moved on to the next track within its skew.
            let follows = disk.positioning(next.cylinder, end, next, false);
            assert!(follows < disk.skew * disk.turn + 1e-9, "{offset}: {follows}");
            let late = disk.positioning(next.cylinder, end + 0.0005, next, false);
            assert!(late > disk.turn - 0.0015 && late < disk.turn, "{offset}: {late}");
        }
    }

    #[test]
    fn the_outer_tracks_are_twice_as_fast_and_all_bytes_have_room() {
        let disk = nearline();
        let rate = |offset| 64.0 / disk.transfer(offset, 64 << 20) * 1.048_576;
        let (outer, inner) = (rate(0), rate(disk.capacity() - (64 << 20)));
        assert!((165.0..180.0).contains(&outer) && (80.0..92.0).contains(&inner), "{outer} {inner}");
        assert!(disk.capacity() > 3_500_000_000_000, "{}", disk.capacity());
        let stretched = Mechanics { stretch: 64, ..disk.clone() };
        assert_eq!(stretched.capacity() / GRAIN, disk.capacity() / 64 / GRAIN);
        assert_eq!(stretched.spot(GRAIN + 5), disk.spot(64 * GRAIN + 5));
    }

    #[test]
    fn random_places_cost_what_such_disks_cost() {
        let disk = nearline();
        let mut rng = sim::Rng::new(2);
        let (mut now, mut cylinder, n) = (0.0, 0, 20_000);
        for _ in 0..n {
            let spot = disk.spot(rng.below(disk.capacity() / 4096) * 4096);
            now += disk.positioning(cylinder, now, spot, false);
            cylinder = spot.cylinder;
        }
        let mean = now / f64::from(n) * 1e3;
        assert!((11.0..12.2).contains(&mean), "7.4 ms of arm and half a turn, not {mean}");
    }
}
