use super::*;
use crate::wire::request::Command;
use flow::{Extent, Load};
use world::{Buf, Instant};

const PLAIN: Terms = Terms { structured: false, contexts: false };
const STRUCTURED: Terms = Terms { structured: true, contexts: true };
const LOAD: Load = Load::of(1, 100);

fn ticket(offset: u64, len: u32, whole: bool) -> Ticket {
    let (command, began) = (Command::Read, Instant::default());
    let cookie = 0x0102_0304_0506_0708;
    Ticket { command, cookie, offset, len, durable: false, whole, load: LOAD, began }
}

/// Everything in the outbox, sent as one string of bytes.
fn sent(outbox: &mut Outbox) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((parts, _)) = outbox.take() {
        parts.iter().for_each(|p| bytes.extend_from_slice(p));
    }
    bytes
}

fn reply(terms: Terms, ticket: Ticket, result: Result<Outcome>) -> Vec<u8> {
    let mut outbox = Outbox::new();
    answer(&mut outbox, terms, ticket, result);
    sent(&mut outbox)
}

fn data(byte: u8, len: usize) -> Piece {
    Piece::Data(Buf::copy_from(&vec![byte; len]))
}

const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A structured chunk as the protocol draws it.
fn chunk(done: bool, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x66, 0x8e, 0x33, 0xef, 0, u8::from(done)];
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&COOKIE);
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn data_chunk(done: bool, offset: u64, bytes: &[u8]) -> Vec<u8> {
    chunk(done, 1, &[&offset.to_be_bytes()[..], bytes].concat())
}

fn hole_chunk(done: bool, offset: u64, len: u32) -> Vec<u8> {
    chunk(done, 2, &[&offset.to_be_bytes()[..], &len.to_be_bytes()[..]].concat())
}

#[test]
fn plain_reads_carry_their_bytes_and_write_zeros_out() {
    let pieces = vec![data(7, 3), Piece::Hole(600)];
    let mut expected = vec![0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0];
    expected.extend_from_slice(&COOKIE);
    expected.extend_from_slice(&[7; 3]);
    expected.extend_from_slice(&[0; 600]);
    assert_eq!(reply(PLAIN, ticket(0, 603, false), Ok(Outcome::Read(pieces))), expected);
}

#[test]
fn structured_reads_join_data_and_name_holes() {
    let pieces = vec![data(1, 600), data(2, 600), Piece::Hole(1024), Piece::Hole(512), data(3, 512)];
    let bytes = reply(STRUCTURED, ticket(4096, 3248, false), Ok(Outcome::Read(pieces)));
    let first = [[1; 600], [2; 600]].concat();
    let expected = [
        data_chunk(false, 4096, &first),
        hole_chunk(false, 4096 + 1200, 1536),
        data_chunk(true, 4096 + 2736, &[3; 512]),
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_trailing_hole_ends_the_reply() {
    let pieces = vec![data(1, 512), Piece::Hole(512)];
    let bytes = reply(STRUCTURED, ticket(0, 1024, false), Ok(Outcome::Read(pieces)));
    assert_eq!(bytes, [data_chunk(false, 0, &[1; 512]), hole_chunk(true, 512, 512)].concat());
}

#[test]
fn a_read_that_must_be_whole_is_one_chunk() {
    let pieces = vec![data(1, 512), Piece::Hole(512)];
    let bytes = reply(STRUCTURED, ticket(0, 1024, true), Ok(Outcome::Read(pieces)));
    assert_eq!(bytes, data_chunk(true, 0, &[[1; 512], [0; 512]].concat()));
    let bytes = reply(STRUCTURED, ticket(0, 1024, true), Ok(Outcome::Read(vec![Piece::Hole(1024)])));
    assert_eq!(bytes, hole_chunk(true, 0, 1024));
}

#[test]
fn small_holes_are_sent_as_zeros() {
    let pieces = vec![data(1, 8), Piece::Hole(8), data(1, 8)];
    let bytes = reply(STRUCTURED, ticket(0, 24, false), Ok(Outcome::Read(pieces)));
    assert_eq!(bytes, data_chunk(true, 0, &[[1; 8], [0; 8], [1; 8]].concat()));
}

#[test]
fn an_empty_read_is_answered() {
    let empty = || Ok(Outcome::Read(Vec::new()));
    assert_eq!(reply(STRUCTURED, ticket(9, 0, false), empty()), chunk(true, 0, &[]));
    assert_eq!(reply(PLAIN, ticket(9, 0, false), empty()).len(), 16);
}

/// A volume that returns too little would shift every byte that follows on the connection.
#[test]
fn a_read_of_the_wrong_length_becomes_an_error() {
    for pieces in [vec![data(1, 511)], vec![data(1, 512), Piece::Hole(1)], vec![]] {
        let bytes = reply(PLAIN, ticket(0, 512, false), Ok(Outcome::Read(pieces)));
        assert_eq!(bytes[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5]);
        assert_eq!(bytes.len(), 16);
    }
}

#[test]
fn errors_are_numbers_or_sentences() {
    let e = || Err(Error::new(Kind::NoSpace, "write block"));
    assert_eq!(reply(PLAIN, ticket(0, 1, false), e())[4..8], [0, 0, 0, 28]);
    let sentence = b"write block: out of space";
    let payload = [&[0, 0, 0, 28, 0, sentence.len() as u8][..], sentence].concat();
    assert_eq!(reply(STRUCTURED, ticket(0, 1, false), e()), chunk(true, 0x8001, &payload));

    let long = Error::invalid("é".repeat(5000));
    let bytes = reply(STRUCTURED, ticket(0, 1, false), Err(long));
    assert_eq!(bytes.len(), 20 + 6 + 4096, "a sentence is cut at the protocol's limit, between letters");
}

#[test]
fn an_overflow_is_told_only_where_chunks_are() {
    let told = |terms| {
        let mut outbox = Outbox::new();
        error(&mut outbox, terms, ticket(0, 1, false), Errno::Overflow, "");
        sent(&mut outbox)
    };
    assert_eq!(told(PLAIN)[4..8], [0, 0, 0, 22]);
    assert_eq!(told(STRUCTURED)[20..24], [0, 0, 0, 75]);
}

#[test]
fn block_status_joins_extents_and_stays_within_the_request() {
    let extents = [(512, false), (0, true), (512, false), (1024, true), (u64::MAX, false)];
    let extents: Vec<Extent> = extents.iter().map(|&(len, hole)| Extent { len, hole }).collect();
    let status = |whole| reply(STRUCTURED, ticket(0, 4096, whole), Ok(Outcome::Status(extents.clone())));
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes[20..].chunks(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]])).collect()
    };
    assert_eq!(words(&status(false)), [1, 1024, 0, 1024, 3, 2048, 0]);
    assert_eq!(words(&status(true)), [1, 1024, 0], "one extent was asked for");
    let none = reply(STRUCTURED, ticket(0, 4096, false), Ok(Outcome::Status(vec![])));
    assert_eq!(none[6..8], 0x8001u16.to_be_bytes(), "a status of nothing is an error, not an endless loop");
}

