use super::*;
use crate::home::Claim;
use std::collections::BTreeSet;

const X: u8 = 1;
const Y: u8 = 2;

fn lun(dataset: &str, guid: u8, number: u16) -> LunFacts {
    LunFacts {
        dataset: dataset.into(),
        guid: [guid; 16],
        number: Some(number),
        online: true,
        target_group: "default".into(),
        initiator_groups: vec!["default".into()],
        ..LunFacts::default()
    }
}

/// Pools as they are imported, with what a home remembers of them.
#[derive(Default)]
struct Machine {
    claims: Claims,
    network: Network,
    pools: BTreeMap<String, Standing>,
    luns: Vec<LunFacts>,
}

impl Machine {
    /// Pools that came in this order.
    fn with(pools: &[&str], luns: &[LunFacts]) -> Machine {
        let mut machine = Machine { luns: luns.to_vec(), ..Machine::default() };
        pools.iter().for_each(|pool| machine.import(pool, &[]));
        machine
    }

    fn import(&mut self, pool: &str, luns: &[LunFacts]) {
        let order = self.pools.values().map(|pool| pool.order).max().unwrap_or(0) + 1;
        self.pools.insert(pool.into(), Standing { order, is_read: true, ..Standing::default() });
        self.luns.extend_from_slice(luns);
    }

    fn export(&mut self, pool: &str) {
        self.pools.remove(pool);
        self.luns.retain(|lun| pool_of(&lun.dataset) != pool);
    }

    /// Of a pool that is imported.
    fn can_be_read(&mut self, pool: &str, can_be_read: bool) {
        self.pools.get_mut(pool).unwrap().is_read = can_be_read;
    }

    /// All that only the running program knows is gone.
    fn restart(&mut self) {
        self.claims = Claims::default();
    }

    fn lun(&mut self, dataset: &str) -> &mut LunFacts {
        self.luns.iter_mut().find(|lun| lun.dataset == dataset).unwrap()
    }

    fn decide(&mut self) -> Luns {
        self.luns.sort_by(|a, b| a.dataset.cmp(&b.dataset));
        let is_read = |lun: &&LunFacts| self.pools[pool_of(&lun.dataset)].is_read;
        let luns: Vec<_> = self.luns.iter().filter(is_read).cloned().map(Arc::new).collect();
        let decided = self.claims.decide(&self.network, &luns, &self.pools);
        self.claims.keep(&self.network, &decided);
        for (name, pool) in &mut self.pools {
            pool.was_away = !pool.is_read;
            if pool.is_read {
                let of_pool = decided.left_out.iter().filter(|(lun, _)| pool_of(&lun.dataset) == name);
                pool.left_out = of_pool.map(|(lun, why)| (lun.dataset.clone(), why.clone())).collect();
            }
        }
        decided
    }

    fn held(&mut self) -> Vec<String> {
        self.decide().held.iter().map(|lun| lun.dataset.clone()).collect()
    }

    /// Also after a restart.
    fn always_holds(&mut self, expected: &[&str]) {
        assert_eq!(self.held(), expected);
        assert_eq!(self.held(), expected, "a second look");
        self.restart();
        assert_eq!(self.held(), expected, "after a restart");
    }
}

#[test]
fn a_pool_that_comes_takes_nothing_from_those_that_are_there() {
    for newcomer in [lun("aaa/v", X, 7), lun("zzz/v", X, 7), lun("aaa/v", Y, 0), lun("zzz/v", Y, 0)] {
        let mut machine = Machine::with(&["tank"], &[lun("tank/v", X, 0)]);
        assert_eq!(machine.held(), ["tank/v"]);
        machine.import(pool_of(&newcomer.dataset), &[newcomer.clone(), lun("zzz/w", 9, 9)]);
        machine.pools.entry("zzz".into()).or_insert(Standing {
            order: 3,
            is_read: true,
            ..Standing::default()
        });
        machine.always_holds(&["tank/v", "zzz/w"]);
        let left_out = machine.decide().left_out;
        let claim = match newcomer.guid == [X; 16] {
            true => Claim::Identifier("01".repeat(16)),
            false => Claim::Number(0),
        };
        assert_eq!(left_out[0].1, LeftOut { holder: "tank/v".into(), claim });
        machine.export("tank");
        assert!(machine.held().contains(&newcomer.dataset), "nothing is in its way any more");
    }
}

