//! The LUNs of an open pool, kept up to date instead of looked up: what a change costs does not depend on how many other
//! datasets there are.
//!
//! ```text
//!   dsl::touched_since ──▶ changes that concern LUNs ──▶ what was at and below each is asked about again
//!                    └───▶ None: too much was touched, or nothing is known yet: all of the pool
//! ```
//!
//! Invariant: what [`LunIndex::luns`] answers is what asking each dataset of the pool would have, at a moment within the
//! call. It belongs to one opening of a pool.

use super::lun_facts::{LunFacts, facts, has_part_in};
use dsl::Dsl;
use ondisk::ObjsetType;
use pool::Pool;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{Kind, Result};

/// See the module.
#[derive(Debug)]
pub(crate) struct LunIndex(world::sync::Mutex<Known>);

impl Default for LunIndex {
    fn default() -> LunIndex {
        LunIndex(world::sync::Mutex::new(Known::default()))
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Where the log of what was touched was when this was true; `None` before the first look.
    seen: Option<u64>,
    /// By their keys.
    luns: BTreeMap<String, Arc<LunFacts>>,
}

/// Sorted by it, datasets are in the order of listings: parents before children, and those before their parent's siblings.
fn key(dataset: &str) -> String {
    dataset.replace('/', "\0")
}

impl LunIndex {
    /// Every LUN of the pool, in the order of names.
    pub async fn luns(&self, pool: &Pool) -> Result<Vec<Arc<LunFacts>>> {
        let mut known = self.0.lock().await;
        // Between the log and the datasets nothing must change.
        let _reading = pool.reading().await;
        let (now, touched) = pool.dsl().touched_since(known.seen);
        let tops = match touched {
            Some(touched) => {
                let concerned = touched.into_iter().filter(|t| t.property.as_ref().is_none_or(has_part_in));
                concerned.map(|touch| touch.name).collect()
            }
            None => BTreeSet::from([pool.name()]),
        };
        let mut found = Vec::new();
        for top in &tops {
            found.push(ask_below(pool.dsl(), top).await?);
        }
        // Only now is anything changed: after an error the same is asked again.
        for (top, found) in tops.iter().zip(found) {
            known.replace_below(top, found);
        }
        known.seen = Some(now);
        Ok(known.luns.values().cloned().collect())
    }
}

impl Known {
    fn replace_below(&mut self, top: &str, found: Vec<LunFacts>) {
        let top = key(top);
        let is_below =
            |key: &str| key.strip_prefix(&top).is_some_and(|r| r.is_empty() || r.starts_with('\0'));
        let from_top = self.luns.range(top.clone()..).map(|(key, _)| key);
        let gone: Vec<String> = from_top.take_while(|key| is_below(key)).cloned().collect();
        for key in gone {
            self.luns.remove(&key);
        }
        self.luns.extend(found.into_iter().map(|lun| (key(&lun.dataset), Arc::new(lun))));
    }
}

/// What is a LUN there.
async fn ask_below(dsl: &Dsl, top: &str) -> Result<Vec<LunFacts>> {
    let mut luns = Vec::new();
    let datasets = match dsl.descendants(top).await {
        // It has gone, or has another name by now, which was touched as well.
        Err(e) if e.kind() == Kind::NotFound => return Ok(luns),
        datasets => datasets?,
    };
    for dataset in datasets {
        if dsl.objset_type(&dsl.find(&dataset).await?).await? == ObjsetType::Zvol {
            luns.extend(facts(&dsl.stats(&dataset).await?, &dataset).await?);
        }
    }
    Ok(luns)
}

#[cfg(test)]
mod tests;
