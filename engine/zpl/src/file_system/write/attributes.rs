//! Changing what is said of a file: mode, owner, project, times, flags, list.

use super::log::{Change, log_acl};
use super::owner::COST_OF_HIDDEN;
use super::replay::{FLAGS as FLAG_BITS, PROJECT, mask};
use super::{COST, Loaded};
use crate::acl::{Ace, encode};
use crate::acl_rules::{Acl, hints};
use crate::file_system::node::Node;
use crate::flags;
use crate::posix_acl::{self, PosixAcl};
use crate::refusal::Refusal;
use crate::sa::Attr;
use crate::settings::{AclMode, AclType};
use crate::stat::{FileKind, Time};
use ondisk::zil::{self, ExtendedAttributes, SetAttr};
use ondisk::{NvValue, Record};
use units::{Error, ObjectId, Result};

/// What is to change; the rest stays as it is. The time of the change is always now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The lower twelve bits of the mode. The list follows, as `aclmode` says.
    pub permissions: Option<u32>,
    /// With a new owner or group a file loses the right to act as the old one, unless the mode is set too.
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub project: Option<u32>,
    pub atime: Option<Time>,
    pub mtime: Option<Time>,
    /// Those that users may set, of [`crate::flags`].
    pub flags: Option<u64>,
}

/// The flags that users may set.
const SETTABLE: u64 = flags::IMMUTABLE
    | flags::NOUNLINK
    | flags::APPENDONLY
    | flags::NODUMP
    | flags::PROJINHERIT
    | flags::READONLY
    | flags::HIDDEN
    | flags::SYSTEM
    | flags::ARCHIVE;

const SET_UID: u64 = 0o4000;
const SET_GID: u64 = 0o2000;
const GROUP_EXECUTES: u64 = 0o010;

/// A mode without the right to act as owner or group. Without execution by the group, set-group-id means another thing,
/// which somebody of the group may leave.
pub(super) fn without_privileges(mode: u64, of_group: bool) -> u64 {
    let group = if mode & GROUP_EXECUTES != 0 || !of_group { SET_GID } else { 0 };
    mode & !(SET_UID | group)
}

impl Node {
    pub async fn change(&self, changes: &Changes) -> Result<()> {
        let fs = self.file_system();
        fs.writer()?;
        let mut file = self.load().await?;
        if changes.flags.is_none() {
            self.check_flags(&file.attributes, flags::IMMUTABLE, "change")?;
            let more = changes.permissions.is_some() || changes.uid.is_some() || changes.gid.is_some();
            if more {
                self.check_flags(&file.attributes, flags::APPENDONLY, "change")?;
            }
        }
        let mut posix_list = None;
        if let Some(permissions) = changes.permissions {
            let mode = file.word(Attr::Mode)? & !0o7777 | u64::from(permissions & 0o7777);
            posix_list = self.hidden_posix_list(&file, mode).await?;
        }
        let is_given = changes.uid.is_some() || changes.gid.is_some() || changes.project.is_some();
        if posix_list.is_some() && is_given {
            // All that is hidden is given as well, and the list is one of these.
            drop(file);
            let given = Changes {
                uid: changes.uid,
                gid: changes.gid,
                project: changes.project,
                ..Changes::default()
            };
            let others = Changes { uid: None, gid: None, project: None, ..*changes };
            Box::pin(self.change(&given)).await?;
            return Box::pin(self.change(&others)).await;
        }
        self.change_owner(&mut file, changes).await?;
        let mode = file.word(Attr::Mode)?;
        if let Some(permissions) = changes.permissions {
            let old_list = self.acl_in(&file.attributes).await?;
            self.apply_mode(&mut file, mode & !0o7777 | u64::from(permissions & 0o7777), &old_list)?;
        } else if (changes.uid.is_some() || changes.gid.is_some()) && !self.is_directory() {
            file.set(Attr::Mode, &[without_privileges(mode, true)])?;
        }
        if let Some(wanted) = changes.flags {
            let own = file.word(Attr::Flags)?;
            file.set(Attr::Flags, &[own & !SETTABLE | wanted & SETTABLE])?;
        }
        for (attr, time) in [(Attr::Atime, changes.atime), (Attr::Mtime, changes.mtime)] {
            if let Some(time) = time {
                file.set(attr, &[time.seconds as u64, time.nanos.into()])?;
            }
        }
        if changes.atime.is_some() {
            self.forget_atime();
        }
        file.touch(false)?;
        let hidden = if is_given { self.hidden_nodes().await? } else { Vec::new() };
        let hidden = file.given_with(&hidden).await?;
        let cost_of_list = posix_list.as_ref().map_or(0, |_| 3 * COST);
        let tx = fs.begin(COST + hidden.len() as u64 * COST_OF_HIDDEN + cost_of_list).await?;
        let steps = match &posix_list {
            Some(list) => self.put_hidden_posix_list(&tx, &mut file, list).await?,
            None => Vec::new(),
        };
        file.store(&tx).await?;
        for one in &hidden {
            one.store(&tx).await?;
        }
        match file.word(Attr::Links)? {
            0 => tx.needs_no_record(),
            _ => {
                // What follows from a new owner need not follow in a replay.
                let new = file.word(Attr::Mode)?;
                let is_set = changes.permissions.is_some() || new != mode;
                let changes = Changes { permissions: is_set.then_some(new as u32 & 0o7777), ..*changes };
                tx.log(Record::SetAttr(record_of(self.id().object, &changes)));
                if is_set {
                    self.log_posix_list(&tx, &file)?;
                }
                if !steps.is_empty() {
                    self.log_hidden_posix_list(&tx, &file, steps)?;
                }
                // What is made in it may follow it.
                if self.is_directory() {
                    tx.promote(self.id().object);
                }
            }
        }
        drop((tx, hidden, file));
        fs.settle().await
    }

