//! The right to act as a file's owner or group, which not everybody may leave to what he changes.
//!
//! ```text
//!   who writes, truncates, allocates          set-user-id goes, and set-group-id
//!   who sets an ACL, as by chmod              set-group-id goes, unless he is of the file's group
//!   who has CAP_FSETID                        leaves both; `security.capability` goes in any case
//! ```
//!
//! The kernel says in a flag of a write that they are to go; it has none for allocating and copying, and only newer ones
//! have them for truncating and for ACLs. What they are made of can be seen from here, and is looked at when a file has
//! such a right:
//!
//! ```text
//!   request   uid, gid, process
//!   /proc/PROCESS/status   Groups: 4 24 100      CapEff: ...10      bit 4 is CAP_FSETID
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
    pub async fn drop_rights(&self, asker: Asker, number: u64, node: &Node) -> Result<()> {
        let stat = node.stat().await.map_err(|e| errno(&e))?;
        if stat.permissions & (SET_USER_ID | SET_GROUP_ID) != 0 && node.kind() == FileKind::Regular {
            let status = status(asker).await;
            let of_group = asker.gid == stat.gid || is_member(&status, stat.gid);
            let dropped =
                !may_leave_all(&status) && node.drop_privileges(of_group).await.map_err(|e| errno(&e))?;
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
        let status = status(asker).await;
        if may_leave_all(&status) || is_member(&status, stat.gid) {
            return Ok(());
        }
        let permissions = Some(stat.permissions & 0o7777 & !SET_GROUP_ID);
        node.change(&Changes { permissions, ..Changes::default() }).await.map_err(|e| errno(&e))
    }
}

/// What the kernel says of a process: nothing of one that has ended, which then may leave nothing.
async fn status(asker: Asker) -> String {
    aside(move || std::fs::read_to_string(format!("/proc/{}/status", asker.process)).unwrap_or_default())
        .await
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
}

fn may_leave_all(status: &str) -> bool {
    u64::from_str_radix(field(status, "CapEff:"), 16).is_ok_and(|rights| rights & CAP_FSETID != 0)
}

fn is_member(status: &str, group: u32) -> bool {
    field(status, "Groups:").split_whitespace().any(|word| word.parse() == Ok(group))
}

#[cfg(test)]
mod tests {
    use super::{is_member, may_leave_all};

    #[test]
    fn groups_and_rights_are_read_from_what_the_kernel_says() {
        let status =
            |groups: &str, rights: &str| format!("Name:\tsetfacl\nGroups:\t{groups} \nCapEff:\t{rights}\n");
        let none = "0000000000000000";
        assert!(is_member(&status("4 24 100", none), 24));
        assert!(!is_member(&status("4 24 100", none), 2), "no part of a number is a number");
        assert!(!is_member(&status("", none), 0));
        assert!(
            may_leave_all(&status("", "000001ffffffffff")) && may_leave_all(&status("", "0000000000000010"))
        );
        assert!(!may_leave_all(&status("", "000001ffffffffef")), "all rights but that one");
        assert!(!may_leave_all("") && !is_member("", 0), "it has ended");
    }
}
