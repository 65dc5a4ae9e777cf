//! The two cameras, from the settings or the calibration in a recording of messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use nalgebra::Matrix3;

use crate::run::Error;
use crate::settings;
use stereod_calibration::format::{self, Format, KittiCameras, Loaded, ReadOptions, Topics};
use stereod_calibration::{
    Aligner, CalibrationError, Camera, Fit, Rectification, StereoCalibration,
};
use stereod_core::engine::PairSpec;
use stereod_core::files;
use stereod_core::frame::{Eye, StereoGeometry};
use stereod_core::rectify::RectifyMap;
use stereod_io::sink::video::{RectifiedTags, read_rectified_tags};
use stereod_io::source::recording::Recording;
use stereod_io::source::recording::choice::{Wanted, is_rectified};
use stereod_io::source::recording::messages::CameraInfo;
use stereod_io::source::spec::{SourceSpec, StreamSpec};

/// Cameras of the settings, before the size of their images is known.
pub struct Cameras<'a> {
    settings: &'a settings::Calibration,
    files: Vec<PathBuf>,
    /// Calibration of the files. `None` if there are none, or if they lack the size of the images;
    /// then they are read again once it is known.
    loaded: Option<Loaded>,
    options: ReadOptions,
    /// True if one image holds both views.
    are_packed: bool,
    /// Names of the inputs if these are videos written by `stereod rectify`. Their tags are the
    /// calibration unless a file is given.
    rectified: Option<String>,
    recorded: Option<Recorded>,
    /// Cameras of the demo scene, unless others are given.
    demo: Option<StereoGeometry>,
    /// The left camera and a third one, if depth is aligned to that.
    third: Option<StereoCalibration>,
}

#[derive(Clone, Debug)]
pub struct Rig {
    pub pairs: PairSpec,
    /// Set if a calibration was given, by which the images are or come rectified.
    pub calibrated: bool,
    /// The calibration of raw images with the rectification in use; `None` if they are not rectified here.
    pub calibration: Option<StereoCalibration>,
    /// Turns maps into the depth that a third camera sees, if one is given.
    pub aligner: Option<Arc<Aligner>>,
}

impl<'a> Cameras<'a> {
    /// Reads the calibration files, so that mistakes in them are found at the start, and the tags
    /// of the inputs.
    pub fn read(
        loaded: &'a settings::Settings,
        inputs: Option<&SourceSpec>,
    ) -> Result<Self, Error> {
        let checked = inputs.map_or(Ok(()), |inputs| inputs.check(loaded.source.half));
        checked.map_err(Error::Usage)?;
        let settings = &loaded.calibration;
        let files = match settings.file.as_str() {
            "" => Vec::new(),
            list => format::file_list(list).map_err(wrong)?,
        };
        let known = settings.focal_and_baseline().is_some();
        let kitti = settings.kitti_cameras.or_else(|| kitti_cameras(inputs?));
        if !known && !settings.centre_px.is_empty() {
            return Err(Error::usage("--centre goes with --focal and --baseline"));
        }
        let tags = match inputs {
            Some(inputs) if !known => rectified_tags(inputs, loaded.source.swap)?,
            _ => None,
        };
        let mut cameras = Self {
            settings,
            files,
            loaded: None,
            options: ReadOptions { kitti, ..ReadOptions::default() },
            are_packed: inputs.is_some_and(SourceSpec::is_one_stream),
            rectified: tags.as_ref().map(|(names, _)| names.clone()),
            recorded: None,
            demo: None,
            third: third(&settings.align)?,
        };
        if cameras.files.is_empty() {
            let tags = tags.map(|(_, tags)| tags);
            cameras.find_without_files(loaded, inputs.filter(|_| !known), tags)?;
            return Ok(cameras);
        }
        if known {
            return Err(Error::usage(
                "a calibration file says everything; leave out focal_px and baseline_m of \
                 [calibration], which are for pictures that come rectified",
            ));
        }
        cameras.loaded = match format::read_with(&cameras.files, &cameras.options) {
            Ok(loaded) => Some(loaded),
            Err(error) if error.lacks_size() => None,
            Err(error) => return Err(wrong(error)),
        };
        Ok(cameras)
    }

