//! Trees, by the programs that everybody uses on them.

use crate::bench::{Bench, NEEDS};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run};
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    let git = [&NEEDS[..], &[Need::Program("git")]].concat();
    vec![
        trial("a_tree_that_is_copied_packed_and_removed_is_the_same_all_the_way", &NEEDS, walk),
        trial("a_directory_that_is_listed_while_it_changes_shows_what_stays_once", &NEEDS, changing),
        trial("a_repository_is_cloned_changed_and_checked", &git, repository),
    ]
}

fn sh(dir: &Path, script: &str) -> String {
    run(command("sh").arg("-ec").arg(script).current_dir(dir))
}

fn walk() {
    let bench = Bench::new();
    let source = bench.beside("source");
    std::fs::create_dir(&source).unwrap();
    sh(
        &source,
        "mkdir -p a/b/c 'name with spaces' empty; seq 1 20000 > a/numbers; ln a/numbers a/b/linked
         ln -s ../numbers a/b/link; mkfifo a/pipe; mknod a/null c 1 3; chmod 4755 a/numbers; chmod 1777 empty
         for i in $(seq 1 300); do echo $i > a/b/c/file-with-a-rather-long-name-$i; done
         truncate -s 5M a/sparse; printf end >> a/sparse; touch -d '1999-12-31 23:59:59.123456789 UTC' a/old
         chown 1000:1001 a/b/link a/old -h; : > 'name with spaces/'$(printf %0255d 7)",
    );
    let root = bench.root();
    let script = format!(
        "cp -a {source}/. tree; diff -r --no-dereference -x null -x pipe {source} tree; tar -cf t.tar tree; mkdir out
         tar -xpf t.tar -C out; diff -r --no-dereference -x null -x pipe tree out/tree
         (cd {source}; find . -printf '%P %m %U %G %y %n %l %s\\n' | grep -v ' d ' | sort) > one
         (cd out/tree; find . -printf '%P %m %U %G %y %n %l %s\\n' | grep -v ' d ' | sort) > two; cmp one two
         stat -c %y tree/a/old; find tree -type f | wc -l; rm -r tree out",
        source = source.display()
    );
    let said = sh(&root, &script);
    assert!(said.starts_with("1999-12-31 23:59:59.123456789"), "{said}");
    assert_eq!(said.lines().nth(1), Some("305"));
    let left: Vec<_> = std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    // All is on disk, and there again.
    bench.unmount(false).unwrap();
    bench.mount();
    assert_eq!(sh(&root, "cmp one two; ls -A | wc -l"), "3\n");
}

fn changing() {
    let bench = Bench::new();
    let dir = bench.root().join("d");
    std::fs::create_dir(&dir).unwrap();
    (0..3000).for_each(|i| drop(std::fs::File::create(dir.join(format!("stays-{i}"))).unwrap()));
    let mut seen = std::collections::BTreeMap::new();
    for (i, entry) in std::fs::read_dir(&dir).unwrap().enumerate() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        *seen.entry(name).or_insert(0) += 1;
        std::fs::File::create(dir.join(format!("new-{i}"))).unwrap();
        if i % 2 == 0 {
            std::fs::remove_file(dir.join(format!("new-{i}"))).unwrap();
        }
        if i > 6000 {
            break;
        }
    }
    for i in 0..3000 {
        assert_eq!(seen.get(&format!("stays-{i}")), Some(&1), "stays-{i}");
    }
}

fn repository() {
    let bench = Bench::new();
    let git = "git -c user.name=t -c user.email=t@t -c init.defaultBranch=main -c gc.auto=0";
    sh(
        &bench.root(),
        &format!(
            "mkdir one; cd one; {git} init -q; for i in $(seq 1 200); do seq 1 $i > f$i; done; {git} add .
             {git} commit -q -m first; rm f1; seq 1 9 >> f2; {git} commit -qam second; cd ..
             {git} clone -q one two; cd two; {git} gc -q; {git} fsck --strict; test -z \"$({git} status --porcelain)\"
             diff -r --exclude=.git . ../one"
        ),
    );
}
