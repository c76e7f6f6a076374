//! Special devices: metadata goes there, and small blocks of files beside it.

use super::reshape::{self, open_all};
use super::{BLOCK, Rig, fill, make_volume, noise, read_all, verify};
use crate::{Content, Pool};
use dsl::props::{Types, When, parse_setting};
use metaslab::Class;
use vdev::{Bias, Layout};
use zpl::{FileKind, FileSystem, NewFile};

const SET: &str = "tank/fs";
const REGULAR: NewFile<'static> = NewFile {
    kind: FileKind::Regular,
    permissions: 0o644,
    umask: 0,
    uid: 0,
    gid: 0,
    rdev: (0, 0),
    target: b"",
};

/// Bytes taken of the special devices and of the others.
async fn taken(pool: &Pool) -> (u64, u64) {
    pool.sync().await.unwrap();
    let of = |class| pool.space().usage(class).allocated;
    (of(Class::Special), of(Class::Normal))
}

async fn write(fs: &FileSystem, name: &str, seed: u64, len: usize) {
    let file = fs.root().await.unwrap().create(name.as_bytes(), &REGULAR).await.unwrap();
    file.write(0, &noise(seed, len)).await.unwrap();
}

async fn with_special(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    let group = reshape::group(Bias::Special, Layout::Stripe, &["special"]);
    pool.add_vdevs(&[group], 0).await.unwrap();
    pool
}

/// A special vdev could be added, its feature was active, and no block ever went there.
#[test]
fn metadata_goes_to_special_devices_and_data_does_not() {
    let rig = reshape::rig_with(&["special"]);
    let own = rig.clone();
    rig.run(6, async move {
        let pool = with_special(&own).await;
        let (special, normal) = taken(&pool).await;
        make_volume(&pool, "tank/v", 1024 * BLOCK).await;
        fill(&pool, "tank/v", 5).await;
        let (more, data) = taken(&pool).await;
        assert!(more > special, "indirect blocks and the pool's own objects: {special}, {more}");
        // What metadata there was on the others is written anew, and freed there.
        assert!((1024 * BLOCK..=normal + 1024 * BLOCK).contains(&data), "{normal}, {data}");
        pool.export().await.unwrap();
        let pool = open_all(false).await;
        assert_eq!(read_all(&pool, "tank/v").await.unwrap(), noise(5, 1024 * BLOCK as usize));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn small_blocks_of_files_go_there_as_their_property_says_while_metadata_has_room() {
    // What may be written is what the others have room for, whatever the special device holds.
    let rig = Rig::new(Layout::Stripe, 1, 256 << 20);
    drop(rig.disks.add("/sim/special", 64 << 20, sim::Model::NVME));
    let own = rig.clone();
    rig.run(7, async move {
        let pool = with_special(&own).await;
        let up_to =
            parse_setting("special_small_blocks", "8K", Types::FILESYSTEM, When::Later, &Default::default());
        pool.create_dataset(SET, Content::FileSystem(Default::default()), vec![up_to.unwrap()])
            .await
            .unwrap();
        let fs = pool.open_file_system_for_writing(SET).await.unwrap();
        let (special, normal) = taken(&pool).await;
        for n in 0..100 {
            write(&fs, &format!("small{n}"), n, 8 << 10).await;
        }
        fs.sync().await.unwrap();
        let (with_small, still) = taken(&pool).await;
        assert!(with_small - special >= 100 * (8 << 10), "{special}, {with_small}");
        assert!(still <= normal, "{normal}, {still}");
        write(&fs, "large", 1, 4 << 20).await;
        fs.sync().await.unwrap();
        let (after, data) = taken(&pool).await;
        assert!(
            data - still >= 4 << 20 && after - with_small < 1 << 20,
            "{with_small}, {after}; {still}, {data}"
        );
        // Until a quarter is left, which is for metadata.
        let space = pool.space().usage(Class::Special).space;
        for n in 0..space / (8 << 10) {
            write(&fs, &format!("many{n}"), n, 8 << 10).await;
            if n % 256 == 255 {
                fs.sync().await.unwrap();
            }
        }
        fs.sync().await.unwrap();
        let (full, spilled) = taken(&pool).await;
        assert!(full > space / 2 && full < space, "{full} of {space}");
        assert!(spilled - data > space / 16, "{data}, {spilled}");
        drop(fs);
        verify(&pool).await;
        pool.export().await.unwrap();
        let pool = open_all(false).await;
        let fs = pool.open_file_system(SET).await.unwrap();
        let small = fs.resolve(b"small7", true).await.unwrap();
        assert_eq!(small.read(0, 8 << 10).await.unwrap().to_vec(), noise(7, 8 << 10));
        drop((small, fs));
        pool.export().await.unwrap();
    });
}
