//! Persistent reservations on the wire, and as they are stored.
//!
//! They are stored as lines of text. Names are escaped there: whatever a name is, it is one word of one line. In the first
//! form (`reservations 1`) they were not, and clients could name others with line breaks; such a text is read as it was
//! meant. A text that cannot be read reserves the unit for no client: what was fenced stays so, until a client registers
//! and clears it.

use crate::cdb::Command;
use crate::identity::{is_port_name, read_transport_id, transport_id};
use crate::registrations::{Kind, Register, Registrant, Registration, Registrations, Reservation};
use crate::sense::{Refusal, Sense};
use std::fmt::Write as _;
use std::sync::Arc;

/// The answer to PERSISTENT RESERVE IN.
pub(crate) fn report(registrations: &Registrations, action: u8) -> Result<Vec<u8>, Sense> {
    let mut list = Vec::new();
    match action {
        0 => registrations.list.iter().for_each(|r| list.extend(r.key.to_be_bytes())),
        1 => {
            if let Some(reservation) = &registrations.reservation {
                let key = match reservation.kind.is_held_by_all() {
                    true => 0,
                    false => registrations.key_of(&reservation.holder).unwrap_or(0),
                };
                list.extend(key.to_be_bytes());
                list.extend([0, 0, 0, 0, 0, reservation.kind as u8, 0, 0]);
            }
        }
        2 => return Ok(capabilities(registrations)),
        3 => registrations.list.iter().for_each(|r| full_status(registrations, r, &mut list)),
        _ => return Err(Sense::field(1, Some(4))),
    }
    let mut bytes = registrations.generation.to_be_bytes().to_vec();
    bytes.extend((list.len() as u32).to_be_bytes());
    bytes.extend(list);
    Ok(bytes)
}

fn capabilities(registrations: &Registrations) -> Vec<u8> {
    // CRH, SIP_C, ATP_C, PTPL_C; the type mask is valid, TEST UNIT READY is always allowed, PTPL_A.
    let activated = u8::from(registrations.survives);
    vec![0, 8, 0x1d, 0x90 | activated, 0xea, 0x01, 0, 0]
}

fn full_status(registrations: &Registrations, registration: &Registration, list: &mut Vec<u8>) {
    let holds = registrations.holds(&registration.registrant);
    let kind = registrations.reservation.as_ref().filter(|_| holds).map_or(0, |r| r.kind as u8);
    list.extend(registration.key.to_be_bytes());
    list.extend([0, 0, 0, 0, u8::from(holds), kind, 0, 0, 0, 0]);
    list.extend(registration.registrant.port.to_be_bytes());
    let id = transport_id(&registration.registrant.initiator);
    list.extend((id.len() as u32).to_be_bytes());
    list.extend(id);
}

/// What PERSISTENT RESERVE OUT asks for, read from its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Register(Register),
    Reserve { key: u64, kind: Kind },
    Release { key: u64, kind: Kind },
    Clear { key: u64 },
    Preempt { key: u64, victim: u64, kind: Option<Kind>, abort: bool },
    Move { key: u64, new: u64, to: Registrant, leave: bool, survives: bool },
}

/// `port` is the port the command came by, `ports` are all there are.
pub(crate) fn read(command: Command, list: &[u8], port: u16, ports: &[u16]) -> Result<Change, Sense> {
    let Command::PersistentOut { action, kind, .. } = command else { return Err(Sense::INVALID_OPCODE) };
    if action > 7 {
        return Err(Sense::field(1, Some(4)));
    }
    let head: &[u8; 24] = list.first_chunk().ok_or(Sense::LIST_LENGTH)?;
    let number = |at: usize| head[at..at + 8].iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let (key, second) = (number(0), number(8));
    if action == 7 {
        return read_move(list, head, key, second);
    }
    let (with_others, all_ports, survives) = (head[20] & 8 != 0, head[20] & 4 != 0, head[20] & 1 != 0);
    if list.len() != 24 && !(with_others && action == 0) {
        return Err(Sense::LIST_LENGTH);
    }
    Ok(match action {
        0 | 6 => {
            if with_others && action == 6 {
                return Err(Sense::parameter(20));
            }
            let others = if with_others { read_others(list)? } else { Vec::new() };
            let ports = if all_ports { ports.to_vec() } else { vec![port] };
            Change::Register(Register {
                old: (action == 0).then_some(key),
                new: second,
                survives,
                ports,
                others,
            })
        }
        1 => Change::Reserve { key, kind: Kind::of(kind)? },
        2 => Change::Release { key, kind: Kind::of(kind)? },
        3 => Change::Clear { key },
        _ => Change::Preempt { key, victim: second, kind: Kind::of(kind).ok(), abort: action == 5 },
    })
}

