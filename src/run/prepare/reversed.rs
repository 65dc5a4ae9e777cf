//! Finds by the rows of a pair why a calibration's right camera stands to the left of the left one.

use std::sync::Arc;

use crate::observe::alignment::{Limits, Options, Verdict, measure};
use crate::run::Error;
use stereod_calibration::format::{self, ReadOptions};
use stereod_calibration::{CalibrationError, StereoCalibration};
use stereod_core::frame::StereoPair;

/// A possible cause, and its cure.
struct Cause {
    what: &'static str,
    /// Flag of `stereod calibration convert`.
    flag: &'static str,
    /// True if the images have to be exchanged as well.
    exchanges: bool,
}

const CAUSES: [Cause; 3] = [
    Cause {
        what: "the pose leads from the right camera to the left one",
        flag: "--inverse-pose",
        exchanges: false,
    },
    Cause {
        what: "the first camera of the calibration is the right one",
        flag: "--swap",
        exchanges: false,
    },
    Cause { what: "the left and the right picture are exchanged", flag: "--swap", exchanges: true },
];

impl Cause {
    /// Returns the row error in pixels of the pair with the cure; `None` if rows or disparities do not fit.
    fn row_error_px(&self, files: &str, pair: &StereoPair) -> Option<f64> {
        let StereoPair { left, right, .. } = pair.copy();
        let (left, right) = if self.exchanges { (right, left) } else { (left, right) };
        let sizes = [&left, &right].map(|image| (image.width(), image.height()));
        let options = ReadOptions {
            size: Some(sizes[0]),
            swap: self.flag == "--swap",
            inverse: self.flag == "--inverse-pose",
            ..ReadOptions::default()
        };
        let loaded = format::read_with(&format::file_list(files).ok()?, &options).ok()?;
        let (calibration, _) = loaded.calibration.for_views(sizes, false).ok()?;
        let calibration = StereoCalibration { rectification: None, ..calibration };
        let rectifier = Arc::new(calibration.rectifier(None).ok()?);
        let [left, right] =
            rectifier.rectify_pair(&StereoPair { left, right, truth: None, ..pair.copy() });
        let measured = measure(&left, &right, &Options::default())?;
        let limits = Limits { calibrated: true, ..Limits::default() };
        let fits = limits.assess(Some(&measured), Verdict::Unsure) == Verdict::Good;
        fits.then_some(measured.row_error_px)
    }
}

/// Returns the error with the one cure by which the rows of this pair agree, if it is of such a calibration.
pub fn explained(
    error: Error,
    files: &str,
    pair: impl FnOnce() -> anyhow::Result<StereoPair>,
) -> Error {
    let Error::Usage(cause) = &error else { return error };
    let Some(finding) = cause.downcast_ref().and_then(CalibrationError::reversed) else {
        return error;
    };
    let Ok(pair) = pair() else { return error };
    let tried = CAUSES.iter().filter_map(|cause| Some((cause, cause.row_error_px(files, &pair)?)));
    let Some((Cause { what, flag, exchanges }, rows_px)) = tried.min_by(|a, b| a.1.total_cmp(&b.1))
    else {
        return error;
    };
    let StereoPair { left, .. } = &pair;
    let size = match format::file_list(files).and_then(|files| format::read(&files)) {
        Err(error) if error.lacks_size() => {
            format!(" --size {}x{}", left.width(), left.height())
        }
        _ => String::new(),
    };
    let also = if *exchanges { ", and exchange the two inputs" } else { "" };
    Error::usage(format!(
        "{finding}; {what}, because then the rows of these pictures agree within {rows_px:.1} px: `stereod \
         calibration convert {flag} {files}{size} -o OUT.toml`{also}"
    ))
}
