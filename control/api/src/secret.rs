//! Text that is never shown: a password, or what stands for one.
//!
//! ```text
//!   print, log ──▶ ********          a struct that derives Serialize and holds one does not compile,
//!   serialise  ──▶ (not at all)      unless the field says #[serde(with = "secret::revealed")]: it means it
//!   reveal     ──▶ the text
//! ```
//!
//! The fields that mean it are those of requests on the socket of this machine, where a secret travels to the place that
//! keeps it, and a backup, which is sealed. Over HTTP a secret is a field of kind `Secret` or `ToldOnce`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What is shown in its place.
pub const STARS: &str = "********";

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// For code that must compute with it, or hand it over.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STARS)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STARS)
    }
}

/// For fields of which serialising the plain text is the purpose. Works for a [`Secret`] and for an `Option` of one.
pub mod revealed {
    use super::*;

    pub fn serialize<T: Revealed, S: Serializer>(secret: &T, serializer: S) -> Result<S::Ok, S::Error> {
        secret.text().serialize(serializer)
    }

    pub fn deserialize<'de, T: Revealed, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::Text::deserialize(deserializer).map(T::hidden)
    }

    /// A secret, or what may hold one.
    pub trait Revealed {
        type Text: Serialize + for<'de> Deserialize<'de>;
        fn text(&self) -> Self::Text;
        fn hidden(text: Self::Text) -> Self;
    }

    impl Revealed for Secret {
        type Text = String;

        fn text(&self) -> String {
            self.0.clone()
        }

        fn hidden(text: String) -> Secret {
            Secret(text)
        }
    }

    impl Revealed for Option<Secret> {
        type Text = Option<String>;

        fn text(&self) -> Option<String> {
            self.as_ref().map(|secret| secret.0.clone())
        }

        fn hidden(text: Option<String>) -> Option<Secret> {
            text.map(Secret)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::san::{San, TargetChange};
    use crate::{Call, Reply, Request};

    #[test]
    fn a_secret_is_not_printed_with_what_holds_it() {
        let secret = Secret::new("correct horse");
        assert_eq!(format!("{:?} {secret}", Some(&secret)), "Some(********) ********");
        assert_eq!(secret.reveal(), "correct horse");
    }

    /// Method lookup finds the method of `T` before that of `&T`: the first exists only for what serialises.
    struct Probe<T>(std::marker::PhantomData<T>);
    trait Serialises {
        fn serialises(&self) -> bool {
            true
        }
    }
    impl<T: Serialize> Serialises for Probe<T> {}
    trait DoesNot {
        fn serialises(&self) -> bool {
            false
        }
    }
    impl<T> DoesNot for &Probe<T> {}

    /// One of two types of this name serialised its plain text, so that whatever derived `Serialize` gave it away.
    #[test]
    fn a_secret_has_no_serialised_form_of_its_own() {
        assert!((&Probe::<String>(std::marker::PhantomData)).serialises(), "the probe sees what serialises");
        assert!(!(&Probe::<Secret>(std::marker::PhantomData)).serialises());
        assert!(!(&Probe::<Option<Secret>>(std::marker::PhantomData)).serialises());
    }

    #[test]
    fn requests_on_the_socket_carry_secrets_on_purpose() {
        for chap_secret in [None, Some(Secret::new("a secret of chap"))] {
            let set = TargetChange { chap_secret, ..TargetChange::default() };
            let request = Request::San(San::TargetSet { iqn: "iqn.x".into(), set });
            let call = Call { command: String::new(), uid: 0, request };
            let line = serde_json::to_string(&call).unwrap();
            assert_eq!(serde_json::from_str::<Call>(&line).unwrap(), call);
            assert!(!format!("{call:?}").contains("a secret"));
        }
        let backup = Reply::Configuration { text: Secret::new("sealed") };
        let line = serde_json::to_string(&backup).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), backup);
    }
}
