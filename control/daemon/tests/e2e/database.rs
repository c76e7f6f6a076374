//! The published deployment, whole: typed into the shell, found and used over iSCSI, and a database on it that is read back
//! after the daemon was killed in the middle.
//!
//! ```text
//!   cenote shell ─▶ cenote serve ◀─ iscsi-ls                         what each initiator sees
//!                        ▲  killed, started again
//!                        └─ qemu-nbd ◀─ nbdfuse ◀─ loop ◀─ XFS ◀─ mariadbd     both LUNs, by an initiator in user space
//! ```

use crate::clients::{FUSE, LOOP, XFS, assert_clean_xfs, until_there};
use crate::home::{Daemon, Home};
use crate::shell::{DEPLOYMENT, GROUPS, shell, typed};
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, feed, run, said};
use interop::zdb;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HOST: &str = "iqn.1993-08.org.debian:01:abc";
const STRANGER: &str = "iqn.1993-08.org.debian:01:stranger";
const TARGET: &str = "iqn.2001-04.com.example:t1";

pub fn trials() -> Vec<Trial> {
    let program = Need::Program;
    let needs = [
        ROOT,
        FUSE,
        LOOP,
        XFS,
        program("iscsi-ls"),
        program("iscsi-inq"),
        program("qemu-nbd"),
        program("nbdfuse"),
        program("losetup"),
        program("mkfs.xfs"),
        program("xfs_repair"),
        program("mariadb"),
        program("mariadbd"),
        program("mariadb-install-db"),
        program("zdb"),
    ];
    vec![trial("a_database_lives_on_the_published_deployment_through_a_kill", &needs, database)]
}

