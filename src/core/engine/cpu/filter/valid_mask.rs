//! The valid mask, applied row by row, because winners are not kept for the whole map.

use crate::frame::INVALID;

/// Invalidates pixels of a row outside the left mask, or with a match outside the right one; without a mask
/// all pixels are valid. `min` is the smallest candidate disparity.
pub fn apply(values: &mut [i16], winners: &[u16], min: i32, [left, right]: [Option<&[bool]>; 2]) {
    if let Some(left) = left {
        for (value, &seen) in values.iter_mut().zip(left) {
            *value = if seen { *value } else { INVALID };
        }
    }
    if let Some(right) = right {
        let last = values.len() as i32 - 1;
        for (x, (value, &winner)) in values.iter_mut().zip(winners).enumerate() {
            let column = (x as i32 - min - i32::from(winner)).clamp(0, last);
            *value = if right[column as usize] { *value } else { INVALID };
        }
    }
}
