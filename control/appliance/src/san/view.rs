//! Who sees what: the network and the LUNs of one moment, as the protocol asks. Pure.

use super::records::{Credentials, Network, TargetRecord};
use crate::shares::LunFacts;
use api::san::{Auth, Identity, Members};
use std::sync::Arc;

/// The network and its LUNs at one moment; [`crate::Appliance::san_generation`] tells when it is out of date.
#[derive(Clone, Debug, Default)]
pub struct SanView {
    pub(crate) network: Network,
    pub(crate) luns: Vec<Arc<LunFacts>>,
    pub(crate) generation: u64,
}

/// A logical unit as one initiator sees it through one target.
#[derive(Clone, Copy, Debug)]
pub struct Lu<'a> {
    pub number: u16,
    pub facts: &'a LunFacts,
}

/// How a login proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What the initiator must show; `None` where nothing is asked of it.
    pub initiator: Option<Credentials>,
    /// What the target shows when it is asked in return.
    pub target: Option<Credentials>,
}

impl SanView {
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What INQUIRY says of every unit.
    pub fn identity(&self) -> &Identity {
        &self.network.identity
    }

    /// All targets, by IQN.
    pub fn targets(&self) -> impl Iterator<Item = (&str, &TargetRecord)> {
        self.network.targets.iter().map(|(iqn, record)| (iqn.as_str(), record))
    }

    pub fn target(&self, iqn: &str) -> Option<&TargetRecord> {
        self.network.targets.get(&iqn.to_ascii_lowercase())
    }

    /// The targets of which an initiator is told: those through which it sees something.
    pub fn targets_for(&self, initiator: &str) -> Vec<(&str, &TargetRecord)> {
        self.targets().filter(|(iqn, _)| self.units(iqn, initiator).next().is_some()).collect()
    }

