//! Alerts over HTTP: where they are sent, and from where on something is one.

use crate::alerts::{
    Alerts, AlertsTold, Handler, Receiver, ReceiverChange, Severity, Thresholds, ThresholdsChange,
};
use crate::http::{Answer, Declared, Need, Stars, Word};
use crate::{Reply, Request, declared, shaped};
use serde_json::{Value, json};

impl Word for Severity {
    fn parse(text: &str) -> Option<Severity> {
        Severity::parse(text)
    }

    fn word(self) -> &'static str {
        Severity::word(self)
    }

    fn refusal(_: &str, text: &str) -> String {
        format!("'{text}' is no severity: {SEVERITIES}")
    }
}

impl Word for Handler {
    fn parse(text: &str) -> Option<Handler> {
        Handler::parse(text)
    }

    fn word(self) -> &'static str {
        Handler::word(self)
    }

    fn refusal(_: &str, text: &str) -> String {
        format!("'{text}' is no handler of alerts: {HANDLERS}")
    }
}

const SEVERITIES: &str = "info, warning or error";
const HANDLERS: &str = "syslog, webhook or mail";
const TO: &str = "Of syslog local, a socket's path or HOST[:PORT]; of a webhook its URL; of mail addresses, with commas between";
const LEAST: &str = "The least that is sent: info, warning (default) or error";
const SERVER: &str = "Of mail: smtp://HOST[:PORT], smtp+starttls:// or smtps://";
const FROM: &str = "Of mail: the address that it comes from";
const USER: &str = "Of mail: the user at its server; none: without a login";
const SECRET: &str = "Of a webhook: sent as Authorization: Bearer; of mail: the user's password. Empty: none";
const ENABLED: &str = "Whether alerts are sent to it";
const RECEIVERS: &str = "/api/alert/v1/receivers";
const A_RECEIVER: &str = "/api/alert/v1/receivers/{receiver}";
const THRESHOLDS_PATH: &str = "/api/alert/v1/thresholds";
const CONFIGURE: Need = Need::Right("alert", "allow_configure");

shaped! {
    pub RECEIVER: Receiver = "alert_receiver" at "/api/alert/v1/receivers/{receiver}" (name) {
        must "receiver" Text name, "Its name";
        must "handler" Text handler, HANDLERS;
        must "to" Text to, TO;
        must "severity" Text severity, LEAST;
        must "enabled" Flag enabled, ENABLED;
        must "server" Text server, SERVER;
        must "from" Text from, FROM;
        must "user" Text user, USER;
        must "secret" Secret has_secret as Stars, "Stars, if there is one";
        must "sent" Number sent, "Alerts that it took since the daemon began";
        must "dropped" Number dropped, "Those that were given up: its queue was full, or it took none for a day";
        must "waiting" Number waiting, "Those that are still to be sent";
        may "problem" Text problem, "Why the last try failed";
    }
}

shaped! {
    pub THRESHOLDS: Thresholds = "alert_thresholds" {
        must "space_percent" Number space_percent, "A pool that is so full is an alert; 0: never";
        must "sync_seconds" Number sync_seconds, "A transaction group that takes so long to be written is; 0: never";
        must "failed_logins" Number failed_logins, "So many logins that fail within a minute are; 0: never";
    }
}

declared! {
    pub SHOW: Get RECEIVERS, "List where alerts are sent";
    needs CONFIGURE;
    answers Answer::Several("receivers", &RECEIVER.shape);
    means { Request::Alerts(Alerts::Receivers) }
    gives |answer| Ok(Reply::Alerts(AlertsTold::Receivers(RECEIVER.all(answer, "receivers")?)));
    plain |reply| match reply {
        Reply::Alerts(AlertsTold::Receivers(all)) => Some(RECEIVER.tell_all(all, "receivers")),
        _ => None,
    };

    pub CREATE: Post RECEIVERS, "Send alerts to one more receiver";
    needs CONFIGURE;
    body "new_alert_receiver" {
        must "receiver" Text name, "Its name";
        must "handler" Text handler, HANDLERS;
        may "to" Text to, TO;
        may "severity" Text severity, LEAST;
        may "enabled" Flag enabled, ENABLED;
        may "server" Text server, SERVER;
        may "from" Text from, FROM;
        may "user" Text user, USER;
        may "secret" Secret secret, SECRET;
    }
    answers Answer::Nothing;
    means {
        Request::Alerts(Alerts::Create {
            name, handler, set: ReceiverChange { to, severity, enabled, server, from, user, secret },
        })
    }

    pub CHANGE: Put A_RECEIVER, "Change a receiver of alerts";
    needs CONFIGURE;
    path (receiver = name)
    body "alert_receiver_changes" {
        may "to" Text to, TO;
        may "severity" Text severity, LEAST;
        may "enabled" Flag enabled, ENABLED;
        may "server" Text server, SERVER;
        may "from" Text from, FROM;
        may "user" Text user, USER;
        may "secret" Secret secret, SECRET;
    }
    answers Answer::Nothing;
    means {
        Request::Alerts(Alerts::Change {
            name, set: ReceiverChange { to, severity, enabled, server, from, user, secret },
        })
    }

    pub DESTROY: Delete A_RECEIVER, "Send no alerts to a receiver any more";
    needs CONFIGURE;
    path (receiver = name)
    answers Answer::Nothing;
    means { Request::Alerts(Alerts::Destroy { name }) }
    said "configuration alerts" "destroy receiver", "sends none to one any more";
    said "configuration alerts {receiver}" "destroy", "takes it away";

    pub TEST: Put "/api/alert/v1/receivers/{receiver}/test", "Send a test to a receiver, and wait for what comes of it";
    needs CONFIGURE;
    path (receiver = name)
    answers Answer::Nothing;
    means { Request::Alerts(Alerts::Test { name }) }
    said "configuration alerts {receiver}" "test", "sends a test, and waits for what comes of it";

    pub SHOW_THRESHOLDS: Get THRESHOLDS_PATH, "From where on something is an alert";
    answers Answer::One("thresholds", &THRESHOLDS.shape);
    means { Request::Alerts(Alerts::Thresholds) }
    gives |answer| Ok(Reply::Alerts(AlertsTold::Thresholds(THRESHOLDS.one(answer, "thresholds")?)));
    plain |reply| match reply {
        Reply::Alerts(AlertsTold::Thresholds(told)) => {
            Some(json!({ "thresholds": Value::Object((THRESHOLDS.tell)(told)) }))
        }
        _ => None,
    };

    pub SET_THRESHOLDS: Put THRESHOLDS_PATH, "Change from where on something is an alert";
    needs CONFIGURE;
    body "alert_thresholds_changes" {
        may "space_percent" Number space_percent, "Percent of a pool; 0: never";
        may "sync_seconds" Number sync_seconds, "Seconds; 0: never";
        may "failed_logins" Number failed_logins, "Within a minute; 0: never";
    }
    answers Answer::Nothing;
    means {
        Request::Alerts(Alerts::SetThresholds(ThresholdsChange { space_percent, sync_seconds, failed_logins }))
    }
}

pub(super) static ALL: &[&Declared] =
    &[&SHOW, &CREATE, &CHANGE, &DESTROY, &TEST, &SHOW_THRESHOLDS, &SET_THRESHOLDS];
