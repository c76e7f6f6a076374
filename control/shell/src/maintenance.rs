//! `maintenance system`: deferred updates, and the configuration as a file.

use crate::context::Context;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::Result;
use api::{DeferredUpdate, Doctor, Reply, Request};

impl Shell<'_> {
    pub(crate) fn enter_maintenance(&mut self, word: &str) -> Option<usize> {
        let context = match (self.here(), word) {
            (Context::Maintenance, "hardware") => Context::Hardware,
            (Context::Maintenance, "system") => Context::System,
            (Context::System, "updates") => Context::Updates,
            _ => return None,
        };
        self.push(context);
        Some(1)
    }

    pub(crate) fn command_maintenance(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here(), &words[..]) {
            (Context::Maintenance, ["advice"]) => match self.ask("", Request::Doctor(Doctor::Advice))? {
                Reply::Advice(all) => self.print(&doctor::render(&all)),
                _ => return Err(unexpected()),
            },
            (Context::System, ["backup", file]) => {
                let to = absolute(file)?;
                self.ask("", Request::ConfigurationBackup { to })?;
            }
            (Context::System, ["restore", file]) => {
                let from = absolute(file)?;
                let what = "This replaces targets, initiators, groups and all other configuration.";
                self.must_confirm(what, &format!("restore {file}"))?;
                self.ask("", Request::ConfigurationRestore { from })?;
            }
            (Context::Updates, ["list"]) => {
                let text = self.lists_maintenance()?.join("\n");
                self.print(&text);
            }
            (Context::Updates, ["apply"]) => self.apply(None, &[])?,
            (Context::Updates, ["apply", pool, features @ ..]) => {
                let features: Vec<String> = features.iter().map(ToString::to_string).collect();
                self.apply(Some(pool), &features)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn updates(&mut self, pools: Vec<String>) -> Result<Vec<DeferredUpdate>> {
        match self.ask("", Request::DeferredUpdates { pools })? {
            Reply::DeferredUpdates(updates) => Ok(updates),
            _ => Err(unexpected()),
        }
    }

    fn apply(&mut self, pool: Option<&str>, features: &[String]) -> Result {
        let updates = self.updates(pool.map(String::from).into_iter().collect())?;
        let mut pools: Vec<String> = updates.into_iter().map(|u| u.pool).collect();
        pools.dedup();
        if pools.is_empty() && features.is_empty() {
            self.print("There are no deferred updates.\n");
            return Ok(());
        }
        if pools.is_empty() {
            pools.extend(pool.map(String::from));
        }
        let command = ["apply"].into_iter().chain(pool).chain(features.iter().map(String::as_str));
        let command = command.collect::<Vec<_>>().join(" ");
        let what = "An update cannot be taken back, and programs that do not know it may not open the pool any more.";
        self.must_confirm(what, &command)?;
        for pool in pools {
            let request = Request::ApplyUpdates { pool: pool.clone(), features: features.to_vec() };
            if let Reply::DeferredUpdates(done) = self.ask(&format!("shell: {command}"), request)? {
                let line =
                    |u: &DeferredUpdate| show::property(&format!("{pool} {}", u.feature), "enabled", "");
                let text: String = done.iter().map(line).collect();
                self.print(&text);
            }
        }
        Ok(())
    }

    pub(crate) fn lists_maintenance(&mut self) -> Result<Vec<String>> {
        let updates = self.updates(Vec::new())?;
        if updates.is_empty() {
            return Ok(vec!["There are no deferred updates.\n".into()]);
        }
        let row = |u: DeferredUpdate| vec![u.pool, u.feature, u.description];
        let rows: Vec<Vec<String>> = updates.into_iter().map(row).collect();
        Ok(vec![show::table("Deferred updates", &["POOL", "FEATURE", "DESCRIPTION"], &rows)])
    }
}

/// As the appliance, which stands elsewhere, will find it.
fn absolute(file: &str) -> Result<String> {
    let path = std::path::absolute(file).map_err(|e| format!("cannot find \"{file}\": {e}"))?;
    Ok(path.display().to_string())
}
