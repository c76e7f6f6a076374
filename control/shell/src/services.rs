//! `configuration services`: what serves clients; switched off and on, and moved.

use crate::context::Context;
use crate::draft::Draft;
use crate::shares::unexpected;
use crate::shell::Shell;
use crate::show;
use crate::vocabulary::{Result, Settable, Shown};
use api::attributes::Shape;
use api::{Reply, Request, ServiceState, Services, Switch};

pub(crate) fn settable() -> Vec<Settable> {
    vec![Settable { name: "listen".into(), shape: Shape::List, is_secret: false }]
}

fn words(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(String::from).collect()
}

impl Shell<'_> {
    fn all_services(&mut self) -> Result<Vec<ServiceState>> {
        match self.ask("", Request::Services(Services::Show))? {
            Reply::Services(all) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn service(&mut self, name: &str) -> Result<ServiceState> {
        let found = self.all_services()?.into_iter().find(|service| service.name == name);
        found.ok_or_else(|| format!("there is no service \"{name}\""))
    }

    /// By `select` and the name, or by the name alone.
    pub(crate) fn enter_services(&mut self, words: &[String]) -> Result<Option<usize>> {
        if !matches!(self.here(), Context::Services) {
            return Ok(None);
        }
        let (name, used) = match words {
            [verb, name, ..] if verb == "select" => (self.service(name)?.name, 2),
            [name, ..] => match self.all_services()?.into_iter().find(|service| service.name == *name) {
                Some(service) => (service.name, 1),
                None => return Ok(None),
            },
            [] => return Ok(None),
        };
        self.push(Context::Service { name, draft: Draft::default() });
        Ok(Some(used))
    }

    pub(crate) fn command_services(&mut self, words: &[String]) -> Result<bool> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (self.here().clone(), &words[..]) {
            (Context::Services, ["list"]) => {
                let text = self.lists_services()?.join("\n");
                self.print(&text);
            }
            (Context::Service { name, .. }, ["enable"]) => self.switch(name, Switch::Enable)?,
            (Context::Service { name, .. }, ["disable"]) => self.switch(name, Switch::Disable)?,
            (Context::Service { name, .. }, ["restart"]) => self.switch(name, Switch::Restart)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn switch(&mut self, name: String, to: Switch) -> Result {
        let clients = if to == Switch::Enable { 0 } else { self.service(&name)?.clients };
        if clients > 0 {
            let who = if clients == 1 { "a client".into() } else { format!("{clients} clients") };
            self.must_confirm(&format!("This ends {who}."), to.word())?;
        }
        self.ask("", Request::Services(Services::Switch { name, to })).map(drop)
    }

    pub(crate) fn commit_services(&mut self) -> Result {
        let Context::Service { name, draft } = self.here().clone() else { return Ok(()) };
        let Some(listen) = draft.get("listen") else { return Ok(()) };
        self.ask("", Request::Services(Services::Listen { name, addresses: words(listen) })).map(drop)
    }

    pub(crate) fn properties_services(&mut self) -> Result<Vec<Shown>> {
        let Context::Service { name, draft } = self.here().clone() else { return Ok(Vec::new()) };
        let service = self.service(&name)?;
        let listen = match draft.get("listen") {
            Some(listen) => Shown::new("listen", words(listen).join(", "), "uncommitted"),
            None if service.listen.is_empty() => Shown::new("listen", "", "default"),
            None => Shown::new("listen", service.listen.join(", "), ""),
        };
        Ok(vec![
            Shown::new("<status>", service.status(), ""),
            Shown::new("addresses", service.addresses.join(", "), ""),
            Shown::new("clients", service.clients.to_string(), ""),
            listen,
        ])
    }

    pub(crate) fn lists_services(&mut self) -> Result<Vec<String>> {
        let row = |service: ServiceState| {
            vec![service.name.clone(), service.status().into(), service.addresses.join(", ")]
        };
        let rows: Vec<Vec<String>> = self.all_services()?.into_iter().map(row).collect();
        Ok(vec![show::table("Services", &["NAME", "STATUS", "ADDRESSES"], &rows)])
    }

    pub(crate) fn names_services(&mut self) -> Vec<String> {
        self.all_services().unwrap_or_default().into_iter().map(|service| service.name).collect()
    }
}