/// Both came while the program did not run, or before it wrote down what it decided.
#[test]
fn the_pool_that_came_first_has_what_both_claim_whatever_it_is_called() {
    let luns = [lun("a/v", X, 0), lun("b/v", X, 0)];
    Machine::with(&["a", "b"], &luns).always_holds(&["a/v"]);
    Machine::with(&["b", "a"], &luns).always_holds(&["b/v"]);
}

#[test]
fn what_is_served_keeps_its_place_against_a_pool_that_was_there_before() {
    let mut machine = Machine::with(&["old", "new"], &[lun("new/v", X, 0), lun("old/v", Y, 5)]);
    machine.always_holds(&["new/v", "old/v"]);
    machine.lun("old/v").number = Some(0);
    assert_eq!(machine.held(), ["new/v"]);
    machine.always_holds(&["new/v"]);
    machine.lun("old/v").guid = [X; 16];
    machine.always_holds(&["new/v"]);
    (machine.lun("old/v").guid, machine.lun("old/v").number) = ([Y; 16], Some(1));
    machine.always_holds(&["new/v", "old/v"]);
    // A number of one that is offline is its own as well: it comes back under it.
    machine.lun("new/v").online = false;
    machine.lun("old/v").number = Some(0);
    machine.always_holds(&["new/v"]);
}

#[test]
fn what_is_served_keeps_its_place_under_another_name_and_with_other_blocks() {
    let mut machine = Machine::with(&["b", "a"], &[lun("b/v", X, 0)]);
    assert_eq!(machine.held(), ["b/v"]);
    machine.lun("b/v").dataset = "b/z".into();
    machine.luns.extend([lun("b/a", X, 3), lun("a/v", Y, 0)]);
    machine.always_holds(&["b/z"]);
    machine.luns.push(lun("b/c", X, 0));
    machine.always_holds(&["b/z"]);
    (machine.lun("b/z").block_size, machine.lun("b/z").size) = (8192, 1 << 30);
    machine.always_holds(&["b/z"]);
}

#[test]
fn groups_that_do_not_meet_have_their_own_numbers() {
    let in_group = |dataset: &str, guid, group: &str| LunFacts {
        initiator_groups: vec![group.into()],
        ..lun(dataset, guid, 0)
    };
    let mut machine = Machine::with(&["a", "b"], &[in_group("a/v", X, "one"), in_group("b/v", Y, "two")]);
    let members = |of: &[&str]| of.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    machine.network.initiator_groups.insert("one".into(), members(&["iqn.x:1"]));
    machine.network.initiator_groups.insert("two".into(), members(&["iqn.x:2"]));
    machine.always_holds(&["a/v", "b/v"]);
    machine.lun("a/v").initiator_groups = vec!["two".into()];
    machine.always_holds(&["b/v"]);
    machine.lun("a/v").initiator_groups = vec!["one".into()];
    machine.always_holds(&["a/v", "b/v"]);
    machine.network.initiator_groups.insert("two".into(), members(&["iqn.x:1", "iqn.x:2"]));
    assert_eq!(machine.decide().left_out.len(), 1, "whatever was decided under other groups");
}

#[test]
fn a_pool_that_cannot_be_read_keeps_what_others_gave_way_to() {
    let mut machine = Machine::with(&["tank"], &[lun("tank/v", X, 0)]);
    machine.decide();
    machine.import("copy", &[lun("copy/v", X, 3), lun("copy/w", Y, 0), lun("copy/x", 9, 9)]);
    machine.always_holds(&["copy/x", "tank/v"]);
    machine.can_be_read("tank", false);
    machine.always_holds(&["copy/x"]);
    machine.can_be_read("tank", true);
    machine.always_holds(&["copy/x", "tank/v"]);
    machine.can_be_read("tank", false);
    machine.lun("copy/w").number = Some(4);
    machine.always_holds(&["copy/w", "copy/x"]);
}

#[test]
fn a_pool_that_comes_back_takes_nothing_from_what_was_served_meanwhile() {
    let mut machine = Machine::with(&["tank", "other"], &[lun("tank/v", X, 0)]);
    machine.can_be_read("tank", false);
    assert!(machine.held().is_empty());
    machine.luns.push(lun("other/v", Y, 0));
    machine.always_holds(&["other/v"]);
    machine.restart();
    machine.can_be_read("tank", true);
    machine.always_holds(&["other/v"]);
}
