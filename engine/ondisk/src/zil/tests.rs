use super::*;
use crate::blkptr::tests::any_pointer;
use crate::testing::{Numbers, ORDERS, assault, check_round_trip};
use units::{Endian, ObjectId};

pub(crate) fn any_header(n: &mut Numbers) -> ZilHeader {
    ZilHeader {
        claim_txg: Txg(n.bits(64)),
        replay_seq: n.bits(64),
        log: any_pointer(n),
        claim_block_seq: n.bits(64),
        flags: n.bits(2),
        claim_record_seq: n.bits(64),
    }
}

fn any_chain(n: &mut Numbers) -> ZilChain {
    ZilChain { next: any_pointer(n), used: n.bits(32), trailer: Trailer::new([n.next(); 4]) }
}

fn any_times(n: &mut Numbers) -> [u64; 2] {
    [n.bits(64), n.bits(30)]
}

/// An owner of our own, or of a foreign domain.
fn any_owner(n: &mut Numbers) -> u64 {
    n.bits(32) | n.below(3) << 32
}

fn any_node(n: &mut Numbers) -> NewNode {
    NewNode {
        object: ObjectId(n.bits(48)),
        slots: n.below(256) as u16 + 1,
        mode: n.bits(16),
        uid: any_owner(n),
        gid: any_owner(n),
        generation: n.bits(64),
        created: any_times(n),
        device: n.bits(64),
    }
}

fn any_extended(n: &mut Numbers) -> ExtendedAttributes {
    let mut stamp = [0; 32];
    n.fill(&mut stamp);
    let requested = (0..n.below(4)).map(|_| n.bits(32) as u32).collect();
    ExtendedAttributes { requested, values: n.bits(64), created: any_times(n), stamp }
}

fn any_ace(n: &mut Numbers, short: bool) -> Ace {
    let kind = if short { n.below(5) } else { n.below(10) } as u16;
    let flags = n.pick(&[0x1000, 0x4000, 0x2040, 0x40, 0, 0x1003]);
    let is_long = (5..=8).contains(&kind) && [0x40, 0].contains(&flags);
    let who = n.bits(32) as u32;
    let objects = is_long.then(|| [[n.next() as u8; 16], [n.next() as u8; 16]]);
    Ace { who, mask: n.bits(32) as u32, flags, kind, objects }
}

const DOMAINS: [&[u8]; 3] = [b"S-1-5-21", b"", b"S-1-5-32-544"];
const NAMES: [&[u8]; 4] = [b"a", b"a longer name", b"", b"1234567"];

fn any_acl(n: &mut Numbers) -> LogAcl<'static> {
    LogAcl {
        count: n.bits(8),
        flags: n.bits(8),
        entries: (0..n.below(6)).map(|_| any_ace(n, false)).collect(),
        identities: (0..n.below(3)).map(|_| n.bits(64)).collect(),
        domains: (0..n.below(3)).map(|_| n.pick(&DOMAINS)).collect(),
    }
}

fn domains_of(n: &mut Numbers, uid: u64, gid: u64) -> Vec<&'static [u8]> {
    (0..text::domains_of(uid, gid)).map(|_| n.pick(&DOMAINS)).collect()
}

fn any_create(n: &mut Numbers, kind: LogRecordKind) -> Create<'static> {
    use LogRecordKind::{
        CreateAcl, CreateAclAttr, CreateAttr, MkXattrDir, Mkdir, MkdirAcl, MkdirAclAttr, MkdirAttr, Symlink,
    };
    let node = any_node(n);
    let what = match kind {
        Symlink => CreateKind::Symlink,
        MkXattrDir => CreateKind::XattrDirectory,
        Mkdir | MkdirAcl | MkdirAttr | MkdirAclAttr => CreateKind::Directory,
        _ => CreateKind::File,
    };
    let has_acl = matches!(kind, CreateAcl | CreateAclAttr | MkdirAcl | MkdirAclAttr);
    let has_attributes = matches!(kind, CreateAttr | CreateAclAttr | MkdirAttr | MkdirAclAttr);
    let domains = if has_acl || kind == Symlink { vec![] } else { domains_of(n, node.uid, node.gid) };
    Create {
        what,
        directory: ObjectId(n.bits(48)),
        node,
        extended: has_attributes.then(|| any_extended(n)),
        acl: has_acl.then(|| any_acl(n)),
        domains,
        name: n.pick(&NAMES),
        target: if kind == Symlink { n.pick(&NAMES) } else { b"" },
    }
}