    /// Finds the cameras of inputs without calibration files: of the demo scene, by their tags, or in the
    /// recording. `inputs`: `None` if the user names the focal length and the baseline.
    fn find_without_files(
        &mut self,
        loaded: &settings::Settings,
        inputs: Option<&SourceSpec>,
        tags: Option<RectifiedTags>,
    ) -> Result<(), Error> {
        if let Some(SourceSpec::Demo) = inputs {
            let range = loaded.matching.params().map_err(anyhow::Error::new)?.range;
            self.demo = Some(loaded.demo.options(range).geometry());
        }
        let settings::Calibration { focal_px, baseline_m, .. } = self.settings;
        let known = self.settings.focal_and_baseline().is_some();
        if !known && (*focal_px > 0.0 || *baseline_m > 0.0) {
            return Err(Error::usage("depth needs both --focal and --baseline"));
        }
        self.loaded = tags.map(|RectifiedTags { size, geometry, .. }| {
            Loaded::of(format::of_rectified(size, &geometry), Format::Own)
        });
        if let Some(SourceSpec::Recording { path, topics }) = inputs {
            self.recorded = calibration_in(path, topics, loaded.source.swap)?;
            self.loaded = self.recorded.as_ref().map(|recorded| recorded.loaded.clone());
        }
        if loaded.output.depth {
            self.required_by("--depth")?;
        }
        if loaded.output.has_depth_limits() {
            self.required_by("--near or --far")?;
        }
        Ok(())
    }

    pub fn have_calibration(&self) -> bool {
        !self.files.is_empty() || self.recorded.is_some()
    }

    pub fn required_by_aligned(&self) -> Result<(), Error> {
        self.required_by("--aligned")?;
        match self.third {
            Some(_) => Ok(()),
            None => Err(Error::usage(
                "--aligned needs to know the third camera: give --align FILE, a calibration of the left \
                 camera and that one",
            )),
        }
    }

