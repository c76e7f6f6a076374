//! What the processor under us can do, found at run time: one binary serves all.

/// Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the target is sure to have. Written so that the compiler can vectorise it.
    Plain,
    /// 32 bytes at a time.
    Avx2,
    /// 64 bytes at a time.
    Avx512,
    /// Multiplication in the field of 256 as one instruction.
    Avx512Gfni,
}

/// The highest level there is here. The standard library remembers what it found, so asking is cheap.
#[cfg(target_arch = "x86_64")]
pub fn level() -> Level {
    if !is_x86_feature_detected!("avx2") {
        Level::Plain
    } else if !is_x86_feature_detected!("avx512f") {
        Level::Avx2
    } else if !is_x86_feature_detected!("gfni") {
        Level::Avx512
    } else {
        Level::Avx512Gfni
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn level() -> Level {
    Level::Plain
}

/// For tests: all that can be compared here.
#[cfg(test)]
pub fn levels() -> Vec<Level> {
    use Level::*;
    [Plain, Avx2, Avx512, Avx512Gfni].into_iter().filter(|&l| l <= level()).collect()
}