fn any_write(n: &mut Numbers) -> Write<'static> {
    const DATA: [u8; 100] = [7; 100];
    let length = n.below(100) as usize + 1;
    let object = ObjectId(n.bits(48));
    if n.flag() {
        Write::copied(object, n.bits(40), &DATA[..length])
    } else {
        Write { object, offset: n.bits(40), length: n.bits(17), pointer: any_pointer(n), data: &[] }
    }
}

fn any_set_attr(n: &mut Numbers) -> SetAttr<'static> {
    let (uid, gid) = (any_owner(n), any_owner(n));
    let extended = n.flag().then(|| any_extended(n));
    let has_extended = if extended.is_some() { SetAttr::HAS_EXTENDED } else { 0 };
    SetAttr {
        object: ObjectId(n.bits(48)),
        mask: n.bits(31) | has_extended,
        mode: n.bits(16),
        uid,
        gid,
        size: n.bits(64),
        accessed: any_times(n),
        modified: any_times(n),
        extended,
        domains: domains_of(n, uid, gid),
    }
}

fn any_record(n: &mut Numbers, kind: LogRecordKind) -> Record<'static> {
    use LogRecordKind as K;
    let object = ObjectId(n.bits(48));
    let directory = ObjectId(n.bits(48));
    let name = n.pick(&NAMES);
    let rename = |how, n: &mut Numbers| {
        let (source_name, target_name) = (n.pick(&NAMES), n.pick(&NAMES));
        Record::Rename(Rename { how, source: directory, target: object, source_name, target_name })
    };
    match kind {
        K::Commit => Record::Commit,
        K::Remove => Record::Remove(Remove { directory, name, is_directory: false }),
        K::Rmdir => Record::Remove(Remove { directory, name, is_directory: true }),
        K::Link => Record::Link(Link { directory, object, name }),
        K::Rename => rename(RenameKind::Plain, n),
        K::RenameExchange => rename(RenameKind::Exchange, n),
        K::RenameWhiteout => rename(RenameKind::Whiteout(any_node(n)), n),
        K::Write => Record::Write(any_write(n)),
        K::Write2 => Record::Write2(any_write(n)),
        K::Truncate => Record::Truncate(Truncate { object, offset: n.bits(64), length: n.bits(64) }),
        K::SetAttr => Record::SetAttr(any_set_attr(n)),
        K::AclV0 => {
            Record::AclV0(AclV0 { object, entries: (0..n.below(5)).map(|_| any_ace(n, true)).collect() })
        }
        K::Acl => Record::Acl(Acl { object, acl: any_acl(n) }),
        K::SetSaXattr => Record::SetSaXattr(SetSaXattr { object, name, value: &[9; 41] }),
        K::CloneRange => Record::CloneRange(CloneRange {
            object,
            offset: n.bits(40),
            length: n.bits(20),
            block_size: 1 << n.below(25),
            pointers: (0..n.below(4)).map(|_| any_pointer(n)).collect(),
        }),
        _ => Record::Create(any_create(n, kind)),
    }
}

fn any_log_record(n: &mut Numbers, kind: LogRecordKind) -> LogRecord<'static> {
    let record = any_record(n, kind);
    LogRecord { txg: Txg(n.bits(64)), seq: n.bits(64), ignores_case: n.flag(), record }
}

#[test]
fn headers_and_chains_survive_the_round_trip_in_both_orders() {
    let mut n = Numbers(10);
    for _ in 0..100 {
        check_round_trip(&any_header(&mut n), ZilHeader::SIZE, ZilHeader::encode, ZilHeader::decode);
        check_round_trip(&any_chain(&mut n), ZilChain::SIZE, ZilChain::encode, ZilChain::decode);
        let head = LogRecordHeader {
            code: n.below(30),
            ignores_case: n.flag(),
            length: 32 + 8 * n.bits(20),
            txg: Txg(n.bits(64)),
            seq: n.bits(64),
        };
        check_round_trip(&head, LogRecordHeader::SIZE, LogRecordHeader::encode, LogRecordHeader::decode);
    }
}

#[test]
fn kinds_stand_at_their_codes() {
    assert_eq!(LogRecordKind::all().count(), 25);
    for (code, kind) in LogRecordKind::all().enumerate() {
        assert_eq!(kind as usize, code);
        assert_eq!(LogRecordKind::from_code(code as u64), Some(kind));
    }
    assert_eq!(LogRecordKind::from_code(25), None);
    assert_eq!(LogRecordKind::from_code(u64::MAX), None);
}

