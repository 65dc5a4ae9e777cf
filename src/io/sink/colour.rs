//! Colours for disparity: one definition for the preview video, the snapshots and the window.

use std::time::Duration;

use stereod_core::frame::{DisparityMap, DisparityRange, INVALID, SUBPIXEL, StereoGeometry};

pub use stereod_core::picture::colours::{ColourMap, ColourTable};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ColourRange {
    #[default]
    Full,
    /// From `low` to `high` pixels of disparity.
    Fixed {
        /// Disparity of the first colour, in pixels.
        low: f32,
        high: f32,
    },
    /// The disparities of the scene: the 2nd and 98th percentile of the valid disparities, followed
    /// with a time constant, so that colours drift with the scene but never flicker.
    Adaptive { seconds: f32 },
}

impl ColourRange {
    pub const ADAPTIVE: ColourRange = ColourRange::Adaptive { seconds: 1.5 };
}

const TAIL_PERCENT: u64 = 2;

/// Step of the sampled columns and rows of the adaptive range: enough for percentiles, and cheap.
const SAMPLE_STEP: usize = 2;

/// Smallest share of valid samples in percent for following a frame: fewer do not represent the scene.
const FEWEST_VALID_PERCENT: usize = 1;

/// Smallest span of the colours in pixels of disparity.
const NARROWEST: f32 = 1.0;

/// The disparities that the colours span at present.
///
/// [`update`](Self::update) depends only on the maps and their capture times, so that a replay
/// gives the same colours.
#[derive(Clone, Debug)]
pub struct ColourScale {
    mode: ColourRange,
    range: DisparityRange,
    low: f32,
    high: f32,
    /// Capture time of the last frame that was followed; `None` before the first.
    followed: Option<Duration>,
    /// Samples in each sixteenth of the range; reused for every frame.
    histogram: Vec<u32>,
}

impl ColourScale {
    pub fn is_of(&self, mode: ColourRange, range: DisparityRange) -> bool {
        (self.mode, self.range) == (mode, range)
    }

    pub fn new(mode: ColourRange, range: DisparityRange) -> Self {
        let (low, high) = match mode {
            ColourRange::Fixed { low, high } => (low, high),
            ColourRange::Full | ColourRange::Adaptive { .. } => {
                (range.min as f32, range.max() as f32)
            }
        };
        let mut scale = Self { mode, range, low, high, followed: None, histogram: Vec::new() };
        scale.set(low, high);
        scale
    }

    /// Returns the disparities of the first and the last colour, in pixels.
    pub fn limits(&self) -> (f32, f32) {
        (self.low, self.high)
    }

    /// Follows the scene in adaptive mode; `timestamp` is the capture time of the map. The scale
    /// also follows changes of the candidate disparities.
    pub fn update(&mut self, map: &DisparityMap, timestamp: Duration) {
        if map.range() != self.range {
            *self = Self::new(self.mode, map.range());
        }
        let ColourRange::Adaptive { seconds } = self.mode else { return };
        let Some((low, high)) = self.percentiles(map) else { return };
        // The first frame sets the limits; later ones move them by their share of the time constant. A gap in
        // the stream counts as at most one time constant.
        let share = self.followed.map_or(1.0, |before| {
            let elapsed = timestamp.saturating_sub(before).as_secs_f32();
            let seconds = seconds.max(0.1);
            1.0 - (-(elapsed / seconds).min(1.0)).exp()
        });
        self.followed = Some(timestamp);
        self.set(self.low + (low - self.low) * share, self.high + (high - self.high) * share);
    }

    fn set(&mut self, low: f32, high: f32) {
        // A comparison that is false for NaN, so that no setting makes the colours NaN.
        let (low, high) = if high - low >= 0.0 { (low, high) } else { (high, low) };
        if low.is_finite() && high.is_finite() {
            self.low = low;
            self.high = high.max(low + NARROWEST);
        } else {
            self.low = self.range.min as f32;
            self.high = (self.range.max() as f32).max(self.low + NARROWEST);
        }
    }

    /// Returns the 2nd and 98th percentile of the map's valid values in pixels; `None` if too few are valid.
    fn percentiles(&mut self, map: &DisparityMap) -> Option<(f32, f32)> {
        let first = SUBPIXEL * self.range.min;
        let bins = SUBPIXEL as usize * self.range.count.max(1);
        self.histogram.clear();
        self.histogram.resize(bins, 0);
        let (mut samples, mut valid) = (0, 0);
        for row in map.values().chunks_exact(map.width()).step_by(SAMPLE_STEP) {
            for &value in row.iter().step_by(SAMPLE_STEP) {
                samples += 1;
                if value != INVALID {
                    valid += 1;
                    let bin = (i32::from(value) - first).clamp(0, bins as i32 - 1);
                    self.histogram[bin as usize] += 1;
                }
            }
        }
        if valid == 0 || valid * 100 < samples * FEWEST_VALID_PERCENT {
            return None;
        }
        let tail = valid as u64 * TAIL_PERCENT / 100;
        let at = |bin: usize| (first + bin as i32) as f32 / SUBPIXEL as f32;
        let beyond_tail = |counts: &mut dyn Iterator<Item = &u32>| {
            let mut seen = 0;
            counts
                .take_while(|&&count| {
                    seen += u64::from(count);
                    seen <= tail
                })
                .count()
        };
        let low = beyond_tail(&mut self.histogram.iter());
        let high = bins - 1 - beyond_tail(&mut self.histogram.iter().rev());
        Some((at(low), at(high)))
    }

