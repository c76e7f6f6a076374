//! The table of native dataset properties, in the order in which `zfs get all` lists them.

use super::index::*;
use super::{Kind, Property, Setting, Types, Unit};

/// Declares [`Prop`] and [`TABLE`] from the same rows, so that a property's number is its row.
macro_rules! properties {
    ($($id:ident $name:literal $column:literal $kind:expr, $setting:expr, $types:expr, $values:expr, $listed:expr;)*) => {
        /// A native dataset property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Prop { $($id),* }

        impl Prop {
            pub const ALL: &'static [Prop] = &[$(Prop::$id),*];
        }

        pub static TABLE: &[Property] = &[$(Property {
            name: $name, column: $column, kind: $kind, setting: $setting, types: $types, values: $values, listed: $listed,
        }),*];
    };
}

const fn number(unit: Unit, default: u64) -> Kind {
    Kind::Number { unit, default }
}
const fn names(names: super::Names, default: u64) -> Kind {
    Kind::Index { names, default }
}
const fn text(default: &'static str) -> Kind {
    Kind::Text { default: Some(default) }
}
const TEXT: Kind = Kind::Text { default: None };

const NO_LIMIT: u64 = u64::MAX;
const INHERITED: Setting = Setting::Inherited;
const LOCAL: Setting = Setting::Local;
const ONCE: Setting = Setting::Once;
const ONCE_INHERITED: Setting = Setting::OnceInherited;
const READONLY: Setting = Setting::ReadOnly;

const FS: Types = Types::FILESYSTEM;
const VOL: Types = Types::VOLUME;
const SNAP: Types = Types::SNAPSHOT;
const FS_VOL: Types = FS.or(VOL);
const FS_SNAP: Types = FS.or(SNAP);
const ANY: Types = Types::DATASET;
const ANY_MARK: Types = ANY.or(Types::BOOKMARK);

const fn append<const N: usize>(mut to: [u8; N], length: usize, text: &str) -> ([u8; N], usize) {
    let mut at = 0;
    while at < text.len() {
        to[length + at] = text.as_bytes()[at];
        at += 1;
    }
    (to, length + at)
}

/// `get all` lists it.
const L: bool = true;
/// It is internal, or younger than the release whose listing is followed: shown when asked for by name.
const H: bool = false;

const COMPRESSION_VALUES: &str = "on | off | lzjb | gzip | gzip-[1-9] | zle | lz4 | zstd | zstd-[1-19] | zstd-fast | \
                                  zstd-fast-[1-10,20,30,40,50,60,70,80,90,100,500,1000]";
const DEDUP_VALUES: &str = "on | off | verify | sha256[,verify] | sha512[,verify] | skein[,verify] | \
                            edonr,verify | blake3[,verify]";
/// `on | off | fletcher2 ...`: all that can be set, but for `noparity`, which OpenZFS reads and does not list.
const CHECKSUM_VALUES: &str = {
    const LISTED: usize = 128;
    const TEXT: ([u8; LISTED], usize) = {
        let (mut text, mut length, mut at) = ([0; LISTED], 0, 0);
        while at < CHECKSUM.len() {
            let name = CHECKSUM[at].0;
            if CHECKSUM[at].1 != units::Checksum::NoParity as u64 {
                (text, length) = append(text, length, if at == 0 { "" } else { " | " });
                (text, length) = append(text, length, name);
            }
            at += 1;
        }
        (text, length)
    };
    match std::str::from_utf8(TEXT.0.split_at(TEXT.1).0) {
        Ok(text) => text,
        Err(_) => panic!("names are text"),
    }
};
const ENCRYPTION_VALUES: &str =
    "on | off | aes-128-ccm | aes-192-ccm | aes-256-ccm | aes-128-gcm | aes-192-gcm | aes-256-gcm";
