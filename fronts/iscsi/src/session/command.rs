//! SCSI commands: from their PDU to their flight.

use super::connection::{Connection, Flight, OVERHEAD};
use super::payload::Payload;
use super::task::{Burst, State, Task};
use crate::wire::{Header, NO_TAG, Reject, is_before};
use flow::Load;
use probe::Timed;
use scsi::{Admission, Execution, Lun, Outcome, Sense, Status};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Context;
use world::stages::Stage;

/// Flags of a command.
const READS: u8 = 0x40;
const WRITES: u8 = 0x20;
const ORDERED: u8 = 2;

/// What of a command is looked at before it is taken.
struct Seen {
    expected: usize,
    reads: bool,
    writes: bool,
}

impl Seen {
    fn of(header: &Header) -> Seen {
        let flags = header.flags();
        Seen { expected: header.u32(20) as usize, reads: flags & READS != 0, writes: flags & WRITES != 0 }
    }
}

fn cdb(header: &Header) -> &[u8] {
    &header.0[32..48]
}

/// The place on the unit that a command of ten bytes or more names, for the record; it need not be on the unit.
fn offset(cdb: &[u8]) -> u64 {
    let (at, len) = match cdb[0] >> 5 {
        0 => (1, 3),
        4 => (2, 8),
        _ => (2, 4),
    };
    cdb[at..at + len].iter().fold(0, |n, &b| n << 8 | u64::from(b)).saturating_mul(scsi::BLOCK)
}

/// FUA: the bit that reads and writes of ten bytes and more have for it.
fn is_durable(cdb: &[u8]) -> bool {
    let has_bit = matches!(cdb[0], 0x28 | 0xa8 | 0x88 | 0x2a | 0xaa | 0x8a | 0x89);
    has_bit && cdb[1] & 8 != 0
}

impl Connection {
    /// Whether a command has room now, or must be taken though it has none: commands before it wait for data that
    /// stand behind it.
    pub fn may_take_command(&mut self, header: &Header, cx: &mut Context<'_>) -> bool {
        let seen = Seen::of(header);
        let bytes = OVERHEAD + if seen.reads || seen.writes { seen.expected.min(16 << 20) } else { 0 };
        let load = Load::of(1, bytes);
        // One for a suspended pool is taken, to be parked: those behind it may be for others.
        if !self.holds(load) && self.is_for_suspended(header) {
            return true;
        }
        self.has_room(load, cx) || self.tasks.values().any(Task::waits_for_data)
    }

    fn is_for_suspended(&self, header: &Header) -> bool {
        let path = Lun::decode(header.lun()).and_then(|lun| self.units.get(lun));
        path.is_some_and(|path| path.device().unit().is_suspended())
    }

    /// Checks the number of a request that has one; what is outside of the window is ignored, silently.
    pub fn is_in_window(&mut self, header: &Header) -> bool {
        let number = header.cmd_sn();
        if header.is_immediate() {
            return true;
        }
        if is_before(number, self.exp_cmd_sn) || is_before(self.max_cmd_sn, number) {
            return false;
        }
        if number != self.exp_cmd_sn {
            self.fail("a command is missing before this one");
            return false;
        }
        self.exp_cmd_sn = self.exp_cmd_sn.wrapping_add(1);
        true
    }

    /// What has a place in the window and is answered makes room for another.
    pub fn widen_window(&mut self, header: &Header) {
        if !header.is_immediate() {
            self.max_cmd_sn = self.max_cmd_sn.wrapping_add(1);
        }
    }

    /// A command that is in the inbox whole: `len` bytes of data behind a head of `head`.
    pub fn take_command(
        &mut self,
        header: &Header,
        head: usize,
        len: usize,
        whole: usize,
        cx: &mut Context<'_>,
    ) {
        let tag = if self.is_in_window(header) { self.begin_command(header, len, true) } else { None };
        let Some(tag) = tag else { return self.inbox.consume(whole) };
        let starts = self.parked.is_empty() && self.make_room(tag, cx);
        if let Some(task) = self.tasks.get_mut(&tag) {
            let kept = &self.inbox.waiting()[head..head + len.min(task.intake)];
            match &mut task.payload {
                Some(payload) => payload.put(0, kept),
                None => task.early = kept.to_vec(),
            }
            task.received = len;
            task.asked = len;
        }
        self.inbox.consume(whole);
        if starts {
            self.go_on(tag, cx);
        } else {
            self.parked.push_back(tag);
        }
    }

    /// A command whose data were damaged on their way.
    pub fn take_damaged_command(&mut self, header: &Header) {
        if self.is_in_window(header) {
            self.reject(header, Reject::DataDigest);
            self.begin_command(header, 0, false);
        }
    }

