//! Guided calibration in a window, which shows the detections and the poses still missing; keys
//! control it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{Error, signals};
use super::session::{Outcome, Seen, Session, play};
use crate::queue::LinkReceiver;
use crate::settings::{AtEnd, Loaded, Pace};
use crate::window::{GuidedKeys, GuidedRemote, GuidedState, GuidedView, Window, WindowOptions};
use stereod_calibration::solve::{Judgement, Quality, Refusal};
use stereod_core::frame::{DisparityRange, StereoPair};
use stereod_core::thread;
use stereod_io::control::Control;
use stereod_io::source::Source;

/// Time for which the window marks an accepted pair.
const MARKED: Duration = Duration::from_millis(500);

/// Number of wishes shown at a time, the next ones first.
const SHOWN: usize = 7;

/// Shows the source's pairs until the user quits; the window has the calling thread.
pub(super) fn calibrate(
    window: Window,
    source: Box<dyn Source>,
    limit: Option<u64>,
    session: Session,
    loaded: &Loaded,
    control: &Control,
) -> Result<Outcome, Error> {
    let info = source.info().clone();
    let keys = GuidedKeys { quit: control.stop.clone(), ..GuidedKeys::default() };
    let remote = window.guided_remote();
    let paced = !info.live && loaded.settings.source.pace != Pace::Fast;
    let closing = loaded.settings.window.at_end == AtEnd::Close;
    let mut guided = Guided::new(session, remote.clone(), keys.clone(), closing);
    // Both views side by side, and room for text.
    let both = (2 * info.width as u32, info.height as u32 + 200);
    let nothing = DisparityRange { min: 0, count: 1 };
    let title = format!("stereod calibrate: {}", info.description);
    let mut options = WindowOptions::new(title, both, nothing);
    options.view = crate::window::View::Left;
    options.smallest = (960, 560);
    options.full_screen = loaded.settings.window.full_screen;
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let played = thread::guarded("the calibration", || {
                play(source, limit, control, paced, |pairs| guided.watch(&pairs))
            });
            remote.close();
            played.map_err(anyhow::Error::from)??;
            Ok::<_, Error>(guided.outcome)
        });
        let shown = window.run_guided(options, keys);
        let outcome =
            thread::joined("the calibration", worker.join()).map_err(anyhow::Error::from)??;
        match outcome {
            Some(outcome) => {
                if let Err(error) = shown {
                    tracing::warn!("{error:#}; the calibration is kept");
                }
                Ok(outcome)
            }
            None => {
                shown?;
                let how = if signals::interrupted() { "stopped" } else { "quit" };
                Err(Error::Failed(anyhow::anyhow!(
                    "{how} before there was a calibration; enter calibrates from the pairs taken so far"
                )))
            }
        }
    })
}

/// A calibration that a person watches.
struct Guided {
    session: Session,
    remote: GuidedRemote,
    keys: GuidedKeys,
    closing: bool,
    state: GuidedState,
    /// The last result, and its number of pairs.
    outcome: Option<Outcome>,
    solved: usize,
    taken: Option<Instant>,
    message: String,
}

impl Guided {
    fn new(mut session: Session, remote: GuidedRemote, keys: GuidedKeys, closing: bool) -> Self {
        session.told = true;
        Self {
            session,
            remote,
            keys,
            closing,
            state: GuidedState::Taking,
            outcome: None,
            solved: 0,
            taken: None,
            message: String::new(),
        }
    }

    /// Processes pairs as they come, then waits for the user.
    fn watch(&mut self, pairs: &LinkReceiver<StereoPair>) {
        let mut last = None;
        while let Ok(pair) = pairs.recv() {
            if self.keys.quit.is_set() {
                break;
            }
            self.session.bar.inc(1);
            let take = self.keys.take.is_set();
            self.keys.take.set(false);
            let (judgement, seen) = self.session.look_at(&pair, take);
            self.note(&judgement);
            let pair = Arc::new(pair);
            self.show(&pair, &seen);
            let kept = self.session.kept.len();
            let complete = self.session.guide.missing().is_empty() || kept >= self.session.most;
            if self.keys.solve.is_set() || complete && self.solved == 0 {
                self.solve(&pair, &seen);
            }
            last = Some((pair, seen));
        }
        self.session.bar.finish_and_clear();
        crate::telemetry::logs::write_above(None);
        self.session.account();
        if let Some((pair, seen)) = last {
            self.linger(&pair, &seen);
        }
    }

