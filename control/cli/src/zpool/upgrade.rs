//! `zpool upgrade`: features that pools do not have yet, listed or enabled.
//!
//! A feature that is enabled stays so, and a program that does not know it may refuse the pool: so the list is what is said
//! without an argument, and `compatibility` limits both.

use crate::args::zpool::Upgrade;
use crate::expect_reply;
use crate::session::{Outcome, Session};
use api::{DeferredUpdate, Reply, Request};

const HEAD: &str = "This system supports ZFS pool feature flags.\n\n";

const EXPLANATION: &str = "Some supported features are not enabled on the following pools. Once a
feature is enabled the pool may become incompatible with software
that does not support the feature. See zpool-features(7) for details.

Note that the pool 'compatibility' feature can be used to inhibit
feature upgrades.

POOL  FEATURE
---------------
";

pub(super) fn run(session: &mut Session<'_>, args: &Upgrade) -> Outcome {
    if !args.all && args.pools.is_empty() {
        let updates = deferred(session, &[])?;
        return session.show(&format!("{HEAD}{}", list(&updates)));
    }
    let mut names = args.pools.clone();
    if args.all {
        names = deferred(session, &[])?.into_iter().map(|update| update.pool).collect();
        names.dedup();
        if names.is_empty() {
            return session.show(&format!(
                "{HEAD}All pools are already formatted using feature flags.\n\n\
                 Every feature flags pool already has all supported and requested features enabled.\n"
            ));
        }
    }
    // Before the first that is done: what fails says nothing on the standard output.
    let mut head = HEAD;
    session.for_each(&names, |session, name| {
        let request = Request::ApplyUpdates { pool: name.into(), features: Vec::new() };
        let enabled = expect_reply!(session.ask(request)?, Reply::DeferredUpdates(updates) => updates);
        let head = std::mem::take(&mut head);
        session.show(&format!("{head}{}", enabled_on(name, &enabled)))
    })
}

fn deferred(session: &mut Session<'_>, pools: &[String]) -> Outcome<Vec<DeferredUpdate>> {
    let request = Request::DeferredUpdates { pools: pools.to_vec() };
    Ok(expect_reply!(session.ask(request)?, Reply::DeferredUpdates(updates) => updates))
}

fn list(updates: &[DeferredUpdate]) -> String {
    let mut text = "All pools are formatted using feature flags.\n\n".to_string();
    if updates.is_empty() {
        return text + "Every feature flags pool has all supported and requested features enabled.\n";
    }
    text += "\n";
    text += EXPLANATION;
    let mut last = None;
    for update in updates {
        if last != Some(&update.pool) {
            text += &format!("{}\n", update.pool);
            last = Some(&update.pool);
        }
        text += &format!("      {}\n", update.feature);
    }
    text + "\n"
}

fn enabled_on(pool: &str, enabled: &[DeferredUpdate]) -> String {
    if enabled.is_empty() {
        return format!("Pool '{pool}' already has all supported and requested features enabled.\n");
    }
    let lines: String = enabled.iter().map(|update| format!("  {}\n", update.feature)).collect();
    format!("Enabled the following features on '{pool}':\n{lines}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(pool: &str, feature: &str) -> DeferredUpdate {
        DeferredUpdate { pool: pool.into(), feature: feature.into(), ..DeferredUpdate::default() }
    }

    #[test]
    fn what_could_be_enabled_is_listed_by_pool() {
        let text = list(&[update("a", "blake3"), update("a", "zilsaxattr"), update("b", "blake3")]);
        assert!(text.ends_with("a\n      blake3\n      zilsaxattr\nb\n      blake3\n\n"), "{text}");
        assert!(list(&[]).ends_with("has all supported and requested features enabled.\n"));
        assert_eq!(
            enabled_on("a", &[update("a", "blake3")]),
            "Enabled the following features on 'a':\n  blake3\n\n"
        );
        assert!(enabled_on("a", &[]).starts_with("Pool 'a' already has all"));
    }
}
