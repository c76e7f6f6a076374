//! Commands that are about the target, not about one of its units.

use crate::cdb::{Command, parse};
use crate::lun::Lun;
use crate::sense::{Outcome, Refusal, Sense};
use flow::Piece;
use world::Buf;

/// `bytes` as an answer of at most `room` bytes.
pub(crate) fn cut(mut bytes: Vec<u8>, room: usize) -> Vec<Piece> {
    bytes.truncate(room);
    if bytes.is_empty() { Vec::new() } else { vec![Piece::Data(Buf::copy_from(&bytes))] }
}

/// REPORT LUNS, which every unit answers, and those answer that are not there; `None` when it is another command.
pub fn report_luns(cdb: &[u8], luns: impl Iterator<Item = Lun>) -> Option<Outcome> {
    let Ok(Command::ReportLuns { select, room }) = parse(cdb) else { return None };
    let mut list = vec![0; 8];
    match select {
        0 | 2 => luns.for_each(|lun| list.extend(lun.encode())),
        // Only well-known units, or subsidiaries of conglomerates.
        1 | 0x10 | 0x11 | 0x12 => {}
        _ => return Some(Outcome::check(&Sense::field(2, None), false)),
    }
    if matches!(select, 1 | 2) {
        list.extend(Lun::WELL_KNOWN);
    }
    if room < 16 {
        return Some(Outcome::check(&Sense::field(6, None), false));
    }
    let len = (list.len() - 8) as u32;
    list[..4].copy_from_slice(&len.to_be_bytes());
    Some(Outcome::good(cut(list, room)))
}

/// What is answered for a unit that is not there, or not for this client: both look the same.
pub fn absent(cdb: &[u8]) -> Outcome {
    let answer = match parse(cdb) {
        Ok(Command::Inquiry { page: None, room }) => {
            // No device can be here, of an unknown type.
            let mut bytes = vec![0x7f, 0, 0x06, 0x12, 91];
            bytes.resize(96, 0);
            bytes[8..36].fill(b' ');
            Ok(cut(bytes, room))
        }
        Ok(Command::RequestSense { descriptors, room }) => {
            Ok(cut(Sense::NO_SUCH_UNIT.encode(descriptors), room))
        }
        _ => Err(Refusal::Sense(Sense::NO_SUCH_UNIT)),
    };
    Outcome::of(answer, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sense::Status;

    fn bytes(outcome: &Outcome) -> Vec<u8> {
        let data = outcome.data.iter().flat_map(|piece| match piece {
            Piece::Data(buf) => buf.to_vec(),
            Piece::Hole(len) => vec![0; *len as usize],
        });
        data.collect()
    }

    #[test]
    fn luns_are_listed_and_cut_to_the_room() {
        let ask = |select, room| {
            let cdb = [0xa0, 0, select, 0, 0, 0, 0, 0, 0, room, 0, 0];
            report_luns(&cdb, [Lun(0), Lun(300)].into_iter()).expect("this is the command")
        };
        let whole = bytes(&ask(0, 64));
        assert_eq!(whole[..8], [0, 0, 0, 16, 0, 0, 0, 0]);
        assert_eq!(whole[16..18], [0x41, 0x2c]);
        assert_eq!(bytes(&ask(0, 16)), whole[..16]);
        assert_eq!(ask(0, 15).status, Status::CheckCondition);
        assert_eq!(bytes(&ask(1, 64))[8..], Lun::WELL_KNOWN);
        assert!(report_luns(&[0x12, 0, 0, 0, 96, 0], [].into_iter()).is_none());
    }

    #[test]
    fn where_nothing_is_only_inquiry_answers() {
        assert_eq!(bytes(&absent(&[0x12, 0, 0, 0, 96, 0]))[0], 0x7f);
        let read = absent(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!((read.sense[2], read.sense[12]), (5, 0x25));
    }
}
