//! Access control lists in records.

use crate::bytes::{Reader, Writer};
use crate::zil::text;
use units::Result;

/// One entry: who may or may not do what (`ace_t`).
///
/// ```text
///   0  who    4  mask    8  flags    10  kind    12  two object types of 16 bytes, for kinds 5 to 8
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ace {
    pub who: u32,
    pub mask: u32,
    pub flags: u16,
    pub kind: u16,
    pub objects: Option<[[u8; 16]; 2]>,
}

/// Of `flags`: who is meant, when `who` does not say it.
const WHO_FLAGS: u16 = 0x7040;
/// The owner, everyone, the group that owns: entries that are always short.
const SHORT: [u16; 3] = [0x1000, 0x4000, 0x2040];
const OBJECT_KINDS: std::ops::RangeInclusive<u16> = 5..=8;

impl Ace {
    pub const SIZE: usize = 12;

    /// The shape that entries of file systems before version 3 have: always short.
    pub(super) fn decode_short(r: &mut Reader<'_>) -> Result<Ace> {
        Ok(Ace { who: r.u32()?, mask: r.u32()?, flags: r.u16()?, kind: r.u16()?, objects: None })
    }

    fn decode(r: &mut Reader<'_>) -> Result<Ace> {
        let mut ace = Ace::decode_short(r)?;
        if ace.is_long() {
            ace.objects = Some([r.array()?, r.array()?]);
        }
        Ok(ace)
    }

    fn is_long(&self) -> bool {
        OBJECT_KINDS.contains(&self.kind) && !SHORT.contains(&(self.flags & WHO_FLAGS))
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.who);
        w.u32(self.mask);
        w.u16(self.flags);
        w.u16(self.kind);
        self.objects.iter().flatten().for_each(|object| w.bytes(object));
    }

    fn length(&self) -> usize {
        Ace::SIZE + if self.objects.is_some() { 32 } else { 0 }
    }
}

/// A list, as records of file systems from version 3 on hold it.
///
/// ```text
///   fields   0  entries   8  domains   16  identities   24  bytes of the entries   32  flags
///   data        entries, to a multiple of 8;  identities, 8 bytes each;  the domains' names
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogAcl<'a> {
    /// How many entries the list has. There may be fewer in the record: OpenZFS 2.3 leaves those of a new file out.
    pub count: u64,
    pub flags: u64,
    pub entries: Vec<Ace>,
    /// Identities of foreign domains, in the order of the entries that need one.
    pub identities: Vec<u64>,
    pub domains: Vec<&'a [u8]>,
}

/// The five numbers in front of the data.
pub(super) struct Counts {
    count: u64,
    domains: u64,
    identities: u64,
    bytes: u64,
    flags: u64,
}

impl Counts {
    pub const SIZE: usize = 40;

    pub fn decode(r: &mut Reader<'_>) -> Result<Counts> {
        let [count, domains, identities, bytes, flags] = r.u64s()?;
        Ok(Counts { count, domains, identities, bytes, flags })
    }
}

impl<'a> LogAcl<'a> {
    pub(super) fn decode_data(counts: Counts, r: &mut Reader<'a>) -> Result<LogAcl<'a>> {
        let Counts { count, domains, identities, bytes, flags } = counts;
        if bytes > r.remaining() as u64 || identities > r.remaining() as u64 / 8 {
            let left = r.remaining();
            return Err(
                r.corrupt(format_args!("{bytes} of entries and {identities} identities in {left} bytes"))
            );
        }
        let mut list = r.within(bytes as usize, "access control list")?;
        r.skip((bytes as usize).next_multiple_of(8) - bytes as usize)?;
        let mut entries = Vec::new();
        while !list.is_empty() {
            entries.push(Ace::decode(&mut list)?);
        }
        let identities = (0..identities).map(|_| r.u64()).collect::<Result<_>>()?;
        Ok(LogAcl { count, flags, entries, identities, domains: text::decode_all(r, domains)? })
    }

    fn entry_bytes(&self) -> usize {
        self.entries.iter().map(Ace::length).sum()
    }

    pub(super) fn encode_counts(&self, w: &mut Writer<'_>) {
        let (domains, identities) = (self.domains.len() as u64, self.identities.len() as u64);
        w.u64s(&[self.count, domains, identities, self.entry_bytes() as u64, self.flags]);
    }

    pub(super) fn encode_data(&self, w: &mut Writer<'_>) {
        self.entries.iter().for_each(|ace| {
            assert_eq!(
                ace.is_long(),
                ace.objects.is_some(),
                "kind and flags say whether there are object types"
            );
            ace.encode(w);
        });
        w.zeros(self.entry_bytes().next_multiple_of(8) - self.entry_bytes());
        w.u64s(&self.identities);
        text::encode_all(&self.domains, w);
    }

    pub(super) fn data_length(&self) -> usize {
        self.entry_bytes().next_multiple_of(8) + self.identities.len() * 8 + text::length_all(&self.domains)
    }
}
