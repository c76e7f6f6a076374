//! How files are shown: modes, times, names.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use zpl::{FileKind, Stat};

/// `drwxr-xr-x`
pub fn mode(stat: &Stat) -> String {
    let kind = match stat.kind {
        FileKind::Regular => '-',
        other => other.letter(),
    };
    let bits = stat.permissions;
    let mut text = String::from(kind);
    for (shift, special, mark) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let rights = bits >> shift & 7;
        text.push(if rights & 4 != 0 { 'r' } else { '-' });
        text.push(if rights & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & special != 0, rights & 1 != 0) {
            (true, true) => mark,
            (true, false) => mark.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// `2026-11-20 21:15:36`, UTC.
pub fn date(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March have their odd day at the end; 400 of them have always 146097 days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A name as it can be shown: control characters would act on the terminal, so they are escaped, as are those that
/// change the direction of what is around them. Bytes that are no UTF-8 stay, unless a terminal of another encoding would
/// take them for control characters.
pub fn name(bytes: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut utf8 = [0; 4];
            let utf8 = c.encode_utf8(&mut utf8).as_bytes();
            match c {
                '\n' => shown.extend(b"\\n"),
                _ if c.is_control() || is_direction(c) => utf8.iter().for_each(|b| escape(*b, &mut shown)),
                _ => shown.extend(utf8),
            }
        }
        for &byte in chunk.invalid() {
            match byte {
                0x80..=0x9f => escape(byte, &mut shown),
                _ => shown.push(byte),
            }
        }
    }
    shown
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(byte: u8, shown: &mut Vec<u8>) {
    shown.extend(format!("\\{byte:03o}").bytes());
}

/// A path for a message.
pub fn path(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&name(bytes)).into_owned()
}

/// A path of this machine for a message.
pub fn file(path: &Path) -> String {
    self::path(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(date(1_795_214_256), "2026-11-20 22:37:36");
        assert_eq!(date(-1), "1969-12-31 23:59:59");
    }

    #[test]
    fn names_do_nothing_to_the_terminal() {
        assert_eq!(name(b"a\x1b[31m\nb\xff"), b"a\\033[31m\\nb\xff");
        // The same as one character, in UTF-8 and alone, and what turns the writing around.
        assert_eq!(name("a\u{9b}31m".as_bytes()), b"a\\302\\23331m");
        assert_eq!(name(b"a\x9b31m"), b"a\\23331m");
        assert_eq!(name("\u{202e}gpj.exe".as_bytes()), b"\\342\\200\\256gpj.exe");
        assert_eq!(name("größe \u{1f30a}".as_bytes()), "größe \u{1f30a}".as_bytes());
        let shown = path(b"a\x1b[31m\x9b\n");
        assert_eq!(path(shown.as_bytes()), shown, "what is shown already stays");
    }
}
