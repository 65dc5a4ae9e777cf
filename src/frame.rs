//! The types that flow through the pipeline: pictures, stereo pairs, disparity maps, and the times
//! they carry.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::chroma::Chroma;
use crate::pool::Pooled;

/// An 8-bit intensity picture, rows tightly packed, top row first.
#[derive(Debug)]
pub struct Image {
    width: usize,
    height: usize,
    pixels: Pooled<u8>,
    valid: Option<Arc<Mask>>,
    chroma: Option<Box<Chroma>>,
}

/// The valid mask of a rectified picture: true where a pixel shows something that the camera has seen.
/// The others lie outside the sensor, their values mean nothing, and they are never matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    width: usize,
    valid: Vec<bool>,
}

impl Mask {
    /// The mask of a picture `width` pixels wide, row by row.
    ///
    /// # Panics
    /// Where `valid` is no whole number of rows.
    pub fn new(width: usize, valid: Vec<bool>) -> Self {
        assert!(width > 0 && valid.len().is_multiple_of(width), "rows of {width} pixels");
        Self { width, valid }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.valid.len() / self.width
    }

    /// Every pixel, row by row.
    pub fn pixels(&self) -> &[bool] {
        &self.valid
    }

    /// The pixels of row `y`.
    pub fn row(&self, y: usize) -> &[bool] {
        &self.valid[y * self.width..][..self.width]
    }
}

impl Image {
    /// A picture of `width` x `height` pixels.
    ///
    /// # Panics
    /// Where `pixels` does not hold exactly `width * height` bytes, or the picture is empty.
    pub fn new(width: usize, height: usize, pixels: Pooled<u8>) -> Self {
        assert!(width > 0 && height > 0, "a picture has at least one pixel");
        assert_eq!(pixels.len(), width * height, "pixels of a {width}x{height} picture");
        Self { width, height, pixels, valid: None, chroma: None }
    }

    /// The same picture with a valid mask; `None`: every pixel is valid.
    ///
    /// # Panics
    /// Where the mask has another size.
    pub fn with_valid_mask(mut self, valid: Option<Arc<Mask>>) -> Self {
        if let Some(mask) = &valid {
            assert_eq!((mask.width(), mask.height()), (self.width, self.height), "size of a mask");
        }
        self.valid = valid;
        self
    }

    /// The valid mask; `None`: every pixel is valid.
    pub fn valid_mask(&self) -> Option<&Mask> {
        self.valid.as_deref()
    }

    /// The valid mask, to be shared by another picture of the same pixels.
    pub fn shared_valid_mask(&self) -> Option<Arc<Mask>> {
        self.valid.clone()
    }

    /// The same picture with its colour.
    ///
    /// # Panics
    /// Where the colour is of a picture of another size.
    pub fn with_chroma(mut self, chroma: Option<Chroma>) -> Self {
        if let Some(chroma) = &chroma {
            assert_eq!(chroma.size(), (self.width, self.height), "size of a picture's colour");
        }
        self.chroma = chroma.map(Box::new);
        self
    }

    /// The colour, where the source has it and somebody looks at it.
    pub fn chroma(&self) -> Option<&Chroma> {
        self.chroma.as_deref()
    }

    /// The colour alone.
    pub fn into_chroma(self) -> Option<Chroma> {
        self.chroma.map(|chroma| *chroma)
    }

    /// Red, green and blue of pixel (x, y); grey where there is no colour.
    pub fn rgb_at(&self, x: usize, y: usize) -> [u8; 3] {
        let grey = self.pixels[y * self.width + x];
        match &self.chroma {
            Some(chroma) => chroma.coding().rgb(grey, chroma.plane().at(x, y)),
            None => [grey; 3],
        }
    }

