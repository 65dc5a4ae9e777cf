//! Suppresses flicker: static pixels keep their disparity, or their lack of one, until several maps in a row
//! contradict it. Moving pixels follow each map at once.
//!
//! The left image decides which pixels are static, not the map: its grey levels are compared with their
//! recent mean as in [`temporal`](crate::matching::temporal), by sums over small windows relative to the
//! measured noise. If more than a quarter of the previous image moved, the rig is moving, and nothing is
//! held.

use crate::frame::{DisparityRange, INVALID, Image, LEAST_CONFIDENCE, SUBPIXEL};
use crate::matching::history::State;
use crate::matching::residuals::{Decision, Limits, RESIDUAL_MAX, UNIT, variance};
use crate::matching::texture::responses;

/// Settings of the steady map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Maps in a row for which a static pixel resists another disparity or none, to [`STRENGTH_MAX`].
    pub strength: u8,
}

/// Largest strength.
pub const STRENGTH_MAX: u8 = 60;

/// Size of the state's header; its first number counts the moving pixels of the previous image.
pub const HEADER: usize = 4;

/// Units of a disparity of the state per unit of a map.
pub const STATE_UNIT: i32 = 256;

/// Largest difference between equal disparities, in units of the state: 1 px.
pub const GUARD: i32 = SUBPIXEL * STATE_UNIT;

/// Weight of the newest image as a shift: 1/4. The mean has a seventh of the noise variance ([`SPREAD`]).
pub const FOLLOW: u32 = 2;

/// Noise variance of the mean relative to an image's, in 1/256; follows from [`FOLLOW`].
pub const SPREAD: u32 = 37;

/// Lower bound of the noise variance in 1/256 squared grey levels: the last bit of any image changes.
pub const VARIANCE_MIN: u32 = 256;

/// Smallest confidence with which a pixel counts twice against the held disparity: 80 %.
pub const SURE: u8 = 204;

/// Confidence of held pixels; measured pixels have at least one more.
pub const HELD: u8 = LEAST_CONFIDENCE;

/// Size of the state in numbers: the header, a disparity per pixel, then a [`Memory`] per pixel.
pub fn state_len(pixels: usize) -> usize {
    HEADER + 2 * pixels
}

/// State of a pixel in addition to its disparity, packed into one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Mean grey level of the left image, in 1/16.
    pub grey: i32,
    /// Whether the map shows a disparity here.
    pub shown: bool,
    /// Number of maps that have supported the shown value, up to 255.
    pub seen: i32,
    /// Number of maps in a row that contradict it; confident ones count twice.
    pub against: i32,
}

impl Memory {
    /// Unpacks the number.
    #[inline(always)]
    pub fn of(number: i32) -> Self {
        Self {
            grey: number & 0xfff,
            shown: number >> 12 & 1 != 0,
            seen: number >> 13 & 0xff,
            against: number >> 21 & 0xff,
        }
    }

    /// Packs it into a number.
    #[inline(always)]
    pub fn number(self) -> i32 {
        self.grey | i32::from(self.shown) << 12 | self.seen << 13 | self.against << 21
    }
}

