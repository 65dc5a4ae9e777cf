//! Folders of numbered images of disparity or depth, and of point clouds.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::labels::Labels;
use crate::sink::numbered::{Kind, NumberedFiles};
use crate::sink::segments::Place;
use crate::sink::still::{About, Still, StillFormat};
use crate::sink::{Sink, StreamInfo};
use stereod_core::frame::{Matched, StereoGeometry};
use stereod_core::picture::cloud::{self, CloudFormat, CloudOptions, Place as CameraPlace};
use stereod_core::picture::encoding::UNKNOWN;
use stereod_core::picture::numbers::{Numbers, Quantity};
use stereod_core::picture::png::DisparityPng;

pub static PICTURES: Kind = Kind {
    plural: "pictures",
    singular: "picture",
    extensions: &["png", "tiff", "exr", "npy", "pfm"],
    description: "disparity.json",
};

/// Writes each map to a file of its own ([`NumberedFiles`]) with the number of the source's image: disparity in the KITTI
/// convention or depth as 16-bit PNG, or floats in another format of [`Still::write`]. The description holds the meaning of the
/// numbers, the range and the cameras, if known.
#[derive(Debug)]
pub struct Pictures {
    name: String,
    quantity: Quantity,
    format: StillFormat,
    numbers: Numbers,
    png: DisparityPng,
    files: NumberedFiles,
    labels: Labels,
    rate: Option<f64>,
    source: String,
}

impl Pictures {
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
        let StreamInfo { labels, rate, .. } = *stream;
        let (png, source) = Default::default();
        Ok(Self { name, quantity, format, numbers, png, files, labels, rate, source })
    }

    /// Names the source in files that can hold its name.
    pub fn of_source(self, name: &str) -> Self {
        Self { source: name.to_owned(), ..self }
    }
}

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

/// Returns the number of a pair's files: that of the left image, if images have numbers, else the pair's.
fn number(labels: &Labels, frame: &Matched) -> u64 {
    labels.number(frame.pair.timestamp).unwrap_or(frame.pair.sequence)
}

impl Sink for Pictures {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let number = number(&self.labels, frame);
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
            about: About {
                source: &self.source,
                rate: self.rate,
                number: Some(number),
                timecode: self.labels.timecode(frame.pair.timestamp),
                pose: frame.odometry.as_ref().filter(|it| it.lost.is_none()).map(|it| it.pose),
            },
        };
        self.files.write(number, &still.encode(self.format)?)
    }
}

pub static CLOUDS: Kind = Kind {
    plural: "point clouds",
    singular: "point cloud",
    extensions: &["ply", "pcd", "las"],
    description: "clouds.json",
};

/// Writes each map to a file of its own ([`NumberedFiles`]), coloured by the left image. The
/// description holds the format, the unit, the axes and the cameras.
#[derive(Debug)]
pub struct Clouds {
    name: String,
    format: CloudFormat,
    options: CloudOptions,
    files: NumberedFiles,
    labels: Labels,
}

impl Clouds {
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        format: CloudFormat,
        options: CloudOptions,
    ) -> Result<Self> {
        let place = place.into();
        let geometry = stream.geometry.context("the cameras are not known")?;
        let name = format!("clouds in {}", place.path().display());
        let text = describe_clouds(&geometry, format, options);
        let files = NumberedFiles::create(&place, &CLOUDS, format.extension(), text)?;
        Ok(Self { name, format, options, files, labels: stream.labels })
    }
}

fn describe_clouds(
    geometry: &StereoGeometry,
    format: CloudFormat,
    options: CloudOptions,
) -> String {
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
        let place = frame.odometry.as_deref().map(CameraPlace::from);
        let (format, options) = (self.format, CloudOptions { place, ..self.options });
        let map = &frame.disparity;
        let (file, _) = cloud::encode_cloud(format, map, confidence, &geometry, options, colour)?;
        self.files.write(number(&self.labels, frame), &file)
    }
}
