//! Encoding of disparity as the 16-bit numbers of images and recordings.
//!
//! A stored number is `round((d - offset) * scale)` with d in pixels; 0 stands for "unknown", and a
//! valid disparity that would become 0 is stored as 1. This is the convention of the KITTI stereo
//! benchmark (scale 256, offset 0), widened to ranges that do not fit into it.

use crate::frame::{DisparityRange, INVALID, SUBPIXEL};

/// The number that stands for "unknown" in every 16-bit file.
pub const UNKNOWN: u16 = 0;

/// The scale of the KITTI convention: stored units per pixel of disparity.
pub const KITTI_SCALE: u32 = 256;

/// Largest disparity in pixels: a map holds sixteenths in 16 bits.
const MAP_LIMIT: i32 = 2048;

/// Scale and offset between disparity and the stored 16-bit number.
///
/// Every disparity of the range in sixteenths of a pixel survives [`encode`](Self::encode) followed
/// by [`decode`](Self::decode): the scale is a power of two from 64 to 256, hence a multiple of 16,
/// and the number 1 that stands for a valid 0 is nearer to 0 than to the next sixteenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    scale: u32,
    offset: i32,
}

impl Encoding {
    /// Returns the encoding for a range: scale 256 and offset 0 if all of it fits, that is, from 0 to 255
    /// pixels. Otherwise the offset is the range's smallest disparity, and the scale the largest power of two
    /// up to 256 that still fits the largest disparity.
    pub fn for_range(range: DisparityRange) -> Self {
        let kitti = Self { scale: KITTI_SCALE, offset: 0 };
        let count = u32::try_from(range.count).unwrap_or(u32::MAX).clamp(1, 1024);
        let largest = i64::from(range.min) + i64::from(count) - 1;
        if range.min >= 0 && largest * i64::from(KITTI_SCALE) <= i64::from(u16::MAX) {
            return kitti;
        }
        let mut scale = KITTI_SCALE;
        while (count - 1) * scale > u32::from(u16::MAX) {
            scale /= 2;
        }
        Self { scale, offset: range.min.clamp(-MAP_LIMIT, MAP_LIMIT) }
    }

    /// Logs how `files` hold disparity if the KITTI convention does not fit.
    pub fn report(self, files: &str) {
        let Self { scale, offset } = self;
        if self != (Self { scale: KITTI_SCALE, offset: 0 }) {
            let from =
                if offset == 0 { "disparity".into() } else { format!("(disparity - {offset})") };
            tracing::info!(
                "16-bit {files} hold {from} * {scale} and name these numbers themselves: disparity * \
                 {KITTI_SCALE} does not fit at this range"
            );
        }
    }

    /// Returns the encoding of a file; `None` for a scale that [`for_range`](Self::for_range) never gives.
    pub fn from_parts(scale: u32, offset: i32) -> Option<Self> {
        let usable = matches!(scale, 64 | 128 | 256) && offset.abs() <= MAP_LIMIT;
        usable.then_some(Self { scale, offset })
    }

    /// Returns the stored units per pixel.
    pub fn scale(self) -> u32 {
        self.scale
    }

    /// Returns the disparity in pixels of the stored number 0, if it were valid.
    pub fn offset(self) -> i32 {
        self.offset
    }

    /// Returns the stored units per sixteenth of a pixel.
    fn step(self) -> i32 {
        self.scale as i32 / SUBPIXEL
    }

    /// Encodes one value; those outside the range become the nearest number that is not [`UNKNOWN`].
    #[inline]
    pub fn encode_value(self, value: i16) -> u16 {
        // The product cannot overflow: both factors are bounded by 2^17 and 16.
        let stored = ((i32::from(value) - SUBPIXEL * self.offset) * self.step())
            .clamp(1, i32::from(u16::MAX)) as u16;
        if value == INVALID { UNKNOWN } else { stored }
    }

    /// Decodes a stored number to 1/16 px; [`INVALID`] for 0.
    #[inline]
    pub fn decode_value(self, stored: u16) -> i16 {
        let value = (i32::from(stored) + self.step() / 2) / self.step() + SUBPIXEL * self.offset;
        let value = value.clamp(i32::from(INVALID) + 1, i32::from(i16::MAX)) as i16;
        if stored == UNKNOWN { INVALID } else { value }
    }

