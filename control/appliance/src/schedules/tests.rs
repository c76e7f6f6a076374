//! Days of schedules in simulated time: an appliance whose disks are simulated, and whose configuration is a file.

use crate::{Appliance, Config, Home};
use api::automatic::{Automatic, AutomaticDeed};
use api::shares::{ItemKind, Place, Shares};
use api::{Call, Layout, NewPool, Reply, Request, Service, ShareDeed, ShareSnapshot, Snapshots};
use sim::Disks;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

const HOUR: u64 = 3600;
/// 2026-05-22T14:20:00Z
pub(crate) const START: u64 = 1_779_459_600;

pub(crate) struct Lab {
    pub disks: Disks,
    dir: PathBuf,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Lab {
    pub fn new(name: &str) -> Lab {
        let dir = std::env::temp_dir().join(format!("cenote-automatic-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let disks = Disks::new();
        disks.add("/sim/a", 256 << 20, sim::Model::NVME);
        Lab { disks, dir }
    }

    /// A daemon from this time on, for as long as `work` takes.
    pub fn run<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
        &self,
        at: u64,
        work: impl FnOnce(Appliance) -> W + Send + 'static,
    ) -> T {
        let config = sim::Config { wall_seconds: at, ..sim::Config::default() };
        let home = Home::find(Some(&self.dir)).unwrap();
        sim::run_with(&self.disks, 7, config, async move {
            home.prepare().unwrap();
            let config = Config { home, is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
            let appliance = Appliance::start(config).await.unwrap();
            appliance.begin_schedules();
            let outcome = work(appliance.clone()).await;
            appliance.stop().await.unwrap();
            outcome
        })
    }
}

pub(crate) async fn ask(appliance: &Appliance, request: Request) -> Reply {
    try_ask(appliance, request).await.unwrap()
}

pub(crate) async fn try_ask(appliance: &Appliance, request: Request) -> api::Result<Reply> {
    appliance.call(Call { command: "test".into(), uid: 0, request }).await
}

/// Until the wall clock shows it.
async fn until(seconds: u64) {
    let now = world::wall_clock().seconds;
    world::sleep(Duration::from_secs(seconds.saturating_sub(now))).await;
}

pub(crate) fn project() -> Place {
    Place::project("tank", "p")
}

fn share() -> Place {
    project().share("v")
}

pub(crate) async fn make(appliance: &Appliance) {
    let new = NewPool::of("tank", Layout::Stripe, &["/sim/a"]);
    ask(appliance, Request::PoolCreate(new)).await;
    for (place, kind) in [(project(), ItemKind::Project), (share(), ItemKind::Filesystem)] {
        ask(appliance, Request::Shares(Shares::Create { place, kind, set: Vec::new() })).await;
    }
}

async fn schedule(appliance: &Appliance, place: Place, words: &[(&str, &str)]) {
    let set = words.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    ask(appliance, Request::Shares(Shares::Automatic { place, deed: AutomaticDeed::Create { set } })).await;
}

async fn snapshots(appliance: &Appliance, place: Place) -> Vec<ShareSnapshot> {
    match ask(appliance, Request::Shares(Shares::Snapshots { place })).await {
        Reply::ShareSnapshots(all) => all,
        other => panic!("{other:?}"),
    }
}

async fn automatics(appliance: &Appliance, place: Place) -> Vec<Automatic> {
    match ask(appliance, Request::Shares(Shares::Automatics { place })).await {
        Reply::Automatics(all) => all,
        other => panic!("{other:?}"),
    }
}

/// The names of a share's snapshots, those that were taken by themselves as their time after `START`.
async fn names(appliance: &Appliance, place: Place) -> Vec<String> {
    let shown = |s: ShareSnapshot| match s.name.strip_prefix(".auto-") {
        Some(at) => {
            let after = at.parse::<u64>().unwrap() - START;
            format!("{}:{:02}", after / HOUR, after / 60 % 60)
        }
        None => s.name,
    };
    snapshots(appliance, place).await.into_iter().map(shown).collect()
}

/// One that was taken while the clock was ahead was the last one of its schedule until that time came.
#[test]
fn a_snapshot_from_the_future_stops_no_schedule_and_goes_as_the_oldest() {
    let lab = Lab::new("ahead");
    lab.run(START + 24 * HOUR, |appliance| async move {
        make(&appliance).await;
        schedule(&appliance, share(), &[("frequency", "hour"), ("minute", "30"), ("keep", "2")]).await;
        until(START + 26 * HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["24:10", "25:10"]);
    });
    lab.run(START, |appliance| async move {
        until(START + HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["0:00", "0:10"], "what seems missed is taken at once");
        until(START + 3 * HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["1:10", "2:10"]);
        assert_eq!(automatics(&appliance, share()).await[0].problem, None);
    });
}

#[test]
fn so_many_stay_and_what_somebody_wants_stays_too() {
    let lab = Lab::new("keep");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        schedule(&appliance, share(), &[("frequency", "hour"), ("minute", "30"), ("keep", "2")]).await;
        assert_eq!(names(&appliance, share()).await, [""; 0], "the moment before it was made is not its own");
        let by_hand = Shares::Snapshot { place: share(), name: "by-hand".into(), deed: ShareDeed::Take };
        ask(&appliance, Request::Shares(by_hand)).await;
        until(START + HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["by-hand", "0:10"]);
        until(START + 3 * HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["by-hand", "1:10", "2:10"]);
        assert_eq!(names(&appliance, project()).await, [""; 0]);
        assert_eq!(automatics(&appliance, share()).await[0].last, Some(START + 2 * HOUR + 600));

        // One is held, and one was cloned.
        let all = snapshots(&appliance, share()).await;
        let held = vec![format!("tank/p/v@{}", all[1].name)];
        let hold = Snapshots::Hold { names: held.clone(), tag: "mine".into(), recursive: false };
        ask(&appliance, Request::Snapshots(hold)).await;
        let clone = ShareDeed::Clone { project: None, share: "c".into(), set: Vec::new() };
        let clone = Shares::Snapshot { place: share(), name: all[2].name.clone(), deed: clone };
        ask(&appliance, Request::Shares(clone)).await;
        until(START + 6 * HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["by-hand", "1:10", "2:10", "4:10", "5:10"]);
        let release = Snapshots::Release { names: held, tag: "mine".into(), recursive: false };
        ask(&appliance, Request::Snapshots(release)).await;
        until(START + 7 * HOUR).await;
        assert_eq!(names(&appliance, share()).await, ["by-hand", "2:10", "5:10", "6:10"]);
    });
}

#[test]
fn what_was_missed_is_made_once() {
    let lab = Lab::new("missed");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        schedule(&appliance, project(), &[("frequency", "halfhour"), ("minute", "0")]).await;
        schedule(&appliance, share(), &[("frequency", "hour"), ("keep", "1")]).await;
        until(START + HOUR).await;
    });
    let later = START + 30 * HOUR;
    let (of_share, of_project) = lab.run(later, |appliance| async move {
        until(START + 30 * HOUR + 1).await;
        world::sleep(Duration::from_secs(5)).await;
        (names(&appliance, share()).await, names(&appliance, project()).await)
    });
    // All that is in the project has its snapshots too; two in one second have names of their own.
    assert_eq!(of_project, ["0:10", "0:40", "30:00"]);
    assert_eq!(of_share, ["0:10", "0:40", "30:00", "30:00"]);
    // Once: another start finds nothing due.
    let again = lab.run(later + 60, |appliance| async move {
        world::sleep(Duration::from_secs(120)).await;
        names(&appliance, share()).await
    });
    assert_eq!(again, of_share);
}

