//! What lists mean: the mode they amount to, what a new file takes over from its directory, what is left of one when the
//! mode is set. Pure.
//!
//! ```text
//!   trivial   three entries at most that say where somebody has more than those nearer to the file,
//!             then what owner, group and everyone may: what every file has that nobody gave a list
//!   set mode  entries of owner, group and everyone go, or stay only to be inherited; the trivial ones are put around the
//!             rest, which `aclmode` drops, trims to what the group has, or keeps
//!   create    the directory's entries that are to be inherited, as `aclinherit` lets them; then as if the mode was set,
//!             unless they say themselves what owner, group and everyone may
//! ```

use crate::acl::{Ace, Who, decode};
use crate::attributes::trivial_acl;
use crate::settings::{AclInherit, AclMode, Settings};
use crate::stat::FileKind;
use units::Endian;

/// Rights of an entry (`ACE4_*`).
pub mod rights {
    pub const READ_DATA: u32 = 0x1;
    pub const WRITE_DATA: u32 = 0x2;
    pub const APPEND_DATA: u32 = 0x4;
    pub const READ_NAMED_ATTRS: u32 = 0x8;
    pub const WRITE_NAMED_ATTRS: u32 = 0x10;
    pub const EXECUTE: u32 = 0x20;
    pub const DELETE_CHILD: u32 = 0x40;
    pub const READ_ATTRIBUTES: u32 = 0x80;
    pub const WRITE_ATTRIBUTES: u32 = 0x100;
    pub const DELETE: u32 = 0x1_0000;
    pub const READ_ACL: u32 = 0x2_0000;
    pub const WRITE_ACL: u32 = 0x4_0000;
    pub const WRITE_OWNER: u32 = 0x8_0000;
    pub const SYNCHRONIZE: u32 = 0x10_0000;
}

use rights::*;

pub(crate) const ALLOW: u16 = 0;
pub(crate) const DENY: u16 = 1;

const FILE_INHERIT: u16 = 0x1;
const DIRECTORY_INHERIT: u16 = 0x2;
const NO_PROPAGATE: u16 = 0x4;
pub(crate) const INHERIT_ONLY: u16 = 0x8;
const INHERITED: u16 = 0x80;
const ALL_INHERIT: u16 = FILE_INHERIT | DIRECTORY_INHERIT | NO_PROPAGATE | INHERIT_ONLY | INHERITED;

/// Of a file's flags, those that describe its list.
pub(crate) mod hints {
    /// Some entries are to be inherited by what is made in the directory.
    pub const INHERIT: u64 = 0x2;
    pub const TRIVIAL: u64 = 0x4;
    /// Some entries have guids.
    pub const OBJECTS: u64 = 0x8;
    pub const PROTECTED: u64 = 0x10;
    pub const DEFAULTED: u64 = 0x20;
    pub const AUTO_INHERIT: u64 = 0x40;
    /// Everybody may execute the file.
    pub const NO_EXECS_DENIED: u64 = 0x100;
    pub const ALL: u64 = INHERIT | TRIVIAL | OBJECTS | PROTECTED | DEFAULTED | AUTO_INHERIT | NO_EXECS_DENIED;
}

/// A list with what goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl {
    pub mode: u64,
    pub list: Vec<Ace>,
    /// Of [`hints`].
    pub hints: u64,
}

impl Acl {
    /// The list that says no more than the mode.
    pub fn trivial(mode: u64) -> Acl {
        let executable = if mode & 0o111 == 0o111 { hints::NO_EXECS_DENIED } else { 0 };
        let auto = if is_directory(mode) { hints::AUTO_INHERIT } else { 0 };
        Acl { mode, list: trivial(mode), hints: hints::TRIVIAL | executable | auto }
    }

    /// Of a new file with this mode in a directory with that list, owned by these.
    pub fn inherited(mode: u64, parent: &[Ace], settings: &Settings, owner: (u64, u64)) -> Acl {
        let (list, mut needs_mode) = inherit(parent, mode, settings.acl_inherit);
        if settings.acl_mode == AclMode::Restricted && !list.is_empty() {
            needs_mode = false;
        }
        let mut hints = inheritable(&list);
        let list = if needs_mode {
            hints |= if is_directory(mode) { hints::AUTO_INHERIT } else { 0 };
            let passes =
                matches!(settings.acl_inherit, AclInherit::Passthrough | AclInherit::PassthroughExecute);
            set_mode(&list, mode, false, settings.acl_mode == AclMode::GroupMask && !passes)
        } else {
            list
        };
        Acl::of(mode, list, hints, owner)
    }

