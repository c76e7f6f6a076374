//! The commands that move data or wait for it.
//!
//! Large verifications and fillings go a piece at a time, so that one command holds no more memory than a transfer.

use crate::BLOCK;
use crate::cdb::{Blocks, Command, Compare};
use crate::device::Device;
use crate::report::cut;
use crate::sense::{Answer, Refusal, Sense};
use flow::Piece;
use std::sync::Arc;
use units::{Error, Result};
use world::{Buf, IoBuf, Pending};

/// A verification or filling goes this far at a time.
const STEP: u64 = 1 << 20;

/// How the end of a command tells that a unit failed.
pub(crate) fn failed(writing: bool) -> impl Fn(Error) -> Refusal {
    move |e| Refusal::Sense(Sense::of(e.kind(), writing))
}

/// The data of a command in one piece.
pub(crate) fn flatten(data: &[Buf]) -> Vec<u8> {
    data.iter().flat_map(|part| part.iter().copied()).collect()
}

/// Begins a command of this module; gives the data back when it is of another.
pub(crate) fn start(
    device: &Arc<Device>,
    command: Command,
    data: Vec<Buf>,
) -> std::result::Result<Pending<Answer>, Vec<Buf>> {
    let device = device.clone();
    let durable = |fua: bool| fua || !device.modes().write_cache;
    Ok(match command {
        Command::Read { blocks, fua } => Box::pin(read(device, blocks, fua)),
        Command::Write { blocks, fua, then: None } => {
            let durable = durable(fua);
            Box::pin(write(device, blocks, data, durable))
        }
        Command::Write { blocks, then: Some(compare), .. } => {
            Box::pin(write_and_verify(device, blocks, data, compare))
        }
        Command::Verify { blocks, compare } => Box::pin(verify(device, blocks, flatten(&data), compare)),
        Command::Prefetch { blocks } => {
            // The unit may have become smaller since the command was checked: nothing is fetched past its end.
            let left = (device.unit.size() / BLOCK).saturating_sub(blocks.lba);
            let count = if blocks.count == 0 { left } else { blocks.count.min(left) };
            if count > 0 {
                device.unit.prefetch(blocks.offset(), count * BLOCK);
            }
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
        Command::Synchronize { at_once, .. } => synchronize(&device, at_once),
        Command::Unmap { .. } => {
            let durable = durable(false);
            Box::pin(unmap(device, flatten(&data), durable))
        }
        Command::WriteSame { blocks, no_data, .. } => {
            let durable = durable(false);
            let pattern = if no_data { vec![0; BLOCK as usize] } else { flatten(&data) };
            Box::pin(write_same(device, blocks, pattern, durable))
        }
        Command::CompareAndWrite { blocks, fua } => {
            let durable = durable(fua);
            Box::pin(compare_and_write(device, blocks, flatten(&data), durable))
        }
        Command::OrWrite { blocks, fua } => {
            let durable = durable(fua);
            Box::pin(or_write(device, blocks, flatten(&data), durable))
        }
        Command::GetLbaStatus { lba, room } => Box::pin(lba_status(device, lba, room)),
        _ => return Err(data),
    })
}

/// A read that waits. With FUA what it returns is on the medium.
async fn read(device: Arc<Device>, blocks: Blocks, fua: bool) -> Answer {
    if blocks.count == 0 {
        return Ok(Vec::new());
    }
    if fua && device.modes().write_cache {
        device.unit.flush().await.map_err(failed(false))?;
    }
    device.unit.read(blocks.offset(), blocks.len() as u32).await.map_err(failed(false))
}

async fn write(device: Arc<Device>, blocks: Blocks, data: Vec<Buf>, durable: bool) -> Answer {
    if blocks.count > 0 {
        let _turn = device.range_locks.take(blocks.lba..blocks.lba + blocks.count).await;
        let _change = device.tokens.change(blocks);
        device.unit.write(blocks.offset(), data, durable).await.map_err(failed(true))?;
    }
    Ok(Vec::new())
}

async fn write_and_verify(device: Arc<Device>, blocks: Blocks, data: Vec<Buf>, compare: Compare) -> Answer {
    let expected = if compare == Compare::Each { flatten(&data) } else { Vec::new() };
    write(device.clone(), blocks, data, true).await?;
    verify(device, blocks, expected, compare).await
}

async fn verify(device: Arc<Device>, blocks: Blocks, expected: Vec<u8>, compare: Compare) -> Answer {
    let mut done = 0;
    while done < blocks.len() {
        let step = STEP.min(blocks.len() - done);
        let pieces = device.unit.read(blocks.offset() + done, step as u32).await.map_err(failed(false))?;
        let differs = match compare {
            Compare::Medium => None,
            Compare::Each => first_difference(&pieces, &expected[done as usize..(done + step) as usize]),
            Compare::Same => {
                let repeated = expected.repeat((step / BLOCK) as usize);
                first_difference(&pieces, &repeated)
            }
        };
        if let Some(at) = differs {
            return Err(Sense::miscompare(done + at as u64).into());
        }
        done += step;
    }
    Ok(Vec::new())
}

/// The offset of the first byte of `pieces` that is not as expected.
fn first_difference(pieces: &[Piece], mut expected: &[u8]) -> Option<usize> {
    let mut before = 0;
    for piece in pieces {
        let (part, rest) = expected.split_at(piece.len().min(expected.len()));
        let at = match piece {
            Piece::Data(buf) if buf[..] == *part => None,
            Piece::Data(buf) => buf.iter().zip(part).position(|(a, b)| a != b),
            Piece::Hole(_) => part.iter().position(|&b| b != 0),
        };
        if let Some(at) = at {
            return Some(before + at);
        }
        before += part.len();
        expected = rest;
    }
    None
}

fn synchronize(device: &Arc<Device>, at_once: bool) -> Pending<Answer> {
    let flushing = device.unit.flush();
    if at_once {
        // A failure is told by the flush that waits for the same data.
        world::spawn(async move {
            let _ = flushing.await;
        });
        return Box::pin(std::future::ready(Ok(Vec::new())));
    }
    Box::pin(async move { flushing.await.map(|()| Vec::new()).map_err(failed(true)) })
}

async fn unmap(device: Arc<Device>, list: Vec<u8>, durable: bool) -> Answer {
    let ranges = unmap_ranges(&list, &device)?;
    for blocks in ranges {
        let _turn = device.range_locks.take(blocks.lba..blocks.lba + blocks.count).await;
        let _change = device.tokens.change(blocks);
        device.unit.zero(blocks.offset(), blocks.len(), durable).await.map_err(failed(true))?;
    }
    Ok(Vec::new())
}

/// The ranges of an UNMAP; all are checked before any is given back.
fn unmap_ranges(list: &[u8], device: &Device) -> std::result::Result<Vec<Blocks>, Sense> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let head: &[u8; 8] = list.first_chunk().ok_or(Sense::LIST_LENGTH)?;
    let len = usize::from(u16::from_be_bytes([head[2], head[3]])) / 16 * 16;
    let descriptors = list.get(8..8 + len).ok_or(Sense::LIST_LENGTH)?;
    let (limits, all) = (&device.limits, device.unit.size() / BLOCK);
    let mut ranges = Vec::new();
    let mut total = 0;
    for (index, descriptor) in descriptors.chunks_exact(16).enumerate() {
        let number = |range: std::ops::Range<usize>| {
            descriptor[range].iter().fold(0u64, |n, &b| n << 8 | u64::from(b))
        };
        let blocks = Blocks { lba: number(0..8), count: number(8..12) };
        if blocks.lba.checked_add(blocks.count).is_none_or(|end| end > all) {
            return Err(Sense::OUT_OF_RANGE);
        }
        total += blocks.count;
        if total > u64::from(limits.unmap) || index >= limits.unmap_ranges as usize {
            return Err(Sense::parameter(8 + 16 * index as u16));
        }
        if blocks.count > 0 {
            ranges.push(blocks);
        }
    }
    Ok(ranges)
}

