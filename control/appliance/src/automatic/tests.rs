//! Days of schedules in simulated time: an appliance whose disks are simulated, and whose configuration is a file.

use crate::{Appliance, Config, Home};
use api::automatic::{Automatic, AutomaticDeed};
use api::shares::{ItemKind, Place, Shares};
use api::{
    Call, Class, Layout, NewPool, Reply, Request, Service, ShareDeed, ShareSnapshot, Snapshots, VdevGroup,
};
use sim::Disks;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

const HOUR: u64 = 3600;
/// 2026-05-22T14:20:00Z
const START: u64 = 1_779_459_600;

struct Lab {
    disks: Disks,
    dir: PathBuf,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Lab {
    fn new(name: &str) -> Lab {
        let dir = std::env::temp_dir().join(format!("cenote-automatic-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let disks = Disks::new();
        disks.add("/sim/a", 256 << 20, sim::Model::NVME);
        Lab { disks, dir }
    }

    /// A daemon from this time on, for as long as `work` takes.
    fn run<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
        &self,
        at: u64,
        work: impl FnOnce(Appliance) -> W + Send + 'static,
    ) -> T {
        let config = sim::Config { wall_seconds: at, ..sim::Config::default() };
        let home = Home::find(Some(&self.dir)).unwrap();
        sim::run_with(&self.disks, 7, config, async move {
            home.prepare().unwrap();
            let config = Config { home, is_daemon: true, mounts: false, system: Vec::new() };
            let appliance = Appliance::start(config).await.unwrap();
            appliance.begin_schedules();
            let outcome = work(appliance.clone()).await;
            appliance.stop().await.unwrap();
            outcome
        })
    }
}

async fn ask(appliance: &Appliance, request: Request) -> Reply {
    try_ask(appliance, request).await.unwrap()
}

async fn try_ask(appliance: &Appliance, request: Request) -> api::Result<Reply> {
    appliance.call(Call { command: "test".into(), uid: 0, request }).await
}

/// Until the wall clock shows it.
async fn until(seconds: u64) {
    let now = world::wall_clock().seconds;
    world::sleep(Duration::from_secs(seconds.saturating_sub(now))).await;
}

fn project() -> Place {
    Place::project("tank", "p")
}

fn share() -> Place {
    project().share("v")
}

async fn make(appliance: &Appliance) {
    let new = NewPool {
        name: "tank".into(),
        vdevs: vec![VdevGroup {
            class: Class::Normal,
            layout: Layout::Stripe,
            devices: vec!["/sim/a".into()],
        }],
        force: false,
        dry_run: false,
        no_features: false,
        properties: Vec::new(),
        fs_properties: Vec::new(),
        temporary_name: None,
    };
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
        let clone = ShareDeed::Clone { to: project().share("c"), set: Vec::new() };
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
        ask(&appliance, Request::Shares(Shares::Rename { from: share(), to: moved.clone() })).await;
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
