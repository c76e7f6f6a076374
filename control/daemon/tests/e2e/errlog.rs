//! `zpool scrub -e` on a device that has a rotten block, and then its good bytes again: what is said, and what is known.

use crate::home::Home;
use crate::sentences::{SERVE, copy, meanwhile, noise};
use interop::harness::{Need, Trial, trial};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "what_can_be_had_again_leaves_the_list_by_a_scrub_of_the_error_log",
        &[Need::Program("nbdcopy")],
        had_again,
    )]
}

fn had_again() {
    let home = Home::new();
    let (a, bytes) = (home.disk("a.img"), home.scratch.join("bytes"));
    home.run(&format!("zpool create -o compatibility=openzfs-2.2 tank {a}"));
    home.run("zfs create -s -V 16M -b 16K tank/v");
    let daemon = home.start(SERVE).0;
    noise(&bytes, 1);
    assert!(copy(&home, &bytes, "tank/v").wait().unwrap().success());
    home.run("zpool sync tank");
    home.run("zpool scrub -e -w tank");
    assert!(!home.run("zpool status tank").contains("scrub"), "nothing was in the log, so nothing was done");
    let (wanted, mut place) = (std::fs::read(&bytes).unwrap(), 0);
    let poke = |place: u64, bytes: &[u8]| {
        let file = std::fs::File::options().write(true).open(&a).unwrap();
        file.write_all_at(bytes, place).unwrap();
    };
    let daemon = meanwhile(&home, daemon, || {
        let disk = std::fs::read(&a).unwrap();
        let at = (0..disk.len() / 512).map(|n| n * 512).find(|at| disk[*at..][..512] == wanted[..512]);
        place = at.expect("the block is on the disk") as u64;
        poke(place, &[0x5a; 512]);
    });
    home.run("zpool wait -t resilver,scrub tank");
    home.fails("zpool scrub -w tank", 1);
    let said = home.fails("zpool scrub -e -w tank", 1);
    assert!(said.contains("error scrub of 'tank' found 1 errors that could not be repaired"), "{said}");
    let said = home.run("zpool status -v tank");
    for part in [" scrub: scrubbed 1 error blocks in 0 days 00:0", "        tank/v:<0x1>"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let daemon = meanwhile(&home, daemon, || poke(place, &wanted[..512]));
    assert!(home.run("zpool status -v tank").contains("        tank/v:<0x1>"), "it is not known yet");
    // What was over at the first look is history, and scans are told apart by the second that they began in.
    let began = Instant::now();
    while !home.run("zpool events").contains("ereport.fs.zfs.data")
        || began.elapsed() < Duration::from_secs(2)
    {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", home.run("zpool events"));
        std::thread::sleep(Duration::from_millis(200));
    }
    home.run("zpool scrub -e -w tank");
    let said = home.run("zpool status -v tank");
    assert!(
        said.contains(" scrub: scrubbed 1 error blocks") && said.contains("No known data errors"),
        "{said}"
    );
    let json = home.run("zpool status -j tank");
    for part in ["\"err_scrub_func\":\"ERRORSCRUB\"", "\"err_scrub_state\":\"FINISHED\""] {
        assert!(json.contains(part), "{part}: {json}");
    }
    let history = home.run("zpool history -i tank");
    for part in [
        "error scrub setup func=3 mintxg=0 maxtxg=",
        "error scrub done errors=1",
        "error scrub done errors=0",
    ] {
        assert!(history.contains(part), "{part}: {history}");
    }
    // Events are told of at the next look at the pool.
    let began = Instant::now();
    while !["start", "finish"]
        .iter()
        .all(|what| home.run("zpool events").contains(&format!("sysevent.fs.zfs.errorscrub_{what}")))
    {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", home.run("zpool events"));
        std::thread::sleep(Duration::from_millis(200));
    }
    // Which one is newer is known by the second that they began in.
    let began = Instant::now();
    while !home.run("zpool status tank").contains("  scan: scrub repaired 0B") {
        assert!(began.elapsed() < Duration::from_secs(60), "what is newer is told");
        home.run("zpool scrub -w tank");
    }
    assert!(home.fails("zpool scrub -s tank", 1).contains("there is no active scrub"));
    daemon.end();
}
