//! The handshake as a state machine: what was asked and what is known of the exports go in, answers come out.
//!
//! ```text
//!   greeting -> client flags -> begin
//!       ┌──────────────────────────────────────────────────────┐
//!       v                                                      │ Step::Next
//!   option -> Ask::decode -> need -> (session looks it up) -> answer ─┬─ Step::Transmit: on to requests
//!       ^                                                             ├─ Step::Close: hang up after the answer
//!       └── secured <- (session makes the TLS handshake) <────────────┴─ Step::Secure, after the answer
//! ```
//!
//! Where TLS is required nothing is looked up or told before it is there, and what was negotiated before is forgotten.
//!
//! Pure: [`Negotiation::need`] says which facts an answer depends on, and the session fetches them.

use crate::volume::{Listed, Volume};
use crate::wire::option::{Answers, Ask, No, code, info};
use crate::wire::{
    ALLOCATION, ALLOCATION_ID, GREETING_MAGIC, MAX_PAYLOAD, OPTION_MAGIC, handshake, transmission,
};
use units::{Error, Kind, Result};

/// What client and server have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Reads are answered in chunks, and errors carry a sentence.
    pub structured: bool,
    /// The client may ask for block status.
    pub contexts: bool,
}

/// What a client is told of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub name: String,
    pub description: String,
    pub size: u64,
    pub block_size: u32,
    pub read_only: bool,
    pub rotational: bool,
}

impl Offer {
    pub fn of(name: String, volume: &dyn Volume) -> Offer {
        Offer {
            name,
            description: volume.description(),
            size: volume.size(),
            block_size: volume.block_size(),
            read_only: volume.read_only(),
            rotational: volume.rotational(),
        }
    }

    fn flags(&self, structured: bool) -> u16 {
        use transmission::*;
        let both = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | SEND_CACHE;
        let access = if self.read_only { READ_ONLY } else { SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO };
        let medium = if self.rotational { ROTATIONAL } else { 0 };
        both | access | medium | if structured { SEND_DF } else { 0 }
    }

    /// The preferred size the protocol allows: a power of two from 512 up to the longest payload.
    fn preferred(&self) -> u32 {
        self.block_size.clamp(512, MAX_PAYLOAD).next_power_of_two()
    }
}

/// What the answer to an option depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    List,
    Look(String),
    Open(String),
}

#[derive(Debug)]
pub(crate) enum Facts {
    None,
    List(Result<Vec<Listed>>),
    Export(Result<Offer>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    /// The client begins TLS now; then [`Negotiation::secured`].
    Secure,
    Transmit(Terms),
    Close,
}

/// How a connection stands to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    /// There is none here.
    Absent,
    /// Nothing is told before it is there.
    Required,
    Present,
}

#[derive(Debug)]
pub(crate) struct Negotiation {
    /// The answer to an export name is not padded with 124 zeros.
    no_zeroes: bool,
    tls: Tls,
    structured: bool,
    /// The export for which `base:allocation` was selected, by the name the client gave.
    contexts_of: Option<String>,
}

pub(crate) fn greeting() -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&GREETING_MAGIC.to_be_bytes());
    bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    bytes[16..].copy_from_slice(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
    bytes
}

impl Negotiation {
    pub fn begin(client_flags: u32, tls: Tls) -> Result<Negotiation> {
        let ours = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        if client_flags & !ours != 0 {
            return Err(Error::invalid(format!("the NBD client set unknown flags: {client_flags:#x}")));
        }
        let no_zeroes = client_flags & u32::from(handshake::NO_ZEROES) != 0;
        Ok(Negotiation { no_zeroes, tls, structured: false, contexts_of: None })
    }

    /// The TLS handshake was made: the negotiation begins anew, and only the client's flags stay.
    pub fn secured(&mut self) {
        *self = Negotiation {
            no_zeroes: self.no_zeroes,
            tls: Tls::Present,
            structured: false,
            contexts_of: None,
        };
    }

    pub fn need(&self, ask: &Ask) -> Need {
        match ask {
            _ if self.tls == Tls::Required => Need::Nothing,
            Ask::List => Need::List,
            Ask::ExportName(name) | Ask::Info { go: true, name, .. } => Need::Open(name.clone()),
            Ask::Info { go: false, name, .. } => Need::Look(name.clone()),
            Ask::Contexts { name, .. } if self.structured => Need::Look(name.clone()),
            Ask::Contexts { .. } | Ask::Abort | Ask::StartTls | Ask::StructuredReply | Ask::Unknown => {
                Need::Nothing
            }
        }
    }

