//! Numbers in few bytes, and what was written by them read again with suspicion.
//!
//! ```text
//!   number   seven bits a byte, the lowest first; the highest bit says that more follow
//!   signed   0, -1, 1, -2 ... as 0, 1, 2, 3 ...
//!   numbers  kind (as they are | each less the one before, signed), then each of them
//! ```

use units::{Error, Result};

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn length(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// The difference as a signed number, so that small steps either way are small. It wraps, and is taken back by wrapping.
fn step(from: u64, to: u64) -> u64 {
    let signed = to.wrapping_sub(from) as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

fn stepped(from: u64, step: u64) -> u64 {
    let signed = (step >> 1) as i64 ^ -((step & 1) as i64);
    from.wrapping_add(signed as u64)
}

/// Writes the numbers in whichever of two ways is shorter: counts that vary are best as they are, levels by their steps.
pub(crate) fn put_all(out: &mut Vec<u8>, numbers: impl Iterator<Item = u64> + Clone) {
    let mut last = 0;
    let steps = numbers.clone().map(move |n| step(std::mem::replace(&mut last, n), n));
    let plain: usize = numbers.clone().map(length).sum();
    let stepwise: usize = steps.clone().map(length).sum();
    match stepwise < plain {
        true => {
            out.push(1);
            steps.for_each(|n| put(out, n));
        }
        false => {
            out.push(0);
            numbers.for_each(|n| put(out, n));
        }
    }
}

/// Bytes that may be anything.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or_else(too_short)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn number(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Error::corrupt("a number is larger than 64 bits"))
    }

    /// A number of things, of which there are not more than that.
    pub fn count(&mut self, max: usize) -> Result<usize> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count <= max {
            Ok(count)
        } else {
            Err(Error::corrupt(format!("{count} things where {max} can be")))
        }
    }

    pub fn numbers(&mut self, count: usize) -> Result<Vec<u64>> {
        let stepwise = match self.byte()? {
            0 => false,
            1 => true,
            other => return Err(Error::corrupt(format!("numbers of kind {other}"))),
        };
        let mut last = 0;
        let mut next = || {
            let number = self.number()?;
            last = if stepwise { stepped(last, number) } else { number };
            Ok(last)
        };
        (0..count).map(|_| next()).collect()
    }

    pub fn text(&mut self, max: usize) -> Result<&str> {
        let length = self.count(max)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(too_short)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| Error::corrupt("a name is no UTF-8"))
    }
}

fn too_short() -> Error {
    Error::corrupt("it ends too soon")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_either_way() {
        let large = 1u64 << 40;
        for numbers in [
            vec![],
            vec![0, 0, 0],
            vec![u64::MAX, 0, u64::MAX, 1, 1 << 63],
            vec![large, large + 1, large - 1, large],
            vec![5, 900, 3, 77, 128, 127],
        ] {
            let mut bytes = Vec::new();
            put_all(&mut bytes, numbers.iter().copied());
            let mut reader = Reader(&bytes);
            assert_eq!(reader.numbers(numbers.len()).unwrap(), numbers);
            assert!(reader.0.is_empty());
            let cut = &bytes[..bytes.len() - 1];
            assert!(Reader(cut).numbers(numbers.len()).is_err());
        }
        let mut level = Vec::new();
        put_all(&mut level, [large, large, large, large].into_iter());
        assert_eq!(level.len(), 1 + 6 + 3, "a level that stays costs a byte");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert!(Reader(&[0xff; 9]).number().is_err());
        assert!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).number().is_err());
        assert_eq!(
            Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).number().unwrap(),
            u64::MAX
        );
        assert!(Reader(&[5]).count(4).is_err());
        assert!(Reader(&[2]).numbers(0).is_err());
        assert!(Reader(&[1, 0xff]).text(9).is_err());
    }
}
