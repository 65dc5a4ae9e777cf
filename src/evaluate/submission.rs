//! Results as the uploads of benchmarks take them: KITTI 2012 and 2015, Middlebury version 3, ETH3D's two-view
//! sets.
//!
//! Sources: the development kits of KITTI, <https://vision.middlebury.edu/stereo/submit3/upload-format.html> and
//! <https://www.eth3d.net/documentation#result-submission>.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::item::Item;
use super::scoring::Values;
use stereod_core::files;
use stereod_core::matching::{FillRule, Params};
use stereod_core::picture::png::encode_grey_16;
use stereod_io::sink::still::encode_pfm;

/// A benchmark that takes uploads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Benchmark {
    /// KITTI 2012 and 2015, by the names of the folders
    Kitti,
    /// Middlebury version 3
    Middlebury,
    /// Two-view sets of ETH3D
    Eth3d,
}

const METHOD: &str = "stereod";

/// Stored value of one pixel of disparity in KITTI's images.
const KITTI_SCALE: f32 = 256.0;

/// Files of a pair's result.
#[derive(Debug, PartialEq)]
pub struct Entry {
    benchmark: Benchmark,
    map: PathBuf,
    /// Text file with the time; KITTI asks for it on its page.
    time: Option<PathBuf>,
}

impl Entry {
    /// Returns the entry of a pair in a folder. `is_dense` says whether the maps have no unknown pixels.
    pub fn of(
        benchmark: Benchmark,
        item: &Item,
        folder: &Path,
        is_dense: bool,
    ) -> anyhow::Result<Self> {
        let left = &item.eyes[0];
        let directory = fs::canonicalize(files::folder_of(left))
            .with_context(|| format!("cannot read {}", left.display()))?;
        let name_of = |path: Option<&Path>| {
            path.and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or_default().to_owned()
        };
        let (last, parent) = (name_of(Some(&directory)), name_of(directory.parent()));
        let refused = |layout| format!("{} is not an image of {layout}", left.display());
        let is_two_view = left.file_stem() == Some(OsStr::new("im0"));
        let (map, time) = match benchmark {
            Benchmark::Kitti => {
                let file = name_of(Some(left));
                match last.as_str() {
                    "image_2" => (format!("disp_0/{file}"), None),
                    "image_0" | "colored_0" => (file, None),
                    _ => bail!(refused("KITTI, such as testing/image_2/000000_10.png")),
                }
            }
            Benchmark::Middlebury => {
                let is_split = ["training", "test"].iter().any(|split| parent.starts_with(split));
                if !is_two_view || !is_split {
                    bail!(refused("Middlebury version 3, such as MiddEval3/testF/Crusade/im0.png"));
                }
                let sparse = if is_dense { "" } else { "_s" };
                let folder = format!("{parent}/{last}");
                (
                    format!("{folder}/disp0{METHOD}{sparse}.pfm"),
                    Some(format!("{folder}/time{METHOD}.txt")),
                )
            }
            Benchmark::Eth3d => {
                if !is_two_view {
                    bail!(refused("ETH3D, such as two_view_test/lakeside_1l/im0.png"));
                }
                let scene = format!("low_res_two_view/{last}");
                (format!("{scene}.pfm"), Some(format!("{scene}.txt")))
            }
        };
        Ok(Self { benchmark, map: folder.join(map), time: time.map(|time| folder.join(time)) })
    }

    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.map), self.time.as_ref()].into_iter().flatten().map(PathBuf::as_path)
    }

    pub fn write(&self, map: &Values, time_ms: f64) -> anyhow::Result<()> {
        let folder = files::folder_of(&self.map);
        fs::create_dir_all(folder).map_err(|error| files::explain(folder, &error))?;
        let (width, height) = map.size();
        let pixels = (0..width * height).map(|pixel| map.at(pixel).map(|value| value as f32));
        let file = match self.benchmark {
            Benchmark::Kitti => {
                let stored: Vec<u16> = pixels.map(stored).collect();
                encode_grey_16(&stored, width, height)?
            }
            Benchmark::Middlebury | Benchmark::Eth3d => encode_pfm(
                width,
                &pixels.map(|value| value.unwrap_or(f32::INFINITY)).collect::<Vec<_>>(),
            ),
        };
        files::write_whole(&self.map, &file)?;
        let Some(time) = &self.time else { return Ok(()) };
        let seconds = time_ms / 1e3;
        let text = match self.benchmark {
            Benchmark::Eth3d => format!("runtime {seconds:.4}\n"),
            _ => format!("{seconds:.4}\n"),
        };
        files::write_whole(time, text.as_bytes())
    }
}

