//! The machine's network interfaces and their addresses, as the kernel tells them over a netlink socket.
//!
//! ```text
//!   request   length  type  flags  number  sender │ family 0 ...      RTM_GETLINK, RTM_GETADDR: all of them
//!   answers   length  type  flags  number  sender │ fixed part │ attribute │ attribute │ ...     until one of type DONE
//!                                                                └ length, type, value, each to a multiple of 4
//! ```
//!
//! All numbers are in the machine's byte order. The kernel is asked when the list is wanted, and not again within a
//! second: a flood of logins does not become one of such questions.
//!
//! Not here: changing anything of the network.

use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use world::Instant;

/// How long an answer is good for.
const FRESH: Duration = Duration::from_secs(1);
/// The kernel sends pages of at most this length.
const PAGE: usize = 32 << 10;
/// A machine with more than this is not one.
const PAGES_MAX: usize = 4096;

const DONE: u16 = 3;
const FAILED: u16 = 2;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
/// A request, for all there are.
const DUMP: u16 = 0x301;
const HEADER: usize = 16;

/// The fixed parts of a link and of an address.
const LINK_FIXED: usize = 16;
const ADDRESS_FIXED: usize = 8;

/// Attributes of a link, and of an address.
const LINK_NAME: u16 = 3;
const ADDRESS: u16 = 1;
/// One's own, where `ADDRESS` is that of the other end.
const LOCAL: u16 = 2;

/// Interfaces by their names, also those without an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interfaces(BTreeMap<String, BTreeSet<IpAddr>>);

impl Interfaces {
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// None of an interface that is not there.
    pub fn addresses(&self, name: &str) -> impl Iterator<Item = IpAddr> {
        self.0.get(name).into_iter().flatten().copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What the kernel says now.
    pub fn read() -> io::Result<Interfaces> {
        let mut links = BTreeMap::new();
        for (kind, message) in ask(GET_LINK)? {
            if kind == NEW_LINK {
                links.extend(link(&message));
            }
        }
        let mut all: BTreeMap<String, BTreeSet<IpAddr>> =
            links.values().map(|name| (name.clone(), BTreeSet::new())).collect();
        for (kind, message) in ask(GET_ADDRESS)? {
            let Some((index, address)) = (kind == NEW_ADDRESS).then(|| own_address(&message)).flatten()
            else {
                continue;
            };
            if let Some(addresses) = links.get(&index).and_then(|name| all.get_mut(name)) {
                addresses.insert(address);
            }
        }
        Ok(Interfaces(all))
    }

    #[cfg(test)]
    pub fn of(all: &[(&str, &[&str])]) -> Interfaces {
        let one = |(name, addresses): &(&str, &[&str])| {
            (name.to_string(), addresses.iter().map(|a| a.parse().unwrap()).collect())
        };
        Interfaces(all.iter().map(one).collect())
    }
}

/// What the kernel said last, for a second.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Option<(Instant, Arc<Interfaces>)>>);

impl Known {
    /// When the kernel does not say, there are none: what names one is nowhere then.
    pub fn now(&self) -> Arc<Interfaces> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = world::now();
        if let Some((at, known)) = &*last
            && now.since(*at) < FRESH
        {
            return known.clone();
        }
        let read = Interfaces::read().unwrap_or_else(|e| {
            tracing::warn!("cannot list the network interfaces: {e}");
            Interfaces::default()
        });
        last.insert((now, Arc::new(read))).1.clone()
    }
}

/// Messages by their types, without their headers.
fn ask(what: u16) -> io::Result<Vec<(u16, Vec<u8>)>> {
    // Protocol 0 of this family is that of routes, links and addresses.
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    net::send(&socket, &request(what), SendFlags::empty())?;
    let mut messages = Vec::new();
    let mut page = vec![0; PAGE];
    for _ in 0..PAGES_MAX {
        let (_, length) = net::recv(&socket, &mut page[..], RecvFlags::empty())?;
        for (kind, message) in split(&page[..length.min(PAGE)]) {
            match kind {
                DONE => return Ok(messages),
                FAILED => return Err(io::Error::other("the kernel does not tell")),
                _ => messages.push((kind, message.to_vec())),
            }
        }
    }
    Err(io::Error::other("the kernel does not come to an end"))
}

