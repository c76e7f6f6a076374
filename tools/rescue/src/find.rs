//! `find`: paths below a place, all or those that a name, a kind or a time chooses.

use crate::session::Session;
use crate::text;
use crate::walk::{Found, Walk, shown};
use units::Result;

/// What must be true of a file to be shown.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The last name of its path, with `*` and `?` for any characters or one.
    pub name: Option<String>,
    /// Its kind, as `find -type` has them.
    pub kind: Option<char>,
    /// At least so many bytes.
    pub size_min: Option<u64>,
}

impl Search {
    fn wants(&self, found: &Found) -> bool {
        let name = found.path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        self.name.as_ref().is_none_or(|pattern| matches(pattern.as_bytes(), name))
            && self.kind.is_none_or(|kind| found.stat.kind.letter() == kind)
            && self.size_min.is_none_or(|size| found.stat.size >= size)
    }
}

pub async fn run(session: &mut Session, places: &[String], search: &Search) -> Result<()> {
    for place in places {
        let node = match session.find(place, true).await {
            Ok(node) => node,
            Err(e) => {
                session.output.complain(format!("cannot search '{place}': {e}"));
                continue;
            }
        };
        let mut walk = Walk::new(place, node, session.opened());
        while let Some(found) = walk.next(session).await? {
            if search.wants(&found) {
                let mut line = shown(place, b"").into_bytes();
                if !found.path.is_empty() {
                    line = shown(place, b"x").into_bytes();
                    line.pop();
                    line.extend(text::name(&found.path));
                }
                session.output.line(&line)?;
            }
        }
    }
    Ok(())
}

/// Whether a name is of a pattern.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where to go on when what follows the last star did not fit.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    p = after;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_stand_for_what_they_do() {
        for (pattern, name, is) in [
            ("*", "", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbb", false),
            ("*.tar.*", "x.tar.tar.gz", true),
            ("?b", "ab", true),
            ("?b", "b", false),
            ("ab", "abc", false),
            ("*a*b*a*", "xaxbxbx", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), is, "{pattern} {name}");
        }
    }
}