    /// Calibrates once more after the end of the source if there are new pairs, and waits for keys.
    fn linger(&mut self, pair: &Arc<StereoPair>, seen: &Seen) {
        if self.keys.quit.is_set() {
            return;
        }
        self.message = "no more pictures come".to_owned();
        if self.session.kept.len() > self.solved {
            self.solve(pair, seen);
        }
        self.show(pair, seen);
        while !self.keys.quit.is_set() && !self.closing {
            if self.keys.solve.is_set() {
                self.solve(pair, seen);
            }
            std::thread::sleep(crate::commands::TICK);
        }
    }

    fn note(&mut self, judgement: &Judgement) {
        self.message = match judgement {
            Judgement::Keep => {
                self.taken = Some(Instant::now());
                // Advice from fewer pairs is outdated.
                if !matches!(self.state, GuidedState::Solved { fit: true, .. }) {
                    self.state = GuidedState::Taking;
                }
                "taken: move the board on".to_owned()
            }
            Judgement::Refuse(Refusal::Unfit(reason)) => reason.to_string(),
            Judgement::Refuse(refusal) => refusal.to_string(),
        };
    }

    fn solve(&mut self, pair: &Arc<StereoPair>, seen: &Seen) {
        self.keys.solve.set(false);
        self.state = GuidedState::Solving;
        self.show(pair, seen);
        self.solved = self.session.kept.len();
        let outcome = self.session.solve();
        self.state = match &outcome {
            Ok(solved) => {
                let report = &solved.report;
                tracing::info!("calibrated from {} pairs: {}", report.used(), report.verdict);
                let mut words = vec![format!(
                    "rows differ by {:.2} px, reprojection {:.2} px, baseline {:.1} mm",
                    report.rectified_row_error_px.mean,
                    report.rms_px,
                    1e3 * report.baseline_m
                )];
                let left_out = report.left_out().count();
                if left_out > 0 {
                    words.push(format!("{left_out} pairs did not fit and were left out"));
                }
                words.extend(report.verdict.words.iter().cloned());
                let fit = report.verdict.quality != Quality::Bad;
                GuidedState::Solved { fit, words }
            }
            Err(error) => {
                tracing::warn!("no calibration: {error}");
                GuidedState::Failed(error.to_string())
            }
        };
        // Neither a failure nor a worse result replaces an earlier one.
        let quality = |outcome: &Outcome| outcome.as_ref().ok().map(|s| s.report.verdict.quality);
        match &self.outcome {
            Some(before) if quality(before) > quality(&outcome) => {
                if let GuidedState::Solved { words, .. } = &mut self.state {
                    words.push("an earlier, better result is kept".to_owned());
                }
            }
            _ => self.outcome = Some(outcome),
        }
        self.show(pair, seen);
    }

    fn show(&self, pair: &Arc<StereoPair>, seen: &Seen) {
        let guide = &self.session.guide;
        let (columns, _) = self.session.detector.board().pattern.corners();
        let boards = seen.each_ref().map(|seen| {
            let corners = seen.as_ref().map(|seen| seen.corners.as_slice()).unwrap_or_default();
            corners.iter().map(|c| (c.id % columns, c.id / columns, c.pixel)).collect()
        });
        let missing = guide.missing();
        let more = missing.len().saturating_sub(SHOWN);
        let mut lines: Vec<String> = missing
            .iter()
            .take(SHOWN)
            .map(|wanted| format!("{} ({} of {})", wanted.wish, wanted.have, wanted.need))
            .collect();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        self.remote.show(GuidedView {
            pair: pair.clone(),
            boards,
            coverage: guide.coverage().clone(),
            taken: self.taken.is_some_and(|taken| taken.elapsed() < MARKED),
            message: self.message.clone(),
            missing: lines,
            pairs: self.session.kept.len(),
            progress: guide.progress(),
            state: self.state.clone(),
        });
    }
}
