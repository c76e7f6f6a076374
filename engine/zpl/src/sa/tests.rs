use super::*;
use crate::attributes::RootDirectory;

fn root() -> (Vec<u8>, Tables) {
    let now = world::WallTime { seconds: 1, nanos: 2 };
    let bonus =
        RootDirectory { id: 34, txg: 66, uid: 3, gid: 4, mode: 0o755, now, has_project: false }.bonus();
    let tables = Tables::none();
    tables.lock().insert(crate::attributes::DIRECTORY_LAYOUT, crate::attributes::DIRECTORY.into());
    (bonus, tables)
}

#[test]
fn the_attributes_of_a_root_directory_are_read_in_either_byte_order() {
    let (bonus, tables) = root();
    let check = |bonus: &[u8]| {
        let found = Attributes::decode(bonus.into(), &tables).unwrap();
        assert_eq!(found.require(Attr::Mode).unwrap(), 0o040_755);
        assert_eq!(found.require(Attr::Parent).unwrap(), 34);
        assert_eq!(found.words(Attr::Mtime).unwrap(), Some([1, 2]));
        assert_eq!(found.bytes(Attr::DaclAces).map(<[u8]>::len), Some(24));
        assert!(!found.has(Attr::Dxattr));
        found.acl_order()
    };
    let native = check(&bonus);
    let mut foreign = bonus.clone();
    foreign[..4].reverse();
    foreign[4..6].reverse();
    foreign[6..8].reverse();
    let aces = foreign.len() - 24;
    foreign[8..aces].chunks_exact_mut(8).for_each(<[u8]>::reverse);
    assert_ne!(check(&foreign), native);
}

#[test]
fn lies_become_errors_that_name_the_attribute() {
    let (bonus, tables) = root();
    let fault = |at: usize, value: u8| {
        let mut bad = bonus.clone();
        bad[at] = value;
        Attributes::decode(bad.into(), &tables).unwrap_err().to_string()
    };
    assert!(fault(0, 0).contains("magic"));
    assert!(fault(4, 9).contains("layout 9, which the table lacks"));
    assert!(fault(5, 0xfc).contains("a header of 504 bytes in 168 bytes"));
    assert!(fault(7, 0x7f).contains("attribute ZPL_DACL_ACES: 32536 bytes where 24 are left"));
    for len in 0..bonus.len() {
        assert!(Attributes::decode(bonus[..len].into(), &tables).is_err(), "{len}");
    }
    let short = Attributes::decode_znode(&[0; 100]).unwrap_err();
    assert!(short.to_string().contains("znode of 100 bytes"));
    let znode = Attributes::decode_znode(&[0; 320]).unwrap();
    assert_eq!(znode.bytes(Attr::Symlink).map(<[u8]>::len), Some(56));
}

#[test]
fn names_and_numbers_agree_with_the_registry() {
    for attr in Attr::ALL {
        assert_eq!(Attr::from_name(attr.name()), Some(attr));
        assert_eq!(REGISTRY[attr as usize].number, attr as u16);
    }
}
