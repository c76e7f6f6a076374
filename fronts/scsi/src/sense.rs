//! How a command ended: its status, the sense that explains it, and what it returns.

use flow::Piece;
use units::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    Good = 0x00,
    CheckCondition = 0x02,
    Busy = 0x08,
    ReservationConflict = 0x18,
    TaskSetFull = 0x28,
    TaskAborted = 0x40,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SenseKey {
    NoSense = 0,
    NotReady = 2,
    MediumError = 3,
    HardwareError = 4,
    IllegalRequest = 5,
    UnitAttention = 6,
    DataProtect = 7,
    CopyAborted = 10,
    AbortedCommand = 11,
    Miscompare = 14,
}

/// What is wrong, by the codes of SPC. Most are made by the constructors below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    pub key: SenseKey,
    /// Additional sense code and its qualifier.
    pub code: (u8, u8),
    /// For a miscompare, the offset of the first byte that differs; for a copy, the blocks of its segment not copied.
    pub information: Option<u64>,
    /// The segment at which a copy ended, from 0 on.
    pub segment: Option<u16>,
    /// The byte (and bit) of the command or of its parameters that is wrong.
    pub field: Option<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub in_command: bool,
    pub byte: u16,
    pub bit: Option<u8>,
}

impl Sense {
    pub const fn new(key: SenseKey, asc: u8, ascq: u8) -> Sense {
        Sense { key, code: (asc, ascq), information: None, segment: None, field: None }
    }

    const fn illegal(asc: u8, ascq: u8) -> Sense {
        Sense::new(SenseKey::IllegalRequest, asc, ascq)
    }

    pub const NONE: Sense = Sense::new(SenseKey::NoSense, 0, 0);
    pub const INVALID_OPCODE: Sense = Sense::illegal(0x20, 0x00);
    pub const OUT_OF_RANGE: Sense = Sense::illegal(0x21, 0x00);
    pub const NO_SUCH_UNIT: Sense = Sense::illegal(0x25, 0x00);
    /// A parameter list that is shorter than it must be.
    pub const LIST_LENGTH: Sense = Sense::illegal(0x1a, 0x00);
    /// The transport announced another length than the command has.
    pub const INFORMATION_UNIT: Sense = Sense::illegal(0x0e, 0x03);
    pub const CANNOT_SAVE: Sense = Sense::illegal(0x39, 0x00);
    pub const RELEASE_INVALID: Sense = Sense::illegal(0x26, 0x04);
    pub const NO_REGISTRATION_ROOM: Sense = Sense::illegal(0x55, 0x04);
    pub const TOO_MANY_TARGETS: Sense = Sense::illegal(0x26, 0x06);
    pub const UNSUPPORTED_TARGET: Sense = Sense::illegal(0x26, 0x07);
    pub const TOO_MANY_SEGMENTS: Sense = Sense::illegal(0x26, 0x08);
    pub const UNSUPPORTED_SEGMENT: Sense = Sense::illegal(0x26, 0x09);
    pub const INLINE_DATA: Sense = Sense::illegal(0x26, 0x0b);
    pub const UNSUPPORTED_TOKEN: Sense = Sense::illegal(0x23, 0x01);
    pub const TOKEN_UNKNOWN: Sense = Sense::illegal(0x23, 0x04);
    pub const TOKEN_REVOKED: Sense = Sense::illegal(0x23, 0x06);
    pub const TOKEN_EXPIRED: Sense = Sense::illegal(0x23, 0x07);
    pub const TOKEN_LENGTH: Sense = Sense::illegal(0x23, 0x0a);
    pub const NO_TOKEN_ROOM: Sense = Sense::illegal(0x55, 0x0d);
    /// A list identifier that stands for a copy under way.
    pub const COPY_IN_PROGRESS: Sense = Sense::illegal(0x00, 0x16);
    pub const COPY_ABORTED: Sense = Sense::new(SenseKey::CopyAborted, 0x00, 0x00);
    pub const COPY_DEVICE_FAILED: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x01);
    pub const COPY_UNREACHABLE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x02);
    pub const COPY_DEVICE_TYPE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x03);
    pub const WRITE_PROTECTED: Sense = Sense::new(SenseKey::DataProtect, 0x27, 0x00);
    pub const SOFTWARE_WRITE_PROTECTED: Sense = Sense::new(SenseKey::DataProtect, 0x27, 0x02);
    pub const SPACE_ALLOCATION_FAILED: Sense = Sense::new(SenseKey::DataProtect, 0x27, 0x07);
    pub const STANDBY: Sense = Sense::new(SenseKey::NotReady, 0x04, 0x0b);
    pub const UNAVAILABLE: Sense = Sense::new(SenseKey::NotReady, 0x04, 0x0c);
    pub const BECOMING_READY: Sense = Sense::new(SenseKey::NotReady, 0x04, 0x01);
    pub const TRANSITION: Sense = Sense::new(SenseKey::NotReady, 0x04, 0x0a);
    /// Data arrived damaged.
    pub const PROTOCOL_CRC: Sense = Sense::new(SenseKey::AbortedCommand, 0x47, 0x05);
    /// Data arrived that had not been asked for.
    pub const UNEXPECTED_DATA: Sense = Sense::new(SenseKey::AbortedCommand, 0x0c, 0x0c);
    /// More or less data arrived than was announced.
    pub const DATA_AMOUNT: Sense = Sense::new(SenseKey::AbortedCommand, 0x0c, 0x0d);

    /// A field of the command that makes no sense here.
    pub const fn field(byte: u16, bit: Option<u8>) -> Sense {
        Sense { field: Some(Field { in_command: true, byte, bit }), ..Sense::illegal(0x24, 0x00) }
    }

    /// A field of the parameter list that makes no sense here.
    pub const fn parameter(byte: u16) -> Sense {
        Sense { field: Some(Field { in_command: false, byte, bit: None }), ..Sense::illegal(0x26, 0x00) }
    }

    pub const fn miscompare(at: u64) -> Sense {
        Sense { information: Some(at), ..Sense::new(SenseKey::Miscompare, 0x1d, 0x00) }
    }

    /// The one table from the engine's kinds to sense. There is no catch-all.
    pub fn of(kind: Kind, writing: bool) -> Sense {
        let medium = if writing { (0x0c, 0x00) } else { (0x11, 0x00) };
        match kind {
            Kind::Checksum | Kind::Corrupt => Sense::new(SenseKey::MediumError, medium.0, medium.1),
            Kind::Io => Sense::new(SenseKey::HardwareError, 0x44, 0x00),
            Kind::NoSpace => Sense::SPACE_ALLOCATION_FAILED,
            Kind::ReadOnly => Sense::WRITE_PROTECTED,
            // The key must be loaded.
            Kind::Encrypted => Sense::new(SenseKey::NotReady, 0x04, 0x03),
            Kind::Cancelled => Sense::new(SenseKey::AbortedCommand, 0x00, 0x00),
            // The unit was made smaller after the command was admitted.
            Kind::Invalid => Sense::OUT_OF_RANGE,
            Kind::Unsupported => Sense::field(0, None),
            // The unit vanished underneath.
            Kind::NotFound | Kind::Exists | Kind::Busy => Sense::NO_SUCH_UNIT,
        }
    }

    /// As clients receive it: fixed format, or descriptors.
    pub fn encode(&self, descriptors: bool) -> Vec<u8> {
        if descriptors { self.as_descriptors() } else { self.as_fixed() }
    }

    fn as_fixed(&self) -> Vec<u8> {
        let mut bytes = vec![0; 18];
        (bytes[0], bytes[2], bytes[7]) = (0x70, self.key as u8, 10);
        if let Some(Ok(information)) = self.information.map(u32::try_from) {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        if let Some(segment) = self.segment {
            bytes[10..12].copy_from_slice(&segment.to_be_bytes());
        }
        (bytes[12], bytes[13]) = self.code;
        if let Some(field) = self.field {
            bytes[15..18].copy_from_slice(&field.encode());
        }
        bytes
    }

    fn as_descriptors(&self) -> Vec<u8> {
        let mut bytes = vec![0x72, self.key as u8, self.code.0, self.code.1, 0, 0, 0, 0];
        if let Some(information) = self.information {
            bytes.extend([0x00, 0x0a, 0x80, 0x00]);
            bytes.extend(information.to_be_bytes());
        }
        if let Some(segment) = self.segment {
            bytes.extend([0x01, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend(segment.to_be_bytes());
        }
        if let Some(field) = self.field {
            bytes.extend([0x02, 0x06, 0, 0]);
            bytes.extend(field.encode());
            bytes.push(0);
        }
        bytes[7] = (bytes.len() - 8) as u8;
        bytes
    }
}

impl Field {
    fn encode(self) -> [u8; 3] {
        let [high, low] = self.byte.to_be_bytes();
        let place = if self.in_command { 0xc0 } else { 0x80 };
        [place | self.bit.map_or(0, |bit| 0x08 | (bit & 7)), high, low]
    }
}

/// Why a command returns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Sense(Sense),
    Conflict,
    /// Too much is under way; it may be asked again.
    Busy,
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Refusal {
        Refusal::Sense(sense)
    }
}

/// What a command returns when it goes well.
pub(crate) type Answer = Result<Vec<Piece>, Refusal>;

/// What a command came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: Status,
    /// Encoded; empty when there is none.
    pub sense: Vec<u8>,
    pub data: Vec<Piece>,
    /// The command was aborted by another request: nothing is sent for it.
    pub silent: bool,
}