    /// Encodes values of a disparity map; `stored` has their length.
    pub fn encode(self, values: &[i16], stored: &mut [u16]) {
        assert_eq!(values.len(), stored.len(), "as many stored numbers as values");
        // As `encode_value`, but in 16 bits, so that a processor computes eight or more at once.
        let (lowest, highest) = (i32::from(i16::MIN), i32::from(i16::MAX));
        let low = (SUBPIXEL * self.offset).clamp(lowest, highest) as i16;
        let shift = self.step().trailing_zeros();
        let most = u16::MAX >> shift;
        for (out, &value) in stored.iter_mut().zip(values) {
            let above = (value.max(low) as u16).wrapping_sub(low as u16);
            let number = if above > most { u16::MAX } else { (above << shift).max(1) };
            *out = if value == INVALID { UNKNOWN } else { number };
        }
    }

    /// Decodes stored numbers to 1/16 px; `values` has their length.
    pub fn decode(self, stored: &[u16], values: &mut [i16]) {
        assert_eq!(values.len(), stored.len(), "as many values as stored numbers");
        for (out, &number) in values.iter_mut().zip(stored) {
            *out = self.decode_value(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(min: i32, count: usize) -> DisparityRange {
        DisparityRange { min, count }
    }

    #[test]
    fn ordinary_ranges_are_kitti() {
        for (min, count) in [(0, 1), (0, 64), (0, 256), (100, 156), (255, 1)] {
            let encoding = Encoding::for_range(range(min, count));
            assert_eq!((encoding.scale, encoding.offset), (256, 0), "{min} {count}");
        }
    }

    #[test]
    fn other_ranges_move_the_offset_and_then_the_scale() {
        let parts = |min, count| {
            let encoding = Encoding::for_range(range(min, count));
            (encoding.scale(), encoding.offset())
        };
        assert_eq!(parts(-16, 64), (256, -16));
        assert_eq!(parts(1, 256), (256, 1));
        assert_eq!(parts(0, 257), (128, 0));
        assert_eq!(parts(0, 512), (128, 0));
        assert_eq!(parts(0, 1024), (64, 0));
        assert_eq!(parts(-512, 1024), (64, -512));
    }

    #[test]
    fn the_convention_in_numbers() {
        let kitti = Encoding::for_range(range(0, 64));
        assert_eq!(kitti.encode_value(INVALID), 0);
        assert_eq!(kitti.encode_value(0), 1);
        assert_eq!(kitti.encode_value(1), 16);
        assert_eq!(kitti.encode_value(16), 256);
        assert_eq!(kitti.encode_value(63 * 16), 63 * 256);
        // Outside the range: the nearest valid number, never "unknown".
        assert_eq!(kitti.encode_value(-5), 1);
        assert_eq!(kitti.encode_value(i16::MAX), u16::MAX);
    }

    #[test]
    fn a_row_has_the_numbers_of_its_values() {
        let values: Vec<i16> = (i16::MIN..=i16::MAX).collect();
        let mut stored = vec![0; values.len()];
        for (scale, offset) in [64, 128, 256].into_iter().flat_map(|scale| {
            [-2048, -2047, -20, 0, 1, 100, 2047, 2048].map(|offset| (scale, offset))
        }) {
            let encoding = Encoding::from_parts(scale, offset).unwrap();
            encoding.encode(&values, &mut stored);
            for (&value, &number) in values.iter().zip(&stored) {
                assert_eq!(number, encoding.encode_value(value), "{value} in {encoding:?}");
            }
        }
    }

    #[test]
    fn absurd_ranges_do_not_overflow() {
        for min in [i32::MIN, i32::MAX, -40_000, 40_000] {
            for count in [0, 1, 1024, usize::MAX] {
                let encoding = Encoding::for_range(range(min, count));
                for value in [i16::MIN, -1, 0, 1, i16::MAX] {
                    encoding.decode_value(encoding.encode_value(value));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_sixteenth_of_the_range_survives(min in -1000i32..1000, count in 1usize..=1024) {
            let range = range(min, count.min((2040 - min) as usize));
            let encoding = Encoding::for_range(range);
            let values: Vec<i16> = (range.min * 16..=range.max() * 16)
                .map(|value| value as i16)
                .chain([INVALID])
                .collect();
            let mut stored = vec![0; values.len()];
            encoding.encode(&values, &mut stored);
            for (&value, &number) in values.iter().zip(&stored) {
                prop_assert_eq!(number == 0, value == INVALID);
                if value != INVALID {
                    let exact = (f64::from(value) / 16.0 - f64::from(encoding.offset()))
                        * f64::from(encoding.scale());
                    prop_assert_eq!(f64::from(number), exact.round().max(1.0));
                }
            }
            let mut decoded = vec![0; values.len()];
            encoding.decode(&stored, &mut decoded);
            prop_assert_eq!(decoded, values);
            prop_assert_eq!(
                Encoding::from_parts(encoding.scale(), encoding.offset()), Some(encoding)
            );
        }
    }
}
