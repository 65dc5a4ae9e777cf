//! The calibration in a recording of messages.

use std::path::Path;

use crate::commands::Error;
use stereod_core::calibration::CalibrationError;
use stereod_core::calibration::format::{self, KittiCameras, Loaded, ReadOptions, Topics};
use stereod_io::source::recording::Recording;
use stereod_io::source::recording::choice::{Wanted, is_rectified};
use stereod_io::source::recording::messages::CameraInfo;

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
pub fn calibration(path: &Path, wanted: &Wanted, swap: bool) -> Result<Option<Recorded>, Error> {
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
