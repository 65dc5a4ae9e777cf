//! A camera: pinhole and lens.

#[derive(Clone, Debug, PartialEq)]
pub struct Camera {
    /// Width of its images in pixels.
    pub width: usize,
    /// Height of its images in pixels.
    pub height: usize,
    /// Focal lengths in pixels, horizontally and vertically.
    pub focal: [f64; 2],
    /// The principal point in pixels; (0, 0) is the centre of the first pixel.
    pub centre: [f64; 2],
    /// Entry (0, 1) of the camera matrix in pixels, which OpenCV's fisheye calibration estimates; 0
    /// for other lens models.
    pub skew: f64,
    pub lens: Lens,
}

/// Distortion of a lens, as OpenCV defines it (calib3d, "Detailed Description").
#[derive(Clone, Debug, PartialEq)]
pub enum Lens {
    /// Brown-Conrady with OpenCV's extensions, in OpenCV's order: k1 k2 p1 p2 k3 (plumb bob), k4 k5
    /// k6 (rational), s1 s2 s3 s4 (thin prism), tau_x tau_y (tilted sensor, radians). Coefficients
    /// missing in a file are 0.
    Brown([f64; 14]),
    /// Kannala-Brandt, also called equidistant or fisheye: k1 k2 k3 k4.
    Fisheye([f64; 4]),
}
