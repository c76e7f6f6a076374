//! What is done, at every layer, said once.

use std::fmt;

/// Declares an enum whose variants have a name and a description, in the order of the table.
macro_rules! table {
    ($(#[$doc:meta])* $enum:ident { $($variant:ident $name:literal: $about:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum {
            $(#[doc = $about] $variant,)*
        }

        impl $enum {
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            pub fn about(self) -> &'static str {
                match self { $($enum::$variant => $about,)* }
            }

            /// Its place in the table.
            pub fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use table;

table! {
    /// What was done.
    Op {
        Read "read": "bytes were read",
        Write "write": "bytes were written",
        WriteZeroes "write_zeroes": "a range became zeros",
        Trim "trim": "a range was told to be unused",
        Flush "flush": "a wait for durability",
        Prefetch "prefetch": "bytes were read ahead of need",
        Free "free": "a block was freed",
        Lookup "lookup": "a name was looked up",
        GetAttr "getattr": "attributes were read",
        SetAttr "setattr": "attributes were changed",
        ReadLink "readlink": "the target of a symbolic link was read",
        Symlink "symlink": "a symbolic link was made",
        Mknod "mknod": "a file or special file was made",
        Create "create": "a file was made and opened",
        Mkdir "mkdir": "a directory was made",
        Unlink "unlink": "a name was removed",
        Rmdir "rmdir": "a directory was removed",
        Rename "rename": "a name was changed",
        Link "link": "a name was added",
        Open "open": "a file was opened",
        Release "release": "a file was closed",
        Fsync "fsync": "a file was made durable",
        OpenDir "opendir": "a directory was opened",
        ReadDir "readdir": "a directory was listed",
        ReleaseDir "releasedir": "a directory was closed",
        StatFs "statfs": "the space was asked for",
        Access "access": "rights were asked for",
        GetXattr "getxattr": "an extended attribute was read",
        SetXattr "setxattr": "an extended attribute was set",
        ListXattr "listxattr": "extended attributes were listed",
        RemoveXattr "removexattr": "an extended attribute was removed",
        Fallocate "fallocate": "a range was freed or reserved",
        Lseek "lseek": "data or a hole was looked for",
        CopyRange "copy_file_range": "a range was copied",
        Lock "lock": "a lock was taken, given back or asked for",
        Forget "forget": "the kernel dropped a node",
        Hit "hit": "a block was in the cache",
        Miss "miss": "a block was not in the cache",
        Evict "evict": "a block left the cache",
        Commit "commit": "an intent log became durable",
        Phase "phase": "a phase of a transaction group ended",
        Delay "delay": "a writer was held back",
        Compute "compute": "a checksum was computed",
        Verify "verify": "a checksum was verified",
        Compress "compress": "a block was compressed",
        Decompress "decompress": "a block was decompressed",
        Allocate "allocate": "a block was allocated",
        Other "other": "anything else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_places_are_those_of_the_table() {
        let names: BTreeSet<&str> = Op::ALL.iter().map(|op| op.name()).collect();
        assert_eq!(names.len(), Op::ALL.len());
        assert!(Op::ALL.iter().enumerate().all(|(i, op)| op.index() == i));
    }
}
