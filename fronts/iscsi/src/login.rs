//! The login of one connection, as questions and answers. Pure but for chance and the directory.
//!
//! ```text
//!   security (0) ──▶ operational (1) ──▶ full feature (3)          T asks to go on, we agree when we have what we need
//!      └───────────────────────────────────▶
//! ```
//!
//! Invariants: no initiator leaves the security stage, or steps over it, without the proof that the directory asks for; a
//! failure says no more than its status.

use crate::chap::{Algorithm, Credentials, is_same};
use crate::directory::{Asking, Authentication, Directory, Welcome};
use crate::params::{MAX_RECEIVE, Params, Said, parse};
use crate::text::{Pairs, as_hexadecimal, binary};
use world::Address;

/// Why a login ends: class and detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub u8, pub u8);

impl Failure {
    pub const INITIATOR: Failure = Failure(2, 0);
    pub const AUTHENTICATION: Failure = Failure(2, 1);
    pub const NOT_FOUND: Failure = Failure(2, 3);
    pub const VERSION: Failure = Failure(2, 5);
    pub const TOO_MANY: Failure = Failure(2, 6);
    pub const MISSING: Failure = Failure(2, 7);
    pub const SESSION_TYPE: Failure = Failure(2, 9);
    pub const NO_SESSION: Failure = Failure(2, 10);
    pub const IN_LOGIN: Failure = Failure(2, 11);
    pub const UNAVAILABLE: Failure = Failure(3, 1);
    pub const RESOURCES: Failure = Failure(3, 2);
}

pub(crate) const SECURITY: u8 = 0;
pub(crate) const OPERATIONAL: u8 = 1;
pub(crate) const FULL: u8 = 3;

/// One request of the client, with all its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub stage: u8,
    /// T and NSG.
    pub next: Option<u8>,
    pub pairs: Pairs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub pairs: Pairs,
    /// The stage that begins now.
    pub next: Option<u8>,
}

/// How far the proof has come.
#[derive(Debug)]
enum Proof {
    /// Nothing was said of it.
    Open,
    /// CHAP was chosen; the client must choose its digest.
    Chosen,
    Challenged {
        algorithm: Algorithm,
        id: u8,
        challenge: Vec<u8>,
    },
    Done,
}

/// What a login came to.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub asking: Asking,
    /// None: a discovery session.
    pub target: Option<(String, Welcome)>,
    pub params: Params,
}

#[derive(Debug)]
pub(crate) struct Login<'a> {
    directory: &'a dyn Directory,
    asking: Asking,
    stage: Option<u8>,
    target: Option<(String, Welcome)>,
    authentication: Authentication,
    proof: Proof,
    params: Params,
    declared: bool,
}

const CHALLENGE: usize = 16;

