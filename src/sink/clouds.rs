//! A folder of numbered point clouds.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

use crate::core::frame::{Matched, StereoGeometry};
use crate::sink::cloud;
use crate::sink::numbered::{Kind, NumberedFiles};
use crate::sink::{Sink, StreamInfo};

/// Point clouds.
pub static CLOUDS: Kind = Kind {
    plural: "point clouds",
    singular: "point cloud",
    extension: "ply",
    description: "clouds.json",
    is_ours: cloud::is_cloud,
};

/// Writes each map as `DIR/NNNNNN.ply`, coloured by the left image, as [`NumberedFiles`]. The
/// description holds the unit, the axes and the cameras.
#[derive(Debug)]
pub struct Clouds {
    name: String,
    files: NumberedFiles,
}

impl Clouds {
    /// Creates the folder (and its parents) if missing.
    pub fn create(dir: &Path, stream: &StreamInfo) -> Result<Self> {
        Self::of(dir, stream, NumberedFiles::create)
    }

    /// Continues in a folder with clouds of this run.
    pub fn resume(dir: &Path, stream: &StreamInfo) -> Result<Self> {
        Self::of(dir, stream, NumberedFiles::resume)
    }

    fn of(
        dir: &Path,
        stream: &StreamInfo,
        open: impl FnOnce(&Path, &'static Kind, String) -> Result<NumberedFiles>,
    ) -> Result<Self> {
        let geometry = stream.geometry.context("the cameras are not known")?;
        let name = format!("clouds in {}", dir.display());
        Ok(Self { name, files: open(dir, &CLOUDS, describe(&geometry))? })
    }
}

/// Returns the description of the clouds of a folder, as JSON.
fn describe(geometry: &StereoGeometry) -> String {
    let description = json!({
        "meaning": "points in metres from the left camera: x to the right, y down, z forward; colours \
                    of the left picture",
        "focal_px": geometry.focal_px,
        "baseline_m": geometry.baseline_m,
        "centre_x_px": geometry.centre_x_px,
        "centre_y_px": geometry.centre_y_px,
        "right_centre_x_px": geometry.right_centre_x_px,
    });
    format!("{description:#}\n")
}

impl Sink for Clouds {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let geometry = frame.geometry.context("the cameras are not known any more")?;
        let left = &frame.pair.left;
        let colour = |x, y| left.rgb_at(x, y);
        let (file, _) =
            cloud::encode_cloud(&frame.disparity, frame.confidence.as_ref(), &geometry, colour);
        self.files.write(frame.pair.sequence, &file)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
