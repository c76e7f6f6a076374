//! Opening a pool that exists.
//!
//! ```text
//!   labels (a Candidate) ─▶ tree as labels tell it ─▶ best uberblock ─▶ MOS
//!                                                                       │ configuration: the whole tree, trusted
//!           tree opened again from that ◀───────────────────────────────┘
//!             │ for writing: now the devices are this process's own; a newer uberblock is there? from the beginning
//!             └▶ features allow it? ─▶ DSL ─▶ space maps, logs of space maps ─▶ Pool
//! ```
//!
//! Labels say where the devices are and how to read the MOS; what the tree is, the MOS says. Nothing is written before the
//! first txg; a pool opened read-only has none.

use crate::assemble::MosSpaceLog;
use crate::logs::only_reading;
use crate::parts::{Parts, assemble, min_alloc, space_spec, worst};
use crate::pool::{Host, Pool, lock};
use crate::split_off::SplitOff;
use crate::uberblocks::{States, states};
use crate::{dtl, log_space_maps, multihost, vdev_zaps};
use arc::Cache;
use codec::checksum::{Checksummer, Salt};
use dmu::{ObjSet, Policy};
use dsl::Dsl;
use dsl::features::check_verdict;
use metaslab::{Space, SpaceLog};
use ondisk::mos::directory;
use ondisk::{Feature, NvList, PoolState, Uberblock};
use probe::Hub;
use std::sync::Arc;
use tunables::Tunables;
use units::{Error, Kind, ObjectId, ObjsetId, Result, Txg};
use vdev::label::config::PoolConfig;
use vdev::scan::Candidate;
use vdev::{Lacking, Spec, Tree, VdevType};
use world::Boxed;
use world::OpenMode;
use zio::{Options as PipelineOptions, Pipeline, Rules, Worst};

/// How a pool is opened.
#[derive(Debug)]
pub struct OpenOptions {
    pub read_only: bool,
    /// Under another name, from now on.
    pub name: Option<String>,
    pub host: Host,
    /// Open it even if another machine seems to use it.
    pub force: bool,
    /// Open it even if a log device is missing, and lose what was on it.
    pub missing_log: bool,
    /// Open it even if devices went on without one another: the newest state is copied over the others. For reading it is
    /// never asked.
    pub copy_over: bool,
    pub cache: Arc<Cache>,
    /// What may change while it is open.
    pub tunables: Arc<Tunables>,
    /// Where what happens is told.
    pub hub: Hub,
}

/// The versions that there were before features.
const VERSIONS_OLD: std::ops::RangeInclusive<u64> = 1..=28;
const VERSION_FEATURES: u64 = 5000;

/// How often it is looked again at devices that have changed before they could be taken.
const LOOKS: u32 = 5;

/// What is special about an opening.
#[derive(Debug, Default)]
pub(crate) struct Special {
    /// The pool as it was in a txg that is not newer.
    pub limit: Option<Txg>,
    /// `OpenOptions::name` is for here only.
    pub is_temporary: bool,
    pub split: Option<SplitOff>,
}

/// Opens the pool that was found on its devices.
pub fn open(candidate: &Candidate, options: OpenOptions) -> Boxed<'_, Result<Pool>> {
    Box::pin(async move { open_special(candidate, options, Special::default()).await })
}

/// As [`open`], under a name that is for here only: on disk the pool keeps its own.
pub fn open_as(candidate: &Candidate, options: OpenOptions, name: String) -> Boxed<'_, Result<Pool>> {
    Box::pin(async move {
        let special = Special { is_temporary: true, ..Special::default() };
        open_special(candidate, OpenOptions { name: Some(name), ..options }, special).await
    })
}

/// As [`open`], as the pool was in the newest txg that is not newer than `limit` and whose uberblock is still there. That
/// is for reading only: what was freed since then may be overwritten, and is then an error where it is read.
pub fn open_at(candidate: &Candidate, options: OpenOptions, limit: Option<Txg>) -> Boxed<'_, Result<Pool>> {
    Box::pin(async move {
        if limit.is_some() && !options.read_only {
            return Err(Error::invalid("a pool is opened at an older txg for reading only"));
        }
        open_special(candidate, options, Special { limit, ..Special::default() }).await
    })
}

