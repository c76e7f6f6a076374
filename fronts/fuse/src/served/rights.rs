//! The right to act as a file's owner or group, which not everybody may leave to what he changes.
//!
//! ```text
//!   who writes, truncates, allocates          set-user-id goes, and set-group-id
//!   who sets an ACL, as by chmod              set-group-id goes, unless he is of the file's group
//!   who has CAP_FSETID                        leaves both; `security.capability` goes in any case
//! ```
//!
//! The kernel says in a flag of a write that they are to go, and then they do; it has none for allocating and copying, and
//! only newer ones have them for truncating and for ACLs. What they are made of can be seen from here, and is looked at when
//! a file has such a right:
//!
//! ```text
//!   request   uid, gid, process
//!   /proc/PROCESS/status    Groups: 4 24 100      CapEff: ...10      bit 4 is CAP_FSETID
//!   /proc/PROCESS/ns/user   CapEff holds in this user namespace: in another than ours it says nothing of our files
//! ```

use super::attributes::drop_capabilities;
use super::xattr::ACCESS;
use super::{Asker, Served};
use crate::errno::{Result, errno};
use crate::loops::aside;
use zpl::{Changes, FileKind, Node};

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const CAP_FSETID: u64 = 1 << 4;
/// Where the pages begin that the kernel is to forget: none.
const ATTRIBUTES_ALONE: i64 = -1;

impl Served {
    /// Somebody writes to a file: what it may do in its owner's name it may no more, unless he has the right to leave it.
    /// `is_told`: the kernel has asked whether he has it.
    pub async fn drop_rights(&self, asker: Asker, number: u64, node: &Node, is_told: bool) -> Result<()> {
        let stat = node.stat().await.map_err(|e| errno(&e))?;
        if stat.permissions & (SET_USER_ID | SET_GROUP_ID) != 0 && node.kind() == FileKind::Regular {
            let caller = Caller::of(asker).await;
            let of_group = asker.gid == stat.gid || caller.is_member(stat.gid);
            let stay = !is_told && caller.may_leave_all();
            let dropped = !stay && node.drop_privileges(of_group).await.map_err(|e| errno(&e))?;
            if dropped && let Some(kernel) = self.kernel.get() {
                // It expects other times and another size, and would go on believing the mode. A mount that is going away
                // needs no news.
                kernel.invalidate(number, ATTRIBUTES_ALONE, 0);
            }
        }
        // No caller leaves these.
        drop_capabilities(node).await
    }

    /// A caller has set an extended attribute of a file.
    pub async fn check_group_right(&self, asker: Asker, number: u64, name: &[u8]) -> Result<()> {
        if name != ACCESS {
            return Ok(());
        }
        let node = self.file(number).await?.node;
        let stat = node.stat().await.map_err(|e| errno(&e))?;
        if stat.permissions & SET_GROUP_ID == 0 || stat.gid == asker.gid {
            return Ok(());
        }
        let caller = Caller::of(asker).await;
        if caller.may_leave_all() || caller.is_member(stat.gid) {
            return Ok(());
        }
        let permissions = Some(stat.permissions & 0o7777 & !SET_GROUP_ID);
        node.change(&Changes { permissions, ..Changes::default() }).await.map_err(|e| errno(&e))
    }
}

/// What the kernel says of a process: nothing of one that has ended, which then may leave nothing.
#[derive(Default)]
struct Caller {
    status: String,
    /// Its capabilities hold where ours do.
    is_of_our_namespace: bool,
}

impl Caller {
    async fn of(asker: Asker) -> Caller {
        aside(move || Caller {
            status: std::fs::read_to_string(format!("/proc/{}/status", asker.process)).unwrap_or_default(),
            is_of_our_namespace: is_of_our_namespace(asker.process),
        })
        .await
    }

    fn field(&self, name: &str) -> &str {
        self.status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
    }

    fn may_leave_all(&self) -> bool {
        let rights = u64::from_str_radix(self.field("CapEff:"), 16);
        self.is_of_our_namespace && rights.is_ok_and(|rights| rights & CAP_FSETID != 0)
    }

    fn is_member(&self, group: u32) -> bool {
        self.field("Groups:").split_whitespace().any(|word| word.parse() == Ok(group))
    }
}

fn is_of_our_namespace(process: u32) -> bool {
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user"));
    match (of("self"), of(&process.to_string())) {
        (Ok(ours), Ok(its)) => ours == its,
        // Without user namespaces there is one. What may not be looked at is of another.
        (Err(_), _) => true,
        (Ok(_), Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Caller, is_of_our_namespace};

    #[test]
    fn groups_and_rights_are_read_from_what_the_kernel_says() {
        let caller = |groups: &str, rights: &str| Caller {
            status: format!("Name:\tsetfacl\nGroups:\t{groups} \nCapEff:\t{rights}\n"),
            is_of_our_namespace: true,
        };
        let none = "0000000000000000";
        assert!(caller("4 24 100", none).is_member(24));
        assert!(!caller("4 24 100", none).is_member(2), "no part of a number is a number");
        assert!(!caller("", none).is_member(0));
        assert!(
            caller("", "000001ffffffffff").may_leave_all() && caller("", "0000000000000010").may_leave_all()
        );
        assert!(!caller("", "000001ffffffffef").may_leave_all(), "all rights but that one");
        let elsewhere = Caller { is_of_our_namespace: false, ..caller("", "000001ffffffffff") };
        assert!(!elsewhere.may_leave_all(), "all rights in a namespace of its own");
        let ended = Caller::default();
        assert!(!ended.may_leave_all() && !ended.is_member(0), "it has ended");
    }

    #[test]
    fn a_process_is_of_the_namespace_that_the_kernel_says() {
        assert!(is_of_our_namespace(std::process::id()));
        assert!(!is_of_our_namespace(u32::MAX), "it has ended");
    }
}
