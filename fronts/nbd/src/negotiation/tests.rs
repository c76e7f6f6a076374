use super::*;
use crate::wire::option::code::*;

fn offer() -> Offer {
    Offer {
        name: "tank/vol".into(),
        description: "a volume".into(),
        size: 0x1122_3344,
        block_size: 16384,
        read_only: false,
        rotational: false,
    }
}

fn begin(flags: u32) -> Negotiation {
    begin_with(flags, Tls::Absent)
}

fn begin_with(flags: u32, tls: Tls) -> Negotiation {
    Negotiation::begin(flags, tls).unwrap()
}

/// Answers an option given as bytes, with the facts a server with one export has.
fn converse(n: &mut Negotiation, option: u32, data: &[u8]) -> (Step, Vec<u8>) {
    let mut out = Vec::new();
    let mut answers = Answers { option, out: &mut out };
    let step = match Ask::decode(option, data) {
        Ok(ask) => {
            let facts = match n.need(&ask) {
                Need::Nothing => Facts::None,
                Need::List => {
                    Facts::List(Ok(vec![Listed { name: "tank/vol".into(), description: "a volume".into() }]))
                }
                Need::Look(name) | Need::Open(name) => Facts::Export(match name.as_str() {
                    "tank/vol" => Ok(offer()),
                    "tank/busy" => Err(Error::new(Kind::Busy, "open NBD export 'tank/busy'")),
                    _ => Err(Error::new(Kind::NotFound, "open NBD export")),
                }),
            };
            n.answer(&ask, facts, &mut answers)
        }
        Err(why) => n.answer_malformed(why, &mut answers),
    };
    (step, out)
}

/// The answers to an option, taken apart: type and data.
fn answers(option: u32, mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..8], OPTION_REPLY_MAGIC_BYTES);
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(word(8), option);
        let len = word(16) as usize;
        answers.push((word(12), bytes[20..20 + len].to_vec()));
        bytes = &bytes[20 + len..];
    }
    answers
}

const OPTION_REPLY_MAGIC_BYTES: [u8; 8] = [0x00, 0x03, 0xe8, 0x89, 0x04, 0x55, 0x65, 0xa9];
const ACK: u32 = 1;

fn kinds(option: u32, bytes: &[u8]) -> Vec<u32> {
    answers(option, bytes).into_iter().map(|(kind, _)| kind).collect()
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

fn info_data(name: &str, wants: &[u16]) -> Vec<u8> {
    let count = wants.len() as u16;
    let words = std::iter::once(&count).chain(wants).flat_map(|w| w.to_be_bytes());
    string(name).into_iter().chain(words).collect()
}

fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|q| data.extend(string(q)));
    data
}

#[test]
fn the_greeting_is_fixed_newstyle() {
    assert_eq!(greeting(), *b"NBDMAGICIHAVEOPT\0\x03");
}

#[test]
fn client_flags_that_were_not_offered_end_the_connection() {
    for flags in 0..4 {
        assert!(Negotiation::begin(flags, Tls::Absent).is_ok());
    }
    for bit in 2..32 {
        assert!(Negotiation::begin(1 << bit, Tls::Required).is_err(), "bit {bit}");
    }
}

#[test]
fn an_export_name_is_answered_with_size_flags_and_perhaps_zeros() {
    for (client_flags, len) in [(1, 134), (3, 10)] {
        let (step, out) = converse(&mut begin(client_flags), EXPORT_NAME, b"tank/vol");
        assert_eq!(step, Step::Transmit(Terms::default()));
        assert_eq!(out.len(), len);
        assert_eq!(out[..10], [0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x0d, 0x6d]);
    }
    let (step, out) = converse(&mut begin(3), EXPORT_NAME, b"nothing");
    assert_eq!((step, out.len()), (Step::Close, 0));
    let (step, out) = converse(&mut begin(3), EXPORT_NAME, b"\xff");
    assert_eq!((step, out.len()), (Step::Close, 0));
}

#[test]
fn go_tells_what_was_asked_and_goes() {
    let mut n = begin(3);
    let wants = [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE, 77];
    let (step, out) = converse(&mut n, INFO, &info_data("tank/vol", &wants));
    assert_eq!(step, Step::Next);
    let told = answers(INFO, &out);
    let expected: [(u32, &[u8]); 5] = [
        (3, &[0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x0d, 0x6d]),
        (3, b"\0\x01tank/vol"),
        (3, b"\0\x02a volume"),
        (3, &[0, 3, 0, 0, 0, 1, 0, 0, 0x40, 0, 2, 0, 0, 0]),
        (ACK, b""),
    ];
    assert_eq!(told, expected.map(|(kind, data)| (kind, data.to_vec())));
    let (step, out) = converse(&mut n, GO, &info_data("tank/vol", &[]));
    assert_eq!(step, Step::Transmit(Terms::default()));
    assert_eq!(kinds(GO, &out), [3, ACK]);
}

