//! Pairs from a recording or from cameras: those that are sharp, still and new are kept.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::super::run::open::source::{describe, open_source};
use super::super::run::open::window::connect_window;
use super::super::{Error, signals};
use super::guided;
use super::session::Session;
use crate::calibration::board::Board;
use crate::calibration::solve::{SolveError, Solved};
use crate::cli::calibrate::CalibrateArgs;
use crate::control::Control;
use crate::frame::StereoPair;
use crate::pace::Pacer;
use crate::pool::Pool;
use crate::queue::{LinkReceiver, WhenFull, link};
use crate::settings::{Loaded, WindowMode};
use crate::sink::window::Window;
use crate::source::Source;
use crate::source::spec::SourceSpec;
use crate::thread;

/// Pairs of a recording that are closer in time than this are not looked at: a board that is held
/// still is seen often enough.
const APART: Duration = Duration::from_millis(60);

/// How often a person without a window is told what to do.
const ADVICE: Duration = Duration::from_secs(3);

/// A calibration or why there is none, once the stream could be read.
pub(super) type Outcome = Result<Solved, SolveError>;

/// Calibrates from a stream.
///
/// # Errors
/// Where the stream cannot be read; within it, where there is no calibration.
pub(super) fn calibrate(
    args: &CalibrateArgs,
    loaded: &Loaded,
    board: Board,
    spec: &SourceSpec,
) -> Result<Outcome, Error> {
    super::refuse_inputs(args, loaded, spec.local_files())?;
    let control = Control::default();
    let wanted = match loaded.settings.window.mode {
        // Nobody holds a board before a recording. What is live is known only once it is open, and
        // the display is connected to before, because signals have to reach both.
        _ if !args.window && !spec.may_be_live() => WindowMode::Off,
        mode => mode,
    };
    let window = connect_window(wanted)?;
    signals::stop_on_signals(&control, window.as_ref().map(Window::remote), None)?;
    let source = open_source(spec, loaded, false, &Pool::new(), &control)?;
    let info = source.info().clone();
    tracing::info!("{}", describe(&info));
    let mut session = Session::new(args, board, &info, spec.are_pictures());
    // A file may have been given as a pipeline fragment.
    match window.filter(|_| info.live || args.window) {
        Some(window) => guided::calibrate(window, source, session, loaded, &control),
        None => {
            let advise = info.live.then_some(ADVICE);
            run(source, &control, false, |pairs| watch(&mut session, &pairs, advise, &control))?;
            Ok(session.solve())
        }
    }
}

/// Plays the source on a thread of its own while `watch` takes the pairs; live ones that it is too
/// slow for are dropped. Recorded ones are played as fast as they were recorded where `paced`.
pub(super) fn run(
    mut source: Box<dyn Source>,
    control: &Control,
    paced: bool,
    watch: impl FnOnce(LinkReceiver<StereoPair>),
) -> Result<(), Error> {
    let when_full = if source.info().live { WhenFull::DropOldest } else { WhenFull::Block };
    let (sender, receiver) = link(2, when_full);
    let stop = &control.stop;
    let played = std::thread::scope(|scope| {
        let player = scope.spawn(move || {
            let mut pacer = paced.then(Pacer::new);
            source.run(stop, &mut |pair, _| {
                if let Some(pacer) = &mut pacer {
                    pacer.wait(pair.timestamp, stop);
                }
                match sender.send(pair) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })
        });
        watch(receiver);
        thread::joined("the source", player.join()).map_err(anyhow::Error::from).flatten()
    });
    Ok(played?)
}

/// Looks at all pairs; at live ones until nothing is missing.
fn watch(
    session: &mut Session,
    pairs: &LinkReceiver<StereoPair>,
    advise: Option<Duration>,
    control: &Control,
) {
    let (mut last, mut advised) = (None::<Duration>, Instant::now());
    while let Ok(pair) = pairs.recv() {
        session.bar.inc(1);
        let soon = |last: Duration| pair.timestamp.saturating_sub(last) < APART;
        if !session.live && !session.stills && last.is_some_and(soon) {
            continue;
        }
        last = Some(pair.timestamp);
        let (judgement, _) = session.look_at(&pair, false);
        if let Some(often) = advise.filter(|often| advised.elapsed() >= *often) {
            advised += often;
            session.advise(&judgement);
        }
        let enough = session.guide.missing().is_empty() || session.kept.len() >= session.most;
        if session.live && enough {
            control.stop.set(true);
        }
    }
    session.bar.finish_and_clear();
    crate::telemetry::logs::write_above(None);
    session.account();
}
