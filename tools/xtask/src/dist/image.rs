//! A container image from scratch, as an OCI layout: the program, the libraries it is linked with, and nothing else.
//!
//! No engine is needed to make it: `umoci` writes layout, layer and configuration.

use std::path::{Path, PathBuf};

use super::{Release, formats, printed, put, run_to_end};
use crate::Failure;

const ENTRY: [&str; 2] = ["--config.entrypoint=/usr/bin/cenote", "--config.cmd=serve"];
/// Directories that an engine mounts over, and the home.
const EMPTY: [&str; 4] = ["proc", "dev", "tmp", "var/lib/cenote"];

pub fn make(release: &Release) -> Result<(), Failure> {
    let tree = release.out.join("image-tree");
    let program = release.stage.join("usr/bin/cenote");
    let ldd = printed(release.command("ldd").arg(&program))?;
    for library in libraries(&ldd) {
        let to = tree.join(library.strip_prefix("/").unwrap_or(&library));
        put(&to, std::fs::read(&library)?)?;
        std::fs::set_permissions(&to, std::fs::metadata(&library)?.permissions())?;
    }
    std::fs::create_dir_all(tree.join("usr/bin"))?;
    formats::copy(&program, &tree.join("usr/bin/cenote"))?;
    formats::copy(&release.stage.join("usr/share/doc/cenote"), &tree.join("licences"))?;
    for directory in EMPTY {
        std::fs::create_dir_all(tree.join(directory))?;
    }
    let (layout, image) = (release.image(), tagged(release));
    run_to_end(release.command("umoci").args(["init", "--layout"]).arg(&layout))?;
    run_to_end(release.command("umoci").args(["new", "--image"]).arg(&image))?;
    let mut insert = release.command("umoci");
    let rootless = if is_root()? { &[][..] } else { &["--rootless"] };
    run_to_end(insert.arg("insert").args(rootless).arg("--image").arg(&image).arg(&tree).arg("/"))?;
    let mut config = release.command("umoci");
    config.args(["config", "--image"]).arg(&image).args(ENTRY);
    config.args(["--config.env=CENOTE_HOME=/var/lib/cenote", "--config.volume=/var/lib/cenote"]);
    config.args(["3260/tcp", "10809/tcp", "215/tcp"].map(|port| format!("--config.exposedports={port}")));
    run_to_end(&mut config)?;
    std::fs::remove_dir_all(&tree)?;
    let mut tar = release.command("tar");
    let file = release.out.join(format!("cenote-{}-image.tar", release.version));
    tar.arg("--create").arg("--file").arg(file).args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    run_to_end(tar.arg(format!("--mtime=@{}", release.epoch)).arg("--directory").arg(&layout).arg("."))
}

/// The image by its layout and its tag.
pub fn tagged(release: &Release) -> String {
    format!("{}:{}", release.image().display(), release.version)
}

fn is_root() -> Result<bool, Failure> {
    Ok(printed(std::process::Command::new("id").arg("-u"))? == "0\n")
}

/// The files that `ldd` names; what the kernel brings along has none.
fn libraries(ldd: &str) -> Vec<PathBuf> {
    let words = ldd.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(|word| Path::new(word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_paths_that_ldd_names() {
        let ldd = "\tlinux-vdso.so.1 (0x7ff)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)\n\t/lib64/ld.so (0x7f)\n";
        assert_eq!(libraries(ldd), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld.so"].map(PathBuf::from));
    }
}
