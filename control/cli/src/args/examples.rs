//! An example of every command, shown by its `--help` and its manual page, and understood by the parser: a test says so.

use clap::Command;

/// The words of a command, and lines that somebody might type.
pub const EXAMPLES: &[(&str, &[&str])] = &[
    ("up", &["cenote up", "cenote --home /tmp/tour up --size 20G --volume 5G --arc-max 2G"]),
    (
        "serve",
        &[
            "cenote serve --listen 0.0.0.0:10809",
            "cenote serve --listen 192.0.2.7:10809 --nbd-tls /etc/cenote/nbd",
            "cenote serve --mount",
            "cenote serve --socket /run/cenote/nbd.sock --https 192.0.2.7:215",
            "cenote serve --http 127.0.0.1:8216",
        ],
    ),
    ("status", &["cenote status", "cenote status -j"]),
    ("down", &["cenote down"]),
    ("shell", &["cenote shell", "cenote shell -c help", "cenote shell --transcript mysql.txt"]),
    ("page", &["cenote page"]),
    ("password", &["cenote password", "cenote password --generate csi"]),
    ("nbd", &["cenote nbd tank/vol1", "cenote nbd --read-only --socket /tmp/vol1.sock tank/vol1"]),
    ("ls", &["cenote ls -l tank/home:/anna", "cenote ls -R -d /mnt/images -T 4711 tank@monday"]),
    ("stat", &["cenote stat tank/home:/anna/letter.txt"]),
    (
        "find",
        &["cenote find --name '*.jpg' tank/home", "cenote find -d /disks --type f --min-size 1G tank:/var"],
    ),
    ("cat", &["cenote cat tank/etc@monday:/fstab", "cenote cat -d /dev/sdb1 tank:/boot/vmlinuz"]),
    (
        "cp",
        &[
            "cenote cp tank/home:/anna/letter.txt .",
            "cenote cp -r -d /mnt/images tank/home@monday:/anna /srv/saved",
        ],
    ),
    (
        "tar",
        &["cenote tar -f home.tar tank/home", "cenote tar -d /dev/disk/by-id tank/home:/anna > anna.tar"],
    ),
    (
        "top",
        &[
            "cenote top",
            "cenote top 'iscsi.ops[client]'",
            "cenote top -n 5 'iscsi.ops[client]' 'io.ops[disk]'",
            "cenote top -j -n 1 'nbd.ops[op=read][size]'",
        ],
    ),
    ("waterfall", &["cenote waterfall", "cenote waterfall 'iscsi[op=write][latency>=10ms]' 5 12"]),
    ("arc", &["cenote arc", "cenote arc 1", "cenote arc --dwpd 3", "cenote arc -j"]),
    ("changes", &["cenote changes", "cenote changes 7", "cenote changes undo 7"]),
    (
        "calc",
        &[
            "cenote calc --bandwidth 100MB --size 64K",
            "cenote calc --size 8K --outstanding 128 --latency 4ms",
        ],
    ),
    ("inspect labels", &["cenote inspect labels /dev/sdb1"]),
    ("inspect uberblocks", &["cenote inspect uberblocks /disks/a.img"]),
    ("inspect cache", &["cenote inspect cache /disks/cache.img"]),
    ("inspect mos", &["cenote inspect mos -d /disks tank"]),
    ("inspect log", &["cenote inspect log -d /disks tank/vol1"]),
    ("inspect objects", &["cenote inspect objects -d /disks tank/data"]),
    (
        "inspect block",
        &["cenote inspect block -d /disks tank/vol1 1", "cenote inspect block -d /disks mos:tank 0x20 1:0"],
    ),
    ("inspect verify", &["cenote inspect verify -d /disks tank"]),
    ("doctor", &["cenote doctor", "cenote doctor --apply"]),
    (
        "doctor host",
        &[
            "cenote doctor host",
            "cenote doctor host --facts facts.txt",
            "cenote doctor host --ssh root@client",
        ],
    ),
    ("doctor blocksize", &["cenote doctor blocksize tank/mysql/innodb-data"]),
    ("doctor generate udev", &["cenote doctor generate udev --block 1M"]),
    ("doctor generate multipath", &["cenote doctor generate multipath --vendor SUN"]),
    ("doctor generate fstab", &["cenote doctor generate fstab /dev/mapper/mpatha /mysql/san/innodb-data"]),
    ("doctor generate mysql", &["cenote doctor generate mysql --block 16K"]),
    ("lab list", &["cenote lab list"]),
    ("lab parameters", &["cenote lab parameters"]),
    (
        "lab run",
        &[
            "cenote lab run filesync --scale 0.1",
            "cenote lab run --all",
            "cenote lab run filesync --sensitivity -j",
        ],
    ),
    (
        "lab replay",
        &[
            "cenote lab replay monday.trace --set volblocksize=16K",
            "cenote lab replay monday.trace --set layout=mirror:2x4,cache=8G --present disks=ssd",
            "cenote lab replay monday.trace --set sync=disabled --as-fast-as-possible -j",
        ],
    ),
    (
        "trace record",
        &[
            "cenote trace record nbd monday.trace --seconds 60",
            "cenote trace record 'iscsi[dataset=tank/db][op=write]' writes.trace --limit 100M --hash-names",
        ],
    ),
    ("trace show", &["cenote trace show monday.trace", "cenote trace show monday.trace -j"]),
    (
        "rehearse",
        &[
            "cenote rehearse monday.trace tank/db --set volblocksize=16K",
            "cenote rehearse monday.trace tank/db --set volblocksize=64K,compression=zstd --as-fast-as-possible -j",
        ],
    ),
    (
        "work",
        &[
            "cenote work --list",
            "cenote work run1.parm --elapsed 60 --lun sd1=/dev/mapper/mpatha",
            "cenote work job.fio -j",
            "cenote work oltp --elapsed 5m nbd://127.0.0.1/tank/data nbd://127.0.0.1/tank/log",
            "cenote work boot --size 4G --saturate 64 /mnt/images/test",
            "cenote work filesync /mnt/fs 10000",
        ],
    ),
    (
        "bench engine",
        &[
            "cenote bench engine",
            "cenote bench engine --dir /dev/shm --size 1G --seconds 5",
            "cenote bench engine --dir /dev/shm --only nbd --sustained 20",
        ],
    ),
    ("bench serve", &["cenote bench serve /tmp/nbd.sock /dev/shm 512M 16K"]),
    ("bench iscsi", &["cenote bench iscsi", "cenote bench iscsi /dev/shm --seconds 1 --rounds 1"]),
    (
        "bench files",
        &[
            "cenote bench files",
            "cenote bench files /tmp --only names --tar linux.tar --rounds 3",
            "cenote bench files /tmp --only large --peers cenote,ext4 --size 1G --seconds 2",
        ],
    ),
    (
        "bench filesync",
        &[
            "cenote bench filesync /tmp 1000 --streams 4",
            "cenote bench filesync --pool tank/vol1 1000",
            "cenote bench filesync --array 1000 --streams 8",
        ],
    ),
    (
        "bench caches",
        &["cenote bench caches", "cenote bench caches /dev/shm --size 512M --seconds 2 --rounds 5"],
    ),
    ("bench hits", &["cenote bench hits", "cenote bench hits --shapes loop,files --percent 5 -j"]),
    ("bench growth", &["cenote bench growth", "cenote bench growth --sizes 100,1000,3000,10000"]),
    (
        "bench latency",
        &[
            "cenote bench latency /dev/shm --seconds 30",
            "cenote bench latency --path /mnt/tank/file --size 256M",
            "cenote bench latency --model --svg latency.svg",
        ],
    ),
    ("bench sync", &["cenote bench sync /tmp --seconds 2 --rounds 5"]),
    (
        "bench xattrtest",
        &[
            "cenote bench xattrtest /srv/tank --files 512 --streams 16",
            "cenote bench xattrtest --pool sim --files 256",
            "cenote bench xattrtest --pool /tmp --xattr sa --dnodesize 1k",
        ],
    ),
    (
        "bench mds-survey",
        &[
            "cenote bench mds-survey /srv/tank --device sdb --device sdc",
            "cenote bench mds-survey --pool sim --files 4096 --threads 1,8 --dirs 1,8",
        ],
    ),
    ("completions", &["cenote completions bash"]),
    ("man", &["cenote man", "cenote man /usr/local/share/man/man1"]),
    ("help", &["cenote help zpool iostat"]),
    (
        "zpool create",
        &[
            "zpool create tank /dev/sdb",
            "zpool create -o ashift=12 -O compression=zstd tank raidz2 /dev/sd[b-g] special mirror /dev/nvme[0-2]n1",
            "zpool create -n tank mirror /disks/a.img /disks/b.img",
        ],
    ),
    (
        "zpool add",
        &[
            "zpool add tank mirror /dev/sdd /dev/sde",
            "zpool add tank log mirror /dev/nvme0n1 /dev/nvme1n1",
            "zpool add -n -o ashift=12 tank cache /dev/sdf spare /dev/sdg",
        ],
    ),
    ("zpool remove", &["zpool remove tank mirror-1", "zpool remove tank /dev/nvme0n1"]),
    ("zpool destroy", &["zpool destroy tank"]),
    (
        "zpool import",
        &[
            "zpool import -d /disks",
            "zpool import -d /disks tank",
            "zpool import -o readonly=on -d /mnt/images 9129415271038914 rescued",
            "zpool import -F -n tank",
            "zpool import -F -o readonly=on tank",
            "zpool import -t tank tank2",
        ],
    ),
    ("zpool export", &["zpool export tank", "zpool export -a"]),
    ("zpool list", &["zpool list", "zpool list -v tank", "zpool list -Hp -o name,free"]),
    ("zpool status", &["zpool status", "zpool status -x", "zpool status -v tank 5", "zpool status -s tank"]),
    ("zpool iostat", &["zpool iostat -v tank 1", "zpool iostat -lq tank 5 12", "zpool iostat -w tank"]),
    ("zpool get", &["zpool get all tank", "zpool get -H -o value free tank", "zpool get all tank mirror-0"]),
    (
        "zpool set",
        &[
            "zpool set comment=rack-4 tank",
            "zpool set feature@large_blocks=enabled tank",
            "zpool set checksum_n=3 tank mirror-0",
        ],
    ),
    ("zpool history", &["zpool history tank", "zpool history -il tank"]),
    ("zpool sync", &["zpool sync", "zpool sync tank"]),
    (
        "zpool attach",
        &[
            "zpool attach tank /dev/sda /dev/sdb",
            "zpool attach -s tank /dev/sda /dev/sdb",
            "zpool attach -w tank 1234567890 /dev/sdc",
        ],
    ),
    ("zpool detach", &["zpool detach tank /dev/sdb"]),
    ("zpool events", &["zpool events", "zpool events -v tank", "zpool events -f", "zpool events -c"]),
    ("zpool offline", &["zpool offline tank /dev/sdb", "zpool offline -t tank /dev/sdb"]),
    ("zpool online", &["zpool online tank /dev/sdb", "zpool online -e tank /dev/sdb"]),
    ("zpool replace", &["zpool replace tank /dev/sdb /dev/sdd", "zpool replace -w tank /dev/sdb"]),
    ("zpool clear", &["zpool clear tank", "zpool clear tank /disks/a.img"]),
    ("zpool scrub", &["zpool scrub -w tank", "zpool scrub -p tank", "zpool scrub -e -w tank"]),
    ("zpool resilver", &["zpool resilver tank"]),
    ("zpool reopen", &["zpool reopen tank", "zpool reopen"]),
    ("zpool prefetch", &["zpool prefetch -t ddt tank"]),
    ("zpool reguid", &["zpool reguid tank", "zpool reguid -g 4711 tank"]),
    (
        "zpool split",
        &[
            "zpool split -n tank copy",
            "zpool split tank copy /dev/sdb /dev/sdd",
            "zpool split -R /mnt tank copy",
        ],
    ),
    ("zpool trim", &["zpool trim -w tank", "zpool trim -r 100M tank /dev/sdb", "zpool trim -s tank"]),
    ("zpool initialize", &["zpool initialize tank", "zpool initialize -c tank /dev/sdb"]),
    ("zpool upgrade", &["zpool upgrade", "zpool upgrade tank", "zpool upgrade -a"]),
    ("zpool wait", &["zpool wait -t resilver,replace tank", "zpool wait tank", "zpool wait -t scrub tank 5"]),
    ("zpool labelclear", &["zpool labelclear /dev/sdb"]),
    ("zpool version", &["zpool version"]),
    (
        "zfs create",
        &[
            "zfs create -o compression=zstd tank/home",
            "zfs create -s -V 100G -b 8K tank/db",
            "zfs create -p -V 10G tank/vms/one",
        ],
    ),
    (
        "zfs destroy",
        &["zfs destroy tank/db", "zfs destroy -rnv tank/vms", "zfs destroy -r tank/vms@monday%friday"],
    ),
    ("zfs snapshot", &["zfs snapshot -r tank/vms@monday", "zfs snapshot tank/db@1 tank/log@1"]),
    ("zfs rollback", &["zfs rollback tank/db@1", "zfs rollback -rf tank/vms/one@monday"]),
    ("zfs clone", &["zfs clone tank/db@1 tank/test", "zfs clone -p -o sync=disabled tank/db@1 tank/test/db"]),
    ("zfs promote", &["zfs promote tank/test"]),
    ("zfs hold", &["zfs hold backup tank/db@1", "zfs hold -r keep tank/vms@monday"]),
    ("zfs holds", &["zfs holds tank/db@1", "zfs holds -rH tank/vms@monday"]),
    ("zfs release", &["zfs release backup tank/db@1"]),
    (
        "zfs rename",
        &[
            "zfs rename tank/db tank/old/db",
            "zfs rename -p tank/db tank/archive/2026/db",
            "zfs rename -r tank/vms@monday @mon",
        ],
    ),
    (
        "zfs list",
        &["zfs list", "zfs list -r -o space tank", "zfs list -Hp -t volume -o name,volsize -S used"],
    ),
    ("zfs get", &["zfs get all tank/db", "zfs get -r -s local,received -o name,property,value all tank"]),
    ("zfs set", &["zfs set compression=lz4 tank/db", "zfs set volsize=200G tank/db"]),
    (
        "zfs userspace",
        &["zfs userspace tank/home", "zfs userspace -Hpn -o name,used -S used tank/home@monday"],
    ),
    ("zfs groupspace", &["zfs groupspace -t posixuser,posixgroup tank/home"]),
    ("zfs projectspace", &["zfs projectspace -s used tank/home"]),
    (
        "zfs project",
        &["zfs project -r /tank/home", "zfs project -p 7 -rs /tank/home/site", "zfs project -c /tank/home"],
    ),
    ("zfs inherit", &["zfs inherit compression tank/db", "zfs inherit -r compression tank"]),
    ("zfs mount", &["zfs mount", "zfs mount -a", "zfs mount -o ro tank/home"]),
    ("zfs unmount", &["zfs unmount tank/home", "zfs unmount -f /tank/home"]),
    ("zfs version", &["zfs version"]),
];

/// The command with its examples, and those of the commands below it.
pub fn add(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (words, lines)| {
        let path: Vec<&str> = words.split(' ').collect();
        with(command, &path, lines)
    })
}

fn with(command: Command, path: &[&str], lines: &[&str]) -> Command {
    match path {
        [] => {
            let heading = if lines.len() == 1 { "Example:" } else { "Examples:" };
            command.after_help(format!("{heading}\n  {}", lines.join("\n  ")))
        }
        [word, rest @ ..] => {
            let (word, rest) = ((*word).to_string(), rest.to_vec());
            command.mut_subcommand(word, |below| with(below, &rest, lines))
        }
    }
}
