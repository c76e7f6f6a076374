//! What a setting spends and no figure of a client shows: the life of a cache device.
//!
//! ```text
//!   filled faster than it is made for ── tunable set ─▶  as fast as it is made for    bytes of a pass of the feed
//! ```
//!
//! What cache devices are made for is said by a property of the pool, as people say it: no device tells it.

use super::{Place, volume};
use interop::harness::{Trial, trial};

pub fn trials() -> Vec<Trial> {
    vec![trial("a_cache_device_lasts_as_long_as_it_is_made_for_when_the_advice_is_followed", &[], wear)]
}

/// Drive writes per day: of 1 GiB no more than some 67 KB in a second, twice the budget.
const DWPD: f64 = 2.7;
const TWICE: f64 = 2.0 * DWPD * (1u64 << 30) as f64 / 86_400.0;
/// Over the hour that a filling is spread over at least, this is more.
const WORN: f64 = TWICE * 3600.0 * 1.02;
const BLOCK: f64 = 16384.0;

fn wear() {
    // One pass in a second, as in the years of such advice.
    let commands = ["tunable set l2arc_feed_again=0 l2arc_write_boost=0".to_string(), volume("16K", "384M")];
    let mut place = Place::new("mirror A B cache C", &commands.each_ref().map(String::as_str));
    place.home.run(&format!("zpool set cenote:dwpd={DWPD} tank"));
    place.load("rw=write bs=1m size=384m");
    // In a pass, when so many bytes in so many passes have been written.
    let each_pass = |place: &Place, bytes: f64, passes: f64| {
        let before = place.fed();
        loop {
            place.load("rw=randread bs=16k size=384m io_size=128m");
            let now = place.fed();
            let own = [now[0] - before[0], now[1] - before[1]];
            if own[0] >= bytes && own[1] >= passes {
                return own[0] / own[1];
            }
        }
    };
    let before = each_pass(&place, WORN, 1.0);
    let advice = place.told("cache-wear").unwrap_or_else(|| panic!("{:#?}", place.home.run("arc -j")));
    place.follow(&advice);
    // What was written is told of for as long as the pool is open.
    place.home.run("zpool export tank");
    place.home.run(&format!("zpool import -d {} tank", place.home.scratch.path().display()));
    let after = each_pass(&place, 1.0, 3.0);
    assert!(before > 10.0 * TWICE && after <= TWICE + BLOCK, "{before} and {after} bytes in a pass");
    assert_eq!(place.told("cache-wear"), None);
    place.start();
    place.end();
}
