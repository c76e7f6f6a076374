//! What an administrator should hear of files that can be used: dates that have passed, and keys that others read.
//!
//! None of it is a reason not to serve: a server that does not start helps no client, and some clients do not look at dates.
//! But that clients are refused from one day to the next, or a list of revoked certificates was not brought up to date, is
//! seen nowhere else.
//!
//! ```text
//!   certificate   SEQUENCE { SEQUENCE { [0]?  serial  algorithm  issuer  SEQUENCE { not before, not after } …
//!   list          SEQUENCE { SEQUENCE { version?  algorithm  issuer  this update  next update? …
//! ```
//!
//! What cannot be read is not remarked upon: rustls reads it as well, and refuses it in its words.

use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
/// The version of a certificate.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Permissions of all other users of the machine.
const OTHERS: u32 = 0o007;
const DAY: u64 = 24 * 60 * 60;

/// A second that a file names, and the day as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    seconds: u64,
    day: String,
}

/// From when until when something of a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dates {
    name: &'static str,
    from: Option<Moment>,
    until: Option<Moment>,
    is_list: bool,
}

impl Dates {
    pub fn of_certificates(name: &'static str, chain: &[CertificateDer<'_>]) -> Vec<Dates> {
        let dates = |der: &CertificateDer<'_>| {
            let (from, until) = validity(der)?;
            Some(Dates { name, from: Some(from), until: Some(until), is_list: false })
        };
        chain.iter().filter_map(dates).collect()
    }

    pub fn of_list(name: &'static str, der: &[u8]) -> Option<Dates> {
        Some(Dates { name, from: None, until: Some(next_update(der)?), is_list: true })
    }

    pub fn remark(&self, now: u64) -> Option<String> {
        let name = self.name;
        match (&self.from, &self.until) {
            (_, Some(until)) if until.seconds < now && self.is_list => Some(format!(
                "{name} was to be replaced by {}: what was revoked since is not on it, and is let in",
                until.day
            )),
            (_, Some(until)) if until.seconds < now => {
                Some(format!("{name} has expired on {}: clients refuse it; renew it", until.day))
            }
            (Some(from), _) if from.seconds > now => Some(format!(
                "{name} is valid from {} on only: clients refuse it until then; look at the clock too",
                from.day
            )),
            _ => None,
        }
    }
}

/// What is to be said of a server's certificate and those behind it, in the second `now` since 1970.
pub fn of_certificates(name: &'static str, chain: &[CertificateDer<'_>], now: u64) -> Vec<String> {
    Dates::of_certificates(name, chain).iter().filter_map(|dates| dates.remark(now)).collect()
}

/// What is to be said of a key in a file with these permissions.
pub fn of_key(name: &str, mode: u32) -> Option<String> {
    let mode = mode & 0o777;
    (mode & OTHERS != 0).then(|| {
        format!("{name} is open to every user of this machine (mode {mode:03o}): 'chmod 600', and make another key")
    })
}

/// The next element: its tag, what is in it, and what is behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match usize::from(first) {
        short if short < 0x80 => (short, rest),
        long @ 0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(long - 0x80)?;
            (len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (body, rest) = rest.split_at_checked(len)?;
    Some((tag, body, rest))
}

/// What is in the element, if it is one of this kind, and what is behind it.
fn expect(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, ..)| *tag == wanted).map(|(_, body, rest)| (body, rest))
}

/// What is behind an element of this kind, which may be absent.
fn pass(bytes: &[u8], kind: u8) -> &[u8] {
    expect(bytes, kind).map_or(bytes, |(_, rest)| rest)
}

fn validity(der: &[u8]) -> Option<(Moment, Moment)> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (signed, _) = expect(certificate, SEQUENCE)?;
    let (_serial, rest) = expect(pass(signed, VERSION), INTEGER)?;
    let (_algorithm, rest) = expect(rest, SEQUENCE)?;
    let (_issuer, rest) = expect(rest, SEQUENCE)?;
    let (dates, _) = expect(rest, SEQUENCE)?;
    let (from, rest) = moment(dates)?;
    Some((from, moment(rest)?.0))
}