#[test]
fn a_schedule_goes_with_its_share_and_not_with_its_name() {
    let lab = Lab::new("rename");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        schedule(&appliance, share(), &[("frequency", "hour"), ("minute", "30")]).await;
        let moved = project().share("w");
        ask(&appliance, Request::Shares(Shares::rename(share(), &moved))).await;
        until(START + HOUR).await;
        assert_eq!(names(&appliance, moved.clone()).await, ["0:10"]);
        let destroy = Shares::Destroy { place: moved.clone(), force: false };
        ask(&appliance, Request::Shares(destroy)).await;
        let again = Shares::Create { place: moved.clone(), kind: ItemKind::Filesystem, set: Vec::new() };
        ask(&appliance, Request::Shares(again)).await;
        until(START + 2 * HOUR).await;
        assert_eq!(names(&appliance, moved.clone()).await, [""; 0], "another share of that name");
        assert!(automatics(&appliance, moved.clone()).await.is_empty());

        // One that is taken away leaves what it took.
        schedule(&appliance, moved.clone(), &[("frequency", "hour"), ("minute", "30"), ("keep", "1")]).await;
        until(START + 3 * HOUR).await;
        let deed = AutomaticDeed::Destroy { id: 0 };
        ask(&appliance, Request::Shares(Shares::Automatic { place: moved.clone(), deed })).await;
        until(START + 5 * HOUR).await;
        assert_eq!(names(&appliance, moved.clone()).await, ["2:10"]);
        let gone = AutomaticDeed::Destroy { id: 0 };
        let e = try_ask(&appliance, Request::Shares(Shares::Automatic { place: moved, deed: gone })).await;
        assert_eq!(e.unwrap_err().message, "cannot destroy a schedule of 'p/w': there is no such schedule");
    });
}

