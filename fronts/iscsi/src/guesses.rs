//! How often secrets may be guessed at. Pure.
//!
//! Each proof takes a place before it is looked at, in the bucket of its address and in that of the initiator's name, and
//! gets both back when it was right. A proof that finds no place free waits for one, the right ones too: so guesses at
//! once, or on connections that are given up, get no further than one after another.
//!
//! A pair of name and address that proved itself before has a bucket of its own, so that strangers who guess at a name, or
//! from behind the same address, cannot keep its owner out.

use flow::host;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use world::{Address, Instant};

/// So many wrong proofs are free.
const BURST: u32 = 5;
/// Then one place is free again after each of these.
const STEP: Duration = Duration::from_secs(1);
/// A proof that would have to wait longer is not looked at.
const LONGEST: Duration = Duration::from_secs(10);
/// So that inventing names fills no memory.
const BUCKETS_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Name(String),
    Address(IpAddr),
    Trusted(String, IpAddr),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When all places are free again.
    full_at: Instant,
    /// Wrong proofs since the last right one.
    wrong: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    buckets: BTreeMap<Key, Bucket>,
    trusted: BTreeSet<(String, IpAddr)>,
}

/// The places that a proof has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    keys: Vec<Key>,
    pub wait: Duration,
}

impl Guesses {
    fn keys(&self, name: &str, from: &Address) -> Vec<Key> {
        let name = name.to_ascii_lowercase();
        match host(from) {
            Some(ip) if self.trusted.contains(&(name.clone(), ip)) => vec![Key::Trusted(name, ip)],
            Some(ip) => vec![Key::Name(name), Key::Address(ip)],
            None => vec![Key::Name(name)],
        }
    }

    /// Places for one proof, and how long it waits before it is looked at; none when that would be too long.
    pub fn take(&mut self, name: &str, from: &Address, now: Instant) -> Option<Taken> {
        let keys = self.keys(name, from);
        let full_at = |key: &Key| self.buckets.get(key).map_or(now, |bucket| bucket.full_at.max(now));
        let debt = keys.iter().map(|key| full_at(key).since(now)).max().unwrap_or_default();
        let wait = (debt + STEP).saturating_sub(STEP * BURST);
        if wait > LONGEST {
            return None;
        }
        if self.buckets.len() >= BUCKETS_MAX {
            self.buckets.retain(|_, bucket| bucket.full_at > now);
        }
        for key in &keys {
            let bucket = self.buckets.entry(key.clone()).or_insert(Bucket { full_at: now, wrong: 0 });
            bucket.full_at = bucket.full_at.max(now).after(STEP);
        }
        Some(Taken { keys, wait })
    }

    /// The proof was right.
    pub fn right(&mut self, name: &str, from: &Address, taken: Taken) {
        for key in taken.keys {
            self.buckets.remove(&key);
        }
        if let Some(ip) = host(from)
            && self.trusted.len() < BUCKETS_MAX
        {
            self.trusted.insert((name.to_ascii_lowercase(), ip));
        }
    }

    /// The proof was wrong: how many of them there have been, one after another.
    pub fn wrong(&mut self, taken: &Taken) -> u64 {
        let mut most = 0;
        for key in &taken.keys {
            if let Some(bucket) = self.buckets.get_mut(key) {
                bucket.wrong += 1;
                most = most.max(bucket.wrong);
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8) -> Address {
        Address::Tcp(([192, 0, 2, host], 1000).into())
    }

    const NAME: &str = "iqn.2026-11.org.example:i";

    #[test]
    fn guesses_go_one_after_another_and_an_owner_is_not_kept_out() {
        let mut guesses = Guesses::default();
        let now = Instant::default().after(Duration::from_secs(100));
        let taken = guesses.take(NAME, &at(9), now).unwrap();
        guesses.right(NAME, &at(9), taken);
        let waits: Vec<Option<u64>> =
            (0..17).map(|_| guesses.take(NAME, &at(1), now).map(|taken| taken.wait.as_secs())).collect();
        let expected: Vec<Option<u64>> =
            [0; 5].into_iter().chain(1..=10).map(Some).chain([None, None]).collect();
        assert_eq!(waits, expected);
        assert_eq!(guesses.take(NAME, &at(9), now).unwrap().wait, Duration::ZERO, "it has been here before");
        assert!(guesses.take(NAME, &at(2), now).is_none(), "not by another address");
        assert!(guesses.take("iqn.x:other", &at(1), now).is_none(), "not by another name");
        let later = now.after(Duration::from_secs(10));
        assert_eq!(guesses.take(NAME, &at(1), later).unwrap().wait, Duration::from_secs(1));
    }

    #[test]
    fn wrong_proofs_are_counted_until_a_right_one() {
        let mut guesses = Guesses::default();
        let now = Instant::default();
        for n in 1..4 {
            let taken = guesses.take(NAME, &at(1), now).unwrap();
            assert_eq!(guesses.wrong(&taken), n);
        }
        let taken = guesses.take(NAME, &at(1), now).unwrap();
        guesses.right(NAME, &at(1), taken);
        let taken = guesses.take(NAME, &at(1), now).unwrap();
        assert_eq!(guesses.wrong(&taken), 1);
    }
}
