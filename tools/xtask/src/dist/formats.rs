//! Tarball, `.deb`, `.rpm`, ebuild, and the repositories that apt and yum read.

use std::path::{Path, PathBuf};

use super::{Release, printed, put, run_to_end};
use crate::{Failure, root};

const SUMMARY: &str =
    "storage appliance that creates, opens and serves OpenZFS pools, without a kernel module";
const HOMEPAGE_TEXT: &str = "\
Cenote serves volumes of OpenZFS pools over iSCSI and NBD, and mounts their
file systems through FUSE, from one ordinary process.";

/// What packages do when they come and go: units are read again, and a running service ends before its program does.
const AFTER: &str = "if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n";
const BEFORE_REMOVAL: &str = "if [ -d /run/systemd/system ]; then systemctl --no-reload disable --now cenote.service cenote.socket || true; fi\n";

pub fn all(release: &Release) -> Result<(), Failure> {
    tarball(release)?;
    ebuild(release)?;
    deb(release)?;
    rpm(release)
}

/// Everything below `usr`, owned by root, in the order of names.
fn tarball(release: &Release) -> Result<(), Failure> {
    let mut tar = release.command("tar");
    tar.arg("--create").arg("--gzip").arg("--file").arg(release.tarball());
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    let directory = format!("--transform=s,^,cenote-{}/,", release.version);
    tar.arg(format!("--mtime=@{}", release.epoch)).arg(directory);
    run_to_end(tar.arg("--directory").arg(&release.stage).arg("usr"))
}

/// The ebuild of `packaging/`, for this version, with the sums of the tarball.
fn ebuild(release: &Release) -> Result<(), Failure> {
    let file = release.ebuild();
    let place = file.parent().ok_or("an ebuild lies in a directory")?;
    put(&file, std::fs::read(root().join("packaging/cenote-bin.ebuild"))?)?;
    let tarball = release.tarball();
    let sum = |program: &str| -> Result<String, Failure> {
        let text = printed(release.command(program).arg(&tarball))?;
        Ok(text.split(' ').next().unwrap_or_default().to_owned())
    };
    let name = tarball.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let size = std::fs::metadata(&tarball)?.len();
    let (blake2b, sha512) = (sum("b2sum")?, sum("sha512sum")?);
    put(&place.join("Manifest"), format!("DIST {name} {size} BLAKE2B {blake2b} SHA512 {sha512}\n"))
}

