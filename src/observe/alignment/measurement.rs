//! Result of one measurement.

/// Alignment of a pair of images.
///
/// The row error is a point's row in the right image less that in the left one. Its model is
/// `shift + x * sin(roll) + y * (1 - 1 / scale)`, with x and y relative to the centre of the *right*
/// image, because a roll of the right view moves points by their position there. The rest is
/// curvature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    pub width: usize,
    /// Points found in both images.
    pub matches: usize,
    /// Points that agree on one alignment.
    pub consistent: usize,
    /// Root mean square of the modelled row error over the image, in pixels.
    pub row_error_px: f64,
    /// Expected error of `row_error_px`, as a standard deviation.
    pub uncertainty_px: f64,
    /// Row error at the centre, in pixels; positive if the right image is lower.
    pub shift_px: f64,
    /// Roll of the right image relative to the left one, in degrees, clockwise.
    pub roll_deg: f64,
    /// Vertical scale of the right image relative to the left one.
    pub scale: f64,
    /// Root mean square of the curvature over the image: keystone (x y, y y) and lens distortion.
    pub curvature_px: f64,
    /// Expected error of `curvature_px`, as a standard deviation.
    pub curvature_uncertainty_px: f64,
    /// Median row error of the consistent points, in pixels.
    pub median_px: f64,
    /// Spread of the residual row errors, in pixels: 1.4826 times their median absolute value, the
    /// standard deviation of normal errors.
    pub spread_px: f64,
    /// Median disparity of the consistent points, in pixels.
    pub disparity_px: f64,
    /// Share of the consistent points with a disparity more than a pixel below the candidates.
    pub below_range: f64,
}
