//! Running cases, and naming what fails.

use super::client::{Faith, Shared, lock};
use super::figures::{Failure, Figures};
use super::history::History;
use super::judge::{Contents, Promise, agree, begin_with, dump, look, look_and_photograph};
use super::known::{Known, LABELS, base_of, words};
use super::name::Case;
use super::round::{DIR, Keep, Picture, base, photograph, work};
use super::workload::Workload;
use sim::{Disks, Fault, Rng};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// How much is tried of each case. "Every" is one in so many; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub flush_every: u64,
    pub write_every: u64,
    /// Of each picture.
    pub fates: u64,
    pub again_every: u64,
    /// Of a recovery that is cut again.
    pub again_flush_every: u64,
    pub again_write_every: u64,
    pub lost_every: u64,
    pub zdb_every: u64,
    /// Of a random workload: each goes on where the last was cut.
    pub rounds: u64,
    /// Which ones the "one in so many" are: others for each number, and the same for the same.
    pub choice: u64,
}

impl Effort {
    /// Every flush boundary and some writes.
    pub const FULL: Effort = Effort {
        flush_every: 1,
        write_every: 5,
        fates: 2,
        again_every: 12,
        again_flush_every: 1,
        again_write_every: 3,
        lost_every: 4,
        zdb_every: 0,
        rounds: 3,
        choice: 0,
    };
    /// Every flush boundary, for the many words: what was not flushed is lost, kept or torn in two ways, and few recoveries
    /// are cut again.
    pub const FLUSHES: Effort = Effort {
        write_every: 0,
        again_every: 40,
        again_flush_every: 4,
        again_write_every: 40,
        ..Effort::FULL
    };
    /// For the many random workloads.
    pub const SAMPLE: Effort = Effort { flush_every: 8, write_every: 100, ..Effort::FULL };
    /// Whatever one spot may need.
    pub(super) const REPLAY: Effort = Effort {
        flush_every: 1,
        write_every: 1,
        fates: u64::MAX,
        again_every: 1,
        again_write_every: 1,
        ..Effort::FULL
    };
}

/// `seed` itself for the choice that was always made.
fn chosen(seed: u64, choice: u64) -> u64 {
    if choice == 0 { seed } else { Rng::new(seed.wrapping_add(choice)).next_u64() }
}

/// The fates that are tried when a case is replayed are those of the spot alone; its number is below this.
pub(super) const FATES_MAX: u64 = 64;

/// Runs cases; the pools they begin with are made once.
#[derive(Debug, Default)]
pub struct Runner {
    bases: BTreeMap<String, (Disks, History)>,
    ways: Ways,
}

/// How cases are run, but for what their names say.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// A client that believes too much, and disks that do not keep what they were told to flush: to see failures.
    pub is_gullible: bool,
    pub deaf: Vec<String>,
    /// Prints what is done.
    pub is_loud: bool,
    /// Judges with OpenZFS's `zdb` the files in a directory; it knows where.
    pub zdb: Option<Zdb>,
}

/// Where disks are dumped, and their judge: an error is what `zdb` printed.
#[derive(Clone, Debug)]
pub struct Zdb {
    pub scratch: PathBuf,
    pub judge: fn(&Path, &str) -> Result<(), String>,
}

/// One case in the course of being run.
struct Run<'a> {
    case: &'a Case,
    effort: Effort,
    ways: &'a Ways,
    figures: Figures,
    round: u64,
    /// Of this round.
    known: Known<Contents>,
}

impl Runner {
    pub fn new(ways: Ways) -> Runner {
        Runner { bases: BTreeMap::new(), ways }
    }

    /// Runs one case as thoroughly as asked; a case with a spot runs that alone.
    pub fn run(&mut self, case: &Case, effort: Effort) -> Figures {
        codec::checksum::sealed::remember_hashes(LABELS);
        let (disks, history) = match base_of(&mut self.bases, case.setup.to_string(), || base(&case.setup)) {
            Ok(base) => base,
            Err(e) => return Figures::failed(case.to_string(), format!("the first pool: {e}")),
        };
        let effort = if case.spot.is_some() { Effort::REPLAY } else { effort };
        let known = Known::default();
        let mut run = Run { case, effort, ways: &self.ways, figures: Figures::default(), round: 0, known };
        run.figures.workloads = 1;
        run.rounds(disks.fork(), history.clone());
        run.figures
    }
}

