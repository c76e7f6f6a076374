//! Words that are never shown.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A password or CHAP secret on its way to where it is kept: it travels in requests, never in replies but a backup, and
/// whoever prints it for debugging prints stars.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// For whoever must compute with it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed_with_what_holds_it() {
        let secret = Secret::new("correct horse");
        assert_eq!(format!("{:?}", Some(&secret)), "Some(***)");
        assert_eq!(secret.reveal(), "correct horse");
    }
}
