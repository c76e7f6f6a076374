//! A masked LUN that is copied and moved in every way there is, on simulated disks.

use super::super::LunFacts;
use crate::{Appliance, Config, Home};
use api::san::{Members, San};
use api::shares::{ItemKind, Place, Shares};
use api::{Call, Layout, NewPool, Reply, Request, Service, ShareDeed, Snapshots};
use std::future::Future;
use std::sync::Arc;

const A: &str = "iqn.2001-04.com.example:a";

async fn ask(appliance: &Appliance, request: Request) -> Reply {
    let call = Call { command: "test".into(), uid: 0, request };
    appliance.call(call).await.unwrap()
}

async fn share(appliance: &Appliance, asked: Shares) {
    ask(appliance, Request::Shares(asked)).await;
}

fn place(project: &str, share: &str) -> Place {
    Place::project("tank", project).share(share)
}

fn words(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

async fn make(appliance: &Appliance, place: Place, kind: ItemKind, set: &[(&str, &str)]) {
    share(appliance, Shares::Create { place, kind, set: words(set) }).await;
}

/// A project "secret" whose LUNs are of the group of that name, and one "open".
async fn prepare(appliance: &Appliance) {
    let new = NewPool::of("tank", Layout::Stripe, &["/sim/a"]);
    ask(appliance, Request::PoolCreate(new)).await;
    let group = San::GroupCreate { of: Members::Initiators, name: "secret".into(), members: vec![A.into()] };
    ask(appliance, Request::San(group)).await;
    for (project, groups) in [("secret", &[("initiatorgroup", "secret")][..]), ("open", &[])] {
        make(appliance, Place::project("tank", project), ItemKind::Project, groups).await;
    }
}

const SIZE: &[(&str, &str)] = &[("volsize", "16M"), ("sparse", "true")];

async fn clone(appliance: &Appliance, of: Place, to: Place, set: &[(&str, &str)]) {
    let deed = ShareDeed::Clone { project: Some(to.project), share: to.share.unwrap(), set: words(set) };
    share(appliance, Shares::Snapshot { place: of, name: "s".into(), deed }).await;
}

async fn facts(appliance: &Appliance, place: &Place) -> Arc<LunFacts> {
    let dataset = place.dataset();
    let found = appliance.luns().await.unwrap().into_iter().find(|lun| lun.dataset == dataset);
    found.unwrap_or_else(|| panic!("{dataset} is a LUN"))
}

async fn groups(appliance: &Appliance, place: &Place) -> Vec<String> {
    facts(appliance, place).await.initiator_groups.clone()
}

fn run<W: Future<Output = ()> + Send + 'static>(
    name: &str,
    work: impl FnOnce(Appliance) -> W + Send + 'static,
) {
    let dir = std::env::temp_dir().join(format!("cenote-masks-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let disks = sim::Disks::new();
    disks.add("/sim/a", 256 << 20, sim::Model::NVME);
    let home = Home::find(Some(&dir)).unwrap();
    sim::run_with(&disks, 7, sim::Config::default(), async move {
        home.prepare().unwrap();
        let config = Config { home, is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
        let appliance = Appliance::start(config).await.unwrap();
        prepare(&appliance).await;
        work(appliance.clone()).await;
        appliance.stop().await.unwrap();
    });
    let _ = std::fs::remove_dir_all(&dir);
}

/// A clone of a LUN that one initiator alone may see had the groups of the project it was put into, mostly `default`: at
/// once it was online, and every initiator could read and write it.
#[test]
fn a_clone_is_seen_by_those_who_see_its_origin_and_by_nobody_else() {
    run("clone", |appliance| async move {
        // One has its group of its project, one of its own; and one is offline.
        let (of_project, of_own, off) = (place("secret", "lun"), place("open", "own"), place("open", "off"));
        make(&appliance, of_project.clone(), ItemKind::Lun, SIZE).await;
        let own = [SIZE, &[("initiatorgroup", "secret")]].concat();
        make(&appliance, of_own.clone(), ItemKind::Lun, &own).await;
        make(&appliance, off.clone(), ItemKind::Lun, &[SIZE, &[("status", "offline")]].concat()).await;
        for lun in [&of_project, &of_own, &off] {
            let taken = Shares::Snapshot { place: lun.clone(), name: "s".into(), deed: ShareDeed::Take };
            share(&appliance, taken).await;
        }
        for (n, of) in [&of_project, &of_own].into_iter().enumerate() {
            for project in ["open", "secret", "default"] {
                let to = place(project, &format!("clone{n}"));
                clone(&appliance, of.clone(), to.clone(), &[]).await;
                assert_eq!(groups(&appliance, &to).await, ["secret"], "{of} as {to}");
            }
            // Unless an administrator says so.
            let said = place("open", &format!("said{n}"));
            clone(&appliance, of.clone(), said.clone(), &[("initiatorgroup", "default")]).await;
            assert_eq!(groups(&appliance, &said).await, ["default"]);
        }
        clone(&appliance, off, place("open", "off2"), &[]).await;
        assert!(!facts(&appliance, &place("open", "off2")).await.online);
        // 'zfs clone' makes no LUN; but what becomes one later is the same data.
        let plain = place("open", "plain");
        let asked = Snapshots::Clone {
            snapshot: format!("{}@s", of_project.dataset()),
            name: plain.dataset(),
            properties: Vec::new(),
            parents: false,
            unmounted: false,
        };
        ask(&appliance, Request::Snapshots(asked)).await;
        let online = Shares::change(plain.clone(), words(&[("status", "online")]), Vec::new());
        share(&appliance, online).await;
        assert_eq!(groups(&appliance, &plain).await, ["secret"]);
        // And a promotion changes which dataset depends on which, and nothing else.
        ask(&appliance, Request::Snapshots(Snapshots::Promote { name: plain.dataset() })).await;
        clone(&appliance, plain.clone(), place("open", "late"), &[]).await;
        for lun in [&plain, &of_project, &place("open", "late")] {
            assert_eq!(groups(&appliance, lun).await, ["secret"], "{lun}");
        }
    });
}

/// A LUN that was moved into another project got that project's groups, though it was moved while clients used neither.
#[test]
fn a_lun_that_moves_to_another_project_is_seen_by_the_same_initiators() {
    run("rename", |appliance| async move {
        let lun = place("secret", "lun");
        make(&appliance, lun.clone(), ItemKind::Lun, SIZE).await;
        make(&appliance, place("open", "seen"), ItemKind::Lun, SIZE).await;
        for (from, to, seen_by) in [
            (lun, place("open", "moved"), "secret"),
            (place("open", "moved"), place("secret", "back"), "secret"),
            (place("secret", "back"), place("default", "below"), "secret"),
            (place("open", "seen"), place("secret", "seen"), "default"),
        ] {
            share(&appliance, Shares::rename(from, &to)).await;
            assert_eq!(groups(&appliance, &to).await, [seen_by], "{to}");
        }
        // A whole project takes along what is set on it, and what is set above it.
        make(&appliance, place("secret", "lun"), ItemKind::Lun, SIZE).await;
        let renamed = Shares::rename(Place::project("tank", "secret"), &Place::project("tank", "renamed"));
        share(&appliance, renamed).await;
        assert_eq!(groups(&appliance, &place("renamed", "lun")).await, ["secret"]);
    });
}
