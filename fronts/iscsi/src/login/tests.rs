use super::*;
use crate::directory::{Listed, Unit};
use scsi::TargetPort;
use sim::Rng;
use world::Pending;

#[derive(Debug)]
struct One(Authentication);

impl Directory for One {
    fn discovery(&self, _: &Asking) -> Authentication {
        Authentication::default()
    }

    fn targets(&self, _: &Asking) -> Vec<Listed> {
        Vec::new()
    }

    fn target(&self, asking: &Asking, name: &str) -> Option<Welcome> {
        (name == "iqn.x:t" && asking.initiator == "iqn.x:i").then(|| Welcome {
            authentication: self.0.clone(),
            port: TargetPort { relative: 1, group: 1, name: "iqn.x:t,t,0x0001".into() },
            tag: 1,
            alias: String::new(),
        })
    }

    fn units(&self, _: &Asking, _: &str) -> Pending<units::Result<Vec<Unit>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

fn secret(name: &str, secret: &str) -> Option<Credentials> {
    Some(Credentials { name: name.into(), secret: secret.into() })
}

fn ask(stage: u8, next: Option<u8>, pairs: &[(&str, &str)]) -> Question {
    let pairs = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Question { stage, next, pairs: Pairs(pairs) }
}

const NAMES: [(&str, &str); 2] = [("InitiatorName", "iqn.x:I"), ("TargetName", "iqn.x:t")];

fn login(directory: &One) -> Login<'_> {
    Login::new(directory, Address::Unix("portal".into()), Address::Unix("client".into()))
}

fn in_world(test: impl FnOnce() + Send + 'static) {
    sim::run(1, sim::Config::default(), async move { test() });
}

#[test]
fn without_a_secret_one_step_is_enough() {
    let directory = One(Authentication::default());
    let mut login = login(&directory);
    let pairs = [&NAMES[..], &[("MaxBurstLength", "65536")]].concat();
    let answer = login.answer(&ask(OPERATIONAL, Some(FULL), &pairs)).unwrap();
    assert_eq!(answer.next, Some(FULL));
    let said = |key| answer.pairs.get(key).map(str::to_string);
    assert_eq!(said("TargetPortalGroupTag").as_deref(), Some("1"));
    assert_eq!(said("MaxBurstLength").as_deref(), Some("65536"));
    assert_eq!(said("MaxRecvDataSegmentLength").as_deref(), Some("262144"));
    assert_eq!(login.agreed().params.max_burst, 65536);
}

#[test]
fn what_was_not_given_to_one_is_not_found() {
    let directory = One(Authentication::default());
    for (initiator, target) in [("iqn.x:other", "iqn.x:t"), ("iqn.x:i", "iqn.x:other")] {
        let pairs = [("InitiatorName", initiator), ("TargetName", target)];
        assert_eq!(login(&directory).answer(&ask(OPERATIONAL, None, &pairs)), Err(Failure::NOT_FOUND));
    }
    assert_eq!(login(&directory).answer(&ask(OPERATIONAL, None, &[])), Err(Failure::MISSING));
    let endless = format!("iqn.{}", "x".repeat(220));
    for initiator in ["iqn.x:i\n", "iqn.x:i i", "i", "", &endless] {
        let pairs = [("InitiatorName", initiator), ("TargetName", "iqn.x:t")];
        let answer = login(&directory).answer(&ask(OPERATIONAL, None, &pairs));
        assert_eq!(answer, Err(Failure::INITIATOR), "{initiator:?}");
    }
    let odd = [&NAMES[..], &[("SessionType", "Odd")]].concat();
    assert_eq!(login(&directory).answer(&ask(OPERATIONAL, None, &odd)), Err(Failure::SESSION_TYPE));
}

/// The answer of a client that knows the secret `known`.
fn response(answer: &Answer, known: &str) -> String {
    let id = answer.pairs.get("CHAP_I").unwrap().parse().unwrap();
    let challenge = binary(answer.pairs.get("CHAP_C").unwrap()).unwrap();
    as_hexadecimal(&Algorithm::Md5.respond(id, known.as_bytes(), &challenge))
}

fn challenged(login: &mut Login<'_>) -> Answer {
    let answer = login
        .answer(&ask(SECURITY, Some(1), &[&NAMES[..], &[("AuthMethod", "CHAP,None")]].concat()))
        .unwrap();
    assert_eq!((answer.next, answer.pairs.get("AuthMethod")), (None, Some("CHAP")));
    login.answer(&ask(SECURITY, None, &[("CHAP_A", "5")])).unwrap()
}

#[test]
fn only_who_knows_the_secret_gets_on() {
    in_world(|| {
        let directory = One(Authentication { initiator: secret("me", "twelve bytes"), target: None });
        for (name, known, passes) in
            [("me", "twelve bytes", true), ("me", "other bytes!", false), ("you", "twelve bytes", false)]
        {
            let mut login = login(&directory);
            let challenge = challenged(&mut login);
            let proof = [("CHAP_N", name), ("CHAP_R", &response(&challenge, known)[..])];
            let answer = login.answer(&ask(SECURITY, Some(1), &proof));
            assert_eq!(
                answer.as_ref().map(|a| a.next),
                if passes { Ok(Some(1)) } else { Err(&Failure::AUTHENTICATION) }
            );
            if passes {
                assert_eq!(login.answer(&ask(OPERATIONAL, Some(FULL), &[])).unwrap().next, Some(FULL));
            }
        }
    });
}