    /// Returns the step 0 to 255 of a valid value of a map (in 1/16 px).
    pub fn step(&self, value: i16) -> u8 {
        let (low, gain) = self.line();
        step(f32::from(value), low, gain)
    }

    /// Returns the first colour's disparity in 1/16 px, and the steps per 1/16 px.
    fn line(&self) -> (f32, f32) {
        let unit = SUBPIXEL as f32;
        (self.low * unit, 255.0 / ((self.high - self.low) * unit))
    }
}

#[inline]
fn step(value: f32, low: f32, gain: f32) -> u8 {
    // The conversion saturates: below 0 becomes 0, above 255 becomes 255.
    ((value - low) * gain + 0.5) as u8
}

/// Colours a disparity map into rows of `BYTES` bytes per pixel: red, green, blue, and for 4 `BYTES` a fourth
/// byte of 255. Row y starts at `y * stride` of `out`; bytes between the rows are unchanged.
pub fn colourise<const BYTES: usize>(
    map: &DisparityMap,
    colours: ColourMap,
    scale: &ColourScale,
    out: &mut [u8],
    stride: usize,
) {
    const { assert!(BYTES == 3 || BYTES == 4) };
    let used = map.width() * BYTES;
    assert!(stride >= used && out.len() >= stride * (map.height().max(1) - 1) + used);
    let table = colours.table().map(|[r, g, b]| [r, g, b, 255]);
    let [r, g, b] = colours.unknown();
    let unknown = [r, g, b, 255];
    let (low, gain) = scale.line();
    // One look-up gives the four bytes of a value within the candidates.
    let first = SUBPIXEL * map.range().min;
    let values = first..first + SUBPIXEL * map.range().count as i32;
    let of_value: Vec<[u8; 4]> =
        values.map(|value| table[usize::from(step(value as f32, low, gain))]).collect();
    for (values, row) in map.values().chunks_exact(map.width()).zip(out.chunks_mut(stride)) {
        for (&value, pixel) in values.iter().zip(row.as_chunks_mut::<BYTES>().0) {
            let colour = match of_value.get((i32::from(value) - first) as usize) {
                Some(colour) => *colour,
                None if value == INVALID => unknown,
                None => table[usize::from(step(f32::from(value), low, gain))],
            };
            pixel.copy_from_slice(&colour[..BYTES]);
        }
    }
}

