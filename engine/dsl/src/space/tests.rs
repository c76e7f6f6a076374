use super::*;

const G: u64 = 1 << 30;

fn dir() -> DirSpace {
    DirSpace { breakdown: Some([0; 5]), ..DirSpace::default() }
}

fn whole(d: &DirSpace) -> u64 {
    d.breakdown.unwrap().iter().sum()
}

fn bytes(used: i64) -> Delta {
    Delta { used, compressed: used, uncompressed: 2 * used }
}

#[test]
fn what_a_child_uses_is_charged_up_to_the_pool() {
    let mut chain = [dir(), dir(), dir()];
    charge_chain(&mut chain, Used::Head, bytes(100));
    assert_eq!(chain.map(|d| (d.used, d.uncompressed)), [(100, 200); 3]);
    assert_eq!(chain[0].breakdown, Some([100, 0, 0, 0, 0]));
    assert_eq!(chain[2].breakdown, Some([0, 0, 100, 0, 0]));
    charge_chain(&mut chain, Used::Head, bytes(-100));
    assert_eq!(chain, [dir(), dir(), dir()]);
}

#[test]
fn a_reservation_is_charged_at_once_and_used_up_silently() {
    let mut chain = [dir(), dir(), dir()];
    set_reservation(&mut chain, 1000);
    assert_eq!(chain.map(|d| d.used), [0, 1000, 1000]);
    assert_eq!(chain[1].breakdown, Some([0, 0, 0, 1000, 0]));
    assert_eq!(chain[2].breakdown, Some([0, 0, 1000, 0, 0]));
    charge_chain(&mut chain, Used::Head, bytes(400));
    assert_eq!(chain.map(|d| d.used), [400, 1000, 1000]);
    assert_eq!(chain[1].breakdown, Some([0, 0, 400, 600, 0]));
    charge_chain(&mut chain, Used::Head, bytes(700));
    assert_eq!(chain.map(|d| d.used), [1100, 1100, 1100]);
    assert_eq!(chain[1].breakdown, Some([0, 0, 1100, 0, 0]));
    set_reservation(&mut chain, 0);
    assert_eq!(chain.map(|d| d.used), [1100, 1100, 1100]);
}

#[test]
fn a_refreservation_makes_room_for_the_head_alone() {
    let mut chain = [dir(), dir()];
    let head = HeadSpace { refreservation: 1000, ..HeadSpace::default() };
    charge_chain(&mut chain, Used::RefReserved, Delta::used(1000));
    assert_eq!(chain.map(|d| d.used), [1000, 1000]);
    let fresh = 300;
    shift_chain(
        &mut chain,
        Delta { used: head.charged(fresh), compressed: fresh, uncompressed: fresh },
        fresh,
        Used::RefReserved,
        Used::Head,
    );
    assert_eq!(chain[0].breakdown, Some([300, 0, 0, 0, 700]));
    assert_eq!(chain.map(|d| (d.used, d.compressed)), [(1000, 300), (1000, 300)]);
    let head = HeadSpace { unique: 300, ..head };
    assert_eq!(head.available(50), 750);
}

/// A directory shows its children's reservations beside its own use, whatever order things happened in.
#[test]
fn the_parts_always_add_up_to_the_whole() {
    let mut seed = 1u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for _ in 0..200 {
        let mut chain = [dir(), dir(), dir(), dir()];
        let mut head = HeadSpace::default();
        for _ in 0..50 {
            match next(4) {
                0 => {
                    let depth = next(3) as usize;
                    set_reservation(&mut chain[depth..], next(2000));
                }
                1 => {
                    let new = next(1500);
                    let before = head.unused_reservation() as i64;
                    head.refreservation = new;
                    let delta = head.unused_reservation() as i64 - before;
                    charge_chain(&mut chain, Used::RefReserved, Delta::used(delta));
                }
                2 => {
                    let bytes = next(500) as i64;
                    write(&mut chain, &mut head, bytes);
                }
                _ => {
                    let bytes = next(head.unique + 1) as i64;
                    write(&mut chain, &mut head, -bytes);
                }
            }
            for d in &chain {
                assert_eq!(whole(d), d.used);
            }
            assert_eq!(chain[0].used, head.unique.max(head.refreservation));
            for pair in chain.windows(2) {
                assert_eq!(pair[1].used, pair[0].used.max(pair[0].reserved), "only one child and no head");
            }
        }
    }
}

fn write(chain: &mut [DirSpace], head: &mut HeadSpace, bytes: i64) {
    let delta = Delta { used: head.charged(bytes), compressed: bytes, uncompressed: bytes };
    shift_chain(chain, delta, bytes, Used::RefReserved, Used::Head);
    head.unique = head.unique.saturating_add_signed(bytes);
}

#[test]
fn available_is_the_least_that_quotas_and_the_pool_leave() {
    let pool = DirSpace { used: 4 * G, ..dir() };
    let parent = DirSpace { used: 3 * G, quota: 5 * G, ..dir() };
    let child = DirSpace { used: G, ..dir() };
    assert_eq!(available(&[pool], 10 * G), 6 * G);
    assert_eq!(available(&[child, parent, pool], 10 * G), 2 * G);
    assert_eq!(available(&[child, parent, pool], 5 * G), G);
    assert_eq!(available(&[child, parent, pool], 4 * G), 0);
    let reserving = DirSpace { reserved: 3 * G, ..child };
    assert_eq!(available(&[reserving, parent, pool], 4 * G), 2 * G, "the reservation is still to be used");
    let over = DirSpace { quota: G / 2, ..child };
    assert_eq!(available(&[over, parent, pool], 10 * G), 0);
}

#[test]
fn refquota_counts_what_is_referenced() {
    let head = HeadSpace { referenced: 80, unique: 30, refreservation: 0, refquota: 100 };
    assert_eq!(head.available(1000), 20);
    assert_eq!(HeadSpace { refquota: 70, ..head }.available(1000), 0);
}

#[test]
fn the_slop_is_a_thirty_second_between_its_bounds() {
    assert_eq!(PoolSpace::slop_of(1 << 40), 32 * G);
    assert_eq!(PoolSpace::slop_of(1 << 30), 128 << 20);
    assert_eq!(PoolSpace::slop_of(100 << 20), 50 << 20);
    assert_eq!(PoolSpace::slop_of(1 << 50), 128 * G);
    let pool = PoolSpace { size: 100, everything: 100, slop: 40, deferred: 10 };
    assert_eq!(pool.usable(Reach::Normal), 50);
    assert_eq!(pool.usable(Reach::Reserved), 70);
    assert_eq!(pool.usable(Reach::ExtraReserved), 80);
    assert_eq!(pool.usable(Reach::Everything), 90);
}

#[test]
fn damaged_numbers_stop_at_zero() {
    let mut chain = [dir(), dir()];
    charge_chain(&mut chain, Used::Head, bytes(-5));
    assert_eq!(chain[0].used, 0);
    assert_eq!(ratio(250, 100), 250);
    assert_eq!(ratio(250, 0), 100);
    assert!(ratio(u64::MAX, 1) > 0);
}