    /// Sets the mode; the lists follow.
    fn apply_mode(&self, file: &mut Loaded<'_>, mode: u64, old_list: &[Ace]) -> Result<()> {
        let fs = self.file_system();
        let settings = fs.settings();
        let own = file.word(Attr::Flags)?;
        let is_replay = fs.writer()?.replaying_in().is_some();
        if settings.acl_mode == AclMode::Restricted && own & hints::TRIVIAL == 0 && !is_replay {
            return Err(self.refuse(Refusal::Flagged, "set the mode of a file with an ACL"));
        }
        if settings.acl_type == AclType::Posix {
            self.mode_of_posix_list(file, mode)?;
        }
        let owner = (file.word(Attr::Uid)?, file.word(Attr::Gid)?);
        let acl = Acl::with_mode(old_list, own, mode, settings.acl_mode, owner);
        self.put_acl(file, &Acl { mode, ..acl })
    }

    /// Sets the mode from a list of its own, which is stored elsewhere.
    pub(super) fn set_mode(&self, file: &mut Loaded<'_>, mode: u64) -> Result<()> {
        self.put_acl(file, &Acl::trivial(mode))
    }

    fn put_acl(&self, file: &mut Loaded<'_>, acl: &Acl) -> Result<()> {
        let fs = self.file_system();
        file.set(Attr::Mode, &[acl.mode])?;
        let own = file.word(Attr::Flags)?;
        file.set(Attr::Flags, &[own & !hints::ALL | acl.hints])?;
        if file.attributes.has(Attr::ZnodeAcl) {
            return Ok(());
        }
        let entries = encode(&acl.list).map_err(|e| self.place(e))?;
        file.set(Attr::DaclCount, &[acl.list.len() as u64])?;
        file.attributes.set(Attr::DaclAces, &entries, fs.tables()).map_err(|e| self.place(e))
    }

    /// Lets the POSIX list follow the mode.
    fn mode_of_posix_list(&self, file: &mut Loaded<'_>, mode: u64) -> Result<()> {
        let mut list = self.listed(file)?;
        let name = String::from_utf8_lossy(posix_acl::ACCESS).into_owned();
        let Some(NvValue::ByteArray(bytes)) = list.get(&name) else { return Ok(()) };
        let mut acl = PosixAcl::decode(bytes).map_err(|e| self.place(e))?;
        acl.set_mode(mode);
        list.set(&name, NvValue::ByteArray(acl.encode()));
        let tables = self.file_system().tables();
        file.attributes.set(Attr::Dxattr, &list.encode(), tables).map_err(|e| self.place(e))
    }

    /// The mode was set, and the POSIX list with it: replay by OpenZFS leaves that as it was.
    fn log_posix_list(&self, tx: &Change, file: &Loaded<'_>) -> Result<()> {
        let fs = self.file_system();
        let list = self.listed(file)?;
        let name = String::from_utf8_lossy(posix_acl::ACCESS);
        if let Some(NvValue::ByteArray(bytes)) = list.get(&name)
            && fs.settings().acl_type == AclType::Posix
            && fs.logs_listed_xattr(tx, Some(bytes))
        {
            tx.log_listed_xattr(self.id().object, posix_acl::ACCESS, Some(bytes));
        }
        Ok(())
    }