    /// Checks that depth can be computed, which `flag` needs.
    pub fn required_by(&self, flag: &str) -> Result<(), Error> {
        if self.are_known() {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{flag} needs to know the cameras: give --calibration FILE, or --focal and --baseline for \
             pictures that come rectified"
        )))
    }

    pub fn are_known(&self) -> bool {
        !self.files.is_empty()
            || self.settings.focal_and_baseline().is_some()
            || self.rectified.is_some()
            || self.recorded.is_some()
            || self.demo.is_some()
    }

    /// Returns the rig for left and right images of these sizes in pixels.
    pub fn for_pictures(&self, sizes: [(usize, usize); 2]) -> Result<Rig, Error> {
        let [size, other] = sizes;
        let alpha = self.settings.alpha.filter(|_| self.have_calibration());
        if alpha.is_none() && self.settings.alpha.is_some() {
            tracing::warn!(
                "calibration.alpha is ignored: no calibration says how to rectify these pictures"
            );
        }
        if self.files.is_empty() && self.loaded.is_none() {
            if size != other {
                return Err(Error::Failed(anyhow::anyhow!(
                    "the views differ in size: the left one is {}x{}, the right one {}x{}; give --calibration \
                     FILE with cameras of these sizes, or scale or crop one of them",
                    size.0,
                    size.1,
                    other.0,
                    other.1
                )));
            }
            let geometry = self.by_numbers(size)?.or(self.demo);
            let pairs = PairSpec { size, rectifier: None, geometry };
            let aligner = self.aligner(geometry, &Matrix3::identity(), None)?;
            return Ok(Rig { pairs, calibrated: false, calibration: None, aligner });
        }
        let (calibration, file) = self.calibration_for(sizes)?;
        if alpha.is_none() && calibration.comes_rectified() {
            let geometry = calibration.rectification.as_ref().map(Rectification::geometry);
            if let Some(StereoGeometry { focal_px, baseline_m, .. }) = geometry {
                let baseline = baseline_m * 1e3;
                tracing::info!(
                    "the pictures come rectified: focal length {focal_px:.1} px, baseline \
                     {baseline:.1} mm"
                );
            }
            let pairs = PairSpec { size, rectifier: None, geometry };
            let aligner = self.aligner(geometry, &Matrix3::identity(), Some(&calibration.left))?;
            return Ok(Rig { pairs, calibrated: true, calibration: None, aligner });
        }
        if let Some(names) = &self.rectified {
            return Err(Error::usage(format!(
                "{file} is the calibration of raw pictures, but `stereod rectify` has rectified {names} \
                 already: leave it out, or give the rectified.toml of that folder"
            )));
        }
        let named = || file.clone();
        let rectification =
            calibration.rectified(alpha).with_context(named).map_err(Error::Usage)?;
        let rotation = rectification.left.rotation;
        let calibration = StereoCalibration { rectification: Some(rectification), ..calibration };
        let rectifier = calibration.rectifier(None).with_context(named).map_err(Error::Usage)?;
        let geometry = rectifier.geometry();
        let aligner = self.aligner(Some(geometry), &rotation, Some(&calibration.left))?;
        tracing::info!(
            "rectifying: focal length {:.1} px, baseline {:.1} mm",
            geometry.focal_px,
            geometry.baseline_m * 1e3
        );
        let pairs = PairSpec::raw(Arc::new(rectifier));
        Ok(Rig { pairs, calibrated: true, calibration: Some(calibration), aligner })
    }

    /// Returns the cameras by the focal length and the baseline of the settings.
    fn by_numbers(&self, (width, height): (usize, usize)) -> Result<Option<StereoGeometry>, Error> {
        let Some((focal_px, baseline_m)) = self.settings.focal_and_baseline() else {
            return Ok(None);
        };
        if focal_px < 0.1 * width.min(height) as f64 {
            return Err(Error::usage(format!(
                "a focal length of {focal_px} px is of no camera of {width}x{height}; give --focal in pixels: \
                 divide one in mm by the size of a pixel, multiply one relative to the width by {width}"
            )));
        }
        if baseline_m > 10.0 {
            tracing::warn!(
                "a baseline of {baseline_m} m is not plausible; --baseline is in metres: if it is {baseline_m} mm, \
                 give --baseline {}",
                baseline_m / 1e3
            );
        }
        let middle = [width, height].map(|side| 0.5 * (side as f64 - 1.0));
        let [centre_x_px, centre_y_px] = self.settings.centre().unwrap_or(middle);
        let right_centre_x_px = centre_x_px;
        Ok(Some(StereoGeometry {
            focal_px,
            baseline_m,
            centre_x_px,
            centre_y_px,
            right_centre_x_px,
        }))
    }

    /// Returns the calibration for images of these sizes, and its origin. Logs both.
    pub fn calibration_for(
        &self,
        sizes: [(usize, usize); 2],
    ) -> Result<(StereoCalibration, String), Error> {
        let size = sizes[0];
        let by_tags = self.files.is_empty();
        let file = match (&self.rectified, &self.recorded) {
            (Some(names), _) if by_tags => format!("the tags of {names}"),
            (_, Some(recorded)) => recorded.origin.clone(),
            _ => self.settings.file.clone(),
        };
        let loaded = match (&self.loaded, &self.recorded) {
            (_, Some(recorded)) => recorded.for_size(size).map_err(wrong)?,
            (Some(loaded), _) if by_tags || !loaded.by_size => loaded.clone(),
            _ => {
                let options = ReadOptions { size: Some(size), ..self.options };
                format::read_with(&self.files, &options).map_err(wrong)?
            }
        };
        let range = loaded.disparities.map(|disparities| {
            format!("; by its ndisp, {disparities} disparities hold the whole scene")
        });
        let format = if by_tags { String::new() } else { format!(" ({})", loaded.format) };
        tracing::info!("calibration: {file}{format}{}", range.unwrap_or_default());
        for note in &loaded.notes {
            tracing::warn!("{note}");
        }
        let adapted = loaded.calibration.for_views(sizes, self.are_packed);
        let (calibration, fits) = adapted.map_err(wrong)?;
        let are_alike = fits[0] == fits[1];
        for (fit, eye) in fits.into_iter().zip(Eye::BOTH).take(if are_alike { 1 } else { 2 }) {
            let of = if are_alike { String::new() } else { format!(" ({eye} view)") };
            match fit {
                Fit::Exact => {}
                _ if fit.is_assumed() => tracing::warn!("{file}{of}: {fit}"),
                _ => tracing::info!("{file}{of}: {fit}"),
            }
        }
        Ok((calibration, file))
    }

    /// Returns the aligner to the third camera, if there is one. `rotation` leads from the frame of
    /// the left camera, which is `left` if that is known, to the rectified one.
    fn aligner(
        &self,
        geometry: Option<StereoGeometry>,
        rotation: &Matrix3<f64>,
        left: Option<&Camera>,
    ) -> Result<Option<Arc<Aligner>>, Error> {
        let Some((third, geometry)) = self.third.as_ref().zip(geometry) else { return Ok(None) };
        let field = |camera: &Camera| camera.focal[0] / camera.width as f64;
        if let Some(left) = left
            && (field(left) / field(&third.left) - 1.0).abs() > 0.02
        {
            tracing::warn!(
                "{}: its left camera has a focal length of {:.3} times the width of its pictures, that of the \
                 pair {:.3} times; if they are two cameras, aligned depth is wrong",
                self.settings.align,
                field(&third.left),
                field(left)
            );
        }
        let aligner = Aligner::new(geometry, rotation, third);
        Ok(Some(Arc::new(aligner.context("--align").map_err(Error::Usage)?)))
    }
}

