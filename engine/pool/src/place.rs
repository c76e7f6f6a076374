//! On which loop a pool is synced: on one that clients need less.
//!
//! ```text
//!   loop 0   connection   connection   sync          loop 0   connection   connection
//!   loop 1                                     ──▶    loop 1   sync
//! ```
//!
//! A sync keeps a core busy for as long as clients write. Connections come to the loops in turn, whatever is done there, so
//! one that writes may come to where the sync is: half of two cores would do nothing. What decides is how long connections
//! [had each loop](world::serving) since it was last asked; what the sync itself takes does not count, or it would
//! go to and fro.

use std::time::Duration;
use world::Instant;

/// A shorter time says little.
const WINDOW: Duration = Duration::from_millis(200);
/// Of a longer one, this much is taken for the time in which clients were busy.
const BURST: Duration = Duration::from_secs(1);
/// A loop that gives clients less than this part of its time has time enough.
const BUSY: u32 = 20;

pub(crate) struct Place {
    since: Instant,
    /// Of each loop, at that time.
    serving: Vec<Duration>,
}

fn serving() -> Vec<Duration> {
    (0..world::cores()).map(world::serving).collect()
}

impl Place {
    pub fn begin() -> Place {
        Place { since: world::now(), serving: serving() }
    }

    /// The loop that is the better one, by what was served since this was last answered.
    pub fn better(&mut self) -> Option<usize> {
        let window = world::now().since(self.since);
        if window < WINDOW {
            return None;
        }
        let former = std::mem::replace(self, Place::begin());
        let served: Vec<Duration> =
            self.serving.iter().zip(former.serving).map(|(now, then)| now.saturating_sub(then)).collect();
        choose(world::this_core(), window, &served)
    }
}

fn choose(here: usize, window: Duration, served: &[Duration]) -> Option<usize> {
    let after = |core: usize| (core + served.len() - here) % served.len();
    let least = (0..served.len()).min_by_key(|&core| (served[core], after(core)))?;
    (served[here] >= window.min(BURST) / BUSY && served[least] <= served[here] / 2).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sync_goes_where_clients_take_half_as_much_at_most() {
        let second = Duration::from_secs(1);
        let choose = |here, served: &[u64]| {
            let served: Vec<_> = served.iter().map(|&n| Duration::from_millis(n)).collect();
            choose(here, second, &served)
        };
        assert_eq!(choose(0, &[500, 0]), Some(1));
        assert_eq!(choose(1, &[500, 0]), None);
        assert_eq!(choose(0, &[500, 250]), Some(1));
        assert_eq!(choose(0, &[500, 251]), None, "it would soon come back");
        assert_eq!(choose(0, &[40, 0]), None, "there is time enough");
        assert_eq!(choose(2, &[10, 0, 700, 0]), Some(3), "of equals the next one, so that pools go apart");
        assert_eq!(choose(0, &[900]), None);
        let after_an_hour = super::choose(0, 3600 * second, &[second / 4, Duration::ZERO]);
        assert_eq!(after_an_hour, Some(1), "it was a burst");
    }
}
