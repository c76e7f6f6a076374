//! Passwords, kept as Argon2id: a guesser pays 19 MiB of memory for every guess.

use crate::{AccessError, Kind, Result, Secret};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};

/// What OWASP asks for at least: some twenty milliseconds of one core.
const MEMORY_KIB: u32 = 19 << 10;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const BYTES: usize = 32;
/// What a hash that was kept may ask for: more than any version did, and little enough to be asked at each login.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 8;
pub(crate) const SALT: usize = 16;
/// A longer one is no password but an attempt to keep us busy.
const LENGTH_MAX: usize = 1024;
const LENGTH_MIN: usize = 8;

/// A password's hash, with what it takes to make it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Password {
    /// Refuses what is too short to be one, or longer than anybody types.
    pub fn new(password: &Secret, salt: [u8; SALT]) -> Result<Password> {
        let length = password.reveal().len();
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&length) {
            return AccessError::invalid(format!("a password has {LENGTH_MIN} to {LENGTH_MAX} bytes"));
        }
        let mut new = Password {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: salt.into(),
            hash: Vec::new(),
        };
        new.hash = new
            .compute(password)
            .ok_or_else(|| AccessError::new(Kind::Invalid, "the password cannot be hashed"))?
            .into();
        Ok(new)
    }

    /// One that nothing matches, and that takes as long to find out.
    pub(crate) fn nobodys() -> Password {
        Password {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: vec![0; SALT],
            hash: Vec::new(),
        }
    }

    /// Slow on purpose: call it without a lock, and not on a loop.
    pub fn matches(&self, password: &Secret) -> bool {
        if password.reveal().len() > LENGTH_MAX {
            return false;
        }
        let Some(computed) = self.compute(password) else { return false };
        // Every byte is looked at, whichever differ.
        self.hash.len() == BYTES && self.hash.iter().zip(computed).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }

    fn compute(&self, password: &Secret) -> Option<[u8; BYTES]> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(BYTES)).ok()?;
        let mut hash = [0; BYTES];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(password.reveal().as_bytes(), &self.salt, &mut hash)
            .ok()?;
        Some(hash)
    }

    /// Whether it is one that was made here, now or by an earlier version: to check it costs no more than it may.
    pub(crate) fn is_sound(&self) -> bool {
        let costs = (1..=MEMORY_KIB_MAX).contains(&self.memory_kib)
            && (1..=PASSES_MAX).contains(&self.passes)
            && (1..=LANES_MAX).contains(&self.lanes);
        let is_computable = Params::new(self.memory_kib, self.passes, self.lanes, Some(BYTES)).is_ok();
        costs && is_computable && self.salt.len() == SALT && [0, BYTES].contains(&self.hash.len())
    }

    /// What tells this password from the one before it.
    pub(crate) fn mark(&self) -> &[u8] {
        &self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_matches_itself_alone() {
        let kept = Password::new(&Secret::new("correct horse"), [7; SALT]).unwrap();
        assert!(kept.matches(&Secret::new("correct horse")));
        assert!(!kept.matches(&Secret::new("correct horsf")));
        assert!(!kept.matches(&Secret::new("x".repeat(LENGTH_MAX + 1))));
        assert!(!Password::nobodys().matches(&Secret::new("")));
        let other = Password::new(&Secret::new("correct horse"), [8; SALT]).unwrap();
        assert_ne!(kept, other, "the salt makes them differ");
        for bad in ["short", &"x".repeat(LENGTH_MAX + 1)] {
            assert_eq!(Password::new(&Secret::new(bad), [0; SALT]).unwrap_err().kind, Kind::Invalid);
        }
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<Password>(&text).unwrap(), kept);
    }
}
