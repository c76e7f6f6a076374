//! A block in columns, and back. Pure.
//!
//! Data columns are parts of the block; no byte is copied to split it. For parity, a column that is one sector shorter
//! than the others counts as if zeros followed.

mod galois;

use super::map::Map;
use world::{Buf, IoBuf};

/// What each column holds, parity first.
pub(crate) fn split(map: &Map, block: &Buf) -> Vec<Buf> {
    let data: Vec<Buf> = map.data().iter().map(|c| block.slice(c.bytes.clone())).collect();
    let mut columns = if data.len() == 1 {
        // Each parity of a single column is that column.
        vec![data[0].clone(); map.parity]
    } else {
        parity(map, &data)
    };
    columns.extend(data);
    columns
}

fn parity(map: &Map, data: &[Buf]) -> Vec<Buf> {
    let data: Vec<&[u8]> = data.iter().map(|d| &d[..]).collect();
    let mut parity: Vec<IoBuf> = map.columns[..map.parity].iter().map(|c| IoBuf::zeroed(c.len())).collect();
    galois::generate(&data, &mut parity);
    parity.into_iter().map(IoBuf::freeze).collect()
}

/// The block, from the columns that are there; `None` when they are too few.
pub(crate) fn rebuild(map: &Map, columns: &[Option<&[u8]>]) -> Option<IoBuf> {
    let missing: Vec<usize> = (0..map.data().len()).filter(|&d| columns[map.parity + d].is_none()).collect();
    let (parity, data) = columns.split_at(map.parity);
    if missing.len() > parity.iter().flatten().count() {
        return None;
    }
    let mut block = IoBuf::zeroed(map.data().last()?.bytes.end);
    for (column, bytes) in map.data().iter().zip(data) {
        if let Some(bytes) = bytes {
            block[column.bytes.clone()].copy_from_slice(bytes);
        }
    }
    if !missing.is_empty() {
        let lens: Vec<usize> = map.data().iter().map(|c| c.len()).collect();
        for (d, bytes) in galois::reconstruct(parity, data, &lens, &missing) {
            let place = map.data()[d].bytes.clone();
            block[place.clone()].copy_from_slice(&bytes[..place.len()]);
        }
    }
    Some(block)
}

#[cfg(test)]
mod tests;
