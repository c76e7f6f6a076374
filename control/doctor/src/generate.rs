//! Files for one deployment: a udev rule, multipath.conf, lines of fstab, a piece of my.cnf.
//!
//! What comes from outside (mount points, device names) is checked or escaped as the reader of each file needs it:
//! nothing that a name
//! contains can end a line or open another setting.

use crate::settings::shown;

/// As the INQUIRY of our LUNs says.
pub const VENDOR: &str = "CENOTE";

/// A rule that lets requests be as large as a block of `block` bytes, for LUNs of `vendor` and the multipath devices above
/// them.
pub fn udev_rule(vendor: &str, block: u64) -> String {
    let kib = (block >> 10).max(1);
    let lun = of_luns(vendor);
    format!(
        "{lun}, ATTR{{queue/max_sectors_kb}}=\"{kib}\", ATTR{{queue/scheduler}}=\"none\"\n\
         ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DM_UUID}}==\"mpath-3600144f0*\", ATTR{{queue/max_sectors_kb}}=\"{kib}\"\n"
    )
}

/// A rule for the scheduler of LUNs alone.
pub fn scheduler_rule(vendor: &str, scheduler: &str) -> String {
    format!("{}, ATTR{{queue/scheduler}}=\"{scheduler}\"", of_luns(vendor))
}

/// What a rule goes by. Partitions have no queue.
fn of_luns(vendor: &str) -> String {
    format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", ATTRS{{vendor}}==\"{vendor}*\""
    )
}

/// A whole multipath.conf for LUNs of `vendor` and `product`, in today's words. Errors: names that no INQUIRY has.
pub fn multipath_conf(vendor: &str, product: &str) -> Result<String, String> {
    let vendor = inquiry("vendor", vendor, 8)?;
    let product = inquiry("product", product, 16)?;
    Ok(format!(
        "defaults {{\n    find_multipaths yes\n    user_friendly_names yes\n}}\ndevices {{\n    device {{\n        vendor \"{vendor}\"\n        \
         product \"{product}\"\n        path_grouping_policy group_by_prio\n        prio alua\n        hardware_handler \"1 alua\"\n        \
         path_checker tur\n        failback immediate\n        no_path_retry 600\n        rr_min_io_rq 1\n        rr_weight uniform\n    }}\n}}\n"
    ))
}

/// multipath takes both as regular expressions.
fn inquiry(what: &str, text: &str, most: usize) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"\\#!{}".contains(c) || c == ' ';
    if text.is_empty() || text.len() > most || !text.chars().all(is_plain) {
        return Err(format!(
            "'{}' is no {what} of an INQUIRY: 1 to {most} plain characters",
            crate::facts::plain(text)
        ));
    }
    let escape = |c: char| if "^$.|?*+()[]".contains(c) { format!("\\{c}") } else { c.to_string() };
    Ok(text.chars().map(escape).collect())
}

/// A line of fstab for an XFS on a LUN, in options that a current kernel knows. Errors: places that are no absolute paths.
pub fn fstab_line(device: &str, at: &str) -> Result<String, String> {
    for place in [device, at] {
        if !place.starts_with('/') || place.contains('\0') {
            return Err(format!("'{}' is no absolute path", crate::facts::plain(place)));
        }
    }
    // No nobarrier: XFS has not known it since Linux 4.19. _netdev: the network is needed before.
    Ok(format!("{} {} xfs noatime,logbufs=8,logbsize=256k,_netdev 0 0\n", fstab_word(device), fstab_word(at)))
}

/// fstab has octal for what would end a word, or begin a comment.
fn fstab_word(text: &str) -> String {
    let escape = |c: char| match c {
        ' ' | '\t' | '\n' | '\r' | '\\' | '#' => format!("\\{:03o}", c as u32),
        c if c.is_control() => c.to_string().bytes().map(|b| format!("\\{b:03o}")).collect(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Settings of InnoDB for data on a LUN with blocks of `block` bytes, mounted at `data`, and its log at `log`.
/// Errors: a block that is no
/// page, a place that an option file cannot hold.
pub fn my_cnf(block: u64, data: &str, log: &str) -> Result<String, String> {
    if ![4096, 8192, 16384, 32768, 65536].contains(&block) {
        return Err(format!(
            "InnoDB has no pages of {}: the LUN for its data needs blocks of 4K to 64K",
            shown(block)
        ));
    }
    for place in [data, log] {
        let is_plain =
            place.starts_with('/') && !place.chars().any(|c| c.is_control() || "'\"\\#;".contains(c));
        if !is_plain {
            return Err(format!("'{}' is no path that my.cnf can hold", crate::facts::plain(place)));
        }
    }
    Ok(format!(
        "[mysqld]\ndatadir = {data}\ninnodb_log_group_home_dir = {log}\ninnodb_page_size = {}\ninnodb_flush_method = O_DIRECT\n\
         innodb_flush_neighbors = 0\ninnodb_use_native_aio = ON\n",
        shown(block).to_ascii_lowercase()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_contains_stays_in_its_word() {
        let line = fstab_line("/dev/mapper/a b", "/mnt/x\n/dev/sda / ext4 defaults 0 0 #\\").unwrap();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(line.split_whitespace().count(), 6);
        assert!(line.starts_with("/dev/mapper/a\\040b /mnt/x\\012/dev/sda\\040/"), "{line}");
        assert!(
            fstab_line("UUID=1", "/x").is_err()
                && fstab_line("/d", "x").is_err()
                && fstab_line("/d", "/\0").is_err()
        );
        for bad in ["", "123456789", "a\"b", "a\nb", "ä", "a}", "x#"] {
            assert!(multipath_conf(bad, "x").is_err(), "{bad:?}");
        }
        assert!(multipath_conf("A.B*", "x").unwrap().contains("vendor \"A\\.B\\*\"\n"));
        for bad in ["rel", "/a\nskip-grant-tables", "/a;b", "/a#b", "/'"] {
            assert!(my_cnf(16384, bad, "/log").is_err() && my_cnf(16384, "/data", bad).is_err(), "{bad:?}");
        }
        assert!(my_cnf(1 << 20, "/data", "/log").unwrap_err().contains("no pages of 1M"));
    }

    #[test]
    fn what_is_written_has_no_dated_words_and_whole_braces() {
        let text = udev_rule(VENDOR, 1 << 20)
            + &multipath_conf(VENDOR, "LUN").unwrap()
            + &fstab_line("/dev/a", "/b").unwrap();
        for dated in ["SYSFS", "getuid_callout", "nobarrier", "noop", "rr_min_io "] {
            assert!(!text.contains(dated), "{dated}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        assert_eq!(text.matches('"').count() % 2, 0);
    }
}
