//! A folder of numbered point clouds.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

use crate::sink::numbered::{Kind, NumberedFiles};
use crate::sink::place::Place;
use crate::sink::{Sink, StreamInfo};
use stereod_core::frame::{Matched, StereoGeometry};
use stereod_core::picture::cloud::{self, CloudFormat, CloudOptions};

/// Point clouds.
pub static CLOUDS: Kind = Kind {
    plural: "point clouds",
    singular: "point cloud",
    extensions: &["ply", "pcd", "las"],
    description: "clouds.json",
};

/// Writes each map as `DIR/NNNNNN.EXT`, coloured by the left image, as [`NumberedFiles`]. The
/// description holds the format, the unit, the axes and the cameras.
#[derive(Debug)]
pub struct Clouds {
    name: String,
    format: CloudFormat,
    options: CloudOptions,
    files: NumberedFiles,
}

impl Clouds {
    /// Creates the folder (and its parents) if missing, or continues in it.
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        format: CloudFormat,
        options: CloudOptions,
    ) -> Result<Self> {
        let place = place.into();
        let geometry = stream.geometry.context("the cameras are not known")?;
        let name = format!("clouds in {}", place.path().display());
        let text = describe(&geometry, format, options);
        let files = NumberedFiles::create(&place, &CLOUDS, format.extension(), text)?;
        Ok(Self { name, format, options, files })
    }
}

/// Returns the description of the clouds of a folder, as JSON.
fn describe(geometry: &StereoGeometry, format: CloudFormat, options: CloudOptions) -> String {
    let axes = options.axes.words();
    let description = json!({
        "format": format.extension(),
        "meaning": format!("points in metres from the left camera: {axes}; colours of the left picture"),
        "near_m": options.near_m,
        "far_m": options.far_m,
        "outliers": options.outliers,
        "voxel_m": options.voxel_m,
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
        let Self { format, options, .. } = *self;
        let map = &frame.disparity;
        let (file, _) = cloud::encode_cloud(format, map, confidence, &geometry, options, colour)?;
        self.files.write(frame.pair.sequence, &file)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
