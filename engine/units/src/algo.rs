//! The algorithms a block pointer can name, with their codes on disk. `codec` carries them out.

/// Byte order. Every structure on disk is in the order of the machine that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    Little,
    Big,
}

impl Endian {
    pub const NATIVE: Endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
}

/// The checksum function of a block (`enum zio_checksum`). The value of a variant is its code on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Checksum {
    Off = 2,
    /// SHA-256 within a label's own trailer.
    Label = 3,
    /// SHA-256 within a gang header's own trailer.
    GangHeader = 4,
    /// Fletcher2 within a log block's own trailer, at its end.
    Zilog = 5,
    Fletcher2 = 6,
    Fletcher4 = 7,
    Sha256 = 8,
    /// Fletcher4 within a log block's own header, at its start.
    Zilog2 = 9,
    /// No checksum: its words are zeros, like those of `Off`, and a raidz does not check its parity either.
    NoParity = 10,
    Sha512 = 11,
    Skein = 12,
    EdonR = 13,
    Blake3 = 14,
}

impl Checksum {
    pub fn from_code(code: u8) -> Option<Checksum> {
        use Checksum::*;
        [
            Off, Label, GangHeader, Zilog, Fletcher2, Fletcher4, Sha256, Zilog2, NoParity, Sha512, Skein,
            EdonR, Blake3,
        ]
        .into_iter()
        .find(|c| *c as u8 == code)
    }

    pub fn code(self) -> u8 {
        self as u8
    }

    /// The checksum lies within the block (label, gang header, log block), not in the pointer to it.
    pub fn is_self_contained(self) -> bool {
        matches!(self, Checksum::Label | Checksum::GangHeader | Checksum::Zilog | Checksum::Zilog2)
    }

    /// Strong enough to name a block by, so that equal checksums mean equal data.
    pub fn is_cryptographic(self) -> bool {
        use Checksum::*;
        matches!(self, Sha256 | Sha512 | Skein | EdonR | Blake3)
    }
}

/// The compression function of a block (`enum zio_compress`). On disk zstd's level is in the block's own header,
/// not in the pointer, so a pointer that was read names it by [`Compression::Zstd`] with level `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    Off,
    Lzjb,
    /// A block of zeros only, never seen in a pointer today.
    Empty,
    /// Level 1 to 9.
    Gzip(u8),
    Zle,
    Lz4,
    Zstd(Option<ZstdLevel>),
}

/// What `compression=zstd-N` and `compression=zstd-fast-N` ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZstdLevel {
    /// 1 to 19.
    Normal(u8),
    /// 1 to 1000: the larger, the faster and the weaker.
    Fast(u16),
}

impl Compression {
    pub fn from_code(code: u8) -> Option<Compression> {
        Some(match code {
            2 => Compression::Off,
            3 => Compression::Lzjb,
            4 => Compression::Empty,
            5..=13 => Compression::Gzip(code - 4),
            14 => Compression::Zle,
            15 => Compression::Lz4,
            16 => Compression::Zstd(None),
            _ => return None,
        })
    }

    pub fn code(self) -> u8 {
        match self {
            Compression::Off => 2,
            Compression::Lzjb => 3,
            Compression::Empty => 4,
            Compression::Gzip(level) => 4 + level,
            Compression::Zle => 14,
            Compression::Lz4 => 15,
            Compression::Zstd(_) => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_on_disk_survive_the_round_trip() {
        for code in 0..=255 {
            if let Some(c) = Checksum::from_code(code) {
                assert_eq!(c.code(), code);
            }
            if let Some(c) = Compression::from_code(code) {
                assert_eq!(c.code(), code);
            }
        }
        assert_eq!(Compression::from_code(9), Some(Compression::Gzip(5)));
        assert_eq!(Checksum::from_code(1), None, "'on' is a property value, never a block's");
    }
}
