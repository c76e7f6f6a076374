//! Mode pages: the write cache, write protection, the format of sense, and whether aborted commands are answered.
//!
//! Four bits can be changed, and all initiators share them; nothing is saved, the configuration says what they are when
//! the unit comes up.

use crate::BLOCK;
use crate::sense::Sense;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    /// WCE: writes are acknowledged before they are durable.
    pub write_cache: bool,
    /// SWP.
    pub write_protect: bool,
    /// D_SENSE.
    pub descriptors: bool,
    /// TAS: commands that another initiator aborted are answered.
    pub tell_aborted: bool,
}

const CACHING: u8 = 0x08;
const CONTROL: u8 = 0x0a;
const EXCEPTIONS: u8 = 0x1c;
const ALL: u8 = 0x3f;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub ten: bool,
    /// A block descriptor is wanted.
    pub descriptor: bool,
    /// And it may be the long one.
    pub long: bool,
    pub control: u8,
    pub page: u8,
    pub subpage: u8,
}

/// The part of a unit that shows in the header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    pub size: u64,
    pub read_only: bool,
}

impl Modes {
    fn caching(&self) -> Vec<u8> {
        let mut page = vec![0; 20];
        (page[0], page[1]) = (CACHING, 18);
        page[2] = u8::from(self.write_cache) << 2;
        page
    }

    fn control(&self) -> Vec<u8> {
        let mut page = vec![0; 12];
        (page[0], page[1]) = (CONTROL, 10);
        // A task set for each initiator.
        page[2] = 0x20 | u8::from(self.descriptors) << 2;
        // Commands may be reordered.
        page[3] = 0x10;
        page[4] = u8::from(self.write_protect) << 3;
        page[5] = u8::from(self.tell_aborted) << 6;
        // There is no limit to how long we may be busy.
        (page[8], page[9]) = (0xff, 0xff);
        page
    }

    fn exceptions() -> Vec<u8> {
        let mut page = vec![0; 12];
        (page[0], page[1]) = (EXCEPTIONS, 10);
        page
    }

    fn page(&self, page: u8) -> Option<Vec<u8>> {
        match page {
            CACHING => Some(self.caching()),
            CONTROL => Some(self.control()),
            EXCEPTIONS => Some(Modes::exceptions()),
            _ => None,
        }
    }

    /// The page with 1 in every bit that can be changed.
    fn changeable(page: u8) -> Option<Vec<u8>> {
        let none =
            Modes { write_cache: false, write_protect: false, descriptors: false, tell_aborted: false };
        let all = Modes { write_cache: true, write_protect: true, descriptors: true, tell_aborted: true };
        let (mut mask, set) = (none.page(page)?, all.page(page)?);
        mask.iter_mut().zip(&set).skip(2).for_each(|(a, b)| *a ^= b);
        Some(mask)
    }

    /// The answer to MODE SENSE. `defaults` are those the unit came up with.
    pub fn sense(&self, defaults: &Modes, ask: Ask, medium: Medium) -> Result<Vec<u8>, Sense> {
        let of = |page| match ask.control {
            0 => Ok(self.page(page)),
            1 => Ok(Modes::changeable(page)),
            2 => Ok(defaults.page(page)),
            _ => Err(Sense::CANNOT_SAVE),
        };
        let wrong_page = Sense::field(2, Some(5));
        let all_subpages = ask.subpage == 0xff;
        if ask.subpage != 0 && !all_subpages {
            return Err(Sense::field(3, None));
        }
        let pages = match ask.page {
            ALL => [of(CACHING)?, of(CONTROL)?, of(EXCEPTIONS)?].into_iter().flatten().flatten().collect(),
            page => of(page)?.ok_or(wrong_page)?,
        };
        let blocks = medium.size / BLOCK;
        let descriptor = match (ask.descriptor, ask.long) {
            (false, _) => Vec::new(),
            (true, true) => [&blocks.to_be_bytes()[..], &[0; 4], &(BLOCK as u32).to_be_bytes()].concat(),
            (true, false) => {
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                [blocks.to_be_bytes(), (BLOCK as u32).to_be_bytes()].concat()
            }
        };
        // Write protection, and that DPO and FUA are understood.
        let flags = u8::from(medium.read_only || self.write_protect) << 7 | 0x10;
        let mut bytes = if ask.ten {
            let mut head = vec![0, 0, 0, flags, u8::from(ask.descriptor && ask.long), 0];
            head.extend((descriptor.len() as u16).to_be_bytes());
            head
        } else {
            vec![0, 0, flags, descriptor.len() as u8]
        };
        bytes.extend(descriptor);
        bytes.extend::<Vec<u8>>(pages);
        if ask.ten {
            let len = (bytes.len() - 2) as u16;
            bytes[..2].copy_from_slice(&len.to_be_bytes());
        } else {
            bytes[0] = (bytes.len() - 1) as u8;
        }
        Ok(bytes)
    }

