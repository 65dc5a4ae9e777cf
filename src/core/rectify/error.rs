//! Reasons why images cannot be rectified.

/// Largest ratio of a rectified image's side to the camera's.
pub const LARGER_MAX: usize = 4;

/// Reason why a calibration yields no rectification.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RectifyError {
    #[error(
        "the calibration puts both cameras in one place (its translation is 0), and so nothing can be \
         rectified; calibrate the pair anew"
    )]
    NoBaseline,
    #[error(
        "the calibration puts one camera above the other (translation {0:.4}, {1:.4}, {2:.4} m), but \
         rows are matched: turn both pictures by 90 degrees and calibrate again"
    )]
    Vertical(f64, f64, f64),
    /// Alpha out of its range.
    #[error(
        "alpha is 0 (only pixels that the cameras see) to 1 (everything that they see), not {0}"
    )]
    Alpha(f64),
    /// Values that are not finite.
    #[error("the calibration's {0} holds no usable numbers: {1}")]
    Numbers(&'static str, String),
    #[error("pictures of {0}x{1} pixels are too large to be rectified")]
    TooLarge(usize, usize),
    #[error(
        "the calibration asks for rectified pictures of {}x{} pixels of a camera that has {}x{}: more \
         than {} times as long a side shows nothing more; correct the size of the rectification",
        .rectified.0, .rectified.1, .camera.0, .camera.1, LARGER_MAX
    )]
    OutOfProportion {
        /// Width and height of the rectified images.
        rectified: (usize, usize),
        /// Width and height of the camera's images.
        camera: (usize, usize),
    },
    /// More memory than the budget has.
    #[error(transparent)]
    TooMuch(#[from] crate::memory::TooMuch),
    #[error(transparent)]
    Refused(#[from] crate::memory::Refused),
    /// A rectification that looks elsewhere.
    #[error(
        "the {0} rectified picture would show nothing that the {0} camera sees: the rectification of \
         the calibration does not belong to its cameras"
    )]
    NothingSeen(crate::frame::Eye),
}