#[test]
fn no_way_leads_around_the_proof() {
    in_world(|| {
        let directory = One(Authentication { initiator: secret("me", "twelve bytes"), target: None });
        assert_eq!(
            login(&directory).answer(&ask(OPERATIONAL, Some(FULL), &NAMES)),
            Err(Failure::AUTHENTICATION)
        );
        let none = [&NAMES[..], &[("AuthMethod", "None")]].concat();
        assert_eq!(login(&directory).answer(&ask(SECURITY, Some(FULL), &none)), Err(Failure::AUTHENTICATION));
        let mut silent = login(&directory);
        assert_eq!(silent.answer(&ask(SECURITY, Some(FULL), &NAMES)).unwrap().next, None);
        assert_eq!(silent.answer(&ask(OPERATIONAL, Some(FULL), &[])), Err(Failure::IN_LOGIN));
        let mut hasty = login(&directory);
        challenged(&mut hasty);
        assert_eq!(hasty.answer(&ask(SECURITY, Some(FULL), &[])).unwrap().next, None);
        let mut unasked = login(&directory);
        unasked.answer(&ask(SECURITY, None, &NAMES)).unwrap();
        assert!(unasked.answer(&ask(SECURITY, Some(1), &[("CHAP_N", "me"), ("CHAP_R", "0x00")])).is_err());
    });
}

#[test]
fn the_target_proves_itself_too_but_not_to_its_own_challenge() {
    in_world(|| {
        let authentication = Authentication {
            initiator: secret("me", "twelve bytes"),
            target: secret("we", "our own secret"),
        };
        let directory = One(authentication);
        let mut mutual = login(&directory);
        let challenge = challenged(&mut mutual);
        let proof = response(&challenge, "twelve bytes");
        let pairs = [("CHAP_N", "me"), ("CHAP_R", &proof[..]), ("CHAP_I", "9"), ("CHAP_C", "0x0102")];
        let answer = mutual.answer(&ask(SECURITY, Some(1), &pairs)).unwrap();
        assert_eq!(answer.pairs.get("CHAP_N"), Some("we"));
        let ours = as_hexadecimal(&Algorithm::Md5.respond(9, b"our own secret", &[1, 2]));
        assert_eq!(answer.pairs.get("CHAP_R"), Some(&ours[..]));

        // As a numerical value may be written, and as no octet is.
        for (id, number) in [("0x3", Some(3)), ("0XfF", Some(255)), ("256", None), ("0x", None), ("-1", None)]
        {
            let mut mutual = login(&directory);
            let challenge = challenged(&mut mutual);
            let proof = response(&challenge, "twelve bytes");
            let pairs = [("CHAP_N", "me"), ("CHAP_R", &proof[..]), ("CHAP_I", id), ("CHAP_C", "0x0102")];
            let answer = mutual.answer(&ask(SECURITY, Some(1), &pairs));
            let ours =
                number.map(|id| as_hexadecimal(&Algorithm::Md5.respond(id, b"our own secret", &[1, 2])));
            let told = answer.as_ref().map(|answer| answer.pairs.get("CHAP_R").map(String::from));
            assert_eq!(told, ours.map_or(Err(&Failure::AUTHENTICATION), |ours| Ok(Some(ours))), "{id}");
        }

        let mut mirrored = login(&directory);
        let challenge = challenged(&mut mirrored);
        let proof = response(&challenge, "twelve bytes");
        let own = challenge.pairs.get("CHAP_C").unwrap();
        let pairs = [("CHAP_N", "me"), ("CHAP_R", &proof[..]), ("CHAP_I", "9"), ("CHAP_C", own)];
        assert_eq!(mirrored.answer(&ask(SECURITY, Some(1), &pairs)), Err(Failure::AUTHENTICATION));
    });
}

/// Random keys and values in random stages never panic, and never pass the proof.
#[test]
fn nothing_a_client_says_does_harm() {
    in_world(|| {
        let directory = One(Authentication { initiator: secret("me", "twelve bytes"), target: None });
        let mut random = Rng::new(5);
        let words = [
            "AuthMethod",
            "CHAP",
            "None",
            "CHAP_A",
            "5",
            "7",
            "CHAP_N",
            "me",
            "CHAP_R",
            "0x00",
            "CHAP_C",
            "CHAP_I",
            "0b",
            "Yes",
            "MaxBurstLength",
            "HeaderDigest",
            "CRC32C",
            "-1",
            "",
            "SessionType",
            "InitialR2T",
            "\u{e9}",
            "0xq",
        ];
        for _ in 0..20_000 {
            let mut login = login(&directory);
            let mut pairs = NAMES.to_vec();
            for _ in 0..1 + random.below(4) {
                for _ in 0..random.below(5) {
                    let word = |random: &mut Rng| words[random.below(words.len() as u64) as usize];
                    pairs.push((word(&mut random), word(&mut random)));
                }
                let next = [None, Some(1), Some(3), Some(2)][random.below(4) as usize];
                match login.answer(&ask(random.below(4) as u8, next, &pairs)) {
                    Ok(answer) => assert_eq!(answer.next, None),
                    Err(_) => break,
                }
                pairs.clear();
            }
        }
    });
}
