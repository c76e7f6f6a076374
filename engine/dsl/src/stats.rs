//! Every property of a dataset: those that were set, and those that are computed.
//!
//! What is computed comes from the bonuses of dataset and directory, from the deadlist (`written`), and from inside the
//! file system or volume (`version`, `volsize`). Which source a computed value shows is OpenZFS's rule: `-`, except for
//! limits, which are `default` while there is none and `local` otherwise.

use dmu::ObjSet;
use ondisk::ObjsetType;
use units::{Error, ObjectId, Result};
use world::Boxed;

use crate::counts;
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::dsl::dataset::CRYPTO_KEY;
use crate::levels::Levels;
use crate::phys::DatasetPhys;
use crate::props::{Kind, Prop, PropName, Source, Types, Value, index};
use crate::space::ratio;
use crate::tree::Found;
use crate::zaps;

/// In a directory's ZAP: when its snapshots last changed, in seconds and nanoseconds.
pub(crate) const SNAPSHOTS_CHANGED: &str = "com.ixsystems:snapshots_changed";
/// The object of a file system that says what it is; that of a volume with its size; and a volume's data.
const MASTER_NODE: ObjectId = ObjectId(1);
const VOLUME_DATA: ObjectId = ObjectId(1);
const VOLUME_PROPS: ObjectId = ObjectId(2);

/// A dataset with all that its properties are computed from.
#[derive(Debug)]
pub struct Stats<'a> {
    dsl: &'a Dsl,
    pub found: Found,
    pub kind: ObjsetType,
    levels: Levels,
    /// Its contents, if they can be opened.
    objset: Option<ObjSet>,
}

/// A property's value with its source.
pub type Shown = (Value, Source);

impl Dsl {
    /// When the snapshots of a directory's dataset last changed, in seconds since 1970 and nanoseconds; `None` where that
    /// was never noted.
    pub async fn snapshots_changed(&self, dir: ObjectId) -> Result<Option<(u64, u32)>> {
        let dir = self.core.mos().object(dir).await?;
        if !zaps::is_zapified(&dir) {
            return Ok(None);
        }
        let value = zap::Zap::open(dir).lookup(SNAPSHOTS_CHANGED).await?;
        let words = value.as_ref().and_then(|v| v.as_u64s()).unwrap_or_default();
        let nanos = words.get(1).and_then(|nanos| u32::try_from(*nanos).ok()).filter(|n| *n < 1_000_000_000);
        Ok(words.first().filter(|s| **s != 0).map(|seconds| (*seconds, nanos.unwrap_or(0))))
    }

    /// Gathers what the properties of a dataset or snapshot are computed from.
    pub fn stats<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Stats<'a>>> {
        Box::pin(async move {
            let found = self.find(name).await?;
            let kind = self.objset_type(&found).await?;
            let levels = self.levels_of(&found).await?;
            let objset = match found.phys.bp.is_hole() {
                true => None,
                false => Some(self.contents(&found).await?),
            };
            Ok(Stats { dsl: self, found, kind, levels, objset })
        })
    }

    /// The object set of a dataset, without listing it as open.
    async fn contents(&self, found: &Found) -> Result<ObjSet> {
        if let Some(open) = self.opened().get(&found.id) {
            return Ok(open.objset().clone());
        }
        let policy = dmu::Policy::mos();
        let id = units::ObjsetId(found.id.0);
        ObjSet::open(self.core.store().clone(), id, found.phys.bp.clone(), policy).await
    }
}

