//! Whether a state found after a cut is one that the history allows.
//!
//! Each atom of a volume has *versions*: the one it began with, and one more for each deed that touched it. A deed is
//! *required* when its presence was promised by the time of the cut. An atom may hold the version of the last required
//! deed or a later one, wholly; and the same holds for the size. An atom is a block, as long as a block of the log has
//! room for it: [`zil::divides_at`].
//!
//! ```text
//!   versions of atom 7     base ── write 3 ── write 9 ── zero 12 ── write 20
//!                                     │  required │          │          │ under way at the cut
//!   allowed                                       ●──────────●──────────●
//! ```
//!
//! More is asked than the promise: an intent log is one sequence, so where a deed is found, everything that was
//! answered before that deed began must be there too, promised or not. Each find may so require more deeds, and the
//! check goes round until nothing new follows.

use super::history::{Deed, Event, NEVER, Track};

/// What a volume or a snapshot was found to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub block: u64,
    pub bytes: Vec<u8>,
}

/// How much had been asked for and not yet promised at the cut, and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undecided {
    pub present: u64,
    pub absent: u64,
}

/// The end of what may have happened, and what must have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nothing that began later is there.
    pub until: u64,
    /// Answers up to here have been heard.
    pub heard: u64,
    /// What was answered before this is there.
    pub promised: u64,
    /// Single deeds that were answered as durable are there.
    pub with_log: bool,
}

/// The deed that made it, and the bytes; 0 is the beginning, and `n` the n-th event.
type Version = (usize, Vec<u8>);

/// Checks one volume, or one snapshot, against the events of its track.
pub fn check(track: &Track, found: &Found, limits: Limits) -> Result<Undecided, String> {
    if found.block != track.block {
        return Err(format!("blocks of {} bytes were {}", found.block, track.block));
    }
    let events: Vec<&Event> = track.events.iter().filter(|e| e.span.begun <= limits.until).collect();
    let mut registers = versions(track, &events);
    // What is beyond the end says nothing.
    registers.truncate(found.bytes.len().div_ceil(track.atom as usize));
    let mut sight = Sight { events: &events, limits, seen: vec![false; events.len()] };
    let first: Vec<bool> = (0..events.len()).map(|i| sight.is_required(i)).collect();
    loop {
        let before = (sight.limits.promised, sight.seen.clone());
        sight.look(&sizes(track, &events), &(found.bytes.len() as u64).to_le_bytes(), "the size")?;
        for (atom, versions) in registers.iter().enumerate() {
            let start = atom * track.atom as usize;
            let end = (start + track.atom as usize).min(found.bytes.len());
            sight.look(versions, &found.bytes[start..end], &format!("byte {start} and on"))?;
        }
        if before == (sight.limits.promised, sight.seen.clone()) {
            break;
        }
    }
    let mut undecided = Undecided::default();
    for i in (0..events.len()).filter(|&i| !first[i]) {
        let is_there = sight.is_required(i) || sight.seen[i];
        *if is_there { &mut undecided.present } else { &mut undecided.absent } += 1;
    }
    Ok(undecided)
}

/// The versions of every atom there ever was.
fn versions(track: &Track, events: &[&Event]) -> Vec<Vec<Version>> {
    let atom = track.atom as usize;
    let mut bytes = track.base.clone();
    bytes.resize(track.size_max() as usize, 0);
    let mut registers: Vec<Vec<Version>> = bytes.chunks(atom).map(|b| vec![(0, b.to_vec())]).collect();
    for (i, event) in events.iter().enumerate() {
        event.deed.apply(&mut bytes);
        let touched = track.atoms(&event.deed);
        let end = touched.end.min(registers.len() as u64) as usize;
        for index in touched.start as usize..end {
            let now = &bytes[index * atom..((index + 1) * atom).min(bytes.len())];
            registers[index].push((i + 1, now.to_vec()));
        }
    }
    registers
}

/// The sizes there were, as bytes like the rest.
fn sizes(track: &Track, events: &[&Event]) -> Vec<Version> {
    let base = (0, (track.base.len() as u64).to_le_bytes().to_vec());
    let later = events.iter().enumerate().filter_map(|(i, event)| match event.deed {
        Deed::Resize { size } => Some((i + 1, size.to_le_bytes().to_vec())),
        _ => None,
    });
    [base].into_iter().chain(later).collect()
}

/// What is known by now of what has happened.
struct Sight<'a> {
    events: &'a [&'a Event],
    limits: Limits,
    /// Events of which some part was certainly found.
    seen: Vec<bool>,
}

