//! Pairs from a recording or from cameras: those that are sharp, still and new are kept.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::super::run::parts;
use super::super::{Error, signals};
use super::report::progress_bar;
use crate::calibration::board::Board;
use crate::calibration::board::detect::{Detection, Detector};
use crate::calibration::solve::{
    self, Guide, Judgement, Reason, Refusal, Sighting, SolveError, Solved, fit, most_diverse,
};
use crate::cli::SourceChoice;
use crate::cli::calibrate::CalibrateArgs;
use crate::control::Control;
use crate::frame::StereoPair;
use crate::pool::Pool;
use crate::queue::{LinkReceiver, WhenFull, link};
use crate::settings::Loaded;
use crate::sink::files;
use crate::source::{Source, SourceInfo};

/// Pairs of a recording that are closer in time than this are not looked at: a board that is held
/// still is seen often enough.
const APART: Duration = Duration::from_millis(60);

/// How often a person without a window is told what to do.
const ADVICE: Duration = Duration::from_secs(3);

/// Calibrates from a stream.
///
/// # Errors
/// Where the stream cannot be read; within it, where there is no calibration.
pub(super) fn calibrate(
    args: &CalibrateArgs,
    loaded: &Loaded,
    board: Board,
    choice: &SourceChoice,
) -> Result<Result<Solved, SolveError>, Error> {
    refuse_inputs(args, choice)?;
    let control = Control::default();
    signals::stop_on_signals(&control, None)?;
    let source = parts::open_source(choice, loaded, false, &Pool::new(), &control)?;
    let info = source.info().clone();
    tracing::info!("{}", parts::describe(&info));
    let mut session = Session::new(args, board, &info, are_pictures(choice));
    let advise = info.live.then_some(ADVICE);
    run(source, &control, |pairs| session.watch(&pairs, advise, &control))?;
    Ok(session.solve())
}

fn refuse_inputs(args: &CalibrateArgs, choice: &SourceChoice) -> Result<(), Error> {
    let inputs: Vec<&str> = match choice {
        SourceChoice::Demo => Vec::new(),
        SourceChoice::Pair { left, right } => vec![left, right],
        SourceChoice::SideBySide(both) | SourceChoice::TopBottom(both) => vec![both],
    };
    for output in [Some(&args.output), args.json.as_ref()].into_iter().flatten() {
        let inputs = inputs.iter().map(std::path::Path::new);
        files::refuse_input(output, inputs).map_err(Error::Usage)?;
    }
    Ok(())
}

/// Whether a stream is numbered pictures, which were taken one by one.
fn are_pictures(choice: &SourceChoice) -> bool {
    let pattern = |text: &String| {
        text.contains('%') && !text.contains('!') && !std::path::Path::new(text).exists()
    };
    match choice {
        SourceChoice::Demo => false,
        SourceChoice::Pair { left, .. } => pattern(left),
        SourceChoice::SideBySide(both) | SourceChoice::TopBottom(both) => pattern(both),
    }
}