/// Returns the label of a disparity in a legend of the colours: depth in metres if the cameras are known,
/// else the disparity, with a decimal if the colours span less than 8 px (`is_wide` is false).
pub fn legend_label(disparity: f32, is_wide: bool, geometry: Option<&StereoGeometry>) -> String {
    match geometry {
        Some(geometry) => match geometry.depth_m(f64::from(disparity)) {
            Some(metres) if metres < 9.95 => format!("{metres:.1}"),
            Some(metres) if metres < 999.5 => format!("{metres:.0}"),
            _ => "far".into(),
        },
        None if is_wide => format!("{disparity:.0}"),
        None => format!("{disparity:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::pool::Pooled;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    fn map(width: usize, values: Vec<i16>) -> DisparityMap {
        DisparityMap::new(width, values.len() / width, RANGE, Pooled::unpooled(values))
    }

    fn flat(pixels: i16) -> DisparityMap {
        map(64, vec![pixels * 16; 64 * 64])
    }

    fn seconds(seconds: f32) -> Duration {
        Duration::from_secs_f32(seconds)
    }

    #[test]
    fn the_maps_run_from_far_to_near() {
        let turbo = ColourMap::Turbo.table();
        let [r, _, b] = turbo[40];
        assert!(b > r, "far is blue: {:?}", turbo[40]);
        let [r, _, b] = turbo[225];
        assert!(r > b, "near is red: {:?}", turbo[225]);
        assert_eq!(ColourMap::Grey.table()[77], [77; 3]);
        // The ends of viridis in matplotlib.
        assert_eq!(ColourMap::Viridis.table()[0], [0x44, 0x01, 0x54]);
        assert_eq!(ColourMap::Viridis.table()[255], [0xfd, 0xe7, 0x25]);
    }

    #[test]
    fn names_and_order() {
        for colours in ColourMap::ALL {
            assert_eq!(toml::Value::from(colours.name()).try_into(), Ok(colours));
            assert_eq!(colours.next().next().next(), colours);
        }
        let error = toml::Value::from("jet").try_into::<ColourMap>().unwrap_err().to_string();
        assert!(error.contains("jet") && error.contains("`turbo`, `viridis`, `grey`"), "{error}");
    }

    #[test]
    fn unknown_differs_from_far_and_from_every_other_colour() {
        // Relative luminance and contrast of WCAG 2.2.
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            low if low <= 0.04045 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        let luminance =
            |[r, g, b]: [u8; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        for colours in ColourMap::ALL {
            let (table, unknown) = (colours.table(), colours.unknown());
            let contrast = (luminance(unknown) + 0.05) / (luminance(table[0]) + 0.05);
            assert!(contrast >= 3.0, "{colours}: {contrast}");
            let off =
                |colour: &[u8; 3]| colour.iter().zip(unknown).map(|(a, b)| a.abs_diff(b)).max();
            let nearest = table.iter().map(off).min().flatten();
            assert!(nearest > Some(30), "{colours}: {nearest:?}");
        }
    }

    #[test]
    fn the_full_range_spans_the_colours() {
        let scale = ColourScale::new(ColourRange::Full, RANGE);
        assert_eq!((scale.step(0), scale.step(63 * 16)), (0, 255));
        assert_eq!((scale.step(-400), scale.step(i16::MAX)), (0, 255));
        let map = map(3, vec![0, INVALID, 63 * 16, 505, 16, 32]);
        let mut rgb = vec![9; 2 * 10];
        colourise::<3>(&map, ColourMap::Grey, &scale, &mut rgb, 10);
        assert_eq!(
            rgb,
            [0, 0, 0, 50, 90, 155, 255, 255, 255, 9, 128, 128, 128, 4, 4, 4, 8, 8, 8, 9]
        );
        let mut rgbx = vec![9; 2 * 12];
        colourise::<4>(&map, ColourMap::Viridis, &scale, &mut rgbx, 12);
        assert_eq!(rgbx[..8], [0x44, 0x01, 0x54, 255, 112, 112, 112, 255]);
    }

    #[test]
    fn fixed_limits_may_come_in_either_order_and_are_never_nan() {
        let steps = |low, high| {
            let scale = ColourScale::new(ColourRange::Fixed { low, high }, RANGE);
            (scale.step(10 * 16), scale.step(20 * 16))
        };
        assert_eq!(steps(10.0, 20.0), (0, 255));
        assert_eq!(steps(20.0, 10.0), (0, 255));
        assert_eq!(steps(f32::NAN, 10.0), (40, 81));
        assert_eq!(steps(10.0, 10.0), (0, 255));
    }

    #[test]
    fn adaptive_takes_the_first_scene_and_then_drifts() {
        let mut scale = ColourScale::new(ColourRange::ADAPTIVE, RANGE);
        // 64 columns of disparity 10 to 41.5.
        let ramp = map(64, (0..64 * 64).map(|i| 160 + i % 64 * 8).collect());
        scale.update(&ramp, seconds(0.0));
        let (low, high) = scale.limits();
        assert!((low - 10.0).abs() < 1.1 && (high - 41.5).abs() < 1.1, "{low} {high}");

        // The scene jumps: within one frame the limits hardly move, within seconds they arrive.
        let near = map(64, (0..64 * 64).map(|i| 480 + i % 64 * 8).collect());
        scale.update(&near, seconds(0.033));
        let (after, _) = scale.limits();
        assert!(after - low < 0.6, "{low} -> {after}");
        for frame in 2..300 {
            scale.update(&near, seconds(frame as f32 / 30.0));
        }
        let (low, high) = scale.limits();
        assert!((low - 30.0).abs() < 1.2 && (high - 61.5).abs() < 1.2, "{low} {high}");
    }

    #[test]
    fn scales_follow_the_candidates_of_the_maps() {
        let wide = DisparityRange { min: -8, count: 100 };
        let of = |range| DisparityMap::new(1, 1, range, Pooled::unpooled(vec![20 * 16]));
        let mut full = ColourScale::new(ColourRange::Full, RANGE);
        full.update(&of(RANGE), seconds(0.0));
        assert_eq!(full.limits(), (0.0, 63.0));
        full.update(&of(wide), seconds(0.1));
        assert_eq!(full.limits(), (-8.0, 91.0));
        // Chosen limits stay.
        let mut fixed = ColourScale::new(ColourRange::Fixed { low: 3.0, high: 9.0 }, RANGE);
        fixed.update(&of(wide), seconds(0.0));
        assert_eq!(fixed.limits(), (3.0, 9.0));
    }

    #[test]
    fn adaptive_ignores_outliers_and_empty_frames() {
        let mut scale = ColourScale::new(ColourRange::ADAPTIVE, RANGE);
        scale.update(&map(64, vec![INVALID; 64 * 64]), seconds(0.0));
        assert_eq!(scale.limits(), (0.0, 63.0));
        let mut values = vec![20 * 16; 64 * 64];
        values[..40].fill(62 * 16);
        scale.update(&map(64, values), seconds(0.1));
        assert_eq!(scale.limits(), (20.0, 21.0));
        scale.update(&map(64, vec![INVALID; 64 * 64]), seconds(9.0));
        assert_eq!(scale.limits(), (20.0, 21.0));
        // Time that runs backwards moves nothing.
        scale.update(&flat(50), seconds(0.0));
        assert_eq!(scale.limits(), (20.0, 21.0));
    }
}