/// A daemon at a port of its own, so that clients find it again after it was killed.
fn serve(home: &Home, port: u16) -> Daemon {
    home.start(&format!("serve --listen 127.0.0.1:0 --iscsi 127.0.0.1:{port} --arc-max 256M")).0
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn database() {
    let home = Home::new();
    let disk = home.scratch.join("disk.img");
    std::fs::File::create(&disk).unwrap().set_len(2 << 40).unwrap();
    home.run(&format!("zpool create tank {}", disk.display()));
    let port = free_port();
    let daemon = serve(&home, port);
    shell(&home, &[], GROUPS, 0);
    shell(&home, &[], &typed(DEPLOYMENT), 0);
    shell(&home, &[], "configuration san inquiry set vendor=SUN product=\"ZFS Storage 7430\"", 0);

    seen(&home, port);

    let mut mounts =
        vec![Mounted::new(&home, port, 0, "innodb-data"), Mounted::new(&home, port, 1, "innodb-log")];
    let mut server = Database::install(&home, &mounts);
    server.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (n INT PRIMARY KEY, text VARCHAR(200)) ENGINE=InnoDB;");
    server.sql(&insert(0..2000));
    daemon.kill();
    let daemon = serve(&home, port);
    // The initiator comes back by itself, and what was under way is done again.
    server.sql(&insert(2000..4000));
    server.stop();
    server.start();
    assert_eq!(
        server.sql("SELECT COUNT(*), SUM(n), COUNT(DISTINCT text) FROM shop.t"),
        "4000\t7998000\t4000\n"
    );
    assert!(server.sql("CHECK TABLE shop.t").contains("OK"));
    server.stop();
    drop(server);
    while let Some(mount) = mounts.pop() {
        mount.end();
    }
    daemon.end();
    zdb::assert_clean(home.scratch.path(), "tank");
}

fn insert(numbers: std::ops::Range<u32>) -> String {
    let rows: Vec<String> =
        numbers.map(|n| format!("({n}, 'row {n} of a table that is to be read back')")).collect();
    rows.chunks(100).map(|rows| format!("INSERT INTO shop.t VALUES {};", rows.join(", "))).collect()
}

/// Discovery and masking: the host sees both LUNs, a stranger the one that was given to everybody.
fn seen(home: &Home, port: u16) {
    let list = |initiator: &str| {
        run(command("iscsi-ls").args(["-s", "-i", initiator, &format!("iscsi://127.0.0.1:{port}")]))
    };
    let host = list(HOST);
    for target in [TARGET, "iqn.2001-04.com.example:t2"] {
        assert!(host.contains(target), "both paths are told: {host}");
    }
    let luns = |text: &str| text.lines().filter(|l| l.contains("Lun:")).count();
    assert_eq!(luns(&host), 4, "two LUNs by two paths: {host}");
    let stranger = list(STRANGER);
    assert_eq!(luns(&stranger), 2, "one LUN by two paths: {stranger}");
    let uri = format!("iscsi://127.0.0.1:{port}/{TARGET}/0");
    let inquiry = |page: &[&str]| run(command("iscsi-inq").args(["-i", HOST]).args(page).arg(&uri));
    let plain = inquiry(&[]);
    assert!(plain.contains("SUN") && plain.contains("ZFS Storage 7430"), "{plain}");
    let guid = home.run("zfs get -H -o value cenote:lunguid tank/mysql/innodb-data");
    let page = inquiry(&["-e", "1", "-c", "131"]);
    assert!(
        page.to_lowercase().contains(guid.trim()),
        "the identifier is that of the dataset: {guid}: {page}"
    );
}

/// A LUN as a mounted file system.
struct Mounted {
    device: String,
    fuse: PathBuf,
    mount: PathBuf,
    servers: Vec<Child>,
}

impl Mounted {
    fn new(home: &Home, port: u16, lun: u16, name: &str) -> Mounted {
        let socket = home.scratch.join(format!("{name}.sock"));
        let (fuse, mount) = (home.scratch.join(format!("{name}.fuse")), home.scratch.join(name));
        std::fs::create_dir(&fuse).unwrap();
        std::fs::create_dir(&mount).unwrap();
        let image = format!(
            "driver=raw,file.driver=iscsi,file.transport=tcp,file.portal=127.0.0.1:{port},file.target={TARGET},\
             file.lun={lun},file.initiator-name={HOST}"
        );
        let mut qemu = command("qemu-nbd");
        qemu.args(["--image-opts", "--persistent", "--shared=0", "--discard=unmap", "--cache=none", "-k"]);
        let qemu = qemu.arg(&socket).arg(&image).spawn().unwrap();
        until_there(&socket);
        let nbdfuse =
            command("nbdfuse").arg(&fuse).arg(format!("nbd+unix:///?socket={}", socket.display())).spawn();
        let file = fuse.join("nbd");
        until_there(&file);
        let device = run(command("losetup").args(["--find", "--show"]).arg(&file)).trim().to_string();
        run(command("mkfs.xfs").args(["-q", "-K", &device]));
        let options = "noatime,nodiratime,logbufs=8,logbsize=256k";
        run(command("mount").args(["-t", "xfs", "-o", options]).arg(&device).arg(&mount));
        Mounted { device, fuse, mount, servers: vec![nbdfuse.unwrap(), qemu] }
    }

    fn end(mut self) {
        run(command("umount").arg(&self.mount));
        assert_clean_xfs(&self.device);
        run(command("losetup").args(["--detach", &self.device]));
        run(command("umount").arg(&self.fuse));
        let _ = self.servers[0].wait();
        let _ = self.servers[1].kill();
        let _ = self.servers[1].wait();
        self.servers.clear();
    }
}

impl Drop for Mounted {
    /// Only a test that failed comes here with servers.
    fn drop(&mut self) {
        if self.servers.is_empty() {
            return;
        }
        for what in [&self.mount, &self.fuse] {
            let _ = command("umount").arg("-l").arg(what).status();
        }
        let _ = command("losetup").args(["--detach", &self.device]).status();
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

struct Database {
    socket: PathBuf,
    data: PathBuf,
    log: PathBuf,
    /// What the server says of itself.
    said: PathBuf,
    child: Option<Child>,
}

impl Database {
    /// Its data on the first LUN and its redo log on the second.
    fn install(home: &Home, mounts: &[Mounted]) -> Database {
        let (data, log) = (mounts[0].mount.join("data"), mounts[1].mount.join("log"));
        std::fs::create_dir(&log).unwrap();
        run(command("mariadb-install-db")
            .args([
                "--no-defaults",
                "--user=root",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--innodb-log-group-home-dir={}", log.display())));
        let mut database = Database {
            socket: home.scratch.join("db.sock"),
            data,
            log,
            said: home.scratch.join("db.err"),
            child: None,
        };
        database.start();
        database
    }

    fn start(&mut self) {
        let path = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let child = command("mariadbd")
            .args(["--no-defaults", "--user=root", "--skip-networking", "--innodb-page-size=16K"])
            .args([
                "--innodb-buffer-pool-size=16M",
                "--innodb-log-file-size=16M",
                "--innodb-flush-method=O_DIRECT",
            ])
            .args([path("datadir", &self.data), path("socket", &self.socket)])
            .arg(path("innodb-log-group-home-dir", &self.log))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&self.said).unwrap())
            .spawn();
        self.child = Some(child.unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        while !self.client().args(["-e", "SELECT 1"]).output().unwrap().status.success() {
            let said = || std::fs::read_to_string(&self.said).unwrap_or_default();
            assert!(Instant::now() < until, "the database does not start: {}", said());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn client(&self) -> Command {
        let mut client = command("mariadb");
        client.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"]);
        client.arg(format!("--socket={}", self.socket.display()));
        client
    }

    fn sql(&self, text: &str) -> String {
        let output = feed(&mut self.client(), text);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            self.sql("SHUTDOWN");
            assert!(child.wait().unwrap().success(), "the database ends in peace");
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