pub(crate) async fn open_special(
    candidate: &Candidate,
    options: OpenOptions,
    special: Special,
) -> Result<Pool> {
    let name = candidate.config.name.clone();
    let opened = world::within(Arc::new(Opening), open_inner(candidate, options, special)).await;
    let opened = opened.unwrap_or_else(|panic| Err(crate::suspend::of_panic(&panic)));
    opened.map_err(|e| match e.kind() {
        // These are whole sentences about the pool.
        Kind::Unsupported | Kind::Invalid => e,
        _ => e.at(format!("pool '{name}'")),
    })
}

/// A pool that is being opened: the caller that opens it gets a panic as an error, and no other task knows the pool.
#[derive(Debug)]
struct Opening;

impl world::Domain for Opening {
    fn panicked(&self, _: &world::Panic) {}
}

async fn open_inner(candidate: &Candidate, options: OpenOptions, special: Special) -> Result<Pool> {
    check_label(candidate, &options)?;
    let mode = if options.read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    let mut devices = candidate.devices.clone();
    for (_, guid, device) in &candidate.aux {
        // A spare in use is one of those: an older copy of it does not take its place.
        devices.entry(*guid).or_insert_with(|| device.clone());
    }
    let how = vdev::OpenOptions {
        pool: Some(candidate.config.guid),
        former: candidate.former,
        devices,
        tunables: options.tunables.clone(),
        hub: options.hub.clone(),
        pool_name: options.name.clone().unwrap_or_else(|| candidate.config.name.clone()),
        ..vdev::OpenOptions::new(mode)
    };
    let (tree, found) = open_newest(candidate, &options, how, &special).await?;
    let Found { states, config, .. } = found;
    let uberblock = states.newest.clone();
    let (missing_log, read_only) = (options.missing_log, options.read_only);
    let built = match check_devices(&tree) {
        Ok(()) => {
            states.note_missing(&tree);
            tree.set_past(states.past());
            build(candidate, tree.clone(), (uberblock, config), options, special).await
        }
        Err(e) => Err(e),
    };
    // When it is refused the devices are given back: it may be tried in another way.
    let pool = match built {
        Ok(pool) => pool,
        Err(e) => {
            tree.close().await;
            return Err(e);
        }
    };
    // The newest state can be read.
    if !read_only {
        states.forget_others(&tree).await;
    }
    // What each device misses is in the pool, which is read by then.
    tree.leaves().iter().filter(|leaf| leaf.missing().is_any()).for_each(|leaf| leaf.forget_wrong_blocks());
    // A pool that cannot take over its logs is not open, so it could not be cleared.
    pool.txgs().set_impatient(true);
    let begin = async {
        pool.begin(missing_log).await?;
        pool.load_failmode().await
    };
    let begun = pool.guard(begin).await;
    if begun.is_err() {
        pool.stop().await;
    }
    begun.map(|()| pool)
}

/// What the devices say of a pool.
struct Found {
    states: States,
    config: PoolConfig,
    spec: Spec,
}

/// The trusted tree, and what was found on its devices. What is on them may change until they are this process's own:
/// another that has the pool may write a last time, and so may requests of one that was killed, which end when the device
/// has done them. So it is looked once more when they are.
async fn open_newest(
    candidate: &Candidate,
    options: &OpenOptions,
    how: vdev::OpenOptions,
    special: &Special,
) -> Result<(Arc<Tree>, Found)> {
    let limit = special.limit;
    for _ in 0..LOOKS {
        let found = look(candidate, options, &how, special).await?;
        // A device may be called otherwise in a label that was written for a txg which was never reached.
        let reached = limit.is_none().then_some(found.states.newest.txg);
        let how = vdev::OpenOptions { limit: reached, ..how.clone() };
        let tree = Tree::open(found.spec.clone(), how).await?;
        if options.read_only {
            return Ok((tree, found));
        }
        let age = |uberblock: &Uberblock| (uberblock.txg, uberblock.timestamp);
        match states(&tree, limit).await {
            // A device may have come meanwhile.
            Ok(now) if age(&now.newest) <= age(&found.states.newest) => {
                return match check_history(&now, options) {
                    Ok(()) => Ok((tree, Found { states: now, ..found })),
                    Err(e) => {
                        tree.close().await;
                        Err(e)
                    }
                };
            }
            Ok(_) => tree.close().await,
            Err(_) => return Ok((tree, found)),
        }
    }
    Err(Error::new(Kind::Busy, "open").because("its uberblocks change: something else writes to the pool"))
}

