use super::*;
use Attention::{RegistrationsPreempted, ReservationsPreempted, ReservationsReleased};

fn who(name: &str) -> Who {
    Who { initiator: name.into(), port: 1 }
}

fn register(old: Option<u64>, new: u64) -> Register {
    Register { old, new, survives: false, ports: vec![1], others: Vec::new() }
}

/// `a` and `b` registered with keys 1 and 2.
fn two() -> Registry {
    let mut registry = Registry::default();
    registry.register(&who("a"), &register(Some(0), 1)).unwrap();
    registry.register(&who("b"), &register(None, 2)).unwrap();
    registry
}

#[test]
fn only_who_names_its_key_may_change_anything() {
    let mut registry = two();
    assert_eq!(registry.generation, 2);
    for wrong in [
        registry.register(&who("a"), &register(Some(9), 3)),
        registry.register(&who("c"), &register(Some(1), 3)),
        registry.reserve(&who("a"), 2, Kind::WriteExclusive),
        registry.reserve(&who("c"), 0, Kind::WriteExclusive),
        registry.clear(&who("b"), 1),
        registry.preempt(&who("c"), 0, 1, Some(Kind::WriteExclusive), false),
    ] {
        assert_eq!(wrong, Err(Refusal::Conflict));
    }
    assert_eq!(registry, two());
}

#[test]
fn a_reservation_has_one_holder_unless_all_hold_it() {
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusive).unwrap();
    assert_eq!(registry.reserve(&who("b"), 2, Kind::WriteExclusive), Err(Refusal::Conflict));
    assert_eq!(registry.release(&who("b"), 2, Kind::WriteExclusive), Ok(Effects::default()), "no effect");
    assert!(registry.holds(&who("a")));
    assert_eq!(
        registry.release(&who("a"), 1, Kind::ExclusiveAccess),
        Err(Refusal::Sense(Sense::RELEASE_INVALID))
    );
    registry.release(&who("a"), 1, Kind::WriteExclusive).unwrap();
    registry.reserve(&who("a"), 1, Kind::ExclusiveAccessAll).unwrap();
    registry.reserve(&who("b"), 2, Kind::ExclusiveAccessAll).unwrap();
    let told = registry.release(&who("b"), 2, Kind::ExclusiveAccessAll).unwrap().told;
    assert_eq!(told, [(who("a"), ReservationsReleased)]);
}

#[test]
fn a_holder_that_leaves_takes_its_reservation_along() {
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusiveRegistrants).unwrap();
    let told = registry.register(&who("a"), &register(Some(1), 0)).unwrap().told;
    assert_eq!((told, registry.reservation.is_none()), (vec![(who("b"), ReservationsReleased)], true));
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusiveAll).unwrap();
    registry.register(&who("a"), &register(Some(1), 0)).unwrap();
    assert!(registry.holds(&who("b")));
    registry.register(&who("b"), &register(Some(2), 0)).unwrap();
    assert_eq!(registry.reservation, None);
}

#[test]
fn a_preempter_takes_the_place_of_the_holder() {
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusive).unwrap();
    let effects = registry.preempt(&who("b"), 2, 1, Some(Kind::ExclusiveAccess), true).unwrap();
    assert_eq!(effects.told, [(who("a"), RegistrationsPreempted)]);
    assert_eq!(effects.aborted, [who("a")]);
    assert!(registry.holds(&who("b")) && !registry.is_registered(&who("a")));
    assert_eq!(
        registry.preempt(&who("b"), 2, 77, Some(Kind::ExclusiveAccess), false),
        Err(Refusal::Conflict),
        "nobody has that key"
    );
    assert!(registry.preempt(&who("b"), 2, 0, Some(Kind::ExclusiveAccess), false).is_err());
}

#[test]
fn a_registrant_that_holds_nothing_is_only_removed() {
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusive).unwrap();
    registry.preempt(&who("a"), 1, 2, None, false).unwrap();
    assert!(registry.holds(&who("a")) && !registry.is_registered(&who("b")));
}

#[test]
fn key_zero_preempts_all_when_all_hold() {
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusiveAll).unwrap();
    let effects = registry.preempt(&who("b"), 2, 0, Some(Kind::WriteExclusive), false).unwrap();
    assert_eq!(effects.told, [(who("a"), RegistrationsPreempted)]);
    assert_eq!(registry.reservation.as_ref().map(|r| r.holder.clone()), Some(who("b")));
}

#[test]
fn clearing_tells_everybody_else() {
    let mut registry = two();
    assert_eq!(registry.clear(&who("b"), 2).unwrap().told, [(who("a"), ReservationsPreempted)]);
    assert_eq!((registry.registrations.len(), registry.generation), (0, 3));
}

#[test]
fn all_ports_and_other_initiators_are_registered_at_once() {
    let mut registry = Registry::default();
    let ask = Register { ports: vec![1, 2], others: vec!["b".into()], ..register(None, 5) };
    registry.register(&who("a"), &ask).unwrap();
    assert_eq!(registry.registrations.len(), 4);
    assert!(registry.is_registered(&Who { initiator: "b".into(), port: 2 }));
}

#[test]
fn a_reservation_can_be_handed_over() {
    let mut registry = two();
    registry.reserve(&who("a"), 1, Kind::WriteExclusive).unwrap();
    assert_eq!(registry.register_and_move(&who("b"), 2, 9, who("c"), false, false), Err(Refusal::Conflict));
    registry.register_and_move(&who("a"), 1, 9, who("c"), true, true).unwrap();
    assert!(registry.holds(&who("c")) && !registry.is_registered(&who("a")) && registry.survives);
}
