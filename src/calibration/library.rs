//! Calibrations of two cameras: read, solve, write, rectify.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use stereod_core::files;
use stereod_core::frame::StereoGeometry;
use stereod_core::matcher::{Error, Rectifier, Result, file_error, rectifier_of};
use stereod_core::rectify::RectifyError;

use crate::board::{Board, Detection, Pattern};
use crate::format::{self, Format, Loaded, ReadOptions};
use crate::solve::{self, Sighting};
use crate::{Rectification, StereoCalibration};

/// A calibration of two cameras.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration(Loaded);

/// A pair of views of a chessboard: the pixel of each inner corner, row by row from the board's top left one,
/// as OpenCV's `findChessboardCorners` returns them. (0, 0) is the centre of the first pixel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoardView {
    /// Corners in the left image.
    pub left: Vec<[f64; 2]>,
    /// Corners in the right image.
    pub right: Vec<[f64; 2]>,
}

impl Calibration {
    /// Reads a calibration from one file, or from two (one for each camera, or intrinsics and
    /// extrinsics): OpenCV YAML, XML and JSON, ROS camera_info, Kalibr, EuRoC, DepthAI, KITTI,
    /// Middlebury, or stereod's own TOML.
    ///
    /// # Errors
    /// [`Error::Calibration`], with the file and, where it is known, the line.
    pub fn read(files: &[impl AsRef<Path>]) -> Result<Self> {
        let files: Vec<PathBuf> = files.iter().map(|file| file.as_ref().to_owned()).collect();
        Ok(Self(format::read_with(&files, &ReadOptions::default()).map_err(calibration_error)?))
    }

    /// Reads a calibration that is used for images of `width` x `height` pixels: files that lack the
    /// size of the images are completed, others are scaled or cut as cameras do it.
    ///
    /// # Errors
    /// As [`Calibration::read`], and a size that the calibration cannot be for.
    pub fn read_for_size(
        files: &[impl AsRef<Path>],
        (width, height): (usize, usize),
    ) -> Result<Self> {
        let files: Vec<PathBuf> = files.iter().map(|file| file.as_ref().to_owned()).collect();
        let options = ReadOptions { size: Some((width, height)), ..ReadOptions::default() };
        let loaded = format::read_with(&files, &options).map_err(calibration_error)?;
        let adapted = loaded.calibration.for_size(width, height);
        let (calibration, _) = adapted.map_err(calibration_error)?;
        Ok(Self(Loaded { calibration, ..loaded }))
    }

    /// Returns the calibration of two cameras, each with its matrix and distortion coefficients as of OpenCV's
    /// stereoCalibrate (or of its fisheye model), for images of `size` (width, height). A point x of the left
    /// camera's frame is `rotation * x + translation_m` in the right one's.
    ///
    /// # Errors
    /// [`Error::Calibration`], with the name that OpenCV's documentation gives to the matrix (`K1`).
    pub fn of_cameras(
        cameras: [([[f64; 3]; 3], &[f64]); 2],
        rotation: [[f64; 3]; 3],
        translation_m: [f64; 3],
        size: (usize, usize),
        is_fisheye: bool,
    ) -> Result<Self> {
        let loaded = format::of_cameras(cameras, rotation, translation_m, size, is_fisheye);
        loaded.map(Self).map_err(calibration_error)
    }

