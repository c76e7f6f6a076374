//! What keeps its labels without force, and what does not.

use crate::{Appliance, Config, Home};
use api::{Call, Class, Layout, NewPool, Reply, Request, Result, Service, VdevGroup};

async fn ask(appliance: &Appliance, request: Request) -> Result<Reply> {
    appliance.call(Call { command: "test".into(), uid: 0, request }).await
}

async fn clear(appliance: &Appliance, device: &str, force: bool) -> std::result::Result<(), String> {
    let asked = Request::LabelClear { device: device.into(), force };
    ask(appliance, asked).await.map(drop).map_err(|e| e.message)
}

async fn create(appliance: &Appliance) {
    let mut new = NewPool::of("tank", Layout::Stripe, &["/sim/a"]);
    for (class, device) in [(Class::Spare, "/sim/s"), (Class::Cache, "/sim/c")] {
        new.vdevs.push(VdevGroup { class, layout: Layout::Stripe, devices: vec![device.into()] });
    }
    ask(appliance, Request::PoolCreate(new)).await.unwrap();
}

#[test]
fn what_a_pool_may_want_again_is_cleared_by_force_alone() {
    let dir = std::env::temp_dir().join(format!("cenote-labelclear-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let disks = sim::Disks::new();
    for device in ["/sim/a", "/sim/s", "/sim/c"] {
        disks.add(device, 256 << 20, sim::Model::NVME);
    }
    let home = Home::find(Some(&dir)).unwrap();
    sim::run_with(&disks, 7, sim::Config::default(), async move {
        home.prepare().unwrap();
        let config =
            Config { home: home.clone(), is_daemon: true, mounts: false, system: Vec::new(), is_safe: false };
        let appliance = Appliance::start(config).await.unwrap();
        create(&appliance).await;
        for device in ["/sim/a", "/sim/s", "/sim/c"] {
            let why = clear(&appliance, device, true).await.unwrap_err();
            assert!(why.contains("it is part of the imported pool"), "{why}");
        }
        ask(&appliance, Request::PoolExport { name: "tank".into(), force: false }).await.unwrap();
        for (device, why) in [
            ("/sim/a", "is part of exported pool 'tank'"),
            ("/sim/s", "is reserved as a hot spare"),
            ("/sim/c", "is a cache device"),
        ] {
            let said = format!(
                "failed to clear label for {device}: use '-f' to override the following error: {device} {why}"
            );
            assert_eq!(clear(&appliance, device, false).await, Err(said));
            clear(&appliance, device, true).await.unwrap();
            let said = clear(&appliance, device, true).await.unwrap_err();
            assert_eq!(said, format!("failed to clear label for {device}: there is no label on it"));
        }
        // Nothing wants what was destroyed.
        create(&appliance).await;
        ask(&appliance, Request::PoolDestroy { name: "tank".into(), force: false }).await.unwrap();
        clear(&appliance, "/sim/a", false).await.unwrap();
        appliance.stop().await.unwrap();
    });
    let _ = std::fs::remove_dir_all(&dir);
}