#[test]
fn one_that_cannot_be_taken_says_why_and_is_taken_when_it_can() {
    let lab = Lab::new("problem");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        schedule(&appliance, share(), &[("frequency", "hour"), ("minute", "30")]).await;
        // Every name that it would try is taken.
        let due = START + 600;
        for second in due..due + 90 {
            let deed = ShareDeed::Take;
            let name = format!(".auto-{second}");
            ask(&appliance, Request::Shares(Shares::Snapshot { place: share(), name, deed })).await;
        }
        until(due + 50).await;
        let problem = automatics(&appliance, share()).await[0].problem.clone().unwrap_or_default();
        assert!(problem.contains("exists"), "{problem}");
        until(due + 200).await;
        let now = automatics(&appliance, share()).await[0].clone();
        assert_eq!((now.problem, now.last), (None, Some(due)));
    });
}

#[test]
fn a_lun_that_was_copied_into_other_blocks_keeps_its_schedule() {
    let lab = Lab::new("blocks");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        let lun = project().share("lun");
        let set = [("volsize", "16M"), ("volblocksize", "16K")].map(|(n, v)| (n.to_string(), v.to_string()));
        let create = Shares::Create { place: lun.clone(), kind: ItemKind::Lun, set: set.into() };
        ask(&appliance, Request::Shares(create)).await;
        schedule(&appliance, lun.clone(), &[("frequency", "hour"), ("minute", "30"), ("keep", "3")]).await;
        let guid = |appliance: Appliance| async move {
            let open = appliance.pool("tank", crate::pools::Access::Look).await.unwrap();
            let _reading = open.pool.reading().await;
            open.pool.dsl().find("tank/p/lun").await.unwrap().phys.guid
        };
        let before = guid(appliance.clone()).await;
        let properties = vec![("volblocksize".to_string(), "8K".to_string())];
        ask(&appliance, Request::DatasetSet { name: "tank/p/lun".into(), properties }).await;
        while appliance.0.migrations.text("tank/p/lun").is_some() {
            world::sleep(Duration::from_millis(10)).await;
        }
        assert_ne!(guid(appliance.clone()).await, before, "it is another dataset of the same name");
        // At once, and not only when the next one is due.
        assert_eq!(automatics(&appliance, lun.clone()).await[0].keep, 3);
        let deed = AutomaticDeed::Change { id: 0, set: vec![("keep".into(), "2".into())] };
        ask(&appliance, Request::Shares(Shares::Automatic { place: lun.clone(), deed })).await;
        until(START + 4 * HOUR).await;
        assert_eq!(names(&appliance, lun.clone()).await, ["2:10", "3:10"]);
        let all = automatics(&appliance, lun).await;
        assert_eq!((all.len(), all[0].last), (1, Some(START + 3 * HOUR + 600)));
    });
}

