//! How often somebody may try to log in.
//!
//! Each attempt takes a place in two buckets, that of the name and that of the address, before the password is looked
//! at, and gets both back when it was right: so a flood of attempts at once gets no further than one after another.
//! A code that is no name's has a bucket for each address alone: one for all would let strangers keep its owner out.
//! A name that is guessed at from elsewhere keeps a bucket of its own for each address from which it has logged in
//! before, so that a stranger cannot keep its owner out.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Of a name: ten at once, then ten a minute.
const NAME: Limit = Limit { burst: 10.0, seconds: 6.0 };
/// Of an address, behind which several people may be.
const ADDRESS: Limit = Limit { burst: 20.0, seconds: 3.0 };
/// So that inventing names and addresses fills no memory.
const BUCKETS_MAX: usize = 10_000;
const TRUSTED_MAX: usize = 4_096;

struct Limit {
    burst: f64,
    /// Until one place is free again.
    seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Name(String),
    Trusted(String, IpAddr),
    Address(IpAddr),
}

impl Key {
    fn limit(&self) -> &'static Limit {
        match self {
            Key::Name(_) | Key::Trusted(..) => &NAME,
            Key::Address(_) => &ADDRESS,
        }
    }
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    /// Seconds of the clock that only runs forward.
    at: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Throttle {
    buckets: HashMap<Key, Bucket>,
    trusted: HashSet<(String, IpAddr)>,
}

/// The places that an attempt has taken.
#[derive(Debug)]
pub(crate) struct Places(Vec<Key>);

impl Throttle {
    /// The seconds to wait, when there have been too many. Who has no address is on this machine and not limited by it.
    pub fn take(&mut self, name: &str, address: Option<IpAddr>, now: f64) -> Result<Places, u64> {
        let address = address.map(network);
        let of_name = match address {
            Some(a) if self.trusted.contains(&(name.to_string(), a)) => Key::Trusted(name.into(), a),
            _ => Key::Name(name.into()),
        };
        self.take_of(of_name, address, now)
    }

    /// As [`take`](Throttle::take), where one address has nothing to do with another.
    pub fn take_apart(&mut self, name: &str, address: Option<IpAddr>, now: f64) -> Result<Places, u64> {
        let address = address.map(network);
        let of_name = address.map_or_else(|| Key::Name(name.into()), |a| Key::Trusted(name.into(), a));
        self.take_of(of_name, address, now)
    }

    fn take_of(&mut self, of_name: Key, address: Option<IpAddr>, now: f64) -> Result<Places, u64> {
        let keys: Vec<Key> = [of_name].into_iter().chain(address.map(Key::Address)).collect();
        let wait = keys.iter().map(|key| self.wait(key, now)).fold(0.0, f64::max);
        if wait > 0.0 {
            return Err(wait.ceil() as u64);
        }
        if self.buckets.len() >= BUCKETS_MAX {
            self.forget(now);
        }
        for key in &keys {
            let bucket = self.buckets.entry(key.clone());
            let bucket = bucket.or_insert_with(|| Bucket { left: key.limit().burst, at: now });
            bucket.left = filled(bucket, key.limit(), now) - 1.0;
            bucket.at = now;
        }
        Ok(Places(keys))
    }

    /// The password was right.
    pub fn refund(&mut self, places: Places, name: &str, address: Option<IpAddr>) {
        for key in places.0 {
            if let Some(bucket) = self.buckets.get_mut(&key) {
                bucket.left += 1.0;
            }
        }
        if let Some(address) = address
            && self.trusted.len() < TRUSTED_MAX
        {
            self.trusted.insert((name.into(), network(address)));
        }
    }

    fn wait(&self, key: &Key, now: f64) -> f64 {
        let limit = key.limit();
        let left = self.buckets.get(key).map_or(limit.burst, |b| filled(b, limit, now));
        if left >= 1.0 { 0.0 } else { (1.0 - left) * limit.seconds }
    }

    /// Those that are full again say nothing; if all are in use, the ones that were tried longest ago go.
    fn forget(&mut self, now: f64) {
        self.buckets.retain(|key, bucket| filled(bucket, key.limit(), now) < key.limit().burst);
        if self.buckets.len() >= BUCKETS_MAX {
            let mut times: Vec<f64> = self.buckets.values().map(|b| b.at).collect();
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            self.buckets.retain(|_, b| b.at > median);
        }
    }
}

fn filled(bucket: &Bucket, limit: &Limit, now: f64) -> f64 {
    (bucket.left + (now - bucket.at).max(0.0) / limit.seconds).min(limit.burst)
}

/// One customer of an IPv6 network has 2^64 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn a_name_is_tried_ten_times_and_then_slowly() {
        let mut throttle = Throttle::default();
        for n in 0..10 {
            throttle.take("root", address(n), 0.0).unwrap();
        }
        assert_eq!(throttle.take("root", address(99), 0.0).unwrap_err(), 6);
        assert_eq!(throttle.take("root", address(99), 2.0).unwrap_err(), 4);
        throttle.take("root", address(99), 6.0).unwrap();
        throttle.take("other", address(1), 6.0).unwrap();
    }

    #[test]
    fn an_address_tries_twenty_names() {
        let mut throttle = Throttle::default();
        for n in 0..20 {
            throttle.take(&format!("u{n}"), address(1), 0.0).unwrap();
        }
        assert_eq!(throttle.take("u20", address(1), 0.0).unwrap_err(), 3);
        throttle.take("u20", address(2), 0.0).unwrap();
        let (a, b) = ("2001:db8::1".parse().ok(), "2001:db8::2".parse().ok());
        for n in 0..20 {
            throttle.take(&format!("v{n}"), if n % 2 == 0 { a } else { b }, 0.0).unwrap();
        }
        assert!(throttle.take("v20", a, 0.0).is_err(), "a network is one address");
    }

    #[test]
    fn success_costs_nothing_and_strangers_do_not_lock_anybody_out() {
        let mut throttle = Throttle::default();
        for _ in 0..100 {
            let places = throttle.take("root", address(1), 0.0).unwrap();
            throttle.refund(places, "root", address(1));
        }
        while throttle.take("root", address(2), 0.0).is_ok() {}
        assert!(throttle.take("root", address(3), 0.0).is_err());
        throttle.take("root", address(1), 0.0).unwrap();
    }

    #[test]
    fn memory_is_bounded() {
        let mut throttle = Throttle::default();
        for n in 0..3 * BUCKETS_MAX {
            let address = IpAddr::from((n as u32).to_be_bytes());
            let _ = throttle.take(&format!("u{n}"), Some(address), n as f64 / 1e4);
        }
        assert!(throttle.buckets.len() <= BUCKETS_MAX + 2);
    }
}
