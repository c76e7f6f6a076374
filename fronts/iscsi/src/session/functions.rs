//! Everything that is no command and no data: questions whether one is there, text, functions on tasks, farewells, and
//! what we tell unasked.

use super::connection::{Connection, Flight};
use super::task::State;
use crate::directory::Unit;
use crate::params::{MAX_RECEIVE, Said};
use crate::text::{MAX_TEXT, Pairs};
use crate::wire::{Header, NO_TAG, Reject, Reply, request, response};
use scsi::{Attention, Lun, Stop};
use std::task::Context;
use world::Pending;

const FINAL: u8 = 0x80;
const CONTINUE: u8 = 0x40;

/// Answers to functions.
const COMPLETE: u8 = 0;
const NO_TASK: u8 = 1;
const NO_UNIT: u8 = 2;
const NO_FAILOVER: u8 = 4;
const NOT_SUPPORTED: u8 = 5;

impl Connection {
    /// A PDU that is here whole.
    pub fn dispatch(&mut self, header: Header, data: Vec<u8>, is_intact: bool, cx: &mut Context<'_>) {
        match header.opcode() {
            request::COMMAND => self.take_damaged_command(&header),
            request::DATA => self.take_stray_data(&header, &data, is_intact, cx),
            _ if !is_intact => self.reject(&header, Reject::DataDigest),
            request::NOP => self.take_nop(&header, &data),
            request::TASK => self.take_function(&header),
            request::TEXT => self.take_text(&header, &data),
            request::LOGOUT => self.take_logout(&header),
            // There is nothing to send again at this level of recovery.
            request::SNACK => self.reject(&header, Reject::Snack),
            request::LOGIN => self.fail("it logs in again on the same connection"),
            _ => self.reject(&header, Reject::Unsupported),
        }
    }

    fn take_nop(&mut self, header: &Header, data: &[u8]) {
        if !self.is_in_window(header) {
            return;
        }
        self.widen_window(header);
        if header.tag() == NO_TAG {
            // The answer to our own question.
            self.pinged = false;
            return self.rest();
        }
        let len = data.len().min(self.params.max_send).min(MAX_RECEIVE);
        let reply = Reply::to(response::NOP, FINAL, header.tag()).bytes(8, &header.lun()).u32(20, NO_TAG);
        self.send(reply, &data[..len]);
    }

    /// Asks a silent client whether it is there; ends the connection when it keeps us waiting for data.
    pub fn check_client(&mut self) {
        let limit = self.shared.config().stall_timeout;
        let now = world::now();
        let stalled = |t: &super::task::Task| t.waits_for_data() && now.since(t.moved) >= limit;
        if self.tasks.values().any(stalled) {
            return self.fail("it does not send the data of a command");
        }
        if !self.pinged && !self.has_ended() {
            self.pinged = true;
            let reply = Reply::to(response::NOP, FINAL, NO_TAG).u32(20, 1);
            self.send_unnumbered(reply, &[]);
        }
    }

    fn take_text(&mut self, header: &Header, data: &[u8]) {
        if !self.is_in_window(header) {
            return;
        }
        self.widen_window(header);
        if header.tag() == NO_TAG || self.text.len() + data.len() > MAX_TEXT {
            self.text.clear();
            return self.reject(header, Reject::Protocol);
        }
        let goes_on = header.flags() & CONTINUE != 0;
        // A transfer tag asks for the rest of an answer; nothing else is asked before that is said.
        let asks_for_rest = header.u32(20) != NO_TAG;
        if asks_for_rest && !self.unsaid.is_empty() && !data.is_empty() {
            self.text.clear();
            self.unsaid.clear();
            return self.reject(header, Reject::Protocol);
        }
        if !asks_for_rest && self.text.is_empty() {
            self.unsaid.clear();
        }
        self.text.extend_from_slice(data);
        if goes_on {
            let reply = Reply::to(response::TEXT, 0, header.tag()).u32(20, 1);
            return self.send(reply, &[]);
        }
        let Some(pairs) = Pairs::decode(&std::mem::take(&mut self.text)) else {
            return self.reject(header, Reject::InvalidField);
        };
        if !self.answer_text(&pairs) {
            return self.fail("it names values that make no sense");
        }
        let len = self.unsaid.len().min(self.params.max_send);
        let rest = self.unsaid.split_off(len);
        let said = std::mem::replace(&mut self.unsaid, rest);
        let flags = if self.unsaid.is_empty() { FINAL } else { CONTINUE };
        let transfer = if self.unsaid.is_empty() { NO_TAG } else { 1 };
        self.send(Reply::to(response::TEXT, flags, header.tag()).u32(20, transfer), &said);
    }

    fn answer_text(&mut self, pairs: &Pairs) -> bool {
        let mut said = Pairs::default();
        for (key, value) in &pairs.0 {
            if key == "SendTargets" {
                self.list_targets(value, &mut said);
                continue;
            }
            // Only this may be said again in this phase.
            let answer = match key.as_str() {
                "MaxRecvDataSegmentLength" => self.params.negotiate(key, value),
                _ => Said::Value("Reject".into()),
            };
            match answer {
                Said::Noted => {}
                Said::Value(value) => said.say(key, value),
                Said::Wrong => return false,
            }
        }
        self.say(&said);
        true
    }

    /// All targets only where one came to discover; else those by name, or the one that one is at.
    fn list_targets(&self, asked: &str, said: &mut Pairs) {
        let wanted = match (asked, &self.target) {
            ("All", None) => None,
            ("All", Some(_)) => return said.say("SendTargets", "Reject"),
            ("", Some(own)) => Some(own.as_str()),
            ("", None) => return said.say("SendTargets", "Reject"),
            (name, _) => Some(name),
        };
        for target in self.directory().targets(&self.asking) {
            if wanted.is_none_or(|name| name == target.name) {
                said.say("TargetName", target.name);
                target.addresses.into_iter().for_each(|address| said.say("TargetAddress", address));
            }
        }
    }

