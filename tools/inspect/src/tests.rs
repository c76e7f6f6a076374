use crate::{InspectArgs, What};
use units::ObjectId;

fn parse(line: &str) -> units::Result<InspectArgs> {
    InspectArgs::parse(line.split_whitespace().map(String::from))
}

#[test]
fn words_say_what_is_asked_for() {
    let block = parse("-j -d /a block t/v@s 0x1f 2:7 -d /b").unwrap();
    let what = What::Block { dataset: "t/v@s".into(), object: ObjectId(31), level: 2, blkid: 7 };
    assert_eq!((&block.what, block.json, block.dirs.len()), (&what, true, 2));
    assert_eq!(parse("--verify t").unwrap().what, What::Verify { pool: "t".into() });
    assert_eq!(parse("t --verify").unwrap().what, What::Verify { pool: "t".into() });
    for wrong in ["", "labels", "mos a b", "block t x", "-x mos t", "-d", "block t 1 300:1"] {
        assert!(parse(wrong).unwrap_err().to_string().contains("usage: inspect"), "{wrong}");
    }
}