/// From labels first, to read the MOS; these devices are closed again before the trusted tree opens them.
async fn look(
    candidate: &Candidate,
    options: &OpenOptions,
    how: &vdev::OpenOptions,
    special: &Special,
) -> Result<Found> {
    let reading = vdev::OpenOptions { mode: OpenMode::ReadOnly, ..how.clone() };
    let tree = Tree::open(candidate.tree.clone(), reading).await?;
    // Labels do not say that a vdev which is missing was only a log, and with some vdevs gone the others may still
    // have a copy of the MOS, which knows what the gone ones are: so what is missing is named only if it hurts.
    let read = async {
        let states = states(&tree, special.limit).await?;
        let uberblock = &states.newest;
        check_history(&states, options)?;
        states.note_missing(&tree);
        check_version(uberblock.version)?;
        check_txg(uberblock.txg)?;
        if !options.read_only {
            multihost::check(&tree, uberblock, &candidate.config, options).await?;
        }
        let (mut config, mut spec) = read_config(&tree, uberblock, options).await?;
        match &special.split {
            Some(split) => split.put_on(&mut config, &mut spec),
            None => check_guid(candidate, &config)?,
        }
        forgive(&mut spec);
        Ok(Found { states, config, spec })
    };
    read.await.or_else(|e| check_devices(&tree).and(Err(e)))
}

/// Enough of the devices are there.
fn check_devices(tree: &Tree) -> Result<()> {
    if tree.health().state.is_usable() {
        return Ok(());
    }
    Err(Error::new(Kind::Io, "open").because(Lacking::from(tree.status())))
}

/// No device has what would be lost.
fn check_history(states: &States, options: &OpenOptions) -> Result<()> {
    match states.estranged() {
        Some(estranged) if !options.read_only && !options.copy_over => {
            Err(Error::new(Kind::Invalid, "open").because(estranged))
        }
        _ => Ok(()),
    }
}

fn check_label(candidate: &Candidate, options: &OpenOptions) -> Result<()> {
    let config = &candidate.config;
    if config.state == PoolState::Destroyed && !options.force {
        return Err(Error::new(Kind::NotFound, "the pool was destroyed; -D finds it again"));
    }
    let foreign = config.host.as_ref().is_some_and(|(id, _)| *id != 0 && *id != options.host.id);
    if config.state == PoolState::Active && foreign && !options.force && !options.read_only {
        let host = config.host.as_ref().map_or("", |(_, name)| name);
        return Err(Error::new(
            Kind::Busy,
            format!("it was last used by '{host}' and not exported; use -f to import it anyway"),
        ));
    }
    Ok(())
}

/// Labels of a pool are not newer than its state by more than one txg, and that may have given it another guid. But the
/// first labels of a pool that is split off come before its first state: what is found then is the state of the other pool.
fn check_guid(candidate: &Candidate, config: &PoolConfig) -> Result<()> {
    if config.guid == candidate.config.guid || Some(config.guid) == candidate.former {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "its split from pool '{}' was cut short, so it never was a pool: that one has everything, and these devices can be \
         attached to it again with '-f'",
        config.name
    )))
}

fn check_version(version: u64) -> Result<()> {
    if VERSIONS_OLD.contains(&version) || version == VERSION_FEATURES {
        return Ok(());
    }
    Err(Error::unsupported(format!("the pool has version {version}, which this program does not know")))
}

/// Txgs count up by one every few seconds at most; from a number near the end of the word there would be no next one.
fn check_txg(txg: Txg) -> Result<()> {
    if txg.0 >> 56 != 0 {
        return Err(Error::corrupt(format!("its newest uberblock is of txg {txg:?}, which no pool reaches")));
    }
    Ok(())
}

fn reader(tree: &Arc<Tree>, cache: &Arc<Cache>) -> Pipeline {
    Pipeline::new(PipelineOptions {
        devices: tree.clone(),
        space: None,
        cache: cache.clone(),
        tunables: Default::default(),
        checksummer: Arc::new(Checksummer::unsalted()),
        rules: Rules { min_alloc: 512, embed: false, hole_birth: false, worst: Worst::plain(512) },
    })
}