    /// Makes the task of a command, unless it is answered at once.
    fn begin_command(&mut self, header: &Header, immediate: usize, is_intact: bool) -> Option<u32> {
        let (seen, tag) = (Seen::of(header), header.tag());
        if self.target.is_none() || tag == NO_TAG {
            self.widen_window(header);
            self.reject(header, Reject::Protocol);
            return None;
        }
        if self.tasks.contains_key(&tag) {
            self.widen_window(header);
            self.reject(header, Reject::TaskInProgress);
            return None;
        }
        let cdb = cdb(header);
        let needed = scsi::intake(cdb);
        let (answered, lun) = self.answer_at_once(header, &seen, immediate, is_intact);
        let path = lun.and_then(|lun| self.units.get(lun).cloned());
        let (outcome, path) = match (answered, path) {
            (None, Some(path)) => match path.admit(cdb, if seen.writes { seen.expected as u64 } else { 0 }) {
                Ok(admission) => {
                    self.add_task(header, &seen, lun.unwrap_or(Lun(0)), path, admission, immediate);
                    return Some(tag);
                }
                Err(outcome) => (outcome, Some(path)),
            },
            (answered, path) => (answered.unwrap_or_else(|| scsi::absent(cdb)), path),
        };
        drop(path);
        // Refused, or done without a unit. Data that still come for it are dropped.
        self.widen_window(header);
        let asked = if seen.writes { needed } else { 0 };
        let failed = outcome.status != Status::Good;
        self.journal.answered((cdb[0], is_durable(cdb), lun), (offset(cdb), 0), self.took_at, failed, None);
        let load = Load::aside(OVERHEAD + outcome.len());
        self.load += load;
        self.answer(tag, &outcome, seen.reads, seen.expected, asked, load);
        None
    }

    /// Commands that need no unit, and those that break a rule of the transport.
    fn answer_at_once(
        &self,
        header: &Header,
        seen: &Seen,
        immediate: usize,
        is_intact: bool,
    ) -> (Option<Outcome>, Option<Lun>) {
        let lun = Lun::decode(header.lun());
        let check = |sense: &Sense| Some(Outcome::check(sense, false));
        if !is_intact {
            return (check(&Sense::PROTOCOL_CRC), lun);
        }
        if self.tasks.len() >= self.most_commands() {
            return (Some(Outcome::status(Status::TaskSetFull)), lun);
        }
        let unasked = immediate > 0 && (!self.params.immediate_data || immediate > self.params.first_burst);
        if unasked || (immediate > seen.expected) || (immediate > 0 && !seen.writes) {
            return (check(&Sense::UNEXPECTED_DATA), lun);
        }
        // F is not set: data follow that were not asked for.
        if seen.writes && !header.is_final() && self.params.initial_r2t {
            return (check(&Sense::UNEXPECTED_DATA), lun);
        }
        let is_known =
            lun.is_some_and(|lun| self.units.get(lun).is_some()) || header.lun() == scsi::Lun::WELL_KNOWN;
        if let Some(listed) = scsi::report_luns(cdb(header), self.units.luns()) {
            self.units.note_listed();
            return (Some(listed), lun);
        }
        if !is_known || header.lun() == scsi::Lun::WELL_KNOWN {
            return (Some(scsi::absent(cdb(header))), None);
        }
        (None, lun)
    }

    fn add_task(
        &mut self,
        header: &Header,
        seen: &Seen,
        lun: Lun,
        path: Arc<scsi::Path>,
        admission: Admission,
        immediate: usize,
    ) {
        let (intake, stop, cdb) = (admission.intake(), admission.stop(), cdb(header));
        let mut bursts = VecDeque::new();
        if seen.writes && !header.is_final() {
            let end = self.params.first_burst.min(seen.expected);
            bursts.push_back(Burst { tag: NO_TAG, end, next_sn: 0 });
        }
        let output = admission.output().min(if seen.reads { seen.expected } else { 0 });
        let is_ordered = header.flags() & 7 == ORDERED;
        let early = Load::of(1, OVERHEAD + immediate.min(intake));
        self.load += early;
        self.ordered += usize::from(is_ordered);
        self.next_place += 1;
        let mut timed = self.journal.timed(self.took_at);
        timed.iter_mut().for_each(|timed| timed.waits(Stage::Front));
        let task = Task {
            state: State::Parked,
            lun,
            path,
            admission: Some(admission),
            opcode: cdb[0],
            durable: is_durable(cdb),
            offset: offset(cdb),
            reads: seen.reads,
            expected: seen.expected,
            intake,
            needed: if seen.writes { scsi::intake(cdb) } else { 0 },
            received: 0,
            asked: 0,
            r2ts: 0,
            bursts,
            payload: None,
            early: Vec::new(),
            is_numbered: !header.is_immediate(),
            is_ordered,
            place: self.next_place,
            load: early,
            full_load: Load::of(1, OVERHEAD + intake + output),
            is_aborted: false,
            stop,
            timed,
            began: self.took_at,
            moved: self.took_at,
        };
        self.tasks.insert(header.tag(), task);
    }

