//! Data that flows through the pipeline: images, stereo pairs, disparity maps and their times.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::chroma::{Chroma, ChromaPlane, ColourCoding};
use crate::grid::Grid;
use crate::obstacles::Obstacles;
use crate::pool::{Pool, Pooled};
use crate::pose::Odometry;

/// An 8-bit intensity image, rows tightly packed, top row first.
#[derive(Debug)]
pub struct Image {
    width: usize,
    height: usize,
    pixels: Pooled<u8>,
    valid: Option<Arc<Mask>>,
    chroma: Option<Box<Chroma>>,
}

/// Values of the pixels of an image, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plane<S> {
    width: usize,
    pixels: S,
}

/// Valid mask of a rectified image: false for pixels outside the sensor, whose values are meaningless and
/// which are never matched.
pub type Mask = Plane<Vec<bool>>;

/// The left image without the background predicted from earlier images: 128 units per grey level around 32768.
/// The lowest bit tells whether the pixel moves.
pub type Whitened = Plane<Pooled<u16>>;

impl<T, S: Deref<Target = [T]>> Plane<S> {
    /// Creates the values of an image `width` pixels wide.
    ///
    /// # Panics
    /// If `pixels` is not a whole number of rows.
    pub fn new(width: usize, pixels: S) -> Self {
        assert!(width > 0 && pixels.len().is_multiple_of(width), "rows of {width} pixels");
        Self { width, pixels }
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// Returns every pixel, row by row.
    pub fn pixels(&self) -> &[T] {
        &self.pixels
    }

    /// Returns the pixels of row `y`.
    pub fn row(&self, y: usize) -> &[T] {
        &self.pixels[y * self.width..][..self.width]
    }
}

impl Image {
    /// Creates an image of `width` x `height` pixels.
    ///
    /// # Panics
    /// If `pixels` does not hold exactly `width * height` bytes, or the image is empty.
    pub fn new(width: usize, height: usize, pixels: Pooled<u8>) -> Self {
        assert!(width > 0 && height > 0, "a picture has at least one pixel");
        assert_eq!(pixels.len(), width * height, "pixels of a {width}x{height} picture");
        Self { width, height, pixels, valid: None, chroma: None }
    }

    /// Adds a valid mask; `None` means that every pixel is valid.
    ///
    /// # Panics
    /// If the mask has another size.
    pub fn with_valid_mask(mut self, valid: Option<Arc<Mask>>) -> Self {
        if let Some(mask) = &valid {
            assert_eq!((mask.width(), mask.height()), (self.width, self.height), "size of a mask");
        }
        self.valid = valid;
        self
    }

    /// Returns the valid mask; `None` means that every pixel is valid.
    pub fn valid_mask(&self) -> Option<&Mask> {
        self.valid.as_deref()
    }

    /// Shares the valid mask with another image.
    pub fn shared_valid_mask(&self) -> Option<Arc<Mask>> {
        self.valid.clone()
    }

    /// Adds colour.
    ///
    /// # Panics
    /// If the colour has another size.
    pub fn with_chroma(mut self, chroma: Option<Chroma>) -> Self {
        if let Some(chroma) = &chroma {
            assert_eq!(chroma.size(), (self.width, self.height), "size of a picture's colour");
        }
        self.chroma = chroma.map(Box::new);
        self
    }

    /// Adds the colour of red, green and blue of every pixel, row by row.
    ///
    /// # Panics
    /// If there is another number of pixels.
    pub fn with_rgb(self, pixels: impl IntoIterator<Item = [u8; 3]>) -> Self {
        let differences = |[red, green, blue]: [u8; 3]| {
            ColourCoding::differences(intensity(red, green, blue), red, blue)
        };
        let samples = Pooled::unpooled(pixels.into_iter().map(differences).collect());
        let plane = ChromaPlane::new((self.width, self.height), [0, 0], samples);
        self.with_chroma(Some(Chroma::new(ColourCoding::of_rgb(), plane, Pool::new())))
    }

    /// Returns the colour, if the source has it and an output or a network needs it.
    pub fn chroma(&self) -> Option<&Chroma> {
        self.chroma.as_deref()
    }

    /// Returns the colour alone.
    pub fn into_chroma(self) -> Option<Chroma> {
        self.chroma.map(|chroma| *chroma)
    }