#[test]
fn a_new_share_of_an_old_name_does_not_take_its_schedule() {
    let lab = Lab::new("name");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        schedule(&appliance, share(), &[("frequency", "hour"), ("minute", "30")]).await;
        let moved = project().share("w");
        ask(&appliance, Request::Shares(Shares::rename(share(), &moved))).await;
        let again = Shares::Create { place: share(), kind: ItemKind::Filesystem, set: Vec::new() };
        ask(&appliance, Request::Shares(again)).await;
        assert!(automatics(&appliance, share()).await.is_empty());
        assert_eq!(automatics(&appliance, moved.clone()).await.len(), 1);
        until(START + HOUR).await;
        assert_eq!(names(&appliance, share()).await, [""; 0]);
        assert_eq!(names(&appliance, moved).await, ["0:10"]);
    });
}

/// It lies directly in the pool, where the pool's other projects are. Its snapshots were taken with its shares, and
/// destroyed and renamed without them.
#[test]
fn a_snapshot_of_the_default_project_is_of_its_shares_and_of_no_others() {
    let lab = Lab::new("default");
    lab.run(START, |appliance| async move {
        make(&appliance).await;
        let default = Place::project("tank", api::shares::DEFAULT_PROJECT);
        let lun = |name: &str| {
            let set = vec![("volsize".to_string(), "8M".to_string())];
            Request::Shares(Shares::Create { place: default.share(name), kind: ItemKind::Lun, set })
        };
        let deed = |place: &Place, name: &str, deed| {
            Request::Shares(Shares::Snapshot { place: place.clone(), name: name.into(), deed })
        };
        ask(&appliance, lun("x")).await;
        ask(&appliance, lun("y")).await;
        ask(&appliance, deed(&default, "s", ShareDeed::Take)).await;
        ask(&appliance, deed(&share(), "s", ShareDeed::Take)).await;
        ask(&appliance, lun("younger")).await;
        let (appliance, places) = (&appliance, [default.clone(), default.share("x"), default.share("y")]);
        let have = |name: &'static str| {
            let places = places.clone();
            async move {
                for place in places {
                    assert_eq!(names(appliance, place.clone()).await, [name], "{place}");
                }
                assert_eq!(names(appliance, share()).await, ["s"]);
            }
        };
        have("s").await;
        ask(appliance, deed(&default, "s", ShareDeed::Rename { to: "t".into() })).await;
        have("t").await;
        // All of them, or none.
        let y = vec!["tank/y@t".to_string()];
        let hold = Snapshots::Hold { names: y.clone(), tag: "mine".into(), recursive: false };
        ask(appliance, Request::Snapshots(hold)).await;
        assert!(try_ask(appliance, deed(&default, "t", ShareDeed::Destroy)).await.is_err());
        have("t").await;
        let release = Snapshots::Release { names: y, tag: "mine".into(), recursive: false };
        ask(appliance, Request::Snapshots(release)).await;
        ask(appliance, deed(&places[1], "u", ShareDeed::Take)).await;
        let clash = try_ask(appliance, deed(&default, "t", ShareDeed::Rename { to: "u".into() })).await;
        assert!(clash.unwrap_err().message.contains("exists"));
        ask(appliance, deed(&places[1], "u", ShareDeed::Destroy)).await;
        have("t").await;
        ask(appliance, deed(&default, "t", ShareDeed::Destroy)).await;
        for place in &places {
            assert_eq!(names(appliance, place.clone()).await, [""; 0], "{place}");
        }
        assert_eq!(names(appliance, share()).await, ["s"], "another project's");
    });
}
