//! How pointers are written out: the words and order of zdb, so that outputs can be laid side by side.

use super::{BlockPointer, Crypt, Embedded, EmbeddedKind, Hole, Plain};
use std::fmt;
use units::{Compression, Endian};

impl fmt::Display for BlockPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockPointer::Hole(hole) => hole.fmt(f),
            BlockPointer::Plain(plain) => plain.fmt(f),
            BlockPointer::Embedded(embedded) => embedded.fmt(f),
        }
    }
}

impl fmt::Debug for BlockPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hole { lsize, kind, level, birth } = self;
        write!(f, "HOLE [L{level} {kind}] size={:x}L birth={birth}L", lsize.0)
    }
}

impl fmt::Display for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Embedded { etype, lsize, psize, kind, level, birth, .. } = self;
        if *etype == EmbeddedKind::Redacted {
            return write!(f, "REDACTED [L{level} {kind}] birth={birth}L");
        }
        write!(
            f,
            "EMBEDDED [L{level} {kind}] et={} {} size={:x}L/{:x}P birth={birth}L",
            *etype as u8,
            compression_name(self.compression),
            lsize.0,
            psize.0
        )
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, dva) in self.copies().enumerate() {
            write!(f, "DVA[{index}]={dva} ")?;
        }
        if let Some(Crypt::Encrypted { salt, iv1, iv2 }) = self.crypt {
            write!(f, "salt={salt:x} iv={iv1:x}:{iv2:x} ")?;
        }
        write!(
            f,
            "[L{} {}] {} {} {} {} {} {} {} ",
            self.level,
            self.kind,
            self.checksum_kind.row().name,
            compression_name(self.compression),
            crypt_name(self.crypt),
            if self.endian == Endian::Little { "LE" } else { "BE" },
            if self.is_gang() { "gang" } else { "contiguous" },
            if self.dedup { "dedup" } else { "unique" },
            ["zero", "single", "double", "triple"].get(self.copies().count()).unwrap_or(&"many"),
        )?;
        let [c0, c1, c2, c3] = self.checksum;
        write!(
            f,
            "size={:x}L/{:x}P birth={}L/{}P fill={} cksum={c0:016x}:{c1:016x}:{c2:016x}:{c3:016x}",
            self.lsize.0,
            self.psize.0,
            self.birth,
            self.resolved_physical_birth(),
            self.fill
        )
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn crypt_name(crypt: Option<Crypt>) -> &'static str {
    match crypt {
        None => "unencrypted",
        Some(Crypt::Encrypted { .. }) => "encrypted",
        Some(Crypt::Authenticated) => "authenticated",
        Some(Crypt::IndirectMac) => "indirect-MAC",
    }
}

fn compression_name(kind: Compression) -> &'static str {
    match kind {
        Compression::Off => "uncompressed",
        Compression::Lzjb => "lzjb",
        Compression::Empty => "empty",
        Compression::Gzip(1) => "gzip-1",
        Compression::Gzip(2) => "gzip-2",
        Compression::Gzip(3) => "gzip-3",
        Compression::Gzip(4) => "gzip-4",
        Compression::Gzip(5) => "gzip-5",
        Compression::Gzip(6) => "gzip-6",
        Compression::Gzip(7) => "gzip-7",
        Compression::Gzip(8) => "gzip-8",
        Compression::Gzip(_) => "gzip-9",
        Compression::Zle => "zle",
        Compression::Lz4 => "lz4",
        Compression::Zstd(_) => "zstd",
    }
}
