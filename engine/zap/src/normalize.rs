//! Making names that people take for the same compare equal: Unicode forms and letter case.
//!
//! A ZAP may be created with a normalisation (`normalization=formC`, `casesensitivity=insensitive`). The name is
//! stored as it was given, its hash is that of the normalised name, and a lookup may ask for equality after the
//! normalisation. The hash is on disk, so the result must be OpenZFS's byte for byte. This is its rule:
//!
//! ```text
//!   name ──▶ each letter to its simple upper case, if asked ──▶ decomposed ──▶ composed again, for C and KC
//! ```
//!
//! in Unicode 5.0, to which a character that came later is unknown and stays as it is: [`crate::unicode5`] says which
//! those are. Bytes that are no UTF-8 are kept.
//!
//! Known to differ from OpenZFS, whose own code departs from Unicode in these corners, so that such a name would not
//! be found by its other spellings: letters with more than 30 marks; marks that follow a separate Greek iota below
//! (U+0345) in upper case; letters of three parts written with their last mark twice. All single characters agree.

use crate::unicode5;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use units::{Error, Result};

/// How a ZAP normalises its names, as the bits it stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normalization(pub u64);

impl Normalization {
    /// Names are byte strings.
    pub const NONE: Normalization = Normalization(0);
    /// Letters are compared in upper case; goes with each of the forms, or alone.
    pub const UPPER: Normalization = Normalization(0x02);
    pub const FORM_D: Normalization = Normalization(0x10);
    pub const FORM_KD: Normalization = Normalization(0x20);
    pub const FORM_C: Normalization = Normalization(0x50);
    pub const FORM_KC: Normalization = Normalization(0x60);

    const FORMS: u64 = 0x70;

    #[must_use]
    pub const fn with(self, other: Normalization) -> Normalization {
        Normalization(self.0 | other.0)
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub(crate) fn without_case(self) -> Normalization {
        Normalization(self.0 & !Normalization::UPPER.0)
    }

    pub(crate) fn check(self) -> Result<()> {
        let form = Normalization(self.0 & Normalization::FORMS);
        let is_form = matches!(
            form,
            Normalization::NONE
                | Normalization::FORM_C
                | Normalization::FORM_D
                | Normalization::FORM_KC
                | Normalization::FORM_KD
        );
        if !is_form || self.0 & !(Normalization::FORMS | Normalization::UPPER.0) != 0 {
            return Err(Error::unsupported(format!("ZAP with unknown normalisation {:#x}", self.0)));
        }
        Ok(())
    }

    /// The form of `name` that is hashed and compared.
    pub(crate) fn apply(self, name: &[u8]) -> Cow<'_, [u8]> {
        if self.is_none() {
            return Cow::Borrowed(name);
        }
        let mut out = Vec::with_capacity(name.len());
        if name.is_ascii() {
            // No form changes ASCII.
            out.extend(name.iter().map(|b| if self.folds_case() { b.to_ascii_uppercase() } else { *b }));
            return Cow::Owned(out);
        }
        let mut run = String::new();
        let mut rest = name;
        while let [lead, ..] = rest {
            let (head, tail) = rest.split_at(sequence_len(*lead).min(rest.len()));
            match std::str::from_utf8(head).ok().and_then(|s| s.chars().next()) {
                Some(c) if self.folds_case() => run.push(unicode5::upper(c)),
                Some(c) => run.push(c),
                None => {
                    self.flush(&mut run, &mut out);
                    out.extend_from_slice(head);
                }
            }
            rest = tail;
        }
        self.flush(&mut run, &mut out);
        Cow::Owned(out)
    }

    fn folds_case(self) -> bool {
        self.0 & Normalization::UPPER.0 != 0
    }

    fn flush(self, run: &mut String, out: &mut Vec<u8>) {
        for known in unicode5::pieces(run) {
            let form = if known.is_known {
                Normalization(self.0 & Normalization::FORMS)
            } else {
                Normalization::NONE
            };
            let chars = known.text.chars();
            let text: String = match form {
                Normalization::FORM_C => chars.nfc().collect(),
                Normalization::FORM_D => chars.nfd().collect(),
                Normalization::FORM_KC => chars.nfkc().collect(),
                Normalization::FORM_KD => chars.nfkd().collect(),
                _ => chars.collect(),
            };
            out.extend_from_slice(text.as_bytes());
        }
        run.clear();
    }
}

/// How many bytes a character that starts with `lead` has; a byte that starts none stands for itself.
fn sequence_len(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(norm: Normalization, name: &str) -> String {
        String::from_utf8(norm.apply(name.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn names_take_the_form_they_are_compared_in() {
        let (c, d) = (Normalization::FORM_C, Normalization::FORM_D);
        let (kc, kd) = (Normalization::FORM_KC, Normalization::FORM_KD);
        let upper = Normalization::UPPER;
        for (norm, name, expected) in [
            (Normalization::NONE, "e\u{301}Ae", "e\u{301}Ae"),
            (c, "e\u{301}", "\u{e9}"),
            (d, "\u{e9}", "e\u{301}"),
            (c, "\u{fb01}", "\u{fb01}"),
            (kc, "\u{fb01}\u{e9}", "fi\u{e9}"),
            (kd, "\u{fb01}\u{e9}", "fie\u{301}"),
            (c, "\u{1100}\u{1161}", "\u{ac00}"),
            (upper, "stra\u{df}e \u{e9}", "STRA\u{df}E \u{c9}"),
            (upper.with(d), "caf\u{e9}", "CAFE\u{301}"),
            (upper.with(c), "cafe\u{301}", "CAF\u{c9}"),
            // Marks are sorted: the cedilla comes before the acute.
            (d, "c\u{301}\u{327}", "c\u{327}\u{301}"),
            // U+1F100 (6.1) is no compatibility form yet, and the letter after it is still folded.
            (kd.with(upper), "\u{1f100}a", "\u{1f100}A"),
        ] {
            assert_eq!(applied(norm, name), expected, "{norm:?} {name:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let norm = Normalization::FORM_C.with(Normalization::UPPER);
        assert_eq!(*norm.apply(b"a\xffe\xcc\x81\xc3"), *b"A\xff\xc3\x89\xc3");
    }

    #[test]
    fn only_combinations_that_exist_are_accepted() {
        for bits in [0, 0x02, 0x10, 0x20, 0x50, 0x60, 0x12, 0x62] {
            assert!(Normalization(bits).check().is_ok(), "{bits:#x}");
        }
        for bits in [1, 4, 0x40, 0x30, 0x70, 0x100, u64::MAX] {
            assert!(Normalization(bits).check().is_err(), "{bits:#x}");
        }
    }
}
