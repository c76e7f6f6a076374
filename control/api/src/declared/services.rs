//! Services over HTTP: what serves clients, and where.

use crate::http::{Answer, Args, Declared, Face, Held as _, Kind, Need, Shape, Shaped, may, must};
use crate::services::{ServiceState, Services, Switch};
use crate::{Reply, Request, declared};

const A_SERVICE: &str = "/api/service/v1/services/{service}";
const ADMINISTER: Need = Need::Right("svc", "allow_administer");
const ONE: Answer = Answer::One("service", &SERVICE.shape);

/// `<status>` is two values of the state.
pub static SERVICE: Shaped<ServiceState> = Shaped {
    shape: Shape::new(
        "service",
        &[
            must("href", Kind::Text, "Its path"),
            must("name", Kind::Text, "iscsi, nbd or rest"),
            must("<status>", Kind::Text, "online or disabled"),
            must("addresses", Kind::Texts, "Where clients reach it now"),
            must(
                "listen",
                Kind::Texts,
                "Where it was set to let clients in; none: on this machine alone. That of rest counts from the next start on",
            ),
            may("clients", Kind::Number, "Who is connected now"),
        ],
    ),
    tell: |service| {
        let told = [
            ("href", crate::http::filled(A_SERVICE, [service.name.as_str()]).into()),
            ("name", service.name.as_str().into()),
            ("<status>", service.status().into()),
            ("addresses", service.addresses.clone().into()),
            ("listen", service.listen.clone().into()),
            ("clients", service.clients.into()),
        ];
        told.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    },
    take: |args: &Args| {
        let status = args.text("<status>").unwrap_or_default();
        Ok(ServiceState {
            name: String::from_arg("name", args.get("name"))?,
            enabled: status != "disabled",
            addresses: Vec::from_arg("addresses", args.get("addresses"))?,
            listen: Vec::from_arg("listen", args.get("listen"))?,
            clients: u64::from_arg("clients", args.get("clients"))?,
            offline: status == "offline",
        })
    },
};

pub static GET_SERVICE: Face = Face::get(A_SERVICE, "A service", ONE);

declared! {
    pub SHOW: Get "/api/service/v1/services", "List the services";
    answers Answer::Several("services", &SERVICE.shape);
    means { Request::Services(Services::Show) }
    gives |answer| Ok(Reply::Services(SERVICE.all(answer, "services")?));

    pub LISTEN: Put A_SERVICE, "Change a service";
    needs ADMINISTER;
    path (service = name)
    body "service_changes" {
        must "listen" Texts addresses, "ADDRESS:PORT; none: on this machine alone. Of rest from the next start on";
    }
    answers ONE;
    means { Request::Services(Services::Listen { name, addresses }) }

    pub ENABLE: Put "/api/service/v1/services/{service}/enable", "Switch a service on, now and for good";
    needs ADMINISTER;
    path (service = name)
    answers ONE;
    means { Request::Services(Services::Switch { name, to: Switch::Enable }) }

    pub DISABLE: Put "/api/service/v1/services/{service}/disable",
        "Switch a service off, now and for good; its clients are ended, after what they have in flight";
    needs ADMINISTER;
    path (service = name)
    answers ONE;
    means { Request::Services(Services::Switch { name, to: Switch::Disable }) }

    pub RESTART: Put "/api/service/v1/services/{service}/restart", "End the clients of a service, who may come again";
    needs ADMINISTER;
    path (service = name)
    answers ONE;
    means { Request::Services(Services::Switch { name, to: Switch::Restart }) }
}

pub(super) static ALL: &[&Declared] = &[&SHOW, &LISTEN, &ENABLE, &DISABLE, &RESTART];
