use super::*;
use crate::statistics;

fn parse(text: &str) -> Query {
    text.parse().unwrap()
}

#[test]
fn what_the_appliance_writes_is_understood() {
    for text in [
        "arc.accesses[hit/miss]",
        "io.disks[utilization=95][disk]",
        "iscsi.ops[op=read][client=iqn.1998-01.org.example:db][latency>=10ms][lun]",
        "iscsi.ops[size=512K][offset]",
        "fs.ops[share=a\\]b\\\\c][op]",
        "io.ops",
        "zil.commits[writers>1][latency]",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    let query = parse("iscsi.ops[op=read][latency>=10ms][lun]");
    assert_eq!(query.breakdown, Some(Breakdown::Lun));
    assert_eq!(query.filters[1].operand, Operand::Number(10_000_000));
    assert_eq!(
        query.title(),
        "iSCSI operations of type of operation read of latency 10ms or more broken down by LUN"
    );
}

/// Every statistic with every breakdown, and filters with hostile values.
#[test]
fn what_is_printed_is_read_as_the_same_query() {
    let hostile = ["", "]", "\\", "[x]", "a=b", "\u{202e}txt", "<script>", "\\]\\", "=", ">="];
    for statistic in statistics() {
        for by in statistic.breakdowns {
            let bare = Query { statistic, filters: Vec::new(), breakdown: Some(*by) };
            assert_eq!(parse(&bare.to_string()), bare);
            let filters = |operand: Operand, compare| vec![Filter { by: *by, compare, operand }];
            for (i, word) in hostile.iter().enumerate() {
                let filters = match by.is_range() {
                    true => filters(Operand::Number(1_000_003 * i as u64), Compare::Above),
                    false => filters(Operand::Word(word.to_string()), Compare::IsNot),
                };
                let query = Query { statistic, filters, breakdown: None };
                assert_eq!(parse(&query.to_string()), query, "{query}");
            }
        }
    }
}

#[test]
fn what_cannot_be_asked_is_refused_in_one_line() {
    let many = format!("io.ops{}", "[op=read]".repeat(17));
    let long = format!("io.ops[disk={}]", "x".repeat(5000));
    for (text, why) in [
        ("iscsi.opps", "there is no statistic 'iscsi.opps'; there are iscsi.ops, iscsi.bytes, iscsi.time"),
        ("", "there is no statistic ''"),
        (
            "fc.ops",
            "there is no statistic 'fc.ops' yet: no fibre-channel port exists, so there is nothing to count",
        ),
        (
            "fc.ops[op]",
            "there is no statistic 'fc.ops' yet: no fibre-channel port exists, so there is nothing to count",
        ),
        ("fc.bytes", "there is no statistic 'fc.bytes'"),
        ("arc.accesses[lun]", "arc.accesses has no 'lun': it has hit/miss"),
        ("io.ops[op", "'io.ops[op': '[…]' must follow, with a breakdown or a filter in it"),
        ("io.ops[op=read", "'io.ops[op=read': '[…]' must follow, with a breakdown or a filter in it"),
        ("io.ops[op]x", "'io.ops[op]x': '[…]' must follow, with a breakdown or a filter in it"),
        ("io.ops[op=a\\", "'io.ops[op=a\\': '[…]' must follow, with a breakdown or a filter in it"),
        ("io.ops[op][size]", "io.ops is broken down by one thing at a time: by op or by size"),
        ("io.ops[op>read]", "op is compared with = or !=, not with >"),
        ("io.ops[latency>fast]", "latency is compared with a number like 10ms, not with 'fast'"),
        (&many, "a statistic has at most 16 filters"),
        (&long, "a statistic has at most 4096 bytes"),
    ] {
        assert_eq!(text.parse::<Query>().unwrap_err().to_string(), why);
    }
}

#[test]
fn a_reserved_name_is_that_of_no_statistic() {
    for (name, _) in crate::RESERVED {
        assert!(crate::Statistic::named(name).is_none(), "{name} is counted, and no longer reserved");
    }
}
