//! A calibration from a stream: the pairs that it keeps, and the playing of the source.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use indicatif::ProgressBar;

use super::{detector, options};
use crate::cli::calibrate::CalibrateArgs;
use crate::commands::{Error, progress_bar};
use crate::queue::{LinkReceiver, WhenFull, link};
use stereod_calibration::board::detect::Detector;
use stereod_calibration::board::{Board, Detection, NotFound};
use stereod_calibration::solve::{
    self, Guide, Judgement, Reason, Refusal, Sighting, SolveError, Solved, fit, most_diverse,
};
use stereod_core::frame::StereoPair;
use stereod_core::thread;
use stereod_io::control::Control;
use stereod_io::source::pairing::pace::Pacer;
use stereod_io::source::{Source, SourceInfo};

/// Plays the source, at most `limit` pairs of it, on its own thread while `watch` takes the pairs. If it is too slow, live pairs
/// are dropped. Recordings are played at their own speed if `paced`.
pub(super) fn play(
    mut source: Box<dyn Source>,
    limit: Option<u64>,
    control: &Control,
    paced: bool,
    watch: impl FnOnce(LinkReceiver<StereoPair>),
) -> Result<(), Error> {
    let when_full = if source.info().live { WhenFull::DropOldest } else { WhenFull::Block };
    let (sender, receiver) = link(2, when_full);
    let stop = &control.stop;
    let played = std::thread::scope(|scope| {
        let player = scope.spawn(move || {
            let (mut pacer, mut left) = (paced.then(Pacer::new), limit.unwrap_or(u64::MAX));
            source.run(stop, &mut |pair, _| {
                if let Some(pacer) = &mut pacer {
                    pacer.wait(pair.timestamp, || stop.is_set());
                }
                left -= 1;
                match sender.send(pair) {
                    Ok(()) if left > 0 => ControlFlow::Continue(()),
                    Ok(()) | Err(_) => ControlFlow::Break(()),
                }
            })
        });
        watch(receiver);
        thread::joined("the source", player.join()).map_err(anyhow::Error::from).flatten()
    });
    Ok(played?)
}

/// The board in both views, or why it was not detected.
pub(super) type Seen = [Result<Detection, NotFound>; 2];

/// A calibration, or why there is none, if the stream could be read.
pub(super) type Outcome = Result<Solved, SolveError>;

pub(super) struct Session {
    pub(super) detector: Detector,
    pub(super) guide: Guide,
    sizes: [(usize, usize); 2],
    options: solve::Options,
    pub(super) most: usize,
    pub(super) kept: Vec<(String, [Detection; 2])>,
    /// Numbers of refused pairs, by reason.
    refused: BTreeMap<&'static str, usize>,
    /// The last reason why the board was not seen in both views.
    unseen: Option<Reason>,
    pub(super) bar: ProgressBar,
    pub(super) live: bool,
    /// Set if a person holds the board and is informed of every pair.
    pub(super) told: bool,
    pub(super) stills: bool,
}

impl Session {
    /// `pictures`: the pairs are single images.
    pub(super) fn new(
        args: &CalibrateArgs,
        board: Board,
        info: &SourceInfo,
        pictures: bool,
    ) -> Self {
        let sizes = info.sizes();
        // Too slow to measure a board's speed: treated as single images.
        let slow = |rate: f64| rate > 0.0 && rate.recip() >= solve::RECENT.as_secs_f64();
        let stills = pictures || !info.live && info.rate.is_some_and(slow);
        let options = options(args);
        Self {
            detector: detector(args, board),
            guide: Guide::new(board, sizes, options.model, stills),
            sizes,
            options,
            most: args.max_pairs.into(),
            kept: Vec::new(),
            refused: BTreeMap::new(),
            unseen: None,
            bar: progress_bar(info.pairs, args.common.quiet, "pairs"),
            live: info.live,
            told: info.live,
            stills,
        }
    }

