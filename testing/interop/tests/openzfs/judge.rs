//! The judge is judged first: `zdb` must pass pools that OpenZFS left clean, and must not pass damaged ones.
//!
//! Pools of version 28 and without features are used, because every `zdb` of the last ten years reads them.

use interop::harness::{Need, Trial, trial};
use interop::{Scratch, damage, golden, zdb};

pub fn trials() -> Vec<Trial> {
    let needs = |pool| [Need::Program("zdb"), Need::Golden(pool)];
    vec![
        trial("a_clean_pool_passes", &needs("v28"), || {
            let scratch = Scratch::new();
            golden::pool("v28").copy(&scratch, &[]);
            zdb::assert_clean(scratch.path(), "v28");
        }),
        trial("a_pool_without_features_passes", &needs("nofeat"), || {
            let scratch = Scratch::new();
            golden::pool("nofeat").copy(&scratch, &[]);
            zdb::assert_clean(scratch.path(), "nofeat");
        }),
        trial("a_damaged_pool_does_not_pass", &needs("v28"), || {
            let scratch = Scratch::new();
            let images = golden::pool("v28").copy(&scratch, &[]);
            let hit = damage::overwrite(&images[0], 1, 50).unwrap();
            assert_eq!(hit, 50);
            let judgement = zdb::judge(scratch.path(), "v28").unwrap_err();
            assert!(judgement.contains("exit status"), "{judgement}");
        }),
        trial("a_pool_that_is_not_there_does_not_pass", &needs("v28"), || {
            let scratch = Scratch::new();
            zdb::judge(scratch.path(), "v28").unwrap_err();
        }),
    ]
}