    fn take_logout(&mut self, header: &Header) {
        if !self.is_in_window(header) {
            return;
        }
        self.widen_window(header);
        let reason = header.flags() & 0x7f;
        // Another connection than this one: a session has only one. Nothing can be recovered.
        let response = match reason {
            0 => 0,
            1 if header.u16(20) == 0 => 0,
            1 => 1,
            2 => 2,
            _ => return self.reject(header, Reject::InvalidField),
        };
        let reply = Reply::to(response::LOGOUT, FINAL, header.tag())
            .u8(2, response)
            .u16(40, self.params.time_to_wait);
        self.send(reply, &[]);
        if response == 0 {
            self.end(None);
        }
    }

    fn take_function(&mut self, header: &Header) {
        if !self.is_in_window(header) {
            return;
        }
        self.widen_window(header);
        let (tag, function) = (header.tag(), header.flags() & 0x7f);
        let path =
            Lun::decode(header.lun()).and_then(|lun| self.units.get(lun).map(|path| (lun, path.clone())));
        if self.tasks.contains_key(&tag) {
            return self.reject(header, Reject::TaskInProgress);
        }
        match (function, path) {
            (1, _) => self.abort_task(tag, header.u32(20)),
            // Every client has its own task set, so clearing it is aborting its tasks.
            (2 | 4 | 5, None) => self.answer_function(tag, NO_UNIT),
            (2 | 4, Some((lun, path))) => {
                self.drop_waiting(|l| l == lun);
                self.launch_function(tag, path.abort_all());
            }
            (5, Some((lun, path))) => {
                self.drop_waiting(|l| l == lun);
                self.launch_function(tag, path.reset());
            }
            (6 | 7, _) => {
                self.drop_waiting(|_| true);
                let resets: Vec<Pending<()>> = self.units.paths().map(|path| path.reset()).collect();
                let all: Pending<()> = Box::pin(async move {
                    for reset in resets {
                        reset.await;
                    }
                });
                match function {
                    6 => self.launch_function(tag, all),
                    _ => self.flights.push(Flight::ColdReset(tag, all)),
                }
            }
            (8, _) => self.answer_function(tag, NO_FAILOVER),
            _ => self.answer_function(tag, NOT_SUPPORTED),
        }
    }

    fn launch_function(&mut self, tag: u32, work: Pending<()>) {
        // It is polled with the other flights, in this turn or the next.
        self.flights.push(Flight::Function(tag, COMPLETE, work));
    }

    /// All is reset. RFC 7143, 11.5.1: after a cold reset the target ends the connections of all its sessions, this one too.
    pub fn end_target(&mut self, tag: u32) {
        self.answer_function(tag, COMPLETE);
        if let Some(target) = &self.target {
            self.shared.disconnect(target);
        }
    }

    fn abort_task(&mut self, tag: u32, victim: u32) {
        match self.tasks.get_mut(&victim) {
            None => self.answer_function(tag, NO_TASK),
            Some(task) if task.state == State::Flying => {
                task.is_aborted = true;
                task.stop.iter().for_each(Stop::set);
                self.aborts.push((victim, tag));
            }
            Some(_) => {
                self.forget(victim);
                self.answer_function(tag, COMPLETE);
            }
        }
    }

    /// A task has ended: who waited for that is answered.
    pub fn answer_aborts(&mut self, victim: u32) {
        while let Some(at) = self.aborts.iter().position(|(v, _)| *v == victim) {
            let (_, tag) = self.aborts.swap_remove(at);
            self.answer_function(tag, COMPLETE);
        }
    }

    /// Ends the commands that have not begun.
    fn drop_waiting(&mut self, which: impl Fn(Lun) -> bool) {
        let waiting = self.tasks.iter().filter(|(_, t)| which(t.lun) && t.state != State::Flying);
        let waiting: Vec<u32> = waiting.map(|(tag, _)| *tag).collect();
        waiting.into_iter().for_each(|tag| self.forget(tag));
    }

    pub fn answer_function(&mut self, tag: u32, code: u8) {
        self.send(Reply::to(response::TASK, FINAL, tag).u8(2, code), &[]);
    }

    /// Asks the directory again.
    pub fn look_at_units(&mut self) {
        let Some(target) = &self.target else { return };
        if self.directory().target(&self.asking, target).is_none() {
            // It was taken away whole.
            self.send_message(1, Lun(0), &[]);
            return self.end(None);
        }
        let looking = self.directory().units(&self.asking, target);
        self.flights.push(Flight::Units(looking));
    }

    pub fn update_units(&mut self, units: Vec<Unit>) {
        let (changed, resized) = self.units.update(units);
        let luns_changed = changed.map(|lun| (lun, Attention::LunsChanged));
        let told =
            luns_changed.into_iter().chain(resized.into_iter().map(|lun| (lun, Attention::CapacityChanged)));
        for (lun, attention) in told {
            let sense = attention.sense().encode(false);
            let data = [&(sense.len() as u16).to_be_bytes()[..], &sense].concat();
            self.send_message(0, lun, &data);
        }
    }

    /// An asynchronous message: 0 tells of a unit, 1 asks for a farewell.
    fn send_message(&mut self, event: u8, lun: Lun, data: &[u8]) {
        let reply = Reply::to(response::ASYNC, FINAL, NO_TAG).bytes(8, &lun.encode()).u8(36, event);
        self.send(reply, data);
    }
}