/// Reports whether maps of these parameters have, as a rule, no unknown pixels.
pub fn is_dense(params: &Params) -> bool {
    params.fill.is_some_and(|fill| {
        matches!(fill.rule, FillRule::Row | FillRule::Rays | FillRule::NetworkOrRays)
    })
}

/// Returns a disparity as KITTI stores it: 0 is unknown, so that the smallest known value is 1.
fn stored(disparity: Option<f32>) -> u16 {
    let level = disparity.map(|disparity| (disparity * KITTI_SCALE).round().max(1.0));
    level.filter(|&level| level <= f32::from(u16::MAX)).map_or(0, |level| level as u16)
}

#[cfg(test)]
mod tests {
    use super::super::item::Areas;
    use super::*;

    fn entry(benchmark: Benchmark, left: &str, is_dense: bool) -> anyhow::Result<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(left);
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        let item = Item {
            eyes: [left.clone(), left],
            truth: Areas::default(),
            disparities: None,
            described_by: Vec::new(),
        };
        let entry = Entry::of(benchmark, &item, Path::new("out"), is_dense)?;
        Ok(entry.files().map(|file| file.display().to_string()).collect())
    }

    #[test]
    fn files_are_named_as_the_benchmarks_ask() {
        let kitti = |left: &str| entry(Benchmark::Kitti, left, false).unwrap();
        assert_eq!(kitti("testing/image_2/000007_10.png"), ["out/disp_0/000007_10.png"]);
        for folder in ["image_0", "colored_0"] {
            assert_eq!(kitti(&format!("{folder}/000007_10.png")), ["out/000007_10.png"]);
        }
        let left = "MiddEval3/testQ/Crusade/im0.png";
        assert_eq!(
            entry(Benchmark::Middlebury, left, true).unwrap(),
            ["out/testQ/Crusade/disp0stereod.pfm", "out/testQ/Crusade/timestereod.txt"]
        );
        assert_eq!(
            entry(Benchmark::Middlebury, left, false).unwrap()[0],
            "out/testQ/Crusade/disp0stereod_s.pfm"
        );
        assert_eq!(
            entry(Benchmark::Eth3d, "two_view_test/lakeside_1l/im0.png", true).unwrap(),
            ["out/low_res_two_view/lakeside_1l.pfm", "out/low_res_two_view/lakeside_1l.txt"]
        );
        for (benchmark, left) in [
            (Benchmark::Kitti, "testing/image_3/000007_10.png"),
            (Benchmark::Middlebury, "two_view_test/lakeside_1l/im0.png"),
            (Benchmark::Middlebury, "testQ/Crusade/view1.png"),
            (Benchmark::Eth3d, "image_2/000007_10.png"),
        ] {
            let error = entry(benchmark, left, true).unwrap_err().to_string();
            assert!(error.contains("is not an image of"), "{error}");
        }
    }

    #[test]
    fn kittis_numbers_keep_0_for_unknown() {
        let of =
            [None, Some(0.0), Some(1.0 / 16.0), Some(10.5), Some(255.99), Some(256.0)].map(stored);
        assert_eq!(of, [0, 1, 16, 2688, 65533, 0]);
    }
}
