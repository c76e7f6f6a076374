//! The pool's history: who did what to it, and when, kept in the pool itself.
//!
//! An object of the MOS holds records one after another, each an nvlist packed in native form behind its length in
//! eight bytes
//! little endian. The record of `zpool create` is kept for ever; the others share a ring ([`ring`]) in which the
//! newest push out the oldest.
//!
//! There are two sorts: a *command* is what somebody typed, an *internal* record is what the pool did, with its txg and
//! dataset. A command is known by its pair `history command`.
//!
//! Not here: which events are worth a record. Appending happens in syncing context only, so one at a time.

mod ring;

use dmu::{NewObject, ObjSet, Object, Tx};
use ondisk::history::key;
use ondisk::{HistoryPhys, NvList, NvValue, ObjectType};
use units::{Error, ObjectId, Result};
use world::WallTime;

use ring::Extent;

/// The length in front of a record.
const LENGTH: u64 = 8;
/// Commands carry their arguments, at most a property list: nothing sane is longer.
const MAX_RECORD: u64 = 1 << 20;

/// Bytes of a block, the last of which is written anew for each record. OpenZFS makes them of 128K.
const BLOCK: u32 = 16 << 10;

/// Where no zones are, commands are of this one.
const ZONE: &str = "linux";

/// Where and when something was done.
#[derive(Clone, Debug)]
pub struct Stamp {
    pub host: String,
    pub time: WallTime,
}

/// The record of a command line.
pub fn command(line: &str, uid: u64, stamp: &Stamp) -> NvList {
    NvList::new()
        .with(key::COMMAND, NvValue::String(line.into()))
        .with(key::WHO, NvValue::Uint64(uid))
        .with(key::TIME, NvValue::Uint64(stamp.time.seconds))
        .with(key::HOST, NvValue::String(stamp.host.clone()))
        .with(key::ZONE, NvValue::String(ZONE.into()))
}

/// The record of something the pool did; `dataset` is its name and object.
pub fn internal(
    name: &str,
    text: &str,
    dataset: Option<(&str, ObjectId)>,
    txg: units::Txg,
    stamp: &Stamp,
) -> NvList {
    let mut record = NvList::new();
    if let Some((name, id)) = dataset {
        record.set(key::DATASET_NAME, NvValue::String(name.into()));
        record.set(key::DATASET_ID, NvValue::Uint64(id.0));
    }
    record
        .with(key::INTERNAL_TEXT, NvValue::String(text.into()))
        .with(key::INTERNAL_NAME, NvValue::String(name.into()))
        .with(key::TXG, NvValue::Uint64(txg.0))
        .with(key::TIME, NvValue::Uint64(stamp.time.seconds))
        .with(key::HOST, NvValue::String(stamp.host.clone()))
}

/// The history object of a pool.
#[derive(Clone, Debug)]
pub struct History {
    object: Object,
}

impl History {
    pub async fn open(mos: &ObjSet, id: ObjectId) -> Result<History> {
        let history = History { object: mos.object(id).await? };
        history.ring()?;
        Ok(history)
    }

    /// A history with nothing in it, as large as befits a pool of `pool_size` bytes.
    pub async fn create(mos: &ObjSet, tx: &Tx, pool_size: u64) -> Result<History> {
        let ring = ring::for_pool(pool_size).to_bonus();
        let new =
            NewObject::new(ObjectType::SPA_HISTORY, BLOCK).with_bonus(ObjectType::SPA_HISTORY_OFFSETS, ring);
        Ok(History { object: mos.allocate(tx, new).await? })
    }

    pub fn id(&self) -> ObjectId {
        self.object.id()
    }

    fn ring(&self) -> Result<HistoryPhys> {
        let ring = HistoryPhys::from_bonus(&self.object.bonus())?;
        ring::check(&ring).map(|()| ring)
    }

    /// Adds a record at the end, giving up the oldest ones if there is no room.
    pub async fn append(&self, tx: &Tx, record: &NvList) -> Result<()> {
        let packed = record.encode_native();
        let bytes = [&(packed.len() as u64).to_le_bytes()[..], &packed].concat();
        let mut ring = self.ring()?;
        let len = bytes.len() as u64;
        if len > MAX_RECORD.min(ring.max_offset / 4) {
            return Err(Error::invalid(format!("a history record of {len} bytes is too long")));
        }
        while !ring::fits(&ring, len) {
            let oldest = self.record_len(&ring, ring.begin).await?;
            ring.begin += LENGTH + oldest;
            ring.records_lost = ring.records_lost.saturating_add(1);
        }
        let [first, second] = ring::place(&ring, ring.end, len);
        let (head, tail) = bytes.split_at(first.len as usize);
        self.object.write(tx, first.offset, head).await?;
        self.object.write(tx, second.offset, tail).await?;
        ring.end += len;
        // What is written up to the first command is the story of the pool's creation.
        if ring.create_len == 0 && record.has(key::COMMAND) {
            ring.create_len = ring.end;
            ring.begin = ring.end;
        }
        self.object.set_bonus(tx, ring.to_bonus())
    }

    /// Every record that is still there, oldest first.
    pub async fn records(&self) -> Result<Vec<NvList>> {
        let ring = self.ring()?;
        let mut records = Vec::new();
        for (mut at, end) in [(0, ring.create_len), (ring.begin, ring.end)] {
            while at < end {
                let len = self.record_len(&ring, at).await?;
                let body = self.read(&ring, at + LENGTH, len).await?;
                records.push(NvList::decode(&body).map_err(|e| e.at(format!("at {at}")))?);
                at += LENGTH + len;
            }
        }
        Ok(records)
    }

    async fn record_len(&self, ring: &HistoryPhys, at: u64) -> Result<u64> {
        let bytes = self.read(ring, at, LENGTH).await?;
        let len = u64::from_le_bytes(bytes.try_into().expect("eight bytes were asked for"));
        let end = if at < ring.create_len { ring.create_len } else { ring.end };
        if len == 0 || len > MAX_RECORD || at + LENGTH + len > end {
            return Err(Error::corrupt(format!("history record of {len} bytes at {at}")));
        }
        Ok(len)
    }

    async fn read(&self, ring: &HistoryPhys, at: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len as usize);
        for Extent { offset, len } in ring::place(ring, at, len) {
            if len > 0 {
                bytes.extend_from_slice(&self.object.read(offset, len as usize).await?);
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