impl Outcome {
    pub fn status(status: Status) -> Outcome {
        Outcome { status, sense: Vec::new(), data: Vec::new(), silent: false }
    }

    pub fn good(data: Vec<Piece>) -> Outcome {
        Outcome { data, ..Outcome::status(Status::Good) }
    }

    pub fn check(sense: &Sense, descriptors: bool) -> Outcome {
        Outcome { sense: sense.encode(descriptors), ..Outcome::status(Status::CheckCondition) }
    }

    pub(crate) fn aborted(tell: bool) -> Outcome {
        Outcome { silent: !tell, ..Outcome::status(Status::TaskAborted) }
    }

    pub(crate) fn of(answer: Answer, descriptors: bool) -> Outcome {
        match answer {
            Ok(data) => Outcome::good(data),
            Err(Refusal::Sense(sense)) => Outcome::check(&sense, descriptors),
            Err(Refusal::Conflict) => Outcome::status(Status::ReservationConflict),
            Err(Refusal::Busy) => Outcome::status(Status::Busy),
        }
    }

    /// The length of what it returns.
    pub fn len(&self) -> usize {
        self.data.iter().map(Piece::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.data.iter().all(Piece::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sense_has_two_formats() {
        let sense = Sense::field(4, Some(2));
        assert_eq!(sense.encode(false), [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xca, 0, 4]);
        assert_eq!(sense.encode(true), [0x72, 5, 0x24, 0, 0, 0, 0, 8, 2, 6, 0, 0, 0xca, 0, 4, 0]);
        let miscompare = Sense::miscompare(300);
        assert_eq!(miscompare.encode(false)[..8], [0xf0, 0, 14, 0, 0, 1, 44, 10]);
        assert_eq!(miscompare.encode(true)[8..], [0, 10, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 44]);
    }
}