/// The transport identifiers behind the basic list.
fn read_others(list: &[u8]) -> Result<Vec<Arc<str>>, Sense> {
    let len: &[u8; 4] = list.get(24..).and_then(|rest| rest.first_chunk()).ok_or(Sense::LIST_LENGTH)?;
    let mut rest = &list[28..];
    if rest.len() as u64 != u64::from(u32::from_be_bytes(*len)) {
        return Err(Sense::LIST_LENGTH);
    }
    let mut others = Vec::new();
    while !rest.is_empty() {
        let (name, len) =
            read_transport_id(rest).ok_or(Sense::parameter((list.len() - rest.len()) as u16))?;
        others.push(name.into());
        rest = &rest[len..];
    }
    Ok(others)
}

fn read_move(list: &[u8], head: &[u8; 24], key: u64, new: u64) -> Result<Change, Sense> {
    let port = u16::from_be_bytes([head[18], head[19]]);
    let len = u32::from_be_bytes([head[20], head[21], head[22], head[23]]);
    if list.len() as u64 != 24 + u64::from(len) {
        return Err(Sense::LIST_LENGTH);
    }
    let (name, _) = read_transport_id(&list[24..]).ok_or(Sense::parameter(24))?;
    let to = Registrant { initiator: name.into(), port };
    Ok(Change::Move { key, new, to, leave: head[17] & 2 != 0, survives: head[17] & 1 != 0 })
}

impl Change {
    pub fn apply(
        &self,
        registrations: &mut Registrations,
        registrant: &Registrant,
    ) -> Result<crate::registrations::Effects, Refusal> {
        match self {
            Change::Register(ask) => registrations.register(registrant, ask),
            Change::Reserve { key, kind } => registrations.reserve(registrant, *key, *kind),
            Change::Release { key, kind } => registrations.release(registrant, *key, *kind),
            Change::Clear { key } => registrations.clear(registrant, *key),
            Change::Preempt { key, victim, kind, abort } => {
                registrations.preempt(registrant, *key, *victim, *kind, *abort)
            }
            Change::Move { key, new, to, leave, survives } => {
                registrations.register_and_move(registrant, *key, *new, to.clone(), *leave, *survives)
            }
        }
    }
}

const HEAD: &str = "reservations 2";
const HEAD_UNESCAPED: &str = "reservations 1";

/// As text, for a store; empty when there is nothing to keep.
pub(crate) fn store(registrations: &Registrations) -> String {
    if registrations.list.is_empty() && registrations.reservation.is_none() {
        return String::new();
    }
    let mut text = format!("{HEAD}\ngeneration {}\n", registrations.generation);
    if registrations.survives {
        text += "survives\n";
    }
    for Registration { registrant, key } in &registrations.list {
        let _ = writeln!(text, "registration {key:x} {} {}", registrant.port, escaped(&registrant.initiator));
    }
    if let Some(Reservation { kind, holder }) = &registrations.reservation {
        let _ = writeln!(text, "reservation {} {} {}", *kind as u8, holder.port, escaped(&holder.initiator));
    }
    text
}

/// As one word: other than visible ASCII, and `%`, as `%` and two hexadecimal digits for each byte.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut word, byte| {
        match byte {
            b'!'..=b'~' if byte != b'%' => word.push(char::from(byte)),
            _ => drop(write!(word, "%{byte:02x}")),
        }
        word
    })
}

fn unescaped(word: &str) -> Option<Arc<str>> {
    let mut parts = word.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    Some(String::from_utf8(bytes).ok()?.into())
}

/// Whether this is what [`store`] makes of some reservations, the holder of one among the registrants; or what it once
/// made, as far as that can be read.
pub fn is_reservations(text: &str) -> bool {
    restore(text).is_some_and(|registrations| {
        // One that all hold goes on without its maker.
        let of_one = registrations.reservation.as_ref().filter(|r| !r.kind.is_held_by_all());
        let is_held = |r: &Reservation| registrations.is_registered(&r.holder) || *r == unreadable();
        let is_whole = text.starts_with(HEAD_UNESCAPED) || store(&registrations) == text;
        is_whole && of_one.is_none_or(is_held)
    })
}

