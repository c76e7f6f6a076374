//! What an object holds, as one byte.

use std::fmt;

/// What an object holds, and so what a block of it looks like: one byte in dnodes and block pointers.
///
/// ```text
///   0..=53       the types of old, by number: each has a row in the table below
///   |1|M|E|swap |   bit 7 set: a type that describes itself. M metadata, E encrypted when its dataset is,
///                   swap (5 bits) the [`ByteswapClass`]; what it means is known from where it was found
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectType(pub u8);

/// What changes when the bytes of a block go from one byte order to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ByteswapClass {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    U64 = 3,
    Zap = 4,
    Dnode = 5,
    Objset = 6,
    Znode = 7,
    OldAcl = 8,
    Acl = 9,
}

use ByteswapClass::*;

impl ByteswapClass {
    fn from_code(code: u8) -> Option<ByteswapClass> {
        [U8, U16, U32, U64, Zap, Dnode, Objset, Znode, OldAcl, Acl].into_iter().find(|c| *c as u8 == code)
    }
}

struct Row {
    name: &'static str,
    swap: ByteswapClass,
    metadata: bool,
    encrypted: bool,
}

/// A row per old type: M metadata, D data; then whether it is encrypted in an encrypted dataset.
macro_rules! types {
    ($($code:literal $constant:ident $swap:ident $class:ident $encrypted:literal $name:literal;)*) => {
        impl ObjectType {
            $(pub const $constant: ObjectType = ObjectType($code);)*
        }
        static TABLE: &[Row] = &[
            $(Row { name: $name, swap: $swap, metadata: types!(@ $class), encrypted: $encrypted },)*
        ];
        #[cfg(test)]
        const CODES: &[u8] = &[$($code),*];
    };
    (@ M) => { true };
    (@ D) => { false };
}

types! {
    0  NONE                 U8     M false "unallocated";
    1  OBJECT_DIRECTORY     Zap    M false "object directory";
    2  OBJECT_ARRAY         U64    M false "object array";
    3  PACKED_NVLIST        U8     M false "packed nvlist";
    4  PACKED_NVLIST_SIZE   U64    M false "packed nvlist size";
    5  BPOBJ                U64    M false "bpobj";
    6  BPOBJ_HDR            U64    M false "bpobj header";
    7  SPACE_MAP_HEADER     U64    M false "SPA space map header";
    8  SPACE_MAP            U64    M false "SPA space map";
    9  INTENT_LOG           U64    M true  "ZIL intent log";
    10 DNODE                Dnode  M true  "DMU dnode";
    11 OBJSET               Objset M false "DMU objset";
    12 DSL_DIR              U64    M false "DSL directory";
    13 DSL_DIR_CHILD_MAP    Zap    M false "DSL directory child map";
    14 DSL_DS_SNAP_MAP      Zap    M false "DSL dataset snap map";
    15 DSL_PROPS            Zap    M false "DSL props";
    16 DSL_DATASET          U64    M false "DSL dataset";
    17 ZNODE                Znode  M false "ZFS znode";
    18 OLDACL               OldAcl M true  "ZFS V0 ACL";
    19 PLAIN_FILE_CONTENTS  U8     D true  "ZFS plain file";
    20 DIRECTORY_CONTENTS   Zap    M true  "ZFS directory";
    21 MASTER_NODE          Zap    M false "ZFS master node";
    22 UNLINKED_SET         Zap    M true  "ZFS delete queue";
    23 ZVOL                 U8     D true  "zvol object";
    24 ZVOL_PROP            Zap    M false "zvol prop";
    25 PLAIN_OTHER          U8     D true  "other uint8[]";
    26 UINT64_OTHER         U64    D true  "other uint64[]";
    27 ZAP_OTHER            Zap    M false "other ZAP";
    28 ERROR_LOG            Zap    M false "persistent error log";
    29 SPA_HISTORY          U8     M false "SPA history";
    30 SPA_HISTORY_OFFSETS  U64    M false "SPA history offsets";
    31 POOL_PROPS           Zap    M false "Pool properties";
    32 DSL_PERMS            Zap    M false "DSL permissions";
    33 ACL                  Acl    M true  "ZFS ACL";
    34 SYSACL               U8     M true  "ZFS SYSACL";
    35 FUID                 U8     M true  "FUID table";
    36 FUID_SIZE            U64    M false "FUID table size";
    37 NEXT_CLONES          Zap    M false "DSL dataset next clones";
    38 SCAN_QUEUE           Zap    M false "scan work queue";
    39 USERGROUP_USED       Zap    M true  "ZFS user/group/project used";
    40 USERGROUP_QUOTA      Zap    M true  "ZFS user/group/project quota";
    41 USERREFS             Zap    M false "snapshot refcount tags";
    42 DDT_ZAP              Zap    M false "DDT ZAP algorithm";
    43 DDT_STATS            Zap    M false "DDT statistics";
    44 SA                   U8     M true  "System attributes";
    45 SA_MASTER_NODE       Zap    M true  "SA master node";
    46 SA_ATTR_REGISTRATION Zap    M true  "SA attr registration";
    47 SA_ATTR_LAYOUTS      Zap    M true  "SA attr layouts";
    48 SCAN_XLATE           Zap    M false "scan translations";
    49 DEDUP                U8     D true  "deduplicated block";
    50 DEADLIST             Zap    M false "DSL deadlist map";
    51 DEADLIST_HDR         U64    M false "DSL deadlist map hdr";
    52 DSL_CLONES           Zap    M false "DSL dir clones";
    53 BPOBJ_SUBOBJ         U64    M false "bpobj subobj";
}

