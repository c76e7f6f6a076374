//! Zero-length encoding: runs of zeros are counted, everything else is copied.
//!
//! ```text
//!   0..=63     the next n + 1 bytes are literals
//!   64..=255   n - 63 zeros
//! ```

/// Lengths of literal runs come first among the codes, then those of zeros.
const LITERALS_MAX: usize = 64;
const ZEROS_MAX: usize = 256 - LITERALS_MAX;

pub fn compress(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let (mut rest, mut at) = (src, 0);
    while let Some(&first) = rest.first() {
        let run = if first == 0 { zeros(rest) } else { literals(rest) };
        let (head, tail) = rest.split_at(run);
        let code = if first == 0 { LITERALS_MAX + run - 1 } else { run - 1 };
        *dst.get_mut(at)? = code as u8;
        at += 1;
        if first != 0 {
            dst.get_mut(at..at + run)?.copy_from_slice(head);
            at += run;
        }
        rest = tail;
    }
    Some(at)
}

fn zeros(rest: &[u8]) -> usize {
    rest.iter().take(ZEROS_MAX).take_while(|&&b| b == 0).count()
}

/// Up to the next two zeros: a single one costs less as a literal than as a run of its own.
fn literals(rest: &[u8]) -> usize {
    let window = &rest[..rest.len().min(LITERALS_MAX)];
    let pair = window.windows(2).position(|pair| pair == [0, 0]);
    pair.unwrap_or(window.len() - usize::from(window.last() == Some(&0)))
}

pub fn decompress(src: &[u8], dst: &mut [u8]) -> Option<()> {
    let (mut rest, mut at) = (src, 0);
    while at < dst.len() {
        let (&code, tail) = rest.split_first()?;
        let code = usize::from(code);
        if code < LITERALS_MAX {
            let (head, tail) = tail.split_at_checked(code + 1)?;
            dst.get_mut(at..at + head.len())?.copy_from_slice(head);
            at += head.len();
            rest = tail;
        } else {
            let run = code - LITERALS_MAX + 1;
            dst.get_mut(at..at + run)?.fill(0);
            at += run;
            rest = tail;
        }
    }
    Some(())
}