    /// Starts what is parked, in order.
    pub fn start_parked(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut started, mut at) = (false, 0);
        while let Some(&tag) = self.parked.get(at) {
            if self.make_room(tag, cx) {
                self.parked.remove(at);
                started = true;
                self.go_on(tag, cx);
            } else if self.tasks.get(&tag).is_some_and(Task::is_stuck) {
                // It holds up no other command: those behind it may be for other pools.
                at += 1;
            } else {
                break;
            }
        }
        started
    }

    /// Lets a command go on, with memory for its data; `false` when it must wait.
    fn make_room(&mut self, tag: u32, cx: &mut Context<'_>) -> bool {
        let Some(task) = self.tasks.get(&tag) else { return true };
        if !self.may_start(task) {
            return false;
        }
        let more = Load::of(0, task.full_load.bytes.saturating_sub(task.load.bytes));
        if !self.holds(more) {
            // A suspended pool gives nothing back, so that what would be leased for it would be kept from all others.
            let has_room = !self.tasks.get(&tag).is_some_and(Task::is_stuck)
                && (self.has_room(more, cx) || (self.is_idle() && self.has_room_alone(more, cx)));
            if !has_room {
                return false;
            }
        }
        self.load += more;
        let now = self.took_at;
        let Some(task) = self.tasks.get_mut(&tag) else { return true };
        task.load += more;
        if task.intake > 0 {
            let place = task.admission.as_ref().and_then(Admission::place);
            let mut payload = Payload::new(place, task.intake, task.path.device().unit().block_size());
            payload.put(0, &std::mem::take(&mut task.early));
            task.payload = Some(payload);
        }
        (task.state, task.moved) = (State::Receiving, now);
        task.timed.iter_mut().for_each(|timed| timed.waits(Stage::Wire));
        true
    }

    /// An ordered command waits for all before it, and all after it wait for it, as far as one unit is concerned.
    fn may_start(&self, task: &Task) -> bool {
        if self.ordered == 0 {
            return true;
        }
        let before = self.tasks.values().filter(|t| t.lun == task.lun && t.place < task.place);
        let mut in_the_way = before.filter(|t| task.is_ordered || t.is_ordered);
        in_the_way.next().is_none()
    }

    /// Asks for more data, or carries the command out when it has all.
    pub fn go_on(&mut self, tag: u32, cx: &mut Context<'_>) {
        let Some(task) = self.tasks.get_mut(&tag).filter(|t| t.state == State::Receiving) else { return };
        if task.bursts.front().is_some_and(|burst| burst.tag == NO_TAG) {
            return;
        }
        if task.received < task.intake {
            return self.ask_for_data(tag);
        }
        let Some(admission) = task.admission.take() else { return };
        task.state = State::Flying;
        let data = task.payload.take().map(Payload::into_parts).unwrap_or_default();
        let mut timed = task.timed.take();
        timed.iter_mut().for_each(Timed::works);
        let within = timed.as_ref().map(|timed| timed.course().enter());
        match task.path.clone().execute(admission, data) {
            Execution::Done(outcome) => {
                drop(within);
                self.finish(tag, timed, outcome);
            }
            Execution::Pending(mut work) => {
                let polled = work.as_mut().poll(cx);
                drop(within);
                match polled {
                    std::task::Poll::Ready(outcome) => self.finish(tag, timed, outcome),
                    std::task::Poll::Pending => self.flights.push(Flight::Command(tag, timed, work)),
                }
            }
        }
    }

    /// A command has come to its end.
    pub fn finish(&mut self, tag: u32, timed: Option<Timed>, outcome: Outcome) {
        let Some(task) = self.remove(tag) else { return };
        if task.is_aborted || outcome.silent {
            self.give_back(task.load);
        } else {
            let moved = (task.received + outcome.len()) as u64;
            let failed = outcome.status != Status::Good;
            let of = (task.opcode, task.durable, Some(task.lun));
            self.journal.answered(of, (task.offset, moved), task.began, failed, timed);
            self.answer(tag, &outcome, task.reads, task.expected, task.needed, task.load);
        }
        self.answer_aborts(tag);
    }

    /// Ends a command that was not carried out, without an answer.
    pub fn forget(&mut self, tag: u32) {
        if let Some(task) = self.remove(tag) {
            self.give_back(task.load);
            self.answer_aborts(tag);
        }
    }

    /// Ends a command that is not carried out because of what came for it.
    pub fn refuse(&mut self, tag: u32, sense: &Sense) {
        if self.tasks.get(&tag).is_some_and(|t| t.state != State::Flying) {
            self.finish(tag, None, Outcome::check(sense, false));
        }
    }

    fn remove(&mut self, tag: u32) -> Option<Task> {
        let task = self.tasks.remove(&tag)?;
        self.ordered -= usize::from(task.is_ordered);
        if task.is_numbered {
            self.max_cmd_sn = self.max_cmd_sn.wrapping_add(1);
        }
        if task.state == State::Parked {
            self.parked.retain(|&t| t != tag);
        }
        Some(task)
    }
}