#[test]
fn an_export_that_is_not_there_or_not_free_is_refused_politely() {
    for (name, no) in [("nothing", No::Unknown), ("tank/busy", No::Policy)] {
        let mut n = begin(3);
        let (step, out) = converse(&mut n, GO, &info_data(name, &[]));
        assert_eq!((step, kinds(GO, &out)), (Step::Next, vec![no as u32]));
    }
}

#[test]
fn read_only_exports_offer_nothing_that_writes() {
    let flags = Offer { read_only: true, ..offer() }.flags(false);
    assert_eq!(flags, 0b0000_0101_0000_1111);
    assert_eq!(offer().flags(true) & !offer().flags(false), transmission::SEND_DF);
}

#[test]
fn the_preferred_size_is_always_one_the_protocol_allows() {
    for (block_size, preferred) in
        [(0, 512), (512, 512), (3000, 4096), (16384, 16384), (128 << 20, 32 << 20), (u32::MAX, 32 << 20)]
    {
        assert_eq!(Offer { block_size, ..offer() }.preferred(), preferred);
    }
}

#[test]
fn exports_are_listed_with_their_descriptions() {
    let (_, out) = converse(&mut begin(3), LIST, b"");
    let expected = [(2, b"\0\0\0\x08tank/vola volume".to_vec()), (ACK, vec![])];
    assert_eq!(answers(LIST, &out), expected);
}

#[test]
fn block_status_needs_structured_replies_a_choice_and_the_same_export() {
    let allocation = context_data("tank/vol", &["x-other:a", "base:allocation"]);
    let go = info_data("tank/vol", &[]);

    let mut n = begin(3);
    let (_, out) = converse(&mut n, SET_META_CONTEXT, &allocation);
    assert_eq!(kinds(SET_META_CONTEXT, &out), [No::Invalid as u32], "structured replies come first");

    let (_, out) = converse(&mut n, STRUCTURED_REPLY, b"");
    assert_eq!(kinds(STRUCTURED_REPLY, &out), [ACK]);
    let (_, out) = converse(&mut n, SET_META_CONTEXT, &allocation);
    let expected = [(4, b"\0\0\0\x01base:allocation".to_vec()), (ACK, vec![])];
    assert_eq!(answers(SET_META_CONTEXT, &out), expected);
    let (step, _) = converse(&mut n, GO, &go);
    assert_eq!(step, Step::Transmit(Terms { structured: true, contexts: true }));

    // Every later choice replaces the earlier one, also one that fails.
    for (data, what) in [
        (context_data("tank/vol", &[]), "no query"),
        (context_data("tank/vol", &["base:"]), "a wildcard"),
        (context_data("nothing", &["base:allocation"]), "another export"),
        (b"\0\0\0\x99".to_vec(), "malformed"),
    ] {
        converse(&mut n, SET_META_CONTEXT, &allocation);
        converse(&mut n, SET_META_CONTEXT, &data);
        let (step, _) = converse(&mut n, GO, &go);
        assert_eq!(step, Step::Transmit(Terms { structured: true, contexts: false }), "{what}");
    }
}

#[test]
fn contexts_are_listed_by_name_by_namespace_and_all_together() {
    for (queries, found) in [
        (&[][..], true),
        (&["base:"], true),
        (&["base:allocation"], true),
        (&["qemu:x", "base:", "base:allocation"], true),
        (&["qemu:dirty-bitmap:"], false),
        (&["base:nothing"], false),
    ] {
        let mut n = begin(3);
        converse(&mut n, STRUCTURED_REPLY, b"");
        let (_, out) = converse(&mut n, LIST_META_CONTEXT, &context_data("tank/vol", queries));
        let expected = if found { vec![4, ACK] } else { vec![ACK] };
        assert_eq!(kinds(LIST_META_CONTEXT, &out), expected, "{queries:?}");
    }
}

#[test]
fn an_abort_is_acknowledged_and_ends() {
    let (step, out) = converse(&mut begin(3), ABORT, b"bye");
    assert_eq!((step, kinds(ABORT, &out)), (Step::Close, vec![ACK]));
}

#[test]
fn tls_extended_headers_and_the_unknown_are_refused_and_the_talk_goes_on() {
    for option in [STARTTLS, 4, 11, 12, 0, u32::MAX] {
        let (step, out) = converse(&mut begin(3), option, b"");
        assert_eq!((step, kinds(option, &out)), (Step::Next, vec![No::Unsupported as u32]), "{option}");
    }
}

