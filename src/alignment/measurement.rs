//! The result of one measurement.

/// Alignment of a pair of images.
///
/// The row error is a point's row in the right image less that in the left one. It is described
/// as `shift + x * sin(roll) + y * (1 - 1 / scale)` with x and y from the centre of the *right*
/// image (a turn of the right view moves what is there by its place there). The rest is curvature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Width of the images in pixels.
    pub width: usize,
    /// Points found in both images.
    pub matches: usize,
    /// Those that agree on one alignment.
    pub consistent: usize,
    /// Root mean square over the image of the described row error, in pixels.
    pub row_error_px: f64,
    /// Expected error of `row_error_px`, as a standard deviation.
    pub uncertainty_px: f64,
    /// Row error at the centre, in pixels; positive where the right image shows things lower.
    pub shift_px: f64,
    /// Turn of the right image's content against the left one's, in degrees, clockwise.
    pub roll_deg: f64,
    /// Size of things in the right image against the left one, measured upright.
    pub scale: f64,
    /// Root mean square over the image of what bends: keystone (x y, y y) and lens distortion.
    pub curvature_px: f64,
    /// Expected error of `curvature_px`, as a standard deviation.
    pub curvature_uncertainty_px: f64,
    /// Median row error of the consistent points, in pixels.
    pub median_px: f64,
    /// Spread of the row errors that the description leaves, in pixels: 1.4826 times the median of
    /// their amounts, which is the standard deviation of normal errors.
    pub spread_px: f64,
    /// Median disparity of the consistent points, in pixels.
    pub disparity_px: f64,
    /// Share of the consistent points whose disparity is no candidate because it is too small, by
    /// more than a pixel.
    pub below_range: f64,
}
