//! Exponential smoothing of disparity in time. A step above the guard is motion, adopted at once.

use crate::frame::{DisparityRange, INVALID, SUBPIXEL};
use crate::matching::history::State;

/// Temporal smoothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smoothing {
    /// Weight of the newest map, in 1/256 (1 to 255).
    pub weight_256: u8,
    /// Larger steps between two maps are motion, in 1/16 px (0 to [`GUARD_MAX_16`]).
    pub guard_16: u16,
}

/// Largest guard; with it all sums stay within 32 bits.
pub const GUARD_MAX_16: u16 = 1023;

/// Units of the state per unit of a map.
pub const STATE_UNIT: i32 = 256;

/// State of a pixel without any disparity so far.
pub const NEVER: i32 = i32::MIN;

/// Smooths a map of candidates in `range`. `state`: a number per pixel, none before a stream's first map.
///
/// With v the value in units of the state and s the state: s' = v for the first disparity of a pixel or if
/// abs(v - s) > guard, else s + floor((weight (v - s) + 128) / 256). The result is s' rounded to the nearest
/// (halves upwards), within the range. Invalid pixels stay invalid and leave the state unchanged.
pub fn apply(values: &mut [i16], state: &mut State, range: DisparityRange, how: Smoothing) {
    state.resize(values.len(), NEVER);
    for (value, state) in values.iter_mut().zip(state) {
        *value = smooth(*value, state, range, how);
    }
}

/// Returns the smoothed value of a pixel and updates its state.
#[inline(always)]
pub fn smooth(value: i16, state: &mut i32, range: DisparityRange, how: Smoothing) -> i16 {
    if value == INVALID {
        return INVALID;
    }
    let newest = i32::from(value) * STATE_UNIT;
    // A state is never that far below: no difference wraps.
    let step = newest.wrapping_sub(*state);
    let moved = *state == NEVER || step.abs() > i32::from(how.guard_16) * STATE_UNIT;
    *state = if moved { newest } else { *state + ((i32::from(how.weight_256) * step + 128) >> 8) };
    let rounded = (*state + STATE_UNIT / 2) >> 8;
    rounded.clamp(range.min * SUBPIXEL, range.max() * SUBPIXEL) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: DisparityRange = DisparityRange { min: -2, count: 64 };
    const HALF: Smoothing = Smoothing { weight_256: 128, guard_16: 16 };

    fn through(maps: &[[i16; 2]]) -> Vec<[i16; 2]> {
        let mut state = State::new();
        let smooth = |&map: &[i16; 2]| {
            let mut map = map;
            apply(&mut map, &mut state, RANGE, HALF);
            map
        };
        maps.iter().map(smooth).collect()
    }

    #[test]
    fn steps_within_the_guard_are_halved_and_larger_ones_taken() {
        // 160, (160 + 170) / 2, (165 + 170) / 2 = 167.5 upwards; 16 is within the guard, 17 is not.
        assert_eq!(
            through(&[[160, 160], [170, 176], [170, 193], [INVALID, 192]]),
            [[160, 160], [165, 168], [168, 193], [INVALID, 193]]
        );
    }

    #[test]
    fn a_pixel_waits_while_it_has_no_disparity() {
        assert_eq!(
            through(&[[INVALID, -20], [100, INVALID], [110, -30]]),
            [[INVALID, -20], [100, INVALID], [105, -25]]
        );
    }

    #[test]
    fn results_stay_within_the_candidates() {
        let mut state = vec![16 * 70 * STATE_UNIT];
        let mut map = [16 * 61];
        let slow = Smoothing { weight_256: 1, guard_16: GUARD_MAX_16 };
        apply(&mut map, &mut state, RANGE, slow);
        assert_eq!(map, [16 * 61]);
        // The two extreme disparities.
        let mut state = vec![-2047 * 16 * STATE_UNIT];
        let mut map = [2046 * 16];
        apply(&mut map, &mut state, DisparityRange { min: 2000, count: 47 }, slow);
        assert_eq!(map, [2046 * 16]);
    }
}