    /// With the mode that the list amounts to.
    pub fn of(mode: u64, list: Vec<Ace>, hints: u64, owner: (u64, u64)) -> Acl {
        let (mode, all_execute) = mode_of(mode, &list, owner);
        let mut hints = hints & !(hints::TRIVIAL | hints::NO_EXECS_DENIED | hints::INHERIT);
        hints |= inheritable(&list);
        hints |= if all_execute { hints::NO_EXECS_DENIED } else { 0 };
        hints |= if is_trivial(&list) { hints::TRIVIAL } else { 0 };
        Acl { mode, list, hints }
    }

    /// What the list becomes when the mode is set.
    pub fn with_mode(old: &[Ace], hints: u64, mode: u64, how: AclMode, owner: (u64, u64)) -> Acl {
        let kept = hints & (hints::PROTECTED | hints::DEFAULTED | hints::AUTO_INHERIT);
        let old = if how == AclMode::Discard { &[][..] } else { old };
        Acl::of(mode, set_mode(old, mode, true, how == AclMode::GroupMask), kept, owner)
    }
}

fn is_directory(mode: u64) -> bool {
    mode >> 12 == FileKind::Directory as u64
}

fn trivial(mode: u64) -> Vec<Ace> {
    // What we have just made can be read.
    decode(&trivial_acl(mode), Endian::NATIVE).unwrap_or_default()
}

fn is_base(ace: &Ace) -> bool {
    matches!(ace.who, Who::Owner | Who::Group | Who::Everyone)
}

fn inheritable(list: &[Ace]) -> u64 {
    let any = list.iter().any(|ace| ace.flags & (FILE_INHERIT | DIRECTORY_INHERIT) != 0);
    if any { hints::INHERIT } else { 0 }
}

/// Puts the entries that say what the mode says around the others. With `split`, entries of owner, group and everyone
/// make way for them; `trim` leaves nobody more than the group has.
fn set_mode(old: &[Ace], mode: u64, split: bool, trim: bool) -> Vec<Ace> {
    let is_directory = is_directory(mode);
    let mut list = trivial(mode);
    let tail = list.split_off(list.len().saturating_sub(3));
    let group = tail.iter().find(|ace| ace.who == Who::Group).map_or(0, |ace| ace.rights);
    for ace in old {
        let mut ace = *ace;
        if split && is_base(&ace) {
            if !is_directory || ace.flags & (FILE_INHERIT | DIRECTORY_INHERIT) == 0 {
                continue;
            }
            ace.flags |= INHERIT_ONLY;
        }
        if trim && ace.kind == ALLOW && ace.flags & INHERIT_ONLY == 0 {
            ace.rights &= group;
        }
        list.push(ace);
    }
    list.extend(tail);
    list
}

/// The entries that a new file of this mode takes over, and whether its mode is still to be set.
fn inherit(parent: &[Ace], mode: u64, how: AclInherit) -> (Vec<Ace>, bool) {
    let (is_directory, kind) = (is_directory(mode), FileKind::from_code(mode >> 12));
    let mut needs_mode = true;
    if how == AclInherit::Discard || kind == Some(FileKind::Symlink) {
        return (Vec::new(), true);
    }
    let mut list = Vec::new();
    for ace in parent {
        let to_directory = is_directory && ace.flags & DIRECTORY_INHERIT != 0;
        let stops = is_directory && ace.flags & NO_PROPAGATE != 0;
        let is_taken = to_directory || (ace.flags & FILE_INHERIT != 0 && !stops);
        if !is_taken || (how == AclInherit::NoAllow && ace.kind == ALLOW) {
            continue;
        }
        let passes = matches!(how, AclInherit::Passthrough | AclInherit::PassthroughExecute);
        if passes && is_base(ace) && (kind == Some(FileKind::Regular) || to_directory) {
            needs_mode = false;
        }
        let mut new = *ace;
        if how == AclInherit::PassthroughExecute && ace.kind == ALLOW && !is_directory && mode & 0o111 == 0 {
            new.rights &= !EXECUTE;
        }
        if how == AclInherit::Restricted && ace.kind == ALLOW {
            new.rights &= !(WRITE_ACL | WRITE_OWNER);
        }
        new.flags |= INHERITED;
        if !is_directory || ace.flags & NO_PROPAGATE != 0 {
            new.flags = new.flags & !ALL_INHERIT | INHERITED;
        } else if ace.flags & (FILE_INHERIT | DIRECTORY_INHERIT) == FILE_INHERIT {
            new.flags |= INHERIT_ONLY;
        } else {
            new.flags &= !INHERIT_ONLY;
        }
        list.push(new);
    }
    (list, needs_mode)
}

