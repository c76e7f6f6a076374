use super::*;
use Attention::{RegistrationsPreempted, ReservationsPreempted, ReservationsReleased};

fn registrant(name: &str) -> Registrant {
    Registrant { initiator: name.into(), port: 1 }
}

fn register(old: Option<u64>, new: u64) -> Register {
    Register { old, new, survives: false, ports: vec![1], others: Vec::new() }
}

/// `a` and `b` registered with keys 1 and 2.
fn two() -> Registrations {
    let mut registrations = Registrations::default();
    registrations.register(&registrant("a"), &register(Some(0), 1)).unwrap();
    registrations.register(&registrant("b"), &register(None, 2)).unwrap();
    registrations
}

#[test]
fn only_who_names_its_key_may_change_anything() {
    let mut registrations = two();
    assert_eq!(registrations.generation, 2);
    for wrong in [
        registrations.register(&registrant("a"), &register(Some(9), 3)),
        registrations.register(&registrant("c"), &register(Some(1), 3)),
        registrations.reserve(&registrant("a"), 2, Kind::WriteExclusive),
        registrations.reserve(&registrant("c"), 0, Kind::WriteExclusive),
        registrations.clear(&registrant("b"), 1),
        registrations.preempt(&registrant("c"), 0, 1, Some(Kind::WriteExclusive), false),
    ] {
        assert_eq!(wrong, Err(Refusal::Conflict));
    }
    assert_eq!(registrations, two());
}

#[test]
fn a_reservation_has_one_holder_unless_all_hold_it() {
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusive).unwrap();
    assert_eq!(registrations.reserve(&registrant("b"), 2, Kind::WriteExclusive), Err(Refusal::Conflict));
    assert_eq!(
        registrations.release(&registrant("b"), 2, Kind::WriteExclusive),
        Ok(Effects::default()),
        "no effect"
    );
    assert!(registrations.holds(&registrant("a")));
    assert_eq!(
        registrations.release(&registrant("a"), 1, Kind::ExclusiveAccess),
        Err(Refusal::Sense(Sense::RELEASE_INVALID))
    );
    registrations.release(&registrant("a"), 1, Kind::WriteExclusive).unwrap();
    registrations.reserve(&registrant("a"), 1, Kind::ExclusiveAccessAll).unwrap();
    registrations.reserve(&registrant("b"), 2, Kind::ExclusiveAccessAll).unwrap();
    let told = registrations.release(&registrant("b"), 2, Kind::ExclusiveAccessAll).unwrap().told;
    assert_eq!(told, [(registrant("a"), ReservationsReleased)]);
}

#[test]
fn a_holder_that_leaves_takes_its_reservation_along() {
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusiveRegistrants).unwrap();
    let told = registrations.register(&registrant("a"), &register(Some(1), 0)).unwrap().told;
    assert_eq!(
        (told, registrations.reservation.is_none()),
        (vec![(registrant("b"), ReservationsReleased)], true)
    );
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusiveAll).unwrap();
    registrations.register(&registrant("a"), &register(Some(1), 0)).unwrap();
    assert!(registrations.holds(&registrant("b")));
    registrations.register(&registrant("b"), &register(Some(2), 0)).unwrap();
    assert_eq!(registrations.reservation, None);
}

#[test]
fn a_preempter_takes_the_place_of_the_holder() {
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusive).unwrap();
    let effects = registrations.preempt(&registrant("b"), 2, 1, Some(Kind::ExclusiveAccess), true).unwrap();
    assert_eq!(effects.told, [(registrant("a"), RegistrationsPreempted)]);
    assert_eq!(effects.aborted, [registrant("a")]);
    assert!(registrations.holds(&registrant("b")) && !registrations.is_registered(&registrant("a")));
    assert_eq!(
        registrations.preempt(&registrant("b"), 2, 77, Some(Kind::ExclusiveAccess), false),
        Err(Refusal::Conflict),
        "nobody has that key"
    );
    assert!(registrations.preempt(&registrant("b"), 2, 0, Some(Kind::ExclusiveAccess), false).is_err());
}

#[test]
fn a_registrant_that_holds_nothing_is_only_removed() {
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusive).unwrap();
    registrations.preempt(&registrant("a"), 1, 2, None, false).unwrap();
    assert!(registrations.holds(&registrant("a")) && !registrations.is_registered(&registrant("b")));
}

#[test]
fn key_zero_preempts_all_when_all_hold() {
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusiveAll).unwrap();
    let effects = registrations.preempt(&registrant("b"), 2, 0, Some(Kind::WriteExclusive), false).unwrap();
    assert_eq!(effects.told, [(registrant("a"), RegistrationsPreempted)]);
    assert_eq!(registrations.reservation.as_ref().map(|r| r.holder.clone()), Some(registrant("b")));
}

#[test]
fn clearing_tells_everybody_else() {
    let mut registrations = two();
    assert_eq!(
        registrations.clear(&registrant("b"), 2).unwrap().told,
        [(registrant("a"), ReservationsPreempted)]
    );
    assert_eq!((registrations.list.len(), registrations.generation), (0, 3));
}

#[test]
fn all_ports_and_other_initiators_are_registered_at_once() {
    let mut registrations = Registrations::default();
    let ask = Register { ports: vec![1, 2], others: vec!["b".into()], ..register(None, 5) };
    registrations.register(&registrant("a"), &ask).unwrap();
    assert_eq!(registrations.list.len(), 4);
    assert!(registrations.is_registered(&Registrant { initiator: "b".into(), port: 2 }));
}

#[test]
fn a_reservation_can_be_handed_over() {
    let mut registrations = two();
    registrations.reserve(&registrant("a"), 1, Kind::WriteExclusive).unwrap();
    assert_eq!(
        registrations.register_and_move(&registrant("b"), 2, 9, registrant("c"), false, false),
        Err(Refusal::Conflict)
    );
    registrations.register_and_move(&registrant("a"), 1, 9, registrant("c"), true, true).unwrap();
    assert!(
        registrations.holds(&registrant("c"))
            && !registrations.is_registered(&registrant("a"))
            && registrations.survives
    );
}
