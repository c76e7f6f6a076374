//! Which clients may come in: places, by their address and by how far they have come. Pure.
//!
//! ```text
//!   enter ──▶ stranger ──settle──▶ known          a stranger has not yet chosen an export, or logged in
//!               │  no place left: the newest silent stranger goes, or else the oldest
//!               └──▶ put out
//! ```
//!
//! An address has a share of all places and a smaller share of those of strangers, so one host cannot keep the others out.
//! When the strangers' places are taken, the newest of those that have said nothing yet makes room: of the same address
//! when that address has its share, else of the address that has most strangers. A client that says something at once is
//! through before it is the turn of any to go; connections that are opened and left alone never keep it out. When all have
//! said something, the oldest goes: a handshake that is begun and left alone keeps it out no longer.
//!
//! Clients at a Unix socket have no address, and only the whole counts for them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use world::Address;

/// How many may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    pub all: usize,
    pub of_address: usize,
    pub strangers: usize,
    pub strangers_of_address: usize,
}

/// What becomes of a client that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    In,
    /// It is in, and this stranger has to go.
    InPlaceOf(u64),
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    from: Option<IpAddr>,
    is_known: bool,
}

/// See the module. Clients are told apart by numbers that grow.
#[derive(Debug, Default)]
pub struct Crowd {
    seats: BTreeMap<u64, Seat>,
    /// Of each address: how many in all, and how many strangers.
    of: BTreeMap<IpAddr, (usize, usize)>,
    strangers: usize,
}

/// What counts as one host: of IPv6 a whole network, in which a host may choose its address.
pub fn host(address: &Address) -> Option<IpAddr> {
    let Address::Tcp(address) = address else { return None };
    Some(match address.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        ip => ip,
    })
}

impl Crowd {
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Client `id` comes in from `from`; `is_silent` tells whether a stranger has said nothing yet.
    pub fn enter(
        &mut self,
        id: u64,
        from: &Address,
        places: &Places,
        is_silent: impl Fn(u64) -> bool,
    ) -> Entry {
        let from = host(from);
        let (all, strangers) = from.and_then(|from| self.of.get(&from)).copied().unwrap_or_default();
        let own_are_full = from.is_some() && strangers >= places.strangers_of_address;
        let victim = if from.is_some() && all >= places.of_address || own_are_full {
            Some(self.to_go(from, &is_silent))
        } else if self.strangers >= places.strangers || self.seats.len() >= places.all {
            let most = self.of.iter().max_by_key(|(_, (_, strangers))| *strangers).map(|(ip, _)| *ip);
            Some(self.to_go(most, &is_silent))
        } else {
            None
        };
        let entry = match victim {
            None => Entry::In,
            Some(None) => return Entry::Full,
            Some(Some(victim)) => {
                self.leave(victim);
                Entry::InPlaceOf(victim)
            }
        };
        self.seats.insert(id, Seat { from, is_known: false });
        self.strangers += 1;
        if let Some(from) = from {
            let of = self.of.entry(from).or_default();
            *of = (of.0 + 1, of.1 + 1);
        }
        entry
    }

    fn to_go(&self, from: Option<IpAddr>, is_silent: impl Fn(u64) -> bool) -> Option<u64> {
        let strangers = || self.seats.iter().filter(|(_, seat)| !seat.is_known && seat.from == from);
        let silent = strangers().rev().find(|(id, _)| is_silent(**id));
        silent.or_else(|| strangers().next()).map(|(id, _)| *id)
    }

    /// The client is no stranger any more. `false`: it was put out meanwhile.
    pub fn settle(&mut self, id: u64) -> bool {
        let Some(seat) = self.seats.get_mut(&id) else { return false };
        if !std::mem::replace(&mut seat.is_known, true) {
            self.strangers -= 1;
            if let Some(of) = seat.from.and_then(|from| self.of.get_mut(&from)) {
                of.1 -= 1;
            }
        }
        true
    }

    /// The client has gone; one that was put out is gone already.
    pub fn leave(&mut self, id: u64) {
        let Some(seat) = self.seats.remove(&id) else { return };
        let stranger = usize::from(!seat.is_known);
        self.strangers -= stranger;
        if let Some(from) = seat.from
            && let Some(of) = self.of.get_mut(&from)
        {
            *of = (of.0 - 1, of.1 - stranger);
            if of.0 == 0 {
                self.of.remove(&from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places { all: 10, of_address: 6, strangers: 6, strangers_of_address: 3 };

    fn at(host: u8) -> Address {
        Address::Tcp(([192, 0, 2, host], 1000).into())
    }

    fn silent(_: u64) -> bool {
        true
    }

    #[test]
    fn connections_that_say_nothing_make_room_for_a_client_that_does() {
        let mut crowd = Crowd::default();
        for id in 0..3 {
            assert_eq!(crowd.enter(id, &at(1), &PLACES, silent), Entry::In);
        }
        // Of the same host, the newest that said nothing.
        assert_eq!(crowd.enter(3, &at(1), &PLACES, |id| id != 2), Entry::InPlaceOf(1));
        assert!(crowd.settle(3) && !crowd.settle(1));
        assert_eq!(crowd.enter(4, &at(1), &PLACES, silent), Entry::In);
        // All have begun to speak: the oldest has had the most time.
        assert_eq!(crowd.enter(5, &at(1), &PLACES, |_| false), Entry::InPlaceOf(0));
        assert_eq!(crowd.len(), 4);
    }

    #[test]
    fn an_address_has_its_share_and_the_others_the_rest() {
        let mut crowd = Crowd::default();
        for id in 0..6 {
            assert_eq!(crowd.enter(id, &at(1), &PLACES, silent), Entry::In);
            assert!(crowd.settle(id));
        }
        assert_eq!(crowd.enter(6, &at(1), &PLACES, silent), Entry::Full, "all of its places are used");
        // Strangers of many addresses: the one that has most of them makes room.
        for id in 7..10 {
            assert_eq!(crowd.enter(id, &at(2), &PLACES, silent), Entry::In);
        }
        assert_eq!(crowd.enter(10, &at(3), &PLACES, silent), Entry::In);
        assert_eq!(crowd.enter(11, &at(4), &PLACES, silent), Entry::InPlaceOf(9));
        // A client on this machine by a Unix socket has no address.
        assert_eq!(crowd.enter(12, &Address::Unix("/s".into()), &PLACES, silent), Entry::InPlaceOf(8));
        (0..13).for_each(|id| crowd.leave(id));
        assert!(crowd.is_empty() && crowd.of.is_empty() && crowd.strangers == 0);
    }

    #[test]
    fn strangers_have_a_part_of_all_places_however_many_addresses_they_have() {
        let mut crowd = Crowd::default();
        for id in 0..6 {
            assert_eq!(crowd.enter(id, &at(1 + id as u8 / 3), &PLACES, silent), Entry::In);
        }
        // Four places are left, and none of them is for one more that has said nothing yet.
        assert_eq!(crowd.enter(6, &at(3), &PLACES, |_| false), Entry::InPlaceOf(3));
        assert_eq!(crowd.enter(7, &at(3), &PLACES, silent), Entry::InPlaceOf(2));
        assert!(crowd.settle(7));
        assert_eq!(crowd.enter(8, &at(3), &PLACES, silent), Entry::In);
    }

    #[test]
    fn a_network_of_ipv6_is_one_host() {
        let of = |text: &str| host(&Address::Tcp(text.parse().unwrap()));
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:2]:2"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(of("[::ffff:192.0.2.1]:1"), of("192.0.2.1:9"));
    }
}
