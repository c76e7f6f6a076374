//! Who a unit is, and who asks.

use std::fmt::Write as _;
use std::sync::Arc;

/// What a unit calls itself. Text is cut or padded to the fields of INQUIRY; it must be printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The world-wide name of the unit, NAA format 6: its first four bits are 6.
    pub naa: [u8; 16],
    /// 8 characters.
    pub vendor: String,
    /// 16 characters.
    pub product: String,
    /// 4 characters.
    pub revision: String,
    pub serial: String,
}

impl Identity {
    /// The identity of a unit with this name, whose serial number is the name in hexadecimal.
    pub fn new(naa: [u8; 16]) -> Identity {
        Identity {
            naa,
            vendor: "CENOTE".into(),
            product: "LUN".into(),
            revision: "1.0".into(),
            serial: naa_text(&naa),
        }
    }
}

/// A world-wide name as people write it: 32 hexadecimal digits.
pub fn naa_text(naa: &[u8; 16]) -> String {
    naa.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `text` in a field of `len` bytes, padded by spaces.
pub(crate) fn padded(text: &str, len: usize) -> Vec<u8> {
    let printable = |c: char| if (' '..='~').contains(&c) { c as u8 } else { b'?' };
    let mut field: Vec<u8> = text.chars().take(len).map(printable).collect();
    field.resize(len, b' ');
    field
}

/// A port of the target: for iSCSI, a target and one of its portal groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetPort {
    /// Unique among the ports that lead to a unit; not 0.
    pub relative: u16,
    /// The group whose access state it shares.
    pub group: u16,
    /// As a SCSI name string: `iqn…,t,0x0001`.
    pub name: Arc<str>,
}

/// An initiator port and the target port it comes through.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nexus {
    /// The name of the initiator port as a SCSI name string: `iqn…,i,0x…` (name and session identifier).
    pub initiator: Arc<str>,
    pub port: TargetPort,
}

/// The initiator port as a transport identifier of iSCSI (format 1: with its session identifier).
pub(crate) fn transport_id(initiator: &str) -> Vec<u8> {
    let mut name = initiator.as_bytes().to_vec();
    name.push(0);
    name.resize(name.len().next_multiple_of(4).max(20), 0);
    let mut id = vec![0x45, 0];
    id.extend((name.len() as u16).to_be_bytes());
    id.extend(name);
    id
}

/// The longest name of an iSCSI node, in bytes.
const MAX_NAME: usize = 223;

/// Whether an iSCSI node may be called so (RFC 7143, 4.2.7): of a known type; letters, digits, `-`, `.` and `:`, no more
/// than 223 bytes. Some clients have `_` besides.
pub fn is_node_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
    let kind = name.get(..4).unwrap_or_default().to_ascii_lowercase();
    let is_typed = matches!(kind.as_str(), "iqn." | "eui." | "naa.") && name.len() > 4;
    is_typed && name.len() <= MAX_NAME && name.chars().all(is_allowed)
}

/// Whether an initiator port may be called so: a node, and its session identifier if that is told.
pub(crate) fn is_port_name(name: &str) -> bool {
    let (node, session) = name.split_once(",i,0x").unwrap_or((name, "0"));
    let is_session = (1..=12).contains(&session.len()) && session.bytes().all(|b| b.is_ascii_hexdigit());
    is_node_name(node) && is_session
}

/// The initiator port that a transport identifier names, as a login of it would, and the length of the identifier.
pub(crate) fn read_transport_id(bytes: &[u8]) -> Option<(String, usize)> {
    let head: &[u8; 4] = bytes.first_chunk()?;
    let len = 4 + usize::from(u16::from_be_bytes([head[2], head[3]]));
    let name = bytes.get(4..len)?;
    let end = name.iter().position(|&b| b == 0)?;
    let name = std::str::from_utf8(&name[..end]).ok()?;
    let whole = head[0] & 0x0f == 5 && (head[0] >> 6 == 0 || name.contains(",i,0x"));
    (whole && is_port_name(name)).then(|| (name.to_ascii_lowercase(), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_id_comes_back() {
        let name = "iqn.2026-11.org.example:host,i,0x80123456789a";
        let id = transport_id(name);
        assert_eq!((id.len() % 4, id[0]), (0, 0x45));
        assert_eq!(read_transport_id(&id), Some((name.to_string(), id.len())));
        assert_eq!(read_transport_id(&id[..id.len() - 1]), None);
        assert_eq!(read_transport_id(&[]), None);
    }

    /// Names went into the stored text, and into reports, as they came.
    #[test]
    fn a_transport_id_names_a_port_that_could_log_in() {
        let long = |len: usize| format!("iqn.{},i,0x1", "a".repeat(len - 4));
        let read = |name: &str| read_transport_id(&transport_id(name)).map(|(name, _)| name);
        for good in
            ["iqn.x:a_b-c,i,0x1", "eui.02004567a425678d,i,0x80123456789a", "iqn.x:ü,i,0x1", &long(223)]
        {
            assert_eq!(read(good).as_deref(), Some(good));
        }
        assert_eq!(read("IQN.x:A,i,0xAB").as_deref(), Some("iqn.x:a,i,0xab"));
        let session = format!("iqn.x:a,i,0x{}", "1".repeat(13));
        for bad in [
            "iqn.x:evil\ngarbage,i,0x1",
            "iqn.x:a b,i,0x1",
            "iqn.x:a\u{85},i,0x1",
            "iqn.x:a,i,0x1,i,0x1",
            "iqn.x:a,i,0x",
            "iqn.x:a,i,0x1\nx",
            ",i,0x1",
            "x,i,0x1",
            "iqn.,i,0x1",
            &session,
            &long(224),
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn fields_are_cut_padded_and_printable() {
        assert_eq!(padded("SUN", 8), b"SUN     ");
        assert_eq!(padded("ZFS Storage 7430 and more", 16), b"ZFS Storage 7430");
        assert_eq!(padded("\u{e9}\n", 3), b"?? ");
    }
}
