//! Logical unit numbers: eight bytes on the wire, a small number here.
//!
//! ```text
//!   00 nn 00 …     peripheral, n < 256           c1 01 00 …   the well-known unit that reports the others
//!   01xxxxxx nn …  flat, n < 16384
//! ```

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lun(pub u16);

impl Lun {
    /// The largest there is.
    pub const MAX: Lun = Lun(0x3fff);
    /// REPORT LUNS, by its well-known number.
    pub const WELL_KNOWN: [u8; 8] = [0xc1, 0x01, 0, 0, 0, 0, 0, 0];

    /// None when it is nothing that we give out.
    pub fn decode(bytes: [u8; 8]) -> Option<Lun> {
        if bytes[2..] != [0; 6] {
            return None;
        }
        match bytes[0] >> 6 {
            0 if bytes[0] == 0 => Some(Lun(bytes[1].into())),
            1 => Some(Lun(u16::from_be_bytes([bytes[0] & 0x3f, bytes[1]]))),
            _ => None,
        }
    }

    pub fn encode(self) -> [u8; 8] {
        let [high, low] = self.0.to_be_bytes();
        let flat = if self.0 < 256 { 0 } else { 0x40 };
        [flat | high, low, 0, 0, 0, 0, 0, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_and_nothing_else_is_one() {
        for n in 0..=Lun::MAX.0 {
            assert_eq!(Lun::decode(Lun(n).encode()), Some(Lun(n)));
        }
        assert_eq!(Lun::decode([0x40, 1, 0, 0, 0, 0, 0, 0]), Some(Lun(1)), "flat, though small");
        for bytes in [Lun::WELL_KNOWN, [1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0], [0xff; 8]] {
            assert_eq!(Lun::decode(bytes), None);
        }
    }
}