    /// Returns red, green and blue of pixel (x, y); grey without colour.
    pub fn rgb_at(&self, x: usize, y: usize) -> [u8; 3] {
        let grey = self.pixels[y * self.width + x];
        match &self.chroma {
            Some(chroma) => chroma.coding().rgb(grey, chroma.plane().at(x, y)),
            None => [grey; 3],
        }
    }

    /// Writes red, green and blue of every pixel into the first three of each `N` bytes, in rows
    /// `stride` bytes apart. The other bytes keep their values.
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

    /// Copies the image.
    pub fn copy(&self) -> Self {
        let pixels = Pooled::unpooled(self.pixels.to_vec());
        let chroma = self.chroma.as_ref().map(|chroma| Box::new(chroma.copy()));
        Self { pixels, valid: self.valid.clone(), chroma, ..*self }
    }

    /// Creates an image that belongs to no pool.
    ///
    /// # Panics
    /// As [`Image::new`].
    pub fn from_vec(width: usize, height: usize, pixels: Vec<u8>) -> Self {
        Self::new(width, height, Pooled::unpooled(pixels))
    }

    /// Creates an image whose pixel (x, y) is `value(x, y)`.
    pub fn from_fn(width: usize, height: usize, value: impl Fn(usize, usize) -> u8) -> Self {
        let mut pixels = Vec::with_capacity(width * height);
        for y in 0..height {
            pixels.extend((0..width).map(|x| value(x, y)));
        }
        Self::from_vec(width, height, pixels)
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Reports whether a device can copy the pixels directly.
    pub fn is_pinned(&self) -> bool {
        self.pixels.is_pinned()
    }

    /// Returns every pixel, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Returns every pixel, row by row, mutable.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// Returns the pixels of row `y`.
    pub fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width..][..self.width]
    }
}

/// Returns the intensity of an RGB pixel by Rec. 709: 0.2125 R + 0.7154 G + 0.0721 B, rounded.
pub fn intensity(red: u8, green: u8, blue: u8) -> u8 {
    ((2125 * u32::from(red) + 7154 * u32::from(green) + 721 * u32::from(blue) + 5000) / 10000) as u8
}

/// Returns the intensity of an RGB pixel with 16 bits per sample.
pub fn intensity_16(red: u16, green: u16, blue: u16) -> u16 {
    ((2125 * u32::from(red) + 7154 * u32::from(green) + 721 * u32::from(blue) + 5000) / 10000)
        as u16
}

/// One of the two cameras or views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eye {
    /// The left view, the base image.
    Left,
    /// The right view, the match image.
    Right,
}

impl Eye {
    /// Both, in the order of all `[left, right]` arrays.
    pub const BOTH: [Eye; 2] = [Eye::Left, Eye::Right];

    /// Returns the index into such arrays: 0 or 1.
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

/// One frame of one view, as a source delivers it to the pairing.
#[derive(Debug)]
pub struct EyeFrame {
    /// The image.
    pub image: Image,
    /// Capture time on the stream's clock; `None` if the stream carries no usable times.
    pub timestamp: Option<Duration>,
    /// Number of this frame within its stream, from 0.
    pub index: u64,
    /// Arrival in this process.
    pub arrived: Instant,
}

/// Clamps column `x` to a row of `width` pixels.
pub fn clamped(x: i64, width: usize) -> usize {
    x.clamp(0, width as i64 - 1) as usize
}

/// Left and right image of one moment.
#[derive(Debug)]
pub struct StereoPair {
    /// Left image, the base.
    pub left: Image,
    /// Right image; of the same size, unless it is raw and its camera differs.
    pub right: Image,
    /// Number of this pair within the whole source, from 0. The next pair has the next number, unless
    /// a recording was moved.
    pub sequence: u64,
    /// Capture time of the left image on the stream's clock.
    pub timestamp: Duration,
    /// Capture time of the right image minus that of the left one, in nanoseconds; `None` if either is
    /// unknown.
    pub skew_ns: Option<i64>,
    /// Capture of the later image if a live source tells it, otherwise its arrival in this process.
    /// Latency counts from here.
    pub arrived: Instant,
    /// The true disparity, if the source knows it (the demo scene).
    pub truth: Option<Box<Truth>>,
    /// Disparity that is known beforehand, as a map of the half-size images
    /// ([`crate::matching::Params::prior_map`]).
    pub prior: Option<Box<DisparityMap>>,
}

impl StereoPair {
    /// Copies the pair without the true disparity.
    pub fn copy(&self) -> Self {
        let prior = self.prior.as_ref().map(|prior| Box::new(prior.copy()));
        Self { left: self.left.copy(), right: self.right.copy(), truth: None, prior, ..*self }
    }

