//! What is told that blocks come and go, and what counts what users take.
//!
//! A file system keeps sums of what each user, group and project takes, in three objects whose dnodes stand in the root
//! block. A sync knows how large each object was and is; whose it is, and how sums are kept, the [`UserAccounting`] knows.
//!
//! ```text
//!   object synced ─▶ old dnode: − for its owner ─┐
//!                    new dnode: + for its owner ─┴▶ sums ─▶ UserAccounting::settle ─▶ accounting objects ─▶ root block
//! ```

use crate::objset::ObjSet;
use ondisk::{BlockPointer, DnodeFlags, DnodePhys, Feature, ObjectType, ObjsetFlags};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use txg::Tx;
use units::{ObjectId, Result};

/// The owner of an object set: it charges its dataset for blocks born, and decides what becomes of those killed (a
/// snapshot may still need them).
pub trait BlockAccounting: Send + Sync + Debug {
    fn born(&self, bp: &BlockPointer);
    fn killed(&self, bp: &BlockPointer);

    /// The object set now has something that a reader must know this feature for, besides its blocks.
    fn uses(&self, _feature: Feature) {}
}

/// For object sets for which no dataset is charged.
#[derive(Clone, Copy, Debug)]
pub struct NoBlockAccounting;

impl BlockAccounting for NoBlockAccounting {
    fn born(&self, _: &BlockPointer) {}
    fn killed(&self, _: &BlockPointer) {}
}

/// Whom an object is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub user: u64,
    pub group: u64,
    pub project: u64,
}

/// Whose sums: the number is the place of the accounting object in the root block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    User = 0,
    Group = 1,
    Project = 2,
}

impl Account {
    pub const ALL: [Account; 3] = [Account::User, Account::Group, Account::Project];

    /// The number of its object, which no other object has: it stands in the root block.
    pub(crate) fn id(self) -> ObjectId {
        ObjectId(u64::MAX - self as u64)
    }

    /// Numbers from here on are those of accounting objects.
    pub(crate) const FIRST_ID: ObjectId = ObjectId(u64::MAX - 2);
}

/// By how much sums change: bytes under the number of who takes them, in hexadecimal; objects with `obj-` before that.
pub type Sums = BTreeMap<(Account, String), i64>;

/// See the module.
pub trait UserAccounting: Send + Sync + Debug {
    /// Whom the object with this bonus is charged to, if to anybody.
    fn owner(&self, kind: ObjectType, bonus: &[u8]) -> Option<Owner>;

    /// Adds to the sums in [`ObjSet::accounting_object`]s.
    fn settle<'a>(
        &'a self,
        set: &'a ObjSet,
        tx: &'a Tx,
        sums: Sums,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;
}

/// What every object counts besides its blocks: the smallest dnode.
const DNODE: u64 = 512;

/// One sync's changes of the sums.
#[derive(Debug)]
pub(crate) struct Count {
    pub user_accounting: Arc<dyn UserAccounting>,
    /// What the file system keeps sums of.
    flags: ObjsetFlags,
    /// Bytes and objects of whom.
    sums: Mutex<BTreeMap<(Account, u64), [i64; 2]>>,
}

impl Count {
    pub fn new(user_accounting: Arc<dyn UserAccounting>, flags: ObjsetFlags) -> Option<Count> {
        let keeps = flags.has(ObjsetFlags::USER_ACCOUNTING_COMPLETE);
        keeps.then(|| Count { user_accounting, flags, sums: Mutex::default() })
    }

    /// Takes the object as it was out of the sums.
    pub fn take_out(&self, old: &DnodePhys) {
        if let Some(owner) = self.owner(old) {
            self.add(old, &owner, -1);
        }
    }

    /// Puts the object as it will be into the sums, and marks it as being in them.
    pub fn put_in(&self, new: &mut DnodePhys) {
        let Some(owner) = self.owner(new) else { return };
        new.flags = new.flags.with(DnodeFlags::USERUSED_ACCOUNTED);
        if self.flags.has(ObjsetFlags::USER_OBJECT_ACCOUNTING_COMPLETE) {
            new.flags = new.flags.with(DnodeFlags::USEROBJUSED_ACCOUNTED);
        }
        self.add(new, &owner, 1);
    }

    fn owner(&self, dnode: &DnodePhys) -> Option<Owner> {
        self.user_accounting.owner(dnode.bonus_kind, &dnode.bonus)
    }

    fn add(&self, dnode: &DnodePhys, owner: &Owner, sign: i64) {
        let mut sums = crate::lock::lock(&self.sums);
        for (account, id) in
            [(Account::User, owner.user), (Account::Group, owner.group), (Account::Project, owner.project)]
        {
            if account == Account::Project && !self.flags.has(ObjsetFlags::PROJECT_QUOTA_COMPLETE) {
                continue;
            }
            let [bytes, objects] = sums.entry((account, id)).or_default();
            if dnode.flags.has(DnodeFlags::USERUSED_ACCOUNTED) {
                let used = DNODE.saturating_add(dnode.used_bytes());
                *bytes = bytes.saturating_add(sign * i64::try_from(used).unwrap_or(i64::MAX));
            }
            if dnode.flags.has(DnodeFlags::USEROBJUSED_ACCOUNTED) {
                *objects += sign;
            }
        }
    }

    pub fn finish(self) -> (Arc<dyn UserAccounting>, Sums) {
        let counted = self.sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let named = counted.into_iter().flat_map(|((account, id), [bytes, objects])| {
            [((account, format!("{id:x}")), bytes), ((account, format!("obj-{id:x}")), objects)]
        });
        (self.user_accounting, named.filter(|(_, sum)| *sum != 0).collect())
    }
}
