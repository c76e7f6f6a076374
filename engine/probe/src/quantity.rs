//! Sizes, times and numbers as they are written in queries: `512K`, `10ms`, `95`.
//!
//! What is printed is read as the same number: the largest unit that divides it.

use crate::breakdown::Quantity;

const BYTES: [(&str, u64); 6] =
    [("P", 1 << 50), ("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];
const TIME: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const NUMBER: [(&str, u64); 1] = [("", 1)];

impl Quantity {
    fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Quantity::Bytes => &BYTES,
            Quantity::Time => &TIME,
            Quantity::Number => &NUMBER,
        }
    }

    pub fn print(self, value: u64) -> String {
        let units = self.units();
        let fits = units.iter().find(|(_, unit)| value != 0 && value.is_multiple_of(*unit));
        let (name, unit) = fits.unwrap_or(&units[units.len() - 1]);
        format!("{}{name}", value / unit)
    }

    /// `None` of what is no such number, or is too large. Nanoseconds may stand without unit; `K` may be `k` or `KiB`.
    pub fn parse(self, text: &str) -> Option<u64> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = match self {
            Quantity::Bytes => unit.strip_suffix("iB").or(unit.strip_suffix('B')).unwrap_or(unit),
            Quantity::Time | Quantity::Number => unit,
        };
        let units = self.units();
        let (_, unit) = units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .or(units.last().filter(|_| unit.is_empty()))?;
        number.parse::<u64>().ok()?.checked_mul(*unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_as_the_same() {
        for quantity in [Quantity::Bytes, Quantity::Time, Quantity::Number] {
            let near = (0..64).flat_map(|s| [(1u64 << s).wrapping_sub(1), 1 << s, 3 << (s / 2)]);
            let decimal = (0..19).map(|e| 10u64.pow(e));
            for value in near.chain(decimal).chain([u64::MAX]) {
                assert_eq!(quantity.parse(&quantity.print(value)), Some(value), "{quantity:?}");
            }
        }
        assert_eq!(Quantity::Bytes.print(512 << 10), "512K");
        assert_eq!(Quantity::Time.print(1_500_000), "1500us");
        assert_eq!(Quantity::Bytes.parse("1MiB"), Some(1 << 20));
        assert_eq!(Quantity::Bytes.parse("1m"), Some(1 << 20));
        assert_eq!(Quantity::Time.parse("250"), Some(250));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "K", "-1", "1.5M", "1X", "99999999999999999999", "20000000P", "1 K"] {
            assert_eq!(Quantity::Bytes.parse(text), None, "{text}");
        }
        assert_eq!(Quantity::Time.parse("1K"), None);
        assert_eq!(Quantity::Number.parse("1s"), None);
    }
}
