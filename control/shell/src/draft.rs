//! What was set and is not committed. Pure.

use api::attributes::Shape;

/// Settings in the order in which they were first made, the newest value of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub set: Vec<(String, String)>,
    pub unset: Vec<String>,
}

impl Draft {
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.unset.retain(|n| n != name);
        match self.set.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value.into(),
            None => self.set.push((name.into(), value.into())),
        }
    }

    pub fn unset(&mut self, name: &str) {
        self.set.retain(|(n, _)| n != name);
        if !self.unset.iter().any(|n| n == name) {
            self.unset.push(name.into());
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.set.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The value, taken out.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.set.iter().position(|(n, _)| n == name)?;
        Some(self.set.remove(at).1)
    }
}

/// A value in the spelling in which the shell shows it, or what is wrong with it.
pub(crate) fn spell(name: &str, shape: Shape, text: &str) -> Result<String, String> {
    match shape {
        Shape::Size if text == "none" => Ok("0".into()),
        Shape::Size => {
            let bytes = units::parse_size(text)
                .map_err(|why| format!("invalid value \"{text}\" for \"{name}\": {why}"))?;
            // Digits that the short form would drop are kept.
            let short = size(bytes);
            Ok(if units::parse_size(&short) == Ok(bytes) { short } else { bytes.to_string() })
        }
        Shape::Flag => Ok(match text {
            "on" | "yes" => "true".into(),
            "off" | "no" => "false".into(),
            _ => text.into(),
        }),
        Shape::Number => match text.parse::<u64>() {
            Ok(_) => Ok(text.into()),
            Err(_) => Err(format!("invalid value \"{text}\" for \"{name}\": it is a number")),
        },
        _ => Ok(text.into()),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    if bytes == 0 { "0".into() } else { units::pretty_size(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_has_the_newest_value_of_each() {
        let mut draft = Draft::default();
        for (name, value) in [("a", "1"), ("b", "2"), ("a", "3")] {
            draft.set(name, value);
        }
        assert_eq!(draft.set, [("a".to_string(), "3".to_string()), ("b".into(), "2".into())]);
        draft.unset("a");
        assert_eq!((draft.get("a"), draft.unset.len()), (None, 1));
        draft.set("a", "4");
        assert!(draft.unset.is_empty());
        assert_eq!(draft.take("a").as_deref(), Some("4"));
    }

    #[test]
    fn values_are_spelt_one_way() {
        for (shape, text, shown) in [
            (Shape::Size, "16384", "16K"),
            (Shape::Size, "16k", "16K"),
            (Shape::Size, "1T", "1T"),
            (Shape::Size, "1025", "1025"),
            (Shape::Size, "none", "0"),
            (Shape::Flag, "on", "true"),
            (Shape::Flag, "verify", "verify"),
            (Shape::Word, "latency", "latency"),
        ] {
            assert_eq!(spell("x", shape, text).unwrap(), shown);
        }
        assert!(spell("x", Shape::Size, "much").is_err() && spell("x", Shape::Number, "some").is_err());
    }
}