/// What a unit has from its store.
pub(crate) fn take_up(text: &str) -> Registrations {
    let lost = || Registrations { reservation: Some(unreadable()), ..Registrations::default() };
    if text.is_empty() { Registrations::default() } else { restore(text).unwrap_or_else(lost) }
}

/// The reservation of a unit of which it cannot be read any more: of no client.
fn unreadable() -> Reservation {
    Reservation { kind: Kind::ExclusiveAccess, holder: Registrant { initiator: "".into(), port: 0 } }
}

/// What was stored, if it makes sense; else nothing.
fn restore(text: &str) -> Option<Registrations> {
    match text.split_once('\n')? {
        (HEAD, rest) => {
            let mut registrations = Registrations::default();
            rest.lines().try_for_each(|line| read_line(line, &mut registrations, unescaped))?;
            Some(registrations)
        }
        (HEAD_UNESCAPED, rest) => restore_unescaped(rest),
        _ => None,
    }
}

/// A line that is none is the rest of the name in the one before it. Names that no client could log in by are left out, but
/// of a holder: the unit stays reserved.
fn restore_unescaped(text: &str) -> Option<Registrations> {
    let is_line = |line: &str| {
        let as_it_is = |name: &str| Some(name.into());
        read_line(line, &mut Registrations::default(), as_it_is).is_some()
    };
    let mut lines: Vec<String> = Vec::new();
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        match lines.last_mut() {
            _ if is_line(line) => lines.push(line.to_string()),
            Some(before) if before.starts_with("re") => *before = format!("{before}\n{line}"),
            _ => return None,
        }
    }
    let mut registrations = Registrations::default();
    for line in &lines {
        read_line(line, &mut registrations, |name| Some(name.into()))?;
    }
    // A reservation of one client, not of any that is registered: the rest of a name.
    let reservation = registrations.reservation.take();
    registrations.reservation =
        reservation.filter(|r| r.kind.is_held_by_all() || registrations.is_registered(&r.holder));
    let holder = registrations.reservation.as_ref().map(|r| r.holder.clone());
    registrations
        .list
        .retain(|r| is_port_name(&r.registrant.initiator) || holder.as_ref() == Some(&r.registrant));
    Some(registrations)
}

