//! What a unit says of itself: INQUIRY and its pages of vital product data.

use crate::BLOCK;
use crate::identity::{Identity, TargetPort, padded};
use crate::sense::Sense;
use crate::unit::LogicalUnit;

/// Peripheral: a direct-access device that is there.
const DISK: u8 = 0x00;

/// What clients may ask for at once, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Announced, unless the unit's own block is larger. More is refused only beyond [`Limits::transfer_hard`].
    pub transfer: u32,
    pub transfer_hard: u32,
    pub compare: u8,
    pub unmap: u32,
    pub unmap_ranges: u32,
    pub write_same: u64,
}

impl Limits {
    pub fn new(max_transfer: u32) -> Limits {
        Limits {
            transfer: (u64::from(max_transfer) / BLOCK) as u32,
            transfer_hard: (16 << 20) / BLOCK as u32,
            compare: 255,
            unmap: 1 << 20,
            unmap_ranges: 256,
            write_same: (16 << 20) / BLOCK,
        }
    }

    /// The largest transfer that clients are told to ask for: never less than one block of the unit.
    fn announced(&self, unit_block: u32) -> u32 {
        self.transfer.max(unit_block).min(self.transfer_hard)
    }
}

/// The exponent of two of the physical block in logical ones.
pub(crate) fn physical_exponent(block_size: u32) -> u8 {
    (u64::from(block_size) / BLOCK).max(1).ilog2().min(15) as u8
}

pub(crate) struct About<'a> {
    pub identity: &'a Identity,
    pub unit: &'a dyn LogicalUnit,
    pub limits: Limits,
    pub port: &'a TargetPort,
    /// There are several ports to the target.
    pub several_ports: bool,
}

impl About<'_> {
    pub fn inquire(&self, page: Option<u8>) -> Result<Vec<u8>, Sense> {
        let Some(page) = page else { return Ok(self.standard()) };
        let content = match page {
            0x00 => PAGES.to_vec(),
            0x80 => self.identity.serial.as_bytes().iter().take(250).copied().collect(),
            0x83 => self.names(),
            0x86 => extended(),
            0x8f => crate::copy::limits::page(self.unit.block_size()),
            0xb0 => self.block_limits(),
            0xb1 => self.characteristics(),
            0xb2 => provisioning(),
            _ => return Err(Sense::field(2, None)),
        };
        let mut bytes = vec![DISK, page];
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend(content);
        Ok(bytes)
    }

    fn standard(&self) -> Vec<u8> {
        // SPC-4; implicit asymmetric access and third-party copy; commands are queued.
        let mut bytes = vec![DISK, 0, 0x06, 0x12, 0, 0x18, u8::from(self.several_ports) << 4, 0x02];
        bytes.extend(padded(&self.identity.vendor, 8));
        bytes.extend(padded(&self.identity.product, 16));
        bytes.extend(padded(&self.identity.revision, 4));
        bytes.resize(58, 0);
        for version in VERSIONS {
            bytes.extend(version.to_be_bytes());
        }
        bytes.resize(96, 0);
        bytes[4] = (bytes.len() - 5) as u8;
        bytes
    }

    /// How it is recognised by every path: its world-wide name, and which port this one is.
    fn names(&self) -> Vec<u8> {
        // Of a port, and the protocol of it is iSCSI.
        const PORT: u8 = 0x90;
        let mut port_name = self.port.name.as_bytes().to_vec();
        port_name.push(0);
        port_name.resize(port_name.len().next_multiple_of(4), 0);
        let number = |n: u16| [&[0, 0][..], &n.to_be_bytes()].concat();
        let ports = [
            (0x51, PORT | 0x04, number(self.port.relative)),
            (0x51, PORT | 0x05, number(self.port.group)),
            (0x53, PORT | 0x08, port_name),
        ];
        let mut bytes = Vec::new();
        for (code_set, kind, name) in unit_names(self.identity).into_iter().chain(ports) {
            bytes.extend([code_set, kind, 0, name.len() as u8]);
            bytes.extend(name);
        }
        bytes
    }

    /// The largest transfer is also the optimal one: Linux before 6.10 sends nothing longer than the optimal length, so the
    /// unit's own block in its place would cut large requests into single blocks. Where transfers should begin and end is
    /// said by the granularity, and by the physical block of READ CAPACITY.
    fn block_limits(&self) -> Vec<u8> {
        let blocks = self.unit.block_size() / BLOCK as u32;
        let transfer = self.limits.announced(blocks).to_be_bytes();
        let mut page = vec![0; 0x3c];
        let mut put = |at: usize, value: &[u8]| page[at - 4..at - 4 + value.len()].copy_from_slice(value);
        // A write-same must say how many blocks.
        put(4, &[0x01, self.limits.compare]);
        put(6, &u16::try_from(blocks).unwrap_or(u16::MAX).to_be_bytes());
        put(8, &transfer);
        put(12, &transfer);
        put(16, &transfer);
        put(20, &self.limits.unmap.to_be_bytes());
        put(24, &self.limits.unmap_ranges.to_be_bytes());
        put(28, &blocks.to_be_bytes());
        // Alignment 0 is meant.
        put(32, &0x8000_0000u32.to_be_bytes());
        put(36, &self.limits.write_same.to_be_bytes());
        page
    }

    fn characteristics(&self) -> Vec<u8> {
        let mut page = vec![0; 0x3c];
        // "Not rotating", or a usual speed.
        let rate: u16 = if self.unit.rotational() { 7200 } else { 1 };
        page[..2].copy_from_slice(&rate.to_be_bytes());
        page
    }
}