    /// Returns the calibration of rectified images of `size` (width, height).
    ///
    /// # Errors
    /// [`Error::Size`]: an image without pixels. [`Error::Parameter`]: a focal length or a baseline that is no
    /// number above 0, or a principal point that is not finite.
    pub fn of_rectified(size: (usize, usize), geometry: &StereoGeometry) -> Result<Self> {
        if size.0 == 0 || size.1 == 0 {
            return Err(Error::Size(format!("images of {}x{} pixels have none", size.0, size.1)));
        }
        let &StereoGeometry { focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px } =
            geometry;
        let lengths = [("focal_px", focal_px), ("baseline_m", baseline_m)];
        let centres = [
            ("centre_x_px", centre_x_px),
            ("centre_y_px", centre_y_px),
            ("right_centre_x_px", right_centre_x_px),
        ];
        let wrong_length =
            lengths.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0));
        let wrong = wrong_length.map(|wrong| (wrong, "a number above 0"));
        let wrong_centre = centres.into_iter().find(|(_, value)| !value.is_finite());
        let wrong = wrong.or(wrong_centre.map(|wrong| (wrong, "a column or row in pixels")));
        if let Some(((name, value), expected)) = wrong {
            let message = format!("`{name}` is {value}; expected {expected}");
            return Err(Error::Parameter { name: name.into(), message });
        }
        Ok(Self(Loaded::of(format::of_rectified(size, geometry), Format::Own)))
    }

    /// Calibrates two cameras with `columns` x `rows` inner corners of a chessboard whose squares have
    /// a side of `square_m` metres, seen in images of `size` (width, height). Views that do not fit
    /// are left out. Returns the root mean square of the reprojection error in pixels, too.
    ///
    /// # Errors
    /// [`Error::Parameter`]: no such board, a view with another number of corners, or a corner that is
    /// not finite.
    /// [`Error::Calibration`]: the views do not determine the cameras.
    pub fn solve(
        (columns, rows): (usize, usize),
        square_m: f64,
        size: (usize, usize),
        views: &[BoardView],
    ) -> Result<(Self, f64)> {
        let wrong = |message: String| Error::Parameter { name: "views".into(), message };
        let board =
            Pattern::chessboard(columns, rows).and_then(|board| Board::new(board, square_m));
        let board = board.map_err(|error| wrong(error.to_string()))?;
        let sighting = |(number, view): (usize, &BoardView)| -> Result<Sighting> {
            let detection = |corners: &[[f64; 2]]| {
                if corners.len() != board.count() {
                    return Err(wrong(format!(
                        "view {number} has {} corners, but the board has {}",
                        corners.len(),
                        board.count()
                    )));
                }
                if !corners.as_flattened().iter().all(|side| side.is_finite()) {
                    return Err(wrong(format!("view {number} has a corner that is no number")));
                }
                Ok(Detection::of_chessboard(corners, columns))
            };
            let seen = Ok([detection(&view.left)?, detection(&view.right)?]);
            Ok(Sighting { name: format!("view {number}"), seen })
        };
        let sightings = views.iter().enumerate().map(sighting).collect::<Result<Vec<_>, _>>()?;
        let solved = solve::solve(&board, [size; 2], solve::Options::default(), sightings);
        let solved = solved.map_err(calibration_error)?;
        let rms_px = solved.report.rms_px;
        Ok((Self(Loaded::of(solved.calibration, Format::Own)), rms_px))
    }

    /// Writes the calibration in the format of the file's ending: .toml (stereod), .yml, .xml or .json
    /// (OpenCV).
    ///
    /// # Errors
    /// [`Error::Calibration`]: another ending. [`Error::File`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let texts = Format::of_name(path)
            .and_then(|format| format::render(&self.0.calibration, &self.0.report, format));
        let texts = texts.map_err(calibration_error)?;
        let text = texts.into_iter().next().unwrap_or_default();
        files::write_whole(path, text.as_bytes()).map_err(file_error)
    }

    /// Returns the text of a stereod TOML file with the calibration.
    pub fn to_toml(&self) -> String {
        let text = format::render(&self.0.calibration, &self.0.report, Format::Own);
        text.expect("it can be written").concat()
    }

    /// Makes a calibration of the text of a stereod TOML file.
    ///
    /// # Errors
    /// As [`Calibration::read`].
    pub fn of_toml(text: &str) -> Result<Self> {
        let parsed = format::parse(&[("calibration.toml", text)], &ReadOptions::default());
        parsed.map(Self).map_err(calibration_error)
    }

    /// Returns width and height of the left camera's images.
    pub fn size(&self) -> (usize, usize) {
        (self.0.calibration.left.width, self.0.calibration.left.height)
    }

    /// Returns the cameras of the rectified images, for depth.
    ///
    /// # Errors
    /// [`Error::Calibration`]: the cameras cannot be rectified.
    pub fn geometry(&self) -> Result<StereoGeometry> {
        Ok(rectification(self, None)?.geometry())
    }

    /// Returns unlikely but possible properties of the calibration, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// Returns a rectifier. `alpha` is the field of view, from 0 (only valid pixels) to 1 (the whole
    /// raw images); `None` leaves it to the file, or is 0.
    ///
    /// # Errors
    /// [`Error::Calibration`], [`Error::OutOfMemory`].
    pub fn rectifier(&self, alpha: Option<f64>) -> Result<Rectifier> {
        self.0.calibration.rectifier(alpha).map(rectifier_of).map_err(rectify_error)
    }
}

/// Returns the cameras of a calibration.
pub fn cameras(calibration: &Calibration) -> &StereoCalibration {
    &calibration.0.calibration
}

/// Returns the cameras of the rectified images, with the field of view of [`Calibration::rectifier`].
///
/// # Errors
/// [`Error::Calibration`]: the cameras cannot be rectified.
pub fn rectification(calibration: &Calibration, alpha: Option<f64>) -> Result<Rectification> {
    calibration.0.calibration.rectified(alpha).map_err(rectify_error)
}

/// Wraps the error of a calibration.
fn calibration_error(error: impl Display) -> Error {
    Error::Calibration(error.to_string())
}

/// Sorts the error of a rectification.
fn rectify_error(error: RectifyError) -> Error {
    match error {
        RectifyError::TooMuch(_) | RectifyError::Refused(_) => {
            Error::OutOfMemory(error.to_string())
        }
        _ => calibration_error(error),
    }
}