fn third(list: &str) -> Result<Option<StereoCalibration>, Error> {
    if list.is_empty() {
        return Ok(None);
    }
    let options = ReadOptions { third: true, ..ReadOptions::default() };
    let read = format::file_list(list).and_then(|files| format::read_with(&files, &options));
    let loaded =
        read.map_err(|error| Error::Usage(anyhow::Error::new(error).context("--align")))?;
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
    Ok(Some(loaded.calibration))
}

impl Rig {
    /// Returns the disparity in pixels of a point at infinity; 0 if the cameras are not known.
    pub fn farthest_px(&self) -> f64 {
        self.pairs
            .geometry
            .map_or(0.0, |geometry| geometry.centre_x_px - geometry.right_centre_x_px)
    }

    /// Returns by how many rows a far point at the centre would lie lower in the right image if the views were
    /// exchanged, because each would be rectified with the map of the other; `None` without a map.
    pub fn rows_if_exchanged(&self) -> Option<f64> {
        let rectifier = self.pairs.rectifier.as_ref()?;
        let (width, height) = self.pairs.size;
        let [left, right] = Eye::BOTH.map(|eye| rectifier.map(eye));
        let at =
            |shift: f64| ((width as f64 / 2.0 - shift).clamp(0.0, (width - 1) as f64)) as usize;
        let in_left = place_of(left, right.nearest(at(self.farthest_px()), height / 2)?)?;
        let in_right = place_of(right, left.nearest(at(0.0), height / 2)?)?;
        Some(in_right[1] - in_left[1])
    }
}

/// Returns the place in a rectified image that shows this pixel of the camera.
fn place_of(map: &RectifyMap, (u, v): (usize, usize)) -> Option<[f64; 2]> {
    let (width, height) = map.size();
    let mut place = [width as f64 / 2.0, height as f64 / 2.0];
    // A map is nearly a shift, so each step leaves a fraction of the distance.
    for _ in 0..20 {
        let [x, y] = place.map(|at| at.round().max(0.0) as usize);
        let (seen_u, seen_v) = map.nearest(x.min(width - 1), y.min(height - 1))?;
        place[0] += u as f64 - seen_u as f64;
        place[1] += v as f64 - seen_v as f64;
    }
    Some(place)
}

/// Returns the tags of both views if `stereod rectify` wrote them, and the names of the videos.
fn rectified_tags(
    inputs: &SourceSpec,
    swap: bool,
) -> Result<Option<(String, RectifiedTags)>, Error> {
    let SourceSpec::Two { left: StreamSpec::File(left), right: StreamSpec::File(right) } = inputs
    else {
        return Ok(None);
    };
    let (left, right) = if swap { (right, left) } else { (left, right) };
    let read = |path: &Path| {
        // Reading from a pipe would remove data.
        let is_video = path.is_file() && files::extension(path) == "mkv";
        is_video.then(|| read_rectified_tags(path)).flatten()
    };
    let (Some(of_left), Some(of_right)) = (read(left), read(right)) else { return Ok(None) };
    let names = format!("{} and {}", left.display(), right.display());
    if (of_left.eye, of_right.eye) != (Eye::Left, Eye::Right) {
        return Err(Error::usage(format!(
            "by their tags, {names} are the {} and the {} view: exchange the two inputs",
            of_left.eye, of_right.eye
        )));
    }
    if (of_left.size, of_left.geometry) != (of_right.size, of_right.geometry) {
        tracing::warn!(
            "by their tags, {names} are of different cameras; depth needs --calibration"
        );
        return Ok(None);
    }
    Ok(Some((names, of_left)))
}

