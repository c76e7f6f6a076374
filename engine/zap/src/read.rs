//! Looking things up, in either form.

use crate::block;
use crate::blocks::Blocks;
use crate::cursor::{Cursor, Page};
use crate::fat::read::Fat;
use crate::hash::Rules;
use crate::key::{Key, Match, Needle, OwnedKey};
use crate::micro::{Micro, Slot};
use crate::value::{Entry, Found, Value};
use crate::{Form, Stats, Zap};
use ondisk::zap::ZapBlock;
use units::{Endian, Error, Kind, Result};
use world::Buf;

/// How many entries [`Zap::entries`] and [`Zap::find_by_value`] take at a time.
const PAGE: usize = 1024;

/// A ZAP as its block 0 shows it.
pub(crate) enum Opened<'s, S> {
    Micro(Names),
    Fat(Fat<'s, S>),
}

/// A micro ZAP as it was read.
pub(crate) struct Names {
    pub micro: Micro,
    /// Of the store.
    pub version: u64,
    /// In the store it is in the other byte order.
    pub is_foreign: bool,
}

impl<S: Blocks> Zap<S> {
    /// The value under `key`, if there is one.
    pub async fn lookup<'k>(&self, key: impl Into<Key<'k>> + Send) -> Result<Option<Value>> {
        let _turn = self.turn.read().await;
        let key = key.into();
        match self.opened().await? {
            Opened::Micro(names) => {
                let needle = Needle::new(&names.micro.rules(), key, Match::Exact)?;
                Ok(self.find_in(&names, &needle)?.map(|slot| slot.value.into()))
            }
            Opened::Fat(fat) => fat.find(&Needle::new(fat.rules(), key, Match::Exact)?).await,
        }
    }

    /// The one integer under `key`, if there is such a key; an error if its value is something else.
    pub async fn lookup_u64<'k>(&self, key: impl Into<Key<'k>> + Send) -> Result<Option<u64>> {
        let _turn = self.turn.read().await;
        self.find_u64(key.into()).await
    }

    pub(crate) async fn find_u64(&self, key: Key<'_>) -> Result<Option<u64>> {
        let found = match self.opened().await? {
            Opened::Micro(names) => {
                let needle = Needle::new(&names.micro.rules(), key, Match::Exact)?;
                self.find_in(&names, &needle)?.map(|slot| Some(slot.value))
            }
            Opened::Fat(fat) => fat.find_u64(&Needle::new(fat.rules(), key, Match::Exact)?).await?,
        };
        match found {
            Some(None) => {
                Err(Error::corrupt(format!("ZAP value of {key} is not one integer")).at(self.blocks.name()))
            }
            found => Ok(found.flatten()),
        }
    }

    /// The one integer under `key`, which must exist.
    pub async fn require_u64<'k>(&self, key: impl Into<Key<'k>> + Send) -> Result<u64> {
        let key = key.into();
        let found = self.lookup_u64(key).await?;
        found.ok_or_else(|| Error::new(Kind::NotFound, format!("look up {key}")).at(self.blocks.name()))
    }

    pub async fn contains<'k>(&self, key: impl Into<Key<'k>> + Send) -> Result<bool> {
        Ok(self.lookup(key).await?.is_some())
    }

    /// Looks for a name by its normalised form, in a ZAP that was created with a normalisation.
    pub async fn lookup_normalized(&self, name: &[u8], how: Match) -> Result<Option<Found>> {
        let _turn = self.turn.read().await;
        match self.opened().await? {
            Opened::Micro(Names { micro, version, .. }) => {
                let needle = Needle::new(&micro.rules(), name.into(), how)?;
                let index = self.kept.look(version, &micro);
                let slot = micro.find(&needle, index.as_deref()).map_err(|e| e.at(self.blocks.name()))?;
                Ok(slot.map(|slot| Found {
                    name: slot.name.to_vec(),
                    value: slot.value.into(),
                    is_ambiguous: micro.count_matches(&needle, index.as_deref()) > 1,
                }))
            }
            Opened::Fat(fat) => fat.find_name(&Needle::new(fat.rules(), name.into(), how)?).await,
        }
    }

    /// How many entries there are.
    pub async fn len(&self) -> Result<u64> {
        Ok(self.stats().await?.entries)
    }

    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Form and size, as the first block tells them.
    pub async fn stats(&self) -> Result<Stats> {
        let _turn = self.turn.read().await;
        let opened = self.opened().await?;
        let rules = opened.rules();
        let (form, entries) = match &opened {
            Opened::Micro(names) => (Form::Micro, names.micro.len() as u64),
            Opened::Fat(fat) => {
                let header = &fat.header;
                let form = Form::Fat {
                    leaves: header.leaves,
                    blocks: header.free_block,
                    table_shift: header.table_shift(),
                };
                (form, header.entries)
            }
        };
        Ok(Stats {
            form,
            entries,
            salt: rules.salt,
            normalization: rules.norm,
            flags: rules.flags,
            block_size: self.blocks.block_size(),
        })
    }

    /// Up to `limit` entries from a position on, and where the rest starts. Of a fat ZAP there may be fewer, when what is
    /// behind them cannot be read: that is the error of the next page.
    pub async fn page(&self, from: Cursor, limit: usize) -> Result<Page> {
        let _turn = self.turn.read().await;
        match self.opened().await? {
            Opened::Micro(names) => {
                page_of_micro(&names.micro, from, limit).map_err(|e| e.at(self.blocks.name()))
            }
            Opened::Fat(fat) => page_of_fat(&fat, from, limit).await,
        }
    }

    /// Every entry. For ZAPs that may be large, go by [`Zap::page`].
    pub async fn entries(&self) -> Result<Vec<Entry>> {
        let mut all = Vec::new();
        let mut next = Some(Cursor::START);
        while let Some(from) = next {
            let page = self.page(from, PAGE).await?;
            all.extend(page.entries);
            next = page.next;
        }
        Ok(all)
    }

    /// The first entry whose value, masked, is the one integer looked for: from an object back to its name.
    pub async fn find_by_value(&self, value: u64, mask: u64) -> Result<Option<Entry>> {
        let mut next = Some(Cursor::START);
        while let Some(from) = next {
            let page = self.page(from, PAGE).await?;
            let matches = |e: &Entry| e.value.as_u64().is_some_and(|v| v & mask == value & mask);
            if let Some(entry) = page.entries.into_iter().find(matches) {
                return Ok(Some(entry));
            }
            next = page.next;
        }
        Ok(None)
    }

    /// As [`Zap::page`] by cookies: the entries, each with the cookie behind it, and whether they are the last.
    pub async fn page_by_cookie(&self, cookie: u64, limit: usize) -> Result<(Vec<(Entry, u64)>, bool)> {
        let from = self.from_cookie(cookie).await?;
        let page = self.page(from, limit).await?;
        let _turn = self.turn.read().await;
        let opened = self.opened().await?;
        let rules = opened.rules();
        let behind = page.behind.iter().map(|at| at.cookie(&rules));
        Ok((page.entries.into_iter().zip(behind).collect(), page.next.is_none()))
    }

    /// A position as one number that directory readers can keep.
    pub async fn cookie(&self, at: Cursor) -> Result<u64> {
        let _turn = self.turn.read().await;
        Ok(at.cookie(&self.opened().await?.rules()))
    }

    /// The position that a cookie stands for; any number is a position.
    pub async fn from_cookie(&self, cookie: u64) -> Result<Cursor> {
        let _turn = self.turn.read().await;
        Ok(Cursor::from_cookie(cookie, &self.opened().await?.rules()))
    }

    pub(crate) async fn opened(&self) -> Result<Opened<'_, S>> {
        let (bytes, version) = self.blocks.read_versioned(0).await?;
        self.open_block0(bytes, version).map_err(|e| e.at(format!("{} block 0", self.blocks.name())))
    }

    /// The entry that the needle means.
    pub(crate) fn find_in<'n>(&self, names: &'n Names, needle: &Needle<'_>) -> Result<Option<Slot<'n>>> {
        let index = self.kept.look(names.version, &names.micro);
        names.micro.find(needle, index.as_deref()).map_err(|e| e.at(self.blocks.name()))
    }

    fn open_block0(&self, bytes: Buf, version: u64) -> Result<Opened<'_, S>> {
        let is_foreign = ZapBlock::of(&bytes, Endian::Little).is_none();
        match block::open(bytes)? {
            (ZapBlock::Micro, bytes) => {
                Ok(Opened::Micro(Names { micro: Micro::open(bytes)?, version, is_foreign }))
            }
            (ZapBlock::Header, bytes) => {
                Ok(Opened::Fat(Fat::open(&self.blocks, bytes, version, is_foreign)?))
            }
            (ZapBlock::Leaf, _) => Err(Error::corrupt("ZAP that starts with a leaf")),
        }
    }
}

