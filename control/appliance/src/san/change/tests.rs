//! Changes against a configuration in a file, without pools.

use super::*;
use api::san::{Auth, DEFAULT_GROUP, Identity, NOBODY};
use store::{Look as _, Store};

const T: &str = "iqn.2001-04.com.example:t";
const A: &str = "iqn.2001-04.com.example:a";

struct Kept {
    store: Store,
    dir: std::path::PathBuf,
    luns: Vec<Arc<LunFacts>>,
}

impl Kept {
    fn new(name: &str) -> Kept {
        let dir = std::env::temp_dir().join(format!("cenote-san-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Kept { store: Store::open(&dir.join("c")).unwrap(), dir, luns: Vec::new() }
    }

    fn ask(&self, asked: San) -> Result<Reply> {
        let luns = Luns { held: self.luns.clone(), ..Luns::default() };
        self.store.change(|w| change(w, asked, &luns, [1, 2]))
    }

    fn network(&self) -> Network {
        self.store.look(Network::read).unwrap()
    }

    fn says(&self, asked: San) -> String {
        let before = self.store.look(|r| r.all(&TARGETS)).unwrap();
        let e = self.ask(asked).unwrap_err();
        assert_eq!(self.store.look(|r| r.all(&TARGETS)).unwrap(), before, "a refusal changes nothing");
        why(About::Dataset, &e)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn target(iqn: &str, set: TargetChange) -> San {
    San::TargetCreate { iqn: Some(iqn.into()), set }
}

fn group(of: Members, name: &str, members: &[&str]) -> San {
    San::GroupCreate { of, name: name.into(), members: members.iter().map(ToString::to_string).collect() }
}

#[test]
fn targets_are_made_changed_and_destroyed_and_their_secrets_are_never_told() {
    let kept = Kept::new("targets");
    let Reply::Named { name } =
        kept.ask(San::TargetCreate { iqn: None, set: TargetChange::default() }).unwrap()
    else {
        panic!("a name")
    };
    assert!(iscsi_name(&name).is_ok(), "{name}");
    let set = TargetChange {
        alias: Some("one".into()),
        auth: Some(Auth::Chap),
        chap_user: Some("me".into()),
        chap_secret: Some(Secret::new("correct horse")),
        interfaces: Some(vec!["eth0".into()]),
    };
    kept.ask(target(T, set)).unwrap();
    let network = kept.network();
    assert_eq!((network.targets[&name].port, network.targets[T].port), (1, 2), "each port has its number");
    let told = network.tell();
    let json = serde_json::to_string(&told).unwrap();
    assert!(told.targets.iter().any(|t| t.has_chap_secret) && !json.contains("correct horse"), "{json}");
    assert!(!format!("{network:?}").contains("correct horse"));
    assert_eq!(told.target_groups[0].name, DEFAULT_GROUP);
    assert_eq!(told.target_groups[0].members.len(), 2);

    let change = TargetChange { auth: Some(Auth::None), ..TargetChange::default() };
    kept.ask(San::TargetSet { iqn: T.to_uppercase(), set: change }).unwrap();
    let record = kept.network().targets[T].clone();
    assert_eq!(
        (record.auth, record.alias.as_str(), record.chap.secret.as_str()),
        (Auth::None, "one", "correct horse")
    );
    kept.ask(group(Members::Targets, "g", &[T, &name])).unwrap();
    kept.ask(San::TargetDestroy { iqn: T.into() }).unwrap();
    assert_eq!(kept.network().target_groups["g"].len(), 1, "it left its groups");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut kept = Kept::new("refused");
    kept.ask(target(T, TargetChange::default())).unwrap();
    kept.ask(group(Members::Targets, "tgt", &[T])).unwrap();
    kept.ask(group(Members::Initiators, "init", &[A])).unwrap();
    kept.luns = vec![Arc::new(LunFacts {
        dataset: "p/x".into(),
        target_group: "tgt".into(),
        initiator_groups: vec!["init".into()],
        ..LunFacts::default()
    })];
    let secret =
        |text: &str| TargetChange { chap_secret: Some(Secret::new(text)), ..TargetChange::default() };
    let destroy = |of, name: &str| San::GroupDestroy { of, name: name.into() };
    for (asked, said) in [
        (target("disk", TargetChange::default()), "is no iSCSI name"),
        (target(&T.to_uppercase(), TargetChange::default()), "there is such a target already"),
        (target("iqn.2001-04.com.example:u", secret("short")), "12 to 255 characters"),
        (San::TargetDestroy { iqn: A.into() }, "there is no such target"),
        (group(Members::Targets, "tgt", &[]), "there is such a group already"),
        (group(Members::Targets, DEFAULT_GROUP, &[]), "always there"),
        (group(Members::Initiators, NOBODY, &[]), "always there"),
        (group(Members::Targets, "other", &[A]), "there is no target"),
        (group(Members::Initiators, "other", &["host"]), "is no iSCSI name"),
        (destroy(Members::Targets, "tgt"), "the LUN 'p/x' uses the group"),
        (destroy(Members::Initiators, "init"), "the LUN 'p/x' uses the group"),
        (destroy(Members::Initiators, "none"), "there is no such group"),
        (
            San::GroupSet {
                of: Members::Targets,
                name: "tgt".into(),
                new_name: Some("tgt2".into()),
                members: None,
            },
            "the LUN 'p/x' uses the group",
        ),
        (
            San::SetIdentity(Identity { vendor: "much too long".into(), product: "x".into() }),
            "1 to 8 ASCII characters",
        ),
    ] {
        let text = kept.says(asked.clone());
        assert!(text.contains(said), "{asked:?}: {text}");
    }
}

/// Two LUNs of one number are fine while no initiator sees both; a change of groups that lets one see both is refused.
#[test]
fn groups_do_not_come_to_share_a_number() {
    let mut kept = Kept::new("numbers");
    let b = "iqn.2001-04.com.example:b";
    kept.ask(group(Members::Initiators, "one", &[A])).unwrap();
    kept.ask(group(Members::Initiators, "two", &[b])).unwrap();
    let lun = |dataset: &str, group: &str| LunFacts {
        dataset: dataset.into(),
        number: Some(0),
        target_group: DEFAULT_GROUP.into(),
        initiator_groups: vec![group.into()],
        ..LunFacts::default()
    };
    kept.luns = [lun("p/x", "one"), lun("p/y", "two")].map(Arc::new).into();
    let both = San::GroupSet {
        of: Members::Initiators,
        name: "two".into(),
        new_name: None,
        members: Some(vec![A.into(), b.into()]),
    };
    let said = kept.says(both);
    assert!(said.contains("'p/x' and 'p/y' both have the number 0"), "{said}");
    assert_eq!(kept.network().initiator_groups["two"].len(), 1);
}

const P: &str = "21:00:00:e0:8b:05:05:04";
const Q: &str = "50:01:43:80:12:34:56:78";

fn port(of: Members, wwn: &str) -> San {
    San::FcCreate { of, wwn: wwn.into(), alias: None }
}

#[test]
fn ports_of_fibre_channel_are_entered_grouped_and_forgotten_and_told_to_be_none() {
    let kept = Kept::new("fc");
    let made = kept.ask(port(Members::FcTargets, "wwn.210000E08B050504")).unwrap();
    assert_eq!(made, Reply::Named { name: P.into() }, "in its one spelling");
    kept.ask(port(Members::FcInitiators, Q)).unwrap();
    let alias = Some("left".to_string());
    kept.ask(San::FcSet { of: Members::FcTargets, wwn: "210000e08b050504".into(), alias }).unwrap();
    kept.ask(group(Members::FcTargets, "left", &["0x210000e08b050504"])).unwrap();
    // An initiator may be named before it is entered.
    kept.ask(group(Members::FcInitiators, "hosts", &[Q, "500143801234567a"])).unwrap();
    let told = kept.network().tell();
    let port = api::san::FcPort { wwn: P.into(), alias: "left".into(), status: api::san::NO_PORT.into() };
    assert_eq!(told.ports(Members::FcTargets), [port]);
    assert_eq!(told.groups(Members::FcTargets)[1].members, [P]);
    assert_eq!(told.groups(Members::FcInitiators)[1].members.len(), 2);
    // Nothing of iSCSI sees them.
    assert!(told.targets.is_empty() && told.target_groups.len() == 1 && told.initiator_groups.len() == 1);
    assert!(!kept.network().is_in(Members::Targets, "left", P));
    kept.ask(San::FcDestroy { of: Members::FcTargets, wwn: P.into() }).unwrap();
    let told = kept.network().tell();
    assert!(told.fc_targets.is_empty());
    assert_eq!(told.groups(Members::FcTargets)[1].members, [""; 0], "it left its groups");
    kept.store.change(|w| crate::san::check_records(w)).unwrap();
}

#[test]
fn a_group_of_fibre_channel_is_a_group_of_a_lun_and_its_name_is_of_one_transport() {
    let mut kept = Kept::new("fc-groups");
    kept.ask(target(T, TargetChange::default())).unwrap();
    kept.ask(port(Members::FcTargets, P)).unwrap();
    kept.ask(group(Members::FcTargets, "left", &[P])).unwrap();
    kept.ask(group(Members::FcTargets, "right", &[])).unwrap();
    kept.ask(group(Members::Targets, "tgt", &[T])).unwrap();
    let lun = |dataset: &str, group: &str| {
        Arc::new(LunFacts {
            dataset: dataset.into(),
            target_group: group.into(),
            initiator_groups: vec![DEFAULT_GROUP.into()],
            number: Some(1),
            ..LunFacts::default()
        })
    };
    kept.luns = vec![lun("p/x", "left"), lun("p/y", "right"), lun("p/z", "tgt")];
    assert!(kept.network().has_group(Members::Targets, "left"), "a LUN names it like any other");
    for (asked, said) in [
        (group(Members::Targets, "left", &[]), "there is such a group already"),
        (group(Members::FcTargets, "tgt", &[]), "there is such a group already"),
        (group(Members::FcTargets, "other", &[T]), "no world-wide name"),
        (group(Members::FcTargets, "other", &[Q]), "there is no target"),
        (group(Members::Targets, "other", &[P]), "is no iSCSI name"),
        (San::GroupDestroy { of: Members::FcTargets, name: "left".into() }, "the LUN 'p/x' uses the group"),
        (port(Members::FcTargets, P), "there is such a target already"),
        (port(Members::FcTargets, "0000000000000000"), "no world-wide name"),
        (port(Members::Targets, Q), "no side of Fibre Channel"),
        (San::FcSet { of: Members::FcTargets, wwn: Q.into(), alias: None }, "there is no such target"),
        (San::FcDestroy { of: Members::FcInitiators, wwn: Q.into() }, "there is no such initiator"),
    ] {
        let e = kept.says(asked.clone());
        assert!(e.contains(said), "{asked:?}: {e}");
    }
    // Two groups that share a port would show an initiator two LUNs under one number.
    let both = San::GroupSet {
        of: Members::FcTargets,
        name: "right".into(),
        new_name: None,
        members: Some(vec![P.into()]),
    };
    assert!(kept.says(both).contains("both have the number 1"));
}
