//! How the devices of a pool stand together, in a word: `raidz2:8`, `mirror:2x4`, `stripe:3`.

use std::fmt;
use units::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each device by itself.
    Stripe,
    Mirror,
    Raidz(u64),
}

/// `groups` times `width` devices. A stripe has groups of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub kind: Kind,
    pub width: usize,
    pub groups: usize,
}

const WIDTH_MAX: usize = 255;
const GROUPS_MAX: usize = 1024;
/// More devices than a lab has room for.
const DEVICES_MAX: usize = 1024;

impl Layout {
    pub fn devices(&self) -> usize {
        self.width * self.groups
    }

    pub fn parse(text: &str) -> Result<Layout> {
        let wrong = |why: &str| {
            Err(Error::invalid(format!(
                "'{text}' is no layout{why}: raidz2:8 is one group of 8 devices, mirror:2x4 are 4 mirrors of 2, stripe:3 are 3 devices"
            )))
        };
        let Some((kind, numbers)) = text.split_once(':') else { return wrong("") };
        let (first, second) = numbers.split_once('x').unwrap_or((numbers, "1"));
        let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n > 0 && *n <= GROUPS_MAX);
        let (Some(first), Some(second)) = (number(first), number(second)) else { return wrong("") };
        let (kind, width, groups) = match kind {
            "stripe" if numbers.contains('x') => return wrong(", a stripe has one number"),
            "stripe" => (Kind::Stripe, 1, first),
            "mirror" => (Kind::Mirror, first, second),
            "raidz" | "raidz1" => (Kind::Raidz(1), first, second),
            "raidz2" => (Kind::Raidz(2), first, second),
            "raidz3" => (Kind::Raidz(3), first, second),
            _ => return wrong(""),
        };
        let least = match kind {
            Kind::Stripe => 1,
            Kind::Mirror => 2,
            Kind::Raidz(parity) => parity as usize + 1,
        };
        if width < least || width > WIDTH_MAX {
            return wrong(&format!(", such a group has {least} to {WIDTH_MAX} devices"));
        }
        if width * groups > DEVICES_MAX {
            return wrong(&format!(", it has more than {DEVICES_MAX} devices"));
        }
        Ok(Layout { kind, width, groups })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Stripe => return write!(f, "stripe:{}", self.groups),
            Kind::Mirror => write!(f, "mirror:{}", self.width)?,
            Kind::Raidz(parity) => write!(f, "raidz{parity}:{}", self.width)?,
        }
        if self.groups > 1 { write!(f, "x{}", self.groups) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_as_they_are_written() {
        for (text, devices) in [("raidz2:8", 8), ("mirror:2x4", 8), ("stripe:3", 3), ("raidz1:5x2", 10)] {
            let layout = Layout::parse(text).unwrap();
            assert_eq!((layout.to_string().as_str(), layout.devices()), (text, devices));
        }
        for text in [
            "",
            "raidz2",
            "raidz2:2",
            "mirror:1",
            "stripe:2x2",
            "raidz4:9",
            "mirror:2x0",
            "mirror:255x255",
            "stripe:9999999999999999999999",
        ] {
            assert!(Layout::parse(text).is_err(), "{text}");
        }
    }
}
