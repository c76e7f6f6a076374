//! Files of a host: mounts, NFS, iSCSI, multipath, udev, databases. What is dated in them is said with what replaced it.

use crate::advice::System::{Cenote, Linux, Solaris};
use crate::disks::{disks, of_device};
use crate::settings::{bytes, is_iscsi, is_mysql, is_postgres, setting, shown};
use crate::{Advice, Disk, Facts, generate};

const MIB: u64 = 1 << 20;

/// A line of `/proc/mounts` or `/etc/fstab`.
struct Mount<'a> {
    device: &'a str,
    at: &'a str,
    kind: &'a str,
    options: Vec<&'a str>,
}

impl Mount<'_> {
    fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    fn without_barriers(&self) -> Option<&str> {
        self.options.iter().copied().find(|option| *option == "nobarrier" || *option == "barrier=0")
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }
}

fn mounts<'a>(facts: &'a Facts, file: &str) -> Vec<Mount<'a>> {
    let read = |line: &'a String| {
        let mut words = line.split_whitespace();
        let (device, at, kind) = (words.next()?, words.next()?, words.next()?);
        Some(Mount { device, at, kind, options: words.next().unwrap_or_default().split(',').collect() })
    };
    facts.lines(file).iter().filter(|line| !line.trim_start().starts_with('#')).filter_map(read).collect()
}

/// Mounts of our LUNs.
fn mounts_of_ours(facts: &Facts) -> Vec<(Mount<'_>, Disk)> {
    let ours = disks(facts);
    let all = mounts(facts, "/proc/mounts").into_iter();
    all.filter_map(|mount| of_device(facts, &ours, mount.device).map(|disk| (mount, disk))).collect()
}

pub fn no_flush(facts: &Facts) -> Vec<Advice> {
    let is_set = |line: &&String| {
        let line: String = line.split_whitespace().collect();
        line.starts_with("setzfs:zfs_nocacheflush=1")
    };
    let set = facts.lines("/etc/system").iter().find(is_set);
    let advice = |line: &String| {
        Advice::new(
            "no-flush",
            "/etc/system",
            line.trim(),
            "it turns flushes off for every pool of the host: those on disks with a cache of their own lose data with the power",
        )
        .fix(Solaris, "remove the line: LUNs of ours answer a flush when the data is safe, and fast when they have a log device")
        .undo("set zfs:zfs_nocacheflush = 1")
    };
    set.map(advice).into_iter().collect()
}

pub fn barriers(facts: &Facts) -> Vec<Advice> {
    let ours = disks(facts);
    let live = mounts_of_ours(facts).into_iter().map(|(mount, _)| ("/proc/mounts", mount));
    let listed = mounts(facts, "/etc/fstab").into_iter().filter(|m| m.device.starts_with("/dev/"));
    let listed = listed
        .filter(|mount| of_device(facts, &ours, mount.device).is_some())
        .map(|mount| ("/etc/fstab", mount));
    let mut found: Vec<Advice> = Vec::new();
    for (file, mount) in live.chain(listed) {
        let Some(option) =
            mount.without_barriers().filter(|_| !found.iter().any(|advice| advice.about == mount.at))
        else {
            continue;
        };
        found.push(
            Advice::new(
                "barriers",
                mount.at,
                format!("{option} in {file}"),
                "the file system sends no flushes, so that what it reports as written may be lost in a crash; XFS has not known the \
                 option since Linux 4.19 and does not mount with it",
            )
            .fix(Linux, format!("remove {option} from the options in /etc/fstab, and mount again"))
            .undo(format!("add {option} again, where the kernel still knows it")),
        );
    }
    found
}

pub fn mount_sync(facts: &Facts) -> Vec<Advice> {
    let all =
        mounts_of_ours(facts).into_iter().filter(|(mount, _)| mount.has("sync") || mount.has("dirsync"));
    all.map(|(mount, _)| {
        Advice::new(
            "mount-sync",
            mount.at,
            "mounted with sync",
            "every write waits for the disk, one after the other, whether its program needs that or not",
        )
        .fix(Linux, format!("mount -o remount,async {}, and remove sync from /etc/fstab", mount.at))
        .undo(format!("mount -o remount,sync {}", mount.at))
    })
    .collect()
}

