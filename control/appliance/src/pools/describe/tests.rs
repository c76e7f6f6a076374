//! A spare that two pools know, as each of them shows it.

use crate::{Appliance, Config, Home};
use api::{Call, Class, DeviceAction, Layout, NewPool, Reply, Request, Service, VdevGroup};
use std::time::Duration;

async fn ask(appliance: &Appliance, request: Request) -> Reply {
    appliance.call(Call { command: "test".into(), uid: 0, request }).await.unwrap()
}

async fn start(home: &Home) -> Appliance {
    let config =
        Config { home: home.clone(), is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
    Appliance::start(config).await.unwrap()
}

/// The state of the pool's spare and what is said of it.
async fn spare(appliance: &Appliance, pool: &str) -> (String, Option<String>) {
    let Reply::Pools(pools) = ask(appliance, Request::Pools { names: vec![pool.into()] }).await else {
        panic!("pools")
    };
    let root = pools[0].vdevs.as_ref().unwrap();
    let spare = root.children.iter().find(|vdev| vdev.class == Some(Class::Spare)).unwrap();
    (spare.state.clone(), spare.why.clone())
}

async fn until(appliance: &Appliance, pool: &str, why: Option<&str>) {
    let wanted = ("ONLINE".to_string(), why.map(String::from));
    for _ in 0..60 {
        if spare(appliance, pool).await == wanted {
            return;
        }
        world::sleep(Duration::from_secs(1)).await;
    }
    panic!("{:?} instead of {wanted:?}", spare(appliance, pool).await);
}

#[test]
fn a_spare_that_another_pool_uses_is_in_use_by_that_pool_before_and_after_a_start() {
    let dir = std::env::temp_dir().join(format!("cenote-shared-spare-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let disks = sim::Disks::new();
    for device in ["a", "b", "c", "d", "s"] {
        disks.add(format!("/sim/{device}"), 256 << 20, sim::Model::NVME);
    }
    let home = Home::find(Some(&dir)).unwrap();
    sim::run_with(&disks, 7, sim::Config::default(), async move {
        home.prepare().unwrap();
        let appliance = start(&home).await;
        for (name, devices) in [("tank", ["/sim/a", "/sim/b"]), ("lake", ["/sim/c", "/sim/d"])] {
            let mut new = NewPool::of(name, Layout::Mirror, &devices);
            let devices = vec!["/sim/s".into()];
            new.vdevs.push(VdevGroup { class: Class::Spare, layout: Layout::Stripe, devices });
            ask(&appliance, Request::PoolCreate(new)).await;
        }
        let device = |action| Request::PoolDevice { name: "tank".into(), device: "/sim/b".into(), action };
        ask(&appliance, device(DeviceAction::Offline { temporary: false, fault: true })).await;
        until(&appliance, "tank", Some("currently in use")).await;
        let used = Some("in use by pool 'tank'");
        until(&appliance, "lake", used).await;
        appliance.stop().await.unwrap();
        drop(appliance);
        let appliance = start(&home).await;
        until(&appliance, "tank", Some("currently in use")).await;
        until(&appliance, "lake", used).await;
        ask(&appliance, Request::PoolClear { name: "tank".into(), device: None }).await;
        ask(&appliance, device(DeviceAction::Online { expand: false })).await;
        until(&appliance, "tank", None).await;
        until(&appliance, "lake", None).await;
        appliance.stop().await.unwrap();
    });
    let _ = std::fs::remove_dir_all(&dir);
}