impl<'a> Login<'a> {
    pub fn new(directory: &'a dyn Directory, portal: Address, from: Address) -> Login<'a> {
        Login {
            directory,
            asking: Asking { initiator: String::new(), portal, from },
            stage: None,
            target: None,
            authentication: Authentication::default(),
            proof: Proof::Open,
            params: Params::default(),
            declared: false,
        }
    }

    pub fn asking(&self) -> &Asking {
        &self.asking
    }

    /// Whether this question shows a proof that is to be looked at.
    pub fn shows_proof(&self, question: &Question) -> bool {
        question.pairs.get("CHAP_R").is_some() && matches!(self.proof, Proof::Challenged { .. })
    }

    pub fn agreed(self) -> Agreed {
        Agreed { asking: self.asking, target: self.target, params: self.params }
    }

    pub fn answer(&mut self, question: &Question) -> Result<Answer, Failure> {
        let mut said = Pairs::default();
        if self.stage.is_none() {
            self.begin(question, &mut said)?;
        } else if self.stage != Some(question.stage) {
            return Err(Failure::IN_LOGIN);
        }
        match question.stage {
            SECURITY => self.prove(&question.pairs, &mut said)?,
            OPERATIONAL => {
                if !self.is_proven() {
                    return Err(Failure::AUTHENTICATION);
                }
                self.negotiate(&question.pairs, &mut said)?;
            }
            _ => return Err(Failure::INITIATOR),
        }
        let next = match question.next {
            Some(next) if !matches!((question.stage, next), (SECURITY, 1 | 3) | (OPERATIONAL, 3)) => {
                return Err(Failure::INITIATOR);
            }
            Some(next)
                if self.is_proven() && !matches!(self.proof, Proof::Chosen | Proof::Challenged { .. }) =>
            {
                Some(next)
            }
            _ => None,
        };
        self.stage = Some(next.unwrap_or(question.stage));
        Ok(Answer { pairs: said, next })
    }

    fn is_proven(&self) -> bool {
        self.authentication.initiator.is_none() || matches!(self.proof, Proof::Done)
    }

    /// The first request says who comes and what it wants.
    fn begin(&mut self, question: &Question, said: &mut Pairs) -> Result<(), Failure> {
        let name = |key| match question.pairs.get(key) {
            Some(name) if !scsi::is_node_name(name) => Err(Failure::INITIATOR),
            // Names are the same whatever their case.
            name => Ok(name.map(str::to_ascii_lowercase)),
        };
        self.asking.initiator = name("InitiatorName")?.ok_or(Failure::MISSING)?;
        match question.pairs.get("SessionType") {
            Some("Discovery") => self.authentication = self.directory.discovery(&self.asking),
            None | Some("Normal") => {
                let target = name("TargetName")?.ok_or(Failure::MISSING)?;
                let welcome = self.directory.target(&self.asking, &target).ok_or(Failure::NOT_FOUND)?;
                self.authentication = welcome.authentication.clone();
                said.say("TargetPortalGroupTag", welcome.tag.to_string());
                if !welcome.alias.is_empty() {
                    said.say("TargetAlias", welcome.alias.clone());
                }
                self.target = Some((target, welcome));
            }
            Some(_) => return Err(Failure::SESSION_TYPE),
        }
        Ok(())
    }

    fn negotiate(&mut self, pairs: &Pairs, said: &mut Pairs) -> Result<(), Failure> {
        for (key, value) in Params::in_order(&pairs.0) {
            if matches!(key.as_str(), "InitiatorName" | "TargetName" | "SessionType") {
                continue;
            }
            // Answers to what we declared.
            if matches!(value.as_str(), "NotUnderstood" | "Irrelevant" | "Reject") {
                continue;
            }
            match self.params.negotiate(key, value) {
                Said::Noted => {}
                Said::Value(value) => said.say(key, value),
                Said::Wrong => return Err(Failure::INITIATOR),
            }
        }
        if !self.declared {
            self.declared = true;
            said.say("MaxRecvDataSegmentLength", MAX_RECEIVE.to_string());
        }
        Ok(())
    }

    fn prove(&mut self, pairs: &Pairs, said: &mut Pairs) -> Result<(), Failure> {
        if let Some(methods) = pairs.get("AuthMethod") {
            if !matches!(self.proof, Proof::Open) {
                return Err(Failure::INITIATOR);
            }
            let offers = |method| methods.split(',').any(|m| m == method);
            let method = match self.authentication.initiator.is_some() {
                true if offers("CHAP") => "CHAP",
                false if offers("None") => "None",
                _ => return Err(Failure::AUTHENTICATION),
            };
            said.say("AuthMethod", method);
            if method == "CHAP" {
                self.proof = Proof::Chosen;
            }
        }
        if let Some(list) = pairs.get("CHAP_A") {
            if !matches!(self.proof, Proof::Chosen) {
                return Err(Failure::INITIATOR);
            }
            self.challenge(Algorithm::choose(list).ok_or(Failure::AUTHENTICATION)?, said);
        }
        if pairs.get("CHAP_N").is_some() || pairs.get("CHAP_R").is_some() {
            self.verify(pairs, said)?;
        }
        for (key, value) in Params::in_order(&pairs.0) {
            // A client may already say what belongs to the next stage.
            let known = key.starts_with("CHAP_")
                || matches!(
                    key.as_str(),
                    "AuthMethod" | "InitiatorName" | "TargetName" | "SessionType" | "InitiatorAlias"
                );
            if !known {
                match self.params.negotiate(key, value) {
                    Said::Value(value) => said.say(key, value),
                    Said::Noted => {}
                    Said::Wrong => return Err(Failure::INITIATOR),
                }
            }
        }
        Ok(())
    }

    fn challenge(&mut self, algorithm: Algorithm, said: &mut Pairs) {
        let id = world::random_u64() as u8;
        let challenge: Vec<u8> = (0..CHALLENGE / 8).flat_map(|_| world::random_u64().to_ne_bytes()).collect();
        said.say("CHAP_A", algorithm.number().to_string());
        said.say("CHAP_I", id.to_string());
        said.say("CHAP_C", as_hexadecimal(&challenge));
        self.proof = Proof::Challenged { algorithm, id, challenge };
    }

    fn verify(&mut self, pairs: &Pairs, said: &mut Pairs) -> Result<(), Failure> {
        let denied = Failure::AUTHENTICATION;
        let Proof::Challenged { algorithm, id, challenge } = std::mem::replace(&mut self.proof, Proof::Open)
        else {
            return Err(denied);
        };
        let expected = self.authentication.initiator.as_ref().ok_or(denied)?;
        let name = pairs.get("CHAP_N").ok_or(denied)?;
        let response = pairs.get("CHAP_R").and_then(binary).ok_or(denied)?;
        let right = is_same(&response, &algorithm.respond(id, &expected.secret, &challenge));
        if !(right & is_same(name.as_bytes(), expected.name.as_bytes())) {
            return Err(denied);
        }
        if let Some(theirs) = pairs.get("CHAP_C") {
            let theirs = binary(theirs).ok_or(denied)?;
            let id =
                pairs.get("CHAP_I").and_then(parse).and_then(|id| u8::try_from(id).ok()).ok_or(denied)?;
            // Our own challenge sent back would make us answer it for them.
            if theirs == challenge || theirs.len() > 1024 {
                return Err(denied);
            }
            let Credentials { name, secret } = self.authentication.target.as_ref().ok_or(denied)?;
            // RFC 7143, 9.2.1: with one secret for both directions an answer of theirs could be one of ours.
            if *secret == expected.secret {
                return Err(denied);
            }
            said.say("CHAP_N", name.clone());
            said.say("CHAP_R", as_hexadecimal(&algorithm.respond(id, secret, &theirs)));
        }
        self.proof = Proof::Done;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
