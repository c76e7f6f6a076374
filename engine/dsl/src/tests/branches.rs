//! Snapshots, clones, promotions and rollbacks, each compared with every block; and all of them at random.

use super::VOL;
use crate::testing::{Pool, in_world};
use crate::{DestroySpec, NewClone};
use units::{Kind, Result};

impl Pool {
    async fn snap(&mut self, names: &[&str]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let taken = self.dsl.snapshot_all(&self.tx(), &names, &[]).await.map(drop);
        self.sync().await;
        taken
    }

    async fn branch(&mut self, origin: &str, name: &str) -> Result<()> {
        let new = NewClone { origin, name, props: &[] };
        let cloned = self.dsl.clone_snapshot(&self.tx(), &new).await.map(drop);
        self.sync().await;
        cloned
    }

    async fn back(&mut self, name: &str, to: &str) -> Result<()> {
        let done = self.dsl.rollback(&self.tx(), name, to).await;
        self.sync().await;
        done
    }

    async fn promote(&mut self, name: &str) -> Result<()> {
        let done = self.dsl.promote(&self.tx(), name).await;
        self.sync().await;
        done
    }

    async fn destroy_all(&mut self, spec: &DestroySpec) -> Result<()> {
        let plan = self.dsl.plan_destroy_of(spec).await?;
        self.dsl.destroy(&self.tx(), &plan).await.unwrap();
        self.sync().await;
        Ok(())
    }

    async fn fresh(&mut self, name: &str, first: u64, count: u64) {
        self.write(name, first, count).await;
        self.sync().await;
    }

    async fn checked(&mut self) {
        self.drain().await;
        self.audit().await;
    }

