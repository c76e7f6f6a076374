//! Reading the labels of a device.

use super::part;
use codec::checksum::sealed::Copies;
use futures_util::future::join_all;
use ondisk::label::{LABELS, NVLIST_OFFSET, NVLIST_SIZE};
use ondisk::{LabelLayout, NvList, PoolState};
use std::sync::Arc;
use units::{Guid, Txg};
use world::{Disk, IoBuf};

/// The labels of one device that are valid, with their number.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    pub valid: Vec<(u64, NvList)>,
}

/// Reads all four. A device that is too small or cannot be read has none.
pub async fn read_labels(disk: &Arc<dyn Disk>) -> Labels {
    let Some(layout) = LabelLayout::new(disk.geometry().size) else { return Labels::default() };
    let parts = (0..LABELS).map(|index| async move {
        let at = layout.label(index) + NVLIST_OFFSET;
        read_part(disk, at, NVLIST_SIZE).await.map(|bytes| (index, at, bytes))
    });
    let parts = join_all(parts).await;
    let mut copies = Copies::default();
    let config = |(index, at, bytes): (u64, u64, IoBuf)| {
        part::decode_config(&bytes, at, &mut copies).map(|config| (index, config))
    };
    Labels { valid: parts.into_iter().flatten().filter_map(config).collect() }
}

impl Labels {
    pub fn is_empty(&self) -> bool {
        self.valid.is_empty()
    }

    /// The newest configuration that is not newer than `limit`. Those of spares and cache devices have no txg, that of
    /// a device not yet in use has txg 0: when there are only such, the first is as good as any.
    pub fn best(&self, limit: Option<Txg>) -> Option<&NvList> {
        let txg = |config: &NvList| config.opt_u64("txg").ok().flatten().unwrap_or(0);
        let configs = || self.valid.iter().map(|(_, config)| config);
        let allowed = configs().filter(|c| limit.is_none_or(|limit| txg(c) <= limit.0) && txg(c) > 0);
        // Of equals the first, as a reader that stops at the first would.
        let newest = allowed.reduce(|best, c| if txg(c) > txg(best) { c } else { best });
        newest.or_else(|| configs().find(|c| txg(c) == 0))
    }

    /// The pool that this device belongs to, if any.
    pub fn owner(&self) -> Option<Owner> {
        let config = self.best(None)?;
        Some(Owner {
            state: config.u64("state").ok().and_then(PoolState::from_code)?,
            pool: config.guid("pool_guid").ok(),
            name: config.str("name").ok().map(str::to_string),
            leaf: config.guid("guid").ok()?,
            txg: Txg(config.opt_u64("txg").ok().flatten().unwrap_or(0)),
        })
    }
}

/// What a label says in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub state: PoolState,
    /// Spares and cache devices name no pool.
    pub pool: Option<Guid>,
    pub name: Option<String>,
    pub leaf: Guid,
    pub txg: Txg,
}

impl Owner {
    /// Why a new pool may not take the device without force; `None` when it may.
    pub fn objection(&self) -> Option<String> {
        let name = self.name.as_deref().unwrap_or("?");
        match self.state {
            // A label of txg 0 was never made part of a pool.
            PoolState::Active if self.txg == Txg::NONE => None,
            PoolState::Active => Some(format!("is part of active pool '{name}'")),
            PoolState::Exported => Some(format!("is part of exported pool '{name}'")),
            PoolState::Spare => Some("is reserved as a hot spare".into()),
            PoolState::L2Cache => Some("is a cache device".into()),
            PoolState::Destroyed => None,
        }
    }
}

pub(super) async fn read_part(disk: &Arc<dyn Disk>, at: u64, len: u64) -> Option<IoBuf> {
    let (buf, result) = disk.read(at, IoBuf::scratch(len as usize)).await;
    result.ok().map(|()| buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(txgs: &[Option<u64>]) -> Labels {
        let config = |(i, txg): (usize, &Option<u64>)| {
            let config = NvList::new().with("guid", i as u64 + 1).with("state", 0u64).with("name", "tank");
            (i as u64, txg.map_or(config.clone(), |txg| config.with("txg", txg)))
        };
        Labels { valid: txgs.iter().enumerate().map(config).collect() }
    }

    #[test]
    fn the_newest_label_counts_that_is_not_newer_than_the_uberblock() {
        let chosen = |txgs: &[Option<u64>], limit: Option<u64>| {
            labels(txgs).best(limit.map(Txg)).map(|c| c.u64("guid").unwrap())
        };
        assert_eq!(chosen(&[Some(10), Some(11), Some(11), Some(10)], None), Some(2));
        assert_eq!(chosen(&[Some(11), Some(10), Some(11), Some(10)], Some(10)), Some(2));
        assert_eq!(chosen(&[Some(11); 4], Some(10)), None);
        assert_eq!(chosen(&[None, None], Some(10)), Some(1));
        assert_eq!(chosen(&[], None), None);
    }

    #[test]
    fn a_device_that_was_only_labelled_is_free_to_take() {
        assert_eq!(labels(&[Some(0)]).owner().unwrap().objection(), None);
        let objection = labels(&[Some(7)]).owner().unwrap().objection().unwrap();
        assert_eq!(objection, "is part of active pool 'tank'");
    }
}
