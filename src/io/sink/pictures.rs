//! A folder of numbered images of disparity or depth.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use crate::sink::numbered::{Kind, NumberedFiles};
use crate::sink::place::Place;
use crate::sink::still::{Still, StillFormat};
use crate::sink::{Sink, StreamInfo};
use stereod_core::frame::{Matched, StereoGeometry};
use stereod_core::picture::encoding::UNKNOWN;
use stereod_core::picture::numbers::{Numbers, Quantity};
use stereod_core::picture::png::DisparityPng;

/// The kind of numbered images.
pub static PICTURES: Kind = Kind {
    plural: "pictures",
    singular: "picture",
    extensions: &["png", "tiff", "exr", "npy", "pfm"],
    description: "disparity.json",
};

/// Writes each map as `DIR/NNNNNN.EXT`, as [`NumberedFiles`]: disparity in the KITTI convention or depth as
/// 16-bit PNG, or floats in another format of [`Still::write`]. The description holds the meaning of the
/// numbers, the range and the cameras, if known.
#[derive(Debug)]
pub struct Pictures {
    name: String,
    quantity: Quantity,
    format: StillFormat,
    /// Meaning of the numbers of PNG images.
    numbers: Numbers,
    png: DisparityPng,
    files: NumberedFiles,
}

impl Pictures {
    /// Creates the folder (and its parents) if missing, or continues in it.
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        quantity: Quantity,
        format: StillFormat,
    ) -> Result<Self> {
        let place = place.into();
        let numbers = Numbers::new(quantity, stream.range, stream.geometry.as_ref())?;
        let text = describe(stream, quantity, format, &numbers);
        let name = format!("pictures in {}", place.path().display());
        let files = NumberedFiles::create(&place, &PICTURES, format.extension(), text)?;
        Ok(Self { name, quantity, format, numbers, png: DisparityPng::default(), files })
    }
}

/// Returns the description of the images of a folder, as JSON.
fn describe(
    stream: &StreamInfo,
    quantity: Quantity,
    format: StillFormat,
    numbers: &Numbers,
) -> String {
    let of = |value: fn(&StereoGeometry) -> f64| stream.geometry.as_ref().map(value);
    let mut description = json!({
        "format": format.extension(),
        "min_disparity": stream.range.min,
        "disparities": stream.range.count,
        "focal_px": of(|g| g.focal_px),
        "baseline_m": of(|g| g.baseline_m),
        "centre_x_px": of(|g| g.centre_x_px),
        "centre_y_px": of(|g| g.centre_y_px),
        "right_centre_x_px": of(|g| g.right_centre_x_px),
    });
    let meaning = match (format, quantity) {
        (StillFormat::Png, _) => numbers.describe(),
        (StillFormat::Exr, _) => {
            "disparity in pixels; Z and Z_std in metres; confidence from 0 to 1".into()
        }
        (_, Quantity::Disparity) => "disparity in pixels".into(),
        (_, Quantity::Depth(_)) => "depth in metres".into(),
    };
    description["meaning"] = meaning.into();
    if format == StillFormat::Png {
        let (scale, offset) = match quantity {
            Quantity::Disparity => (numbers.encoding().scale().into(), numbers.encoding().offset()),
            Quantity::Depth(unit) => (unit.per_metre(), 0),
        };
        // Whole scales are written as whole numbers.
        let whole = scale.fract() == 0.0;
        description["scale"] = if whole { json!(scale as u64) } else { json!(scale) };
        description["offset"] = offset.into();
        description["unknown"] = Value::from(UNKNOWN);
    }
    format!("{description:#}\n")
}

impl Sink for Pictures {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let number = frame.pair.sequence;
        if self.format == StillFormat::Png {
            let picture = self.png.encode(&frame.disparity, &self.numbers)?;
            return self.files.write(number, picture);
        }
        let depth = match self.quantity {
            Quantity::Disparity => None,
            Quantity::Depth(unit) => Some(unit),
        };
        let still = Still {
            map: &frame.disparity,
            range: frame.disparity.range(),
            geometry: frame.geometry.as_ref(),
            depth,
            confidence: frame.confidence.as_ref(),
        };
        self.files.write(number, &still.encode(self.format)?)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