pub fn mount_discard(facts: &Facts) -> Vec<Advice> {
    let all = mounts_of_ours(facts).into_iter().filter(|(mount, _)| mount.has("discard"));
    all.map(|(mount, _)| {
        Advice::new(
            "mount-discard",
            mount.at,
            "mounted with discard",
            "each removal of a file waits for the LUN to free its blocks, in small pieces",
        )
        .fix(
            Linux,
            format!(
                "mount -o remount,nodiscard {}, and once a week: systemctl enable --now fstrim.timer",
                mount.at
            ),
        )
        .undo(format!("mount -o remount,discard {}", mount.at))
    })
    .collect()
}

pub fn access_times(facts: &Facts) -> Vec<Advice> {
    let all = mounts_of_ours(facts).into_iter().filter(|(mount, _)| mount.has("strictatime"));
    all.map(|(mount, _)| {
        Advice::new(
            "access-times",
            mount.at,
            "mounted with strictatime",
            "each read of a file writes its inode",
        )
        .fix(Linux, format!("mount -o remount,noatime {}, and noatime in /etc/fstab", mount.at))
        .undo(format!("mount -o remount,strictatime {}", mount.at))
    })
    .collect()
}

pub fn nfs_transfer(facts: &Facts) -> Vec<Advice> {
    let is_nfs = |mount: &Mount<'_>| mount.kind == "nfs" || mount.kind == "nfs4";
    let all = mounts(facts, "/proc/mounts").into_iter().filter(is_nfs);
    let small = |mount: Mount<'_>| {
        let sizes = ["rsize", "wsize"].map(|name| (name, mount.number(name)));
        let (name, size) =
            sizes.into_iter().find_map(|(name, size)| Some((name, size.filter(|s| *s < MIB)?)))?;
        Some(
            Advice::new(
                "nfs-transfer",
                mount.at,
                format!("{name} is {}", shown(size)),
                format!("a record of 1M takes {} requests", MIB.div_ceil(size.max(1))),
            )
            .fix(Linux, "rsize=1048576,wsize=1048576 in /etc/fstab, then unmount and mount: a remount keeps the former sizes")
            .undo(format!("{name}={size}")),
        )
    };
    all.filter_map(small).collect()
}

/// What the session of an initiator agrees to, as `iscsid.conf` asks for it.
pub fn iscsi_session(facts: &Facts) -> Vec<Advice> {
    let ours = disks(facts);
    let Some(block) = ours.iter().map(|disk| disk.block).max() else { return Vec::new() };
    let value = |name: &str| setting(facts, is_iscsi, name).map(|(_, value)| value);
    let advice = |name: &str, value: &str, want: &str, cost: &str| {
        Advice::new("iscsi-session", "/etc/iscsi/iscsid.conf", format!("{name} = {value}"), cost)
            .fix(
                Linux,
                format!(
                    "{name} = {want}\nof nodes that are known: iscsiadm -m node -o update -n {name} -v {want}, then log out and in again"
                ),
            )
            .undo(format!("{name} = {value}"))
    };
    let mut found = Vec::new();
    for (name, least, cost) in [
        (
            "node.session.iscsi.MaxBurstLength",
            block,
            "a request is sent in more than one burst, each of which waits for a round trip",
        ),
        (
            "node.session.iscsi.FirstBurstLength",
            64 << 10,
            "even small writes wait for a round trip before their data may be sent",
        ),
        (
            "node.conn[0].iscsi.MaxRecvDataSegmentLength",
            256 << 10,
            "data of reads comes in many small PDUs, each with its cost",
        ),
        ("node.session.cmds_max", 32, "no more commands are outstanding, over all LUNs of the session"),
        ("node.session.queue_depth", 16, "no more commands are outstanding at one LUN: Little's law"),
    ] {
        let set = value(name).and_then(|text| Some((text, text.parse::<u64>().ok()?)));
        if let Some((text, _)) = set.filter(|(_, number)| *number < least) {
            let want = if name.ends_with("cmds_max") { 256 } else { least.max(64) };
            found.push(advice(name, text, &want.to_string(), cost));
        }
    }
    for (name, bad, want, cost) in [
        (
            "node.session.iscsi.InitialR2T",
            "Yes",
            "No",
            "each write waits for a round trip before its data may be sent",
        ),
        (
            "node.session.iscsi.ImmediateData",
            "No",
            "Yes",
            "no write carries its data along: one more PDU, or a round trip",
        ),
    ] {
        if let Some(text) = value(name).filter(|text| text.eq_ignore_ascii_case(bad)) {
            found.push(advice(name, text, want, cost));
        }
    }
    let is_multipath = ours.iter().any(|disk| disk.is_multipath);
    let name = "node.session.timeo.replacement_timeout";
    if let Some(text) =
        value(name).filter(|text| is_multipath && text.parse::<u64>().is_ok_and(|seconds| seconds > 30))
    {
        found.push(advice(
            name,
            text,
            "5",
            "when a path fails, requests wait as long before multipath tries the other one",
        ));
    }
    found
}

