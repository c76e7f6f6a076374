//! The content of a new file system.

use crate::attributes::{DIRECTORY, DIRECTORY_LAYOUT, DIRECTORY_OF_PROJECT, REGISTRY, RootDirectory};
use crate::file_system::accounts::Accounts;
use crate::sa::Tables;
use crate::{MASTER_NODE, VERSION};
use dmu::{Account, NewObject, ObjSet, Object, Tx};
use ondisk::{Feature, ObjectType, ObjsetFlags};
use std::sync::Arc;
use units::Result;
use zap::{Options, Value, Zap};

/// What is decided once, when a file system is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewFileSystem {
    /// The property values as they are stored: 0 is off, none and sensitive.
    pub utf8only: u64,
    pub normalization: u64,
    pub casesensitivity: u64,
    pub uid: u64,
    pub gid: u64,
    /// Counts what each user and group takes, as every pool of today can.
    pub accounting: Accounting,
}

/// What is counted from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    Nothing,
    /// Bytes.
    #[default]
    Space,
    /// Files too: the pool has the feature `userobj_accounting`.
    Objects,
    /// And projects: the pool has the feature `project_quota`, too.
    Projects,
}

/// Fills an object set that was just created.
pub async fn create(set: &ObjSet, tx: &Tx, new: NewFileSystem) -> Result<()> {
    let master = set.claim(tx, MASTER_NODE, &NewObject::new(ObjectType::MASTER_NODE, 512))?;
    let master = format(master, tx)?;
    for (name, value) in [
        ("VERSION", VERSION),
        ("utf8only", new.utf8only),
        ("normalization", new.normalization),
        ("casesensitivity", new.casesensitivity),
    ] {
        master.insert(tx, name, Value::from(value)).await?;
    }
    let attributes = make(set, tx, ObjectType::SA_MASTER_NODE).await?;
    master.insert(tx, "SA_ATTRS", id(&attributes)).await?;
    let queue = make(set, tx, ObjectType::UNLINKED_SET).await?;
    master.insert(tx, "DELETE_QUEUE", id(&queue)).await?;
    let has_project = new.accounting == Accounting::Projects;
    let layout: &[u16] = if has_project { &DIRECTORY_OF_PROJECT } else { &DIRECTORY };
    describe_attributes(set, tx, &attributes, layout).await?;
    let root = root_directory(set, tx, new).await?;
    master.insert(tx, "ROOT", id(&root)).await?;
    count(set, tx, new.accounting).await?;
    let tables = Tables::open(set, attributes.blocks().id()).await?;
    set.set_user_accounting(Arc::new(Accounts::new(Arc::new(tables))));
    Ok(())
}

/// Makes the sums of what users take, still empty.
async fn count(set: &ObjSet, tx: &Tx, what: Accounting) -> Result<()> {
    use ObjsetFlags as F;
    let (accounts, flags): (&[Account], _) = match what {
        Accounting::Nothing => return Ok(()),
        Accounting::Space => (&Account::ALL[..2], F::USER_ACCOUNTING_COMPLETE),
        Accounting::Objects => {
            (&Account::ALL[..2], F::USER_ACCOUNTING_COMPLETE.with(F::USER_OBJECT_ACCOUNTING_COMPLETE))
        }
        Accounting::Projects => {
            let objects = F::USER_ACCOUNTING_COMPLETE.with(F::USER_OBJECT_ACCOUNTING_COMPLETE);
            (&Account::ALL[..], objects.with(F::PROJECT_QUOTA_COMPLETE))
        }
    };
    for account in accounts {
        format(set.make_accounting_object(tx, *account)?.clone(), tx)?;
    }
    set.update_phys(tx, |phys| phys.flags = phys.flags.with(flags));
    if flags.has(F::USER_OBJECT_ACCOUNTING_COMPLETE) {
        set.use_feature(tx, Feature::UserobjAccounting);
    }
    if flags.has(F::PROJECT_QUOTA_COMPLETE) {
        set.use_feature(tx, Feature::ProjectQuota);
    }
    Ok(())
}

fn id(zap: &Zap<Object>) -> Value {
    Value::from(zap.blocks().id().0)
}

fn format(object: Object, tx: &Tx) -> Result<Zap<Object>> {
    Zap::format(object, tx, Options::default(), world::random_u64())
}

async fn make(set: &ObjSet, tx: &Tx, kind: ObjectType) -> Result<Zap<Object>> {
    format(set.allocate(tx, NewObject::new(kind, 512)).await?, tx)
}

/// Writes the registry, and the one layout that the root directory uses.
async fn describe_attributes(set: &ObjSet, tx: &Tx, master: &Zap<Object>, layout: &[u16]) -> Result<()> {
    let registry = make(set, tx, ObjectType::SA_ATTR_REGISTRATION).await?;
    for attribute in REGISTRY {
        registry.insert(tx, attribute.name, Value::from(attribute.encoded())).await?;
    }
    master.insert(tx, "REGISTRY", id(&registry)).await?;
    let layouts = make(set, tx, ObjectType::SA_ATTR_LAYOUTS).await?;
    let name = DIRECTORY_LAYOUT.to_string();
    layouts.insert(tx, &name, Value::U16(layout.to_vec())).await?;
    master.insert(tx, "LAYOUTS", id(&layouts)).await
}

async fn root_directory(set: &ObjSet, tx: &Tx, new: NewFileSystem) -> Result<Zap<Object>> {
    // The bonus names its own object as parent, so its room is taken before the number is known.
    let mut root = RootDirectory {
        id: 0,
        txg: tx.txg().0,
        uid: new.uid,
        gid: new.gid,
        mode: 0o755,
        now: world::wall_clock(),
        has_project: new.accounting == Accounting::Projects,
    };
    let object = NewObject::new(ObjectType::DIRECTORY_CONTENTS, 512).with_bonus(ObjectType::SA, root.bonus());
    let object = set.allocate(tx, object).await?;
    root.id = object.id().0;
    object.set_bonus(tx, root.bonus())?;
    let options = Options { normalization: normalization(new), ..Options::default() };
    Zap::format(object, tx, options, world::random_u64())
}

/// How names in the root directory are compared: the property's value is the code of the form.
fn normalization(new: NewFileSystem) -> zap::Normalization {
    let form = zap::Normalization(new.normalization);
    if new.casesensitivity == 0 { form } else { form.with(zap::Normalization::UPPER) }
}
