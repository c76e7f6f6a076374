//! Every block of the golden pools is read and checked, of the damaged ones too; and a scrub sets those right.

use crate::common::{open, verify};
use interop::harness::{Need, Trial, trial};
use interop::{Scratch, damage, golden, zdb};

/// Pools that verify.
const SOUND: &[&str] = &[
    "aux", "basic", "ckpt", "dsl", "gang", "gpt", "grub", "leak", "matrix", "mir2", "nofeat", "rz1", "rz2",
    "snd", "st", "v1", "v28", "zila", "zilb", "zilc", "zvol", "enc",
];

/// Pools that this program cannot read, and the words that say why.
const REFUSED: &[(&str, &str)] = &[("dr", "draid"), ("rzx", "raidz expansion"), ("rmv", "removed vdev")];

/// A pool, the image to be damaged with its seed and count, and the images left out.
const DAMAGED: &[(&str, &str, u64, usize, &[&str])] =
    &[("mir2", "mir2-1", 1, 400, &[]), ("rz1", "rz1-2", 2, 300, &[]), ("rz2", "rz2-0", 3, 200, &["rz2-3"])];

pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    for &name in SOUND {
        trials.push(trial(format!("every_block_of_{name}_is_good"), &[Need::Golden(name)], move || {
            sound(name);
        }));
    }
    for &(name, why) in REFUSED {
        let title = format!("{name}_is_refused_by_naming_what_is_missing");
        trials.push(trial(title, &[Need::Golden(name)], move || refused(name, why)));
    }
    for &(name, image, seed, count, without) in DAMAGED {
        let title = format!("{image}_damaged_is_read_all_the_same_and_scrubbed_clean");
        trials.push(trial(title, &[Need::Golden(name)], move || {
            scrubbed(name, image, seed, count, without);
        }));
    }
    for name in ["v28", "nofeat"] {
        let title = format!("{name}_without_its_datasets_and_scrubbed_passes_zdb");
        trials.push(trial(title, &[Need::Golden(name), Need::Program("zdb")], move || emptied(name)));
    }
    trials
}

fn sound(name: &'static str) {
    let images = golden::pool(name).images;
    let report = linux::block_on(async move {
        let pool = open(images, name, true).await.unwrap();
        verify(&pool).await
    });
    assert_eq!(report.repairable, 0);
    assert!(report.total.blocks > 50 && report.datasets > 0, "{report:?}");
    let has_secrets = ["enc", "gang", "snd", "zilc", "zvol"].contains(&name);
    assert_eq!(report.encrypted.blocks > 0, has_secrets, "{:?}", report.encrypted);
    let has_log = name.starts_with("zil");
    assert_eq!(report.log_blocks > 0, has_log, "{} log blocks", report.log_blocks);
    // Dedup, cloned blocks and a checkpoint make the sums differ; else they may by what waits to be freed.
    if !["aux", "basic", "ckpt", "dsl", "enc", "gang", "leak", "zvol"].contains(&name) {
        let (walked, allocated) = (report.total.asize, report.to_examine);
        assert!(walked <= allocated && allocated - walked < 64 << 10, "{walked} of {allocated}");
    }
}

fn refused(name: &'static str, why: &str) {
    let images = golden::pool(name).images;
    let refusal = linux::block_on(async move { open(images, name, true).await.unwrap_err().to_string() });
    assert!(refusal.contains(why), "{refusal}");
}

fn scrubbed(name: &'static str, image: &str, seed: u64, count: usize, without: &[&str]) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, without);
    let hit = damage::overwrite(&scratch.join(format!("{image}.img")), seed, count).unwrap();
    assert_eq!(hit, count);
    let found = linux::block_on({
        let images = images.clone();
        async move {
            let found = {
                let pool = open(images.clone(), name, true).await.unwrap();
                verify(&pool).await.repairable
            };
            let pool = open(images, name, false).await.unwrap();
            pool.scrub().await.unwrap();
            pool.scrub_wait().await;
            let scan = pool.scan_status().unwrap();
            assert_eq!(scan.errors, 0, "{:?}", pool.complaints());
            assert!(scan.repaired > 0);
            assert_eq!(verify(&pool).await.repairable, 0, "nothing is left to be repaired");
            pool.export().await.unwrap();
            found
        }
    });
    assert!(found > 0, "the damage was met");
}

/// Each of these has file systems that were unmounted with a first block of an intent log kept for them.
fn emptied(name: &'static str) {
    let scratch = Scratch::new();
    let images = golden::pool(name).copy(&scratch, &[]);
    linux::block_on(async move {
        let pool = open(images, name, false).await.unwrap();
        let children = pool.dsl().children(name).await.unwrap();
        assert!(!children.is_empty());
        for child in children {
            let destroyed = pool.change("destroy", |pool, tx| async move {
                let plan = pool.dsl().plan_destroy(&child, true).await?;
                pool.dsl().destroy(&tx, &plan).await
            });
            destroyed.await.unwrap();
        }
        pool.scrub().await.unwrap();
        pool.scrub_wait().await;
        assert_eq!(pool.scan_status().unwrap().errors, 0);
        verify(&pool).await;
        assert_eq!(pool.complaints(), Vec::<String>::new());
        pool.export().await.unwrap();
    });
    zdb::assert_clean(scratch.path(), name);
}