/// The words of a line of multipath.conf: `name "value"`.
fn multipath_lines(facts: &Facts) -> Vec<(&str, String)> {
    let files = facts.under("/etc/multipath").flat_map(|(_, lines)| lines.iter());
    files
        .filter_map(|line| {
            let (name, value) = line.trim().split_once([' ', '\t'])?;
            Some((name, value.trim().trim_matches('"').to_string()))
        })
        .collect()
}

pub fn multipath_dated(facts: &Facts) -> Vec<Advice> {
    let now = [
        (
            "getuid_callout",
            "uid_attribute ID_SERIAL",
            "it is gone from multipath-tools 0.6 on, which says so at each start",
        ),
        ("rr_min_io", "rr_min_io_rq 1", "request-based multipath (since Linux 2.6.31) does not read it"),
        ("prio_callout", "prio alua", "it is gone; priorities come from modules"),
    ];
    let lines = multipath_lines(facts);
    let found = now.iter().filter_map(|(name, instead, why)| {
        let (_, value) = lines.iter().find(|(n, _)| n == name)?;
        Some(
            Advice::new("multipath-dated", "/etc/multipath.conf", format!("{name} {value}"), *why)
                .fix(Linux, format!("in its place: {instead}"))
                .undo(format!("{name} \"{value}\"")),
        )
    });
    found.collect()
}

pub fn multipath_policy(facts: &Facts) -> Vec<Advice> {
    let ours: Vec<Disk> = disks(facts).into_iter().filter(|disk| disk.is_multipath).collect();
    let Some(block) = ours.iter().map(|disk| disk.block).max() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in multipath_lines(facts) {
        let (want, cost) = match (name, value.as_str()) {
            ("path_grouping_policy", "failover") => {
                ("group_by_prio".into(), "one path works and the others wait for it to fail")
            }
            ("no_path_retry", "fail") => (
                "600".to_string(),
                "the first moment without a path becomes I/O errors, and a read-only file system",
            ),
            ("path_checker", "readsector0" | "directio") => {
                ("tur".into(), "each check reads from the LUN, which waits behind its load")
            }
            ("max_sectors_kb", text) if text.parse::<u64>().is_ok_and(|kib| kib < block >> 10) => {
                ((block >> 10).to_string(), "requests are cut below the block of the LUN")
            }
            _ => continue,
        };
        found.push(
            Advice::new("multipath-policy", "/etc/multipath.conf", format!("{name} {value}"), cost)
                .fix(Linux, format!("{name} {want}\nthen: multipathd reconfigure"))
                .undo(format!("{name} {value}")),
        );
    }
    found
}