fn next_update(der: &[u8]) -> Option<Moment> {
    let (list, _) = expect(der, SEQUENCE)?;
    let (signed, _) = expect(list, SEQUENCE)?;
    let (_algorithm, rest) = expect(pass(signed, INTEGER), SEQUENCE)?;
    let (_issuer, rest) = expect(rest, SEQUENCE)?;
    let (_this, rest) = moment(rest)?;
    Some(moment(rest)?.0)
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`, and what is behind it.
fn moment(bytes: &[u8]) -> Option<(Moment, &[u8])> {
    let (tag, body, rest) = element(bytes)?;
    let text = std::str::from_utf8(body).ok()?.strip_suffix('Z')?;
    let (year, text) = match tag {
        UTC_TIME => {
            let (year, text) = text.split_at_checked(2)?;
            let year: u64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text)
        }
        GENERALIZED_TIME => {
            let (year, text) = text.split_at_checked(4)?;
            (year.parse().ok()?, text)
        }
        _ => return None,
    };
    let two = |at: usize| text.get(at..at + 2)?.parse::<u64>().ok();
    let (month, day) = (two(0)?, two(2)?);
    let of_day = two(4)? * 3600 + two(6)? * 60 + two(8)?;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    // What was before 1970 has been for long.
    let days = if is_date { days(year, month, day) } else { return None };
    let seconds = days.checked_mul(DAY).map_or(0, |start| start + of_day);
    Some((Moment { seconds, day: format!("{year:04}-{month:02}-{day:02}") }, rest))
}

/// Days since 1970-01-01, or none for what was before: the year begins in March, so that the odd day is its last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month < 3 { (year.saturating_sub(1), month + 9) } else { (year, month - 3) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    (year * 365 + year / 4 - year / 100 + year / 400 + of_year).saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_as_calendars_count_them() {
        for (date, expected) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), 0),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2026, 11, 29), 20_786),
            ((4096, 1, 1), 776_506),
        ] {
            assert_eq!(days(date.0, date.1, date.2), expected, "{date:?}");
        }
    }

    #[test]
    fn times_of_both_forms_are_read_and_others_are_not() {
        let read = |tag: u8, text: &str| {
            let bytes = [&[tag, text.len() as u8], text.as_bytes()].concat();
            moment(&bytes).map(|(moment, _)| (moment.seconds, moment.day))
        };
        assert_eq!(read(UTC_TIME, "700101000001Z"), Some((1, "1970-01-01".into())));
        assert_eq!(read(UTC_TIME, "261129010203Z"), Some((20_786 * DAY + 3723, "2026-11-29".into())));
        assert_eq!(read(GENERALIZED_TIME, "20500101000000Z"), Some((29_220 * DAY, "2050-01-01".into())));
        for (tag, text) in [
            (UTC_TIME, ""),
            (UTC_TIME, "261129010203"),
            (UTC_TIME, "2611290102Z"),
            (UTC_TIME, "261329010203Z"),
            (GENERALIZED_TIME, "\u{e4}\u{e4}20101000000Z"),
            (INTEGER, "261129010203Z"),
        ] {
            assert_eq!(read(tag, text), None, "{text}");
        }
    }

    /// Whatever stands in a file, nothing is read beyond it.
    #[test]
    fn damaged_files_are_not_remarked_upon() {
        for bytes in
            [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x80], &[0x30, 2, 0x30, 9]]
        {
            assert_eq!((validity(bytes), next_update(bytes)), (None, None), "{bytes:?}");
        }
    }

    #[test]
    fn a_key_is_its_owners_and_may_be_a_groups() {
        assert_eq!((of_key("k", 0o100_600), of_key("k", 0o100_640)), (None, None));
        let said = of_key("k", 0o100_644).unwrap();
        assert!(said.starts_with("k is open to every user of this machine (mode 644)"), "{said}");
    }
}