    async fn volume(name: &str) -> Pool {
        let mut pool = Pool::modern().await;
        pool.create(name, VOL, &[]).await;
        pool.sync().await;
        pool
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> Kind {
    result.unwrap_err().kind()
}

#[test]
fn snapshots_of_many_datasets_are_of_one_txg_or_are_not_there() {
    in_world(async {
        let mut pool = Pool::volume("p/a").await;
        pool.create("p/b", VOL, &[]).await;
        pool.sync().await;
        pool.snap(&["p/b@1"]).await.unwrap();
        assert_eq!(kind(pool.snap(&["p/a@1", "p/b@1"]).await), Kind::Exists);
        assert_eq!(kind(pool.dsl.find("p/a@1").await), Kind::NotFound, "all or none");
        assert_eq!(kind(pool.snap(&["p/a@1", "p/a@2"]).await), Kind::Invalid);
        pool.snap(&["p/a@2", "p/b@2"]).await.unwrap();
        let txgs = [pool.dsl.find("p/a@2").await.unwrap(), pool.dsl.find("p/b@2").await.unwrap()];
        assert_eq!(txgs[0].phys.creation_txg, txgs[1].phys.creation_txg);
        let tx = pool.tx();
        pool.dsl.snapshot(&tx, "p/a@3").await.unwrap();
        assert_eq!(kind(pool.dsl.snapshot(&tx, "p/a@4").await), Kind::Busy, "one for each txg");
        pool.sync().await;
        pool.checked().await;
    });
}

#[test]
fn a_clone_shares_everything_until_it_is_written_to() {
    in_world(async {
        let mut pool = Pool::volume("p/v").await;
        pool.fresh("p/v", 0, 50).await;
        pool.snap(&["p/v@s"]).await.unwrap();
        assert_eq!(kind(pool.branch("p/v", "p/c").await), Kind::Invalid, "no snapshot");
        assert_eq!(kind(pool.branch("p/v@s", "p/v/c").await), Kind::Invalid, "below a volume");
        assert_eq!(kind(pool.branch("p/v@s", "q/c").await), Kind::Invalid, "another pool");
        pool.branch("p/v@s", "p/c").await.unwrap();
        pool.checked().await;
        assert_eq!(pool.dsl.find("p/c").await.unwrap().dir.space.used, 0);
        pool.fresh("p/c", 10, 20).await;
        pool.snap(&["p/c@t"]).await.unwrap();
        pool.fresh("p/c", 15, 60).await;
        pool.reopen().await;
        pool.checked().await;
        assert_eq!(kind(pool.destroy("p/v@s", false).await), Kind::Busy);
        assert_eq!(kind(pool.destroy("p/v", true).await), Kind::Busy, "the clone is elsewhere");
        let said = pool.destroy("p/v", true).await.unwrap_err().to_string();
        assert!(said.contains("p/c") && said.contains("-R"), "{said}");
        let all = DestroySpec { names: vec!["p/v".into()], clones: true, ..DestroySpec::default() };
        pool.destroy_all(&all).await.unwrap();
        pool.checked().await;
        assert_eq!(pool.dsl.descendants("p").await.unwrap(), ["p"]);
    });
}

#[test]
fn a_promoted_clone_takes_the_snapshots_along() {
    in_world(async {
        let mut pool = Pool::volume("p/v").await;
        for (i, name) in ["p/v@1", "p/v@2", "p/v@3"].into_iter().enumerate() {
            pool.fresh("p/v", 9 * i as u64, 30).await;
            pool.snap(&[name]).await.unwrap();
        }
        pool.fresh("p/v", 5, 40).await;
        pool.branch("p/v@1", "p/b").await.unwrap();
        pool.branch("p/v@2", "p/c").await.unwrap();
        pool.fresh("p/c", 2, 17).await;
        pool.snap(&["p/c@4"]).await.unwrap();
        pool.fresh("p/c", 30, 17).await;
        assert_eq!(kind(pool.promote("p/v").await), Kind::Invalid);
        pool.snap(&["p/c@1"]).await.unwrap();
        assert_eq!(kind(pool.promote("p/c").await), Kind::Exists);
        pool.destroy("p/c@1", false).await.unwrap();
        pool.promote("p/c").await.unwrap();
        pool.checked().await;
        let names = async |pool: &Pool, of: &str| {
            pool.dsl.snapshots(of).await.unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&pool, "p/c").await, ["p/c@1", "p/c@2", "p/c@4"]);
        assert_eq!(names(&pool, "p/v").await, ["p/v@3"]);
        pool.fresh("p/v", 0, 60).await;
        pool.reopen().await;
        pool.checked().await;
        // A clone of a clone, and back.
        pool.promote("p/b").await.unwrap();
        pool.checked().await;
        pool.promote("p/v").await.unwrap();
        pool.fresh("p/c", 1, 5).await;
        pool.checked().await;
        let order = ["p/c", "p/v", "p/b"];
        for name in order {
            pool.destroy(name, true).await.unwrap();
            pool.sync().await;
            pool.checked().await;
        }
    });
}

#[test]
fn a_rollback_gives_back_what_came_after() {
    in_world(async {
        let mut pool = Pool::volume("p/v").await;
        pool.set("p/v", "refreservation", "1M").await.unwrap();
        pool.fresh("p/v", 0, 30).await;
        pool.snap(&["p/v@1"]).await.unwrap();
        let before = pool.dsl.find("p/v").await.unwrap();
        pool.fresh("p/v", 10, 40).await;
        pool.snap(&["p/v@2"]).await.unwrap();
        pool.fresh("p/v", 20, 40).await;
        assert_eq!(kind(pool.back("p/v", "p/v@1").await), Kind::Busy, "there is a newer one");
        assert_eq!(pool.dsl.snapshots_after("p/v", "p/v@1").await.unwrap(), ["p/v@2"]);
        let open = pool.dsl.open_by_name("p/v").await.unwrap();
        assert_eq!(kind(pool.back("p/v", "p/v@2").await), Kind::Busy, "somebody has it open");
        drop(open);
        pool.back("p/v", "p/v@2").await.unwrap();
        pool.checked().await;
        pool.destroy("p/v@2", false).await.unwrap();
        pool.sync().await;
        pool.back("p/v", "p/v@1").await.unwrap();
        pool.checked().await;
        let after = pool.dsl.find("p/v").await.unwrap();
        assert_eq!((after.id, after.phys.referenced), (before.id, before.phys.referenced));
        // A clone goes back to where it began.
        pool.branch("p/v@1", "p/c").await.unwrap();
        pool.fresh("p/c", 0, 33).await;
        pool.back("p/c", "p/v@1").await.unwrap();
        pool.checked().await;
        assert_eq!(kind(pool.back("p/v", "p/c").await), Kind::Invalid);
        pool.fresh("p/v", 0, 5).await;
        pool.reopen().await;
        pool.checked().await;
    });
}

#[test]
fn what_is_held_or_cloned_goes_when_it_can() {
    in_world(async {
        let mut pool = Pool::volume("p/v").await;
        pool.fresh("p/v", 0, 20).await;
        pool.snap(&["p/v@s"]).await.unwrap();
        let name = ["p/v@s".to_string()];
        let tx = pool.tx();
        pool.dsl.hold(&tx, &name, "backup").await.unwrap();
        assert_eq!(kind(pool.dsl.hold(&tx, &name, "backup").await), Kind::Exists);
        pool.dsl.hold(&tx, &name, "other").await.unwrap();
        assert_eq!(pool.dsl.holds("p/v@s").await.unwrap().len(), 2);
        assert_eq!(kind(pool.destroy("p/v@s", false).await), Kind::Busy);
        pool.branch("p/v@s", "p/c").await.unwrap();
        pool.fresh("p/v", 5, 20).await;
        let later = DestroySpec { names: name.to_vec(), defer: true, ..DestroySpec::default() };
        pool.destroy_all(&later).await.unwrap();
        let tx = pool.tx();
        pool.dsl.release(&tx, &name, "backup").await.unwrap();
        assert_eq!(kind(pool.dsl.release(&tx, &name, "backup").await), Kind::NotFound);
        pool.dsl.release(&tx, &name, "other").await.unwrap();
        pool.sync().await;
        assert!(pool.dsl.exists("p/v@s").await.unwrap(), "there is a clone");
        pool.destroy("p/c", false).await.unwrap();
        pool.sync().await;
        assert!(!pool.dsl.exists("p/v@s").await.unwrap());
        pool.checked().await;
        // With a hold alone.
        pool.snap(&["p/v@s"]).await.unwrap();
        pool.dsl.hold(&pool.tx(), &name, "last").await.unwrap();
        pool.sync().await;
        pool.destroy_all(&later).await.unwrap();
        assert!(pool.dsl.exists("p/v@s").await.unwrap());
        pool.dsl.release(&pool.tx(), &name, "last").await.unwrap();
        pool.sync().await;
        assert!(!pool.dsl.exists("p/v@s").await.unwrap());
        pool.checked().await;
    });
}

#[test]
fn patterns_name_snapshots_and_plans_order_them() {
    in_world(async {
        let mut pool = Pool::volume("p/v").await;
        pool.create("p/w", VOL, &[]).await;
        pool.sync().await;
        for name in ["a", "b", "c", "d"] {
            pool.snap(&[&format!("p/v@{name}")]).await.unwrap();
        }
        pool.snap(&["p/w@b"]).await.unwrap();
        let find = async |pool: &Pool, pattern: &str, recursive| {
            let found = pool.dsl.match_snapshots(pattern, recursive).await.map_err(|e| e.kind())?;
            Ok::<_, Kind>(found.join(" ").replace("p/", ""))
        };
        for (pattern, recursive, expected) in [
            ("p/v@b", false, Ok("v@b")),
            ("p/v@b%c", false, Ok("v@b v@c")),
            ("p/v@%b", false, Ok("v@a v@b")),
            ("p/v@c%", false, Ok("v@c v@d")),
            ("p/v@%", false, Ok("v@a v@b v@c v@d")),
            ("p/v@d,a", false, Ok("v@a v@d")),
            ("p/v@a,c%d", false, Ok("v@a v@c v@d")),
            ("p@b", true, Ok("v@b w@b")),
            ("p@b%c", true, Ok("v@b v@c")),
            ("p/v@x", false, Err(Kind::NotFound)),
            ("p/v@a,x", false, Err(Kind::NotFound)),
            ("p/v@a%x", false, Err(Kind::NotFound)),
            ("p@x", true, Err(Kind::NotFound)),
            ("p/x@a", false, Err(Kind::NotFound)),
            // All of these are there; "does not exist" was said of them, or nothing beside what else was named.
            ("p/v@c%a", false, Err(Kind::Invalid)),
            ("p/v@d,c%a", false, Err(Kind::Invalid)),
            ("p/v@c%a", true, Err(Kind::Invalid)),
        ] {
            assert_eq!(find(&pool, pattern, recursive).await.as_deref(), expected.as_deref(), "{pattern}");
        }
        pool.dsl.rename_snapshots(&pool.tx(), "p@b", "p@z").await.unwrap();
        assert_eq!(find(&pool, "p@z", true).await.unwrap(), "v@z w@z");
        pool.sync().await;
        // A clone below its own origin's dataset goes first; the other way round nobody can.
        pool.create("p/f", super::FS, &[]).await;
        pool.sync().await;
        pool.snap(&["p/f@1"]).await.unwrap();
        pool.branch("p/f@1", "p/f/c").await.unwrap();
        let plan = pool.dsl.plan_destroy("p/f", true).await.unwrap();
        assert_eq!(plan.names, ["p/f/c", "p/f@1", "p/f"]);
        pool.promote("p/f/c").await.unwrap();
        assert_eq!(kind(pool.dsl.plan_destroy("p/f", true).await), Kind::Busy);
        pool.promote("p/f").await.unwrap();
        pool.destroy("p/f", true).await.unwrap();
        pool.sync().await;
        pool.checked().await;
    });
}

/// One step, chosen by `dice`. Refusals are part of it.
async fn step(pool: &mut Pool, dice: u64, n: usize) {
    let pick = |from: &[String], by: u64| from[(by % from.len() as u64) as usize].clone();
    let heads = pool.dsl.children("p").await.unwrap();
    let head = pick(&heads, dice >> 8);
    let snapshots: Vec<String> =
        pool.dsl.snapshots(&head).await.unwrap().into_iter().map(|(name, _)| name).collect();
    match (dice % 16, snapshots.is_empty()) {
        (0..=3, _) => pool.write(&head, dice >> 16 & 63, 1 + (dice >> 24 & 31)).await,
        (4..=6, _) => pool.snap(&[&format!("{head}@{n}")]).await.unwrap(),
        (7..=8, false) if heads.len() < 5 => {
            pool.branch(&pick(&snapshots, dice >> 16), &format!("p/{n}")).await.unwrap();
        }
        (9..=10, _) => drop(pool.promote(&head).await),
        (11..=12, false) => pool.back(&head, &snapshots[snapshots.len() - 1]).await.unwrap(),
        (13..=14, false) => drop(pool.destroy(&pick(&snapshots, dice >> 16), false).await),
        (15, _) if heads.len() > 1 => {
            let spec = DestroySpec { names: vec![head], recursive: true, ..DestroySpec::default() };
            drop(pool.destroy_all(&spec).await);
        }
        _ => {}
    }
}

#[test]
fn a_random_history_of_branches_keeps_every_account() {
    for seed in 0..12 {
        sim::run(seed, sim::Config::default(), async {
            let mut pool = Pool::volume("p/v").await;
            for n in 0..60 {
                step(&mut pool, world::random_u64(), n).await;
                pool.sync().await;
                if n % 6 == 5 {
                    pool.checked().await;
                }
                if n % 20 == 19 {
                    pool.reopen().await;
                }
            }
        });
    }
}