async fn write_same(device: Arc<Device>, blocks: Blocks, pattern: Vec<u8>, durable: bool) -> Answer {
    let _turn = device.range_locks.take(blocks.lba..blocks.lba + blocks.count).await;
    let _change = device.tokens.change(blocks);
    let unit = &device.unit;
    if pattern.iter().all(|&b| b == 0) {
        unit.zero(blocks.offset(), blocks.len(), durable).await.map_err(failed(true))?;
        return Ok(Vec::new());
    }
    let end = blocks.offset() + blocks.len();
    let mut at = blocks.offset();
    while at < end {
        let step = STEP.min(end - at);
        let bytes = pattern.repeat((step / BLOCK) as usize);
        unit.write(at, parts(at, &bytes, unit.block_size()), false).await.map_err(failed(true))?;
        at += step;
    }
    if durable {
        unit.flush().await.map_err(failed(true))?;
    }
    Ok(Vec::new())
}

async fn compare_and_write(device: Arc<Device>, blocks: Blocks, data: Vec<u8>, durable: bool) -> Answer {
    let (expected, new) = data.split_at(data.len() / 2);
    change(&device, blocks, durable, |pieces| match first_difference(pieces, expected) {
        Some(at) => Err(Sense::miscompare(at as u64)),
        None => Ok(new.to_vec()),
    })
    .await
}

