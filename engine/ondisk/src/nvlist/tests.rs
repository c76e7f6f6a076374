use super::*;
use crate::testing::{Numbers, assault};
use units::Kind;

fn everything() -> NvList {
    use NvValue::*;
    let inner = NvList::new().with("path", "/dev/sda1").with("guid", u64::MAX);
    let mut list = NvList::new();
    for (name, value) in [
        ("boolean", Boolean),
        ("boolean_value", BooleanValue(true)),
        ("byte", Byte(0xfe)),
        ("int8", Int8(-1)),
        ("uint8", Uint8(200)),
        ("int16", Int16(-2)),
        ("uint16", Uint16(60000)),
        ("int32", Int32(-3)),
        ("uint32", Uint32(4_000_000_000)),
        ("int64", Int64(-4)),
        ("uint64", Uint64(5)),
        ("double", Double(1.5)),
        ("hrtime", HrTime(6)),
        ("string", String("raidz".into())),
        ("list", List(inner.clone())),
        ("booleans", BooleanArray(vec![true, false])),
        ("bytes", ByteArray(vec![1, 2, 3, 4, 5])),
        ("int8s", Int8Array(vec![-1, 1])),
        ("uint8s", Uint8Array(vec![255])),
        ("int16s", Int16Array(vec![-7])),
        ("uint16s", Uint16Array(vec![7, 8, 9])),
        ("int32s", Int32Array(vec![i32::MIN])),
        ("uint32s", Uint32Array(vec![u32::MAX])),
        ("int64s", Int64Array(vec![i64::MIN, 0])),
        ("uint64s", Uint64Array(vec![u64::MAX])),
        ("strings", StringArray(vec!["".into(), "a".into(), "four".into()])),
        ("lists", ListArray(vec![inner.clone(), NvList::new(), inner])),
        ("no numbers", Uint64Array(vec![])),
        ("no strings", StringArray(vec![])),
        ("no lists", ListArray(vec![])),
    ] {
        list.push(name, value);
    }
    list
}

#[test]
fn every_type_survives_the_round_trip() {
    let list = everything();
    let bytes = list.encode();
    assert_eq!(bytes.len(), list.encoded_size());
    let (back, used) = NvList::decode_prefix(&bytes).unwrap();
    assert_eq!((&back, used), (&list, bytes.len()));
    assert_eq!(back.encode(), bytes);
}

#[test]
fn a_pair_is_packed_as_drawn() {
    let bytes = NvList::new().with("txg", 4u64).encode();
    let word = |i: usize| u32::from_be_bytes(bytes[i * 4..i * 4 + 4].try_into().unwrap());
    assert_eq!(bytes[..4], [1, 1, 0, 0]);
    let words: Vec<u32> = (1..13).map(word).collect();
    let txg = u32::from_be_bytes(*b"txg\0");
    assert_eq!(words, [0, 1, 32, 32, 3, txg, 8, 1, 0, 4, 0, 0]);
}

#[test]
fn a_getter_names_the_pair_it_misses() {
    let list = NvList::new().with("name", "tank");
    assert_eq!(list.str("name").unwrap(), "tank");
    assert_eq!(list.opt_u64("txg").unwrap(), None);
    let missing = list.u64("txg").unwrap_err();
    assert_eq!(
        (missing.kind(), missing.to_string()),
        (Kind::Corrupt, "nvlist: no pair 'txg': damaged structure".into())
    );
    let mistyped = list.opt_u64("name").unwrap_err().to_string();
    assert!(mistyped.contains("'name' should be of type u64, but is String"), "{mistyped}");
}

#[test]
fn setting_a_pair_again_moves_it_to_the_end() {
    let list = NvList::new().with("a", 1u64).with("b", 2u64).with("a", 3u64);
    let pairs: Vec<_> = list.iter().collect();
    assert_eq!(pairs, [("b", &NvValue::Uint64(2)), ("a", &NvValue::Uint64(3))]);
}

#[test]
fn every_type_survives_the_round_trip_in_native_form_too() {
    let list = everything();
    let bytes = list.encode_native();
    let (back, used) = NvList::decode_prefix(&bytes).unwrap();
    assert_eq!((&back, used), (&list, bytes.len()));
    assert_eq!(back.encode_native(), bytes);
}

#[test]
fn native_form_is_read_in_the_order_it_names() {
    let pair = |word: fn(u32) -> [u8; 4], short: [u8; 2], value: [u8; 8], order: u8| {
        let head = [[0, order, 0, 0], word(0), word(1), word(32)].concat();
        [
            head,
            short.to_vec(),
            vec![0; 2],
            word(1).into(),
            word(8).into(),
            b"txg\0\0\0\0\0".into(),
            value.into(),
        ]
        .concat()
    };
    let value = 7u64;
    let little = pair(u32::to_le_bytes, 4u16.to_le_bytes(), value.to_le_bytes(), 1);
    let big = pair(u32::to_be_bytes, 4u16.to_be_bytes(), value.to_be_bytes(), 0);
    for packed in [little, big] {
        let list = NvList::decode(&[packed, vec![0; 4]].concat()).unwrap();
        assert_eq!(list, NvList::new().with("txg", value));
    }
}

#[test]
fn what_was_never_written_is_no_list() {
    for bytes in [&[0; 64][..], &[9, 1, 0, 0, 0, 0], &[], &[1]] {
        assert_eq!(NvList::decode(bytes).unwrap_err().kind(), Kind::Corrupt);
    }
}

fn nested(depth: usize) -> NvList {
    let mut list = NvList::new();
    for _ in 1..depth {
        list = NvList::new().with("down", list);
    }
    list
}

#[test]
fn nesting_is_limited() {
    assert!(NvList::decode(&nested(MAX_DEPTH).encode()).is_ok());
    assert!(NvList::decode(&nested(MAX_DEPTH).encode_native()).is_ok());
    let deep = nested(MAX_DEPTH + 1);
    for packed in [deep.encode(), deep.encode_native()] {
        let e = NvList::decode(&packed).unwrap_err().to_string();
        assert!(e.contains("nested deeper than 20"), "{e}");
    }
}

#[test]
fn an_absurd_count_is_refused_before_it_is_believed() {
    let mut bytes = NvList::new().with("a", vec![1u64]).encode();
    let count = 4 + 8 + 8 + 8 + 4;
    bytes[count..count + 8].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let e = NvList::decode(&bytes).unwrap_err().to_string();
    assert!(e.contains("2147483647 elements in 16 bytes"), "{e}");
}

#[test]
fn hostile_bytes_never_panic() {
    for good in [everything().encode(), everything().encode_native()] {
        assault(&good, |bytes, _| {
            if let Ok(list) = NvList::decode(bytes) {
                let _ = list.to_string();
                list.encode();
                list.encode_native();
            }
        });
    }
    let mut n = Numbers(13);
    for _ in 0..2000 {
        let mut noise = vec![0; 256];
        n.fill(&mut noise);
        noise[..2].copy_from_slice(&[n.flag().into(), 1]);
        let _ = NvList::decode(&noise);
    }
}

#[test]
fn a_list_is_written_as_zdb_writes_it() {
    let list = NvList::new().with("name", "tank").with("tree", vec![NvList::new().with("id", 0u64)]);
    assert_eq!(list.to_string(), "name: 'tank'\ntree[0]:\n    id: 0\n");
}
