//! Where a target is: at the portals that its `interfaces` name. Pure: the caller knows the interfaces.
//!
//! ```text
//!   interfaces          eth0        every address that the interface has at the moment; none when it is gone
//!                       192.0.2.1   that address, at whichever port
//!                       192.0.2.1:3260
//!   nothing             every portal there is
//! ```

use crate::san::interfaces::Interfaces;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    Everywhere,
    At { addresses: BTreeSet<IpAddr>, portals: BTreeSet<SocketAddr> },
}

/// Where whatever names these interfaces is now. It is asked what there is only when a name is among them.
pub(crate) fn where_at(interfaces: &[String], now: impl Fn() -> Arc<Interfaces>) -> Places {
    if interfaces.is_empty() {
        return Places::Everywhere;
    }
    let (mut addresses, mut portals) = (BTreeSet::new(), BTreeSet::new());
    for text in interfaces {
        match (text.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
            (Ok(address), _) => drop(addresses.insert(address)),
            (_, Ok(portal)) => drop(portals.insert(portal)),
            _ => addresses.extend(now().addresses(text)),
        }
    }
    Places::At { addresses, portals }
}

impl Places {
    /// Whether it is at this portal, which is not one at every address.
    pub fn has(&self, portal: SocketAddr) -> bool {
        match self {
            Places::Everywhere => true,
            Places::At { addresses, portals } => {
                addresses.contains(&portal.ip()) || portals.contains(&portal)
            }
        }
    }

    /// The portals of these at which it is, as clients can name them. None where it is everywhere, and one portal is at
    /// every address: then it is where it was asked for.
    pub fn among(&self, open: &[SocketAddr]) -> BTreeSet<SocketAddr> {
        let (whole, single): (Vec<&SocketAddr>, Vec<&SocketAddr>) =
            open.iter().partition(|portal| portal.ip().is_unspecified());
        let Places::At { addresses, portals } = self else {
            return if whole.is_empty() { single.into_iter().copied().collect() } else { BTreeSet::new() };
        };
        let mut places: BTreeSet<SocketAddr> = single.into_iter().copied().filter(|p| self.has(*p)).collect();
        for portal in whole {
            // One at every IPv6 address is at those of IPv4 as well.
            let can = |address: &IpAddr| portal.is_ipv6() || address.is_ipv4();
            let named = addresses.iter().filter(|a| can(a) && !needs_a_scope(a));
            places.extend(named.map(|address| SocketAddr::new(*address, portal.port())));
            places.extend(portals.iter().filter(|p| can(&p.ip()) && p.port() == portal.port()));
        }
        places
    }
}

/// It is not reached by the address alone.
fn needs_a_scope(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Arc<Interfaces> {
        Arc::new(Interfaces::of(&[
            ("lo", &["127.0.0.1", "::1"]),
            ("eth0", &["192.0.2.1", "192.0.2.2", "2001:db8::1", "fe80::1"]),
            ("eth1", &[]),
        ]))
    }

    fn at(interfaces: &[&str]) -> Places {
        let interfaces: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
        where_at(&interfaces, now)
    }

    fn portals(all: &[&str]) -> Vec<SocketAddr> {
        all.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_target_is_at_the_addresses_of_its_interfaces_and_nowhere_else() {
        for (interfaces, there, not_there) in [
            (&[][..], &["127.0.0.1:3260", "192.0.2.1:1"][..], &[][..]),
            (&["lo"], &["127.0.0.1:3260", "[::1]:3260"], &["192.0.2.1:3260", "127.0.0.2:3260"]),
            (&["eth0"], &["192.0.2.2:3260", "[fe80::1]:3260"], &["127.0.0.1:3260", "192.0.2.3:3260"]),
            (&["eth1"], &[], &["127.0.0.1:3260", "192.0.2.1:3260"]),
            (&["gone0"], &[], &["127.0.0.1:3260", "192.0.2.1:3260"]),
            (&["gone0", "192.0.2.1"], &["192.0.2.1:3260", "192.0.2.1:1"], &["192.0.2.2:3260"]),
            (&["192.0.2.1:3260"], &["192.0.2.1:3260"], &["192.0.2.1:1", "192.0.2.2:3260"]),
        ] {
            for portal in portals(there) {
                assert!(at(interfaces).has(portal), "{interfaces:?} {portal}");
            }
            for portal in portals(not_there) {
                assert!(!at(interfaces).has(portal), "{interfaces:?} {portal}");
            }
        }
    }

    #[test]
    fn clients_are_told_where_it_is_also_behind_a_portal_at_every_address() {
        for (interfaces, open, told) in [
            (&[][..], &["127.0.0.1:3260", "192.0.2.1:3260"][..], &["127.0.0.1:3260", "192.0.2.1:3260"][..]),
            (&[], &["0.0.0.0:3260"], &[]),
            (&["lo"], &["127.0.0.1:3260", "192.0.2.1:3260"], &["127.0.0.1:3260"]),
            (&["lo"], &["0.0.0.0:3260"], &["127.0.0.1:3260"]),
            (&["eth0"], &["[::]:860"], &["192.0.2.1:860", "192.0.2.2:860", "[2001:db8::1]:860"]),
            (&["192.0.2.2:860", "192.0.2.1:1"], &["0.0.0.0:860"], &["192.0.2.2:860"]),
            (&["gone0"], &["0.0.0.0:3260", "127.0.0.1:3261"], &[]),
        ] {
            let expected: BTreeSet<SocketAddr> = portals(told).into_iter().collect();
            assert_eq!(at(interfaces).among(&portals(open)), expected, "{interfaces:?} {open:?}");
        }
    }
}