impl<S: Blocks> Opened<'_, S> {
    pub(crate) fn rules(&self) -> Rules {
        match self {
            Opened::Micro(names) => names.micro.rules(),
            Opened::Fat(fat) => *fat.rules(),
        }
    }
}

fn page_of_micro(micro: &Micro, from: Cursor, limit: usize) -> Result<Page> {
    let mut all = micro.sorted()?.into_iter().filter(|(at, _)| *at >= from);
    let (mut entries, mut behind) = (Vec::new(), Vec::new());
    for (at, slot) in all.by_ref().take(limit) {
        behind.push(at.behind());
        entries.push(Entry { key: OwnedKey::Name(slot.name.to_vec()), value: slot.value.into() });
    }
    let next = all.next().map(|_| behind.last().copied().unwrap_or(from));
    Ok(Page { entries, behind, next })
}

async fn page_of_fat<S: Blocks>(fat: &Fat<'_, S>, from: Cursor, limit: usize) -> Result<Page> {
    let (mut entries, mut positions) = (Vec::new(), Vec::new());
    let mut next = Some(from);
    // Each turn takes a leaf, and leaves follow one another in order of their prefix: the way ends.
    while let Some(from) = next.filter(|_| entries.len() < limit) {
        let (listed, next_leaf) = match fat.list(from).await {
            Ok(listed) => listed,
            // What comes before the damage is given; the error is that of the page which starts with it.
            Err(_) if !entries.is_empty() => break,
            Err(e) => return Err(e),
        };
        next = next_leaf;
        for (behind, entry) in listed {
            if entries.len() == limit {
                break;
            }
            entries.push(entry);
            positions.push(behind);
            if entries.len() == limit {
                next = Some(behind);
            }
        }
    }
    Ok(Page { entries, behind: positions, next })
}