#[test]
fn every_kind_has_an_errno_that_the_protocol_knows() {
    let known = [1, 5, 22, 28, 75, 95, 108];
    for kind in [
        Kind::Checksum,
        Kind::Corrupt,
        Kind::Io,
        Kind::NoSpace,
        Kind::NotFound,
        Kind::Exists,
        Kind::Busy,
        Kind::Invalid,
        Kind::Unsupported,
        Kind::ReadOnly,
        Kind::Encrypted,
        Kind::Cancelled,
    ] {
        assert!(known.contains(&Errno::of(kind).code()), "{kind:?}");
    }
}

#[test]
fn heads_share_a_part_and_loads_leave_with_their_replies() {
    let mut outbox = Outbox::new();
    (0..100).for_each(|_| done(&mut outbox, ticket(0, 0, false)));
    answer(&mut outbox, PLAIN, ticket(0, 4, false), Ok(Outcome::Read(vec![data(1, 4)])));
    let (parts, load) = outbox.take().unwrap();
    assert_eq!(parts.iter().map(|p| p.len()).collect::<Vec<_>>(), [1616, 4]);
    assert_eq!(load, Load::of(101, 10100));
    assert!(outbox.is_empty());
}

#[test]
fn a_flood_of_replies_leaves_in_bounded_sends_and_in_order() {
    let mut outbox = Outbox::new();
    let count = 3000u64;
    for cookie in 0..count {
        let mut ticket = ticket(0, 1000, false);
        ticket.cookie = cookie;
        answer(&mut outbox, PLAIN, ticket, Ok(Outcome::Read(vec![data(cookie as u8, 1000)])));
        if cookie % 700 == 0 {
            outbox.sent();
        }
    }
    let (mut bytes, mut total) = (Vec::new(), Load::default());
    while let Some((parts, load)) = outbox.take() {
        assert!(parts.len() <= 512);
        total += load;
        parts.iter().for_each(|p| bytes.extend_from_slice(p));
        drop(parts);
        outbox.sent();
    }
    assert_eq!(total, Load::of(3000, 300_000));
    for (cookie, reply) in (0..count).zip(bytes.chunks(1016)) {
        assert_eq!(reply[8..16], cookie.to_be_bytes());
        assert_eq!(reply[16..], [cookie as u8; 1000]);
    }
}