/// With the fixed part of the answers, `ifinfomsg` or `ifaddrmsg`: what is shorter or longer is noted in the kernel's log.
fn request(what: u16) -> Vec<u8> {
    let length = HEADER + if what == GET_LINK { LINK_FIXED } else { ADDRESS_FIXED };
    let mut request = vec![0; length];
    request[..4].copy_from_slice(&(length as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&what.to_ne_bytes());
    request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    request
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The messages of a page, up to one that makes no sense.
fn split(mut page: &[u8]) -> Vec<(u16, &[u8])> {
    let mut messages = Vec::new();
    while let (Some(length), Some(kind)) = (u32_at(page, 0), u16_at(page, 4)) {
        let length = length as usize;
        let Some(message) = page.get(HEADER..length) else { break };
        messages.push((kind, message));
        page = page.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    messages
}

/// The value of one attribute of those behind the fixed part.
fn attribute(message: &[u8], fixed: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = message.get(fixed..)?;
    loop {
        let (length, kind) = (usize::from(u16_at(rest, 0)?), u16_at(rest, 2)?);
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// The number of an interface, and its name.
fn link(message: &[u8]) -> Option<(u32, String)> {
    let name = attribute(message, LINK_FIXED, LINK_NAME)?;
    let name = String::from_utf8(name.split(|byte| *byte == 0).next()?.to_vec()).ok()?;
    Some((u32_at(message, 4)?, name))
}

/// The number of the interface, and the address that it has.
fn own_address(message: &[u8]) -> Option<(u32, IpAddr)> {
    let address =
        attribute(message, ADDRESS_FIXED, LOCAL).or_else(|| attribute(message, ADDRESS_FIXED, ADDRESS))?;
    let address = match address.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)),
        _ => return None,
    };
    Some((u32_at(message, 4)?, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_loopback_interface() {
        let all = Interfaces::read().unwrap();
        assert!(all.has("lo") && !all.has("no-such-0"));
        assert!(all.addresses("lo").any(|address| address == Ipv4Addr::LOCALHOST), "{all:?}");
        assert_eq!(all.addresses("no-such-0").count(), 0);
        let others = all.names().filter(|name| *name != "lo").flat_map(|name| all.addresses(name));
        assert!(others.into_iter().all(|address| !address.is_loopback()), "{all:?}");
    }

    /// That of links was 8 bytes too short: three lines in the kernel's log at each start.
    #[test]
    fn a_request_has_the_fixed_part_of_its_answers() {
        for (what, length) in [(GET_LINK, 32_u32), (GET_ADDRESS, 24)] {
            let request = request(what);
            assert_eq!((request.len() as u32, &request[..4]), (length, &length.to_ne_bytes()[..]));
        }
    }

    fn with_attributes(fixed: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = fixed.to_vec();
        for (kind, value) in attributes {
            message.extend(((value.len() + 4) as u16).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(*value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        message
    }

    #[test]
    fn the_own_end_of_a_link_between_two_counts() {
        let mut fixed = [0; 8];
        fixed[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        let message =
            with_attributes(&fixed, &[(ADDRESS, &[10, 0, 0, 2]), (3, b"p\0"), (LOCAL, &[10, 0, 0, 1])]);
        assert_eq!(own_address(&message), Some((7, "10.0.0.1".parse().unwrap())));
        let message = with_attributes(&fixed, &[(ADDRESS, &Ipv6Addr::LOCALHOST.octets())]);
        assert_eq!(own_address(&message), Some((7, "::1".parse().unwrap())));
    }

    #[test]
    fn whatever_lies_in_a_page_is_read_without_harm() {
        let mut fixed = [0; 16];
        fixed[4..8].copy_from_slice(&3_u32.to_ne_bytes());
        let message = with_attributes(&fixed, &[(1, &[1; 6]), (LINK_NAME, b"eth0\0")]);
        let mut page = ((HEADER + message.len()) as u32).to_ne_bytes().to_vec();
        page.extend(NEW_LINK.to_ne_bytes());
        page.resize(HEADER, 0);
        page.extend(message);
        let whole = split(&page);
        assert_eq!(
            whole.iter().map(|(kind, m)| (*kind, link(m))).collect::<Vec<_>>(),
            [(16, Some((3, "eth0".into())))]
        );
        for at in 0..page.len() {
            for byte in [0, 1, 4, 0xff] {
                let mut bad = page.clone();
                bad[at] = byte;
                for (_, message) in split(&bad) {
                    let _ = (link(message), own_address(message));
                }
            }
            for (_, message) in split(&page[..at]) {
                let _ = (link(message), own_address(message));
            }
        }
    }
}
