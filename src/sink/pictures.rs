//! A folder of numbered 16-bit PNGs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::json;

use crate::frame::{DisparityRange, Matched, StereoGeometry};
use crate::sink::Sink;
use crate::sink::encoding::UNKNOWN;
use crate::sink::files;
use crate::sink::numbers::{DEPTH_SCALE, Numbers, Quantity};
use crate::sink::png::DisparityPng;

/// What the folder says of its pictures, in a file beside them.
pub const DESCRIPTION_FILE: &str = "disparity.json";

/// What is known of the disparities besides the maps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PicturesOptions {
    /// The candidate disparities; they choose the encoding.
    pub range: DisparityRange,
    /// What the pictures hold.
    pub quantity: Quantity,
    /// What depth is computed from, where known.
    pub geometry: Option<StereoGeometry>,
}

/// Writes each map as `DIR/NNNNNN.png`, disparity in KITTI convention or depth, numbered by the pair's sequence number.
///
/// Each picture appears under its name only when it is complete. `disparity.json` beside them holds
/// scale, offset, range and, where known, what depth is computed from. Pictures of an earlier run in
/// the same folder are replaced number by number; those with higher numbers stay.
#[derive(Debug)]
pub struct Pictures {
    dir: PathBuf,
    name: String,
    numbers: Numbers,
    png: DisparityPng,
}

impl Pictures {
    /// Makes the folder (and those above it) where it is missing, and describes it.
    ///
    /// # Errors
    /// Where the folder cannot be made or written, or the name is that of a file.
    pub fn create(dir: &Path, options: &PicturesOptions) -> Result<Self> {
        if dir.exists() && !dir.is_dir() {
            bail!("cannot write pictures into {}: it is not a folder", dir.display());
        }
        fs::create_dir_all(dir).map_err(|error| files::explain(dir, &error))?;
        let numbers = Numbers::new(options.quantity, options.range, options.geometry.as_ref())?;
        let (scale, offset) = match options.quantity {
            Quantity::Disparity => (numbers.encoding().scale(), numbers.encoding().offset()),
            Quantity::Depth => (DEPTH_SCALE, 0),
        };
        let of = |value: fn(&StereoGeometry) -> f64| options.geometry.as_ref().map(value);
        let description = json!({
            "scale": scale,
            "offset": offset,
            "unknown": UNKNOWN,
            "meaning": numbers.describe(),
            "min_disparity": options.range.min,
            "disparities": options.range.count,
            "focal_px": of(|g| g.focal_px),
            "baseline_m": of(|g| g.baseline_m),
            "centre_x_px": of(|g| g.centre_x_px),
            "centre_y_px": of(|g| g.centre_y_px),
            "right_centre_x_px": of(|g| g.right_centre_x_px),
        });
        // This also finds out now, and not after the first match, whether the folder can be written.
        let text = format!("{description:#}\n");
        files::write_whole(&dir.join(DESCRIPTION_FILE), text.as_bytes())?;
        let name = format!("pictures in {}", dir.display());
        Ok(Self { dir: dir.to_path_buf(), name, numbers, png: DisparityPng::default() })
    }
}

/// Whether files of this name are written into a folder of pictures.
pub fn is_written(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".png"));
    let is_number = number.is_some_and(|number| {
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        digits && (number.len() == 6 || number.len() > 6 && !number.starts_with('0'))
    });
    is_number || name == DESCRIPTION_FILE
}

impl Sink for Pictures {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let path = self.dir.join(format!("{:06}.png", frame.pair.sequence));
        files::write_whole(&path, self.png.encode(&frame.disparity, &self.numbers)?)
    }

    fn finish(&mut self) -> Result<()> {
        // Every picture was completed when it was written.
        Ok(())
    }
}
