//! Which number a LUN gets. Pure.

use super::LunFacts;
use crate::san::Network;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Error, Kind, Result};

/// What the flat addressing of SCSI has room for.
pub(crate) const NUMBER_MAX: u16 = 16383;

/// What an administrator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The one it has, if no other LUN would be seen under it too; else the lowest that is free.
    Keep(Option<u16>),
    /// This one, or an error.
    Exactly(u16),
}

/// The number for `lun` as its groups will be, beside all `others`.
pub(crate) fn choose(network: &Network, lun: &LunFacts, others: &[Arc<LunFacts>], wish: Wish) -> Result<u16> {
    let met = others.iter().filter(|other| other.dataset != lun.dataset && network.meet(lun, other));
    let mut taken: BTreeMap<u16, &str> = BTreeMap::new();
    for other in met {
        // Of several, the first is named.
        let Some(number) = other.number else { continue };
        taken.entry(number).or_insert(&other.dataset);
    }
    let who = |number: u16| taken.get(&number);
    match wish {
        Wish::Exactly(number) if number > NUMBER_MAX => {
            Err(Error::invalid(format!("a LUN number is at most {NUMBER_MAX}")))
        }
        Wish::Exactly(number) => match who(number) {
            Some(other) => Err(Error::new(Kind::Exists, "number a LUN").because(format!(
                "the LUN '{other}' has the number {number}, and one initiator would see both"
            ))),
            None => Ok(number),
        },
        Wish::Keep(Some(number)) if who(number).is_none() => Ok(number),
        Wish::Keep(_) => (0..=NUMBER_MAX)
            .find(|number| who(*number).is_none())
            .ok_or_else(|| Error::new(Kind::NoSpace, "number a LUN").because("every number is taken")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lun(dataset: &str, number: Option<u16>, target_group: &str) -> LunFacts {
        LunFacts {
            dataset: dataset.into(),
            number,
            target_group: target_group.into(),
            initiator_groups: vec!["default".into()],
            ..LunFacts::default()
        }
    }

    #[test]
    fn numbers_are_low_and_kept_and_never_shared_where_both_are_seen() {
        let network = Network::default();
        let others = [lun("p/a", Some(0), "x"), lun("p/b", Some(1), "default"), lun("p/c", Some(2), "y")];
        let others = others.map(Arc::new);
        let choose = |lun: &LunFacts, wish| choose(&network, lun, &others, wish);
        let new = |group| lun("p/new", None, group);
        assert_eq!(choose(&new("default"), Wish::Keep(None)).unwrap(), 3);
        assert_eq!(choose(&new("x"), Wish::Keep(None)).unwrap(), 2, "who sees it does not see c");
        assert_eq!(choose(&new("z"), Wish::Keep(None)).unwrap(), 0);
        assert_eq!(choose(&new("default"), Wish::Keep(Some(7))).unwrap(), 7);
        assert_eq!(choose(&new("default"), Wish::Keep(Some(1))).unwrap(), 3);
        assert_eq!(choose(&new("x"), Wish::Exactly(2)).unwrap(), 2);
        let said = choose(&new("x"), Wish::Exactly(1)).unwrap_err().to_string();
        assert!(said.contains("'p/b' has the number 1"), "{said}");
        assert!(choose(&new("z"), Wish::Exactly(16384)).is_err());
        assert_eq!(choose(&others[1], Wish::Keep(Some(1))).unwrap(), 1, "it is not in its own way");
    }
}