/// The designators of a unit, with their code set and type: its world-wide name, and the vendor's.
pub(crate) fn unit_names(identity: &Identity) -> [(u8, u8, Vec<u8>); 2] {
    let mut text = padded(&identity.vendor, 8);
    text.extend(identity.serial.bytes());
    [(0x01, 0x03, identity.naa.to_vec()), (0x02, 0x01, text)]
}

const PAGES: [u8; 8] = [0x00, 0x80, 0x83, 0x86, 0x8f, 0xb0, 0xb1, 0xb2];

/// SAM-5, SPC-4, SBC-3, iSCSI.
const VERSIONS: [u16; 4] = [0x00a0, 0x0460, 0x04c0, 0x0960];

fn extended() -> Vec<u8> {
    let mut page = vec![0; 0x3c];
    // Ordered and head-of-queue commands, and simple ones.
    page[1] = 0x07;
    // FUA_NV is honoured.
    page[2] = 0x02;
    page
}

/// Space can be given back by UNMAP and both WRITE SAME; what was given back reads as zeros; thin.
fn provisioning() -> Vec<u8> {
    vec![0, 0xe4, 0x02, 0]
}

pub(crate) fn read_capacity10(size: u64) -> Vec<u8> {
    let last = (size / BLOCK).saturating_sub(1);
    let last = u32::try_from(last).unwrap_or(u32::MAX);
    [last.to_be_bytes(), (BLOCK as u32).to_be_bytes()].concat()
}

pub(crate) fn read_capacity16(size: u64, block_size: u32) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[..8].copy_from_slice(&(size / BLOCK).saturating_sub(1).to_be_bytes());
    bytes[8..12].copy_from_slice(&(BLOCK as u32).to_be_bytes());
    bytes[13] = physical_exponent(block_size);
    // LBPME and LBPRZ.
    bytes[14] = 0xc0;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryUnit;

    #[test]
    fn the_pages_are_those_that_are_listed() {
        let identity = Identity {
            vendor: "SUN".into(),
            product: "ZFS Storage 7430".into(),
            ..Identity::new([0x60; 16])
        };
        let port = TargetPort { relative: 3, group: 2, name: "iqn.2026-11.org.example:t,t,0x0001".into() };
        let unit = MemoryUnit::new(1 << 20, 16 << 10);
        let about = About {
            identity: &identity,
            unit: &unit,
            limits: Limits::new(1 << 20),
            port: &port,
            several_ports: true,
        };
        for page in 0..=255 {
            let answer = about.inquire(Some(page));
            assert_eq!(answer.is_ok(), PAGES.contains(&page), "{page:x}");
            if let Ok(answer) = answer {
                let len = usize::from(u16::from_be_bytes([answer[2], answer[3]]));
                assert_eq!((answer[1], len), (page, answer.len() - 4));
            }
        }
        let standard = about.inquire(None).unwrap();
        assert_eq!((standard.len(), standard[4]), (96, 91));
        assert_eq!(standard[8..36], *b"SUN     ZFS Storage 74301.0 ");
        let limits = about.inquire(Some(0xb0)).unwrap();
        assert_eq!(limits[6..16], [0, 32, 0, 0, 8, 0, 0, 0, 8, 0]);
        let names = about.inquire(Some(0x83)).unwrap();
        assert_eq!(names[4..9], [1, 3, 0, 16, 0x60]);
        assert_eq!(read_capacity16(1 << 20, 16 << 10)[7..15], [0xff, 0, 0, 2, 0, 0, 5, 0xc0]);
        assert_eq!(read_capacity10(1 << 50), [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]);
    }
}
