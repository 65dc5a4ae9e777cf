//! The calibration in a recording of messages.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::calibration::format::{self, Format, KittiCameras, Loaded, ReadOptions};
use crate::commands::Error;
use crate::core::frame::StereoGeometry;
use crate::source::recording::Recording;
use crate::source::recording::choice::{Wanted, is_rectified};
use crate::source::recording::messages::CameraInfo;

/// Returns the calibration in a recording and its origin for messages; `None` if there is none. One that is not
/// usable counts as none, with a warning.
pub fn calibration(
    path: &Path,
    wanted: &Wanted,
    swap: bool,
) -> Result<Option<(String, Loaded)>, Error> {
    let mut recording = Recording::open(path)?;
    let mut views = recording.choose(wanted)?;
    if swap {
        views.reverse();
    }
    match of_views(&mut recording, views, swap) {
        Ok(calibration) => Ok(calibration),
        Err(error) => {
            tracing::warn!(
                "the calibration in the recording is not usable: {error:#}; the images are taken as they are \
                 (--calibration names another one)"
            );
            Ok(None)
        }
    }
}

/// Returns the calibration of these views in a recording and its origin; `None` if there is none. Fails if it is
/// not usable.
pub fn of_views(
    recording: &mut Recording,
    views: [usize; 2],
    swap: bool,
) -> anyhow::Result<Option<(String, Loaded)>> {
    let names = views.map(|view| recording.topics()[view].name.clone());
    if !recording.calibrations.is_empty() {
        let files = recording.calibrations.clone();
        let listed: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let loaded = of_files(files, &names, swap, recording.size)?;
        return Ok(Some((listed.join(" and "), loaded)));
    }
    let are_rectified = views.iter().all(|&view| is_rectified(&recording.topics()[view]));
    let Some([(left, of_left), (right, of_right)]) = recording.camera_infos(views)? else {
        return Ok(None);
    };
    let loaded = match are_rectified {
        true => of_rectified(&of_left, &of_right)?,
        false => of_raw([&left, &right], [&of_left, &of_right])?,
    };
    Ok(Some((format!("{left} and {right}"), loaded)))
}

/// Reads the calibration files of a data set for these cameras.
fn of_files(
    files: Vec<PathBuf>,
    names: &[String; 2],
    swap: bool,
    size: Option<(usize, usize)>,
) -> anyhow::Result<Loaded> {
    let kitti = match names[usize::from(swap)].as_str() {
        "image_0" | "image_00" => Some(KittiCameras::Grey),
        "image_2" | "image_02" => Some(KittiCameras::Colour),
        _ => None,
    };
    Ok(format::read_with(&files, &ReadOptions { kitti, swap, size, ..ReadOptions::default() })?)
}

/// Returns the calibration of rectified images: the projections of both views.
fn of_rectified(left: &CameraInfo, right: &CameraInfo) -> anyhow::Result<Loaded> {
    let (of_left, of_right) = (&left.p, &right.p);
    let focal = of_right[0];
    ensure!(of_left[0] > 0.0 && focal > 0.0, "the focal length in P is not above 0");
    let baseline_m = (of_left[3] - of_right[3]) / focal;
    ensure!(
        baseline_m > 0.0,
        "P of the right camera has no baseline to the left one ({baseline_m} m); are the views exchanged (--swap)?"
    );
    let geometry = StereoGeometry {
        focal_px: of_left[0],
        baseline_m,
        centre_x_px: of_left[2],
        centre_y_px: of_left[6],
        right_centre_x_px: of_right[2],
    };
    ensure!(left.size.0 > 0 && left.size.1 > 0, "the size of the images is 0");
    let whole = |value: f64| value.is_finite();
    ensure!(
        [focal, baseline_m, of_left[2], of_left[6], of_right[2]].into_iter().all(whole),
        "P is not finite"
    );
    Ok(Loaded::of(format::of_rectified(left.size, &geometry), Format::Ros))
}

/// Returns the calibration of raw images.
fn of_raw(names: [&str; 2], infos: [&CameraInfo; 2]) -> anyhow::Result<Loaded> {
    let texts = infos.map(CameraInfo::to_yaml);
    let files = [(names[0], texts[0].as_str()), (names[1], texts[1].as_str())];
    format::parse(&files, &ReadOptions::default()).context("CameraInfo")
}