fn deb(release: &Release) -> Result<(), Failure> {
    let architecture = printed(release.command("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let tree = release.out.join("deb");
    copy(&release.stage, &tree)?;
    // Debian's places of two things.
    std::fs::rename(
        tree.join("usr/share/zsh/site-functions"),
        tree.join("usr/share/zsh/vendor-completions"),
    )?;
    let doc = tree.join("usr/share/doc/cenote");
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| std::fs::read_to_string(root().join(name)));
    let [mit, apache] = licences;
    put(
        &doc.join("copyright"),
        format!("Cenote is MIT or Apache-2.0, at your choice.\n\n{}\n{}", mit?, apache?),
    )?;
    // dpkg-shlibdeps wants the file of a source package.
    let source = release.out.join("source");
    put(&source.join("debian/control"), "Source: cenote\n\nPackage: cenote\nArchitecture: any\n")?;
    let mut depends = release.command("dpkg-shlibdeps");
    let depends = printed(depends.current_dir(&source).arg("-O").arg(tree.join("usr/bin/cenote")))?;
    let depends =
        depends.trim().strip_prefix("shlibs:Depends=").ok_or("dpkg-shlibdeps names no libraries")?;
    put(&tree.join("DEBIAN/control"), control(&release.version, &architecture, depends))?;
    script(&tree.join("DEBIAN/postinst"), AFTER)?;
    script(&tree.join("DEBIAN/prerm"), &format!("if [ \"$1\" = remove ]; then\n{BEFORE_REMOVAL}fi\n"))?;
    script(&tree.join("DEBIAN/postrm"), AFTER)?;
    let pool = release.out.join("apt/pool/main/c/cenote");
    std::fs::create_dir_all(&pool)?;
    let file = pool.join(format!("cenote_{}_{architecture}.deb", release.version));
    run_to_end(release.command("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&tree).arg(&file))?;
    for directory in [&tree, &source] {
        std::fs::remove_dir_all(directory)?;
    }
    apt(release, &architecture)
}

fn control(version: &str, architecture: &str, depends: &str) -> String {
    let text = HOMEPAGE_TEXT.lines().map(|line| format!(" {line}\n")).collect::<String>();
    format!(
        "Package: cenote\nVersion: {version}\nArchitecture: {architecture}\nDepends: {depends}\nSuggests: fuse3\n\
         Section: admin\nPriority: optional\nMaintainer: The Cenote developers <cenote@localhost>\n\
         Description: {SUMMARY}\n{text}"
    )
}

fn script(path: &Path, body: &str) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    put(path, format!("#!/bin/sh\nset -e\n{body}"))?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

/// `dists/stable` over the pool of packages, as apt reads it. It is signed where the key is: see docs/packages.md.
fn apt(release: &Release, architecture: &str) -> Result<(), Failure> {
    let apt = release.out.join("apt");
    let list = printed(release.command("apt-ftparchive").current_dir(&apt).args(["packages", "pool"]))?;
    let packages = apt.join(format!("dists/stable/main/binary-{architecture}/Packages"));
    put(&packages, list)?;
    run_to_end(release.command("gzip").args(["-9", "-n", "-k"]).arg(&packages))?;
    let mut ftp = release.command("apt-ftparchive");
    for (key, value) in
        [("Suite", "stable"), ("Codename", "stable"), ("Components", "main"), ("Architectures", architecture)]
    {
        ftp.arg("-o").arg(format!("APT::FTPArchive::Release::{key}={value}"));
    }
    let text = printed(ftp.current_dir(&apt).args(["release", "dists/stable"]))?;
    put(&apt.join("dists/stable/Release"), text)
}

fn rpm(release: &Release) -> Result<(), Failure> {
    let work = release.out.join("rpmbuild");
    let spec = work.join("cenote.spec");
    put(&spec, of_spec(&release.version, &release.stage))?;
    let mut build = release.command("rpmbuild");
    build.arg("-bb").arg("--quiet").arg("--define").arg(format!("_topdir {}", work.display()));
    run_to_end(build.arg(&spec))?;
    let yum = release.out.join("yum");
    std::fs::create_dir_all(&yum)?;
    let file = rpm_file(&work.join("RPMS").join(std::env::consts::ARCH))?;
    std::fs::rename(&file, yum.join(file.file_name().unwrap_or_default()))?;
    std::fs::remove_dir_all(&work)?;
    run_to_end(release.command("createrepo_c").arg("--quiet").arg(&yum))
}

/// The package in a directory.
pub fn rpm_file(directory: &Path) -> Result<PathBuf, Failure> {
    let mut files = std::fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let found = files.find(|file| file.extension().is_some_and(|e| e == "rpm"));
    found.ok_or_else(|| format!("no .rpm is in {}", directory.display()).into())
}

/// The program is stripped already, and what it needs is found in it.
fn of_spec(version: &str, stage: &Path) -> String {
    format!(
        "%global debug_package %{{nil}}\n%global __os_install_post %{{nil}}\n%global _build_id_links none\n\
         Name: cenote\nVersion: {version}\nRelease: 1\nSummary: A {SUMMARY}\nLicense: MIT OR Apache-2.0\n\
         Suggests: fuse3\n\n%description\n{HOMEPAGE_TEXT}\n\n\
         %install\nmkdir -p %{{buildroot}}\ncp -a {}/usr %{{buildroot}}/\n\n\
         %post\n{AFTER}\n%preun\nif [ \"$1\" = 0 ]; then\n{BEFORE_REMOVAL}fi\n\n%postun\n{AFTER}\n\
         %files\n%defattr(-,root,root,-)\n/usr/bin/cenote\n/usr/lib/systemd/system/cenote.service\n\
         /usr/lib/systemd/system/cenote.socket\n/usr/share/man/man1/*\n/usr/share/doc/cenote\n\
         /usr/share/bash-completion/completions/cenote\n/usr/share/zsh/site-functions/_cenote\n\
         /usr/share/fish/vendor_completions.d/cenote.fish\n",
        stage.display()
    )
}

/// Copies a tree with all that its files have.
pub fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    run_to_end(std::process::Command::new("cp").arg("-a").arg("--reflink=auto").arg(from).arg(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_long_description_is_indented() {
        let text = control("1.2", "amd64", "libc6 (>= 2.34)");
        let (_, long) = text.split_once("Description: ").unwrap();
        assert!(long.lines().skip(1).all(|line| line.starts_with(' ')), "{text}");
        assert!(text.contains("Depends: libc6 (>= 2.34)\n"));
    }

    #[test]
    fn the_spec_runs_scripts_and_takes_the_stage() {
        let spec = of_spec("1.2", Path::new("/stage"));
        assert!(
            spec.contains("cp -a /stage/usr %{buildroot}/") && spec.contains("%preun\nif [ \"$1\" = 0 ]")
        );
    }
}
