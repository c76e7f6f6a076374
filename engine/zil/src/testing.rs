//! A device in memory with logs on it, for the tests of this crate.

use crate::chain::Source;
use crate::claim::Claimer;
use codec::checksum::sealed;
use ondisk::zil::Write;
use ondisk::{BlockPointer, Dva, LogRecord, ObjectType, Plain, Record, Trailer, Writer, ZilChain, ZilHeader};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use units::{
    Checksum, Compression, Endian, Error, Kind, Lsize, ObjectId, ObjsetId, Psize, Result, Sectors, Txg,
    VdevId,
};
use world::{Buf, Pending};
use zio::Bookmark;

pub const OBJSET: ObjsetId = ObjsetId(54);
/// Bytes of each block of a log.
pub const SIZE: usize = 4096;

/// Log blocks by their place; each place is as long as a block.
#[derive(Default)]
pub struct Device {
    pub blocks: BTreeMap<u64, Vec<u8>>,
    /// Places that cannot be asked.
    pub gone: BTreeSet<u64>,
    pub claimed: Mutex<Vec<u64>>,
    pub spread: Mutex<Vec<u64>>,
}

/// How a log is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub checksum: Checksum,
    pub endian: Endian,
}

pub const STYLES: [Style; 4] = [
    Style { checksum: Checksum::Zilog2, endian: Endian::Little },
    Style { checksum: Checksum::Zilog2, endian: Endian::Big },
    Style { checksum: Checksum::Zilog, endian: Endian::Little },
    Style { checksum: Checksum::Zilog, endian: Endian::Big },
];

/// A pointer to the block `number` of the log `guid` at a place.
pub fn pointer(style: Style, guid: u64, number: u64, place: u64, birth: Txg) -> BlockPointer {
    let dva = Dva {
        vdev: VdevId(0),
        asize: Sectors(SIZE as u64 / 512),
        offset: Sectors(place * SIZE as u64 / 512),
        gang: false,
    };
    BlockPointer::Plain(Plain {
        dvas: [dva, Dva::EMPTY, Dva::EMPTY],
        lsize: Lsize(SIZE as u64),
        psize: Psize(SIZE as u64),
        compression: Compression::Off,
        checksum_kind: style.checksum,
        kind: ObjectType::INTENT_LOG,
        level: 0,
        birth,
        physical_birth: Txg::NONE,
        fill: 0,
        checksum: [guid, 7, OBJSET.0, number],
        endian: style.endian,
        dedup: false,
        rewritten: false,
        crypt: None,
    })
}

pub fn record(seq: u64, txg: u64, record: Record<'_>) -> LogRecord<'_> {
    LogRecord { txg: Txg(txg), seq, ignores_case: false, record }
}

/// A record without much in it.
pub fn write(seq: u64, txg: u64) -> LogRecord<'static> {
    record(seq, txg, Record::Write(Write::copied(ObjectId(1), seq * 512, b"data")))
}

impl Device {
    /// Puts a block of a log where `at` points, with `next` behind it.
    pub fn put(&mut self, style: Style, at: &BlockPointer, next: &BlockPointer, records: &[LogRecord<'_>]) {
        let bytes: Vec<u8> = records
            .iter()
            .flat_map(|record| {
                let mut bytes = vec![0; record.length()];
                record.encode(&mut Writer::new(&mut bytes, style.endian));
                bytes
            })
            .collect();
        self.put_raw(style, at, next, &bytes, None);
    }

    /// The same with bytes in place of records, and with a lie about how many are in use.
    pub fn put_raw(
        &mut self,
        style: Style,
        at: &BlockPointer,
        next: &BlockPointer,
        body: &[u8],
        used: Option<u64>,
    ) {
        let is_new = style.checksum == Checksum::Zilog2;
        let mut block = vec![0; SIZE];
        let (chain_at, body_at) = if is_new { (0, ZilChain::SIZE) } else { (SIZE - ZilChain::SIZE, 0) };
        block[body_at..body_at + body.len()].copy_from_slice(body);
        let used = used.unwrap_or((body.len() + body_at) as u64);
        let chain = ZilChain { next: next.clone(), used, trailer: Trailer::default() };
        chain.encode(&mut Writer::new(&mut block[chain_at..chain_at + ZilChain::SIZE], style.endian));
        let words = at.as_plain().unwrap().checksum;
        sealed::seal(style.checksum, style.endian, &mut block, words, None);
        self.blocks.insert(place(at), block);
    }

    /// A log of `blocks` blocks at places 1, 2 ..., of two records each; the block after them was never written.
    pub fn with_log(style: Style, blocks: u64) -> (Device, ZilHeader) {
        let mut device = Device::default();
        let at = |number| pointer(style, 99, number, number, Txg(10));
        for number in 1..=blocks {
            device.put(
                style,
                &at(number),
                &at(number + 1),
                &[write(2 * number - 1, 10), write(2 * number, 10)],
            );
        }
        (device, ZilHeader { log: at(1), ..ZilHeader::default() })
    }
}

pub fn place(bp: &BlockPointer) -> u64 {
    bp.as_plain().unwrap().dvas[0].offset.bytes() / SIZE as u64
}

impl Source for Device {
    fn read_log(&self, bp: &BlockPointer, _at: Bookmark, _must: bool) -> Pending<Result<Buf>> {
        let plain = bp.as_plain().unwrap();
        let found = match self.blocks.get(&place(bp)) {
            _ if self.gone.contains(&place(bp)) => Err(Error::new(Kind::Io, "read block")),
            Some(block) if !plain.checksum_kind.is_self_contained() => Ok(Buf::copy_from(block)),
            Some(block) if sealed::verify(plain.checksum_kind, block, plain.checksum, false).is_some() => {
                Ok(Buf::copy_from(block))
            }
            _ => Err(Error::new(Kind::Checksum, "read block")),
        };
        Box::pin(async move { found })
    }
}

impl Claimer for Device {
    fn claim(&self, bp: &BlockPointer, _txg: Txg) -> Pending<Result<()>> {
        self.claimed.lock().unwrap().push(place(bp));
        Box::pin(async { Ok(()) })
    }

    fn spread(&self, bp: &BlockPointer, _at: Bookmark) -> Pending<Result<()>> {
        assert!(self.blocks.contains_key(&place(bp)), "it was written");
        self.spread.lock().unwrap().push(place(bp));
        Box::pin(async { Ok(()) })
    }
}
