//! The two cameras, as far as the settings tell.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use super::Error;
use crate::calibration::format::{self, Format, Loaded, ReadOptions};
use crate::calibration::{CalibrationError, Fit, Rectification, Rectifier};
use crate::engine::PairSpec;
use crate::frame::StereoGeometry;
use crate::settings;

/// Cameras of the settings, before the size of their pictures is known.
pub struct Cameras<'a> {
    settings: &'a settings::Calibration,
    files: Vec<PathBuf>,
    /// Calibration of the files; `None` where there are none, or where they do not say how large the
    /// pictures are, so that they are read again when that is known.
    loaded: Option<Loaded>,
}

/// The cameras behind the pictures of a run.
#[derive(Clone, Debug)]
pub struct Rig {
    /// Their pairs, as an engine takes them.
    pub pairs: PairSpec,
    /// True where a calibration was given, by which the pictures are or come rectified.
    pub calibrated: bool,
}

impl<'a> Cameras<'a> {
    /// Reads the calibration files, so that what is wrong with them is said before anything begins.
    ///
    /// # Errors
    /// What is wrong with the files or the numbers; depth that is wanted without either.
    pub fn read(loaded: &'a settings::Settings) -> Result<Self, Error> {
        let settings = &loaded.calibration;
        let files = match settings.file.as_str() {
            "" => Vec::new(),
            list => format::file_list(list).map_err(wrong)?,
        };
        let known = settings.focal_and_baseline().is_some();
        if files.is_empty() {
            if !known && (settings.focal_px > 0.0 || settings.baseline_m > 0.0) {
                return Err(Error::usage("depth needs both --focal and --baseline"));
            }
            let cameras = Self { settings, files, loaded: None };
            if loaded.output.depth {
                cameras.required_by("--depth")?;
            }
            return Ok(cameras);
        }
        if known {
            return Err(Error::usage(
                "a calibration file says everything; leave out focal_px and baseline_m of \
                 [calibration], which are for pictures that come rectified",
            ));
        }
        let loaded = match format::read(&files) {
            Ok(loaded) => Some(loaded),
            Err(error) if error.lacks_size() => None,
            Err(error) => return Err(wrong(error)),
        };
        Ok(Self { settings, files, loaded })
    }

    /// Checks that depth can be computed, without which `flag` makes no sense.
    ///
    /// # Errors
    /// Where it cannot.
    pub fn required_by(&self, flag: &str) -> Result<(), Error> {
        if self.are_known() {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{flag} needs to know the cameras: give --calibration FILE, or --focal and --baseline for \
             pictures that come rectified"
        )))
    }

    /// True where depth can be computed.
    pub fn are_known(&self) -> bool {
        !self.files.is_empty() || self.settings.focal_and_baseline().is_some()
    }

    /// The rig for pictures of `width` x `height` pixels.
    ///
    /// # Errors
    /// Where the calibration is for pictures of another shape.
    pub fn for_pictures(&self, size: (usize, usize)) -> Result<Rig, Error> {
        let (width, height) = size;
        if self.files.is_empty() {
            let geometry = self.settings.focal_and_baseline().map(|(focal_px, baseline_m)| {
                // Where the principal point is unknown it is taken to be the middle.
                let centre = |length: usize| 0.5 * (length as f64 - 1.0);
                StereoGeometry {
                    focal_px,
                    baseline_m,
                    centre_x_px: centre(width),
                    centre_y_px: centre(height),
                    right_centre_x_px: centre(width),
                }
            });
            let pairs = PairSpec { size, rectifier: None, geometry };
            return Ok(Rig { pairs, calibrated: false });
        }
        let file = &self.settings.file;
        let loaded = match &self.loaded {
            // KITTI's file describes raw and rectified pictures, which only their size tells apart.
            Some(loaded) if loaded.format != Format::Kitti => loaded.clone(),
            _ => {
                let options = ReadOptions { size: Some(size), ..ReadOptions::default() };
                format::read_with(&self.files, &options).map_err(wrong)?
            }
        };
        let range = loaded.disparities.map(|disparities| {
            format!("; by its ndisp, {disparities} disparities hold the whole scene")
        });
        tracing::info!("calibration: {file} ({}){}", loaded.format, range.unwrap_or_default());
        for note in &loaded.notes {
            tracing::warn!("{note}");
        }
        let (calibration, fit) = loaded.calibration.for_size(width, height).map_err(wrong)?;
        match fit {
            Fit::Exact => {}
            _ if fit.is_assumed() => tracing::warn!("{file}: {fit}"),
            _ => tracing::info!("{file}: {fit}"),
        }
        let alpha = self.settings.alpha;
        if alpha.is_none() && calibration.comes_rectified() {
            let geometry = calibration.rectification.as_ref().map(Rectification::geometry);
            if let Some(StereoGeometry { focal_px, baseline_m, .. }) = geometry {
                let baseline = baseline_m * 1e3;
                tracing::info!(
                    "the pictures come rectified: focal length {focal_px:.1} px, baseline \
                     {baseline:.1} mm"
                );
            }
            let pairs = PairSpec { size, rectifier: None, geometry };
            return Ok(Rig { pairs, calibrated: true });
        }
        let rectifier = Rectifier::new(&calibration, alpha)
            .with_context(|| file.clone())
            .map_err(Error::Usage)?;
        let geometry = rectifier.geometry();
        tracing::info!(
            "rectifying: focal length {:.1} px, baseline {:.1} mm",
            geometry.focal_px,
            geometry.baseline_m * 1e3
        );
        Ok(Rig { pairs: PairSpec::raw(Arc::new(rectifier)), calibrated: true })
    }
}

/// A calibration that cannot be used is wrong configuration.
fn wrong(error: CalibrationError) -> Error {
    Error::Usage(error.into())
}
