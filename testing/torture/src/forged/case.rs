//! One forged pool: its name, and running it.

use super::base::{self, Base};
use super::index::What;
use super::watch::{Watch, stage};
use super::{fields, seal, trial};
use crate::power::Failure;
use sim::{Disks, Rng};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use units::Result;

const PREFIX: &str = "forged:";
/// So often a second structure is changed as well, one time in so many.
const TWICE: u64 = 6;
/// Cases of one pool, before the next has its turn.
const IN_TURN: u64 = 50;
/// Pools that are kept in memory.
const BASES: usize = 2;

/// `forged:POOL:SEED`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgedCase {
    pub pool: String,
    pub seed: u64,
}

impl ForgedCase {
    /// The seeds go round among the pools of this machine, so many at a time: to load a pool takes as long as some cases.
    pub fn of(seed: u64) -> ForgedCase {
        let names = base::names();
        ForgedCase { pool: names[(seed / IN_TURN % names.len() as u64) as usize].clone(), seed }
    }
}

impl fmt::Display for ForgedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.pool, self.seed)
    }
}

impl FromStr for ForgedCase {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<ForgedCase, String> {
        let bad = || format!("'{text}' is no forged pool: {PREFIX}POOL:SEED");
        let (pool, seed) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':')).ok_or_else(bad)?;
        Ok(ForgedCase { pool: pool.to_string(), seed: seed.parse().map_err(|_| bad())? })
    }
}

/// Runs cases; keeps the pools that they begin with.
#[derive(Debug)]
pub struct ForgedRunner {
    bases: BTreeMap<String, Base>,
    watch: Watch,
    /// Prints what was changed, and what the trial met.
    pub is_loud: bool,
}

impl ForgedRunner {
    pub fn new(watch: Watch) -> ForgedRunner {
        codec::checksum::sealed::remember_hashes(64);
        ForgedRunner { bases: BTreeMap::new(), watch, is_loud: false }
    }

    /// The failure of a case, if it fails.
    pub fn run(&mut self, case: &ForgedCase) -> Option<Failure> {
        self.try_to(case).err().map(|why| Failure { case: case.to_string(), why })
    }

    fn try_to(&mut self, case: &ForgedCase) -> std::result::Result<(), String> {
        if !self.bases.contains_key(&case.pool) {
            let made = Base::of(&case.pool).map_err(|e| e.to_string())?;
            if self.bases.len() >= BASES {
                self.bases.clear();
            }
            self.bases.insert(case.pool.clone(), made);
        }
        let (base, is_loud) = (&self.bases[&case.pool], self.is_loud);
        let name = case.to_string();
        self.watch.run(&name, || {
            stage("forge");
            let disks = base.disks.fork();
            let told = forge(base, &disks, case.seed).map_err(|e| e.to_string())?;
            if is_loud {
                println!("{name}: {told}");
            }
            let told = trial::run(&disks, case.seed);
            if is_loud {
                told.iter().for_each(|line| println!("  {line}"));
            }
            Ok(())
        })?
    }

    /// What an unchanged pool meets.
    pub fn rehearse(&mut self, pool: &str) -> std::result::Result<Vec<String>, String> {
        let made = Base::of(pool).map_err(|e| e.to_string())?;
        self.watch.run(pool, || trial::rehearse(&made))
    }
}

/// Changes one structure, now and then two; answers which and how.
fn forge(base: &Base, disks: &Disks, seed: u64) -> Result<String> {
    let mut random = Rng::new(seed);
    match random.below(24) {
        0 => {
            let mut packed = base.packed_config();
            let told = fields::change(What::Log, &mut packed, &[], &mut random);
            seal::configs(base, disks, &packed);
            return Ok(format!("configuration in the labels: {told}"));
        }
        1 => {
            let mut bytes = vec![0; ondisk::Uberblock::SIZE];
            base.uberblock.encode(&mut ondisk::Writer::native(&mut bytes));
            let told = fields::change(What::Log, &mut bytes, &base.index.objects, &mut random);
            seal::uberblocks(base, disks, &bytes);
            return Ok(format!("uberblock: {told}"));
        }
        2 => {
            let number = random.below(base.index.blocks.len() as u64) as usize;
            let mut sealer = seal::Sealer::new(base, disks)?;
            sealer.is_multiplied = true;
            sealer.change(number);
            sealer.finish()?;
            return Ok(format!("indirect blocks above block {number}: each leads to one block, many times"));
        }
        _ => {}
    }
    let mut sealer = seal::Sealer::new(base, disks)?;
    let mut told = Vec::new();
    for _ in 0..if random.below(TWICE) == 0 { 2 } else { 1 } {
        // The kind first, so that what there is little of has its turn.
        let kinds = &base.index.kinds;
        let Some(((what, in_mos), blocks)) = kinds.iter().nth(random.below(kinds.len() as u64) as usize)
        else {
            continue;
        };
        let number = blocks[random.below(blocks.len() as u64) as usize];
        let change = fields::change(*what, sealer.change(number), &base.index.objects, &mut random);
        let place = if *in_mos { "MOS" } else { "dataset" };
        told.push(format!("{what:?} of a {place}, block {number}: {change}"));
    }
    sealer.finish()?;
    Ok(told.join("; "))
}
