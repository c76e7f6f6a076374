//! A link that carries both ways at once, and a host that divides what is too large for it.
//!
//! ```text
//!   request of 1 MiB ─▶ pieces of at most the host's transfer size, at once ─▶ each its turn on the link ─▶ all done
//! ```
//!
//! A piece occupies its direction for its bytes; the other direction is free meanwhile.

use super::spindle::{instant, seconds};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// One direction of a link or of several that are used together.
#[derive(Debug)]
struct Direction {
    bytes_per_second: f64,
    free: Mutex<f64>,
}

impl Direction {
    async fn carry(&self, bytes: u64) {
        let until = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            *free = free.max(seconds(world::now())) + bytes as f64 / self.bytes_per_second;
            *free
        };
        world::sleep_until(instant(until)).await;
    }
}

/// See the module. Clones are the same link.
#[derive(Clone, Debug)]
pub struct Link {
    to_host: Arc<Direction>,
    from_host: Arc<Direction>,
}

impl Link {
    /// Megabytes per second in each direction, all ports together.
    pub fn new(megabytes_per_second: f64) -> Link {
        let direction =
            || Arc::new(Direction { bytes_per_second: megabytes_per_second * 1e6, free: Mutex::new(0.0) });
        Link { to_host: direction(), from_host: direction() }
    }

    pub async fn to_host(&self, bytes: u64) {
        self.to_host.carry(bytes).await;
    }

    pub async fn from_host(&self, bytes: u64) {
        self.from_host.carry(bytes).await;
    }
}

/// A request as the host sends it: pieces of at most `most` bytes.
pub fn divided(offset: u64, len: u64, most: u64) -> impl Iterator<Item = Range<u64>> {
    let end = offset + len;
    (0..len.div_ceil(most)).map(move |i| offset + i * most..(offset + (i + 1) * most).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabyte_goes_as_two_halves_or_whole() {
        let pieces = |most| divided(4 << 20, 1 << 20, most).map(|r| r.end - r.start).collect::<Vec<_>>();
        assert_eq!(pieces(512 << 10), [512 << 10, 512 << 10]);
        assert_eq!(pieces(1 << 20), [1 << 20]);
        assert_eq!(pieces(700_000), [700_000, (1 << 20) - 700_000]);
    }

    #[test]
    fn directions_do_not_wait_for_each_other() {
        let took = sim::run(1, sim::Config::default(), async {
            let link = Link::new(100.0);
            let began = world::now();
            let both = [link.to_host(50_000_000), link.to_host(50_000_000)];
            futures_util::join!(futures_util::future::join_all(both), link.from_host(80_000_000));
            world::now().since(began).as_secs_f64()
        });
        assert!((0.999..1.001).contains(&took), "{took}");
    }
}