/// Steadies a map of candidates in `range`. `state` is the state after the previous map, or empty before the
/// first one of a stream. Confidences become [`HELD`] for held pixels, more for measured ones, and 0 for
/// invalid ones.
pub fn apply(
    values: &mut [i16],
    confidence: Option<&mut Vec<u8>>,
    left: &Image,
    state: &mut State,
    range: DisparityRange,
    how: Steady,
) {
    let pixels = values.len();
    let known = !state.is_empty();
    state.resize(state_len(pixels), 0);
    let (header, of_pixels) = state.split_at_mut(HEADER);
    let (disparities, memories) = of_pixels.split_at_mut(pixels);

    let residuals: Vec<i16> = left
        .pixels()
        .iter()
        .zip(&*memories)
        .map(|(&pixel, &memory)| if known { residual(pixel, Memory::of(memory).grey) } else { 0 })
        .collect();
    let mut magnitudes = vec![0; RESIDUAL_MAX as usize + 1];
    for &residual in &residuals {
        magnitudes[i32::from(residual).abs().min(RESIDUAL_MAX) as usize] += 1;
    }
    let variance = variance(&magnitudes, &responses(left), SPREAD).max(VARIANCE_MIN);
    let size = (left.width(), left.height());
    let decision = Decision::of(&residuals, &Limits::new(variance, SPREAD), size);

    let rig_moves = 4 * i64::from(header[0]) > pixels as i64;
    let mut moving = 0;
    let mut confidence = confidence.map(|confidence| confidence.iter_mut());
    for i in 0..pixels {
        moving += i32::from(decision.moving[i]);
        let anew = !known || rig_moves || decision.moving[i];
        let sure = confidence.as_mut().and_then(Iterator::next);
        let of = Observation { value: values[i], sure: sure.as_ref().map(|sure| **sure), anew };
        let mut memory = Memory::of(memories[i]);
        memory.grey = follow(memory.grey, left.pixels()[i], !known || decision.moving[i]);
        let (value, held) = steady_pixel(of, &mut disparities[i], &mut memory, range, how);
        memories[i] = memory.number();
        values[i] = value;
        if let Some(sure) = sure {
            *sure = self::confidence(*sure, value, held);
        }
    }
    header[0] = moving;
}

/// The difference between a pixel and its mean, in 1/16 grey levels.
#[inline(always)]
pub fn residual(pixel: u8, grey: i32) -> i16 {
    (i32::from(pixel) * UNIT - grey) as i16
}

/// Updates the mean grey level with the newest pixel.
#[inline(always)]
pub fn follow(grey: i32, pixel: u8, anew: bool) -> i32 {
    let newest = i32::from(pixel) * UNIT;
    if anew { newest } else { grey + ((newest - grey + (1 << (FOLLOW - 1))) >> FOLLOW) }
}

/// Returns a shown value's confidence: 0 if invalid, [`HELD`] if held, else `sure`, but above [`HELD`].
#[inline(always)]
pub fn confidence(sure: u8, value: i16, held: bool) -> u8 {
    match (value, held) {
        (INVALID, _) => 0,
        (_, true) => HELD,
        (_, false) => sure.max(HELD + 1),
    }
}

/// A pixel of the newest map.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Disparity.
    pub value: i16,
    /// Confidence, if it is computed.
    pub sure: Option<u8>,
    /// Whether it is unrelated to the previous disparity.
    pub anew: bool,
}

