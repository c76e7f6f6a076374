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

/// How far a checksum names the block that it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// It finds damage; other data may have the same one.
    FindsDamage,
    /// Other data with the same one can hardly be found, and yet it is compared before a block is taken for another.
    NamesWithCare,
    /// Equal checksums mean equal data.
    Names,
}

/// What is known of a checksum function, but how it is computed (`codec`).
#[derive(Clone, Copy, Debug)]
pub struct ChecksumRow {
    pub kind: Checksum,
    /// As `zdb` and, where it can be set, the property `checksum` write it.
    pub name: &'static str,
    pub can_be_set: bool,
    pub strength: Strength,
    /// The guid of the feature that a pool needs before it has such a block.
    pub feature: Option<&'static str>,
}

const fn row(kind: Checksum, name: &'static str, can_be_set: bool, strength: Strength) -> ChecksumRow {
    ChecksumRow { kind, name, can_be_set, strength, feature: None }
}

const fn of_feature(feature: &'static str, row: ChecksumRow) -> ChecksumRow {
    ChecksumRow { feature: Some(feature), ..row }
}

/// All checksum functions, in the order of their codes. To add one: a row here, its code in [`Checksum`], and the function
/// in `codec::checksum`.
pub const CHECKSUMS: &[ChecksumRow] = {
    use Checksum::*;
    use Strength::*;
    &[
        row(Off, "off", true, FindsDamage),
        row(Label, "label", false, FindsDamage),
        row(GangHeader, "gang_header", false, FindsDamage),
        row(Zilog, "zilog", false, FindsDamage),
        row(Fletcher2, "fletcher2", true, FindsDamage),
        row(Fletcher4, "fletcher4", true, FindsDamage),
        row(Sha256, "sha256", true, Names),
        row(Zilog2, "zilog2", false, FindsDamage),
        row(NoParity, "noparity", true, FindsDamage),
        of_feature("org.illumos:sha512", row(Sha512, "sha512", true, Names)),
        of_feature("org.illumos:skein", row(Skein, "skein", true, Names)),
        of_feature("org.illumos:edonr", row(EdonR, "edonr", true, NamesWithCare)),
        of_feature("org.openzfs:blake3", row(Blake3, "blake3", true, Names)),
    ]
};

impl Checksum {
    pub fn from_code(code: u8) -> Option<Checksum> {
        CHECKSUMS.iter().map(|row| row.kind).find(|kind| kind.code() == code)
    }

    pub fn code(self) -> u8 {
        self as u8
    }

    /// Its row of [`CHECKSUMS`].
    pub fn row(self) -> &'static ChecksumRow {
        CHECKSUMS.iter().find(|row| row.kind == self).expect("each function has a row")
    }

    /// The checksum lies within the block (label, gang header, log block), not in the pointer to it.
    pub fn is_self_contained(self) -> bool {
        matches!(self, Checksum::Label | Checksum::GangHeader | Checksum::Zilog | Checksum::Zilog2)
    }

    /// Strong enough to name a block by, with care or without.
    pub fn is_cryptographic(self) -> bool {
        self.row().strength != Strength::FindsDamage
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
        assert!(CHECKSUMS.is_sorted_by_key(|row| row.kind.code()));
        assert_eq!(Compression::from_code(9), Some(Compression::Gzip(5)));
        assert_eq!(Checksum::from_code(1), None, "'on' is a property value, never a block's");
    }
}
