//! `stereod batch status`: the progress of a batch, from the folders of its pieces.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::manifest::{State, state};
use super::plan::Plan;
use super::work::UNFINISHED;
use crate::commands::{Error, print};
use stereod_core::files::explain;

#[derive(Debug, Default, PartialEq, Serialize)]
struct Progress {
    pieces: usize,
    done: usize,
    /// Folders of pieces that are being made, or that killed workers have left.
    unfinished: usize,
    pairs_done: u64,
    /// Expected pairs of the other pieces.
    pairs_left: u64,
    /// Pairs a second of one worker, over all pieces that are done.
    pairs_per_second: Option<f64>,
    /// Time left with one worker for each unfinished folder, at least one.
    seconds_left: Option<f64>,
}

pub fn run(folder: &Path, json: bool) -> Result<(), Error> {
    let plan = Plan::of(folder)?;
    let pieces = plan.pieces();
    let mut progress = Progress { pieces: pieces.len(), ..Progress::default() };
    let mut seconds = 0.0;
    for piece in &pieces {
        match state(folder, &plan, piece)? {
            State::Done(manifest) => {
                progress.done += 1;
                progress.pairs_done += manifest.pairs;
                seconds += manifest.seconds;
            }
            State::Missing | State::Other(_) => progress.pairs_left += piece.weight,
        }
    }
    let entries = fs::read_dir(folder).map_err(|error| explain(folder, &error))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    progress.unfinished = names.filter(|name| name.ends_with(UNFINISHED)).count();
    progress.estimate(seconds);
    print(match json {
        true => serde_json::to_string(&progress).map_err(anyhow::Error::from)? + "\n",
        false => progress.in_words(),
    })
}

impl Progress {
    /// Sets rate and time left after pieces that took `seconds` in total.
    fn estimate(&mut self, seconds: f64) {
        if seconds > 0.0 && self.pairs_done > 0 {
            let rate = self.pairs_done as f64 / seconds;
            let workers = self.unfinished.max(1) as f64;
            self.pairs_per_second = Some(rate);
            self.seconds_left = Some(self.pairs_left as f64 / rate / workers);
        }
    }

    fn in_words(&self) -> String {
        let Self { pieces, done, unfinished, pairs_done, pairs_left, .. } = self;
        let mut text = format!(
            "{done} of {pieces} pieces done, {unfinished} unfinished (being made, or left by a worker that was \
             killed)\n{pairs_done} pairs done, about {pairs_left} left\n"
        );
        if let (Some(rate), Some(left)) = (self.pairs_per_second, self.seconds_left) {
            let left = Duration::from_secs_f64(left.ceil());
            let workers = match unfinished.max(&1) {
                1 => "one worker".to_owned(),
                count => format!("{count} workers"),
            };
            text += &format!("{rate:.1} pairs/s for each worker; ");
            text += &format!("{} left with {workers}\n", humantime::format_duration(left));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_rate_and_workers() {
        let (pairs_done, pairs_left) = (600, 5400);
        let mut progress =
            Progress { pieces: 10, done: 1, pairs_done, pairs_left, ..Progress::default() };
        progress.estimate(60.0);
        assert_eq!((progress.pairs_per_second, progress.seconds_left), (Some(10.0), Some(540.0)));
        assert!(progress.in_words().contains("1 of 10 pieces done, 0 unfinished"));
        assert!(progress.in_words().ends_with("; 9m left with one worker\n"));
        progress.unfinished = 3;
        progress.estimate(60.0);
        assert!(progress.in_words().ends_with("; 3m left with 3 workers\n"));
        let mut none = Progress { pieces: 2, pairs_left: 10, ..Progress::default() };
        none.estimate(0.0);
        assert_eq!((none.seconds_left, none.in_words().lines().count()), (None, 2));
    }
}