    /// What MODE SELECT makes of the modes. Nothing is changed unless all of it is right.
    pub fn select(&self, ten: bool, list: &[u8], medium: Medium) -> Result<Modes, Sense> {
        if list.is_empty() {
            return Ok(*self);
        }
        let head = if ten { 8 } else { 4 };
        if list.len() < head {
            return Err(Sense::LIST_LENGTH);
        }
        let (descriptor, long) = match ten {
            true => (usize::from(u16::from_be_bytes([list[6], list[7]])), list[4] & 1 == 1),
            false => (usize::from(list[3]), false),
        };
        let mut rest = &list[head..];
        if descriptor > 0 {
            let bytes = rest.get(..descriptor).ok_or(Sense::LIST_LENGTH)?;
            check_descriptor(bytes, long, medium)?;
            rest = &rest[descriptor..];
        }
        let mut modes = *self;
        while !rest.is_empty() {
            let at = (list.len() - rest.len()) as u16;
            let len = 2 + usize::from(*rest.get(1).ok_or(Sense::LIST_LENGTH)?);
            let page = rest.get(..len).ok_or(Sense::LIST_LENGTH)?;
            modes.change(page, at)?;
            rest = &rest[len..];
        }
        Ok(modes)
    }

    fn change(&mut self, page: &[u8], at: u16) -> Result<(), Sense> {
        // Subpages have none of ours; PS is reserved here.
        let code = page[0] & 0x7f;
        let (Some(now), Some(mask)) = (self.page(code), Modes::changeable(code)) else {
            return Err(Sense::parameter(at));
        };
        if page.len() != now.len() {
            return Err(Sense::parameter(at + 1));
        }
        for (i, ((new, now), mask)) in page.iter().zip(&now).zip(&mask).enumerate().skip(2) {
            if (new ^ now) & !mask != 0 {
                return Err(Sense::parameter(at + i as u16));
            }
        }
        match code {
            CACHING => self.write_cache = page[2] & 0x04 != 0,
            CONTROL => {
                self.descriptors = page[2] & 0x04 != 0;
                self.write_protect = page[4] & 0x08 != 0;
                self.tell_aborted = page[5] & 0x40 != 0;
            }
            _ => {}
        }
        Ok(())
    }
}

/// It may only say what is so: blocks have one size, and the unit one length.
fn check_descriptor(bytes: &[u8], long: bool, medium: Medium) -> Result<(), Sense> {
    let number =
        |range: std::ops::Range<usize>| bytes[range].iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let (count, most, block) = match (bytes.len(), long) {
        (16, true) => (number(0..8), u64::MAX, number(12..16)),
        // Density codes are obsolete.
        (8, false) => (number(0..4), u64::from(u32::MAX), number(5..8)),
        _ => return Err(Sense::parameter(3)),
    };
    let fits = count == 0 || count == most || count == medium.size / BLOCK;
    if fits && block == BLOCK { Ok(()) } else { Err(Sense::parameter(4)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: Modes =
        Modes { write_cache: true, write_protect: false, descriptors: false, tell_aborted: false };
    const MEDIUM: Medium = Medium { size: 1 << 20, read_only: false };

    fn ask(page: u8) -> Ask {
        Ask { ten: false, descriptor: true, long: false, control: 0, page, subpage: 0 }
    }

    #[test]
    fn what_was_sensed_can_be_selected_with_a_bit_changed() {
        let mut bytes = MODES.sense(&MODES, ask(ALL), MEDIUM).unwrap();
        assert_eq!(usize::from(bytes[0]), bytes.len() - 1);
        bytes[0] = 0;
        assert_eq!(MODES.select(false, &bytes, MEDIUM), Ok(MODES));
        bytes[12 + 2] = 0; // WCE
        bytes[12 + 20 + 4] = 0x08; // SWP
        let changed = MODES.select(false, &bytes, MEDIUM).unwrap();
        assert_eq!(changed, Modes { write_cache: false, write_protect: true, ..MODES });
        bytes[12 + 20 + 3] ^= 0x10;
        assert_eq!(MODES.select(false, &bytes, MEDIUM), Err(Sense::parameter(35)));
    }

    #[test]
    fn lists_that_end_too_early_are_refused() {
        let bytes = MODES.sense(&MODES, Ask { ten: true, ..ask(CONTROL) }, MEDIUM).unwrap();
        for len in 1..bytes.len() {
            let whole = MODES.select(true, &bytes[..len], MEDIUM).is_ok();
            assert_eq!(whole, len == 16, "{len}");
        }
        assert_eq!(MODES.select(true, &[], MEDIUM), Ok(MODES));
        assert!(MODES.sense(&MODES, Ask { control: 3, ..ask(ALL) }, MEDIUM).is_err());
        assert!(MODES.sense(&MODES, ask(0x01), MEDIUM).is_err());
    }
}