async fn or_write(device: Arc<Device>, blocks: Blocks, mut data: Vec<u8>, durable: bool) -> Answer {
    change(&device, blocks, durable, |pieces| {
        let mut at = 0;
        for piece in pieces {
            if let Piece::Data(buf) = piece {
                data[at..at + buf.len()].iter_mut().zip(buf.iter()).for_each(|(a, b)| *a |= b);
            }
            at += piece.len();
        }
        Ok(std::mem::take(&mut data))
    })
    .await
}

/// Reads blocks and writes what `decide` makes of them, as one step.
async fn change(
    device: &Device,
    blocks: Blocks,
    durable: bool,
    decide: impl FnOnce(&[Piece]) -> std::result::Result<Vec<u8>, Sense>,
) -> Answer {
    if blocks.count == 0 {
        return Ok(Vec::new());
    }
    let _turn = device.range_locks.take(blocks.lba..blocks.lba + blocks.count).await;
    let unit = &device.unit;
    let pieces = unit.read(blocks.offset(), blocks.len() as u32).await.map_err(failed(false))?;
    let new = decide(&pieces)?;
    let parts = parts(blocks.offset(), &new, unit.block_size());
    let _change = device.tokens.change(blocks);
    unit.write(blocks.offset(), parts, durable).await.map_err(failed(true))?;
    Ok(Vec::new())
}

/// `bytes`, to be written at `offset`, in buffers cut where the unit's blocks begin.
fn parts(offset: u64, bytes: &[u8], block_size: u32) -> Vec<Buf> {
    let block = u64::from(block_size.max(4096));
    let (mut parts, mut rest) = (Vec::new(), bytes);
    let mut room = (block - offset % block) as usize;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(room.min(rest.len()));
        parts.push(IoBuf::copy_from(part).freeze());
        (rest, room) = (after, block as usize);
    }
    parts
}

/// At most so many descriptors in one status.
const MAX_EXTENTS: usize = 256;

async fn lba_status(device: Arc<Device>, lba: u64, room: usize) -> Answer {
    let most = (room.saturating_sub(8) / 16).clamp(1, MAX_EXTENTS);
    let size = device.unit.size() / BLOCK * BLOCK;
    let offset = lba * BLOCK;
    let found: Result<_> = device.unit.extents(offset, size.saturating_sub(offset), most).await;
    let mut list = vec![0; 8];
    let mut at = lba;
    for extent in found.map_err(failed(false))? {
        let mut left = extent.len / BLOCK;
        while left > 0 && (list.len() - 8) / 16 < most {
            let count = u32::try_from(left).unwrap_or(u32::MAX);
            list.extend(at.to_be_bytes());
            list.extend(count.to_be_bytes());
            list.extend([u8::from(extent.hole), 0, 0, 0]);
            at += u64::from(count);
            left -= u64::from(count);
        }
    }
    let len = (list.len() - 4) as u32;
    list[..4].copy_from_slice(&len.to_be_bytes());
    Ok(cut(list, room))
}
