//! A folder of numbered point clouds.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

use crate::core::frame::{Matched, StereoGeometry};
use crate::sink::cloud::{self, CloudOptions};
use crate::sink::numbered::{Kind, NumberedFiles, Open};
use crate::sink::{Sink, StreamInfo};

/// Point clouds.
pub static CLOUDS: Kind = Kind {
    plural: "point clouds",
    singular: "point cloud",
    extensions: &["ply"],
    description: "clouds.json",
    is_ours: cloud::is_cloud,
};

/// Writes each map as `DIR/NNNNNN.ply`, coloured by the left image, as [`NumberedFiles`]. The
/// description holds the unit, the axes and the cameras.
#[derive(Debug)]
pub struct Clouds {
    name: String,
    options: CloudOptions,
    files: NumberedFiles,
}

impl Clouds {
    /// Creates the folder (and its parents) if missing.
    pub fn create(dir: &Path, stream: &StreamInfo, options: CloudOptions) -> Result<Self> {
        Self::of(dir, stream, options, NumberedFiles::create)
    }

    /// Continues in a folder with clouds of this run.
    pub fn resume(dir: &Path, stream: &StreamInfo, options: CloudOptions) -> Result<Self> {
        Self::of(dir, stream, options, NumberedFiles::resume)
    }

    fn of(dir: &Path, stream: &StreamInfo, options: CloudOptions, open: Open) -> Result<Self> {
        let geometry = stream.geometry.context("the cameras are not known")?;
        let name = format!("clouds in {}", dir.display());
        let files = open(dir, &CLOUDS, "ply", describe(&geometry, options))?;
        Ok(Self { name, options, files })
    }
}

/// Returns the description of the clouds of a folder, as JSON.
fn describe(geometry: &StereoGeometry, options: CloudOptions) -> String {
    let axes = options.axes.words();
    let description = json!({
        "meaning": format!("points in metres from the left camera: {axes}; colours of the left picture"),
        "near_m": options.near_m,
        "far_m": options.far_m,
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
        let confidence = frame.confidence.as_ref();
        let (file, _) =
            cloud::encode_cloud(&frame.disparity, confidence, &geometry, self.options, colour);
        self.files.write(frame.pair.sequence, &file)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
