//! The entries of a space map, as segments of a vdev.
//!
//! `ondisk` knows the words; here their units become bytes, and their offsets, which count from the start of the region
//! the map describes, become places on the vdev. An entry outside of the region is damage.

use crate::ranges::Segment;
use ondisk::{SpaceAction, SpaceMapEntries, SpaceMapEntry, SpaceMapLog, SpaceRun};
use units::{Endian, Error, Result, Txg, VdevId};

/// One entry that is not a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) action: SpaceAction,
    /// Meaningful in the logs of the whole pool only.
    pub(crate) vdev: Option<VdevId>,
    pub(crate) segment: Segment,
}

/// Reads the entries of a map that describes `region`, in units of `1 << shift` bytes.
pub(crate) fn entries(bytes: &[u8], region: Segment, shift: u32) -> impl Iterator<Item = Result<Entry>> {
    SpaceMapEntries::new(bytes, Endian::NATIVE).filter_map(move |entry| match entry {
        Ok(SpaceMapEntry::Run(run)) => Some(locate(run, region, shift)),
        Ok(SpaceMapEntry::Debug { .. } | SpaceMapEntry::Padding) => None,
        Err(e) => Some(Err(e)),
    })
}

fn locate(run: SpaceRun, region: Segment, shift: u32) -> Result<Entry> {
    let SpaceRun { action, offset, len, vdev } = run;
    // An offset has 63 bits and a length 37: the sum cannot overflow.
    if offset + len > region.len() >> shift {
        return Err(Error::corrupt(format!(
            "space map: {len} units at {offset:#x} end outside of {region:?}"
        )));
    }
    Ok(Entry { action, vdev, segment: Segment::new(region.start + (offset << shift), len << shift) })
}

/// Entries to be appended to the map of a region.
#[derive(Debug)]
pub(crate) struct MapWriter {
    log: SpaceMapLog,
    region: Segment,
    shift: u32,
    txg: Txg,
    pass: u32,
}

impl MapWriter {
    pub(crate) fn new(log: SpaceMapLog, region: Segment, shift: u32, txg: Txg, pass: u32) -> MapWriter {
        MapWriter { log, region, shift, txg, pass }
    }

    /// Says when, then what; nothing when there are no segments.
    pub(crate) fn write(&mut self, action: SpaceAction, segments: impl IntoIterator<Item = Segment>) {
        let mut segments = segments.into_iter().peekable();
        if segments.peek().is_some() {
            self.log.debug(action, u16::try_from(self.pass).unwrap_or(u16::MAX), self.txg);
        }
        for segment in segments {
            assert!(self.region.contains(segment), "{segment:?} belongs to the map of {:?}", self.region);
            let offset = (segment.start - self.region.start) >> self.shift;
            self.log.run(SpaceRun { action, offset, len: segment.len() >> self.shift, vdev: None });
        }
    }

    pub(crate) fn finish(self) -> SpaceMapLog {
        self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_outside_of_its_region_is_an_error() {
        let region = Segment::new(1 << 24, 1 << 24);
        let read = |offset, len| {
            let mut log = SpaceMapLog::new(0, 4096, true);
            log.run(SpaceRun { action: SpaceAction::Free, offset, len, vdev: None });
            let bytes = log.to_bytes(Endian::NATIVE);
            entries(&bytes, region, 12).collect::<Result<Vec<_>>>()
        };
        let last = read(4095, 1).unwrap();
        assert_eq!(last[0].segment, Segment::new((1 << 25) - 4096, 4096));
        for (offset, len) in [(4096, 1), (4095, 2), (0, 4097), ((1 << 63) - 1, 1 << 36)] {
            assert_eq!(read(offset, len).unwrap_err().kind(), units::Kind::Corrupt, "{offset} {len}");
        }
    }

    #[test]
    fn segments_come_back_as_they_were_written() {
        let region = Segment::new(3 << 30, 1 << 30);
        let segments = [Segment::new(3 << 30, 512), Segment::new((3 << 30) + 4096, (1 << 30) - 8192)];
        for long in [false, true] {
            let log = SpaceMapLog::new(8, 512, long);
            let mut writer = MapWriter::new(log, region, 9, Txg(5), 1);
            writer.write(SpaceAction::Alloc, segments);
            writer.write(SpaceAction::Free, []);
            let bytes = writer.finish().to_bytes(Endian::NATIVE);
            let mut sum = crate::ranges::Ranges::<crate::ranges::Unwatched>::default();
            for entry in entries(&bytes, region, 9) {
                let entry = entry.unwrap();
                assert_eq!(entry.action, SpaceAction::Alloc);
                sum.add(entry.segment).unwrap();
            }
            assert_eq!(sum.iter().collect::<Vec<_>>(), segments, "long entries: {long}");
        }
    }
}