impl Sight<'_> {
    fn is_required(&self, i: usize) -> bool {
        let event = self.events[i];
        let is_heard = event.span.done != NEVER && event.span.done <= self.limits.heard;
        // A resize is one change: a part of it is all of it.
        let is_whole = self.seen[i] && matches!(event.deed, Deed::Resize { .. });
        let is_promised = is_heard && (event.durable && self.limits.with_log || is_sync(event));
        is_promised || is_whole || event.span.done < self.limits.promised
    }

    /// Finds which versions the bytes may be, and learns from it.
    fn look(&mut self, versions: &[Version], found: &[u8], what: &str) -> Result<(), String> {
        let lowest = versions.iter().rposition(|&(i, _)| i > 0 && self.is_required(i - 1)).unwrap_or(0);
        let is_it = |(_, bytes): &&Version| bytes.get(..found.len()) == Some(found);
        let Some(&(first, _)) = versions[lowest..].iter().find(is_it) else {
            return Err(self.complain(versions, lowest, found, what));
        };
        if first > 0 {
            self.seen[first - 1] = true;
            // A single sequence: what was answered before this began is there as well.
            self.limits.promised = self.limits.promised.max(self.events[first - 1].span.begun);
        }
        Ok(())
    }

    fn complain(&self, versions: &[Version], lowest: usize, found: &[u8], what: &str) -> String {
        let is_like = |bytes: &[u8]| bytes.get(..found.len()) == Some(found);
        let older = versions[..lowest].iter().rposition(|(_, bytes)| is_like(bytes));
        let name = |i: usize| match versions[i].0 {
            0 => "the beginning".to_string(),
            n => format!("{:?}", self.events[n - 1]),
        };
        let mut text = format!("{what} is ");
        match older {
            Some(i) => text += &format!("as of {}, and that is too old", name(i)),
            None => {
                text += "no version it ever had";
                let newest = &versions[versions.len() - 1].1;
                let same = found.chunks(512).zip(newest.chunks(512)).filter(|(a, b)| a == b).count();
                text += &format!(", {same} of {} sectors as in the newest", found.len().div_ceil(512));
                if found.iter().all(|&b| b == 0) {
                    text += ", all zeros";
                }
            }
        }
        text += &format!("; required at least {}", name(lowest));
        let later: Vec<String> = (lowest + 1..versions.len()).map(name).collect();
        text + &format!("; or {later:?}; promised before {}", self.limits.promised)
    }
}

/// Changes that wait for their txg are durable when they are answered, with or without a log.
fn is_sync(event: &Event) -> bool {
    matches!(event.deed, Deed::Resize { .. })
}

#[cfg(test)]
mod tests {
    use super::super::history::History;
    use super::*;

    const BLOCK: u64 = 512;

    fn history() -> History {
        let mut history = History::default();
        history.add_volume("v", BLOCK, vec![0; 4 * BLOCK as usize]);
        history
    }

    fn write(history: &mut History, block: u64, blocks: u64, seed: u64, durable: bool) {
        let deed = Deed::Write { offset: block * BLOCK, len: blocks * BLOCK, seed };
        let event = history.begin("v", deed, durable).unwrap();
        history.end("v", event);
    }

    fn holds(history: &History, seeds: [u64; 4], promised: u64) -> Result<Undecided, String> {
        let block = |&seed: &u64| match seed {
            0 => vec![0; BLOCK as usize],
            seed => crate::model::pattern(seed, BLOCK),
        };
        let found = Found { block: BLOCK, bytes: seeds.iter().flat_map(block).collect() };
        let now = history.now();
        let limits = Limits { until: now, heard: now, promised, with_log: true };
        check(&history.volumes["v"], &found, limits)
    }

    #[test]
    fn a_promise_must_be_kept_and_more_may_be() {
        let mut history = history();
        write(&mut history, 0, 1, 3, false);
        let flush = history.begin_flush();
        write(&mut history, 0, 1, 5, false);
        let promised = flush.begun;
        assert!(holds(&history, [0, 0, 0, 0], promised).unwrap_err().contains("too old"));
        assert_eq!(holds(&history, [3, 0, 0, 0], promised), Ok(Undecided { present: 0, absent: 1 }));
        assert_eq!(holds(&history, [5, 0, 0, 0], promised), Ok(Undecided { present: 1, absent: 0 }));
        assert!(holds(&history, [7, 0, 0, 0], promised).unwrap_err().contains("no version"));
        assert!(holds(&history, [3, 1, 0, 0], promised).is_err());
    }