fn number(n: u64) -> Value {
    Value::Number(n)
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

impl Stats<'_> {
    fn phys(&self) -> &DatasetPhys {
        &self.found.phys
    }

    /// The kind of its head dataset.
    fn head_types(&self) -> Types {
        if self.kind == ObjsetType::Zvol { Types::VOLUME } else { Types::FILESYSTEM }
    }

    pub fn types(&self) -> Types {
        if self.found.is_snapshot() { Types::SNAPSHOT } else { self.head_types() }
    }

    /// Whether a property says something about this dataset.
    fn concerns(&self, prop: Prop) -> bool {
        let row = prop.row();
        let of_head = matches!(row.kind, Kind::Text { .. })
            || row.types == Types::SNAPSHOT
            || row.applies_to(self.head_types());
        row.applies_to(self.types()) && (!self.found.is_snapshot() || of_head)
    }

    /// All properties that `get all` lists, in its order.
    pub fn all<'a>(&'a self) -> Boxed<'a, Result<Vec<(PropName, Shown)>>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for prop in Prop::ALL.iter().filter(|prop| prop.row().listed) {
                if let Some(shown) = self.native(*prop).await? {
                    all.push((PropName::Native(*prop), shown));
                }
            }
            let chain = self.levels.chain();
            for name in chain.user_properties() {
                if let Some(shown) = chain.resolve(&name) {
                    all.push((name, shown));
                }
            }
            Ok(all)
        })
    }

    /// One property; nothing if it does not apply, or there is no value.
    pub fn get<'a>(&'a self, name: &'a PropName) -> Boxed<'a, Result<Option<Shown>>> {
        Box::pin(async move {
            match name {
                PropName::Native(prop) => self.native(*prop).await,
                PropName::User(_) => Ok(self.levels.chain().resolve(name)),
            }
        })
    }

    /// The `RECEIVED` column.
    pub fn received(&self, name: &PropName) -> Option<Value> {
        self.levels.chain().received(name)
    }

    async fn native(&self, prop: Prop) -> Result<Option<Shown>> {
        if !self.concerns(prop) {
            return Ok(None);
        }
        let computed = match self.computed(prop).await {
            // What is inside a dataset whose key is not loaded is not known.
            Err(e) if e.kind() == units::Kind::Encrypted => return Ok(None),
            computed => computed?,
        };
        if let Some(value) = computed {
            let was_asked_for = || {
                let own = self.levels.chain().resolve(&PropName::Native(prop));
                own.is_some_and(|(_, source)| source == Source::Local)
            };
            let source = match prop {
                // A value that was given at creation is local, also where it is the default.
                Prop::VolBlockSize if was_asked_for() => Source::Local,
                _ => source_of(prop, &value),
            };
            return Ok(Some((value, source)));
        }
        if prop.row().setting == crate::props::Setting::ReadOnly
            && !matches!(prop, Prop::FilesystemCount | Prop::SnapshotCount)
        {
            return Ok(None);
        }
        let shown = self.levels.chain().resolve(&PropName::Native(prop));
        Ok(shown.map(|shown| if prop == Prop::MountPoint { self.mountpoint(shown) } else { shown }))
    }

    /// An inherited mount point goes on with the rest of the name.
    fn mountpoint(&self, (value, source): Shown) -> Shown {
        let Value::Text(path) = &value else { return (value, source) };
        let from = match &source {
            Source::Inherited(from) => from.as_str(),
            Source::Default => "",
            _ => return (value, source),
        };
        if !path.starts_with('/') {
            return (value, source);
        }
        let rest = self.found.name[from.len()..].trim_start_matches('/');
        let path = path.trim_end_matches('/');
        (text(if rest.is_empty() { path.to_string() } else { format!("{path}/{rest}") }), source)
    }

    /// The value of a property that is not, or not only, read from what was set.
    async fn computed(&self, prop: Prop) -> Result<Option<Value>> {
        let (phys, space) = (self.phys(), &self.found.dir.space);
        let breakdown = |i: usize| space.breakdown.map(|parts| number(parts[i]));
        Ok(match prop {
            Prop::Type => Some(text(self.type_name())),
            Prop::Name => Some(text(&self.found.name)),
            Prop::Creation => Some(number(phys.creation_time)),
            Prop::CreateTxg => Some(number(phys.creation_txg.0)),
            Prop::Guid => Some(number(phys.guid.0)),
            Prop::ObjsetId => Some(number(self.found.id.0)),
            Prop::Used if self.found.is_snapshot() => Some(number(phys.unique)),
            Prop::Used => Some(number(space.used)),
            Prop::Available => Some(number(self.dsl.available(self.found.dir_id, phys).await?)),
            Prop::Referenced => Some(number(phys.referenced)),
            Prop::Unique => Some(number(phys.unique)),
            Prop::LogicalReferenced => Some(number(phys.uncompressed)),
            Prop::LogicalUsed => Some(number(space.uncompressed)),
            Prop::RefCompressRatio => Some(number(ratio(phys.uncompressed, phys.compressed))),
            Prop::CompressRatio if self.found.is_snapshot() => {
                Some(number(ratio(phys.uncompressed, phys.compressed)))
            }
            Prop::CompressRatio => Some(number(ratio(space.uncompressed, space.compressed))),
            Prop::UsedByDataset => breakdown(0),
            Prop::UsedBySnapshots => breakdown(1),
            Prop::UsedByChildren => space.breakdown.map(|parts| number(parts[2] + parts[3])),
            Prop::UsedByRefReservation => breakdown(4),
            Prop::Quota => Some(number(space.quota)),
            Prop::Reservation => Some(number(space.reserved)),
            Prop::Written => self.written().await?,
            Prop::Mounted => Some(number(0)),
            Prop::DeferDestroy => Some(number(u64::from(phys.has(DatasetPhys::DEFER_DESTROY)))),
            Prop::Inconsistent => Some(number(u64::from(phys.has(DatasetPhys::INCONSISTENT)))),
            Prop::NumClones => Some(number(phys.num_children.saturating_sub(1))),
            Prop::UserRefs => Some(number(self.holds().await?)),
            Prop::Origin => self.origin().await?,
            Prop::Clones => self.clones().await?,
            Prop::SnapshotsChanged => self.snapshots_changed().await?,
            Prop::FilesystemCount => {
                self.dsl.count(self.found.dir_id, counts::FILESYSTEMS).await?.map(number)
            }
            Prop::SnapshotCount => self.dsl.count(self.found.dir_id, counts::SNAPSHOTS).await?.map(number),
            Prop::VolSize | Prop::VolBlockSize => self.volume_property(prop).await?,
            Prop::Version | Prop::Utf8Only | Prop::Normalization | Prop::CaseSensitivity => {
                self.file_system_property(prop).await?
            }
            Prop::Encryption
            | Prop::KeyFormat
            | Prop::Pbkdf2Iters
            | Prop::EncryptionRoot
            | Prop::KeyStatus => self.key_property(prop).await?,
            _ => None,
        })
    }

    fn type_name(&self) -> &'static str {
        match (self.found.is_snapshot(), self.kind) {
            (true, _) => "snapshot",
            (false, ObjsetType::Zvol) => "volume",
            _ => "filesystem",
        }
    }

    /// What is referenced now and was not by the snapshot before.
    async fn written(&self) -> Result<Option<Value>> {
        let phys = self.phys();
        let Some(prev) = phys.prev_snap.some() else { return Ok(None) };
        let (_, prev) = self.dsl.core.dataset(prev).await?;
        let dead = Deadlist::open(&self.dsl.core, phys.deadlist).await?.space(&self.dsl.core).await?;
        let kept = prev.referenced.saturating_add_signed(-dead.used);
        Ok(Some(number(phys.referenced.saturating_sub(kept))))
    }

    async fn holds(&self) -> Result<u64> {
        match self.phys().userrefs.some() {
            Some(id) => self.dsl.core.table(id).await?.len().await,
            None => Ok(0),
        }
    }

    async fn origin(&self) -> Result<Option<Value>> {
        let origin = self.found.dir.origin.some().filter(|id| Some(*id) != self.dsl.origin);
        match origin {
            Some(id) => Ok(Some(text(self.dsl.dataset_name(id).await?))),
            None => Ok(None),
        }
    }

    async fn clones(&self) -> Result<Option<Value>> {
        let names = self.dsl.clones_of(&self.found).await?;
        Ok((!names.is_empty()).then(|| text(names.join(","))))
    }

    async fn snapshots_changed(&self) -> Result<Option<Value>> {
        Ok(self.dsl.snapshots_changed(self.found.dir_id).await?.map(|(seconds, _)| number(seconds)))
    }

    /// The block size of a volume, or of a snapshot of one; 0 of anything else.
    pub async fn volume_block_size(&self) -> Result<u64> {
        match self.objset.as_ref().filter(|_| self.kind == ObjsetType::Zvol) {
            Some(set) => Ok(set.object(VOLUME_DATA).await?.block_size()),
            None => Ok(0),
        }
    }

    async fn volume_property(&self, prop: Prop) -> Result<Option<Value>> {
        let Some(set) = self.objset.as_ref().filter(|_| self.kind == ObjsetType::Zvol) else {
            return Ok(None);
        };
        if prop == Prop::VolBlockSize {
            return Ok(Some(number(set.object(VOLUME_DATA).await?.block_size())));
        }
        let props = zap::Zap::open(set.object(VOLUME_PROPS).await?);
        let size = props.lookup_u64("size").await?;
        let missing = || Error::corrupt(format!("volume '{}' without a size", self.found.name));
        Ok(Some(number(size.ok_or_else(missing)?)))
    }

    async fn file_system_property(&self, prop: Prop) -> Result<Option<Value>> {
        let Some(set) = self.objset.as_ref().filter(|_| self.kind == ObjsetType::Zfs) else {
            return Ok(None);
        };
        let master = zap::Zap::open(set.object(MASTER_NODE).await?);
        let name = if prop == Prop::Version { "VERSION" } else { prop.name() };
        // What is not there is off, none or sensitive: old file systems did not have it.
        Ok(Some(number(master.lookup_u64(name).await?.unwrap_or(0))))
    }

    /// What the master key's object says; the key itself stays wrapped.
    async fn key_property(&self, prop: Prop) -> Result<Option<Value>> {
        let dir = self.dsl.core.mos().object(self.found.dir_id).await?;
        let Some(key) = zaps::field(&dir, CRYPTO_KEY).await? else {
            return Ok((prop == Prop::Encryption).then(|| number(index::ENCRYPTION_OFF)));
        };
        let key = self.dsl.core.table(ObjectId(key)).await?;
        Ok(match prop {
            Prop::Encryption => key.lookup_u64("DSL_CRYPTO_SUITE").await?.map(number),
            Prop::KeyFormat => key.lookup_u64("keyformat").await?.map(number),
            Prop::Pbkdf2Iters => key.lookup_u64("pbkdf2iters").await?.map(number),
            // No key is ever loaded.
            Prop::KeyStatus => Some(number(1)),
            Prop::EncryptionRoot => match key.lookup_u64("DSL_CRYPTO_ROOT_DDOBJ").await? {
                Some(root) => Some(text(self.dsl.dir_name(ObjectId(root)).await?)),
                None => None,
            },
            _ => None,
        })
    }
}

/// See the module.
fn source_of(prop: Prop, value: &Value) -> Source {
    use Prop::*;
    let is_default = prop.row().default_value().as_ref() == Some(value);
    match prop {
        Quota | Reservation | VolSize | FilesystemCount | SnapshotCount if !is_default => Source::Local,
        Quota | Reservation | VolSize | VolBlockSize | Encryption | KeyFormat | Pbkdf2Iters if is_default => {
            Source::Default
        }
        _ => Source::None,
    }
}