    /// Creates a pair of still images, without a time.
    pub fn of_stills(left: Image, right: Image) -> Self {
        Self {
            left,
            right,
            sequence: 0,
            timestamp: Duration::ZERO,
            skew_ns: None,
            arrived: Instant::now(),
            truth: None,
            prior: None,
        }
    }
}

/// The true disparity of a synthetic pair, per pixel of the left image.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Disparity in pixels.
    pub disparity: Pooled<f32>,
    /// True if both cameras see the point.
    pub visible: Pooled<bool>,
}

/// Value of a [`DisparityMap`] that means "unknown".
pub const INVALID: i16 = i16::MIN;

/// Confidence of pixels without evidence of their own; all others have more.
pub const LEAST_CONFIDENCE: u8 = 1;

/// Units of a [`DisparityMap`] value per pixel of disparity.
pub const SUBPIXEL: i32 = 16;

/// Disparity of every pixel of the left image, in 1/16 px; [`INVALID`] if unknown.
#[derive(Debug)]
pub struct DisparityMap {
    width: usize,
    height: usize,
    range: DisparityRange,
    values: Pooled<i16>,
}

impl DisparityMap {
    /// Creates a map of `width` x `height` values in 1/16 px, found in this disparity range.
    ///
    /// # Panics
    /// If `values` does not hold exactly `width * height` elements.
    #[doc(hidden)]
    pub fn new(width: usize, height: usize, range: DisparityRange, values: Pooled<i16>) -> Self {
        assert_eq!(values.len(), width * height, "values of a {width}x{height} map");
        Self { width, height, range, values }
    }

    /// Creates a map of these rows of `width` values.
    #[doc(hidden)]
    pub fn of_values(width: usize, range: DisparityRange, values: Vec<i16>) -> Self {
        Self::new(width, values.len() / width, range, Pooled::unpooled(values))
    }

    /// Copies the map.
    #[doc(hidden)]
    pub fn copy(&self) -> Self {
        Self { values: Pooled::unpooled(self.values.to_vec()), ..*self }
    }

    /// Returns the disparity range of the search. It may change from map to map while a run is tuned.
    pub fn range(&self) -> DisparityRange {
        self.range
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns every value, row by row.
    pub fn values(&self) -> &[i16] {
        &self.values
    }

    /// Returns every value, row by row, mutable.
    pub fn values_mut(&mut self) -> &mut [i16] {
        &mut self.values
    }

    /// Returns the disparity of pixel (x, y) in pixels, or `None` if unknown.
    pub fn at(&self, x: usize, y: usize) -> Option<f32> {
        let value = self.values[y * self.width + x];
        (value != INVALID).then(|| f32::from(value) / SUBPIXEL as f32)
    }
}

/// Disparity range of the search: `min <= d < min + count`, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisparityRange {
    /// Smallest candidate; may be negative.
    pub min: i32,
    /// Number of candidates, 1 to 1024.
    pub count: usize,
}

impl DisparityRange {
    /// Returns the largest candidate.
    pub fn max(&self) -> i32 {
        self.min + self.count as i32 - 1
    }
}

/// Geometry of two rectified cameras side by side, from which depth is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StereoGeometry {
    /// Focal length of both rectified cameras in pixels.
    pub focal_px: f64,
    /// Distance between their centres in metres.
    pub baseline_m: f64,
    /// The left principal point, in pixels from the centre of the first pixel.
    pub centre_x_px: f64,
    /// See `centre_x_px`; the same in both images.
    pub centre_y_px: f64,
    /// The right principal point. If it differs from the left one, points at infinity have a
    /// disparity other than 0.
    pub right_centre_x_px: f64,
}

impl StereoGeometry {
    /// Returns the geometry of unknown cameras with images of this size, where it matters little: a field of view of
    /// 80 degrees, and baselines in place of metres.
    #[doc(hidden)]
    pub fn assumed((width, height): (usize, usize)) -> Self {
        let [centre_x_px, centre_y_px] = [width, height].map(|side| (side as f64 - 1.0) / 2.0);
        let focal_px = 0.6 * width as f64;
        Self { focal_px, baseline_m: 1.0, centre_x_px, centre_y_px, right_centre_x_px: centre_x_px }
    }