impl Run<'_> {
    fn rounds(&mut self, mut disks: Disks, mut history: History) {
        let rounds = if matches!(self.case.workload, Workload::Random(_)) { self.effort.rounds } else { 1 };
        for round in 0..rounds {
            self.round = round;
            let last = self.one_round(disks, history);
            self.figures.states += std::mem::take(&mut self.known).count();
            let Some(last) = last.filter(|_| round + 1 < rounds) else { return };
            let Some(next) = next_round(&last.0, last.1) else { return };
            (disks, history) = next;
        }
    }

    /// The disks where the next round is to go on, before they are cut with this seed.
    fn one_round(&mut self, disks: Disks, history: History) -> Option<(Disks, u64)> {
        let seed = hash(&format!("{}:{}:{}", self.case.setup, self.case.workload, self.round));
        let history: Shared = Arc::new(Mutex::new(history));
        for path in &self.ways.deaf {
            if let Some(disk) = disks.get(path) {
                disk.set_fault(Fault { ignores_flushes: true, ..Fault::default() });
            }
        }
        if matches!(self.case.workload, Workload::Random(_)) {
            disks.cut_at_flush(1 + Rng::new(seed).below(150));
        }
        let Effort { flush_every, write_every, choice, .. } = self.effort;
        let keep = Keep { flush_every, write_every, seed: chosen(seed, choice) };
        let faith = Faith { sync: self.case.setup.sync, is_gullible: self.ways.is_gullible };
        let work = work(self.case.clone(), seed, history.clone(), faith);
        let ran = catch_unwind(AssertUnwindSafe(|| photograph(&disks, seed, &history, keep, work)));
        let (outcome, pictures) = match ran {
            Ok(ran) => ran,
            Err(panic) => {
                self.fail(format!("{}.run", self.round), words(&*panic));
                return None;
            }
        };
        if let Some(Err(e)) = outcome {
            self.fail(format!("{}.run", self.round), format!("the workload met an error: {e}"));
        }
        let history = lock(&history).clone();
        if self.ways.is_loud {
            println!("round {}: {} pictures, {history:#?}", self.round, pictures.len());
        }
        for picture in &pictures {
            let fates = if picture.name == "end" { 1 } else { self.effort.fates.min(FATES_MAX) };
            for fate in 0..fates {
                self.one_fate(&history, picture, fate);
            }
        }
        pictures.last().map(|last| (last.disks.fork(), seed))
    }

    fn wants(&self, spot: &str) -> bool {
        self.case.spot.as_ref().is_none_or(|wanted| wanted == spot)
    }

    fn one_fate(&mut self, history: &History, picture: &Picture, fate: u64) {
        let spot = format!("{}.{}.{fate}", self.round, picture.name);
        let asked = self.case.spot.clone();
        if asked.as_ref().is_some_and(|asked| *asked != spot && !asked.starts_with(&format!("{spot}."))) {
            return;
        }
        let seed = hash(&format!("{}:{}:{spot}", self.case.setup, self.case.workload));
        let chance = |every: u64, salt: u64| every > 0 && Rng::new(seed ^ salt).below(every) == 0;
        let disks = picture.disks.fork();
        disks.power_cut(seed);
        let at_flush = picture.name.starts_with('f');
        let has_log = self.case.setup.shape.logs > 0;
        let (lost, again) = match &asked {
            Some(asked) => (asked.ends_with(".lost"), asked.len() > spot.len()),
            None => (has_log && chance(self.effort.lost_every, 1), chance(self.effort.again_every, 2)),
        };
        let is_zdb = asked.as_ref().is_some_and(|asked| asked.contains(".zdb"));
        let ask_zdb = is_zdb || chance(self.effort.zdb_every, chosen(3, self.effort.choice));
        if ask_zdb {
            self.give_to_zdb(&format!("{spot}.zdb"), &disks);
        }
        if lost {
            let fork = disks.fork();
            for path in self.case.setup.shape.log_paths(DIR) {
                fork.remove(path);
            }
            self.figures.without_log += 1;
            self.judge(&format!("{spot}.lost"), history, picture.now, Promise::Txg, &fork, false);
        }
        if again && !lost && !is_zdb {
            self.cut_again(history, picture, &spot, &disks.fork());
        }
        if self.wants(&spot) || is_zdb {
            self.figures.at_flush += u64::from(at_flush);
            self.judge(&spot, history, picture.now, Promise::Log, &disks, ask_zdb);
        }
        if ask_zdb {
            self.give_to_zdb(&format!("{spot}.zdb-after"), &disks);
        }
    }

    /// Cuts the power at flushes and writes of the recovery.
    fn cut_again(&mut self, history: &History, picture: &Picture, spot: &str, disks: &Disks) {
        let seed = disks.print();
        let Effort { again_flush_every: flush_every, again_write_every: write_every, .. } = self.effort;
        let keep = Keep { flush_every, write_every, seed };
        let shared: Shared = Arc::new(Mutex::new(history.clone()));
        let Ok((found, pictures)) =
            catch_unwind(AssertUnwindSafe(|| look_and_photograph(disks, seed, &shared, keep)))
        else {
            return;
        };
        _ = self.known.learn(seed, Promise::Log, Ok(found));
        for again in &pictures {
            let spot = format!("{spot}.{}", again.name);
            if !self.wants(&spot) {
                continue;
            }
            let disks = again.disks.fork();
            disks.power_cut(hash(&spot));
            self.figures.again += 1;
            self.judge(&spot, history, picture.now, Promise::Log, &disks, false);
        }
    }

    fn judge(
        &mut self,
        spot: &str,
        history: &History,
        now: u64,
        promise: Promise,
        disks: &Disks,
        anew: bool,
    ) {
        self.figures.cuts += 1;
        let seen = self.known.look(disks, promise, anew, |seed| look(disks, seed, promise, true));
        match seen.and_then(|contents| agree(history, &contents, now, promise)) {
            Ok(undecided) => {
                self.figures.undecided.present += undecided.present;
                self.figures.undecided.absent += undecided.absent;
                if self.ways.is_loud {
                    println!("{spot} at {now}: as it should be, {undecided:?}");
                }
            }
            Err(why) => self.fail(spot.to_string(), format!("cut at {now}: {why}")),
        }
    }

    fn give_to_zdb(&mut self, spot: &str, disks: &Disks) {
        let Some(zdb) = self.ways.zdb.clone() else { return };
        self.figures.by_zdb += 1;
        let dumped = dump(disks, &self.case.setup.shape.paths(DIR), &zdb.scratch);
        let judged =
            dumped.map_err(|e| e.to_string()).and_then(|()| (zdb.judge)(&zdb.scratch, crate::bench::POOL));
        if let Err(why) = judged {
            self.fail(spot.to_string(), why);
        }
    }

    fn fail(&mut self, spot: String, why: String) {
        let case = Case { spot: Some(spot), ..self.case.clone() }.to_string();
        self.figures.failures.push(Failure { case, why });
    }
}

/// Where the round after one begins. It must not depend on how much was tried of that.
fn next_round(cut: &Disks, seed: u64) -> Option<(Disks, History)> {
    cut.power_cut(seed);
    let found = catch_unwind(AssertUnwindSafe(|| look(cut, seed, Promise::Log, false))).ok()?.ok()?;
    cut.power_cut(seed + 1);
    Some((cut.fork(), begin_with(&found)))
}

impl Figures {
    fn failed(case: String, why: String) -> Figures {
        Figures { failures: vec![Failure { case, why }], ..Figures::default() }
    }
}

/// A seed from a name, the same for ever.
pub(super) fn hash(name: &str) -> u64 {
    let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    Rng::new(name.bytes().fold(0xcbf2_9ce4_8422_2325, fold)).next_u64()
}
