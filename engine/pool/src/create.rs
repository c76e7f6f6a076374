//! Making a pool.
//!
//! The devices get labels of txg 0 first, which no import takes for a pool; then the first state is written as txg 4, and
//! its uberblock makes it one. A crash before that leaves devices that belong to no pool.

use crate::assemble::MosSpaceLog;
use crate::file_systems::accounting;
use crate::guids::Guids;
use crate::open::read_checksummer;
use crate::parts::{Parts, assemble, min_alloc, space_spec, worst};
use crate::pool::{Host, Pool};
use crate::vdev_zaps;
use arc::Cache;
use codec::checksum::{Checksummer, Salt};
use dmu::{NewObject, ObjSet, Policy, Tx};
use dsl::Dsl;
use dsl::pool_props::PoolProp;
use dsl::props::{PropName, Value};
use dsl::space::PoolSpace;
use metaslab::Space;
use ondisk::mos::directory;
use ondisk::{BlockPointer, Feature, NvList, ObjectType, ObjsetType, PoolState, Uberblock};
use probe::Hub;
use std::sync::Arc;
use tunables::Tunables;
use units::{Error, Guid, ObjectId, ObjsetId, Result, Txg};
use vdev::label::config::PoolConfig;
use vdev::{Bias, Group, Leaf, Spec, Top, Tree, VdevType};
use world::Boxed;
use world::OpenMode;
use zio::{Options as PipelineOptions, Pipeline, Rules};

/// What a new pool is to be. Names and properties are checked already.
#[derive(Debug)]
pub struct CreateOptions {
    pub name: String,
    pub groups: Vec<Group>,
    /// 0: as the devices say.
    pub ashift: u32,
    pub features: Vec<Feature>,
    /// Properties of the pool's own file system.
    pub root_props: Vec<(PropName, Value)>,
    /// What that is made with, and never changes; whose its root directory is.
    pub root: zpl::NewFileSystem,
    /// Properties of the pool, as they are stored.
    pub pool_props: Vec<(PoolProp, zap::Value)>,
    pub compatibility: Option<String>,
    pub comment: Option<String>,
    pub host: Host,
    pub cache: Arc<Cache>,
    /// What may change while it is open.
    pub tunables: Arc<Tunables>,
    /// Where what happens is told.
    pub hub: Hub,
}

/// The version that says "see the features".
const VERSION: u64 = 5000;
/// Of what the pool's configuration is packed into, in the MOS.
const CONFIG_BLOCK: u32 = 16 << 10;

/// Makes a pool and leaves it open.
pub fn create(options: CreateOptions) -> Boxed<'static, Result<Pool>> {
    Box::pin(async move { create_as(options, None).await })
}

/// As [`create`], under another name while it is open: on disk the pool has its own.
pub fn create_as(options: CreateOptions, temporary_name: Option<String>) -> Boxed<'static, Result<Pool>> {
    Box::pin(async move {
        dsl::name::check_pool(&options.name)?;
        let name = temporary_name.unwrap_or_else(|| options.name.clone());
        dsl::name::check_pool(&name)?;
        let is_shared = |(prop, value): &(PoolProp, zap::Value)| {
            *prop == PoolProp::MultiHost && value.as_u64() == Some(1)
        };
        if options.pool_props.iter().any(is_shared) {
            options.host.check_number()?;
        }
        let txg = Txg::INITIAL;
        let mut guids = Guids::default();
        let guid = guids.draw();
        let spec = Spec::create(guid, &options.groups, options.ashift, txg, || guids.draw())?;
        let how = vdev::OpenOptions {
            tunables: options.tunables.clone(),
            hub: options.hub.clone(),
            pool_name: name.clone(),
            ..vdev::OpenOptions::new(OpenMode::ReadWrite)
        };
        let tree = Tree::open(spec, how).await?;
        if let Some(leaf) = tree.leaves().iter().find(|l| !l.is_usable()) {
            return Err(unusable(leaf));
        }
        let config = new_config(&options, guid);
        tree.label_new(&config, txg).await?;

        let log = MosSpaceLog::new(tree.clone());
        let has = |f| options.features.contains(&f);
        let space = Arc::new(Space::new(log.clone(), has(Feature::SpacemapV2)));
        let salt: Salt = Salt([0; 32]);
        let pipeline = Pipeline::new(PipelineOptions {
            devices: tree.clone(),
            space: Some(space.clone()),
            cache: options.cache.clone(),
            tunables: options.tunables.clone(),
            checksummer: Arc::new(Checksummer::new(&salt)),
            rules: Rules {
                min_alloc: min_alloc(&tree),
                embed: has(Feature::EmbeddedData),
                hole_birth: has(Feature::HoleBirth),
                worst: worst(&tree),
            },
        });
        let store: Arc<dyn zio::BlockStore> = Arc::new(pipeline.clone());
        let policy =
            Policy { hole_birth: has(Feature::HoleBirth), lz4: has(Feature::Lz4Compress), ..Policy::mos() };
        let mos = ObjSet::create(store, ObjsetId::MOS, ObjsetType::Meta, policy, txg);
        let knot = log.tie(mos.clone(), has(Feature::SpacemapHistogram));
        let tx = Tx::syncing(txg);
        // The object directory is object 1, so it comes first.
        let new = dsl_of(&name, &options, pool_space(&tree));
        let (dsl, root) = Dsl::create_initial(mos.clone(), &tx, &new).await?;
        make_metaslab_arrays(&tree, &mos, &tx).await?;
        for top in tree.tops() {
            let bias = bias_of(&tree, &top);
            top.set_bias(bias);
            space.add_vdev(space_spec(&top, bias)).await?;
        }
        log.tie_features(dsl.core().clone());
        let accounting = accounting(&dsl);
        zpl::create(root.objset(), &tx, zpl::NewFileSystem { accounting, ..options.root }).await?;
        let directory = dsl.core().directory().clone();
        let mut spec = tree.spec();
        vdev_zaps::create(dsl.core(), &tx, &mut spec).await?;
        tree.update_spec(|own| *own = spec);
        let object = mos
            .allocate(
                &tx,
                NewObject::new(ObjectType::PACKED_NVLIST, CONFIG_BLOCK)
                    .with_bonus(ObjectType::PACKED_NVLIST_SIZE, vec![0; 8]),
            )
            .await?;
        directory.insert(&tx, directory::CONFIG, object.id().0).await?;
        store_props(&mos, &dsl, &tx, &options.pool_props).await?;
        let checksummer = read_checksummer(&dsl).await?;
        pipeline.set_checksummer(checksummer);

        let uberblock = Uberblock {
            version: VERSION,
            txg: Txg::NONE,
            guid_sum: 0,
            timestamp: 0,
            root: BlockPointer::HOLE,
            software_version: VERSION,
            mmp: Some(ondisk::Mmp::default()),
            checkpoint_txg: Txg::NONE,
            reflow: ondisk::RaidzReflow::default(),
        };
        let name_on_disk = Some(options.name).filter(|own| *own != name);
        let parts = Parts {
            config: PoolConfig { name, ..config },
            name_on_disk,
            tree,
            space,
            space_log: knot,
            pipeline,
            mos,
            dsl,
            uberblock,
            read_only: false,
            tunables: options.tunables,
            hub: options.hub,
        };
        // A change that went into this txg as well would make a second state of it.
        let pool = assemble(parts, txg.next());
        // There is nothing to wait for with: a device that fails now makes the creation fail.
        pool.pipeline().suspension().close();
        pool.sync_txg(txg).await?;
        pool.pipeline().suspension().open();
        pool.load_failmode().await?;
        pool.start();
        let started = async {
            pool.load_multihost().await?;
            pool.load_device_watch().await?;
            pool.load_autotrim().await
        };
        if let Err(e) = started.await {
            pool.stop().await;
            return Err(e);
        }
        Ok(pool)
    })
}

