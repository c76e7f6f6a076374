//! The words of workload files: numbers, sizes, times and lists, and the complaint about one that makes no sense.

use std::fmt;
use std::time::Duration;

/// Files longer than this are refused: a workload is written by hand or by a script, and is small.
pub const FILE_MAX: usize = 1 << 20;

/// What is wrong with a file: where, at which key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub key: String,
    pub what: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Complaint { file, line, key, what } = self;
        match key.is_empty() {
            true => write!(f, "{file}:{line}: {what}"),
            false => write!(f, "{file}:{line}: {key}: {what}"),
        }
    }
}

impl std::error::Error for Complaint {}

pub type Parsed<T> = Result<T, Complaint>;

/// Where a word stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    pub line: usize,
    pub key: String,
}

impl Place {
    pub fn new(file: &str, line: usize, key: &str) -> Place {
        Place { file: shown(file), line, key: shown(key) }
    }

    pub fn complain<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(self.complaint(what))
    }

    pub fn complaint(&self, what: impl Into<String>) -> Complaint {
        Complaint { file: self.file.clone(), line: self.line, key: self.key.clone(), what: what.into() }
    }

    pub fn number(&self, text: &str) -> Parsed<u64> {
        text.trim().parse().map_err(|_| self.complaint(format!("'{}' is not a whole number", shown(text))))
    }

    /// A whole number between two others, both included.
    pub fn number_in(&self, text: &str, min: u64, max: u64) -> Parsed<u64> {
        let number = self.number(text)?;
        match (min..=max).contains(&number) {
            true => Ok(number),
            false => self.complain(format!("{number} is not between {min} and {max}")),
        }
    }

    /// A number above 0.
    pub fn positive(&self, text: &str) -> Parsed<f64> {
        let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        number.ok_or_else(|| self.complaint(format!("'{}' is not a number above 0", shown(text))))
    }

    /// From 0 to 100, with or without a sign for percent.
    pub fn percent(&self, text: &str) -> Parsed<f64> {
        let digits = text.trim().trim_end_matches('%');
        let percent = digits.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        percent.ok_or_else(|| self.complaint(format!("'{}' is not a percentage from 0 to 100", shown(text))))
    }

    /// Bytes: 4k, 1m, 1.5g are powers of 1024.
    pub fn size(&self, text: &str) -> Parsed<u64> {
        units::parse_size(text).map_err(|why| self.complaint(format!("bad size '{}': {why}", shown(text))))
    }

    /// Bytes of a request.
    pub fn length(&self, text: &str) -> Parsed<u32> {
        let size = self.size(text)?;
        let fits = u32::try_from(size).ok().filter(|len| *len <= crate::describe::REQUEST_MAX);
        match fits.filter(|len| *len > 0 && len.is_multiple_of(512)) {
            Some(len) => Ok(len),
            None => self.complain(format!("'{}' is not a multiple of 512 bytes up to 64M", shown(text))),
        }
    }

    pub fn is_yes(&self, text: &str) -> Parsed<bool> {
        match text.trim() {
            "yes" | "y" | "1" | "true" | "on" | "" => Ok(true),
            "no" | "n" | "0" | "false" | "off" => Ok(false),
            other => self.complain(format!("'{}' is neither yes nor no", shown(other))),
        }
    }

    /// A number with a unit of time; without one it is `unit`s.
    pub fn time(&self, text: &str, unit: Duration) -> Parsed<Duration> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(split);
        let unit = match suffix.to_ascii_lowercase().as_str() {
            "" => unit,
            "us" | "usec" => Duration::from_micros(1),
            "ms" | "msec" => Duration::from_millis(1),
            "s" | "sec" | "seconds" => Duration::from_secs(1),
            "m" | "min" | "minutes" => Duration::from_secs(60),
            "h" | "hr" | "hours" => Duration::from_secs(3600),
            "d" | "day" | "days" => Duration::from_secs(86_400),
            other => return self.complain(format!("'{}' is no unit of time; use s, m, h", shown(other))),
        };
        // A century is enough, and the sum of a few of them still a time.
        let seconds = digits.parse::<f64>().ok().map(|n| n * unit.as_secs_f64());
        match seconds.filter(|s| (0.0..=3.2e9).contains(s)) {
            Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
            None => self.complain(format!("'{}' is not a time", shown(text))),
        }
    }
}

/// A time as a command line says it, in seconds unless it has a unit: 30, 90s, 5m, 1h.
pub fn time(text: &str) -> Option<Duration> {
    Place::new("", 0, "").time(text, Duration::from_secs(1)).ok()
}

/// A word as it is shown in a complaint: without what a terminal would obey, and not endless.
pub fn shown(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).take(60).collect();
    if text.chars().nth(60).is_some() { clean + "…" } else { clean }
}

/// The lines of a file as text, or what is wrong with it as a whole.
pub fn text<'a>(file: &str, bytes: &'a [u8]) -> Parsed<&'a str> {
    let place = Place::new(file, 1, "");
    if bytes.len() > FILE_MAX {
        return place
            .complain(format!("the file has {} bytes; a workload has {FILE_MAX} at most", bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        Place::new(file, line, "").complaint("the line is not text")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_the_units_of_both_formats() {
        let place = Place::new("f", 3, "k");
        let seconds = Duration::from_secs(1);
        for (text, expected) in [
            ("30", 30.0),
            ("999h", 999.0 * 3600.0),
            ("2m", 120.0),
            ("500ms", 0.5),
            ("1.5s", 1.5),
            ("10us", 10e-6),
            ("1d", 86_400.0),
        ] {
            assert_eq!(place.time(text, seconds).unwrap(), Duration::from_secs_f64(expected), "{text}");
        }
        for wrong in ["", "h", "1x", "1e99", "-1", "99999999999h"] {
            assert!(place.time(wrong, seconds).is_err(), "{wrong}");
        }
        assert_eq!(place.length("1m").unwrap(), 1 << 20);
        for wrong in ["0", "100", "1g", "x", ""] {
            assert!(place.length(wrong).is_err(), "{wrong}");
        }
        assert_eq!(place.percent("70%").unwrap(), 70.0);
        assert!(place.percent("101").is_err() && place.percent("nan").is_err());
    }

    #[test]
    fn a_complaint_says_where_and_is_harmless() {
        let complaint = Place::new("a.parm", 7, "xfersize").number("1\x1b[2J2").unwrap_err();
        assert_eq!(complaint.to_string(), "a.parm:7: xfersize: '1?[2J2' is not a whole number");
        let long = Place::new("f", 1, "k").number(&"9".repeat(5000)).unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
        assert_eq!(text("f", b"ok\nno \xff\n").unwrap_err().line, 2);
        assert!(text("f", &vec![b'a'; FILE_MAX + 1]).is_err());
    }
}