/// Plays the source on a thread of its own while `watch` takes the pairs; live ones that it is too
/// slow for are dropped.
fn run(
    mut source: Box<dyn Source>,
    control: &Control,
    watch: impl FnOnce(LinkReceiver<StereoPair>),
) -> Result<(), Error> {
    let when_full = if source.info().live { WhenFull::DropOldest } else { WhenFull::Block };
    let (sender, receiver) = link(2, when_full);
    let stop = &control.stop;
    let played = std::thread::scope(|scope| {
        let player = scope.spawn(move || {
            source.run(stop, &mut |pair, _| match sender.send(pair) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        watch(receiver);
        player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    Ok(played?)
}

/// What has been seen so far.
struct Session {
    detector: Detector,
    guide: Guide,
    size: (usize, usize),
    options: solve::Options,
    most: usize,
    kept: Vec<(String, [Detection; 2])>,
    /// How many pairs were refused for what.
    refused: BTreeMap<&'static str, usize>,
    /// The last reason why the board was not seen by both eyes.
    unseen: Option<Reason>,
    bar: ProgressBar,
    live: bool,
    stills: bool,
}

impl Session {
    fn new(args: &CalibrateArgs, board: Board, info: &SourceInfo, stills: bool) -> Self {
        let size = (info.width, info.height);
        let options = super::options(args);
        Self {
            detector: super::detector(args, board),
            guide: Guide::new(board, size, options.model, stills),
            size,
            options,
            most: args.max_pairs.into(),
            kept: Vec::new(),
            refused: BTreeMap::new(),
            unseen: None,
            bar: progress_bar(info.pairs, args.common.quiet, "pairs"),
            live: info.live,
            stills,
        }
    }

    /// Looks at all pairs; at live ones until nothing is missing.
    fn watch(
        &mut self,
        pairs: &LinkReceiver<StereoPair>,
        advise: Option<Duration>,
        control: &Control,
    ) {
        let (mut last, mut advised) = (None::<Duration>, Instant::now());
        while let Ok(pair) = pairs.recv() {
            self.bar.inc(1);
            let soon = |last: Duration| pair.timestamp.saturating_sub(last) < APART;
            if !self.live && !self.stills && last.is_some_and(soon) {
                continue;
            }
            last = Some(pair.timestamp);
            let judgement = self.look_at(&pair);
            if let Some(often) = advise.filter(|often| advised.elapsed() >= *often) {
                advised += often;
                self.advise(&judgement);
            }
            let enough = self.guide.missing().is_empty() || self.kept.len() >= self.most;
            if self.live && enough {
                control.stop.set(true);
            }
        }
        self.bar.finish_and_clear();
        crate::telemetry::logs::write_above(None);
        self.account();
    }

    fn look_at(&mut self, pair: &StereoPair) -> Judgement {
        let seen = self.detector.detect_pair(&pair.left, &pair.right);
        let judgement = self.guide.judge(pair.timestamp, &seen);
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
                        "without the board in both eyes"
                    }
                    Refusal::Unfit(_) => "blurred",
                    Refusal::Moving(..) | Refusal::New => "moving",
                    Refusal::Known => "like others",
                };
                *self.refused.entry(kind).or_default() += 1;
                tracing::debug!("pair {}: {refusal}", pair.sequence);
            }
        }
        judgement
    }

    fn keep(&mut self, pair: &StereoPair, seen: [Detection; 2]) {
        let name = if self.stills {
            format!("pair {}", pair.sequence)
        } else {
            format!("pair {} ({:.2} s)", pair.sequence, pair.timestamp.as_secs_f64())
        };
        self.guide.keep(seen.clone());
        self.kept.push((name, seen));
        let kept = self.kept.len();
        self.bar.set_message(format!("{kept} kept"));
        if self.live {
            let progress = 100.0 * self.guide.progress();
            tracing::info!("pair {kept} taken, {progress:.0} % done");
        }
    }

    fn advise(&self, judgement: &Judgement) {
        let missing = self.guide.missing();
        let next = missing.first().map(|wanted| format!("; wanted: {}", wanted.wish));
        if let Judgement::Refuse(refusal) = judgement {
            tracing::info!("{refusal}{}", next.unwrap_or_default());
        }
    }

    fn account(&self) {
        let refused: Vec<String> =
            self.refused.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let refused = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
        tracing::info!("{} pairs kept; left out: {refused}", self.kept.len());
        if let (true, Some(reason)) = (self.kept.is_empty(), &self.unseen) {
            tracing::warn!("the board was never seen by both eyes: {reason}");
        }
    }

    fn solve(self) -> Result<Solved, SolveError> {
        let board = *self.detector.board();
        let seen: Vec<_> = self.kept.iter().map(|(_, seen)| seen.clone()).collect();
        let chosen = most_diverse(&seen, self.most);
        let mut kept: Vec<_> = self.kept.into_iter().map(Some).collect();
        let chosen = chosen.into_iter().filter_map(|pair| kept[pair].take());
        let sightings = chosen.map(|(name, seen)| Sighting { name, seen: Ok(seen) });
        solve::solve(&board, self.size, self.options, sightings.collect())
    }
}
