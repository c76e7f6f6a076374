//! Which LUN has an identifier or a number that several claim. Pure.
//!
//! ```text
//!   LUNs of all pools ──▶ in the order of their rights ──▶ identifier and number free? ──▶ held: it is served
//!                           Kept    held until now, and it claims the same         └──────▶ left out: it is not
//!                           Fresh   others, those of the pool first that came first
//!                           Back    of a pool that could not be read when others were served
//!                           Late    left out until now
//! ```
//!
//! What a LUN holds it keeps for as long as it claims it, online or not, whatever comes: the data behind a number that a
//! client uses must not become another's. What was left out is written down with its pool ([`crate::home::Known`]), so that
//! the next start decides the same; and a LUN that gave way to one of a pool that cannot be read just now goes on to do so.
//!
//! Invariants: no two that are held have one identifier, and no initiator could see two of them under one number.

use super::LunFacts;
use crate::home::{Claim, LeftOut};
use crate::san::Network;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The LUNs of all pools, in the order of names.
#[derive(Debug, Default)]
pub(crate) struct Luns {
    pub held: Vec<Arc<LunFacts>>,
    pub left_out: Vec<(Arc<LunFacts>, LeftOut)>,
}

impl Luns {
    pub fn all(&self) -> impl Iterator<Item = &Arc<LunFacts>> {
        self.held.iter().chain(self.left_out.iter().map(|(lun, _)| lun))
    }

    /// Why a LUN is left out, if it is.
    pub fn why_not(&self, dataset: &str) -> Option<&LeftOut> {
        self.left_out.iter().find(|(lun, _)| lun.dataset == dataset).map(|(_, why)| why)
    }
}

/// What counts of a pool that is imported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Which came first.
    pub order: u64,
    /// Its LUNs are among those that are decided about.
    pub is_read: bool,
    /// They were not, the last time.
    pub was_away: bool,
    /// Which of them were left out then.
    pub left_out: BTreeMap<String, LeftOut>,
}

/// What was decided last, while the program runs.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// By identifier.
    held: HashMap<[u8; 16], Arc<LunFacts>>,
    /// With the groups as they were.
    network: Network,
    /// Of which the log has said it.
    pub told: BTreeMap<String, LeftOut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    Kept,
    Fresh,
    Back,
    Late,
}

pub(crate) fn pool_of(dataset: &str) -> &str {
    dataset.split('/').next().unwrap_or(dataset)
}

/// An identifier as text.
fn text(guid: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*guid))
}

impl Claims {
    /// `luns`: in the order of names; `pools`: all that are imported.
    pub fn decide(
        &self,
        network: &Network,
        luns: &[Arc<LunFacts>],
        pools: &BTreeMap<String, Standing>,
    ) -> Luns {
        let standing = |lun: &LunFacts| pools.get(pool_of(&lun.dataset));
        let has_its_name = |lun: &LunFacts| {
            let held = self.held.get(&lun.guid);
            held.is_some_and(|held| held.dataset == lun.dataset)
        };
        let named: HashSet<[u8; 16]> =
            luns.iter().filter(|lun| has_its_name(lun)).map(|lun| lun.guid).collect();
        let mut order: Vec<(Right, u64, usize)> = luns
            .iter()
            .enumerate()
            .map(|(at, lun)| {
                let standing = standing(lun);
                let may_be_renamed = !named.contains(&lun.guid);
                (self.right(lun, standing, may_be_renamed), standing.map_or(0, |pool| pool.order), at)
            })
            .collect();
        order.sort_unstable();
        let same_groups = self.network.has_groups_of(network);
        let mut lost: BTreeMap<usize, LeftOut> = BTreeMap::new();
        let mut by_guid: HashMap<[u8; 16], &LunFacts> = HashMap::new();
        let mut by_number: HashMap<u16, Vec<&LunFacts>> = HashMap::new();
        for (right, _, at) in order {
            let lun = &*luns[at];
            if let Some(why) = standing(lun).and_then(|own| gives_way(lun, own, pools)) {
                lost.insert(at, why);
                continue;
            }
            let identifier = match by_guid.entry(lun.guid) {
                Entry::Occupied(holder) => {
                    let holder = holder.get().dataset.clone();
                    lost.insert(at, LeftOut { holder, claim: Claim::Identifier(text(&lun.guid)) });
                    continue;
                }
                Entry::Vacant(identifier) => identifier,
            };
            if let Some(number) = lun.number {
                let same = by_number.entry(number).or_default();
                // Those that are kept had their numbers beside one another under these groups.
                let is_known = right == Right::Kept && same_groups;
                let others = if is_known { &[] } else { &same[..] };
                if let Some(holder) = others.iter().find(|other| network.meet(lun, other)) {
                    let holder = holder.dataset.clone();
                    lost.insert(at, LeftOut { holder, claim: Claim::Number(number) });
                    continue;
                }
                same.push(lun);
            }
            identifier.insert(lun);
        }
        let mut decided = Luns::default();
        for (at, lun) in luns.iter().enumerate() {
            match lost.remove(&at) {
                Some(why) => decided.left_out.push((lun.clone(), why)),
                None => decided.held.push(lun.clone()),
            }
        }
        decided
    }

    /// What the next decision goes by.
    pub fn keep(&mut self, network: &Network, decided: &Luns) {
        self.held = decided.held.iter().map(|lun| (lun.guid, lun.clone())).collect();
        if !self.network.has_groups_of(network) {
            self.network = network.clone();
        }
    }

    /// `may_be_renamed`: none has the identifier under the name of the one that held it.
    fn right(&self, lun: &LunFacts, standing: Option<&Standing>, may_be_renamed: bool) -> Right {
        let is_it = |held: &Arc<LunFacts>| {
            let is_renamed = may_be_renamed && pool_of(&held.dataset) == pool_of(&lun.dataset);
            (held.dataset == lun.dataset || is_renamed)
                && held.number == lun.number
                && held.target_group == lun.target_group
                && held.initiator_groups == lun.initiator_groups
        };
        let was_left_out = standing.is_some_and(|pool| pool.left_out.contains_key(&lun.dataset));
        match standing {
            _ if was_left_out => Right::Late,
            _ if self.held.get(&lun.guid).is_some_and(is_it) => Right::Kept,
            Some(pool) if pool.was_away => Right::Back,
            _ => Right::Fresh,
        }
    }
}

/// A LUN that was left out for one of a pool that is imported and cannot be read gives way to it still.
fn gives_way(lun: &LunFacts, own: &Standing, pools: &BTreeMap<String, Standing>) -> Option<LeftOut> {
    let why = own.left_out.get(&lun.dataset)?;
    let claims_it = match &why.claim {
        Claim::Identifier(identifier) => *identifier == text(&lun.guid),
        Claim::Number(number) => lun.number == Some(*number),
    };
    let is_away = pools.get(pool_of(&why.holder)).is_some_and(|pool| !pool.is_read);
    (claims_it && is_away).then(|| why.clone())
}

#[cfg(test)]
mod tests;
