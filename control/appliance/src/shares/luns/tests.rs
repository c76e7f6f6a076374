//! Two pools whose volumes claim one identifier or one number, as an appliance treats them.

use crate::{Appliance, Config, Home};
use api::san::{San, TargetChange};
use api::shares::{Item, ItemKind, Place, Shares};
use api::{Call, Layout, NewPool, PoolSplit, Reply, Request, Service};

async fn ask(appliance: &Appliance, request: Request) -> Reply {
    let said = format!("{request:?}");
    let call = Call { command: "test".into(), uid: 0, request };
    appliance.call(call).await.unwrap_or_else(|e| panic!("{said}: {e}"))
}

fn words(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn place(pool: &str) -> Place {
    Place::project(pool, "default").share("v")
}

async fn start(home: &Home) -> Appliance {
    let config =
        Config { home: home.clone(), is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
    Appliance::start(config).await.unwrap()
}

/// A pool on a device, or two, with the volume `v`.
async fn new_pool(appliance: &Appliance, name: &str, layout: Layout, devices: &[&str]) {
    ask(appliance, Request::PoolCreate(NewPool::of(name, layout, devices))).await;
    let set = words(&[("volsize", "16M"), ("sparse", "true")]);
    ask(appliance, Request::Shares(Shares::Create { place: place(name), kind: ItemKind::Lun, set })).await;
}

async fn set(appliance: &Appliance, name: &str, properties: &[(&str, &str)]) {
    ask(appliance, Request::DatasetSet { name: name.into(), properties: words(properties) }).await;
}

async fn change(appliance: &Appliance, pool: &str, attributes: &[(&str, &str)]) {
    let set = words(attributes);
    let change = Shares::Change { place: place(pool), name: None, project: None, set, unset: Vec::new() };
    ask(appliance, Request::Shares(change)).await;
}

async fn shown(appliance: &Appliance, pool: &str, attribute: &str) -> String {
    let Reply::Items(items) = ask(appliance, Request::Shares(Shares::Get { place: place(pool) })).await
    else {
        panic!("an item")
    };
    let text = |item: &Item| match item.attribute(attribute).and_then(|a| a.value.clone()) {
        Some(api::Value::Text(text)) => text,
        _ => String::new(),
    };
    text(&items[0])
}

async fn served(appliance: &Appliance) -> Vec<(String, u16)> {
    let view = appliance.san_view().await.unwrap();
    let (target, _) = view.targets().next().unwrap();
    let luns = view.luns(target, "iqn.2001-04.com.example:a");
    luns.into_iter().map(|lu| (lu.facts.dataset.clone(), lu.number)).collect()
}

fn told(appliance: &Appliance) -> Vec<String> {
    let events = appliance.0.events.since(0);
    let left_out = events.into_iter().filter(|event| event.class == "sysevent.cenote.lun_left_out");
    left_out.map(|event| event.fields[1].1.clone()).collect()
}

fn run<W: Future<Output = ()> + Send + 'static>(name: &str, work: impl FnOnce(Home) -> W + Send + 'static) {
    let dir = std::env::temp_dir().join(format!("cenote-claims-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let disks = sim::Disks::new();
    for device in ["/sim/a", "/sim/b", "/sim/c"] {
        disks.add(device, 512 << 20, sim::Model::NVME);
    }
    let home = Home::find(Some(&dir)).unwrap();
    sim::run_with(&disks, 7, sim::Config::default(), async move {
        home.prepare().unwrap();
        work(home).await;
    });
    let _ = std::fs::remove_dir_all(&dir);
}

/// The pool whose name comes first had the LUN of the other one, and writes that its clients were told are kept.
#[test]
fn a_lun_that_is_served_stays_whatever_other_pools_claim() {
    run("stays", |home| async move {
        let appliance = start(&home).await;
        ask(&appliance, Request::San(San::TargetCreate { iqn: None, set: TargetChange::default() })).await;
        new_pool(&appliance, "tank", Layout::Stripe, &["/sim/a"]).await;
        new_pool(&appliance, "aaa", Layout::Stripe, &["/sim/b"]).await;
        let both = [("tank/v".to_string(), 0), ("aaa/v".to_string(), 1)];
        assert_eq!(served(&appliance).await, both);
        let guid = shown(&appliance, "tank", "lunguid").await;
        for (claim, said) in [
            (("cenote:lunguid", guid.as_str()), "its identifier is that of the LUN 'tank/v'"),
            (("cenote:lunumber", "0"), "its number 0 is that of the LUN 'tank/v'"),
        ] {
            assert_eq!(told(&appliance), Vec::<String>::new());
            set(&appliance, "aaa/v", &[claim]).await;
            assert_eq!(served(&appliance).await, both[..1]);
            assert_eq!(shown(&appliance, "aaa", "status").await, "offline");
            let problem = shown(&appliance, "aaa", "problem").await;
            assert!(problem.starts_with(said) && problem.contains("set lunumber=auto"), "{problem}");
            assert_eq!(told(&appliance), ["aaa/v"], "once");
            // What is said of both leaves both as they are.
            change(&appliance, "tank", &[("logbias", "throughput")]).await;
            change(&appliance, "aaa", &[("logbias", "throughput")]).await;
            assert_eq!(served(&appliance).await, both[..1]);
            assert_eq!(shown(&appliance, "tank", "problem").await, "");
            change(&appliance, "aaa", &[("lunumber", "auto")]).await;
            assert_eq!(served(&appliance).await, both);
            assert_ne!(shown(&appliance, "aaa", "lunguid").await, guid, "an identifier of its own");
            assert_eq!(shown(&appliance, "aaa", "problem").await, "");
            ask(&appliance, Request::EventsClear).await;
        }
        set(&appliance, "aaa/v", &[("cenote:lunumber", "0")]).await;
        assert_eq!(served(&appliance).await, both[..1]);
        appliance.stop().await.unwrap();
        drop(appliance);
        let appliance = start(&home).await;
        assert_eq!(served(&appliance).await, both[..1], "as before the restart");
        assert_eq!(told(&appliance), ["aaa/v"], "by each run");
        ask(&appliance, Request::PoolExport { name: "tank".into(), force: false }).await;
        assert_eq!(served(&appliance).await, [("aaa/v".to_string(), 0)], "nothing is in its way any more");
        appliance.stop().await.unwrap();
    });
}

#[test]
fn the_volumes_of_a_pool_that_was_split_off_are_no_luns() {
    run("split", |home| async move {
        let appliance = start(&home).await;
        ask(&appliance, Request::San(San::TargetCreate { iqn: None, set: TargetChange::default() })).await;
        new_pool(&appliance, "tank", Layout::Mirror, &["/sim/a", "/sim/b"]).await;
        let split = PoolSplit {
            pool: "tank".into(),
            new_name: "backup".into(),
            devices: Vec::new(),
            dry_run: false,
            properties: words(&[("altroot", "/mnt")]),
        };
        ask(&appliance, Request::PoolSplit(split)).await;
        assert_eq!(served(&appliance).await, [("tank/v".to_string(), 0)]);
        assert_eq!(shown(&appliance, "backup", "lunguid").await, "");
        assert_eq!(shown(&appliance, "backup", "status").await, "offline");
        change(&appliance, "backup", &[("status", "online")]).await;
        assert_eq!(served(&appliance).await, [("tank/v".to_string(), 0), ("backup/v".to_string(), 1)]);
        assert_ne!(shown(&appliance, "backup", "lunguid").await, shown(&appliance, "tank", "lunguid").await);
        appliance.stop().await.unwrap();
    });
}