fn new_config(options: &CreateOptions, guid: Guid) -> PoolConfig {
    PoolConfig {
        version: VERSION,
        name: options.name.clone(),
        state: PoolState::Active,
        txg: Txg::NONE,
        guid,
        errata: 0,
        alloc: None,
        comment: options.comment.clone(),
        compatibility: options.compatibility.clone(),
        host: Some((options.host.id, options.host.name.clone())),
        process: options.host.process.clone(),
        features_for_read: NvList::new(),
        other: NvList::new(),
    }
}

fn dsl_of<'a>(name: &'a str, options: &'a CreateOptions, space: PoolSpace) -> dsl::NewPool<'a> {
    dsl::NewPool {
        name,
        host: &options.host.name,
        version: VERSION,
        features: &options.features,
        space,
        props: &options.root_props,
    }
}

fn bias_of(tree: &Tree, top: &Top) -> Bias {
    tree.spec().children.iter().find(|t| t.guid == top.guid()).map_or(Bias::Normal, |t| t.bias)
}

/// The space of the vdevs for ordinary blocks, before there are any metaslabs.
fn pool_space(tree: &Tree) -> PoolSpace {
    let deflated =
        |top: &Arc<Top>| (top.metaslabs() << top.metaslab_shift >> units::SECTOR_SHIFT) * top.deflate_ratio();
    let size = tree.tops().iter().filter(|t| bias_of(tree, t) == Bias::Normal).map(deflated).sum();
    PoolSpace { size, everything: size, slop: metaslab::slop(size, 0), deferred: 0 }
}

pub(crate) fn unusable(leaf: &Leaf) -> Error {
    let why = leaf.detail().unwrap_or_else(|| leaf.health().aux.phrase().into());
    Error::invalid(format!("device '{}' cannot be used: {why}", leaf.device()))
}

/// One array of space map numbers for each top-level vdev.
async fn make_metaslab_arrays(tree: &Tree, mos: &ObjSet, tx: &Tx) -> Result<()> {
    for top in tree.tops() {
        let array = make_metaslab_array(&top, mos, tx).await?;
        tree.update_spec(|root| {
            if let Some(spec) =
                root.children.iter_mut().find(|t| t.guid == top.guid() && t.vdev_type != VdevType::Hole)
            {
                spec.metaslab_array = Some(array.0);
            }
        });
    }
    Ok(())
}

pub(crate) async fn make_metaslab_array(top: &Top, mos: &ObjSet, tx: &Tx) -> Result<ObjectId> {
    // A block of the array that is large enough for all: so is each entry found with one read.
    let size = (top.metaslabs() * 8).next_power_of_two().clamp(512, 128 << 10) as u32;
    Ok(mos.allocate(tx, NewObject::new(ObjectType::OBJECT_ARRAY, size)).await?.id())
}

async fn store_props(mos: &ObjSet, dsl: &Dsl, tx: &Tx, props: &[(PoolProp, zap::Value)]) -> Result<()> {
    if props.is_empty() {
        return Ok(());
    }
    let table = dsl::zaps::create(mos, tx, ObjectType::POOL_PROPS).await?;
    dsl.core().directory().insert(tx, directory::POOL_PROPERTIES, table.blocks().id().0).await?;
    for (prop, value) in props {
        table.insert(tx, prop.name(), value.clone()).await?;
    }
    Ok(())
}
