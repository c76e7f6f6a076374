//! The adviser over HTTP: what is set wrong, each with what was seen, why it costs, the fix and the way back.
//!
//! Where a share is made or changed, what is to be said of the settings is beside it in the answer, as `advice`.

use crate::http::{Answer, Declared, Kind, Shape, Wrong, may, must};
use crate::{Doctor, Reply, Request, declared};
use doctor::Advice;
use serde_json::{Value, json};

static FIX: Shape = Shape::new(
    "advice_fix",
    &[
        must("system", Kind::Text, "Whose setting it changes: Cenote, Linux, Solaris, Windows or ESXi"),
        must("text", Kind::Text, "Commands or lines of a file, and where they go"),
    ],
);

static SETTING: Shape = Shape::new(
    "advice_setting",
    &[
        must("dataset", Kind::Text, "Of this dataset"),
        must("property", Kind::Text, "This property"),
        must("value", Kind::Text, "Should be this"),
    ],
);

static ADVICE: Shape = Shape::new(
    "advice",
    &[
        must("rule", Kind::Text, "The rule that says so"),
        must("properties", Kind::Texts, "The properties of a dataset that it judges"),
        must("about", Kind::Text, "A pool, a device, a dataset"),
        must("seen", Kind::Text, "The figure, and where it was seen"),
        must("costs", Kind::Text, "Why it costs"),
        may("lab", Kind::Text, "What the lab shows of such a change, and by which command"),
        must("fixes", Kind::List(&FIX), "What to change, for each system"),
        must("undo", Kind::Text, "How to take it back"),
        may(
            "setting",
            Kind::Object(&SETTING),
            "The fix, where it is one setting of a dataset and nothing else",
        ),
    ],
);

static FACTS: Shape = Shape::new(
    "doctor_facts",
    &[must("text", Kind::Text, "NAME<tab>VALUE in each line, between 'cenote facts 1' and 'end'")],
);

const SEVERAL: Answer = Answer::Several("advice", &ADVICE);

fn told(reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Advice(all) => Some(json!({ "advice": all })),
        _ => None,
    }
}

fn taken(answer: &Value) -> Result<Reply, Wrong> {
    let all = serde_json::from_value::<Vec<Advice>>(answer["advice"].clone());
    all.map(Reply::Advice).map_err(|e| Wrong::Invalid(format!("advice: {e}")))
}

declared! {
    pub LIST: Get "/api/doctor/v1/advice", "What is set wrong, and what to change";
    answers SEVERAL;
    means { Request::Doctor(Doctor::Advice) }
    gives taken;
    plain told;

    pub OF_DATASET: Get "/api/doctor/v1/datasets/{dataset}/advice", "What of it is about one dataset";
    path (dataset = name)
    answers SEVERAL;
    means { Request::Doctor(Doctor::Dataset { name }) }
    gives taken;
    plain told;

    pub KNOWN: Get "/api/doctor/v1/facts", "What is known here, beside which the facts of a client are judged";
    answers Answer::One("facts", &FACTS);
    means { Request::Doctor(Doctor::Facts) }
    gives |answer| Ok(Reply::Facts { text: answer["facts"]["text"].as_str().unwrap_or_default().into() });
    plain |reply| match reply {
        Reply::Facts { text } => Some(json!({ "facts": { "text": text } })),
        _ => None,
    };
}

pub static ALL: &[&Declared] = &[&LIST, &OF_DATASET, &KNOWN];
