//! From one byte order to the other, in place, for contents that are runs of equal words.

use crate::object_type::{ByteswapClass, ObjectType};

/// Reverses each word of `bytes`, whose width follows from the type. Contents with a structure of their own (ZAP,
/// dnodes, object sets, znodes, ACLs) and byte strings are left alone: their decoders know the order.
pub fn swap_words(kind: ObjectType, bytes: &mut [u8]) {
    match kind.byteswap() {
        Some(ByteswapClass::U16) => reverse_each::<2>(bytes),
        Some(ByteswapClass::U32) => reverse_each::<4>(bytes),
        Some(ByteswapClass::U64) => reverse_each::<8>(bytes),
        _ => {}
    }
}

fn reverse_each<const WIDTH: usize>(bytes: &mut [u8]) {
    for word in bytes.as_chunks_mut::<WIDTH>().0 {
        word.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_reversed_by_the_width_of_their_type_and_a_rest_is_left() {
        let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        swap_words(ObjectType::SPACE_MAP, &mut bytes);
        assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 9]);
        swap_words(ObjectType::UINT32_METADATA, &mut bytes);
        assert_eq!(bytes, [5, 6, 7, 8, 1, 2, 3, 4, 9]);
        swap_words(ObjectType::ZVOL, &mut bytes);
        assert_eq!(bytes, [5, 6, 7, 8, 1, 2, 3, 4, 9]);
    }
}