    /// Answers an option. `facts` are those that [`Negotiation::need`] named for it.
    pub fn answer(&mut self, ask: &Ask, facts: Facts, to: &mut Answers<'_>) -> Step {
        match (ask, facts) {
            (Ask::Abort, _) => {
                to.ack();
                Step::Close
            }
            (Ask::StartTls, _) => self.answer_start_tls(to),
            _ if self.tls == Tls::Required => insist_on_tls(to),
            (Ask::ExportName(name), Facts::Export(offer)) => self.answer_export_name(name, offer, to),
            (Ask::Info { go, name, wants }, Facts::Export(offer)) => match offer {
                Ok(offer) => self.answer_info(*go, name, wants, &offer, to),
                Err(e) => refuse(&e, to),
            },
            (Ask::List, Facts::List(list)) => answer_list(list, to),
            (Ask::Contexts { set, name, queries }, facts) => {
                self.answer_contexts(*set, name, queries, facts, to)
            }
            (Ask::StructuredReply, _) => {
                self.structured = true;
                to.ack();
                Step::Next
            }
            (Ask::Unknown, _) => no(No::Unsupported, "this server does not know the option", to),
            // The session brought other facts than were asked for.
            (Ask::ExportName(_), _) => Step::Close,
            (Ask::Info { .. } | Ask::List, _) => no(No::Policy, "the exports cannot be looked up now", to),
        }
    }

    /// Answers an option whose data could not be read. An export name has no answer that says no.
    pub fn answer_malformed(&mut self, why: &str, to: &mut Answers<'_>) -> Step {
        match to.option {
            code::EXPORT_NAME => Step::Close,
            code::STARTTLS => no(No::Invalid, why, to),
            _ if self.tls == Tls::Required => insist_on_tls(to),
            code::SET_META_CONTEXT => {
                self.contexts_of = None;
                no(No::Invalid, why, to)
            }
            _ => no(No::Invalid, why, to),
        }
    }

    fn terms(&self, name: &str) -> Terms {
        let contexts = self.structured && self.contexts_of.as_deref() == Some(name);
        Terms { structured: self.structured, contexts }
    }

    fn answer_start_tls(&self, to: &mut Answers<'_>) -> Step {
        match self.tls {
            Tls::Absent => no(No::Unsupported, "this server does not offer TLS here", to),
            Tls::Present => no(No::Invalid, "the connection is inside TLS already", to),
            Tls::Required => {
                to.ack();
                Step::Secure
            }
        }
    }

    fn answer_export_name(&self, name: &str, offer: Result<Offer>, to: &mut Answers<'_>) -> Step {
        let Ok(offer) = offer else { return Step::Close };
        to.out.extend_from_slice(&offer.size.to_be_bytes());
        to.out.extend_from_slice(&offer.flags(self.structured).to_be_bytes());
        if !self.no_zeroes {
            to.out.extend_from_slice(&[0; 124]);
        }
        Step::Transmit(self.terms(name))
    }

    fn answer_info(&self, go: bool, name: &str, wants: &[u16], offer: &Offer, to: &mut Answers<'_>) -> Step {
        to.info_export(offer.size, offer.flags(self.structured));
        if wants.contains(&info::NAME) {
            to.info_text(info::NAME, &offer.name);
        }
        if wants.contains(&info::DESCRIPTION) && !offer.description.is_empty() {
            to.info_text(info::DESCRIPTION, &offer.description);
        }
        if wants.contains(&info::BLOCK_SIZE) {
            to.info_block_size(1, offer.preferred(), MAX_PAYLOAD);
        }
        to.ack();
        if go { Step::Transmit(self.terms(name)) } else { Step::Next }
    }

    fn answer_contexts(
        &mut self,
        set: bool,
        name: &str,
        queries: &[String],
        facts: Facts,
        to: &mut Answers<'_>,
    ) -> Step {
        if set {
            // Whatever comes of it, an earlier choice is void.
            self.contexts_of = None;
        }
        match facts {
            Facts::Export(Ok(_)) => {}
            Facts::Export(Err(e)) => return refuse(&e, to),
            _ => return no(No::Invalid, "structured replies must be negotiated first", to),
        }
        if queries.iter().any(|q| selects_allocation(set, q)) || (!set && queries.is_empty()) {
            to.context(if set { ALLOCATION_ID } else { 0 }, ALLOCATION);
            if set {
                self.contexts_of = Some(name.to_string());
            }
        }
        to.ack();
        Step::Next
    }
}

/// To list, the namespace alone stands for all its contexts; to set, it must be said in full.
fn selects_allocation(set: bool, query: &str) -> bool {
    query == ALLOCATION || (!set && query == "base:")
}

fn answer_list(list: Result<Vec<Listed>>, to: &mut Answers<'_>) -> Step {
    match list {
        Ok(list) => {
            list.iter().for_each(|l| to.server(&l.name, &l.description));
            to.ack();
            Step::Next
        }
        Err(e) => refuse(&e, to),
    }
}

/// An export name has no answer that says no.
fn insist_on_tls(to: &mut Answers<'_>) -> Step {
    match to.option {
        code::EXPORT_NAME => Step::Close,
        _ => no(No::TlsRequired, "this server wants TLS before anything else (NBD_OPT_STARTTLS)", to),
    }
}

fn refuse(e: &Error, to: &mut Answers<'_>) -> Step {
    let how = if e.kind() == Kind::NotFound { No::Unknown } else { No::Policy };
    no(how, &e.to_string(), to)
}

fn no(how: No, why: &str, to: &mut Answers<'_>) -> Step {
    to.no(how, why);
    Step::Next
}

#[cfg(test)]
mod tests;
