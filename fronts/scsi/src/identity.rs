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

/// The initiator port that a transport identifier names, and the length of the identifier.
pub(crate) fn read_transport_id(bytes: &[u8]) -> Option<(String, usize)> {
    let head: &[u8; 4] = bytes.first_chunk()?;
    let len = 4 + usize::from(u16::from_be_bytes([head[2], head[3]]));
    let name = bytes.get(4..len)?;
    let end = name.iter().position(|&b| b == 0)?;
    let name = std::str::from_utf8(&name[..end]).ok()?;
    let whole = head[0] & 0x0f == 5 && (head[0] >> 6 == 0 || name.contains(",i,0x"));
    (whole && !name.is_empty()).then(|| (name.to_string(), len))
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

    #[test]
    fn fields_are_cut_padded_and_printable() {
        assert_eq!(padded("SUN", 8), b"SUN     ");
        assert_eq!(padded("ZFS Storage 7430 and more", 16), b"ZFS Storage 7430");
        assert_eq!(padded("\u{e9}\n", 3), b"?? ");
    }
}
