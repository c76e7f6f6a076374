//! What the records of the intent log mean for a volume: writes, and ranges that became zeros.

use crate::{DATA, PROPERTIES, SIZE};
use dmu::{ObjSet, Object, Tx};
use ondisk::Record;
use ondisk::zil::{Truncate, Write};
use std::future::Future;
use std::pin::Pin;
use units::{Error, ObjectId, Result};
use world::Buf;
use zap::Zap;

/// Replays the log of one volume. It has no other opener.
#[derive(Debug)]
pub struct Replay {
    data: Object,
    size: u64,
}

impl Replay {
    pub async fn open(set: &ObjSet) -> Result<Replay> {
        let properties = Zap::open(set.object(PROPERTIES).await?);
        let size = properties.lookup_u64(SIZE).await?;
        let size = size.ok_or_else(|| Error::corrupt("no entry 'size' among the volume's properties"))?;
        Ok(Replay { data: set.object(DATA).await?, size })
    }

    /// How much of a range lies inside of the volume. What does not was written while the volume changed its size, by a
    /// txg that the record's did not outlive: there is no place for it any more, or not yet.
    fn inside(&self, object: ObjectId, offset: u64, length: u64) -> Result<u64> {
        if object != DATA || offset.checked_add(length).is_none() {
            let what = format!("{length} bytes at {offset} of object {object} of a volume");
            return Err(Error::corrupt(what));
        }
        Ok(length.min(self.size.saturating_sub(offset)))
    }

    async fn write(&self, tx: &Tx, write: &Write<'_>, block: Option<&Buf>) -> Result<()> {
        let inside = self.inside(write.object, write.offset, write.length)?;
        if inside == 0 {
            return Ok(());
        }
        let Some(block) = block else {
            return self.data.write(tx, write.offset, &write.data[..inside as usize]).await;
        };
        // The block that was written in place of the data is the whole block as it was then, and of it more may have
        // been promised than this one range: the records of the rest pointed to the same block.
        let size = block.len() as u64;
        let offset = if write.length < size { write.offset - write.offset % size } else { write.offset };
        if write.length > size || offset.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(Error::corrupt(format!("a block of {size} bytes for {} bytes", write.length)));
        }
        self.data.write(tx, offset, block).await
    }

    async fn truncate(&self, tx: &Tx, truncate: &Truncate) -> Result<()> {
        let Truncate { object, offset, length } = *truncate;
        let inside = self.inside(object, offset, length)?;
        self.data.free_range(tx, offset, inside).await
    }
}

impl zil::Replayer for Replay {
    fn replay<'a>(
        &'a self,
        tx: &'a Tx,
        record: &'a Record<'a>,
        block: Option<&'a Buf>,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
            match record {
                Record::Write(write) => self.write(tx, write, block).await,
                Record::Truncate(truncate) => self.truncate(tx, truncate).await,
                other => Err(Error::corrupt(format!("{} in the log of a volume", other.kind().name()))),
            }
        })
    }
}