pub fn udev_dated(facts: &Facts) -> Vec<Advice> {
    let block = disks(facts).iter().map(|disk| disk.block).max();
    let files = facts.under("/etc/udev/rules.d/");
    let dated = files.flat_map(|(file, lines)| lines.iter().map(move |line| (file, line)));
    let dated = dated.filter(|(_, line)| {
        ["SYSFS{", "BUS==", "ID=="].iter().any(|key| {
            line.starts_with(key) || line.contains(&format!(" {key}")) || line.contains(&format!(",{key}"))
        })
    });
    dated
        .map(|(file, line)| {
            let advice = Advice::new(
                "udev-dated",
                &format!("/etc/udev/rules.d/{file}"),
                line.trim(),
                "udev has had no SYSFS{}, BUS and ID since version 174: it leaves the rule out, and the setting is never made",
            );
            let fix = format!("ATTRS{{}} in place of SYSFS{{}}, SUBSYSTEMS of BUS, KERNELS of ID:\n{}", generate::udev_rule(generate::VENDOR, block.unwrap_or(MIB)));
            advice.fix(Linux, fix).undo("put the former line back")
        })
        .collect()
}

pub fn kernel_elevator(facts: &Facts) -> Vec<Advice> {
    let word = facts
        .text("/proc/cmdline")
        .and_then(|line| line.split_whitespace().find(|word| word.starts_with("elevator=")));
    let major = facts
        .text("/proc/sys/kernel/osrelease")
        .and_then(|release| release.split('.').next()?.parse::<u64>().ok());
    let advice = |word: &str| {
        Advice::new(
            "kernel-elevator",
            "kernel parameters",
            word,
            "Linux takes no notice of it since 5.0: disks have the scheduler that the distribution chooses",
        )
        .fix(
            Linux,
            format!(
                "remove it from GRUB_CMDLINE_LINUX in /etc/default/grub, and set the scheduler by udev:\n{}",
                generate::scheduler_rule(generate::VENDOR, "none")
            ),
        )
        .undo(format!("add {word} again"))
    };
    word.filter(|_| major.is_some_and(|major| major >= 5)).map(advice).into_iter().collect()
}

/// The LUN that a directory is on.
fn lun_of_dir(facts: &Facts, dir: &str) -> Option<Disk> {
    let is_above =
        |at: &str| at == "/" || dir == at || dir.strip_prefix(at).is_some_and(|rest| rest.starts_with('/'));
    let mount =
        mounts(facts, "/proc/mounts").into_iter().filter(|m| is_above(m.at)).max_by_key(|m| m.at.len())?;
    of_device(facts, &disks(facts), mount.device)
}

fn set_block(disk: &Disk, block: u64) -> String {
    format!("cenote zfs set volblocksize={} {}", shown(block), disk.lun.as_deref().unwrap_or("LUN"))
}

fn mysql<'a>(facts: &'a Facts, name: &str) -> Option<(&'a str, &'a str)> {
    setting(facts, is_mysql, name)
}

fn innodb_lun(facts: &Facts) -> Option<Disk> {
    let dir = mysql(facts, "innodb_data_home_dir").or_else(|| mysql(facts, "datadir"))?;
    lun_of_dir(facts, dir.1)
}

pub fn innodb_page(facts: &Facts) -> Vec<Advice> {
    let Some(disk) = innodb_lun(facts) else { return Vec::new() };
    let page = mysql(facts, "innodb_page_size").and_then(|(_, text)| bytes(text)).unwrap_or(16 << 10);
    if page == disk.block || !page.is_power_of_two() || !(4096..=65536).contains(&page) {
        return Vec::new();
    }
    let cost = match page < disk.block {
        true => {
            "each page that is written changes part of a block, which is read before, unless it is cached"
        }
        false => "each page takes several blocks, with the metadata of each",
    };
    let advice = Advice::new(
        "innodb-page",
        &disk.shown(),
        format!("InnoDB has pages of {}, the LUN blocks of {}", shown(page), shown(disk.block)),
        cost,
    );
    vec![
        advice
            .fix(Cenote, format!("{} (the LUN moves while it is in use)", set_block(&disk, page)))
            .undo(set_block(&disk, disk.block)),
    ]
}