/// The mode with the permissions that a list amounts to, and whether nobody is denied to execute.
fn mode_of(mode: u64, list: &[Ace], (owner, group): (u64, u64)) -> (u64, bool) {
    let (mut seen, mut allowed, mut denies_execute) = (0u64, 0u64, false);
    for ace in list.iter().filter(|ace| ace.kind <= DENY && ace.flags & INHERIT_ONLY == 0) {
        let bits = (u64::from(ace.rights & READ_DATA != 0) << 2)
            | (u64::from(ace.rights & WRITE_DATA != 0) << 1)
            | u64::from(ace.rights & EXECUTE != 0);
        let touched = match ace.who {
            Who::Owner => bits << 6,
            Who::User(id) if id == owner => bits << 6,
            Who::Group => bits << 3,
            Who::NamedGroup(id) if id == group => bits << 3,
            Who::Everyone => bits << 6 | bits << 3 | bits,
            Who::User(_) | Who::NamedGroup(_) => {
                denies_execute |= ace.kind == DENY && bits & 1 != 0;
                0
            }
        };
        if ace.kind == ALLOW {
            allowed |= touched & !seen;
        }
        seen |= touched;
    }
    (mode & !0o777 | allowed, !denies_execute && allowed & 0o111 == 0o111)
}

/// Whether it says nothing that a mode could not.
fn is_trivial(list: &[Ace]) -> bool {
    list.iter().all(|ace| {
        let owners = WRITE_OWNER | WRITE_ACL | WRITE_ATTRIBUTES | WRITE_NAMED_ATTRS;
        is_base(ace)
            && ace.flags & (ALL_INHERIT & !INHERITED) == 0
            && !(ace.kind == DENY && ace.rights & (READ_ACL | READ_ATTRIBUTES) != 0)
            && ace.rights & DELETE == 0
            && (ace.rights & DELETE_CHILD == 0 || ace.rights & WRITE_DATA != 0)
            && !(ace.kind == ALLOW && ace.who != Who::Owner && ace.rights & owners != 0)
    })
}

