//! The login of a session, and what is agreed on in it.

use crate::incoming::{Incoming, u32_at, wrong};
use std::io;
use world::{Buf, Stream};

const HEADER: usize = 48;
const LOGIN: u8 = 0x03;
const RESPONSE: u8 = 0x23;
const FINAL: u8 = 0x80;
/// From operational negotiation to the full feature phase.
const TRANSIT: u8 = FINAL | 0x07;
/// Exchanges at most: some targets confirm the keys before they let go of the stage.
const EXCHANGES: u32 = 4;
/// What one PDU may bring, and what is offered as burst.
pub const SEGMENT: usize = 256 << 10;
const BURST: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub struct Agreed {
    pub cmd_sn: u32,
    pub max_cmd_sn: u32,
    pub exp_stat_sn: u32,
    /// Bytes of one PDU that the target takes.
    pub segment: usize,
    /// How many of a write it takes with the command.
    pub unasked: usize,
}

pub async fn log_in(stream: &dyn Stream, incoming: &mut Incoming, target: &str) -> io::Result<Agreed> {
    let keys = format!(
        "InitiatorName=iqn.2026-11.org.cenote:work\0TargetName={target}\0SessionType=Normal\0\
         HeaderDigest=None\0DataDigest=None\0InitialR2T=Yes\0ImmediateData=Yes\0MaxOutstandingR2T=1\0\
         MaxRecvDataSegmentLength={SEGMENT}\0FirstBurstLength={SEGMENT}\0MaxBurstLength={BURST}\0\
         ErrorRecoveryLevel=0\0"
    );
    let mut text = keys.into_bytes();
    // A session of its own beside others of this initiator: a random identifier.
    let isid = world::random_u64().to_be_bytes();
    let (mut has_immediate, mut first_burst) = (true, 64 << 10);
    let mut agreed = Agreed { cmd_sn: 1, max_cmd_sn: 1, exp_stat_sn: 0, segment: 8 << 10, unasked: 0 };
    for _ in 0..EXCHANGES {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (LOGIN | 0x40, TRANSIT);
        header[5..8].copy_from_slice(&(text.len() as u32).to_be_bytes()[1..]);
        header[8] = 0x80;
        header[9..14].copy_from_slice(&isid[..5]);
        header[24..28].copy_from_slice(&agreed.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&agreed.exp_stat_sn.to_be_bytes());
        let mut bytes = header.to_vec();
        bytes.append(&mut text);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        stream.send(vec![Buf::copy_from(&bytes)]).await?;
        let mut answer = [0; HEADER];
        incoming.fill(&mut answer).await?;
        let len = u32::from_be_bytes([0, answer[5], answer[6], answer[7]]) as usize;
        if answer[0] & 0x3f != RESPONSE || len > SEGMENT {
            return Err(wrong("the answer to the login makes no sense"));
        }
        let additional = usize::from(answer[4]) * 4;
        let data = incoming.take(additional + len.next_multiple_of(4)).await?;
        if answer[36] != 0 {
            return Err(wrong(&refusal(answer[36], answer[37])));
        }
        agreed.exp_stat_sn = u32_at(&answer, 24).wrapping_add(1);
        agreed.max_cmd_sn = u32_at(&answer, 32);
        for pair in String::from_utf8_lossy(&data[additional..additional + len]).split('\0') {
            let Some((key, value)) = pair.split_once('=') else { continue };
            let bytes = || {
                value.parse::<usize>().map_err(|_| wrong(&format!("the target said {key} without a number")))
            };
            match key {
                "ImmediateData" => has_immediate = value == "Yes",
                "FirstBurstLength" => first_burst = bytes()?,
                "MaxRecvDataSegmentLength" => agreed.segment = bytes()?.clamp(512, (1 << 24) - 1) / 4 * 4,
                _ => {}
            }
        }
        if answer[1] & FINAL != 0 {
            agreed.unasked = if has_immediate { first_burst.min(agreed.segment) / 4 * 4 } else { 0 };
            return Ok(agreed);
        }
    }
    Err(wrong("the login does not end"))
}

/// Why a target does not let in (RFC 7143, 11.13.5).
fn refusal(class: u8, detail: u8) -> String {
    let why = match (class, detail) {
        (2, 1) => ": it wants a proof by CHAP, which is not given here",
        (2, 2) => ": this initiator may not",
        (2, 3) => ": there is no such target, or it is not for this initiator",
        (2, 4) => ": the target was removed",
        (2, 6) => ": it has too many connections",
        (3, 1) => ": the target is not in service now",
        (3, 2) => ": the target has no room",
        (1, _) => ": the target is elsewhere",
        _ => "",
    };
    format!("login refused, status {class:02x}{detail:02x}{why}")
}