const ACLINHERIT_VALUES: &str = "discard | noallow | restricted | passthrough | passthrough-x";
const ON_OFF: &str = "on | off";
const SIZE: &str = "<size>";
const SIZE_OR_NONE: &str = "<size> | none";
const COUNT_OR_NONE: &str = "<count> | none";
const BLOCK_SIZE: &str = "512 to 16M, power of 2";
const RATIO: &str = "<1.00x or higher if compressed>";

#[rustfmt::skip]
properties! {
    Type "type" "TYPE" TEXT, READONLY, ANY_MARK, "filesystem | volume | snapshot | bookmark", L;
    Creation "creation" "CREATION" number(Unit::Date, 0), READONLY, ANY_MARK, "<date>", L;
    Used "used" "USED" number(Unit::Bytes, 0), READONLY, ANY, SIZE, L;
    Available "available" "AVAIL" number(Unit::Bytes, 0), READONLY, FS_VOL, SIZE, L;
    Referenced "referenced" "REFER" number(Unit::Bytes, 0), READONLY, ANY_MARK, SIZE, L;
    CompressRatio "compressratio" "RATIO" number(Unit::Ratio, 0), READONLY, ANY_MARK, RATIO, L;
    Mounted "mounted" "MOUNTED" names(YES_NO, 0), READONLY, FS, "yes | no", L;
    Origin "origin" "ORIGIN" TEXT, READONLY, FS_VOL, "<snapshot>", L;
    Quota "quota" "QUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS, SIZE_OR_NONE, L;
    Reservation "reservation" "RESERV" number(Unit::BytesOrNone, 0), LOCAL, FS_VOL, SIZE_OR_NONE, L;
    VolSize "volsize" "VOLSIZE" number(Unit::Scaled, 0), LOCAL, SNAP.or(VOL), SIZE, L;
    VolBlockSize "volblocksize" "VOLBLOCK" number(Unit::Scaled, 16384), ONCE_INHERITED, VOL, BLOCK_SIZE, L;
    RecordSize "recordsize" "RECSIZE" number(Unit::Scaled, 131_072), INHERITED, FS, BLOCK_SIZE, L;
    MountPoint "mountpoint" "MOUNTPOINT" text("/"), INHERITED, FS, "<path> | legacy | none", L;
    ShareNfs "sharenfs" "SHARENFS" text("off"), INHERITED, FS, "on | off | NFS share options", L;
    Checksum "checksum" "CHECKSUM" names(CHECKSUM, CHECKSUM_ON), INHERITED, FS_VOL, CHECKSUM_VALUES, L;
    Compression "compression" "COMPRESS" names(COMPRESSION, COMPRESSION_ON), INHERITED, FS_VOL, COMPRESSION_VALUES, L;
    Atime "atime" "ATIME" names(BOOLEAN, 1), INHERITED, FS, ON_OFF, L;
    Devices "devices" "DEVICES" names(BOOLEAN, 1), INHERITED, FS_SNAP, ON_OFF, L;
    Exec "exec" "EXEC" names(BOOLEAN, 1), INHERITED, FS_SNAP, ON_OFF, L;
    Setuid "setuid" "SETUID" names(BOOLEAN, 1), INHERITED, FS_SNAP, ON_OFF, L;
    ReadOnly "readonly" "RDONLY" names(BOOLEAN, 0), INHERITED, FS_VOL, ON_OFF, L;
    Zoned "zoned" "ZONED" names(BOOLEAN, 0), INHERITED, FS, ON_OFF, L;
    SnapDir "snapdir" "SNAPDIR" names(SNAPDIR, 0), INHERITED, FS, "disabled | hidden | visible", L;
    AclMode "aclmode" "ACLMODE" names(ACLMODE, 0), INHERITED, FS, "discard | groupmask | passthrough | restricted", L;
    AclInherit "aclinherit" "ACLINHERIT" names(ACLINHERIT, 4), INHERITED, FS, ACLINHERIT_VALUES, L;
    CreateTxg "createtxg" "CREATETXG" number(Unit::Exact, 0), READONLY, ANY_MARK, "<uint64>", L;
    Name "name" "NAME" TEXT, READONLY, ANY_MARK, "", H;
    CanMount "canmount" "CANMOUNT" names(CANMOUNT, 1), LOCAL, FS, "on | off | noauto", L;
    IscsiOptions "iscsioptions" "ISCSIOPTIONS" TEXT, INHERITED, VOL, "", H;
    Xattr "xattr" "XATTR" names(XATTR, 2), INHERITED, FS_SNAP, "on | off | dir | sa", L;
    NumClones "numclones" "NUMCLONES" number(Unit::Scaled, 0), READONLY, SNAP, "", H;
    Copies "copies" "COPIES" names(COPIES, 1), INHERITED, FS_VOL, "1 | 2 | 3", L;
    Version "version" "VERSION" names(VERSION, 0), LOCAL, FS_SNAP, "1 | 2 | 3 | 4 | 5 | current", L;
    Utf8Only "utf8only" "UTF8ONLY" names(BOOLEAN, 0), ONCE_INHERITED, FS_SNAP, ON_OFF, L;
    Normalization "normalization" "NORMALIZATION" names(NORMALIZATION, 0), ONCE_INHERITED, FS_SNAP, "none | formC | formD | formKC | formKD", L;
    CaseSensitivity "casesensitivity" "CASE" names(CASE, 0), ONCE_INHERITED, FS_SNAP, "sensitive | insensitive | mixed", L;
    Vscan "vscan" "VSCAN" names(BOOLEAN, 0), INHERITED, FS, ON_OFF, L;
    Nbmand "nbmand" "NBMAND" names(BOOLEAN, 0), INHERITED, FS_SNAP, ON_OFF, L;
    ShareSmb "sharesmb" "SHARESMB" text("off"), INHERITED, FS, "on | off | SMB share options", L;
    RefQuota "refquota" "REFQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS, SIZE_OR_NONE, L;
    RefReservation "refreservation" "REFRESERV" number(Unit::BytesOrNone, 0), LOCAL, FS_VOL, SIZE_OR_NONE, L;
    Guid "guid" "GUID" number(Unit::Exact, 0), READONLY, ANY_MARK, "<uint64>", L;
    PrimaryCache "primarycache" "PRIMARYCACHE" names(CACHE, 2), INHERITED, ANY, "all | none | metadata", L;
    SecondaryCache "secondarycache" "SECONDARYCACHE" names(CACHE, 2), INHERITED, ANY, "all | none | metadata", L;
    UsedBySnapshots "usedbysnapshots" "USEDSNAP" number(Unit::Bytes, 0), READONLY, FS_VOL, SIZE, L;
    UsedByDataset "usedbydataset" "USEDDS" number(Unit::Bytes, 0), READONLY, FS_VOL, SIZE, L;
    UsedByChildren "usedbychildren" "USEDCHILD" number(Unit::Bytes, 0), READONLY, FS_VOL, SIZE, L;
    UsedByRefReservation "usedbyrefreservation" "USEDREFRESERV" number(Unit::Bytes, 0), READONLY, FS_VOL, SIZE, L;
    UserAccounting "useraccounting" "USERACCOUNTING" number(Unit::Scaled, 0), READONLY, ANY, "", H;
    StmfShareInfo "stmf_sbd_lu" "STMF_SBD_LU" TEXT, INHERITED, VOL, "", H;
    DeferDestroy "defer_destroy" "DEFER_DESTROY" names(BOOLEAN, 0), READONLY, SNAP, "yes | no", L;
    UserRefs "userrefs" "USERREFS" number(Unit::Scaled, 0), READONLY, SNAP, "<count>", L;
    LogBias "logbias" "LOGBIAS" names(LOGBIAS, 0), INHERITED, FS_VOL, "latency | throughput", L;
    Unique "unique" "UNIQUE" number(Unit::Scaled, 0), READONLY, ANY, "", H;
    ObjsetId "objsetid" "OBJSETID" number(Unit::Exact, 0), READONLY, ANY, "<uint64>", L;
    Dedup "dedup" "DEDUP" names(DEDUP, 2), INHERITED, FS_VOL, DEDUP_VALUES, L;
    MlsLabel "mlslabel" "MLSLABEL" text("none"), INHERITED, ANY, "<sensitivity label>", L;
    Sync "sync" "SYNC" names(SYNC, 0), INHERITED, FS_VOL, "standard | always | disabled", L;
    DnodeSize "dnodesize" "DNSIZE" names(DNODESIZE, 0), INHERITED, FS, "legacy | auto | 1k | 2k | 4k | 8k | 16k", L;
    RefCompressRatio "refcompressratio" "REFRATIO" number(Unit::Ratio, 0), READONLY, ANY, RATIO, L;
    Written "written" "WRITTEN" number(Unit::Scaled, 0), READONLY, ANY, SIZE, L;
    Clones "clones" "CLONES" TEXT, READONLY, SNAP, "<dataset>[,...]", L;
    LogicalUsed "logicalused" "LUSED" number(Unit::Scaled, 0), READONLY, FS_VOL, SIZE, L;
    LogicalReferenced "logicalreferenced" "LREFER" number(Unit::Scaled, 0), READONLY, ANY_MARK, SIZE, L;
    Inconsistent "inconsistent" "INCONSISTENT" number(Unit::Scaled, 0), READONLY, ANY, "", H;
    VolMode "volmode" "VOLMODE" names(VOLMODE, 0), INHERITED, FS_VOL, "default | full | geom | dev | none", L;
    FilesystemLimit "filesystem_limit" "FSLIMIT" number(Unit::CountOrNone, NO_LIMIT), LOCAL, FS, COUNT_OR_NONE, L;
    SnapshotLimit "snapshot_limit" "SSLIMIT" number(Unit::CountOrNone, NO_LIMIT), LOCAL, FS_VOL, COUNT_OR_NONE, L;
    FilesystemCount "filesystem_count" "FSCOUNT" number(Unit::CountOrNone, NO_LIMIT), READONLY, FS, "<count>", L;
    SnapshotCount "snapshot_count" "SSCOUNT" number(Unit::CountOrNone, NO_LIMIT), READONLY, FS_VOL, "<count>", L;
    SnapDev "snapdev" "SNAPDEV" names(SNAPDEV, 0), INHERITED, FS_VOL, "hidden | visible", L;
    AclType "acltype" "ACLTYPE" names(ACLTYPE, 0), INHERITED, FS_SNAP, "off | nfsv4 | posix", L;
    Context "context" "CONTEXT" text("none"), LOCAL, ANY, "<selinux context>", L;
    FsContext "fscontext" "FSCONTEXT" text("none"), LOCAL, ANY, "<selinux fscontext>", L;
    DefContext "defcontext" "DEFCONTEXT" text("none"), LOCAL, ANY, "<selinux defcontext>", L;
    RootContext "rootcontext" "ROOTCONTEXT" text("none"), LOCAL, ANY, "<selinux rootcontext>", L;
    Relatime "relatime" "RELATIME" names(BOOLEAN, 1), INHERITED, FS, ON_OFF, L;
    RedundantMetadata "redundant_metadata" "REDUND_MD" names(REDUNDANT_METADATA, 0), INHERITED, FS_VOL, "all | most | some | none", L;
    Overlay "overlay" "OVERLAY" names(BOOLEAN, 1), INHERITED, FS, ON_OFF, L;
    PrevSnap "prevsnap" "PREVSNAP" TEXT, READONLY, FS_VOL, "", H;
    ReceiveResumeToken "receive_resume_token" "RESUMETOK" TEXT, READONLY, FS_VOL, "<string token>", L;
    Encryption "encryption" "ENCRYPTION" names(ENCRYPTION, ENCRYPTION_OFF), ONCE_INHERITED, ANY, ENCRYPTION_VALUES, L;
    KeyLocation "keylocation" "KEYLOCATION" text("none"), LOCAL, FS_VOL, "prompt | <file URI> | <https URL> | <http URL>", L;
    KeyFormat "keyformat" "KEYFORMAT" names(KEYFORMAT, 0), ONCE, FS_VOL, "none | raw | hex | passphrase", L;
    Pbkdf2Salt "pbkdf2salt" "PBKDF2SALT" number(Unit::Scaled, 0), ONCE, FS_VOL, "", H;
    Pbkdf2Iters "pbkdf2iters" "PBKDF2ITERS" number(Unit::Exact, 0), ONCE, FS_VOL, "<iters>", L;
    EncryptionRoot "encryptionroot" "ENCROOT" TEXT, READONLY, ANY, "<filesystem | volume>", L;
    KeyGuid "keyguid" "KEYGUID" number(Unit::Exact, 0), READONLY, ANY, "", H;
    KeyStatus "keystatus" "KEYSTATUS" names(KEYSTATUS, 0), READONLY, ANY, "none | unavailable | available", L;
    RemapTxg "remaptxg" "REMAPTXG" number(Unit::Scaled, 0), READONLY, ANY, "", H;
    SpecialSmallBlocks "special_small_blocks" "SPECIAL_SMALL_BLOCKS" number(Unit::Scaled, 0), INHERITED, FS, "0 to 16M", L;
    IvsetGuid "ivsetguid" "IVSETGUID" number(Unit::Exact, 0), READONLY, ANY_MARK, "", H;
    Redacted "redacted" "REDACTED" number(Unit::Scaled, 0), READONLY, ANY, "", H;
    RedactSnaps "redact_snaps" "RSNAPS" TEXT, READONLY, ANY_MARK, "<snapshot>[,...]", L;
    SnapshotsChanged "snapshots_changed" "SNAPSHOTS_CHANGED" number(Unit::DateSeconds, 0), READONLY, FS_VOL, "<date>", L;
    Prefetch "prefetch" "PREFETCH" names(CACHE, 2), INHERITED, ANY, "none | metadata | all", L;
    VolThreading "volthreading" "VOLTHREAD" names(BOOLEAN, 1), LOCAL, VOL, ON_OFF, L;
    Direct "direct" "DIRECT" names(DIRECT, 1), INHERITED, FS, "disabled | standard | always", L;
    LongName "longname" "LONGNAME" names(BOOLEAN, 0), INHERITED, FS, ON_OFF, L;
    DefaultUserQuota "defaultuserquota" "DEFAULTUSERQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS_SNAP, SIZE_OR_NONE, H;
    DefaultGroupQuota "defaultgroupquota" "DEFAULTGROUPQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS_SNAP, SIZE_OR_NONE, H;
    DefaultProjectQuota "defaultprojectquota" "DEFAULTPROJECTQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS_SNAP, SIZE_OR_NONE, H;
    DefaultUserObjQuota "defaultuserobjquota" "DEFAULTUSEROBJQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS_SNAP, SIZE_OR_NONE, H;
    DefaultGroupObjQuota "defaultgroupobjquota" "DEFAULTGROUPOBJQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS_SNAP, SIZE_OR_NONE, H;
    DefaultProjectObjQuota "defaultprojectobjquota" "DEFAULTPROJECTOBJQUOTA" number(Unit::BytesOrNone, 0), LOCAL, FS_SNAP, SIZE_OR_NONE, H;
    SnapshotsChangedNsecs "snapshots_changed_nsecs" "SNAPSHOTS_CHANGED_NSECS" number(Unit::Exact, 0), READONLY, FS_VOL, "<nsec>", H;
    ZonedUid "zoned_uid" "ZONED_UID" number(Unit::Exact, 0), INHERITED, FS, "<uid> | none", H;
}
