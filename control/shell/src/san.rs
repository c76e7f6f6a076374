//! `configuration san`: the ways to targets, initiators and groups, and what one finds there.

use crate::context::{Context, side};
use crate::draft::Draft;
use crate::san_objects as objects;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use api::attributes::Shape;
use api::san::{DEFAULT_GROUP, FcPort, Members, San, SanState, wwn};
use api::{Reply, Request};

pub(crate) fn settable(context: &Context) -> Vec<Settable> {
    let text = |name: &str| Settable { name: name.into(), shape: Shape::Word, is_secret: false };
    let list = |name: &str| Settable { shape: Shape::List, ..text(name) };
    let secret = |name: &str| Settable { is_secret: true, ..text(name) };
    match context {
        Context::Object { of: Members::Targets, iqn, .. } => {
            let mut names = vec![
                text("alias"),
                text("auth"),
                text("targetchapuser"),
                secret("targetchapsecret"),
                list("interfaces"),
            ];
            if iqn.is_none() {
                names.insert(0, text("iqn"));
            }
            names
        }
        Context::Object { of: Members::Initiators, iqn, .. } => {
            let mut names = vec![text("alias"), text("chapuser"), secret("chapsecret")];
            if iqn.is_none() {
                names.insert(0, text("initiator"));
            }
            names
        }
        Context::Object { iqn: Some(_), .. } => vec![text("alias")],
        Context::Object { .. } => vec![text("wwn"), text("alias")],
        Context::Group { of, .. } => vec![text("name"), list(side(*of))],
        Context::Inquiry { .. } => vec![text("vendor"), text("product")],
        _ => Vec::new(),
    }
}

/// `target-000`: what is selected without its name.
fn label(what: &str, at: usize) -> String {
    format!("{what}-{at:03}")
}

fn word(of: Members) -> &'static str {
    side(of).trim_end_matches('s')
}

