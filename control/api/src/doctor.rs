//! What the adviser is asked: what is set wrong here, and what it knows. Advice is as [`doctor`] has it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doctor {
    /// All that is to be changed, as far as the appliance sees it.
    Advice,
    /// What of it is about one dataset: for the place where it is set.
    Dataset { name: String },
    /// The facts themselves, beside which those of a client are judged.
    Facts,
}