    #[test]
    fn what_was_answered_as_durable_is_required_alone() {
        let mut history = history();
        write(&mut history, 1, 1, 3, false);
        write(&mut history, 2, 1, 5, true);
        assert!(holds(&history, [0, 3, 0, 0], 0).is_err());
        assert!(holds(&history, [0, 3, 5, 0], 0).is_ok());
        assert!(holds(&history, [0, 0, 5, 0], 0).is_err(), "the log is a sequence: 3 came before");
    }

    #[test]
    fn a_later_deed_is_not_there_without_those_answered_before_it_began() {
        let mut history = history();
        write(&mut history, 0, 1, 3, false);
        write(&mut history, 1, 1, 5, false);
        assert!(holds(&history, [3, 0, 0, 0], 0).is_ok() && holds(&history, [0, 0, 0, 0], 0).is_ok());
        assert!(holds(&history, [0, 5, 0, 0], 0).is_err());
        // Two at once have no order.
        let one = history.begin("v", Deed::Zero { offset: 0, len: BLOCK }, false).unwrap();
        let two = history.begin("v", Deed::Zero { offset: BLOCK, len: BLOCK }, false).unwrap();
        assert_eq!(history.begin("v", Deed::Zero { offset: 100, len: 1 }, false), None);
        history.end("v", two);
        history.end("v", one);
        assert!(holds(&history, [3, 0, 0, 0], 0).is_ok() && holds(&history, [0, 5, 0, 0], 0).is_ok());
    }

    #[test]
    fn a_block_is_never_half_of_a_write_but_a_write_may_be_some_of_its_blocks() {
        let mut history = history();
        let deed = Deed::Write { offset: 0, len: 2 * BLOCK, seed: 9 };
        history.begin("v", deed.clone(), false).unwrap();
        let mut bytes = vec![0; 4 * BLOCK as usize];
        deed.apply(&mut bytes);
        let now = history.now();
        let limits = Limits { until: now, heard: now, promised: 0, with_log: true };
        let judge = |bytes: &[u8]| {
            let found = Found { block: BLOCK, bytes: bytes.to_vec() };
            check(&history.volumes["v"], &found, limits)
        };
        assert!(judge(&bytes).is_ok());
        bytes[..BLOCK as usize].fill(0);
        assert!(judge(&bytes).is_ok());
        bytes[BLOCK as usize + 100..2 * BLOCK as usize].fill(0);
        assert!(judge(&bytes).unwrap_err().contains("no version"));
    }

    #[test]
    fn a_block_too_large_for_the_log_may_be_half_of_a_write_but_no_page_of_it() {
        let under_way = |block: u64, there: u64| {
            let mut history = History::default();
            history.add_volume("v", block, vec![0; block as usize]);
            let deed = Deed::Write { offset: 0, len: block, seed: 9 };
            history.begin("v", deed.clone(), false).unwrap();
            let mut bytes = vec![0; block as usize];
            deed.apply(&mut bytes);
            bytes[there as usize..].fill(0);
            let now = history.now();
            let limits = Limits { until: now, heard: now, promised: 0, with_log: true };
            check(&history.volumes["v"], &Found { block, bytes }, limits)
        };
        let (large, most) = (128 << 10, 64 << 10);
        assert!(under_way(large, 8 << 10).is_ok());
        assert!(under_way(large, 2 << 10).is_err());
        assert!(under_way(most, 8 << 10).is_err());
    }

    #[test]
    fn a_resize_is_there_when_it_was_answered_and_is_one_change() {
        let mut history = history();
        write(&mut history, 3, 1, 3, true);
        let smaller = history.begin("v", Deed::Resize { size: BLOCK }, false).unwrap();
        assert!(holds(&history, [0, 0, 0, 3], 0).is_ok(), "not yet answered");
        assert!(holds(&history, [0, 0, 0, 0], 0).is_err(), "the data is gone and the size is not");
        history.end("v", smaller);
        assert!(holds(&history, [0, 0, 0, 3], 0).is_err());
        let larger = history.begin("v", Deed::Resize { size: 4 * BLOCK }, false).unwrap();
        history.end("v", larger);
        assert!(holds(&history, [0, 0, 0, 0], 0).is_ok());
        assert!(holds(&history, [0, 0, 0, 3], 0).is_err(), "what was cut off does not come back");
    }
}
