//! The table of pool properties, in the order in which `zpool get all` lists them.

use crate::props::index::{BOOLEAN, FAILMODE};
use crate::props::{Kind, Property, Setting, Types, Unit};

/// Declares [`PoolProp`] and [`TABLE`] from the same rows, so that a property's number is its row.
macro_rules! properties {
    ($($id:ident $name:literal $column:literal $kind:expr, $setting:expr, $values:expr, $listed:expr;)*) => {
        /// A native pool property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PoolProp { $($id),* }

        impl PoolProp {
            pub const ALL: &'static [PoolProp] = &[$(PoolProp::$id),*];
        }

        pub static TABLE: &[Property] = &[$(Property {
            name: $name, column: $column, kind: $kind, setting: $setting, types: Types::POOL, values: $values, listed: $listed,
        }),*];
    };
}

const fn number(unit: Unit, default: u64) -> Kind {
    Kind::Number { unit, default }
}
const fn switch(default: u64) -> Kind {
    Kind::Index { names: BOOLEAN, default }
}
const TEXT: Kind = Kind::Text { default: None };
const BYTES: Kind = number(Unit::Scaled, 0);
const SET: Setting = Setting::Local;
const READONLY: Setting = Setting::ReadOnly;
const ON_OFF: &str = "on | off";
const SIZE: &str = "<size>";
/// `get all` lists it.
const L: bool = true;
/// It is internal, or younger than the release whose listing is followed: shown when asked for by name.
const H: bool = false;

#[rustfmt::skip]
properties! {
    Name "name" "NAME" TEXT, READONLY, "", H;
    Size "size" "SIZE" BYTES, READONLY, SIZE, L;
    Capacity "capacity" "CAP" number(Unit::Percent, 0), READONLY, "<percent>", L;
    AltRoot "altroot" "ALTROOT" TEXT, SET, "<path>", L;
    Health "health" "HEALTH" TEXT, READONLY, "<state>", L;
    Guid "guid" "GUID" number(Unit::Exact, 0), READONLY, "<guid>", L;
    Version "version" "VERSION" number(Unit::Exact, super::VERSION_FEATURES), SET, "<version>", L;
    BootFs "bootfs" "BOOTFS" TEXT, SET, "<filesystem>", L;
    Delegation "delegation" "DELEGATION" switch(1), SET, ON_OFF, L;
    AutoReplace "autoreplace" "REPLACE" switch(0), SET, ON_OFF, L;
    CacheFile "cachefile" "CACHEFILE" TEXT, SET, "<file> | none", L;
    FailMode "failmode" "FAILMODE" Kind::Index { names: FAILMODE, default: 0 }, SET, "wait | continue | panic", L;
    ListSnapshots "listsnapshots" "LISTSNAPS" switch(0), SET, ON_OFF, L;
    AutoExpand "autoexpand" "EXPAND" switch(0), SET, ON_OFF, L;
    DedupDitto "dedupditto" "DEDUPDITTO" number(Unit::Scaled, 0), SET, "", H;
    DedupRatio "dedupratio" "DEDUP" number(Unit::Ratio, 0), READONLY, "<1.00x or higher if deduped>", L;
    Free "free" "FREE" BYTES, READONLY, SIZE, L;
    Allocated "allocated" "ALLOC" BYTES, READONLY, SIZE, L;
    ReadOnly "readonly" "RDONLY" switch(0), SET, ON_OFF, L;
    Ashift "ashift" "ASHIFT" number(Unit::Exact, 0), SET, "<ashift, 9-16, or 0=default>", L;
    Comment "comment" "COMMENT" TEXT, SET, "<comment-string>", L;
    ExpandSize "expandsize" "EXPANDSZ" BYTES, READONLY, SIZE, L;
    Freeing "freeing" "FREEING" BYTES, READONLY, SIZE, L;
    Fragmentation "fragmentation" "FRAG" number(Unit::Percent, 0), READONLY, "<percent>", L;
    Leaked "leaked" "LEAKED" BYTES, READONLY, SIZE, L;
    MaxBlockSize "maxblocksize" "MAXBLOCKSIZE" number(Unit::Exact, 0), READONLY, "", H;
    TName "tname" "TNAME" TEXT, Setting::Once, "", H;
    MaxDnodeSize "maxdnodesize" "MAXDNODESIZE" number(Unit::Exact, 0), READONLY, "", H;
    MultiHost "multihost" "MULTIHOST" switch(0), SET, ON_OFF, L;
    Checkpoint "checkpoint" "CKPOINT" BYTES, READONLY, SIZE, L;
    LoadGuid "load_guid" "LOAD_GUID" number(Unit::Exact, 0), READONLY, "<load_guid>", L;
    AutoTrim "autotrim" "AUTOTRIM" switch(0), SET, ON_OFF, L;
    Compatibility "compatibility" "COMPATIBILITY" Kind::Text { default: Some("off") }, SET, "<file[,file...]> | off | legacy", L;
    BcloneUsed "bcloneused" "BCLONE_USED" BYTES, READONLY, SIZE, L;
    BcloneSaved "bclonesaved" "BCLONE_SAVED" BYTES, READONLY, SIZE, L;
    BcloneRatio "bcloneratio" "BCLONE_RATIO" number(Unit::Ratio, 0), READONLY, "<1.00x or higher if cloned>", L;
    DedupTableSize "dedup_table_size" "DDTSIZE" BYTES, READONLY, SIZE, L;
    DedupTableQuota "dedup_table_quota" "DDTQUOTA" number(Unit::BytesOrNone, u64::MAX), SET, SIZE, L;
    DedupCached "dedupcached" "DEDUPCACHED" BYTES, READONLY, "", H;
    LastScrubbedTxg "last_scrubbed_txg" "LAST_SCRUBBED_TXG" number(Unit::Exact, 0), READONLY, "<txg>", L;
    DedupUsed "dedupused" "DEDUP_USED" BYTES, READONLY, SIZE, H;
    DedupSaved "dedupsaved" "DEDUP_SAVED" BYTES, READONLY, SIZE, H;
    Available "available" "AVAIL" BYTES, READONLY, SIZE, H;
    Usable "usable" "USABLE" BYTES, READONLY, SIZE, H;
    Used "used" "USED" BYTES, READONLY, SIZE, H;
}
