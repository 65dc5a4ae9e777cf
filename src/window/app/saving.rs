//! Files written at the press of a key.

use std::time::SystemTime;

use anyhow::Result;

use super::super::remote::Wake;
use super::super::snapshot::{self, SnapshotPaths};
use super::App;
use stereod_core::picture::cloud;
use stereod_core::thread;

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
        self.save("snapshot", move || {
            let view = readback.wait(&device)?;
            snapshot::write(&paths, &frame.disparity, range, &view)?;
            Ok(format!("saved {paths}"))
        });
    }

    /// Writes the frame on the screen as points in space.
    pub(super) fn point_cloud(&mut self) {
        let Some(frame) = &self.frame else {
            return self.notify(Err("there is no image yet".into()));
        };
        let Some(geometry) = frame.geometry else {
            let cure = "start with --calibration, or with --focal and --baseline";
            return self.notify(Err(format!("no point cloud without a calibration: {cure}")));
        };
        let folder = &self.shell.options.snapshot_dir;
        let path = snapshot::cloud_path(folder, SystemTime::now(), frame.pair.sequence);
        let (frame, options) = (frame.clone(), self.shell.options.clouds);
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

    /// Writes files on a thread of its own, which then reports the result.
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
            remote.wake(Wake::Saved(saved));
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
