//! A folder of numbered 16-bit PNGs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::json;

use crate::frame::{Matched, StereoGeometry};
use crate::sink::claim::Claim;
use crate::sink::encoding::UNKNOWN;
use crate::sink::files;
use crate::sink::new_file::NewFile;
use crate::sink::numbers::{DEPTH_SCALE, Numbers, Quantity};
use crate::sink::png::{self, DisparityPng};
use crate::sink::{Sink, StreamInfo};

/// Name of the file that describes the pictures of a folder, beside them.
pub const DESCRIPTION_FILE: &str = "disparity.json";

/// Writes each map as `DIR/NNNNNN.png`, disparity in KITTI convention or depth, numbered by the pair's sequence number.
///
/// Each picture appears under its name only when it is complete. `disparity.json` beside them holds
/// scale, offset, range and, where known, what depth is computed from. The numbered pictures of a folder
/// are those of one run: with the first new one, all that an earlier run has left are removed. Numbered
/// pictures that stereod has not written are neither replaced nor removed.
#[derive(Debug)]
pub struct Pictures {
    dir: PathBuf,
    name: String,
    numbers: Numbers,
    png: DisparityPng,
    /// Until the first picture is there.
    waiting: Option<Waiting>,
    _claim: Claim,
}

/// Work that is done with the first picture.
#[derive(Debug)]
struct Waiting {
    description: NewFile,
    text: String,
    /// Pictures of an earlier run.
    earlier: Vec<PathBuf>,
}

impl Pictures {
    /// Makes the folder (and those above it) where it is missing.
    ///
    /// # Errors
    /// Where the folder cannot be made or written, another run writes there, or there are numbered
    /// pictures that stereod has not written; where the name is that of a file.
    pub fn create(dir: &Path, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        let mut pictures = Self::resume(dir, stream, quantity)?;
        let earlier = numbered(dir)?;
        let (Some(waiting), Some(first)) = (&mut pictures.waiting, earlier.first()) else {
            return Ok(pictures);
        };
        if !waiting.description.spares_earlier() {
            bail!(
                "cannot write pictures into {}: there are numbered pictures already, such as {}, and \
                 no {DESCRIPTION_FILE} that says stereod has written them; name another folder",
                dir.display(),
                first.display()
            );
        }
        if let Some(foreign) = earlier.iter().find(|path| !may_be_ours(path)) {
            bail!(
                "cannot write pictures into {}: {} is none of stereod's; move it, or name another folder",
                dir.display(),
                foreign.display()
            );
        }
        waiting.earlier = earlier;
        Ok(pictures)
    }

    /// Goes on in a folder with pictures of this run.
    ///
    /// # Errors
    /// Where the folder cannot be made or written, or another run writes there.
    pub fn resume(dir: &Path, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        if dir.exists() && !dir.is_dir() {
            bail!("cannot write pictures into {}: it is not a folder", dir.display());
        }
        fs::create_dir_all(dir).map_err(|error| files::explain(dir, &error))?;
        let claim = Claim::on_folder(dir)?;
        let numbers = Numbers::new(quantity, stream.range, stream.geometry.as_ref())?;
        // This also finds out now, and not after the first match, whether the folder can be written.
        let description = NewFile::create(&dir.join(DESCRIPTION_FILE))?;
        let text = describe(stream, quantity, &numbers);
        Ok(Self {
            dir: dir.to_path_buf(),
            name: format!("pictures in {}", dir.display()),
            numbers,
            png: DisparityPng::default(),
            waiting: Some(Waiting { description, text, earlier: Vec::new() }),
            _claim: claim,
        })
    }

    /// Puts the description in place, and removes the pictures of an earlier run but for `written`.
    fn take_over(&self, waiting: Waiting, written: &Path) -> Result<()> {
        let Waiting { description, text, earlier } = waiting;
        description.finish_with(text.as_bytes())?;
        let others = || earlier.iter().filter(|path| *path != written);
        for path in others() {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    bail!("cannot remove {}, a picture of an earlier run: {error}", path.display());
                }
                _ => {}
            }
        }
        if !earlier.is_empty() {
            let (dir, count) = (self.dir.display(), earlier.len());
            tracing::info!("{dir}: new pictures take the place of {count} of an earlier run");
        }
        Ok(())
    }
}

/// Description of the pictures of a folder, as JSON.
fn describe(stream: &StreamInfo, quantity: Quantity, numbers: &Numbers) -> String {
    let (scale, offset) = match quantity {
        Quantity::Disparity => (numbers.encoding().scale(), numbers.encoding().offset()),
        Quantity::Depth => (DEPTH_SCALE, 0),
    };
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

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.png"))
}

/// The number of a picture with this name, if it is one that is written here.
fn number_of(name: &OsStr) -> Option<u64> {
    let number = name.to_str()?.strip_suffix(".png")?.parse().ok()?;
    (path_of(Path::new(""), number).as_os_str() == name).then_some(number)
}

/// The files of a folder that are named as its pictures are, in the order of their numbers.
fn numbered(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(|error| files::explain(dir, &error))?;
    let mut numbers: Vec<u64> =
        entries.filter_map(Result::ok).filter_map(|entry| number_of(&entry.file_name())).collect();
    numbers.sort_unstable();
    Ok(numbers.into_iter().map(|number| path_of(dir, number)).collect())
}

/// True where a file looks like a picture that was written here: 16-bit grey, its meaning in a
/// comment.
fn may_be_ours(path: &Path) -> bool {
    let mut begin = [0; 48];
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && png::is_disparity(&begin)
}

/// True where files of this name are written into a folder of pictures.
pub fn is_written(name: &OsStr) -> bool {
    number_of(name).is_some() || name == DESCRIPTION_FILE
}

impl Sink for Pictures {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let path = path_of(&self.dir, frame.pair.sequence);
        files::write_whole(&path, self.png.encode(&frame.disparity, &self.numbers)?)?;
        match self.waiting.take() {
            Some(waiting) => self.take_over(waiting, &path),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        // Every picture was completed when it was written. A new folder without any says what it is.
        match self.waiting.take() {
            Some(Waiting { description, text, .. }) if !description.spares_earlier() => {
                description.finish_with(text.as_bytes())
            }
            _ => Ok(()),
        }
    }
}