pub fn innodb_flush(facts: &Facts) -> Vec<Advice> {
    let Some(disk) = innodb_lun(facts) else { return Vec::new() };
    let Some((file, method)) = mysql(facts, "innodb_flush_method") else { return Vec::new() };
    if !["fsync", "O_DSYNC", "littlesync", "nosync"].iter().any(|slow| slow.eq_ignore_ascii_case(method)) {
        return Vec::new();
    }
    let cost = "pages are cached twice, by InnoDB and by the host, and are written in the sizes that the host's cache chooses";
    let advice = Advice::new(
        "innodb-flush",
        &disk.shown(),
        format!("innodb_flush_method = {method} in /{file}"),
        cost,
    );
    vec![advice.fix(Linux, "innodb_flush_method = O_DIRECT").undo(format!("innodb_flush_method = {method}"))]
}

pub fn innodb_neighbors(facts: &Facts) -> Vec<Advice> {
    let Some(disk) = innodb_lun(facts) else { return Vec::new() };
    let set = mysql(facts, "innodb_flush_neighbors").filter(|(_, value)| ["1", "2"].contains(value));
    let advice = |(file, value): (&str, &str)| {
        let cost = "pages that nothing waits for are written along, to spare a disk its seeks: here each block has a new place anyway";
        Advice::new(
            "innodb-neighbors",
            &disk.shown(),
            format!("innodb_flush_neighbors = {value} in /{file}"),
            cost,
        )
        .fix(Linux, "innodb_flush_neighbors = 0")
        .undo(format!("innodb_flush_neighbors = {value}"))
    };
    set.map(advice).into_iter().collect()
}

pub fn innodb_native_aio(facts: &Facts) -> Vec<Advice> {
    let Some(disk) = innodb_lun(facts) else { return Vec::new() };
    let set = mysql(facts, "innodb_use_native_aio").filter(|(_, value)| ["0", "OFF", "off"].contains(value));
    let advice = |(file, value): (&str, &str)| {
        let cost = "no more requests are outstanding than InnoDB has threads for them: Little's law";
        Advice::new(
            "innodb-io-threads",
            &disk.shown(),
            format!("innodb_use_native_aio = {value} in /{file}"),
            cost,
        )
        .fix(Linux, "innodb_use_native_aio = ON")
        .undo(format!("innodb_use_native_aio = {value}"))
    };
    set.map(advice).into_iter().collect()
}

pub fn postgres_fsync(facts: &Facts) -> Vec<Advice> {
    let set =
        setting(facts, is_postgres, "fsync").filter(|(_, value)| ["off", "false", "no", "0"].contains(value));
    let advice = |(file, value): (&str, &str)| {
        Advice::new(
            "postgres-fsync",
            &format!("/{file}"),
            format!("fsync = {value}"),
            "a crash of the host leaves a damaged database: what it saves is a flush, which a log device makes cheap",
        )
        .fix(Linux, "fsync = on; where the last commits may be lost: synchronous_commit = off")
        .fix(Cenote, "cenote zpool add POOL log mirror DEVICE DEVICE")
        .undo(format!("fsync = {value}"))
    };
    set.map(advice).into_iter().collect()
}

pub fn postgres_block(facts: &Facts) -> Vec<Advice> {
    let Some((file, dir)) = setting(facts, is_postgres, "data_directory") else { return Vec::new() };
    let Some(disk) = lun_of_dir(facts, dir).filter(|disk| disk.block > 64 << 10) else { return Vec::new() };
    let seen = format!("data_directory in /{file} is on blocks of {}, pages have 8K", shown(disk.block));
    let cost = format!("a page that is not cached fetches {} pages", disk.block / 8192);
    let advice = Advice::new("postgres-read-cost", &disk.shown(), seen, cost);
    vec![
        advice
            .fix(
                Cenote,
                format!(
                    "{} (the LUN moves while it is in use); large blocks suit the WAL alone",
                    set_block(&disk, 16 << 10)
                ),
            )
            .undo(set_block(&disk, disk.block)),
    ]
}