fn read_line(
    line: &str,
    registrations: &mut Registrations,
    name: impl Fn(&str) -> Option<Arc<str>>,
) -> Option<()> {
    let mut words = line.splitn(4, ' ');
    match words.next()? {
        "survives" => registrations.survives = true,
        "generation" => registrations.generation = words.next()?.parse().ok()?,
        "registration" => {
            let key = u64::from_str_radix(words.next()?, 16).ok()?;
            let port = words.next()?.parse().ok()?;
            let registrant = Registrant { initiator: name(words.next()?)?, port };
            registrations.list.push(Registration { registrant, key });
        }
        "reservation" => {
            let kind = Kind::of(words.next()?.parse().ok()?).ok()?;
            let port = words.next()?.parse().ok()?;
            let holder = Registrant { initiator: name(words.next()?)?, port };
            registrations.reservation = Some(Reservation { kind, holder });
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(action: u8, kind: u8) -> Command {
        Command::PersistentOut { action, kind, len: 24 }
    }

    fn list(key: u64, second: u64, flags: u8) -> Vec<u8> {
        let mut list = [key.to_be_bytes(), second.to_be_bytes()].concat();
        list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
        list
    }

    fn registrations() -> Registrations {
        let registrant = |name: &str| Registrant { initiator: name.into(), port: 1 };
        Registrations {
            generation: 7,
            list: vec![
                Registration { registrant: registrant("iqn.x:a,i,0x1"), key: 0xabc },
                Registration { registrant: registrant("iqn.x:b b,i,0x2"), key: 1 },
            ],
            reservation: Some(Reservation {
                kind: Kind::WriteExclusiveRegistrants,
                holder: registrant("iqn.x:a,i,0x1"),
            }),
            survives: true,
        }
    }

    #[test]
    fn what_is_stored_comes_back() {
        let registrations = registrations();
        assert_eq!(restore(&store(&registrations)), Some(registrations.clone()));
        let fleeting = Registrations { survives: false, ..registrations };
        assert_eq!(restore(&store(&fleeting)), Some(fleeting));
        assert_eq!(store(&Registrations::default()), "");
        for text in ["", "reservations 3\n", "reservations 2\nregistration zz 1 a\n", "reservations 1\nx\n"] {
            assert_eq!(restore(text), None, "{text:?}");
            assert_eq!(take_up(text).reservation, (!text.is_empty()).then(unreadable), "{text:?}");
        }
        let lost = store(&take_up("x"));
        assert!(is_reservations(&lost) && restore(&lost).unwrap() == take_up("x"));
    }

    #[test]
    fn no_name_breaks_the_text() {
        for name in
            ["a\nregistration 1 1 b", "", " ", "a b", "%", "%0a", "a\r", "\u{85}ü\u{2028}", "a\n\nsurvives"]
        {
            let mut registrations = registrations();
            let evil = Registrant { initiator: name.into(), port: 1 };
            registrations.list.push(Registration { registrant: evil.clone(), key: 3 });
            assert_eq!(restore(&store(&registrations)), Some(registrations.clone()), "{name:?}");
            registrations.reservation = Some(Reservation { kind: Kind::ExclusiveAccess, holder: evil });
            let text = store(&registrations);
            assert_eq!(restore(&text), Some(registrations), "{name:?}");
            assert!(is_reservations(&text), "{name:?}");
        }
    }

    /// One such name, and the whole text was as none: the unit was open to all, and no backup of it could be restored.
    #[test]
    fn what_older_versions_stored_is_read_as_it_was_meant() {
        let old = "reservations 1\ngeneration 7\nsurvives\nregistration abc 1 iqn.x:a,i,0x1\n\
                   registration 1 1 iqn.x:evil\n\ngarbage\nregistration 2 1 iqn.x:b,i,0x2\n";
        let held = format!("{old}reservation 3 1 iqn.x:a,i,0x1\n");
        let read = restore(&held).unwrap();
        let keys = |r: &Registrations| r.list.iter().map(|r| r.key).collect::<Vec<_>>();
        assert_eq!((keys(&read), read.generation, read.survives), (vec![0xabc, 2], 7, true));
        assert_eq!(read.reservation.as_ref().unwrap().holder.initiator.as_ref(), "iqn.x:a,i,0x1");
        assert!(is_reservations(&held) && is_reservations(&store(&read)));
        // The holder moved the reservation to such a name.
        let moved = format!("{old}reservation 3 1 iqn.x:evil\n\ngarbage\n");
        let read = restore(&moved).unwrap();
        assert_eq!((keys(&read), read.reservation.is_some()), (vec![0xabc, 1, 2], true));
        assert!(is_reservations(&moved) && is_reservations(&store(&read)));
        // A name that looks like a reservation.
        assert_eq!(restore(&format!("{old}reservation 3 1 iqn.x:c,i,0x3\n")).unwrap().reservation, None);
    }

    #[test]
    fn keys_and_holder_are_reported() {
        let registrations = registrations();
        assert_eq!(
            report(&registrations, 0).unwrap(),
            [0, 0, 0, 7, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0x0a, 0xbc, 0, 0, 0, 0, 0, 0, 0, 1]
        );
        let reservation = report(&registrations, 1).unwrap();
        assert_eq!((reservation.len(), reservation[21]), (24, 5));
        let full = report(&registrations, 3).unwrap();
        assert_eq!((full[20], full[21]), (1, 5));
        assert_eq!(u32::from_be_bytes([full[4], full[5], full[6], full[7]]) as usize, full.len() - 8);
        assert!(report(&registrations, 4).is_err());
    }

    #[test]
    fn parameters_of_a_wrong_length_are_refused() {
        let basic = list(1, 2, 0);
        assert!(matches!(read(out(0, 0), &basic, 1, &[1, 2]), Ok(Change::Register(r)) if r.ports == [1]));
        assert!(
            matches!(read(out(6, 0), &list(1, 2, 4), 1, &[1, 2]), Ok(Change::Register(r)) if r.ports == [1, 2])
        );
        for len in 0..24 {
            assert_eq!(read(out(0, 0), &basic[..len], 1, &[1]), Err(Sense::LIST_LENGTH));
        }
        assert_eq!(read(out(8, 0), &basic, 1, &[1]), Err(Sense::field(1, Some(4))));
        assert_eq!(read(out(1, 2), &basic, 1, &[1]), Err(Sense::field(2, Some(3))));
        let mut others = list(0, 2, 8);
        let id = transport_id("iqn.x:c,i,0x3");
        others.extend((id.len() as u32).to_be_bytes());
        others.extend(&id);
        assert!(matches!(read(out(0, 0), &others, 1, &[1]), Ok(Change::Register(r)) if r.others.len() == 1));
        others.pop();
        assert!(read(out(0, 0), &others, 1, &[1]).is_err());
    }
}