/// What the MOS says of the pool and its tree, with the devices where the labels found them.
async fn read_config(
    tree: &Arc<Tree>,
    uberblock: &Uberblock,
    options: &OpenOptions,
) -> Result<(PoolConfig, Spec)> {
    let store = Arc::new(reader(tree, &options.cache));
    let mos = ObjSet::open(store, ObjsetId::MOS, uberblock.root.clone(), Policy::mos()).await?;
    let directory = dsl::zaps::open(&mos, ondisk::mos::OBJECT_DIRECTORY).await?;
    let object = mos.object(ObjectId(directory.require_u64(directory::CONFIG).await?)).await?;
    let len = object.bonus().first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
    if len == 0 || len > 16 << 20 {
        return Err(Error::corrupt(format!("the configuration has {len} bytes")));
    }
    let packed = object.read(0, len as usize).await?;
    let list = NvList::decode(&packed).map_err(|e| e.at("configuration"))?;
    let mut spec = Spec::decode(list.list("vdev_tree")?)?;
    use_paths_of(&mut spec, &tree.spec());
    Ok((PoolConfig::decode(&list)?, spec))
}

/// What was found wrong with a device when the pool was open last need not be so now, unless an administrator has said it:
/// it is tried, as OpenZFS does when it imports.
fn forgive(spec: &mut Spec) {
    if spec.aux_state.as_deref() != Some("external") {
        (spec.faulted, spec.degraded, spec.removed, spec.aux_state) = (None, None, None, None);
    }
    spec.children.iter_mut().for_each(forgive);
}

/// Leaves are where they were found, not where they were when the configuration was written.
fn use_paths_of(trusted: &mut Spec, found: &Spec) {
    if trusted.is_leaf()
        && let Some(path) = found.find(trusted.guid).and_then(|f| f.path.clone())
    {
        trusted.path = Some(path);
        // A file image of a disk is opened as what it is here.
        if trusted.vdev_type == VdevType::DraidSpare {
            trusted.path = None;
        }
    }
    trusted.children.iter_mut().for_each(|child| use_paths_of(child, found));
}

async fn build(
    candidate: &Candidate,
    tree: Arc<Tree>,
    (uberblock, mut config): (Uberblock, PoolConfig),
    options: OpenOptions,
    special: Special,
) -> Result<Pool> {
    let log = MosSpaceLog::new(tree.clone());
    let space = Arc::new(Space::new(log.clone(), false));
    let pipeline = Pipeline::new(PipelineOptions {
        devices: tree.clone(),
        space: (!options.read_only).then(|| space.clone()),
        cache: options.cache.clone(),
        tunables: options.tunables.clone(),
        checksummer: Arc::new(Checksummer::unsalted()),
        rules: Rules { min_alloc: min_alloc(&tree), embed: false, hole_birth: false, worst: worst(&tree) },
    });
    let store: Arc<dyn zio::BlockStore> = Arc::new(pipeline.clone());
    let mos = ObjSet::open(store, ObjsetId::MOS, uberblock.root.clone(), Policy::mos()).await?;
    // By its label's name it was looked for and asked for; what the MOS says may be another one, also that of another pool.
    let name = options.name.clone().unwrap_or_else(|| candidate.config.name.clone());
    if name != config.name {
        dsl::name::check_pool(&name)?;
    }
    let name_on_disk = std::mem::replace(&mut config.name, name);
    let dsl = Dsl::open(mos.clone(), uberblock.version, &config.name, &options.host.name).await?;
    if uberblock.version == VERSION_FEATURES {
        check_verdict(&dsl.features().verdict().await?, options.read_only)?;
    }
    let has = |f| dsl.features().is_enabled(f);
    pipeline.set_checksummer(read_checksummer(&dsl).await?);
    pipeline.set_rules(Rules {
        min_alloc: min_alloc(&tree),
        embed: has(Feature::EmbeddedData),
        hole_birth: has(Feature::HoleBirth),
        worst: worst(&tree),
    });
    mos.set_policy(Policy {
        hole_birth: has(Feature::HoleBirth),
        lz4: has(Feature::Lz4Compress),
        ..Policy::mos()
    });
    let knot = log.tie(mos.clone(), has(Feature::SpacemapHistogram));
    log.tie_features(dsl.core().clone());
    dtl::load(&tree, &*log, uberblock.txg).await?;
    if has(Feature::SpacemapV2) {
        space.allow_long_entries();
    }
    config.state = PoolState::Active;
    config.host = Some((options.host.id, options.host.name.clone()));
    config.process = options.host.process.clone();
    let read_only = options.read_only;
    let parts = Parts {
        config,
        name_on_disk: Some(name_on_disk).filter(|_| special.is_temporary),
        tree,
        space,
        space_log: knot,
        pipeline,
        mos,
        dsl,
        uberblock,
        read_only,
        tunables: options.tunables,
        hub: options.hub,
    };
    let synced = parts.uberblock.txg;
    let pool = assemble(parts, synced.next());
    pool.load_space(log).await?;
    pool.load_vdev_properties().await?;
    pool.load_scan().await?;
    pool.load_error_scrub().await?;
    pool.load_rebuilds().await?;
    pool.load_errors().await;
    match special.split {
        // Those in its list are the other pool's.
        Some(split) => *lock(&pool.0.left_behind) = Some(split.left_behind),
        None => pool.load_side_devices(Some(candidate)).await,
    }
    Ok(pool)
}

