use crate::throttle::{Admission, Limits};
use crate::{Claim, DeviceSpace, Reach, Txgs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::Txg;

#[test]
fn writers_go_freely_then_wait_longer_and_longer_then_stop() {
    let limits = Limits { dirty_max: 1000, ..Limits::default() };
    assert_eq!(limits.admit(0), Admission::Go);
    assert_eq!(limits.admit(600), Admission::Go);
    assert_eq!(limits.admit(1000), Admission::Wall);
    let waits: Vec<u64> = (601..1000)
        .map(|dirty| match limits.admit(dirty) {
            Admission::Delay(d) => d.as_nanos() as u64,
            other => panic!("{dirty}: {other:?}"),
        })
        .collect();
    assert!(waits.windows(2).all(|w| w[0] <= w[1]));
    assert_eq!(
        limits.admit(800),
        Admission::Delay(std::time::Duration::from_micros(500)),
        "the scale, at the middle"
    );
}

fn run(test: impl Future<Output = ()> + Send + 'static) {
    sim::run(1, sim::Config::default(), test);
}

/// Syncs each txg in `each`, for ever.
async fn sync_loop(txgs: Txgs, each: Duration) {
    while let Some(txg) = txgs.next_to_sync().await {
        world::sleep(each).await;
        txgs.done(txg);
    }
}

/// An empty txg was "full" at 0 %: the sync loop span, without ever letting anything else run, and did so again after each
/// restart, for the tunable is kept.
#[test]
fn at_any_percentage_an_empty_txg_is_not_full_and_a_dirty_one_ends() {
    for percent in [0, 1, 100] {
        run(async move {
            let tunables = Tunables::default();
            tunables.set(Tunable::DirtyDataSyncPercent, percent).unwrap();
            let txgs = Txgs::new(Txg(10), &tunables);
            for _ in 0..10 {
                let idle = world::timeout(Duration::from_secs(3600), txgs.next_to_sync()).await;
                assert!(idle.is_none(), "{percent} %: nothing is dirty");
                let began = world::now();
                txgs.begin().await.unwrap().dirtied(1);
                let txg = txgs.next_to_sync().await.unwrap();
                txgs.done(txg);
                let took = world::now().since(began);
                let bound = txgs.limits().txg_timeout;
                assert!(if percent == 0 { took.is_zero() } else { took <= bound }, "{percent} %: {took:?}");
            }
        });
    }
}

/// It waited for a moment in which no txg was on its way: under load there is none, and `zpool clear` did not return.
#[test]
fn what_settles_is_the_txg_under_way_and_not_those_after_it() {
    run(async {
        let tunables = Tunables::default();
        tunables.set(Tunable::DirtyDataSyncPercent, 0).unwrap();
        let txgs = Txgs::new(Txg(10), &tunables);
        world::timeout(Duration::from_secs(1), txgs.settled()).await.expect("none is under way").unwrap();
        let syncing = world::spawn(sync_loop(txgs.clone(), Duration::from_secs(1)));
        let writing = txgs.clone();
        let writer = world::spawn(async move {
            for _ in 0..1000 {
                writing.begin().await.unwrap().dirtied(1);
                world::sleep(Duration::from_millis(100)).await;
            }
        });
        for _ in 0..20 {
            world::sleep(Duration::from_millis(1730)).await;
            let settled = world::timeout(Duration::from_millis(1001), txgs.settled()).await;
            settled.expect("the next one is waited for too").unwrap();
        }
        writer.await;
        txgs.close();
        syncing.await;
    });
}

/// Each of them waited by itself, for what was dirty when it came, and then all wrote: 187 % of `zfs_dirty_data_max`.
#[test]
fn a_thousand_writers_that_come_at_once_stay_below_the_wall() {
    const EACH: u64 = 1 << 20;
    run(async {
        let tunables = Tunables::default();
        let txgs = Txgs::new(Txg(10), &tunables);
        let max = txgs.limits().dirty_max;
        let syncing = world::spawn(sync_loop(txgs.clone(), Duration::from_millis(500)));
        txgs.begin().await.unwrap().dirtied(max / 100 * 90);
        let highest = Arc::new(AtomicU64::new(0));
        let writers: Vec<_> = (0..1000u64)
            .map(|i| {
                let (txgs, highest) = (txgs.clone(), highest.clone());
                world::spawn(async move {
                    let claim = Claim { memory: EACH, ..Claim::default() };
                    let tx = txgs.begin_for(claim).await.unwrap();
                    // What it writes is read from somewhere first.
                    world::sleep(Duration::from_millis(i % 20)).await;
                    tx.dirtied(EACH);
                    highest.fetch_max(txgs.dirty_bytes(), Ordering::Relaxed);
                })
            })
            .collect();
        for writer in writers {
            writer.await;
        }
        let highest = highest.load(Ordering::Relaxed);
        assert!(highest <= max + EACH, "{} % were dirty", highest * 100 / max);
        txgs.sync().await.unwrap();
        assert_eq!(txgs.dirty_bytes(), 0);
        txgs.close();
        syncing.await;
    });
}

#[test]
fn writers_wait_for_space_in_turn_and_what_frees_passes_them() {
    run(async {
        let txgs = Txgs::new(Txg(10), &Tunables::default());
        txgs.set_space(DeviceSpace { free: 1000, ripening: 0, slop: 400 });
        let syncing = world::spawn(sync_loop(txgs.clone(), Duration::from_secs(1)));
        let claim = |devices, reach| Claim { memory: 0, devices, reach };
        let first = txgs.begin_for(claim(700, Reach::Normal)).await.unwrap();
        first.charge(700);
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let later =
            [("large", 400, Reach::Normal), ("small", 10, Reach::Normal), ("frees", 150, Reach::Freeing)];
        let all: Vec<_> = later
            .into_iter()
            .map(|(name, devices, reach)| {
                let (txgs, order) = (txgs.clone(), order.clone());
                world::spawn(async move {
                    let tx = txgs.begin_for(claim(devices, reach)).await.unwrap();
                    order.lock().unwrap().push(name);
                    tx.charge(devices);
                })
            })
            .collect();
        world::sleep(Duration::from_millis(1)).await;
        assert_eq!(*order.lock().unwrap(), ["frees"], "the small one does not overtake the large one");
        drop(first);
        for one in all {
            one.await;
        }
        assert_eq!(*order.lock().unwrap(), ["frees", "large", "small"]);
        txgs.set_space(DeviceSpace { free: 200, ripening: 0, slop: 400 });
        txgs.sync().await.unwrap();
        let e = txgs.begin_for(claim(1, Reach::Normal)).await.unwrap_err();
        assert_eq!(e.kind(), units::Kind::NoSpace);
        txgs.close();
        syncing.await;
    });
}

/// All of it went into one txg, for which everything else waited.
#[test]
fn what_frees_much_is_spread_over_txgs_of_which_those_under_way_free_a_bounded_part() {
    run(async {
        let tunables = Tunables::default();
        tunables.set(Tunable::DirtyDataMax, 1 << 20).unwrap();
        let txgs = Txgs::new(Txg(10), &tunables);
        let most = (1 << 20) / 100 * 30;
        assert_eq!(txgs.piece_to_free(), most / 4);
        let syncing = world::spawn(sync_loop(txgs.clone(), Duration::from_millis(10)));
        let (mut in_txg, pieces) = (std::collections::BTreeMap::new(), 100);
        for _ in 0..pieces {
            txgs.wait_to_free().await.unwrap();
            let tx = txgs.begin().await.unwrap();
            tx.empties(txgs.piece_to_free());
            tx.dirtied(1);
            *in_txg.entry(tx.txg()).or_insert(0) += txgs.piece_to_free();
            let unsynced: u64 = in_txg.range(txgs.synced_txg().next()..).map(|(_, bytes)| *bytes).sum();
            assert!(unsynced < most + txgs.piece_to_free(), "{in_txg:?}");
        }
        assert!(in_txg.len() >= pieces / 5, "{in_txg:?}");
        tunables.set(Tunable::PerTxgDirtyFreesPercent, 0).unwrap();
        let txg = txgs.open_txg();
        for _ in 0..pieces {
            txgs.wait_to_free().await.unwrap();
            txgs.begin().await.unwrap().empties(most);
        }
        assert_eq!(txgs.open_txg(), txg, "without a limit nothing waits");
        txgs.close();
        syncing.await;
    });
}