const NEW: u8 = 0x80;
const METADATA: u8 = 0x40;
const ENCRYPTED: u8 = 0x20;
const SWAP: u8 = 0x1f;

impl ObjectType {
    pub const UINT8_DATA: ObjectType = ObjectType::described(U8, false, false);
    pub const UINT8_METADATA: ObjectType = ObjectType::described(U8, true, false);
    pub const UINT16_METADATA: ObjectType = ObjectType::described(U16, true, false);
    pub const UINT32_METADATA: ObjectType = ObjectType::described(U32, true, false);
    pub const UINT64_DATA: ObjectType = ObjectType::described(U64, false, false);
    pub const UINT64_METADATA: ObjectType = ObjectType::described(U64, true, false);
    pub const ZAP_DATA: ObjectType = ObjectType::described(Zap, false, false);
    pub const ZAP_METADATA: ObjectType = ObjectType::described(Zap, true, false);

    /// A type that describes itself; see the drawing.
    pub const fn described(swap: ByteswapClass, metadata: bool, encrypted: bool) -> ObjectType {
        let metadata = if metadata { METADATA } else { 0 };
        let encrypted = if encrypted { ENCRYPTED } else { 0 };
        ObjectType(NEW | metadata | encrypted | swap as u8)
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.get(usize::from(self.0))
    }

    fn describes_itself(self) -> bool {
        self.0 & NEW != 0
    }

    /// One of the old types, or a new one with a known byteswap class.
    pub fn is_valid(self) -> bool {
        self.byteswap().is_some()
    }

    /// As zdb writes it in block pointers.
    pub fn name(self) -> &'static str {
        match self.row() {
            Some(row) => row.name,
            None => self.described_name(),
        }
    }

    fn described_name(self) -> &'static str {
        let metadata = self.is_metadata();
        match self.byteswap() {
            Some(U8) if metadata => "bswap metadata uint8",
            Some(U8) => "bswap data uint8",
            Some(U16) if metadata => "bswap metadata uint16",
            Some(U16) => "bswap data uint16",
            Some(U32) if metadata => "bswap metadata uint32",
            Some(U32) => "bswap data uint32",
            Some(U64) if metadata => "bswap metadata uint64",
            Some(U64) => "bswap data uint64",
            Some(Zap) if metadata => "bswap metadata zap",
            Some(Zap) => "bswap data zap",
            Some(_) => "other",
            None => "UNKNOWN",
        }
    }

    /// Whether the pool needs it to find or understand something else. An unknown type counts as data.
    pub fn is_metadata(self) -> bool {
        if self.describes_itself() { self.0 & METADATA != 0 } else { self.row().is_some_and(|r| r.metadata) }
    }

    /// Whether level 0 blocks of it are encrypted when the dataset is (others are then authenticated only).
    pub fn is_encrypted(self) -> bool {
        if self.describes_itself() {
            self.0 & ENCRYPTED != 0
        } else {
            self.row().is_some_and(|r| r.encrypted)
        }
    }

    /// Level 0 pointers to it carry a fill count other than 1, so that they cannot be embedded.
    pub fn has_fill(self) -> bool {
        matches!(self, ObjectType::DNODE | ObjectType::OBJSET)
    }

    /// Whether redundant_metadata=most must keep an extra copy of such a block at this level.
    pub fn is_critical(self, level: u8) -> bool {
        self.is_metadata()
            && (self != ObjectType::DNODE || level > 0)
            && self != ObjectType::DIRECTORY_CONTENTS
            && self != ObjectType::SA
    }

    /// How a block of it goes from one byte order to the other; `None` for types unknown to us.
    pub fn byteswap(self) -> Option<ByteswapClass> {
        if self.describes_itself() {
            ByteswapClass::from_code(self.0 & SWAP)
        } else {
            self.row().map(|r| r.swap)
        }
    }
}

impl fmt::Display for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_type_has_the_row_of_its_number() {
        assert!(CODES.iter().enumerate().all(|(row, code)| row == usize::from(*code)));
        assert_eq!(TABLE.len(), 54);
    }

    #[test]
    fn new_types_describe_themselves() {
        assert_eq!(ObjectType::UINT64_METADATA.0, 0xc3);
        assert_eq!(ObjectType::ZAP_METADATA.0, 0xc4);
        assert_eq!(ObjectType::ZAP_DATA.0, 0x84);
        assert_eq!(ObjectType::ZAP_METADATA.byteswap(), Some(Zap));
        assert!(ObjectType::described(U8, false, true).is_encrypted());
        assert!(!ObjectType(0x9f).is_valid() && !ObjectType(54).is_valid() && !ObjectType(0x7f).is_valid());
        assert_eq!(ObjectType(77).name(), "UNKNOWN");
        assert_eq!(ObjectType::ZAP_METADATA.name(), "bswap metadata zap");
    }
}
