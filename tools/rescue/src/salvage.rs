//! The data and attributes of a file, as far as they can be read.
//!
//! ```text
//!   a chunk at a time ──fails──▶ block by block ──fails──▶ again, if a daemon writes to the pool ──fails──▶ missing
//! ```
//!
//! Holes are told apart from data and cost nothing, unless what tells them apart is damaged too.

use crate::session::Session;
use crate::text;
use std::ops::Range;
use units::Result;
use zpl::Node;

const CHUNK: u64 = 1 << 20;
/// After so many blocks in a row that cannot be read the rest of the file is given up: its size may be a lie.
const GIVE_UP: u64 = 1 << 16;

/// A part of a file.
#[derive(Debug)]
pub enum Part<'a> {
    Data(&'a [u8]),
    /// So many zeros that are stored nowhere.
    Hole(u64),
    /// So many bytes that could not be read.
    Missing(u64),
}

/// Where the data of a file of `size` bytes are. What cannot be told apart counts as data.
pub async fn extents(node: &Node, size: u64) -> Vec<Range<u64>> {
    let block = block_size(node).await;
    let mut all: Vec<Range<u64>> = Vec::new();
    let (mut at, mut unknown) = (0, 0);
    while at < size && unknown < GIVE_UP {
        let data = match node.seek_data(at).await {
            Ok(Some(data)) => data,
            Ok(None) => break,
            Err(_) => at,
        };
        let end = match node.seek_hole(data).await {
            Ok(Some(end)) => end,
            Ok(None) => break,
            Err(_) => {
                unknown += 1;
                data + block
            }
        };
        let end = end.min(size);
        match all.last_mut() {
            Some(last) if last.end == data => last.end = end,
            _ => all.push(data..end),
        }
        at = end;
    }
    all
}

async fn block_size(node: &Node) -> u64 {
    u64::from(node.stat().await.map_or(512, |stat| stat.block_size)).max(512)
}

/// Feeds a range of a file to `sink`, from its first byte to its last, and complains of what is missing under the name
/// `shown`. An error is the sink's own.
pub async fn read(
    session: &mut Session,
    node: &Node,
    range: Range<u64>,
    shown: &str,
    mut sink: impl FnMut(u64, Part<'_>) -> Result<()> + Send,
) -> Result<()> {
    let mut node = node.clone();
    let block = block_size(&node).await;
    let mut lost = Lost::default();
    let (mut at, size) = (range.start, range.end);
    while at < size {
        let data = match node.seek_data(at).await {
            Ok(Some(data)) => data.min(size),
            Ok(None) => size,
            Err(_) => at,
        };
        if data > at {
            sink(at, Part::Hole(data - at))?;
            at = data;
            continue;
        }
        let end = match node.seek_hole(at).await {
            Ok(Some(end)) => end.min(size),
            _ => size,
        };
        let chunk = (end - at).min(CHUNK.max(block)) as usize;
        if let Ok(bytes) = node.read(at, chunk).await
            && !bytes.is_empty()
        {
            lost.run = 0;
            session.output.bytes_done(bytes.len() as u64);
            sink(at, Part::Data(&bytes))?;
            at += bytes.len() as u64;
            continue;
        }
        let stop = (at + chunk as u64).min(size);
        while at < stop {
            let len = (block - at % block).min(stop - at);
            let mut read = node.read(at, len as usize).await;
            if read.is_err()
                && let Some(now) = session.again(&node).await
            {
                node = now;
                read = node.read(at, len as usize).await;
            }
            let mut here = len;
            match read {
                Ok(bytes) if bytes.len() as u64 == len => {
                    lost.run = 0;
                    session.output.bytes_done(len);
                    sink(at, Part::Data(&bytes))?;
                }
                other => {
                    lost.run += 1;
                    if lost.run >= GIVE_UP {
                        here = size - at;
                    }
                    let why = other.err().map_or_else(|| "the file ends before".into(), |e| e.to_string());
                    lost.add(at, here, why);
                    sink(at, Part::Missing(here))?;
                }
            }
            at += here;
        }
    }
    lost.tell(session, shown);
    Ok(())
}

/// The extended attributes of a file that can be read, with their names; for the others there is a complaint each.
pub async fn xattrs(session: &mut Session, node: &Node, shown: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let names = match session.read(node, |node| async move { node.xattr_names().await }).await {
        Ok(names) => names,
        Err(e) => {
            session.output.complain(format!("cannot read the extended attributes of '{shown}': {e}"));
            return Vec::new();
        }
    };
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        let wanted = &name;
        match session.read(node, |node| async move { node.xattr(wanted).await }).await {
            Ok(value) => all.extend(value.map(|value| (name, value))),
            Err(e) => {
                let name = text::path(&name);
                session.output.complain(format!("'{shown}': extended attribute {name} is missing: {e}"));
            }
        }
    }
    all
}

/// What could not be read.
#[derive(Debug, Default)]
struct Lost {
    ranges: Vec<(u64, u64, String)>,
    /// Blocks in a row.
    run: u64,
}

impl Lost {
    fn add(&mut self, at: u64, len: u64, why: String) {
        match self.ranges.last_mut() {
            Some((start, n, _)) if *start + *n == at => *n += len,
            _ => self.ranges.push((at, len, why)),
        }
    }

    fn tell(&self, session: &mut Session, shown: &str) {
        for (at, len, why) in &self.ranges {
            let last = at + len - 1;
            session.output.complain(format!("'{shown}': bytes {at} to {last} are missing: {why}"));
        }
    }
}
