//! Data from the client: what it was asked for, and what it may send unasked.
//!
//! ```text
//!   command (immediate data) ─▶ unasked data up to the first burst ─▶ R2T ─▶ data … F ─▶ R2T ─▶ data … F ─▶ carried out
//! ```
//!
//! Data come in order, so each PDU must begin where the one before it ended, and have the next number of its burst.

use super::connection::Connection;
use super::task::{Burst, State};
use crate::wire::{Header, NO_TAG, Reject, Reply, response};
use scsi::Sense;
use std::task::Context;

impl Connection {
    /// Where the data of this PDU go: the task, and the place in its payload. `None` when no task wants them, or only
    /// by the inbox. A PDU that breaks a rule ends its command.
    pub fn place_data(&mut self, header: &Header) -> Option<(u32, usize)> {
        let tag = header.tag();
        self.check_data(header)?;
        let task = self.tasks.get(&tag)?;
        // What is more than the command takes is dropped by the caller, which has it all.
        let fits = task.received + header.data() <= task.intake;
        (fits && task.payload.is_some()).then_some((tag, task.received))
    }

    fn check_data(&mut self, header: &Header) -> Option<()> {
        let (tag, transfer) = (header.tag(), header.u32(20));
        let (number, offset, len) = (header.u32(36), header.u32(40) as usize, header.data());
        let task = self.tasks.get(&tag).filter(|task| task.state != State::Flying)?;
        let wrong = match task.bursts.front() {
            Some(burst) if burst.tag == transfer => {
                if number != burst.next_sn || offset != task.received {
                    Some(Sense::PROTOCOL_CRC)
                } else if offset + len > burst.end {
                    Some(Sense::DATA_AMOUNT)
                } else {
                    None
                }
            }
            _ => Some(Sense::UNEXPECTED_DATA),
        };
        match wrong {
            None => Some(()),
            Some(sense) => {
                self.refuse(tag, &sense);
                None
            }
        }
    }

    /// Data that did not go straight to their place.
    pub fn take_stray_data(&mut self, header: &Header, data: &[u8], is_intact: bool, cx: &mut Context<'_>) {
        let tag = header.tag();
        if !is_intact {
            return self.data_damaged(tag, header);
        }
        if !self.tasks.contains_key(&tag) || self.check_data(header).is_none() {
            return;
        }
        let Some(task) = self.tasks.get_mut(&tag) else { return };
        let kept = &data[..data.len().min(task.intake.saturating_sub(task.received))];
        match &mut task.payload {
            Some(payload) => payload.put(task.received, kept),
            None => {
                // Unasked, while it is parked.
                task.early.extend_from_slice(kept);
                task.load.bytes += kept.len();
                self.load.bytes += kept.len();
            }
        }
        self.data_arrived(tag, header, data.len(), cx);
    }

    /// The data of a PDU are where they belong.
    pub fn data_arrived(&mut self, tag: u32, header: &Header, len: usize, cx: &mut Context<'_>) {
        let now = self.took_at;
        let Some(task) = self.tasks.get_mut(&tag) else { return };
        task.received += len;
        task.moved = now;
        let Some(burst) = task.bursts.front_mut() else { return };
        burst.next_sn = burst.next_sn.wrapping_add(1);
        if !header.is_final() {
            return;
        }
        let burst = *burst;
        task.bursts.pop_front();
        // An R2T asks for an amount; unasked there may be less than the most.
        if burst.tag != NO_TAG && task.received != burst.end {
            return self.refuse(tag, &Sense::DATA_AMOUNT);
        }
        if burst.tag == NO_TAG {
            task.asked = task.received;
        }
        self.go_on(tag, cx);
    }

    pub fn data_damaged(&mut self, tag: u32, header: &Header) {
        self.reject(header, Reject::DataDigest);
        self.refuse(tag, &Sense::PROTOCOL_CRC);
    }

    /// Sends R2Ts as far as was agreed.
    pub fn ask_for_data(&mut self, tag: u32) {
        loop {
            let Some(task) = self.tasks.get_mut(&tag) else { return };
            if task.bursts.len() >= self.params.max_r2t || task.asked >= task.intake {
                return;
            }
            let len = (task.intake - task.asked).min(self.params.max_burst);
            let (number, offset, lun) = (task.r2ts, task.asked, task.lun);
            task.r2ts += 1;
            task.asked += len;
            // Every tag but the one that means none.
            self.next_transfer = self.next_transfer.wrapping_add(1) & 0x7fff_ffff;
            let burst = Burst { tag: self.next_transfer, end: offset + len, next_sn: 0 };
            task.bursts.push_back(burst);
            let reply = Reply::to(response::R2T, 0x80, tag)
                .bytes(8, &lun.encode())
                .u32(20, burst.tag)
                .u32(36, number)
                .u32(40, offset as u32)
                .u32(44, len as u32);
            self.send_unnumbered(reply, &[]);
        }
    }
}
