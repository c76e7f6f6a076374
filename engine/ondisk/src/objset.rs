//! The root of a set of objects: the MOS, a volume, a file system or a snapshot of one.
//!
//! ```text
//!      0  meta-dnode: the object whose blocks hold all other dnodes      512 bytes
//!    512  header of the intent log                                       192
//!    704  type, flags                                                    8 + 8
//!    720  portable MAC, local MAC (zero unless encrypted)                32 + 32
//!    784  padding
//!   1024  user-used dnode, group-used dnode          from pool version 15 on, else the block ends here
//!   2048  project-used dnode, padding to 4096        from feature `project_quota` on, else the block ends here
//! ```

use crate::bytes::{Reader, Writer};
use crate::dnode::{DNODE_BLOCK_SIZE, DNODE_SIZE, DnodePhys};
use crate::object_type::ObjectType;
use crate::zil::ZilHeader;
use units::{Endian, Result};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjsetPhys {
    pub size: ObjsetSize,
    pub meta_dnode: DnodePhys,
    pub zil_header: ZilHeader,
    pub kind: ObjsetType,
    pub flags: ObjsetFlags,
    pub portable_mac: [u8; 32],
    pub local_mac: [u8; 32],
    /// Free when [`ObjsetPhys::size`] has no room for it; so are the next two.
    pub user_used: DnodePhys,
    pub group_used: DnodePhys,
    pub project_used: DnodePhys,
}

/// Which accounting dnodes there is room for, and so the size of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjsetSize {
    /// 1024 bytes: none.
    V1,
    /// 2048 bytes: users and groups.
    V2,
    /// 4096 bytes: projects too.
    V3,
}

/// What a set of objects is (`DMU_OST_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjsetType {
    None = 0,
    /// The MOS: the pool's own objects.
    Meta = 1,
    /// A file system.
    Zfs = 2,
    Zvol = 3,
    Other = 4,
}

/// A set of the `OBJSET_FLAG_*` bits. Unknown bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjsetFlags(pub u64);

impl ObjsetFlags {
    pub const USER_ACCOUNTING_COMPLETE: ObjsetFlags = ObjsetFlags(1);
    pub const USER_OBJECT_ACCOUNTING_COMPLETE: ObjsetFlags = ObjsetFlags(2);
    pub const PROJECT_QUOTA_COMPLETE: ObjsetFlags = ObjsetFlags(4);

    pub fn has(self, flag: ObjsetFlags) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[must_use]
    pub fn with(self, flag: ObjsetFlags) -> ObjsetFlags {
        ObjsetFlags(self.0 | flag.0)
    }
}

impl ObjsetSize {
    pub fn bytes(self) -> usize {
        match self {
            ObjsetSize::V1 => 1024,
            ObjsetSize::V2 => 2048,
            ObjsetSize::V3 => 4096,
        }
    }

    pub fn from_bytes(bytes: usize) -> Option<ObjsetSize> {
        [ObjsetSize::V1, ObjsetSize::V2, ObjsetSize::V3].into_iter().find(|s| s.bytes() == bytes)
    }
}

impl ObjsetType {
    pub fn from_code(code: u64) -> Option<ObjsetType> {
        use ObjsetType::*;
        [None, Meta, Zfs, Zvol, Other].into_iter().find(|t| *t as u64 == code)
    }

    /// As zdb writes it.
    pub fn name(self) -> &'static str {
        match self {
            ObjsetType::None => "NONE",
            ObjsetType::Meta => "META",
            ObjsetType::Zfs => "ZPL",
            ObjsetType::Zvol => "ZVOL",
            ObjsetType::Other => "OTHER",
        }
    }
}

impl ObjsetPhys {
    /// An empty set: no log, no accounting.
    pub fn new(kind: ObjsetType, size: ObjsetSize, meta_dnode: DnodePhys) -> ObjsetPhys {
        ObjsetPhys {
            size,
            meta_dnode,
            zil_header: ZilHeader::default(),
            kind,
            flags: ObjsetFlags::default(),
            portable_mac: [0; 32],
            local_mac: [0; 32],
            user_used: DnodePhys::free(),
            group_used: DnodePhys::free(),
            project_used: DnodePhys::free(),
        }
    }

    /// `bytes` are the whole block.
    pub fn from_bytes(bytes: &[u8], endian: Endian) -> Result<ObjsetPhys> {
        ObjsetPhys::decode(&mut Reader::new(bytes, endian, "object set"))
    }