    /// Detects the board in a pair, and keeps the pair if it is useful; with `take`, if the board
    /// is sharp. Also returns the detections.
    pub(super) fn look_at(&mut self, pair: &StereoPair, take: bool) -> (Judgement, Seen) {
        let seen = self.detector.detect_pair(&pair.left, &pair.right);
        let mut judgement = self.guide.assess(pair.timestamp, &seen);
        if take && !matches!(judgement, Judgement::Refuse(Refusal::Unfit(_))) {
            judgement = Judgement::Keep;
        }
        match &judgement {
            Judgement::Keep => {
                if let Ok(seen) = fit(&seen) {
                    self.keep(pair, seen);
                }
            }
            Judgement::Refuse(refusal) => {
                let kind = match refusal {
                    Refusal::Unfit(reason @ Reason::NotFound { .. }) => {
                        self.unseen = Some(reason.clone());
                        "without the board in both views"
                    }
                    Refusal::Unfit(_) => "blurred",
                    Refusal::Moving(..) => "with the board moving",
                    Refusal::New => "with the board just come into view",
                    Refusal::Known => "like others",
                };
                *self.refused.entry(kind).or_default() += 1;
                tracing::debug!("pair {}: {refusal}", pair.sequence);
            }
        }
        (judgement, seen)
    }

    pub(super) fn keep(&mut self, pair: &StereoPair, seen: [Detection; 2]) {
        let name = if self.stills {
            format!("pair {}", pair.sequence)
        } else {
            format!("pair {} ({:.2} s)", pair.sequence, pair.timestamp.as_secs_f64())
        };
        self.guide.keep(seen.clone());
        self.kept.push((name, seen));
        let kept = self.kept.len();
        self.bar.set_message(format!("{kept} kept"));
        if self.told {
            let progress = 100.0 * self.guide.progress();
            tracing::info!("pair {kept} taken, {progress:.0} % done");
        }
    }

    pub(super) fn advise(&self, judgement: &Judgement) {
        let missing = self.guide.missing();
        let next = missing.first().map(|wanted| format!("; wanted: {}", wanted.wish));
        if let Judgement::Refuse(refusal) = judgement {
            tracing::info!("{refusal}{}", next.unwrap_or_default());
        }
    }

    /// Returns the numbers of skipped pairs, by reason, as text.
    fn left_out(&self) -> Vec<String> {
        self.refused.iter().map(|(kind, count)| format!("{count} {kind}")).collect()
    }

    pub(super) fn account(&self) {
        let refused = self.left_out();
        let refused = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
        let kept = self.kept.len();
        let pairs = if kept == 1 { "pair" } else { "pairs" };
        tracing::info!("{kept} {pairs} kept; left out: {refused}");
        if let (true, Some(reason)) = (self.kept.is_empty(), &self.unseen) {
            tracing::warn!("the board was never seen by both cameras: {reason}");
        }
    }

    /// Calibrates from the pairs kept so far.
    pub(super) fn solve(&self) -> Outcome {
        let board = *self.detector.board();
        let seen: Vec<_> = self.kept.iter().map(|(_, seen)| seen.clone()).collect();
        let chosen = most_diverse(&seen, self.most);
        let chosen = chosen.into_iter().map(|pair| self.kept[pair].clone());
        let sightings = chosen.map(|(name, seen)| Sighting { name, seen: Ok(seen) });
        let solved = solve::solve(&board, self.sizes, self.options, sightings.collect());
        solved.map_err(|error| match error {
            // Skipped pairs count as well: they explain why there are too few.
            SolveError::TooFew { used, reasons, .. } => {
                let left_out = self.left_out().into_iter().map(|kind| format!("\n  {kind}"));
                SolveError::TooFew {
                    used,
                    all: self.kept.len() + self.refused.values().sum::<usize>(),
                    reasons: reasons + &left_out.collect::<String>(),
                }
            }
            other => other,
        })
    }
}