    /// Gives the file an NFSv4 list; its mode becomes what that amounts to.
    pub async fn set_acl(&self, list: &[Ace]) -> Result<()> {
        let fs = self.file_system();
        fs.writer()?;
        if fs.settings().acl_type == AclType::Posix {
            return Err(self.refuse(Refusal::SwitchedOff, "set an NFSv4 ACL"));
        }
        if list.is_empty() {
            return Err(self.place(Error::invalid("an ACL without entries")));
        }
        let mut file = self.load().await?;
        self.check_flags(&file.attributes, flags::IMMUTABLE | flags::APPENDONLY, "set the ACL of")?;
        let (mode, own) = (file.word(Attr::Mode)?, file.word(Attr::Flags)?);
        let owner = (file.word(Attr::Uid)?, file.word(Attr::Gid)?);
        self.put_acl(&mut file, &Acl::of(mode, list.to_vec(), own & hints::ALL, owner))?;
        file.touch(false)?;
        let tx = fs.begin(list.len() as u64 * 16 + COST).await?;
        file.store(&tx).await?;
        match (file.word(Attr::Links)?, log_acl(list, file.word(Attr::Flags)?)) {
            (0, _) => tx.needs_no_record(),
            (_, Some(acl)) => {
                let object = self.id().object;
                tx.log(Record::Acl(zil::Acl { object, acl }));
                // What is made in it takes it over.
                if self.is_directory() {
                    tx.promote(object);
                }
            }
            // Whom it names a record cannot: the txg makes it durable.
            _ => {}
        }
        drop((tx, file));
        fs.settle().await
    }

    /// Takes the right to act as owner or group from a file that somebody else than root writes to, who is of the file's
    /// group or not; says whether it had it.
    pub async fn drop_privileges(&self, of_group: bool) -> Result<bool> {
        let mode = self.bonus_attributes()?.require(Attr::Mode).map_err(|e| self.place(e))?;
        if self.kind() != FileKind::Regular || without_privileges(mode, of_group) == mode {
            return Ok(false);
        }
        let fs = self.file_system();
        fs.writer()?;
        let mut file = self.load().await?;
        let mode = without_privileges(file.word(Attr::Mode)?, of_group);
        file.set(Attr::Mode, &[mode])?;
        file.touch(false)?;
        let tx = fs.begin(COST).await?;
        file.store(&tx).await?;
        match file.word(Attr::Links)? {
            0 => tx.needs_no_record(),
            _ => {
                let changes = Changes { permissions: Some(mode as u32 & 0o7777), ..Changes::default() };
                tx.log(Record::SetAttr(record_of(self.id().object, &changes)));
            }
        }
        drop((tx, file));
        fs.settle().await?;
        Ok(true)
    }
}

/// What the log says of a change of attributes.
pub(super) fn record_of(object: ObjectId, changes: &Changes) -> SetAttr<'static> {
    let Changes { permissions, uid, gid, atime, mtime, flags, project } = *changes;
    let of_flags = flags.map(|wanted| {
        let asked = FLAG_BITS.into_iter().filter(|(_, flag)| SETTABLE & flag != 0);
        let (bits, set) = asked.fold((0, 0), |(bits, set), (bit, flag)| {
            (bits | bit, if wanted & flag != 0 { set | bit } else { set })
        });
        (bits, u64::from(set))
    });
    let extended = (of_flags.is_some() || project.is_some()).then(|| {
        let (bits, values) = of_flags.unwrap_or((0, 0));
        let mut stamp = [0; 32];
        stamp[..8].copy_from_slice(&u64::from(project.unwrap_or(0)).to_ne_bytes());
        let asked = bits | if project.is_some() { PROJECT } else { 0 };
        ExtendedAttributes { requested: vec![asked, 0, 0], values, stamp, ..Default::default() }
    });
    let has = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    let words = |time: Option<Time>| time.map_or([0, 0], |time| [time.seconds as u64, time.nanos.into()]);
    SetAttr {
        object,
        mask: has(permissions.is_some(), mask::MODE)
            | has(uid.is_some(), mask::UID)
            | has(gid.is_some(), mask::GID)
            | has(atime.is_some(), mask::ATIME)
            | has(mtime.is_some(), mask::MTIME)
            | has(extended.is_some(), SetAttr::HAS_EXTENDED),
        mode: permissions.unwrap_or(0).into(),
        uid: uid.unwrap_or(0).into(),
        gid: gid.unwrap_or(0).into(),
        size: 0,
        accessed: words(atime),
        modified: words(mtime),
        extended,
        domains: Vec::new(),
    }
}
