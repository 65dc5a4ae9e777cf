//! What is known of the two cameras, made from the settings.

use std::sync::Arc;

use anyhow::{Context, anyhow};

use super::Error;
use crate::calibration::{Rectifier, StereoCalibration, format};
use crate::frame::StereoGeometry;
use crate::settings;

/// What the settings say of the cameras, before the size of their pictures is known.
pub struct Cameras<'a> {
    settings: &'a settings::Calibration,
    calibration: Option<StereoCalibration>,
}

/// The cameras behind the pictures of a run.
#[derive(Clone, Debug)]
pub struct Rig {
    /// What rectifies the pictures, where they come raw.
    pub rectifier: Option<Arc<Rectifier>>,
    /// What depth is computed from, where it is known.
    pub geometry: Option<StereoGeometry>,
    /// Width and height in pixels of the pictures that are matched.
    pub size: (usize, usize),
}

impl<'a> Cameras<'a> {
    /// Reads the calibration files, so that what is wrong with them is said before anything begins.
    ///
    /// # Errors
    /// What is wrong with the files or the numbers; depth that is wanted without either.
    pub fn read(loaded: &'a settings::Settings) -> Result<Self, Error> {
        let settings = &loaded.calibration;
        let files = settings.files();
        let known = settings.focal_and_baseline().is_some();
        if files.is_empty() {
            if !known && (settings.focal_px > 0.0 || settings.baseline_m > 0.0) {
                return Err(Error::usage("depth needs both --focal and --baseline"));
            }
            if !known && loaded.output.depth {
                return Err(Error::usage(
                    "--depth needs to know the cameras: give --calibration FILE, or --focal and \
                     --baseline for pictures that come rectified",
                ));
            }
            return Ok(Self { settings, calibration: None });
        }
        if known {
            return Err(Error::usage(
                "a calibration file says everything; leave out focal_px and baseline_m of \
                 [calibration], which are for pictures that come rectified",
            ));
        }
        let (calibration, format) =
            format::read(&files).map_err(|error| Error::Usage(anyhow!(error)))?;
        tracing::info!("calibration: {} ({format})", settings.file);
        Ok(Self { settings, calibration: Some(calibration) })
    }

    /// Whether depth can be computed.
    pub fn are_known(&self) -> bool {
        self.calibration.is_some() || self.settings.focal_and_baseline().is_some()
    }

    /// The rig for pictures of `width` x `height` pixels.
    ///
    /// # Errors
    /// Where the calibration is for pictures of another shape.
    pub fn for_pictures(&self, (width, height): (usize, usize)) -> Result<Rig, Error> {
        let Some(calibration) = &self.calibration else {
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
            return Ok(Rig { rectifier: None, geometry, size: (width, height) });
        };
        let file = &self.settings.file;
        let (calibration, note) = calibration
            .for_size(width, height)
            .with_context(|| file.clone())
            .map_err(Error::Usage)?;
        if let Some(note) = note {
            tracing::info!("{file}: {note}");
        }
        let rectifier = Rectifier::new(&calibration, self.settings.alpha.value())
            .with_context(|| file.clone())
            .map_err(Error::Usage)?;
        let geometry = rectifier.geometry();
        tracing::info!(
            "rectifying: focal length {:.1} px, baseline {:.1} mm",
            geometry.focal_px,
            geometry.baseline_m * 1e3
        );
        let size = rectifier.size();
        Ok(Rig { rectifier: Some(Arc::new(rectifier)), geometry: Some(geometry), size })
    }
}