impl Shell<'_> {
    pub(crate) fn san_state(&mut self) -> Result<SanState> {
        match self.ask("", Request::San(San::Show))? {
            Reply::San(state) => Ok(*state),
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn enter_san(&mut self, words: &[String]) -> Result<Option<usize>> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (context, used) = match (self.here().clone(), &words[..]) {
            (Context::Configuration, ["san", ..]) => (Context::San, 1),
            (Context::San, ["targets", ..]) => (Context::Side(Members::Targets), 1),
            (Context::San, ["initiators", ..]) => (Context::Side(Members::Initiators), 1),
            // The protocol may be named on either side of the word.
            (Context::San, ["iscsi", "targets", ..]) => (Context::Side(Members::Targets), 2),
            (Context::San, ["iscsi", "initiators", ..]) => (Context::Side(Members::Initiators), 2),
            (Context::San, ["fc", "targets", ..]) => (Context::Side(Members::Targets), 2),
            (Context::San, ["fc", "initiators", ..]) => (Context::Side(Members::Initiators), 2),
            (Context::San, ["inquiry", ..]) => (Context::Inquiry { draft: Draft::default() }, 1),
            (Context::Side(of), ["iscsi", ..]) => (Context::Objects(of), 1),
            (Context::Side(of), ["fc", ..]) => (Context::Objects(of.other()), 1),
            (Context::Side(of), ["groups", ..]) => {
                self.push(Context::Objects(of));
                (Context::Groups(of), 1)
            }
            (Context::Objects(of), ["groups", ..]) => (Context::Groups(of), 1),
            (Context::Objects(of), ["create", ..]) => {
                (Context::Object { of, iqn: None, label: word(of).into(), draft: Draft::default() }, 1)
            }
            (Context::Groups(of), ["create", ..]) => {
                (Context::Group { of, name: None, label: "group".into(), draft: Draft::default() }, 1)
            }
            (Context::Objects(of), ["select", name, ..]) => {
                let (iqn, label) = self.find_object(of, name)?;
                (Context::Object { of, iqn: Some(iqn), label, draft: Draft::default() }, 2)
            }
            (Context::Groups(of), ["select", name, ..]) => {
                let (name, label) = self.find_group(of, name)?;
                (Context::Group { of, name: Some(name), label, draft: Draft::default() }, 2)
            }
            _ => return Ok(None),
        };
        self.push(context);
        Ok(Some(used))
    }

    /// By number, IQN or WWN, or alias.
    fn find_object(&mut self, of: Members, wanted: &str) -> Result<(String, String)> {
        let wanted = wanted.split_once('=').map_or(wanted, |(_, value)| value);
        let all = objects::names(&self.san_state()?, of);
        let wwn = if of.is_fc() { wwn(wanted) } else { None };
        let found = all.iter().enumerate().find(|(at, (iqn, alias))| {
            label(word(of), *at) == wanted
                || iqn.eq_ignore_ascii_case(wanted)
                || wwn.as_ref() == Some(iqn)
                || (!alias.is_empty() && alias == wanted)
        });
        let (at, (iqn, _)) = found.ok_or_else(|| format!("there is no {} \"{wanted}\"", word(of)))?;
        Ok((iqn.clone(), label(word(of), at)))
    }

    fn find_group(&mut self, of: Members, wanted: &str) -> Result<(String, String)> {
        let wanted = wanted.split_once('=').map_or(wanted, |(_, value)| value);
        let state = self.san_state()?;
        let found = state
            .groups(of)
            .iter()
            .enumerate()
            .find(|(at, g)| g.name == wanted || label("group", *at) == wanted);
        let (at, group) = found.ok_or_else(|| format!("there is no {} group \"{wanted}\"", word(of)))?;
        Ok((group.name.clone(), label("group", at)))
    }

    pub(crate) fn command_san(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here().clone(), &words[..]) {
            (Context::Objects(_) | Context::Groups(_), ["list"]) => {
                let text = self.lists_san()?.join("\n");
                self.print(&text);
            }
            (Context::Objects(of), ["destroy", name]) => {
                let (iqn, _) = self.find_object(of, name)?;
                self.destroy_object(of, iqn, &format!("destroy {name}"))?;
            }
            (Context::Groups(of), ["destroy", name]) => {
                let (group, _) = self.find_group(of, name)?;
                self.destroy_group(of, group, &format!("destroy {name}"))?;
            }
            (Context::Object { of, iqn: Some(iqn), .. }, ["destroy"]) => {
                self.destroy_object(of, iqn, "destroy")?;
                self.stack.pop();
            }
            (Context::Group { of, name: Some(name), .. }, ["destroy"]) => {
                self.destroy_group(of, name, "destroy")?;
                self.stack.pop();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn destroy_object(&mut self, of: Members, iqn: String, command: &str) -> Result {
        self.must_confirm(&format!("This destroys the {} \"{iqn}\".", word(of)), command)?;
        let request = match of {
            Members::Targets => San::TargetDestroy { iqn },
            Members::Initiators => San::InitiatorDestroy { iqn },
            Members::FcTargets | Members::FcInitiators => San::FcDestroy { of, wwn: iqn },
        };
        self.ask("", Request::San(request)).map(drop)
    }

    fn destroy_group(&mut self, of: Members, name: String, command: &str) -> Result {
        self.must_confirm(&format!("This destroys the {} group \"{name}\".", word(of)), command)?;
        self.ask("", Request::San(San::GroupDestroy { of, name })).map(drop)
    }

    pub(crate) fn commit_san(&mut self) -> Result {
        let here = self.here().clone();
        if here.draft().is_none_or(Draft::is_empty) && !here.is_new() {
            return Ok(());
        }
        let state = match &here {
            Context::Inquiry { .. } => self.san_state()?,
            _ => SanState::default(),
        };
        let request = objects::request(here, &state)?;
        self.ask("", Request::San(request)).map(drop)
    }

    pub(crate) fn properties_san(&mut self) -> Result<Vec<Shown>> {
        let here = self.here().clone();
        let state = self.san_state()?;
        Ok(objects::properties(&here, &state))
    }

    pub(crate) fn lists_san(&mut self) -> Result<Vec<String>> {
        let state = self.san_state()?;
        let list = match self.here() {
            Context::Objects(Members::FcTargets) => {
                let row = |(at, port): (usize, &FcPort)| {
                    vec![label("target", at), port.alias.clone(), port.wwn.clone(), port.status.clone()]
                };
                let rows: Vec<Vec<String>> = state.fc_targets.iter().enumerate().map(row).collect();
                let table = show::table("Targets", &["TARGET", "ALIAS", "WWN", "STATUS"], &rows);
                format!("{table}\nThis machine serves no port of Fibre Channel.\n")
            }
            Context::Objects(of) => {
                let title = if of.is_target() { "Targets" } else { "Initiators" };
                let name = if of.is_fc() { "WWN" } else { "IQN" };
                let names = objects::names(&state, *of).into_iter().enumerate();
                let rows: Vec<Vec<String>> =
                    names.map(|(at, (iqn, alias))| vec![label(word(*of), at), alias, iqn]).collect();
                show::table(title, &[&word(*of).to_uppercase(), "ALIAS", name], &rows)
            }
            Context::Groups(of) => {
                let row = |(at, group): (usize, &api::san::Group)| {
                    let members = match group.name.as_str() {
                        DEFAULT_GROUP => format!("all {}", side(*of)),
                        _ => group.members.join(", "),
                    };
                    vec![label("group", at), group.name.clone(), members]
                };
                let rows: Vec<Vec<String>> = state.groups(*of).iter().enumerate().map(row).collect();
                show::table("Groups", &["GROUP", "NAME", &side(*of).to_uppercase()], &rows)
            }
            _ => return Ok(Vec::new()),
        };
        Ok(vec![list])
    }

    pub(crate) fn names_san(&mut self) -> Vec<String> {
        let state = self.san_state().unwrap_or_default();
        match self.here() {
            Context::Objects(of) => {
                let names = objects::names(&state, *of).into_iter().enumerate();
                names.flat_map(|(at, (iqn, _))| [label(word(*of), at), iqn]).collect()
            }
            Context::Groups(of) => state.groups(*of).iter().map(|g| g.name.clone()).collect(),
            _ => Vec::new(),
        }
    }
}