#[test]
fn where_tls_is_required_nothing_else_is_answered_before_it() {
    for (option, data) in [
        (LIST, vec![]),
        (INFO, info_data("tank/vol", &[])),
        (GO, info_data("tank/vol", &[])),
        (GO, info_data("nothing", &[])),
        (STRUCTURED_REPLY, vec![]),
        (LIST_META_CONTEXT, context_data("tank/vol", &[])),
        (SET_META_CONTEXT, context_data("tank/vol", &["base:allocation"])),
        (11, vec![]),
        (77, vec![1, 2, 3]),
        // Malformed ones too: what is wrong with them is no concern of a stranger.
        (LIST, vec![1]),
        (GO, vec![]),
        (SET_META_CONTEXT, vec![1]),
    ] {
        let mut n = begin_with(3, Tls::Required);
        if let Ok(ask) = Ask::decode(option, &data) {
            assert_eq!(n.need(&ask), Need::Nothing, "{option}: nothing is looked up, and nothing opened");
        }
        let (step, out) = converse(&mut n, option, &data);
        assert_eq!((step, kinds(option, &out)), (Step::Next, vec![No::TlsRequired as u32]), "{option}");
    }
    for name in [&b"tank/vol"[..], b"", b"\xff"] {
        let (step, out) = converse(&mut begin_with(3, Tls::Required), EXPORT_NAME, name);
        assert_eq!((step, out.len()), (Step::Close, 0));
    }
    let (step, out) = converse(&mut begin_with(3, Tls::Required), ABORT, b"");
    assert_eq!((step, kinds(ABORT, &out)), (Step::Close, vec![ACK]));
}

#[test]
fn tls_begins_once_and_without_data() {
    let mut n = begin_with(3, Tls::Required);
    let (step, out) = converse(&mut n, STARTTLS, &[1]);
    assert_eq!((step, kinds(STARTTLS, &out)), (Step::Next, vec![No::Invalid as u32]));
    let (step, out) = converse(&mut n, STARTTLS, b"");
    assert_eq!((step, kinds(STARTTLS, &out)), (Step::Secure, vec![ACK]));
    n.secured();
    for data in [&b""[..], &[1]] {
        let (step, out) = converse(&mut n, STARTTLS, data);
        assert_eq!((step, kinds(STARTTLS, &out)), (Step::Next, vec![No::Invalid as u32]));
    }
    let (step, _) = converse(&mut n, GO, &info_data("tank/vol", &[]));
    assert_eq!(step, Step::Transmit(Terms::default()));
}

#[test]
fn tls_forgets_what_was_negotiated_but_not_the_clients_flags() {
    for (flags, len) in [(1, 134), (3, 10)] {
        let mut n = begin_with(flags, Tls::Required);
        n.structured = true;
        n.contexts_of = Some("tank/vol".into());
        n.secured();
        let (_, out) = converse(&mut n, SET_META_CONTEXT, &context_data("tank/vol", &["base:allocation"]));
        assert_eq!(kinds(SET_META_CONTEXT, &out), [No::Invalid as u32], "no structured replies");
        converse(&mut n, STRUCTURED_REPLY, b"");
        let (step, out) = converse(&mut n, EXPORT_NAME, b"tank/vol");
        assert_eq!(step, Step::Transmit(Terms { structured: true, contexts: false }));
        assert_eq!(out.len(), len);
    }
}

#[test]
fn malformed_options_are_told_so() {
    let far = [&1000u32.to_be_bytes()[..], b"abc"].concat();
    let mut many = string("tank/vol");
    many.extend_from_slice(&u32::MAX.to_be_bytes());
    let mut trailing = info_data("tank/vol", &[1]);
    trailing.push(0);
    let long = string(&"x".repeat(4097));
    for (option, data) in [
        (LIST, vec![1]),
        (STRUCTURED_REPLY, vec![1]),
        (STARTTLS, vec![1]),
        (INFO, vec![]),
        (GO, far.clone()),
        (GO, string("tank/vol")),
        (INFO, trailing),
        (GO, [long.clone(), vec![0, 0]].concat()),
        (GO, [string("a\0b"), vec![0, 0]].concat()),
        (LIST_META_CONTEXT, far),
        (SET_META_CONTEXT, many),
        (SET_META_CONTEXT, long),
    ] {
        let (step, out) = converse(&mut begin(3), option, &data);
        assert_eq!((step, kinds(option, &out)), (Step::Next, vec![No::Invalid as u32]), "{option}");
    }
}

/// Whatever bytes come: no panic, a bounded answer, and the answer is well-formed.
#[test]
fn mutated_options_always_get_a_well_formed_answer() {
    let seeds = [
        (GO, info_data("tank/vol", &[0, 1, 2, 3])),
        (SET_META_CONTEXT, context_data("tank/vol", &["base:allocation", "x-y:z"])),
        (LIST_META_CONTEXT, context_data("", &[])),
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut n = begin(3);
    n.structured = true;
    for round in 0..20_000 {
        let (option, mut data) = seeds[round % seeds.len()].clone();
        for _ in 0..=next(3) {
            match next(3) {
                0 if !data.is_empty() => data.truncate(next(data.len())),
                1 => data.push(next(256) as u8),
                _ if !data.is_empty() => {
                    let at = next(data.len());
                    data[at] = next(256) as u8;
                }
                _ => {}
            }
        }
        let (_, out) = converse(&mut n, option, &data);
        let told = answers(option, &out);
        assert!(!told.is_empty() && out.len() < 10_000);
    }
}
