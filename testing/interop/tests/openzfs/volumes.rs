//! Volumes that OpenZFS wrote are byte-equal to what its kernel read; pools are readable whichever devices are gone; and
//! a pool of OpenZFS that we wrote to passes OpenZFS's judge, or is opened for reading only.

use crate::common::{digest, open, verify};
use interop::golden::{self, Volume};
use interop::harness::{Need, Trial, trial};
use interop::{Scratch, zdb};

/// Pools that we can read but not keep up, and the word by which writing is refused.
const READ_ONLY: [(&str, &str); 4] =
    [("aux", "fast_dedup"), ("basic", "block_cloning"), ("ckpt", "zpool_checkpoint"), ("zvol", "encryption")];

/// The pools with redundancy, and in how many ways a device may be gone: every set of so many of its images.
const DEGRADED: [(&str, usize); 4] = [("mir2", 1), ("st", 1), ("rz1", 1), ("rz2", 2)];

/// Panics when the pool of this name, whose devices are in the directory, is not clean.
type Judge = fn(&std::path::Path, &str);

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for pool in ["zvol", "snd"] {
        trials.extend(golden::volumes(pool).into_iter().map(move |volume| equality(pool, volume)));
    }
    trials.extend(DEGRADED.map(|(pool, gone)| absence(pool, gone)));
    // The `zdb` that machines have knows all of what these use; the others need a newer one.
    let installed = || (Need::Program("zdb"), zdb::assert_clean as Judge);
    trials.extend(["v1", "v28", "nofeat", "grub"].map(|pool| writing(pool, installed())));
    let newer = || (zdb::OF_2_3, zdb::assert_clean_by_2_3 as Judge);
    trials.extend(["matrix", "mir2", "rz1", "rz2", "st"].map(|pool| writing(pool, newer())));
    trials.extend(READ_ONLY.map(|(pool, why)| read_only(pool, why)));
    trials
}

/// A volume is byte-equal to what the kernel read; an encrypted one says that it is.
fn equality(pool: &'static str, volume: Volume) -> Trial {
    let is_encrypted = volume.name.starts_with("zvol/enc");
    let words = if is_encrypted { "is_refused_as_encrypted" } else { "is_equal_to_its_manifest" };
    let sentence = format!("{}_{words}", volume.name.replace(['/', '@'], "_"));
    trial(sentence, &[Need::Golden(pool)], move || {
        let images = golden::pool(pool).images;
        let wanted = volume.clone();
        linux::block_on(async move {
            let pool = open(images, pool, true).await.unwrap();
            let opened = pool.open_volume(&wanted.name).await;
            if is_encrypted {
                assert_eq!(opened.map(drop).unwrap_err().kind(), units::Kind::Encrypted);
            } else {
                let volume = opened.unwrap();
                assert_eq!(volume.size(), wanted.size);
                assert_eq!(digest(&volume).await, wanted.sha256);
            }
            pool.close().await.unwrap();
        });
    })
}

/// Whichever devices are gone, as many as the layout allows, everything can be read.
fn absence(name: &'static str, gone: usize) -> Trial {
    trial(format!("{name}_is_readable_without_any_{gone}"), &[Need::Golden(name)], move || {
        let images = golden::pool(name).images;
        for missing in subsets(images.len(), gone) {
            let rest = images.iter().enumerate().filter(|(i, _)| !missing.contains(i));
            let rest = rest.map(|(_, image)| image.clone()).collect();
            linux::block_on(async move {
                let pool = open(rest, name, true).await.unwrap();
                verify(&pool).await;
                pool.close().await.unwrap();
            });
        }
    })
}

/// The numbers of every choice of `size` out of `count`.
fn subsets(count: usize, size: usize) -> Vec<Vec<usize>> {
    let all = (0..1_u32 << count).filter(|set| set.count_ones() as usize == size);
    all.map(|set| (0..count).filter(|i| set >> i & 1 == 1).collect()).collect()
}

/// A pool is what it was after we wrote to it, and OpenZFS finds nothing wrong.
fn writing(name: &'static str, (program, assert_clean): (Need, Judge)) -> Trial {
    let needs = [program, Need::Golden(name)];
    trial(format!("{name}_passes_zdb_after_we_wrote_to_it"), &needs, move || {
        let scratch = Scratch::new();
        let images = golden::pool(name).copy(&scratch, &[]);
        linux::block_on(async move {
            let pool = open(images, name, false).await.unwrap();
            pool.scrub().await.unwrap();
            pool.scrub_wait().await;
            pool.export().await.unwrap();
        });
        assert_clean(scratch.path(), name);
    })
}

/// What we could not keep up is opened for reading only, and the refusal says why and how.
fn read_only(name: &'static str, why: &'static str) -> Trial {
    let sentence = format!("{name}_is_for_reading_only_because_of_its_{}", why.replace(' ', "_"));
    trial(sentence, &[Need::Golden(name)], move || {
        let images = golden::pool(name).images;
        let opened = linux::block_on(async move { open(images, name, false).await.map(drop) });
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("readonly=on"), "{error}");
    })
}