/// `decode(encode(x))` is `x` for every kind, in both orders, and so are the bytes.
#[test]
fn records_of_every_kind_survive_the_round_trip_in_both_orders() {
    let mut n = Numbers(11);
    for kind in LogRecordKind::all() {
        for _ in 0..100 {
            let record = any_log_record(&mut n, kind);
            assert_eq!(record.record.kind(), kind);
            let length = record.length();
            assert!(length.is_multiple_of(8));
            for endian in ORDERS {
                let mut bytes = vec![0xa5; length];
                let mut w = Writer::new(&mut bytes, endian);
                record.encode(&mut w);
                assert_eq!(w.remaining(), 0);
                let mut r = Reader::new(&bytes, endian, "test");
                let back = LogRecord::decode(&mut r).unwrap();
                assert!(r.is_empty(), "a record is read whole");
                assert_eq!(back, record, "{endian:?}");
                let mut again = vec![0x5a; length];
                back.encode(&mut Writer::new(&mut again, endian));
                assert_eq!(again, bytes, "{endian:?}");
            }
        }
    }
}

/// Lengths by hand from the layout of OpenZFS's structures, so that a slip in both directions is seen too.
#[test]
fn records_are_as_long_as_their_layout_says() {
    let mut n = Numbers(12);
    let length = |record: Record<'_>| record.length();
    assert_eq!(Write::HEAD, 192);
    assert_eq!(length(Record::Write(Write::copied(ObjectId(1), 0, &[0; 512]))), 192 + 512);
    assert_eq!(length(Record::Write(Write::copied(ObjectId(1), 0, &[0; 1]))), 200);
    assert_eq!(length(any_record(&mut n, LogRecordKind::Truncate)), 56);
    let node = NewNode { uid: 0, gid: 0, ..any_node(&mut n) };
    let mut create = any_create(&mut n, LogRecordKind::Create);
    (create.node, create.domains, create.name) = (node, vec![], b"file.txt");
    assert_eq!(length(Record::Create(create.clone())), 104 + 16);
    create.extended = Some(ExtendedAttributes { requested: vec![0; 3], ..any_extended(&mut n) });
    assert_eq!(length(Record::Create(create)), 104 + 72 + 16);
    let rename = |how| Rename {
        how,
        source: ObjectId(1),
        target: ObjectId(2),
        source_name: b"aaa",
        target_name: b"bbb",
    };
    assert_eq!(length(Record::Rename(rename(RenameKind::Plain))), 48 + 8);
    assert_eq!(length(Record::Rename(rename(RenameKind::Whiteout(node)))), 112 + 8);
}

/// A claim of a log finds the pointers without the rest of the record, which may be encrypted.
#[test]
fn pointers_to_data_are_found_in_writes_and_clones() {
    let mut n = Numbers(13);
    for kind in LogRecordKind::all() {
        let record = any_log_record(&mut n, kind);
        let mut bytes = vec![0; record.length()];
        record.encode(&mut Writer::new(&mut bytes, Endian::Big));
        let found = pointers(&mut Reader::new(&bytes, Endian::Big, "test")).unwrap();
        let expected = match &record.record {
            Record::Write(write) => vec![write.pointer.clone()],
            Record::CloneRange(clone) => clone.pointers.clone(),
            _ => vec![],
        };
        assert_eq!(found, expected, "{kind:?}");
    }
}

#[test]
fn hostile_bytes_never_panic() {
    let mut good = vec![0; ZilHeader::SIZE + ZilChain::SIZE];
    let mut w = Writer::new(&mut good, Endian::Little);
    any_header(&mut Numbers(11)).encode(&mut w);
    any_chain(&mut Numbers(12)).encode(&mut w);
    assault(&good, |bytes, endian| {
        let mut r = Reader::new(bytes, endian, "test");
        let _ = ZilHeader::decode(&mut r);
        let _ = ZilChain::decode(&mut r);
    });
}

/// What is accepted can also be written again: an encoder may not meet a value it asserts against.
#[test]
fn hostile_records_never_panic() {
    let mut n = Numbers(14);
    for kind in LogRecordKind::all() {
        for endian in ORDERS {
            let record = any_log_record(&mut n, kind);
            let mut good = vec![0; record.length()];
            record.encode(&mut Writer::new(&mut good, endian));
            assault(&good, |bytes, endian| {
                let _ = pointers(&mut Reader::new(bytes, endian, "test"));
                if let Ok(record) = LogRecord::decode(&mut Reader::new(bytes, endian, "test")) {
                    let mut again = vec![0; record.length()];
                    record.encode(&mut Writer::new(&mut again, endian));
                }
            });
        }
    }
}