    /// Writes red, green and blue of every pixel into the first three of each `N` bytes of rows that are
    /// `stride` bytes apart; the others are left as they are.
    pub fn write_rgb<const N: usize>(&self, out: &mut [u8], stride: usize) {
        let colour = self.chroma.as_ref().map(|chroma| (chroma.coding(), chroma.plane()));
        for (y, row) in out.chunks_mut(stride).take(self.height).enumerate() {
            let (pixels, _) = row.as_chunks_mut::<N>();
            let pixels = pixels.iter_mut().zip(self.row(y));
            match colour {
                Some((coding, plane)) => {
                    for (x, (pixel, &grey)) in pixels.enumerate() {
                        pixel[..3].copy_from_slice(&coding.rgb(grey, plane.at(x, y)));
                    }
                }
                None => pixels.for_each(|(pixel, &grey)| pixel[..3].fill(grey)),
            }
        }
    }

    /// A picture that belongs to no pool.
    ///
    /// # Panics
    /// As [`Image::new`].
    pub fn from_vec(width: usize, height: usize, pixels: Vec<u8>) -> Self {
        Self::new(width, height, Pooled::unpooled(pixels))
    }

    /// A picture whose pixel (x, y) is `value(x, y)`.
    pub fn from_fn(width: usize, height: usize, value: impl Fn(usize, usize) -> u8) -> Self {
        let pixels = (0..width * height).map(|i| value(i % width, i / width)).collect();
        Self::from_vec(width, height, pixels)
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Whether a device copies the pixels by itself.
    pub fn is_pinned(&self) -> bool {
        self.pixels.is_pinned()
    }

    /// Every pixel, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Every pixel, row by row, to be changed in place.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// The pixels of row `y`.
    pub fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width..][..self.width]
    }
}

/// Intensity of an RGB pixel by Rec. 709: 0.2125 R + 0.7154 G + 0.0721 B, rounded.
pub fn intensity(red: u8, green: u8, blue: u8) -> u8 {
    ((2125 * u32::from(red) + 7154 * u32::from(green) + 721 * u32::from(blue) + 5000) / 10000) as u8
}

/// The same of an RGB pixel of 16 bits a sample.
pub fn intensity_16(red: u16, green: u16, blue: u16) -> u16 {
    ((2125 * u32::from(red) + 7154 * u32::from(green) + 721 * u32::from(blue) + 5000) / 10000)
        as u16
}

/// Which of the two cameras a picture comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eye {
    /// The base picture.
    Left,
    /// The match picture.
    Right,
}

impl Eye {
    /// Both, in the order in which pairs of things of the eyes stand.
    pub const BOTH: [Eye; 2] = [Eye::Left, Eye::Right];

    /// The eye's place in such pairs: 0 or 1.
    pub fn index(self) -> usize {
        usize::from(self == Eye::Right)
    }
}

impl std::fmt::Display for Eye {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Eye::Left => "left",
            Eye::Right => "right",
        })
    }
}

/// One picture of one eye, as a source delivers it to the pairing.
#[derive(Debug)]
pub struct EyeFrame {
    /// The picture.
    pub image: Image,
    /// Capture time on the stream's clock; `None` where the stream carries no usable times.
    pub timestamp: Option<Duration>,
    /// Number of this frame within its eye's stream, from 0.
    pub index: u64,
    /// When the picture reached this process.
    pub arrived: Instant,
}

/// The column of a row of `width` pixels that stands for column `x`.
pub fn clamped(x: i64, width: usize) -> usize {
    x.clamp(0, width as i64 - 1) as usize
}

/// Two pictures of one moment.
#[derive(Debug)]
pub struct StereoPair {
    /// Base picture.
    pub left: Image,
    /// Match picture, of the same size.
    pub right: Image,
    /// Number of this pair within the run, from 0, without gaps at the source.
    pub sequence: u64,
    /// Capture time of the left picture on the stream's clock.
    pub timestamp: Duration,
    /// Capture time of the right picture minus that of the left one, in nanoseconds.
    pub skew_ns: i64,
    /// When the later of the two pictures was captured, where the source is live and tells; else when
    /// it reached this process. Latency counts from here.
    pub arrived: Instant,
    /// The true disparity, where the source knows it (the demo scene).
    pub truth: Option<Box<Truth>>,
}

impl StereoPair {
    /// Two still pictures, of no stream and at no time.
    pub fn of_stills(left: Image, right: Image) -> Self {
        Self {
            left,
            right,
            sequence: 0,
            timestamp: Duration::ZERO,
            skew_ns: 0,
            arrived: Instant::now(),
            truth: None,
        }
    }
}

