//! Pairs from a recording or cameras: those that are sharp, still and new are kept.

use std::time::{Duration, Instant};

use super::refuse_inputs;
use super::session::{Outcome, Session, play};
use crate::cli::calibrate::CalibrateArgs;
use crate::commands::{Error, signals};
use crate::queue::LinkReceiver;
use crate::run::faces::window::connect_window;
use crate::run::open::source::{describe, open_source};
use crate::settings::{Loaded, WindowMode};
use crate::window::Window;
use stereod_calibration::board::Board;
use stereod_core::frame::StereoPair;
use stereod_io::control::Control;
use stereod_io::source::gst::Keep;
use stereod_io::source::spec::SourceSpec;

/// Shortest time between examined pairs of a recording, because a still board is seen often enough.
const APART: Duration = Duration::from_millis(60);

/// Time between two hints to a person without a window.
const ADVICE: Duration = Duration::from_secs(3);

pub(super) fn calibrate(
    args: &CalibrateArgs,
    loaded: &Loaded,
    board: Board,
    spec: &SourceSpec,
) -> Result<Outcome, Error> {
    spec.check(loaded.settings.source.half).map_err(Error::Usage)?;
    refuse_inputs(args, loaded, spec.local_files())?;
    let control = Control::default();
    let wanted = match loaded.settings.window.mode {
        // Nobody holds a board before a recording. Whether the source is live is known only once it
        // is open, but the display is connected before, because signals must reach both.
        _ if !args.window && !spec.may_be_live() => WindowMode::Off,
        mode => mode,
    };
    let window = connect_window(wanted)?;
    signals::stop_on_signals(&control, window.as_ref().map(Window::remote), None)?;
    let frames = args.part.frames();
    let source = open_source(spec, loaded, false, frames, &Keep::default(), &control)?;
    let info = source.info().clone();
    tracing::info!("{}", describe(&info));
    let mut session = Session::new(args, board, &info, spec.are_pictures());
    // A file may be given as a pipeline fragment.
    match window.filter(|_| info.live || args.window) {
        #[cfg(feature = "window")]
        Some(window) => {
            super::guided::calibrate(window, source, frames.limit, session, loaded, &control)
        }
        _ => {
            let advise = info.live.then_some(ADVICE);
            play(source, frames.limit, &control, false, |pairs| {
                watch(&mut session, &pairs, advise, &control)
            })?;
            Ok(session.solve())
        }
    }
}

/// Examines all pairs; live ones until nothing is missing.
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
