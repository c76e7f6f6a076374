//! A block in columns, and back. Pure.
//!
//! Data columns are parts of the block; no byte is copied to split it. For parity, a column that is one sector shorter
//! than the others counts as if zeros followed.

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
    let mut parity: Vec<IoBuf> = map.columns[..map.parity].iter().map(|c| IoBuf::scratch(c.len())).collect();
    let mut slices: Vec<&mut [u8]> = parity.iter_mut().map(|p| &mut p[..]).collect();
    codec::parity::generate(&data, &mut slices);
    parity.into_iter().map(IoBuf::freeze).collect()
}

/// The block, from the columns that are there; `None` when they are too few.
pub(crate) fn rebuild(map: &Map, columns: &[Option<&[u8]>]) -> Option<IoBuf> {
    let (parity, data) = columns.split_at(map.parity);
    let lost = data.iter().filter(|d| d.is_none()).count();
    if lost > parity.iter().flatten().count() {
        return None;
    }
    let mut block = IoBuf::scratch(map.data().last()?.bytes.end);
    let mut rest = &mut block[..];
    let mut missing: Vec<&mut [u8]> = Vec::with_capacity(lost);
    for (column, bytes) in map.data().iter().zip(data) {
        let (place, behind) = rest.split_at_mut(column.len());
        rest = behind;
        match bytes {
            Some(bytes) => place.copy_from_slice(bytes),
            None => missing.push(place),
        }
    }
    if lost > 0 {
        codec::parity::reconstruct(data, parity, &mut missing).ok()?;
    }
    Some(block)
}

#[cfg(test)]
mod tests;