/// The true disparity of a synthetic pair, a value per pixel of the left picture.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Disparity in pixels.
    pub disparity: Pooled<f32>,
    /// Whether the point is seen by both eyes.
    pub visible: Pooled<bool>,
}

/// Disparity in sixteenths of a pixel; the value that stands for "unknown".
pub const INVALID: i16 = i16::MIN;

/// Units of a [`DisparityMap`] value per pixel of disparity.
pub const SUBPIXEL: i32 = 16;

/// Disparity of every pixel of the left picture, in 1/16 px; [`INVALID`] where it is unknown.
#[derive(Debug)]
pub struct DisparityMap {
    width: usize,
    height: usize,
    range: DisparityRange,
    values: Pooled<i16>,
}

impl DisparityMap {
    /// A map of `width` x `height` values in 1/16 px, made of these candidate disparities.
    ///
    /// # Panics
    /// Where `values` does not hold exactly `width * height` elements.
    pub fn new(width: usize, height: usize, range: DisparityRange, values: Pooled<i16>) -> Self {
        assert_eq!(values.len(), width * height, "values of a {width}x{height} map");
        Self { width, height, range, values }
    }

    /// The candidate disparities that it was made of. They may change from map to map while a run is
    /// tuned.
    pub fn range(&self) -> DisparityRange {
        self.range
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Every value, row by row.
    pub fn values(&self) -> &[i16] {
        &self.values
    }

    /// Every value, row by row, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [i16] {
        &mut self.values
    }

    /// Disparity of pixel (x, y) in pixels, or `None` where it is unknown.
    pub fn at(&self, x: usize, y: usize) -> Option<f32> {
        let value = self.values[y * self.width + x];
        (value != INVALID).then(|| f32::from(value) / SUBPIXEL as f32)
    }
}

/// The candidate disparities: `min <= d < min + count`, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisparityRange {
    /// Smallest candidate; may be negative.
    pub min: i32,
    /// Number of candidates, 1 to 1024.
    pub count: usize,
}

impl DisparityRange {
    /// Largest candidate.
    pub fn max(&self) -> i32 {
        self.min + self.count as i32 - 1
    }
}

/// What depth is computed from: two rectified cameras side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StereoGeometry {
    /// Focal length of both rectified cameras in pixels.
    pub focal_px: f64,
    /// Distance between their centres in metres.
    pub baseline_m: f64,
    /// The left principal point, in pixels from the centre of the first pixel.
    pub centre_x_px: f64,
    /// See `centre_x_px`; the same in both pictures.
    pub centre_y_px: f64,
    /// The right principal point; where it differs from the left one, points at infinity have a
    /// disparity other than 0.
    pub right_centre_x_px: f64,
}

impl StereoGeometry {
    /// Depth (the distance from the cameras' plane) in metres of a disparity in pixels; `None` for
    /// points at infinity and beyond.
    pub fn depth_m(&self, disparity: f64) -> Option<f64> {
        let parallax = disparity - (self.centre_x_px - self.right_centre_x_px);
        let depth = self.focal_px * self.baseline_m / parallax;
        (depth.is_finite() && depth > 0.0).then_some(depth)
    }

    /// The point in metres that pixel (x, y) of the left picture shows: x to the right, y down, z
    /// forward from the left camera's centre.
    pub fn point_m(&self, x: f64, y: f64, disparity: f64) -> Option<[f64; 3]> {
        let z = self.depth_m(disparity)?;
        let along = z / self.focal_px;
        Some([(x - self.centre_x_px) * along, (y - self.centre_y_px) * along, z])
    }
}