/// Returns the cameras of KITTI by the names of the images' folders: `image_0` and `image_00` are
/// grey, `image_2` and `image_02` coloured.
fn kitti_cameras(inputs: &SourceSpec) -> Option<KittiCameras> {
    let (StreamSpec::File(path) | StreamSpec::Pictures(path)) = inputs.streams().next()? else {
        return None;
    };
    path.parent()?.components().rev().find_map(|folder| match folder.as_os_str().to_str()? {
        "image_0" | "image_1" | "image_00" | "image_01" => Some(KittiCameras::Grey),
        "image_2" | "image_3" | "image_02" | "image_03" => Some(KittiCameras::Colour),
        _ => None,
    })
}

fn wrong(error: CalibrationError) -> Error {
    Error::Usage(error.into())
}

pub struct Recorded {
    /// Its files or topics, for messages.
    pub origin: String,
    /// The calibration for images of any size.
    pub loaded: Loaded,
    /// Names and texts of the messages; empty if the calibration is in files.
    texts: Vec<(String, String)>,
    options: ReadOptions,
    notes: Vec<String>,
}

impl Recorded {
    pub fn for_size(&self, size: (usize, usize)) -> Result<Loaded, CalibrationError> {
        let mut loaded = match self.texts.is_empty() || !self.loaded.by_size {
            true => self.loaded.clone(),
            false => parse(&self.texts, &ReadOptions { size: Some(size), ..self.options })?,
        };
        loaded.notes.extend(self.notes.clone());
        Ok(loaded)
    }
}

/// Returns the calibration in a recording; `None` if there is none. One that is not usable counts as none, with a
/// warning.
fn calibration_in(path: &Path, wanted: &Wanted, swap: bool) -> Result<Option<Recorded>, Error> {
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

/// Returns the calibration of these views in a recording; `None` if there is none. Fails if it is not usable.
pub fn of_views(
    recording: &mut Recording,
    views: [usize; 2],
    swap: bool,
) -> anyhow::Result<Option<Recorded>> {
    let files = recording.calibrations.clone();
    if !files.is_empty() {
        let kitti = match recording.topics()[views[usize::from(swap)]].name.as_str() {
            "image_0" | "image_00" => Some(KittiCameras::Grey),
            "image_2" | "image_02" => Some(KittiCameras::Colour),
            _ => None,
        };
        let options = ReadOptions { kitti, swap, size: recording.size, ..ReadOptions::default() };
        let loaded = format::read_with(&files, &options)?;
        let listed: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let (origin, texts, notes) = (listed.join(" and "), vec![], vec![]);
        return Ok(Some(Recorded { origin, loaded, texts, options, notes }));
    }
    let are_rectified = views.iter().all(|&view| is_rectified(&recording.topics()[view]));
    let topics = Some(if are_rectified { Topics::Rectified } else { Topics::Raw });
    let options = ReadOptions { topics, ..ReadOptions::default() };
    let found = recording.camera_infos(views, |names, infos| {
        let texts: Vec<_> = names.iter().cloned().zip(infos.map(CameraInfo::to_yaml)).collect();
        Ok((parse(&texts, &options)?, texts))
    })?;
    Ok(found.map(|found| {
        let (loaded, texts) = found.calibration;
        let reason = found.flaw.map_or(String::new(), |flaw| format!(" ({flaw:#})"));
        let note = |(name, before): (&String, u64)| {
            let number = before + 1;
            format!("{name}: message {number} is the first usable one; those before it are left out{reason}")
        };
        let [left, right] = &found.names;
        let late = found.names.iter().zip(found.before).filter(|(_, before)| *before > 0);
        let notes = late.map(note).collect();
        Recorded { origin: format!("{left} and {right}"), loaded, texts, options, notes }
    }))
}

fn parse(texts: &[(String, String)], options: &ReadOptions) -> Result<Loaded, CalibrationError> {
    let files: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    format::parse(&files, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_tell_the_cameras_of_kitti() {
        let of = |left: &str| kitti_cameras(&SourceSpec::two(left, "other"));
        for left in ["00/image_0/000000.png", "00/image_0/%06d.png", "d/image_00/data/*.png"] {
            assert_eq!(of(left), Some(KittiCameras::Grey), "{left}");
        }
        assert_eq!(of("training/image_2/000002_10.png"), Some(KittiCameras::Colour));
        // The name of the image is not that of a folder.
        for left in ["left.mp4", "image_0", "rtsp://host/image_0/1"] {
            assert_eq!(of(left), None, "{left}");
        }
    }
}
