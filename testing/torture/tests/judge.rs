//! Random work on real files, judged by OpenZFS's own `zdb`.

use std::path::Path;
use std::process::Command;
use torture::{Bench, Mix, Shape};

fn judge(dir: &Path) -> String {
    let output = Command::new("zdb")
        .args(["-e", "-p"])
        .arg(dir)
        .args(["-bcc", "tank"])
        .output()
        .expect("zdb was found");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let sound = text.contains("No leaks (block sum matches space maps exactly)");
    assert!(output.status.success() && sound, "zdb is not content: {}\n{text}", output.status);
    text
}

#[test]
fn zdb_finds_no_leak_and_no_error_in_a_pool_worked_over_by_cenote() {
    if Command::new("zdb").arg("-V").output().is_err() {
        println!("skipped: zdb (Debian's zfsutils-linux) is not installed");
        return;
    }
    let ops = std::env::var("TORTURE_OPS").ok().and_then(|v| v.parse().ok()).unwrap_or(600);
    for shape in Shape::all() {
        let dir = std::env::temp_dir().join(format!(
            "cenote-judge-{}-{:?}-{}",
            std::process::id(),
            shape.devices,
            shape.ashift
        ));
        std::fs::create_dir_all(&dir).unwrap();
        let name = dir.to_string_lossy().into_owned();
        for path in shape.paths(&name) {
            std::fs::File::create(path).unwrap().set_len(256 << 20).unwrap();
        }
        linux::block_on(async move {
            let mix = Mix { volumes: 9, ..Mix::default() };
            let mut bench = Bench::create(&name, &shape, mix, Default::default()).await.unwrap();
            for _ in 0..ops {
                bench.step().await.unwrap();
            }
            bench.finish().await.unwrap();
        });
        judge(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
