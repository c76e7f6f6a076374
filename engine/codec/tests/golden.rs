//! Blocks that OpenZFS 2.3.9 wrote, with the words of the pointers to them.
//!
//! `golden.bin` holds one sector of each: a block compressed to 512 bytes, padding included, as it lay on the disk.
//! The digests are of what other decoders (`zdb -R`; for zle, five lines of Python) made of them. Labels, parity and
//! many more blocks are compared where whole pools are opened.

use codec::checksum::{Checksummer, Salt};
use codec::compress::{self, zstd};
use sha2::{Digest, Sha256};
use units::{Checksum, Compression, Endian, ZstdLevel};

const SECTORS: &[u8; 7 * 512] = include_bytes!("golden.bin");
/// `org.illumos:checksum_salt` of the pool.
const SALT: &str = "95409355eada3417635d546fe1d67698bebfbc78b9fed8f5ef27ca6d9e99b690";

struct Golden {
    checksum: Checksum,
    compression: Compression,
    lsize: usize,
    words: [u64; 4],
    sha256: &'static str,
}

const GOLDEN: [Golden; 7] = [
    Golden {
        checksum: Checksum::Blake3,
        compression: Compression::Zstd(None),
        lsize: 4096,
        words: [0x268b9b70379f71d5, 0xa49fb53baabd0314, 0xbbdfad2614b7275a, 0x3793045bd6ccbf34],
        sha256: "dabd06a888225004ec53cdeec36ae47ca111dfcc182ac625929a28fb9d3ecbbe",
    },
    Golden {
        checksum: Checksum::EdonR,
        compression: Compression::Gzip(6),
        lsize: 4096,
        words: [0x95140f508056b535, 0xc0dc79934de23cdf, 0x745dd021ca2426a2, 0xe00bb58bed2d4761],
        sha256: "11712b88a30b9beecdea996cd0e4003f6acd921b7375c56dab7d897181fd8bff",
    },
    Golden {
        checksum: Checksum::Skein,
        compression: Compression::Zle,
        lsize: 4096,
        words: [0x9ac1779a59b36240, 0xf1e765ec355cb723, 0x32e6b6d85cc12b84, 0x786c936962412a78],
        sha256: "80a8d4ae7286e2721100ecd50568fed5dad24e50df545fc81501a981ac146f4e",
    },
    Golden {
        checksum: Checksum::Sha512,
        compression: Compression::Lzjb,
        lsize: 4096,
        words: [0xd91899111a368ecc, 0x4c1adb9aaa6dabd6, 0xf1ce5cf41500e3f1, 0xf9f8765392b69e68],
        sha256: "5be52cfa003a8935971622157e23751088ffd23587674436564633900576d320",
    },
    Golden {
        checksum: Checksum::Sha256,
        compression: Compression::Lz4,
        lsize: 4096,
        words: [0x3444b3e10e82b34f, 0x218086f4ad8d4760, 0xf058da03087117eb, 0x120684733e3d8d1c],
        sha256: "4078ced6634f2454020046984b410072449b6e42724682ea728b2fb605154820",
    },
    Golden {
        checksum: Checksum::Fletcher4,
        compression: Compression::Off,
        lsize: 512,
        words: [0x0000002a06e48b66, 0x00000a9a4a4572b6, 0x0001cb3d8a90619b, 0x003a9d35c2f5461e],
        sha256: "eb2ab45459fa33eeb846d75cd4359330c97893d4871ef226709d7a494d32844d",
    },
    Golden {
        checksum: Checksum::Fletcher2,
        compression: Compression::Off,
        lsize: 512,
        words: [0x1336ca3a16ca5809, 0x2af69dfc660a4833, 0x401d8c2ee7e5641c, 0x6bcb02f68f3470f0],
        sha256: "feba680bec83672d8395beac221ab4a87f35dea7faafc3a66508d23b308121d4",
    },
];

fn sectors() -> impl Iterator<Item = (&'static Golden, &'static [u8])> {
    GOLDEN.iter().zip(SECTORS.chunks(512))
}

#[test]
fn the_words_of_every_checksum_are_those_openzfs_wrote() {
    let mut salt = [0; 32];
    for (byte, digits) in salt.iter_mut().zip(SALT.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).unwrap();
        *byte = u8::from_str_radix(digits, 16).unwrap();
    }
    let summer = Checksummer::new(&Salt(salt));
    for (golden, sector) in sectors() {
        let words = summer.compute(golden.checksum, Endian::Little, sector);
        assert_eq!(words, golden.words, "{:?}", golden.checksum);
    }
}

#[test]
fn what_openzfs_compressed_comes_back() {
    for (golden, sector) in sectors() {
        let mut block = vec![0; golden.lsize];
        compress::decompress(golden.compression, sector, &mut block).unwrap();
        let digest: String = Sha256::digest(&block).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, golden.sha256, "{:?}", golden.compression);
    }
    assert_eq!(zstd::level_of(SECTORS), Some(ZstdLevel::Normal(3)), "the first is zstd at its default");
}

/// These two have no freedom but where to look for a match, and we look in the same places.
#[test]
fn lzjb_and_zle_compress_to_the_very_bytes_of_openzfs() {
    for (golden, sector) in sectors() {
        if !matches!(golden.compression, Compression::Lzjb | Compression::Zle) {
            continue;
        }
        let mut block = vec![0; golden.lsize];
        compress::decompress(golden.compression, sector, &mut block).unwrap();
        let mut encoded = [0; 512];
        compress::compress(golden.compression, &block, &mut encoded).expect("it fits, as it did");
        assert_eq!(encoded, sector, "{:?}", golden.compression);
    }
}