    /// Reads all that is left of `r`: the length of the block says what is in it.
    pub fn decode(r: &mut Reader<'_>) -> Result<ObjsetPhys> {
        let size = ObjsetSize::from_bytes(r.remaining())
            .ok_or_else(|| r.corrupt(format_args!("a block of {} bytes", r.remaining())))?;
        let meta_dnode = decode_dnode(r)?;
        if meta_dnode.kind != ObjectType::DNODE
            || meta_dnode.data_block_size().0 != DNODE_BLOCK_SIZE as u64
            || meta_dnode.slots() != 1
        {
            return Err(r.corrupt(format_args!(
                "a meta-dnode of type '{}' with blocks of {} bytes",
                meta_dnode.kind,
                meta_dnode.data_block_size().0
            )));
        }
        let zil_header = ZilHeader::decode(r)?;
        let kind = r.u64()?;
        let kind =
            ObjsetType::from_code(kind).ok_or_else(|| r.corrupt(format_args!("unknown type {kind}")))?;
        let mut objset = ObjsetPhys::new(kind, size, meta_dnode);
        objset.zil_header = zil_header;
        objset.flags = ObjsetFlags(r.u64()?);
        objset.portable_mac = r.array()?;
        objset.local_mac = r.array()?;
        r.skip(PADDING)?;
        if size >= ObjsetSize::V2 {
            objset.user_used = decode_dnode(r)?;
            objset.group_used = decode_dnode(r)?;
        }
        if size >= ObjsetSize::V3 {
            objset.project_used = decode_dnode(r)?;
        }
        r.rest();
        Ok(objset)
    }

    /// Writes as many bytes as [`ObjsetPhys::size`] says.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let end = w.position() + self.size.bytes();
        self.meta_dnode.encode(w);
        self.zil_header.encode(w);
        w.u64(self.kind as u64);
        w.u64(self.flags.0);
        w.bytes(&self.portable_mac);
        w.bytes(&self.local_mac);
        w.zeros(PADDING);
        if self.size >= ObjsetSize::V2 {
            self.user_used.encode(w);
            self.group_used.encode(w);
        }
        if self.size >= ObjsetSize::V3 {
            self.project_used.encode(w);
        }
        w.pad_to(end);
    }

    pub fn to_bytes(&self, endian: Endian) -> Vec<u8> {
        let mut bytes = vec![0; self.size.bytes()];
        self.encode(&mut Writer::new(&mut bytes, endian));
        bytes
    }
}

const PADDING: usize = 1024 - 784;

/// The special dnodes have one slot each; extra slots would reach into the next field.
fn decode_dnode(r: &mut Reader<'_>) -> Result<DnodePhys> {
    DnodePhys::decode(&mut r.within(DNODE_SIZE, "dnode of object set")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dnode::tests::{any_dnode, any_meta_dnode};
    use crate::testing::{Numbers, assault, check_round_trip};
    use crate::zil::tests::any_header;

    fn any_objset(n: &mut Numbers, size: ObjsetSize) -> ObjsetPhys {
        let mut objset = ObjsetPhys::new(ObjsetType::Zvol, size, any_meta_dnode(n));
        objset.zil_header = any_header(n);
        objset.flags = ObjsetFlags(n.bits(64));
        n.fill(&mut objset.local_mac);
        if size >= ObjsetSize::V2 {
            objset.user_used = any_dnode(n, 1);
        }
        if size >= ObjsetSize::V3 {
            objset.project_used = any_dnode(n, 1);
        }
        objset
    }

    #[test]
    fn all_three_sizes_survive_the_round_trip_in_both_orders() {
        let mut n = Numbers(7);
        for size in [ObjsetSize::V1, ObjsetSize::V2, ObjsetSize::V3] {
            for _ in 0..50 {
                let objset = any_objset(&mut n, size);
                check_round_trip(&objset, size.bytes(), ObjsetPhys::encode, ObjsetPhys::decode);
            }
        }
    }

    /// A root block of zeros, or with a meta-dnode of another kind, gave blocks of dnodes of no size, and the search
    /// for an object divided by it.
    #[test]
    fn a_meta_dnode_that_holds_no_dnodes_is_refused() {
        let mut n = Numbers(9);
        let refused = |change: fn(&mut DnodePhys)| {
            let mut objset = any_objset(&mut n, ObjsetSize::V3);
            change(&mut objset.meta_dnode);
            let e = ObjsetPhys::from_bytes(&objset.to_bytes(Endian::Little), Endian::Little).unwrap_err();
            assert!(e.to_string().contains("meta-dnode of type"), "{e}");
        };
        let changes: [fn(&mut DnodePhys); 3] = [
            |dnode| *dnode = DnodePhys::free(),
            |dnode| dnode.kind = ObjectType::ZVOL,
            |dnode| (dnode.data_block_sectors, dnode.max_block_id) = (8, 0),
        ];
        changes.into_iter().for_each(refused);
    }

    #[test]
    fn fields_stand_where_they_are_drawn() {
        let mut objset = any_objset(&mut Numbers(8), ObjsetSize::V3);
        objset.flags = ObjsetFlags(5);
        let bytes = objset.to_bytes(Endian::Little);
        assert_eq!((bytes[704], bytes[712]), (3, 5));
        assert_eq!(bytes[752..784], objset.local_mac);
        assert_eq!(bytes[1024], objset.user_used.kind.0);
        assert_eq!(bytes[2048], objset.project_used.kind.0);
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let good = any_objset(&mut Numbers(9), ObjsetSize::V3).to_bytes(Endian::Little);
        assault(&good, |bytes, endian| {
            if let Ok(objset) = ObjsetPhys::from_bytes(bytes, endian) {
                objset.to_bytes(endian);
            }
        });
    }
}