/// A pair with its disparity, as every sink receives it.
#[derive(Debug)]
pub struct Matched {
    /// The rectified pair that was matched.
    pub pair: StereoPair,
    /// Disparity of the pair's left picture.
    pub disparity: DisparityMap,
    /// How sure the disparity of each pixel is, from 1 to 255, and 0 where it is unknown; `None` where the
    /// parameters do not ask for it.
    pub confidence: Option<Image>,
    /// The left picture without its background, where the parameters ask for it.
    pub whitened: Option<Whitened>,
    /// What the pictures before say of it, where the parameters ask for it.
    pub temporal: Option<TemporalReport>,
    /// What depth is computed from, where it is known.
    pub geometry: Option<StereoGeometry>,
    /// When the engine took the pair.
    pub submitted: Instant,
    /// When the engine handed the result out.
    pub finished: Instant,
    /// How long each stage of the engine took, in the order of the flow. Stages may overlap on an engine
    /// that is a device of its own.
    pub stages: Vec<StageTime>,
    /// How long a device of its own computed, copies not counted; `None` for other engines. Pairs in
    /// flight beside it count where they shared the device.
    pub device_time: Option<Duration>,
}

/// What is known of a pair from those before it in its stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TemporalReport {
    /// Pictures that are remembered, the newest included.
    pub remembered: u32,
    /// How far the picture before was shifted against this one, in pixels to the right and down; `None` where
    /// it could not be found.
    pub shift: Option<[f32; 2]>,
    /// Standard deviation of the noise in grey levels, of the picture as it came and of its best estimate, as the
    /// mean of both eyes; `None` where nothing was remembered.
    pub noise: Option<[f32; 2]>,
    /// Share of the pixels of both eyes that move.
    pub moving: f32,
}

/// The left picture of a pair without the background that the pictures before predict, row by row: 128 units a grey
/// level around 32768; the lowest bit tells whether the pixel moves.
#[derive(Debug)]
pub struct Whitened {
    width: usize,
    height: usize,
    pixels: Pooled<u16>,
}

impl Whitened {
    /// A whitened picture of `width` x `height` pixels.
    ///
    /// # Panics
    /// Where `pixels` does not hold exactly as many numbers.
    pub fn new(width: usize, height: usize, pixels: Pooled<u16>) -> Self {
        assert_eq!(pixels.len(), width * height, "pixels of a {width}x{height} picture");
        Self { width, height, pixels }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixels of row `y`.
    pub fn row(&self, y: usize) -> &[u16] {
        &self.pixels[y * self.width..][..self.width]
    }

    /// Every pixel, row by row.
    pub fn pixels(&self) -> &[u16] {
        &self.pixels
    }
}

/// Name and duration of a stage.
pub type StageTime = (&'static str, Duration);

impl Matched {
    /// A pair and its disparity, matched in no time by no engine.
    pub fn new(pair: StereoPair, disparity: DisparityMap) -> Self {
        let now = Instant::now();
        Self {
            pair,
            disparity,
            confidence: None,
            whitened: None,
            temporal: None,
            geometry: None,
            submitted: now,
            finished: now,
            stages: Vec::new(),
            device_time: None,
        }
    }

    /// From capture (for recordings: from the pictures' arrival) to disparity.
    pub fn latency(&self) -> Duration {
        self.finished.saturating_duration_since(self.pair.arrived)
    }

    /// From when the engine took the pair to when it handed out the disparity.
    pub fn engine_time(&self) -> Duration {
        self.finished.saturating_duration_since(self.submitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_the_distance_of_the_principal_points() {
        let mut geometry = StereoGeometry {
            focal_px: 400.0,
            baseline_m: 0.1,
            centre_x_px: 320.0,
            centre_y_px: 240.0,
            right_centre_x_px: 320.0,
        };
        assert_eq!(geometry.depth_m(20.0), Some(2.0));
        assert_eq!(geometry.depth_m(0.0), None);
        assert_eq!(geometry.depth_m(-1.0), None);
        assert_eq!(geometry.point_m(520.0, 140.0, 20.0), Some([1.0, -0.5, 2.0]));
        // The right picture is shifted by 4 px: what lies at infinity has disparity -4.
        geometry.right_centre_x_px = 324.0;
        assert_eq!(geometry.depth_m(16.0), Some(2.0));
        assert_eq!(geometry.depth_m(-4.0), None);
        assert_eq!(geometry.depth_m(-3.0), Some(40.0));
    }
}
