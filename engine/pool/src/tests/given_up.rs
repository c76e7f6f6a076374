//! A pool that was not closed, because the power went or because it could not be opened to the end, leaves nothing in
//! memory: neither itself nor its devices.

use super::{Rig, VOLUME, fill, make_volume};
use crate::Content;
use sim::{Config, run_until_cut};
use std::sync::{Arc, Mutex, Weak};
use vdev::{Layout, Tree};
use zpl::{FileKind, NewFile};

type Trace = Arc<Mutex<Vec<Weak<Tree>>>>;

fn assert_nothing_is_left(trace: &Trace, pools: usize) {
    let trace = trace.lock().unwrap();
    assert_eq!(trace.len(), pools);
    let left = trace.iter().filter(|tree| tree.upgrade().is_some()).count();
    assert_eq!(left, 0, "of {pools} pools");
}

#[test]
fn a_power_cut_leaves_nothing_of_a_pool() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let trace = Trace::default();
    for (n, writes) in [1, 40, 200, 400].into_iter().enumerate() {
        let (own, told) = (rig.clone(), trace.clone());
        let outcome = run_until_cut(&rig.disks, n as u64, Config::default(), async move {
            let pool = if n == 0 { own.create().await } else { own.open(false).await.unwrap() };
            told.lock().unwrap().push(Arc::downgrade(&pool.0.tree));
            let (volume, files) = (format!("{VOLUME}{n}"), format!("tank/f{n}"));
            make_volume(&pool, &volume, 1 << 20).await;
            pool.create_dataset(&files, Content::FileSystem(Default::default()), Vec::new()).await.unwrap();
            let fs = pool.open_file_system_for_writing(&files).await.unwrap();
            own.disks.cut_at_write(writes);
            loop {
                fill(&pool, &volume, 7).await;
                let found = pool.open_volume(&volume).await.unwrap();
                found.write(0, world::Buf::copy_from(&[7; 4096])).await.unwrap();
                let root = fs.root().await.unwrap();
                _ = root.create(b"f", &NewFile::new(FileKind::Regular, 0o644)).await;
                root.lookup(b"f").await.unwrap().write(0, &[7; 5000]).await.unwrap();
                root.unlink(b"f").await.unwrap();
            }
        });
        assert!(outcome.is_none(), "the power was cut");
        rig.disks.power_cut(n as u64);
    }
    assert_nothing_is_left(&trace, 4);
}