    /// What an initiator sees through a target, in the order of numbers.
    pub fn luns(&self, target: &str, initiator: &str) -> Vec<Lu<'_>> {
        let (target, initiator) = (target.to_ascii_lowercase(), initiator.to_ascii_lowercase());
        let mut units: Vec<Lu<'_>> = self.units(&target, &initiator).collect();
        units.sort_by_key(|unit| unit.number);
        units
    }

    /// The targets through which an initiator sees a LUN: its paths.
    pub fn paths(&self, dataset: &str, initiator: &str) -> Vec<(&str, &TargetRecord)> {
        let sees = |iqn: &str| self.units(iqn, initiator).any(|unit| unit.facts.dataset == dataset);
        self.targets().filter(|(iqn, _)| sees(iqn)).collect()
    }

    fn units(&self, target: &str, initiator: &str) -> impl Iterator<Item = Lu<'_>> {
        let initiator = initiator.to_ascii_lowercase();
        let is_known = self.network.targets.contains_key(target);
        let target = target.to_string();
        self.luns.iter().filter(move |_| is_known).filter_map(move |facts| {
            let number = facts.number.filter(|_| facts.online)?;
            let through = self.network.is_in(Members::Targets, &facts.target_group, &target);
            let by = |group: &String| self.network.is_in(Members::Initiators, group, &initiator);
            (through && facts.initiator_groups.iter().any(by)).then_some(Lu { number, facts })
        })
    }

    /// What a login to a target needs; `Err` when it cannot succeed: the target wants proof, and none is kept for this
    /// initiator.
    pub fn proof(&self, target: &str, initiator: &str) -> Result<Proof, &'static str> {
        let record = self.target(target).ok_or("there is no such target")?;
        let whole = |chap: &Credentials| !chap.secret.is_empty();
        let own = Some(record.chap.clone()).filter(whole);
        if record.auth == Auth::None {
            return Ok(Proof { initiator: None, target: own });
        }
        let initiator = initiator.to_ascii_lowercase();
        let kept = self.network.initiators.get(&initiator).map(|i| i.chap.clone()).filter(whole);
        let mut kept = kept.ok_or("no CHAP secret is kept for this initiator")?;
        if kept.user.is_empty() {
            // As initiators do when they were given no other.
            kept.user = initiator;
        }
        Ok(Proof { initiator: Some(kept), target: own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::san::records::{InitiatorRecord, at_most_one_number};
    use std::collections::BTreeSet;

    const A: &str = "iqn.2001-04.com.example:a";
    const B: &str = "iqn.2001-04.com.example:b";
    const T1: &str = "iqn.2001-04.com.example:t1";
    const T2: &str = "iqn.2001-04.com.example:t2";

    fn lun(dataset: &str, number: u16, target_group: &str, initiator_groups: &[&str]) -> LunFacts {
        LunFacts {
            dataset: dataset.into(),
            number: Some(number),
            online: true,
            target_group: target_group.into(),
            initiator_groups: initiator_groups.iter().map(ToString::to_string).collect(),
            ..LunFacts::default()
        }
    }

    fn group(name: &str, members: &[&str]) -> (String, BTreeSet<String>) {
        (name.into(), members.iter().map(ToString::to_string).collect())
    }

    fn view(luns: Vec<LunFacts>) -> SanView {
        let mut network = Network::default();
        for iqn in [T1, T2] {
            network.targets.insert(iqn.into(), TargetRecord::default());
        }
        network.target_groups.extend([group("tgt", &[T1])]);
        network.initiator_groups.extend([group("init", &[A]), group("other", &[B])]);
        SanView { network, luns: luns.into_iter().map(Arc::new).collect(), generation: 1 }
    }

    fn seen(view: &SanView, target: &str, initiator: &str) -> Vec<(u16, String)> {
        view.luns(target, initiator).into_iter().map(|lu| (lu.number, lu.facts.dataset.clone())).collect()
    }

    #[test]
    fn a_lun_is_seen_by_its_groups_and_by_nobody_else() {
        let mut off = lun("p/off", 9, "default", &["default"]);
        off.online = false;
        let view = view(vec![
            lun("p/log", 1, "default", &["default"]),
            lun("p/data", 0, "tgt", &["init"]),
            lun("p/none", 2, "default", &[api::san::NOBODY]),
            lun("p/gone", 3, "a group that is gone", &["default"]),
            off,
        ]);
        let (data, log) = ((0, "p/data".to_string()), (1, "p/log".to_string()));
        assert_eq!(seen(&view, T1, A), [data, log.clone()]);
        assert_eq!(seen(&view, T1, &A.to_uppercase()), seen(&view, T1, A), "names have no case");
        assert_eq!(seen(&view, T2, A), std::slice::from_ref(&log), "not through another target");
        assert_eq!(seen(&view, T1, B), std::slice::from_ref(&log), "not by another initiator");
        assert_eq!(seen(&view, "iqn.2001-04.com.example:gone", A), []);
        let paths = |d| view.paths(d, A).into_iter().map(|(iqn, _)| iqn).collect::<Vec<_>>();
        assert_eq!(paths("p/log"), [T1, T2]);
        assert_eq!(paths("p/data"), [T1]);
    }

    #[test]
    fn targets_without_anything_to_see_are_not_told() {
        let view = view(vec![lun("p/data", 0, "tgt", &["init"])]);
        let told =
            |initiator| view.targets_for(initiator).into_iter().map(|(iqn, _)| iqn).collect::<Vec<_>>();
        assert_eq!(told(A), [T1]);
        assert_eq!(told(B), Vec::<&str>::new());
    }

    #[test]
    fn one_number_means_one_lun_to_whoever_could_see_both() {
        let check = |a: LunFacts, b: LunFacts| {
            at_most_one_number(&view(Vec::new()).network, &[a, b].map(Arc::new)).is_ok()
        };
        let data = || lun("p/data", 0, "tgt", &["init"]);
        assert!(!check(data(), lun("p/log", 0, "default", &["default"])));
        assert!(check(data(), lun("p/log", 1, "default", &["default"])));
        assert!(!check(data(), lun("p/x", 0, "tgt", &["other", "init"])));
        assert!(check(data(), lun("p/x", 0, "tgt", &["other"])), "no initiator is in both");
        assert!(check(data(), lun("p/x", 0, "another", &["init"])), "no target is in both");
        assert!(check(data(), lun("p/x", 0, "default", &[api::san::NOBODY])));
    }

    #[test]
    fn who_must_prove_itself_needs_a_secret_here() {
        let mut view = view(Vec::new());
        assert_eq!(view.proof(T1, A), Ok(Proof { initiator: None, target: None }));
        let own = Credentials { user: "t".into(), secret: "target secret".into() };
        let record = TargetRecord { auth: Auth::Chap, chap: own.clone(), ..TargetRecord::default() };
        view.network.targets.insert(T1.into(), record);
        assert!(view.proof(T1, A).is_err(), "whoever has no secret is not let in");
        let chap = Credentials { user: String::new(), secret: "initiator secret".into() };
        view.network.initiators.insert(A.into(), InitiatorRecord { chap, ..InitiatorRecord::default() });
        let asked = Credentials { user: A.into(), secret: "initiator secret".into() };
        assert_eq!(view.proof(T1, A), Ok(Proof { initiator: Some(asked), target: Some(own.clone()) }));
        assert!(!format!("{view:?}").contains("secret\""), "{view:?}");
        assert!(!format!("{own:?}").contains("target secret"));
    }
}