    /// Converts a disparity in pixels to depth, the distance from the cameras' plane in metres; `None`
    /// for points at infinity and beyond.
    pub fn depth_m(&self, disparity: f64) -> Option<f64> {
        let parallax = disparity - (self.centre_x_px - self.right_centre_x_px);
        let depth = self.focal_px * self.baseline_m / parallax;
        (depth.is_finite() && depth > 0.0).then_some(depth)
    }

    /// Returns the disparity in pixels of a point at this depth in metres, which is positive.
    pub fn disparity_px(&self, depth_m: f64) -> f64 {
        self.focal_px * self.baseline_m / depth_m + self.centre_x_px - self.right_centre_x_px
    }

    /// Returns the standard deviation in metres of the depth at a disparity with a standard deviation of
    /// `deviation` pixels: Z^2 / (focal length * baseline) times it (Gallup et al., Variable
    /// baseline/resolution stereo, CVPR 2008, section 2); `None` where there is no depth.
    pub fn depth_deviation_m(&self, disparity: f64, deviation: f64) -> Option<f64> {
        let depth = self.depth_m(disparity)?;
        Some(depth * depth / (self.focal_px * self.baseline_m) * deviation)
    }

    /// Returns the point in metres shown by pixel (x, y) of the left image: x to the right, y down, z
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
    /// Disparity of the left image.
    pub disparity: DisparityMap,
    /// Confidence of each pixel, from 1 to 255 (the disparity is right within 1 px with the probability c /
    /// 255, 1 states none), and 0 if the disparity is unknown; `None` unless the parameters ask for it.
    pub confidence: Option<Image>,
    /// The left image without its background, if the parameters ask for it.
    pub whitened: Option<Whitened>,
    /// Whether a network's disparity and matching agree, per pixel; `None` unless a network is checked.
    pub verdicts: Option<Image>,
    /// Result of the temporal stage, if it is on.
    pub temporal: Option<TemporalReport>,
    /// Geometry of the cameras, if known.
    pub geometry: Option<StereoGeometry>,
    /// Obstacles in the disparity, if the settings ask for them.
    pub obstacles: Option<Obstacles>,
    /// Pose and velocity of the rig, if the parameters ask for them.
    pub odometry: Option<Box<Odometry>>,
    /// The ground plan of all that was seen so far, if there is a new one.
    pub grid: Option<Arc<Grid>>,
    /// Start of matching.
    pub submitted: Instant,
    /// End of matching.
    pub finished: Instant,
    /// Duration of each stage of the engine, in order. Stages may overlap on a GPU.
    pub stages: Vec<StageTime>,
    /// Time of a GPU's kernels without copies; `None` for the CPU. It includes other pairs in flight
    /// that shared the GPU.
    pub device_time: Option<Duration>,
}

/// Result of the temporal stage for a pair, from earlier pairs of its stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TemporalReport {
    /// Number of pairs in the history, the newest included.
    pub remembered: u32,
    /// Shift of the previous image against this one, in pixels to the right and down; `None` if not found.
    pub shift: Option<[f32; 2]>,
    /// Standard deviation of the noise in grey levels, before and after denoising, as the mean of both
    /// views; `None` without a history.
    pub noise: Option<[f32; 2]>,
    /// Share of moving pixels in both views.
    pub moving: f32,
}

/// Name and duration of a stage.
pub type StageTime = (&'static str, Duration);

/// Adds the time of a stage to that of the same name, or to the end.
pub fn add_time(times: &mut Vec<StageTime>, (name, time): StageTime) {
    match times.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += time,
        None => times.push((name, time)),
    }
}

impl Matched {
    /// Creates a result without times and engine.
    pub fn new(pair: StereoPair, disparity: DisparityMap) -> Self {
        let now = Instant::now();
        Self {
            pair,
            disparity,
            confidence: None,
            whitened: None,
            verdicts: None,
            temporal: None,
            geometry: None,
            obstacles: None,
            odometry: None,
            grid: None,
            submitted: now,
            finished: now,
            stages: Vec::new(),
            device_time: None,
        }
    }

    /// Returns the time from capture (for recordings: from arrival) to disparity.
    pub fn latency(&self) -> Duration {
        self.finished.saturating_duration_since(self.pair.arrived)
    }

    /// Returns the time of matching.
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
        // The right image is shifted by 4 px, so infinity has disparity -4.
        geometry.right_centre_x_px = 324.0;
        assert_eq!(geometry.depth_m(16.0), Some(2.0));
        assert_eq!(geometry.depth_m(-4.0), None);
        assert_eq!(geometry.depth_m(-3.0), Some(40.0));
    }
}
