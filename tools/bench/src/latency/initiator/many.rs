//! Reads at random places, many under way: what a target does for an initiator that costs little itself.
//!
//! All replies that have arrived are taken before more is asked for, and what is asked for goes out in one piece. Data is
//! passed over where it was received. No more commands are under way than the target's window of command numbers lets in.

use super::{
    COMMAND, DATA_IN, FINAL, HEADER, NO_TAG, NOP_IN, READ_16, READS, RESPONSE, SECTOR, SIMPLE, Session,
    WITH_STATUS, wrong,
};
use std::io::{self, BufRead, Read, Write};
use std::time::{Duration, Instant};

impl Session {
    /// Reads `block` bytes at random places of the first `size` bytes, `depth` commands at once; returns how many reads
    /// were done in `limit`.
    pub fn read_many(&mut self, (size, block): (u64, u32), depth: usize, limit: Duration) -> io::Result<u64> {
        let (places, sectors) = (size / u64::from(block), u64::from(block / SECTOR));
        let end = Instant::now() + limit;
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let (mut under_way, mut done) = (0, 0);
        let mut outgoing = Vec::new();
        loop {
            while under_way < depth && self.is_let_in() && Instant::now() < end {
                // Xorshift: it need not be good, but must cost nothing.
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                self.ask(seed % places * sectors, block, &mut outgoing);
                under_way += 1;
            }
            self.requests.write_all(&outgoing)?;
            outgoing.clear();
            if under_way == 0 {
                return if Instant::now() < end {
                    Err(wrong("the target lets nothing in"))
                } else {
                    Ok(done)
                };
            }
            loop {
                if self.take_reply(block)? {
                    under_way -= 1;
                    done += 1;
                }
                if under_way == 0 || self.replies.buffer().len() < HEADER {
                    break;
                }
            }
        }
    }

    /// The target's window holds the next command.
    fn is_let_in(&self) -> bool {
        self.max_cmd_sn.wrapping_sub(self.cmd_sn) as i32 >= 0
    }

    fn ask(&mut self, sector: u64, block: u32, outgoing: &mut Vec<u8>) {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (COMMAND, FINAL | READS | SIMPLE);
        header[8..16].copy_from_slice(&self.lun);
        self.tag = self.tag.wrapping_add(1) & 0x7fff_ffff;
        header[16..20].copy_from_slice(&self.tag.to_be_bytes());
        header[20..24].copy_from_slice(&block.to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        header[32] = READ_16;
        header[34..42].copy_from_slice(&sector.to_be_bytes());
        header[42..46].copy_from_slice(&(block / SECTOR).to_be_bytes());
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        outgoing.extend_from_slice(&header);
    }

    /// Takes one PDU; whether it ended a read.
    fn take_reply(&mut self, block: u32) -> io::Result<bool> {
        let mut header = [0; HEADER];
        self.replies.read_exact(&mut header)?;
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let len = u32::from_be_bytes([0, header[5], header[6], header[7]]);
        self.pass_over(usize::from(header[4]) * 4 + (len as usize).next_multiple_of(4))?;
        self.max_cmd_sn = word(32);
        let status = match header[0] & 0x3f {
            DATA_IN if len > block => return Err(wrong("more data than was asked for")),
            DATA_IN if header[1] & WITH_STATUS == 0 => return Ok(false),
            DATA_IN => header[3],
            RESPONSE if header[2] == 0 => header[3],
            NOP_IN => {
                if word(20) != NO_TAG {
                    self.answer(&header)?;
                }
                return Ok(false);
            }
            other => return Err(wrong(format_args!("the target sent {other:#04x}"))),
        };
        self.exp_stat_sn = word(24).wrapping_add(1);
        match status {
            0 => Ok(true),
            status => Err(wrong(format_args!("status {status:#04x} of a read"))),
        }
    }

    fn pass_over(&mut self, mut len: usize) -> io::Result<()> {
        while len > 0 {
            let arrived = self.replies.fill_buf()?.len().min(len);
            if arrived == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.replies.consume(arrived);
            len -= arrived;
        }
        Ok(())
    }
}