/// The keyed checksums are bound to the pool by its salt; a pool without one uses none of them.
pub(crate) async fn read_checksummer(dsl: &Dsl) -> Result<Arc<Checksummer>> {
    let stored = dsl.core().directory().lookup(directory::CHECKSUM_SALT).await?;
    let Some(value) = stored else { return Ok(Arc::new(Checksummer::unsalted())) };
    let salt = value
        .as_bytes()
        .and_then(|b| b.try_into().ok())
        .ok_or_else(|| Error::corrupt("the pool's checksum salt"))?;
    Ok(Arc::new(Checksummer::new(&Salt(salt))))
}

impl Pool {
    /// What is to be done before the pool is used.
    async fn begin(&self, missing_log: bool) -> Result<()> {
        if !self.is_read_only() {
            self.check_writable().await?;
            self.load_multihost().await?;
            self.give_spares_back().await;
        }
        self.claim_logs(missing_log).await?;
        self.start();
        self.replay_logs().await?;
        self.load_autotrim().await?;
        self.load_device_watch().await?;
        self.load_sweeps().await?;
        self.list_side_devices_anew();
        self.say_whose().await
    }

    /// Writes labels that name this host and process without waiting for the first change: until then they name the last
    /// ones. Where other hosts go by them, the pool is not open before they are on disk.
    async fn say_whose(&self) -> Result<()> {
        let claim = |pool: Pool| async move {
            pool.change("claim", |pool, tx| async move { pool.0.touch(&tx).await }).await
        };
        if self.0.multihost.is_on() {
            return claim(self.clone()).await;
        }
        if !self.is_read_only() && self.config().process.is_some() {
            let pool = self.clone();
            // A pool that is closed before has no need of it.
            world::spawn(async move { claim(pool).await.is_ok() });
        }
        Ok(())
    }

    /// Starts the loop that syncs txgs, and the use of cache devices.
    pub(crate) fn start(&self) {
        self.start_feeding();
        if !self.0.read_only {
            self.sync_on(world::this_core(), None);
            self.start_healer();
            self.resume_scan();
            self.resume_error_scrub();
            self.consider_spares();
        }
    }

    async fn load_space(&self, log: Arc<MosSpaceLog>) -> Result<()> {
        let inner = &self.0;
        for top in inner.tree.tops() {
            let bias = vdev_zaps::bias(inner, top.id).await?;
            top.set_bias(bias);
            inner.space.add_vdev(space_spec(&top, bias)).await?;
            // A log device that is gone: the pool does without it.
            inner.space.set_allocatable(top.id, top.is_usable());
        }
        let log: Arc<dyn SpaceLog> = log;
        log_space_maps::apply(inner, &log).await?;
        inner.publish_space();
        if !inner.read_only {
            inner.space.preload().await;
        }
        Ok(())
    }

    /// What in the pool this program cannot keep up: then only reading is allowed.
    async fn check_writable(&self) -> Result<()> {
        let inner = &self.0;
        let entries = inner.dsl.core().directory().entries().await?;
        let deduped = entries.iter().any(|e| e.name().starts_with(directory::DEDUP_PREFIX));
        if deduped {
            return Err(only_reading("has deduplicated blocks"));
        }
        Ok(())
    }
}
