//! The commands there are, as REPORT SUPPORTED OPERATION CODES tells them.
//!
//! Every command that [`crate::cdb`] takes is in [`TABLE`] with the bits of it that we look at, and nothing else is.

use crate::cdb::Reporting;
use crate::sense::Sense;

struct Known {
    opcode: u8,
    action: Option<u8>,
    /// The bits of the command that are looked at, but for the opcode and the action; its length is the command's.
    usage: &'static [u8],
}

const fn op(opcode: u8, usage: &'static [u8]) -> Known {
    Known { opcode, action: None, usage }
}

const fn act(opcode: u8, action: u8, usage: &'static [u8]) -> Known {
    Known { opcode, action: Some(action), usage }
}

const LBA10: [u8; 10] = [0, 0xfa, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0x04];
const LBA12: [u8; 12] = [0, 0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const LBA16: [u8; 16] =
    [0, 0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const ROOM16: [u8; 16] =
    [0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const LEN10: [u8; 10] = [0, 0x1f, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04];
const OUT10: [u8; 10] = [0, 0x1f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04];
const LIST83: [u8; 16] = [0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const NONE6: [u8; 6] = [0, 0, 0, 0, 0, 0x04];

const TABLE: &[Known] = &[
    op(0x00, &NONE6),
    op(0x03, &[0, 0x01, 0, 0, 0xff, 0x04]),
    op(0x08, &[0, 0x1f, 0xff, 0xff, 0xff, 0x04]),
    op(0x0a, &[0, 0x1f, 0xff, 0xff, 0xff, 0x04]),
    op(0x12, &[0, 0x01, 0xff, 0xff, 0xff, 0x04]),
    op(0x15, &[0, 0x11, 0, 0, 0xff, 0x04]),
    op(0x16, &NONE6),
    op(0x17, &NONE6),
    op(0x1a, &[0, 0x08, 0xff, 0xff, 0xff, 0x04]),
    op(0x1b, &[0, 0x01, 0, 0x0f, 0xf7, 0x04]),
    op(0x1e, &[0, 0, 0, 0, 0x03, 0x04]),
    op(0x25, &[0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01, 0x04]),
    op(0x28, &LBA10),
    op(0x2a, &LBA10),
    op(0x2e, &LBA10),
    op(0x2f, &LBA10),
    op(0x34, &LBA10),
    op(0x35, &LBA10),
    op(0x41, &LBA10),
    op(0x42, &[0, 0x01, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04]),
    op(0x55, &[0, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04]),
    op(0x56, &[0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0x04]),
    op(0x57, &[0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0x04]),
    op(0x5a, &[0, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x04]),
    act(0x5e, 0x00, &LEN10),
    act(0x5e, 0x01, &LEN10),
    act(0x5e, 0x02, &LEN10),
    act(0x5e, 0x03, &LEN10),
    act(0x5f, 0x00, &OUT10),
    act(0x5f, 0x01, &OUT10),
    act(0x5f, 0x02, &OUT10),
    act(0x5f, 0x03, &OUT10),
    act(0x5f, 0x04, &OUT10),
    act(0x5f, 0x05, &OUT10),
    act(0x5f, 0x06, &OUT10),
    act(0x5f, 0x07, &OUT10),
    act(0x83, 0x00, &[0, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    act(0x83, 0x10, &LIST83),
    act(0x83, 0x11, &LIST83),
    act(0x83, 0x1c, &[0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04]),
    act(0x84, 0x00, &[0, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    act(0x84, 0x03, &[0, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    act(0x84, 0x07, &[0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    op(0x88, &LBA16),
    op(0x89, &LBA16),
    op(0x8a, &LBA16),
    op(0x8b, &LBA16),
    op(0x8e, &LBA16),
    op(0x8f, &LBA16),
    op(0x90, &LBA16),
    op(0x91, &LBA16),
    op(0x93, &LBA16),
    act(0x9e, 0x10, &ROOM16),
    act(0x9e, 0x12, &ROOM16),
    op(0xa0, &[0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    act(0xa3, 0x0a, &[0, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    act(0xa3, 0x0c, &[0, 0x1f, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    act(0xa3, 0x0d, &[0, 0x1f, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    op(0xa8, &LBA12),
    op(0xaa, &LBA12),
    op(0xae, &LBA12),
    op(0xaf, &LBA12),
];

/// How long a command may take before the client should worry, in seconds.
const NOMINAL: u32 = 10;
const RECOMMENDED: u32 = 60;

fn timeouts() -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[1] = 0x0a;
    bytes[4..8].copy_from_slice(&NOMINAL.to_be_bytes());
    bytes[8..].copy_from_slice(&RECOMMENDED.to_be_bytes());
    bytes
}

pub(crate) fn report(with_timeouts: bool, what: Reporting) -> Result<Vec<u8>, Sense> {
    let has_actions = |opcode| TABLE.iter().any(|k| k.opcode == opcode && k.action.is_some());
    let find = |opcode: u8, action: Option<u16>| {
        TABLE.iter().find(|k| k.opcode == opcode && k.action.map(u16::from) == action)
    };
    match what {
        Reporting::All => Ok(all(with_timeouts)),
        Reporting::One { opcode } if has_actions(opcode) => Err(Sense::field(2, Some(2))),
        Reporting::One { opcode } => Ok(one(with_timeouts, find(opcode, None))),
        Reporting::OneAction { opcode, action } => {
            // An opcode without actions cannot be asked for with one.
            if find(opcode, None).is_some() {
                return Err(Sense::field(2, Some(2)));
            }
            Ok(one(with_timeouts, find(opcode, Some(action))))
        }
        Reporting::Whichever { opcode, action } => {
            let action = has_actions(opcode).then_some(action);
            Ok(one(with_timeouts, find(opcode, action)))
        }
    }
}

fn all(with_timeouts: bool) -> Vec<u8> {
    let mut list = Vec::new();
    for known in TABLE {
        let flags = u8::from(known.action.is_some()) | u8::from(with_timeouts) << 1;
        list.extend([known.opcode, 0, 0, known.action.unwrap_or(0), 0, flags]);
        list.extend((known.usage.len() as u16).to_be_bytes());
        if with_timeouts {
            list.extend(timeouts());
        }
    }
    [&(list.len() as u32).to_be_bytes()[..], &list].concat()
}

fn one(with_timeouts: bool, known: Option<&Known>) -> Vec<u8> {
    let Some(known) = known else { return vec![0, 0x01, 0, 0] };
    let mut usage = known.usage.to_vec();
    usage[0] = known.opcode;
    if let Some(action) = known.action {
        usage[1] = usage[1] & 0xe0 | action;
    }
    let mut bytes = vec![0, 0x03 | u8::from(with_timeouts) << 7];
    bytes.extend((usage.len() as u16).to_be_bytes());
    bytes.extend(usage);
    if with_timeouts {
        bytes.extend(timeouts());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdb::parse;

    #[test]
    fn what_is_reported_is_what_is_taken() {
        for opcode in 0..=255u8 {
            for action in 0..32u8 {
                let mut bytes = [0; 16];
                (bytes[0], bytes[1]) = (opcode, action);
                let known = TABLE.iter().any(|k| k.opcode == opcode && k.action.is_none_or(|a| a == action));
                let taken = !matches!(parse(&bytes), Err(sense) if sense == Sense::INVALID_OPCODE);
                let has_actions = TABLE.iter().any(|k| k.opcode == opcode && k.action.is_some());
                // Persistent reservations check their action later; others refuse it as a field.
                assert_eq!(TABLE.iter().any(|k| k.opcode == opcode), taken, "{opcode:x}");
                if has_actions && opcode != 0x5e && opcode != 0x5f {
                    assert_eq!(parse(&bytes).is_ok(), known, "{opcode:x}/{action:x}");
                }
            }
        }
    }

    #[test]
    fn one_command_is_reported_with_its_usage_and_times() {
        let read = report(true, Reporting::One { opcode: 0x28 }).unwrap();
        assert_eq!(read[..6], [0, 0x83, 0, 10, 0x28, 0xfa]);
        assert_eq!(read[14..18], [0, 10, 0, 0]);
        assert!(report(false, Reporting::One { opcode: 0x9e }).is_err());
        assert_eq!(report(false, Reporting::One { opcode: 0xff }), Ok(vec![0, 1, 0, 0]));
        let action = report(false, Reporting::OneAction { opcode: 0x9e, action: 0x12 }).unwrap();
        assert_eq!(action[4..6], [0x9e, 0x12]);
        let list = report(false, Reporting::All).unwrap();
        assert_eq!(list.len(), 4 + 8 * TABLE.len());
    }
}
