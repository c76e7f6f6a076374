//! Every target, on what is known and on what chance makes of it; the same on every machine.

#![allow(clippy::unwrap_used)]

use fuzz::{TARGETS, Target};
use sim::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Inputs that chance makes, for targets that are fast and for those that are not.
const MADE: [u64; 2] = [20_000, 250];
const SEED: u64 = 7;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// One input made of others: bytes changed, moved, repeated, cut off, and numbers that mean something at the edge.
fn mutate(inputs: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let any = |random: &mut Rng| inputs[random.below(inputs.len() as u64) as usize].clone();
    let mut bytes = any(random);
    for _ in 0..=random.below(6) {
        let at = |random: &mut Rng, bytes: &[u8]| random.below(bytes.len().max(1) as u64) as usize;
        let here = at(random, &bytes).min(bytes.len());
        match random.below(9) {
            0..=1 if !bytes.is_empty() => bytes[here] ^= 1 << random.below(8),
            2..=3 if !bytes.is_empty() => bytes[here] = random.next_u64() as u8,
            4 => {
                let edges = [0u64, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
                let edge = edges[random.below(edges.len() as u64) as usize].to_be_bytes();
                let width = [1, 2, 3, 4, 8][random.below(5) as usize];
                let end = (here + width).min(bytes.len());
                bytes[here..end].copy_from_slice(&edge[8 - (end - here)..]);
            }
            5 => bytes.truncate(here),
            6 => {
                let part = any(random);
                let from = at(random, &part).min(part.len());
                bytes.splice(here..here, part[from..].iter().copied());
            }
            7 => {
                let end = (here + random.below(64) as usize).min(bytes.len());
                let part = bytes[here..end].to_vec();
                bytes.extend(part);
            }
            _ => bytes.extend((0..random.below(40)).map(|_| random.next_u64() as u8)),
        }
        // Longer ones find nothing more, only later.
        bytes.truncate(32 << 10);
    }
    bytes
}

fn try_one(target: &Target, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err() {
        let path = std::env::temp_dir().join(format!("{}.input", target.name));
        std::fs::write(&path, bytes).unwrap();
        panic!("{}: its input is in {}: move it to corpus/{0}", target.name, path.display());
    }
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let mut inputs = (target.seeds)();
    assert!(inputs.len() >= 4, "{name}: too few proper inputs to make others of");
    inputs.extend(corpus(name));
    inputs.push(Vec::new());
    inputs.iter().for_each(|input| try_one(target, input));
    let count = std::env::var("FUZZ_INPUTS").ok().map(|n| n.parse().unwrap());
    let mut random = Rng::new(SEED);
    for _ in 0..count.unwrap_or(MADE[usize::from(target.is_slow)]) {
        try_one(target, &mutate(&inputs, &mut random));
    }
}

#[test]
fn no_scsi_command_does_harm() {
    run("scsi_command");
}

#[test]
fn no_text_of_a_login_does_harm() {
    run("iscsi_login");
}

#[test]
fn no_pdu_does_harm() {
    run("iscsi_pdus");
}

#[test]
fn no_nbd_option_does_harm() {
    run("nbd_options");
}

#[test]
fn no_nbd_request_does_harm() {
    run("nbd_requests");
}

#[test]
fn no_body_of_the_api_does_harm() {
    run("rest_body");
}

#[test]
fn no_cache_device_does_harm() {
    run("cache_device");
}

#[test]
fn every_target_has_a_test_and_a_harness() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (tests, manifest) =
        (include_str!("run.rs"), std::fs::read_to_string(dir.join("cargo-fuzz/Cargo.toml")).unwrap());
    for target in TARGETS {
        assert!(tests.contains(&format!("run(\"{}\")", target.name)), "{}", target.name);
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
        let harness = dir.join(format!("cargo-fuzz/fuzz_targets/{}.rs", target.name));
        assert!(std::fs::read_to_string(harness).unwrap().contains(target.name));
    }
}
