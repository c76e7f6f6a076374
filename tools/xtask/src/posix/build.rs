//! Source trees on the mount: this repository is cloned, checked, and a crate of it built and tested; pjdfstest is cloned,
//! configured, built and cleaned.

use super::account::Account;
use super::pjdfstest::SOURCE;
use super::rig::{Rig, suite, sure};
use crate::house::cargo;
use crate::{Failure, root};
use std::process::Command;

const GIT: &str = "git clone -q --no-hardlinks \"$1\" house; cd house; git fsck --strict --no-dangling; test -z \"$(git status --porcelain)\"; \
     git gc -q; git fsck --strict --no-dangling; git log --oneline | wc -l; git grep -c mount -- docs | wc -l";
const CRATE: &str = "cd house; CARGO_TARGET_DIR=$PWD/target CARGO_INCREMENTAL=1 \"$1\" test -q --offline -p units; \
     CARGO_TARGET_DIR=$PWD/target \"$1\" build -q --offline -p ondisk; du -sh target; rm -rf target; \
     test -z \"$(git status --porcelain)\"";
const C_PROGRAM: &str = "git clone -q \"$1\" tree 2>/dev/null || cp -a \"$1\" tree; cd tree; autoreconf -ifs; ./configure -q; \
     make -s clean; make -s; ls -l pjdfstest; make -s distclean; cd ..; rm -rf tree house; test -z \"$(ls -A)\"";

pub fn run() -> Result<Account, Failure> {
    let from = suite("pjdfstest", SOURCE.0, SOURCE.1, "true")?;
    let rig = Rig::new("build", &["compression=lz4"])?;
    let sh = |script: &str, word: &std::ffi::OsStr| {
        sure(Command::new("sh").current_dir(rig.mounted()).args(["-ec", script, "sh"]).arg(word))
    };
    sh(GIT, root().as_os_str())?;
    sh(CRATE, std::ffi::OsStr::new(&cargo()))?;
    sh(C_PROGRAM, from.as_os_str())?;
    rig.end()?;
    let what = "a repository cloned, checked, packed, a crate of it built and tested; a C program configured and built";
    Ok(Account::new("build", what.into(), "all".into()))
}