/// Of the `wanted` rights, those that a list does not give; `is_one` says whom an entry is about.
pub(crate) fn missing(list: &[Ace], is_one: impl Fn(Who) -> bool, is_directory: bool, wanted: u32) -> u32 {
    let (mut open, mut denied) = (wanted, 0);
    for ace in list.iter().filter(|ace| ace.kind <= DENY) {
        let touched = ace.rights & open;
        if touched == 0 || (is_directory && ace.flags & INHERIT_ONLY != 0) || !is_one(ace.who) {
            continue;
        }
        if ace.kind == DENY {
            denied |= touched;
        }
        open &= !touched;
    }
    open | denied
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: u64 = 0o100_000;
    const DIRECTORY: u64 = 0o040_000;

    fn ace(kind: u16, who: Who, flags: u16, rights: u32) -> Ace {
        Ace { kind, flags, rights, who }
    }

    #[test]
    fn every_mode_becomes_a_list_and_the_list_that_mode_again() {
        for bits in 0..0o1000 {
            for kind in [FILE, DIRECTORY] {
                let acl = Acl::trivial(kind | bits);
                assert!(is_trivial(&acl.list), "{bits:o}");
                let again = Acl::of(kind, acl.list.clone(), acl.hints, (1, 2));
                assert_eq!((again.mode, again.hints), (acl.mode, acl.hints), "{bits:o}");
                // Owner, member of the group, and others have just what the mode says.
                let classes: [fn(Who) -> bool; 3] = [
                    |w| matches!(w, Who::Owner | Who::Everyone),
                    |w| matches!(w, Who::Group | Who::Everyone),
                    |w| w == Who::Everyone,
                ];
                for (class, shift) in classes.into_iter().zip([6, 3, 0]) {
                    for (right, bit) in [(READ_DATA, 4), (WRITE_DATA, 2), (EXECUTE, 1)] {
                        let has = missing(&acl.list, class, false, right) == 0;
                        assert_eq!(has, bits >> shift & bit != 0, "{bits:o} {shift} {bit}");
                    }
                }
            }
        }
    }

    #[test]
    fn setting_the_mode_keeps_of_a_list_what_aclmode_says() {
        let old = [
            ace(ALLOW, Who::User(7), 0, READ_DATA | WRITE_DATA),
            ace(DENY, Who::NamedGroup(8), 0, READ_DATA),
            ace(ALLOW, Who::Owner, 0, READ_DATA),
        ];
        let of = |how| Acl::with_mode(&old, 0, FILE | 0o640, how, (1, 2));
        let named = |acl: &Acl| acl.list.iter().filter(|ace| !is_base(ace)).copied().collect::<Vec<_>>();
        assert!(named(&of(AclMode::Discard)).is_empty());
        assert_eq!(of(AclMode::Discard), Acl::trivial(FILE | 0o640));
        assert_eq!(named(&of(AclMode::Passthrough)), old[..2]);
        let masked = named(&of(AclMode::GroupMask));
        assert_eq!(masked[0].rights, READ_DATA, "the group may not write");
        assert_eq!(masked[1], old[1], "what is denied stays");
        for how in [AclMode::GroupMask, AclMode::Passthrough] {
            assert_eq!(of(how).mode & 0o777, 0o640);
            assert_eq!(of(how).hints & hints::TRIVIAL, 0);
        }
    }

    #[test]
    fn new_files_take_over_what_aclinherit_says() {
        let both = FILE_INHERIT | DIRECTORY_INHERIT;
        let parent = [
            ace(ALLOW, Who::User(7), both, READ_DATA | WRITE_ACL),
            ace(DENY, Who::User(8), FILE_INHERIT | NO_PROPAGATE, WRITE_DATA),
            ace(ALLOW, Who::Everyone, both, READ_DATA | EXECUTE),
            ace(ALLOW, Who::Owner, 0, READ_DATA | WRITE_DATA),
        ];
        let make = |how, mode| {
            let settings = Settings { acl_inherit: how, ..Settings::default() };
            Acl::inherited(mode, &parent, &settings, (1, 2))
        };
        let named = |acl: &Acl| acl.list.iter().filter(|ace| !is_base(ace)).copied().collect::<Vec<_>>();
        assert_eq!(make(AclInherit::Discard, FILE | 0o644), Acl::trivial(FILE | 0o644));
        let file = named(&make(AclInherit::Restricted, FILE | 0o644));
        assert_eq!(
            file,
            [ace(ALLOW, Who::User(7), INHERITED, READ_DATA), ace(DENY, Who::User(8), INHERITED, WRITE_DATA)]
        );
        let file = named(&make(AclInherit::NoAllow, FILE | 0o644));
        assert_eq!(file, [ace(DENY, Who::User(8), INHERITED, WRITE_DATA)]);
        let directory = make(AclInherit::Restricted, DIRECTORY | 0o755);
        assert_eq!(named(&directory), [ace(ALLOW, Who::User(7), both | INHERITED, READ_DATA)]);
        assert!(directory.hints & hints::INHERIT != 0);
        // Passed through, the list says what the mode is.
        let passed = make(AclInherit::Passthrough, FILE | 0o600);
        assert_eq!(passed.mode & 0o777, 0o555);
        assert!(passed.list.iter().any(|ace| ace.rights & WRITE_ACL != 0));
        assert_eq!(make(AclInherit::PassthroughExecute, FILE | 0o600).mode & 0o777, 0o444);
        assert_eq!(make(AclInherit::PassthroughExecute, FILE | 0o700).mode & 0o777, 0o555);
    }
}
