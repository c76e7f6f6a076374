//! `zpool history`: records as they travel.

use crate::appliance::Appliance;
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::{Did, HistoryRecord, Item, PoolHistory, Reply, Result};
use ondisk::{NvList, NvValue};

impl Appliance {
    pub(crate) async fn histories(&self, names: &[String]) -> Result<Reply> {
        let mut histories = Vec::new();
        for pool in self.names_or_all(names).await {
            let open = self.pool(&pool, Access::Look).await?;
            let _reading = open.pool.reading().await;
            let records = match open.pool.dsl().history() {
                Some(history) => history.records().await,
                None => Ok(Vec::new()),
            };
            let records =
                records.map_err(|e| cannot(About::Pool, &format!("get history for '{pool}'"), &e))?;
            histories.push(PoolHistory { records: records.iter().map(describe).collect(), pool });
        }
        Ok(Reply::History(histories))
    }
}

fn describe(record: &NvList) -> HistoryRecord {
    let number = |name| record.opt_u64(name).ok().flatten();
    HistoryRecord {
        time: number("history time"),
        elapsed_ns: elapsed(record),
        did: did(record),
        who: number("history who"),
        host: text(record, "history hostname"),
        zone: text(record, "history zone"),
    }
}

fn text(record: &NvList, name: &str) -> Option<String> {
    record.opt_str(name).ok().flatten().map(String::from)
}

/// Signed on disk, though no time runs backwards.
fn elapsed(record: &NvList) -> Option<u64> {
    match record.get("elapsed_ns")? {
        NvValue::Int64(n) => u64::try_from(*n).ok(),
        NvValue::Uint64(n) => Some(*n),
        _ => None,
    }
}

fn did(record: &NvList) -> Did {
    let number = |name| record.opt_u64(name).ok().flatten();
    let txg = number("history txg").unwrap_or(0);
    let what = || text(record, "history internal str").unwrap_or_default();
    if let Some(line) = text(record, "history command") {
        return Did::Command(line);
    }
    if let Some(event) = number("history internal event") {
        return Did::Event { event, txg, text: what() };
    }
    if let Some(name) = text(record, "internal_name") {
        let dataset = text(record, "dsname").zip(number("dsid"));
        return Did::Internal { txg, name, text: what(), dataset };
    }
    if let Some(name) = text(record, "ioctl") {
        let pairs = |name| record.opt_list(name).ok().flatten().map(items).unwrap_or_default();
        let errno = match record.get("errno") {
            Some(NvValue::Int64(n)) => u64::try_from(*n).ok(),
            _ => None,
        };
        return Did::Ioctl { name, input: pairs("in_nvl"), output: pairs("out_nvl"), errno };
    }
    Did::Unknown(items(record))
}

fn items(list: &NvList) -> Vec<(String, Item)> {
    list.iter().map(|(name, value)| (name.to_string(), item(value))).collect()
}

fn item(value: &NvValue) -> Item {
    match value {
        NvValue::Boolean => Item::Flag,
        NvValue::List(list) => Item::List(items(list)),
        NvValue::String(text) => Item::Text(text.clone()),
        NvValue::Uint64(n) => Item::Text(n.to_string()),
        NvValue::Int64(n) => Item::Text(n.to_string()),
        NvValue::Int32(n) => Item::Text(n.to_string()),
        NvValue::Uint32(n) => Item::Text(n.to_string()),
        NvValue::Byte(n) | NvValue::Uint8(n) => Item::Text(n.to_string()),
        NvValue::BooleanValue(yes) => Item::Text(yes.to_string()),
        other => Item::Text(format!("{other:?}")),
    }
}
