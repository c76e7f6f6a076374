//! Names of targets, initiators and groups: whether they are well formed. Pure.

use units::{Error, Result};

/// The longest name that the protocol has room for.
const IQN_MAX: usize = 223;
/// The authority under which this program names targets: `local` belongs to nobody, so nobody else's names clash.
const AUTHORITY: &str = "iqn.2026-11.local.cenote";

/// The name in lower case, as it is compared, if it is an iSCSI name: `iqn.`, `eui.` or `naa.`.
pub(crate) fn iscsi_name(text: &str) -> Result<String> {
    let name = text.to_ascii_lowercase();
    let wrong = |why: &str| Err(Error::invalid(format!("'{text}' is no iSCSI name: {why}")));
    if name.len() > IQN_MAX {
        return wrong("it is longer than 223 characters");
    }
    let hex = |rest: &str, lengths: &[usize]| {
        lengths.contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_hexdigit())
    };
    match name.split_once('.') {
        Some(("iqn", rest)) => match iqn(rest) {
            Ok(()) => Ok(name),
            Err(why) => wrong(why),
        },
        Some(("eui", rest)) if hex(rest, &[16]) => Ok(name),
        Some(("naa", rest)) if hex(rest, &[16, 32]) => Ok(name),
        Some(("eui" | "naa", _)) => wrong("hexadecimal digits follow: 16, or with naa also 32"),
        _ => wrong("it begins with iqn., eui. or naa."),
    }
}

/// What follows `iqn.`: year and month, a reversed domain, and whatever its owner likes.
fn iqn(rest: &str) -> Result<(), &'static str> {
    let form = "it is like iqn.2026-11.com.example:name";
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | ':');
    if !rest.chars().all(allowed) {
        return Err("it holds letters, digits, '-', '.' and ':'");
    }
    let (date, rest) = rest.split_once('.').ok_or(form)?;
    let (year, month) = date.split_once('-').ok_or(form)?;
    let digits = |text: &str, len| text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(year, 4) || !digits(month, 2) || !(1..=12).contains(&month.parse().unwrap_or(0)) {
        return Err("year and month follow iqn., such as 2026-11");
    }
    let domain = rest.split(':').next().unwrap_or_default();
    if domain.is_empty() || domain.split('.').any(str::is_empty) {
        return Err("a reversed domain name follows the date");
    }
    Ok(())
}

/// A new target's name, when none is given; `random` makes it one of its kind.
pub(crate) fn new_iqn(random: [u64; 2]) -> String {
    let [a, b] = random;
    let (a1, a2, a3) = (a >> 32, (a >> 16) & 0xffff, a & 0xffff);
    format!("{AUTHORITY}:02:{a1:08x}-{a2:04x}-{a3:04x}-{:04x}-{:012x}", b >> 48, b & 0xffff_ffff_ffff)
}

/// Group names go into properties of datasets, in lists, and into paths of the API.
pub(crate) fn check_group(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.: ".contains(c);
    if name.is_empty() || name.len() > 255 || name.trim() != name || !name.chars().all(allowed) {
        return Err(Error::invalid(format!(
            "'{name}' is no name for a group: letters, digits, blanks, '-', '_', '.' and ':'"
        )));
    }
    if [api::san::DEFAULT_GROUP, api::san::NOBODY].contains(&name) {
        return Err(Error::invalid(format!("the group '{name}' is always there, and always as it is")));
    }
    Ok(())
}

pub(crate) fn check_alias(text: &str) -> Result<()> {
    match text.len() <= 255 && !text.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Error::invalid("an alias has at most 255 characters, all of them visible")),
    }
}

pub(crate) fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok() || text.parse::<std::net::SocketAddr>().is_ok()
}

/// The name of a network interface, an address, or an address with a port.
pub(crate) fn check_interface(text: &str) -> Result<()> {
    let is_name = (1..=15).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c));
    match is_address(text) || is_name {
        true => Ok(()),
        false => Err(Error::invalid(format!("'{text}' is neither a network interface nor an address"))),
    }
}

/// Initiators of other makers refuse secrets that are shorter.
pub(crate) fn check_secret(text: &str) -> Result<()> {
    match (12..=255).contains(&text.len()) && !text.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Error::invalid("a CHAP secret has 12 to 255 characters")),
    }
}

/// What INQUIRY has room for.
pub(crate) fn check_identity(what: &str, text: &str, room: usize) -> Result<()> {
    match (1..=room).contains(&text.len()) && text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        true => Ok(()),
        false => Err(Error::invalid(format!("a {what} has 1 to {room} ASCII characters"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_protocol() {
        for good in [
            "iqn.1986-03.com.sun:02:daa8c1e0-5d2f-4a3b-8c1d-0123456789ab",
            "iqn.1993-08.org.debian:01:107dc7e4254a",
            "iqn.2001-04.com.example",
            "eui.02004567A425678D",
            "naa.52004567BA64678D",
            "naa.62004567BA64678D0123456789ABCDEF",
        ] {
            assert_eq!(iscsi_name(good).unwrap(), good.to_ascii_lowercase());
        }
        for (bad, why) in [
            ("", "begins with iqn."),
            ("disk", "begins with iqn."),
            ("iqn.2001-13.com.example", "year and month"),
            ("iqn.201-01.com.example", "year and month"),
            ("iqn.2001-04.", "reversed domain"),
            ("iqn.2001-04.com..example", "reversed domain"),
            ("iqn.2001-04.com.example:a b", "letters, digits"),
            ("iqn.2001-04.com.example:a/b", "letters, digits"),
            ("eui.0200", "hexadecimal"),
            ("naa.62004567BA64678D0123456789ABCDEG", "hexadecimal"),
        ] {
            let said = iscsi_name(bad).unwrap_err().to_string();
            assert!(said.contains(why), "{bad}: {said}");
        }
        assert!(iscsi_name(&format!("iqn.2001-04.com.example:{}", "x".repeat(200))).is_err());
        assert!(iscsi_name(&new_iqn([u64::MAX, 0])).is_ok());
        assert_eq!(new_iqn([1, 2]), "iqn.2026-11.local.cenote:02:00000000-0000-0001-0000-000000000002");
    }

    #[test]
    fn groups_and_interfaces_are_named_as_properties_can_hold() {
        assert!(check_group("mysql-tgt").is_ok() && check_group("Windows hosts").is_ok());
        for bad in ["", "a,b", " a", "a/b", "default", api::san::NOBODY, "a\nb"] {
            assert!(check_group(bad).is_err(), "{bad}");
        }
        for good in ["eth0", "bond0.12", "192.0.2.1", "192.0.2.1:3260", "[2001:db8::1]:3260", "2001:db8::1"] {
            assert!(check_interface(good).is_ok(), "{good}");
        }
        assert!(check_interface("").is_err() && check_interface("a b").is_err());
    }
}
