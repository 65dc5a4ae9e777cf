//! A folder of numbered 16-bit PNGs.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;

use crate::core::frame::{Matched, StereoGeometry};
use crate::sink::encoding::UNKNOWN;
use crate::sink::numbered::{Kind, NumberedFiles};
use crate::sink::numbers::{Numbers, Quantity};
use crate::sink::png::{self, DisparityPng};
use crate::sink::{Sink, StreamInfo};

/// The kind of numbered images.
pub static PICTURES: Kind = Kind {
    plural: "pictures",
    singular: "picture",
    extension: "png",
    description: "disparity.json",
    is_ours: png::is_disparity,
};

/// Writes each map as `DIR/NNNNNN.png`, disparity in the KITTI convention or depth, as
/// [`NumberedFiles`]. The description holds scale, offset, range and the cameras, if known.
#[derive(Debug)]
pub struct Pictures {
    name: String,
    numbers: Numbers,
    png: DisparityPng,
    files: NumberedFiles,
}

impl Pictures {
    /// Creates the folder (and its parents) if missing.
    pub fn create(dir: &Path, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        Self::of(dir, stream, quantity, NumberedFiles::create)
    }

    /// Continues in a folder with images of this run.
    pub fn resume(dir: &Path, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        Self::of(dir, stream, quantity, NumberedFiles::resume)
    }

    fn of(
        dir: &Path,
        stream: &StreamInfo,
        quantity: Quantity,
        open: impl FnOnce(&Path, &'static Kind, String) -> Result<NumberedFiles>,
    ) -> Result<Self> {
        let numbers = Numbers::new(quantity, stream.range, stream.geometry.as_ref())?;
        let text = describe(stream, quantity, &numbers);
        let name = format!("pictures in {}", dir.display());
        Ok(Self { name, numbers, png: DisparityPng::default(), files: open(dir, &PICTURES, text)? })
    }
}

/// Returns the description of the images of a folder, as JSON.
fn describe(stream: &StreamInfo, quantity: Quantity, numbers: &Numbers) -> String {
    let (scale, offset) = match quantity {
        Quantity::Disparity => (numbers.encoding().scale().into(), numbers.encoding().offset()),
        Quantity::Depth(unit) => (unit.per_metre(), 0),
    };
    // Whole scales are written as whole numbers.
    let scale = if scale.fract() == 0.0 { json!(scale as u64) } else { json!(scale) };
    let of = |value: fn(&StereoGeometry) -> f64| stream.geometry.as_ref().map(value);
    let description = json!({
        "scale": scale,
        "offset": offset,
        "unknown": UNKNOWN,
        "meaning": numbers.describe(),
        "min_disparity": stream.range.min,
        "disparities": stream.range.count,
        "focal_px": of(|g| g.focal_px),
        "baseline_m": of(|g| g.baseline_m),
        "centre_x_px": of(|g| g.centre_x_px),
        "centre_y_px": of(|g| g.centre_y_px),
        "right_centre_x_px": of(|g| g.right_centre_x_px),
    });
    format!("{description:#}\n")
}

impl Sink for Pictures {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let picture = self.png.encode(&frame.disparity, &self.numbers)?;
        self.files.write(frame.pair.sequence, picture)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