/// Returns the shown disparity and whether it is held instead of measured, and updates the history.
///
/// An observation that agrees with the shown disparity (both unknown, or at most [`GUARD`] apart) supports
/// it: the disparity becomes the mean of the maps so far, later with the weight `2 / (strength + 1)`, less if
/// the observation is less certain. Other observations contradict it, and replace it after more than
/// `strength` maps in a row. A disparity that was shown for fewer maps is replaced earlier.
#[inline(always)]
pub fn steady_pixel(
    of: Observation,
    disparity: &mut i32,
    memory: &mut Memory,
    range: DisparityRange,
    how: Steady,
) -> (i16, bool) {
    let is_known = of.value != INVALID;
    let newest = i32::from(of.value) * STATE_UNIT;
    let strength = i32::from(how.strength);
    let step = newest.wrapping_sub(*disparity);
    let is_near = (-GUARD..=GUARD).contains(&step);
    let agrees = !of.anew && is_known == memory.shown && (!is_known || is_near);
    let sure = of.sure.map_or(255, i32::from);
    let against =
        memory.against + if is_known && of.sure.is_some_and(|s| s >= SURE) { 2 } else { 1 };
    let resists = !of.anew && against <= memory.seen.min(strength);
    let mut held = false;
    if agrees {
        if is_known {
            let later = 512 * (sure + 1) / (256 * (strength + 1));
            let weight = later.max(256 / (memory.seen + 1)).max(1);
            *disparity += (weight * step + 128) >> 8;
        }
        memory.seen = (memory.seen + 1).min(255);
        memory.against = 0;
    } else if resists {
        memory.against = against;
        held = memory.shown;
    } else {
        if is_known {
            *disparity = newest;
        }
        memory.shown = is_known;
        memory.seen = 1;
        memory.against = 0;
    }
    if !memory.shown {
        return (INVALID, false);
    }
    let rounded = (*disparity + STATE_UNIT / 2) >> 8;
    (rounded.clamp(range.min * SUBPIXEL, range.max() * SUBPIXEL) as i16, held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };
    const HOW: Steady = Steady { strength: 3 };

    /// The shown values of a static pixel, and which of them are held.
    fn through(values: &[i16], sure: Option<u8>) -> (Vec<i16>, Vec<bool>) {
        let (mut disparity, mut memory) = (0, Memory::default());
        let shown = values.iter().enumerate().map(|(number, &value)| {
            let of = Observation { value, sure, anew: number == 0 };
            steady_pixel(of, &mut disparity, &mut memory, RANGE, HOW)
        });
        shown.unzip()
    }

    #[test]
    fn what_was_known_for_long_is_held_for_a_while() {
        const NONE: i16 = INVALID;
        let values = [160, 160, 160, 160, NONE, NONE, 160, NONE, NONE, NONE, NONE, 160];
        let (shown, held) = through(&values, None);
        // Three contradictions are resisted, the fourth in a row is not; an invalid pixel likewise resists
        // new disparities.
        let expected = [160, 160, 160, 160, 160, 160, 160, 160, 160, 160, NONE, NONE];
        assert_eq!(shown, expected);
        let held: Vec<usize> = (0..values.len()).filter(|&i| held[i]).collect();
        assert_eq!(held, [4, 5, 7, 8, 9]);
        // A disparity that was shown once gives in at the second contradiction.
        assert_eq!(through(&[160, NONE, NONE], None).0, [160, 160, NONE]);
    }

    #[test]
    fn another_disparity_has_to_last_and_a_sure_one_counts_twice() {
        let values = [160, 160, 160, 160, 320, 320, 320, 320, 320];
        assert_eq!(through(&values, Some(40)).0, [160, 160, 160, 160, 160, 160, 160, 320, 320]);
        assert_eq!(through(&values, Some(204)).0, [160, 160, 160, 160, 160, 320, 320, 320, 320]);
    }

    #[test]
    fn small_differences_are_averaged() {
        // 160, the mean of 160 and 164, then by 2 / (3 + 1) of the rest, all within 1 px.
        assert_eq!(through(&[160, 164, 162, 170], None).0, [160, 162, 162, 166]);
    }

    #[test]
    fn what_moves_is_taken_as_it_is() {
        let (mut disparity, mut memory) = (0, Memory::default());
        for value in [160, 160, 160, INVALID, 320] {
            let of = Observation { value, sure: None, anew: true };
            assert_eq!(steady_pixel(of, &mut disparity, &mut memory, RANGE, HOW), (value, false));
        }
    }

    #[test]
    fn a_memory_is_a_number() {
        for memory in [
            Memory::default(),
            Memory { grey: 4080, shown: true, seen: 255, against: 120 },
            Memory { grey: 1, shown: false, seen: 7, against: 0 },
        ] {
            assert_eq!(Memory::of(memory.number()), memory);
        }
    }

    #[test]
    fn a_picture_that_changes_lets_its_map_change() {
        let picture = |grey: u8| Image::from_fn(16, 12, |x, _| if x < 8 { grey } else { 90 });
        let (mut state, mut sure) = (State::new(), vec![200; 192]);
        let mut show = |left: &Image, value: i16| {
            let mut values = vec![value; 192];
            apply(&mut values, Some(&mut sure), left, &mut state, RANGE, HOW);
            (values, sure.clone())
        };
        show(&picture(50), 160);
        show(&picture(50), 160);
        // The left half shows something else now; the right half resists.
        let (values, sure) = show(&picture(150), 480);
        assert_eq!((values[16 * 5 + 2], values[16 * 5 + 13]), (480, 160));
        assert_eq!((sure[16 * 5 + 2], sure[16 * 5 + 13]), (200, HELD));
    }
}
