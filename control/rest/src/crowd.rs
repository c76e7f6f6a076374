//! How many connections there may be at once, and of whom: further ones are closed at once.
//!
//! ```text
//!   of the network ── of one host at most 128, of all 1024
//!   of the owner's socket ── 128 of its own: no stranger keeps the owner out
//! ```

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

const ALL_MAX: usize = 1024;
const HOST_MAX: usize = 128;
const OWNER_MAX: usize = 128;

/// The connections that there are. One of no address is the owner's.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    of_network: usize,
    of_owner: usize,
    by_host: HashMap<IpAddr, usize>,
}

impl Crowd {
    /// Takes one more in, if there is room.
    pub fn takes(&mut self, from: Option<IpAddr>) -> bool {
        let Some(host) = from.map(host_of) else {
            let is_in = self.of_owner < OWNER_MAX;
            self.of_owner += usize::from(is_in);
            return is_in;
        };
        let of_host = self.by_host.get(&host).copied().unwrap_or(0);
        let is_in = self.of_network < ALL_MAX && of_host < HOST_MAX;
        if is_in {
            self.of_network += 1;
            self.by_host.insert(host, of_host + 1);
        }
        is_in
    }

    /// One that was taken in has gone.
    pub fn leaves(&mut self, from: Option<IpAddr>) {
        let Some(host) = from.map(host_of) else {
            self.of_owner -= 1;
            return;
        };
        self.of_network -= 1;
        if let Some(count) = self.by_host.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.by_host.remove(&host);
            }
        }
    }

    pub fn is_there(&self) -> bool {
        self.of_network + self.of_owner > 0
    }
}

/// What counts as one host: of IPv6 its network of 64 bits, in which it has as many addresses as it likes.
fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: String) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn no_stranger_keeps_the_owner_out_and_no_host_the_others() {
        let mut crowd = Crowd::default();
        let of_one = (0..500).filter(|_| crowd.takes(address("10.0.0.1".into()))).count();
        assert_eq!(of_one, HOST_MAX);
        let of_network = (0..500).filter(|n| crowd.takes(address(format!("fd00::{n:x}")))).count();
        assert_eq!(of_network, HOST_MAX, "one host with many addresses");
        let others = (0..5000).filter(|n| crowd.takes(address(format!("10.1.{}.9", n % 250)))).count();
        assert_eq!(others, ALL_MAX - 2 * HOST_MAX);
        assert!(!crowd.takes(address("10.9.9.9".into())));
        assert_eq!((0..500).filter(|_| crowd.takes(None)).count(), OWNER_MAX);
        // What has gone makes room.
        crowd.leaves(address("::ffff:10.0.0.1".into()));
        assert!(crowd.takes(address("10.9.9.9".into())));
        crowd.leaves(None);
        assert!(crowd.takes(None) && !crowd.takes(None));
    }

    #[test]
    fn when_all_have_gone_none_is_there() {
        let mut crowd = Crowd::default();
        let from = || (0..300).map(|n| (n % 3 > 0).then(|| address(format!("10.0.0.{}", n % 200)).unwrap()));
        let taken: Vec<_> = from().filter(|from| crowd.takes(*from)).collect();
        assert!(crowd.is_there());
        taken.into_iter().for_each(|from| crowd.leaves(from));
        assert!(!crowd.is_there() && crowd.by_host.is_empty());
    }
}
