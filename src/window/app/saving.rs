//! Files written at the press of a key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use image::RgbaImage;

use super::App;
use crate::window::remote::Wake;
use stereod_core::frame::{DisparityMap, DisparityRange};
use stereod_core::picture::{cloud, png};
use stereod_core::{files, thread};
use stereod_io::sink::still::Still;

/// End of the message that files were saved. While it is on the screen, they can be deleted.
const UNDO: &str = "; u deletes it again";

impl App {
    /// Draws the image now; a thread waits for it and writes the files.
    pub(super) fn snapshot(&mut self) {
        let scene = self.scene();
        let (Some(screen), Some(frame)) = (&mut self.shell.screen, &self.frame) else {
            self.notify(Err("there is no image yet".into()));
            return;
        };
        let (readback, device) = match screen.picture(&scene) {
            Ok(picture) => picture,
            Err(error) => return self.notify(Err(format!("no snapshot: {error:#}"))),
        };
        let folder = &self.shell.options.snapshot_dir;
        let paths = SnapshotPaths::new(folder, SystemTime::now(), frame.pair.sequence);
        let frame = frame.clone();
        let range = frame.disparity.range();
        self.saved = vec![paths.disparity.clone(), paths.view.clone()];
        self.save("snapshot", move || {
            let view = readback.wait(&device)?;
            write(&paths, &frame.disparity, range, &view)?;
            Ok(format!("saved {paths}"))
        });
    }

    pub(super) fn point_cloud(&mut self) {
        let Some(frame) = &self.frame else {
            return self.notify(Err("there is no image yet".into()));
        };
        let Some(geometry) = frame.geometry else {
            let cure = "start with --calibration, or with --focal and --baseline";
            return self.notify(Err(format!("no point cloud without a calibration: {cure}")));
        };
        let folder = &self.shell.options.snapshot_dir;
        let path = cloud_path(folder, SystemTime::now(), frame.pair.sequence);
        let (frame, options) = (frame.clone(), self.shell.options.clouds);
        self.saved = vec![path.clone()];
        self.save("point cloud", move || {
            let colour = |x, y| frame.pair.left.rgb_at(x, y);
            let points = cloud::write_cloud(
                &path,
                &frame.disparity,
                frame.confidence.as_ref(),
                &geometry,
                options,
                colour,
            )?;
            Ok(format!("saved {} ({points} points)", path.display()))
        });
    }

    /// Deletes the files of the last snapshot or point cloud, which nobody had before it.
    pub(super) fn undo(&mut self) {
        if self.writers.iter().any(|writer| !writer.is_finished()) {
            return self.notify(Err("the files are still being written; press u again".into()));
        }
        let is_shown = self
            .notice
            .as_ref()
            .is_some_and(|notice| notice.until > Instant::now() && notice.text.ends_with(UNDO));
        let saved = if is_shown { std::mem::take(&mut self.saved) } else { Vec::new() };
        let deleted = saved.iter().filter(|path| std::fs::remove_file(path).is_ok());
        let names: Vec<_> = deleted.map(|path| path.display().to_string()).collect();
        self.notify(match names.is_empty() {
            true => Err("nothing was saved in the last seconds".into()),
            false => Ok(format!("deleted {}", names.join(" and "))),
        });
    }

    fn save(
        &mut self,
        what: &'static str,
        write: impl FnOnce() -> Result<String> + Send + 'static,
    ) {
        let remote = self.shell.remote.clone();
        let write = move || {
            let saved = write().map_err(|error| format!("no {what}: {error:#}"));
            match &saved {
                Ok(text) => tracing::info!("{text}"),
                Err(text) => tracing::error!("{text}"),
            }
            remote.wake(Wake::Saved(saved.map(|text| text + UNDO)));
        };
        let remote = self.shell.remote.clone();
        let failed = move |broken| remote.wake(Wake::Saved(Err(format!("no {what}: {broken}"))));
        match thread::spawn("snapshot", write, failed) {
            Ok(writer) => self.writers.push(writer),
            Err(error) => self.notify(Err(format!("no {what}: {error}"))),
        }
        self.writers.retain(|writer| !writer.is_finished());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotPaths {
    pub(crate) disparity: PathBuf,
    /// The content of the window without the overlay.
    pub(crate) view: PathBuf,
}

impl SnapshotPaths {
    /// Names the files of a snapshot of pair number `sequence` taken now.
    pub(crate) fn new(folder: &Path, now: SystemTime, sequence: u64) -> Self {
        let stem = format!("stereod-{}-{sequence:06}", stamp(now));
        Self {
            disparity: folder.join(format!("{stem}-disparity.png")),
            view: folder.join(format!("{stem}-view.png")),
        }
    }
}

impl fmt::Display for SnapshotPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and -view.png", self.disparity.display())
    }
}

/// Names a point cloud of pair number `sequence` taken now.
pub(crate) fn cloud_path(folder: &Path, now: SystemTime, sequence: u64) -> PathBuf {
    folder.join(format!("stereod-{}-{sequence:06}.ply", stamp(now)))
}

/// Writes both files: the disparity of a run with candidates in `range`, and the view.
pub(crate) fn write(
    paths: &SnapshotPaths,
    disparity: &DisparityMap,
    range: DisparityRange,
    view: &RgbaImage,
) -> Result<()> {
    Still::of(disparity, range).write(&paths.disparity)?;
    let rgb: Vec<u8> =
        view.pixels().flat_map(|pixel| [pixel.0[0], pixel.0[1], pixel.0[2]]).collect();
    let file = png::encode_rgb(&rgb, view.width() as usize, view.height() as usize)?;
    files::write_whole(&paths.view, &file)
}

/// Returns a moment in UTC with milliseconds, fit for a file name: 20260131-235959-042.
fn stamp(now: SystemTime) -> String {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since.as_secs() % 86400;
    let (year, month, day) = files::date(now);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millisecond = since.subsec_millis();
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{millisecond:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_utc() {
        let at = |seconds: u64, millis: u64| {
            stamp(SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis))
        };
        // date -u -d @951782399 +%Y%m%d-%H%M%S, and so on.
        assert_eq!(at(0, 0), "19700101-000000-000");
        assert_eq!(at(951_782_399, 7), "20000228-235959-007");
        assert_eq!(at(951_782_400, 0), "20000229-000000-000");
        assert_eq!(at(1_767_225_599, 999), "20251231-235959-999");
        assert_eq!(at(1_767_225_600, 0), "20260101-000000-000");
    }
}
