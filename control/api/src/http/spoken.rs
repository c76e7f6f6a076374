//! Words of the shell, said beside the requests that they make: a word that is declared has no code in the shell.
//!
//! ```text
//!   said "configuration alerts {receiver}" "test", "sends a test, and waits for what comes of it";
//!        └ where: the contexts that lead there     └ help
//!   said "storage events" "list [since]", "…";
//!                          └ the word, and the names of what follows it; in brackets: may be left away
//! ```
//!
//! Names are those of the declaration: a brace of its path, a field of its body, or else a parameter of its query. A brace
//! in a place stands for what the context is of. What no word names is as in a request that leaves it away.
//!
//! A word that takes more than that (one that looks something up, or edits a draft) is code of the shell.

use super::{Args, Declared, Given, Shape, Wrong, spelt};
use crate::Request;
use std::collections::BTreeMap;

/// A word of the shell; see the module.
#[derive(Clone, Copy, Debug)]
pub struct Spoken {
    pub place: &'static str,
    pub usage: &'static str,
    pub about: &'static str,
    /// What cannot be undone, in a sentence that the person confirms first.
    pub sure: Option<&'static str>,
}

const EMPTY: Shape = Shape::new("empty", &[]);

/// `receiver`, of `{receiver}`.
fn brace(part: &'static str) -> Option<&'static str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

impl Spoken {
    /// The word itself.
    pub fn word(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or_default()
    }

    /// Whether it is said in the context of one thing rather than of all.
    pub fn is_of_one(&self) -> bool {
        self.place.ends_with('}')
    }

    fn follow(&self) -> impl Iterator<Item = &'static str> {
        self.usage.split(' ').skip(1)
    }
}

impl Declared {
    /// The request of a word: `things` are what the context is of, in the order of the braces, `words` what follows.
    /// Errors: too few words or too many, or one that is not what it stands for.
    pub fn say(&self, spoken: &Spoken, things: &[String], words: &[String]) -> Result<Request, Wrong> {
        let least = spoken.follow().filter(|name| !name.starts_with('[')).count();
        if !(least..=spoken.follow().count()).contains(&words.len()) {
            return Err(Wrong::Invalid(format!("it is: {}", spoken.usage)));
        }
        let of_context = spoken.place.split(' ').filter_map(brace).zip(things);
        let following = spoken.follow().map(|name| name.trim_matches(['[', ']'])).zip(words);
        let shape = self.face.body.unwrap_or(&EMPTY);
        let (mut params, mut query, mut fields) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (name, text) in of_context.chain(following) {
            let (is_part, pair) =
                (self.face.path.split('/').filter_map(brace).any(|b| b == name), text.clone());
            match shape.field(name) {
                _ if is_part => drop(params.insert(name, pair)),
                Some(_) => fields.push((name.to_string(), pair)),
                None => query.push((name.to_string(), pair)),
            }
        }
        let body = serde_json::Value::Object(spelt(shape, &fields)).to_string();
        let args = Args::read(body.as_bytes(), self.face.body)?;
        (self.asked)(Given { params: &params, query: &query, args: &args })
    }
}
