//! Which volumes NBD offers, and at which of its doors.
//!
//! The protocol knows no initiators: a client that reaches a door has all that is offered there. So a LUN that is
//! masked for iSCSI is offered over NBD only where an administrator says so, and a door that is open unasked offers one
//! volume.
//!
//! ```text
//!                             the socket of the home    TCP, asked for    TCP of `up`, unasked
//!   half a copy                        -                      -                   -
//!   cenote:nbd=off                     -                      -                   -
//!   --export (if there is any)    these, alone           these, alone        these, alone
//!   cenote:nbd=socket             by its name                -                   -
//!   cenote:nbd=on                    offered                offered         the first volume
//!   masked, or offline                 -                      -                   -
//!   others                           offered                offered         the first volume
//! ```
//!
//! Masked is a volume whose target group or initiator groups are not `default`, or that a target of its group wants CHAP
//! for. A snapshot is offered where its volume is. What is offered by its name is in no list: the clones of a rehearsal are
//! for the process that made them. The table is [`Offers::has`], and pure.

use crate::san::Network;
use crate::shares::masks::{self, AUTO, NBD, SOCKET};
use api::NbdExport;
use api::san::{Auth, Members};
use dsl::Stats;
use dsl::props::{PropName, Source, Value};
use units::Result;

/// What was said when the daemon was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Volumes, or what they are below; if there are any, nothing else is offered.
    pub named: Vec<String>,
    /// The volume of the door that is open unasked.
    pub first: Option<String>,
}

/// How a client came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Socket,
    /// An address that was named.
    Asked,
    /// An address that `up` opens by itself.
    Unasked,
}

/// What decides whether a volume is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// By its property; what is neither `on` nor `auto` is no.
    pub said: Option<bool>,
    /// To a client at the socket that knows its name, and to no other.
    pub is_socket_alone: bool,
    pub masked: bool,
    /// It is being made, and will take the place of another.
    pub is_half_copy: bool,
}

impl Facts {
    pub async fn of(stats: &Stats<'_>, dataset: &str, network: &Network) -> Result<Facts> {
        let own = stats.get(&PropName::User(crate::datasets::migration::COPY_OF.into())).await?;
        let word = match stats.get(&PropName::User(NBD.into())).await? {
            Some((Value::Text(word), _)) if word != AUTO => Some(word),
            _ => None,
        };
        let is_socket_alone = word.as_deref() == Some(SOCKET);
        Ok(Facts {
            said: word.map(|word| word == "on" || is_socket_alone),
            is_socket_alone,
            masked: is_masked(stats, dataset, network).await?,
            is_half_copy: matches!(own, Some((_, Source::Local))),
        })
    }
}

async fn is_masked(stats: &Stats<'_>, dataset: &str, network: &Network) -> Result<bool> {
    let seen = masks::seen_by(stats, dataset).await?;
    if !seen.online || !seen.is_by_all() {
        return Ok(true);
    }
    let mut targets = network.targets.iter();
    let wants_proof = targets.any(|(iqn, target)| {
        target.auth == Auth::Chap && network.is_in(Members::Targets, &seen.target_group, iqn)
    });
    Ok(seen.is_lun && wants_proof)
}

impl Offers {
    /// Whether a volume, by its dataset, is offered to clients that come in there.
    pub(crate) fn has(&self, through: Through, dataset: &str, facts: &Facts) -> bool {
        if facts.is_half_copy || facts.said == Some(false) {
            return false;
        }
        if !self.named.is_empty() {
            return self.named.iter().any(|name| disk::is_below(dataset, name));
        }
        if facts.is_socket_alone {
            return through == Through::Socket;
        }
        let is_open = facts.said == Some(true) || !facts.masked;
        is_open && (through != Through::Unasked || self.first.as_deref() == Some(dataset))
    }
}

impl Offers {
    /// The names of which there is no volume, nor one below.
    pub(crate) fn missing(&self, volumes: &[NbdExport]) -> Vec<String> {
        let is_there = |name: &&String| volumes.iter().any(|volume| disk::is_below(&volume.name, name));
        self.named.iter().filter(|name| !is_there(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(said: Option<bool>, masked: bool) -> Facts {
        Facts { said, masked, ..Facts::default() }
    }

    /// Every volume was offered to every process of the machine, LUNs of other initiators among them.
    #[test]
    fn a_masked_volume_is_offered_where_somebody_said_so_and_an_unasked_door_has_one_volume() {
        use Through::{Asked, Socket, Unasked};
        let usual = Offers { named: Vec::new(), first: Some("tank/vol1".into()) };
        let named = Offers { named: vec!["tank/a".into()], ..usual.clone() };
        let (plain, masked) = (facts(None, false), facts(None, true));
        for (offers, dataset, facts, at) in [
            (&usual, "tank/vol1", plain, [true, true, true]),
            (&usual, "tank/v", plain, [true, true, false]),
            (&usual, "tank/v", masked, [false, false, false]),
            (&usual, "tank/vol1", masked, [false, false, false]),
            (&usual, "tank/v", facts(Some(true), true), [true, true, false]),
            (&usual, "tank/vol1", facts(Some(false), false), [false, false, false]),
            (&usual, "tank/vol1", Facts { is_socket_alone: true, ..masked }, [true, false, false]),
            (&named, "tank/vol1", Facts { is_socket_alone: true, ..plain }, [false, false, false]),
            (&named, "tank/a", masked, [true, true, true]),
            (&named, "tank/a/b", plain, [true, true, true]),
            (&named, "tank/a", facts(Some(false), true), [false, false, false]),
            (&named, "tank/vol1", plain, [false, false, false]),
            (&usual, "tank/v", Facts { is_half_copy: true, ..plain }, [false, false, false]),
        ] {
            let found = [Socket, Asked, Unasked].map(|through| offers.has(through, dataset, &facts));
            assert_eq!(found, at, "{dataset} {facts:?} of {offers:?}");
        }
    }
}
