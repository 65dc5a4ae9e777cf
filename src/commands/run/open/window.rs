//! The window of a run.

use std::sync::Arc;
use std::time::Duration;

use super::outputs;
use crate::commands::Error;
use crate::commands::prepare::rig::Rig;
use crate::settings::{Loaded, Settings, WindowMode};
use crate::window::{CameraDesk, Remote, Span, Window, WindowOptions};
use stereod_core::camera::CameraInput;
use stereod_io::source::SourceInfo;
use stereod_io::source::v4l2::Adjuster;

/// Opens a window if there is a display and one is wanted.
pub fn connect_window(mode: WindowMode) -> Result<Option<Window>, Error> {
    if mode == WindowMode::Off {
        return Ok(None);
    }
    match Window::connect() {
        Ok(window) => Ok(Some(window)),
        Err(error) if mode == WindowMode::On => {
            Err(error.context("cannot open a window; use --headless to run without one").into())
        }
        Err(error) => {
            tracing::info!("no window, running headless: {error:#}");
            Ok(None)
        }
    }
}

/// Returns the times of the window's timeline, or why the source cannot be moved through.
pub fn span_of(info: &SourceInfo, settings: &Settings, is_paced: bool) -> Result<Span, String> {
    let rate = info.rate.filter(|_| info.seekable && !info.live);
    let rate = rate.ok_or("only recorded videos, images and messages have a timeline")?;
    if outputs::writes_frames(settings) || settings.output.stream().is_some() {
        return Err(
            "the timeline is off while frames are written or sent: their times would jump".into()
        );
    }
    let by_number = info.pairs.map(|pairs| Duration::from_secs_f64(pairs as f64 / rate));
    let length = info.length.or(by_number).ok_or("the recording's length is unknown")?;
    let period = Duration::from_secs_f64(rate.recip());
    Ok(Span { begin: info.begin, length, period, is_paced })
}

/// Starts the threads that adjust the cameras and report to the window; `None` without cameras.
pub fn camera_desk(inputs: &[CameraInput], remote: &Remote) -> std::io::Result<Option<CameraDesk>> {
    if inputs.is_empty() {
        return Ok(None);
    }
    let start = |(place, input): (usize, &CameraInput)| {
        let remote = remote.clone();
        Adjuster::start(&input.name, move |report| remote.camera(place, report))
    };
    let adjusters = inputs.iter().enumerate().map(start).collect::<std::io::Result<Vec<_>>>()?;
    let watched = Arc::new(adjusters);
    let set = watched.clone();
    Ok(Some(CameraDesk {
        inputs: inputs.to_vec(),
        watch: Arc::new(move |is_watched| watched.iter().for_each(|one| one.watch(is_watched))),
        set: Arc::new(move |place, number, values| {
            set.get(place).into_iter().for_each(|one| one.set(number, values));
        }),
    }))
}

pub fn window_options(loaded: &Loaded, info: &SourceInfo, rig: &Rig) -> WindowOptions {
    let (settings, range) = (&loaded.settings, loaded.params.range);
    let title = format!("stereod: {}", info.description);
    let picture = (rig.pairs.size.0 as u32, rig.pairs.size.1 as u32);
    let mut options = WindowOptions::new(title, picture, range);
    options.colour_range = settings.colour_range(range, rig.pairs.geometry.as_ref());
    options.clouds = settings.output.clouds();
    options.colour_map = settings.colour.map;
    options.view = settings.window.view;
    options.snapshot_dir = (&settings.window.snapshots).into();
    options.settings_file = settings.window.settings();
    options.full_screen = settings.window.full_screen;
    options.records = outputs::writes_frames(settings);
    options
}
