//! `stereod calibration refine`: puts the calibration of a bumped rig right by the rows of a recording.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::SystemTime;

use crate::cli::calibration::RefineArgs;
use crate::commands::{Error, inputs, load, print, progress_bar, signals};
use crate::observe::alignment::rotation::{Kept, NAMES, Turn, measure_turn};
use crate::run::prepare::rig::Cameras;
use crate::telemetry::logs;
use anyhow::{Context, anyhow};
use stereod_calibration::StereoCalibration;
use stereod_calibration::format::{self, Format, Report};
use stereod_core::files;
use stereod_core::frame::{Image, StereoPair};
use stereod_io::control::Control;
use stereod_io::source;
use stereod_io::source::demo::DemoOptions;
use stereod_io::source::gst::Keep;

/// Rounds of rectifying and measuring; the second one usually settles.
const ROUNDS: usize = 5;

/// A step below this angle in radians (0.006 degrees) ends the rounds.
const SETTLED: f64 = 1e-4;

pub(super) fn run(args: &RefineArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let settings = &loaded.settings;
    let spec = args.pair.spec_or_recording(&args.topics);
    let spec = spec.ok_or_else(|| Error::usage("give a picture or stream for each view"))?;
    if Format::of_name(&args.output)? != Format::Own {
        return Err(Error::usage(format!(
            "{}: a refined calibration is written as .toml; `stereod calibration convert` makes other \
             formats of it",
            args.output.display()
        )));
    }
    if args.output.exists() {
        return Err(Error::usage(format!(
            "{} exists and is kept; name another file with -o",
            args.output.display()
        )));
    }
    inputs(&loaded, spec.local_files()).refuse(&args.output).map_err(Error::Usage)?;
    files::check_writable(&args.output)?;
    let cameras = Cameras::read(settings, Some(&spec))?;
    if !cameras.have_calibration() {
        return Err(Error::usage("there is nothing to refine: give --calibration FILE"));
    }
    let control = Control::default();
    signals::stop_on_signals(&control, None, None)?;
    let mut options =
        settings.source.stream_options(&settings.camera, &control.stop, &Keep::default());
    options.part.frames = args.part.frames();
    let mut source = source::open(&spec, DemoOptions::default(), &options)?;
    let info = source.info().clone();
    let (calibration, file) = cameras.calibration_for(info.sizes())?;
    if calibration.comes_rectified() {
        return Err(Error::usage(format!(
            "{file} is of rectified pictures, which no longer show their cameras; refine the calibration of \
             the raw ones"
        )));
    }
    // Spread over the recording, because each pair shows other places.
    let wanted = usize::from(args.pairs);
    let step = info.pairs.map_or(1, |pairs| (pairs / wanted as u64).max(1));
    let bar = progress_bar(Some(wanted as u64), args.common.quiet, "pairs");
    let (mut pairs, mut seen) = (Vec::new(), 0);
    source.run(&control.stop, &mut |pair, _| {
        if seen % step == 0 {
            pairs.push(pair);
            bar.inc(1);
        }
        seen += 1;
        match pairs.len() < wanted {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    bar.finish_and_clear();
    logs::write_above(None);
    let refined = refine(&calibration, &pairs).with_context(|| file.clone())?;
    let (year, month, day) = files::date(SystemTime::now());
    let report = Report {
        made_by: Some(format!("stereod calibration refine {}", env!("CARGO_PKG_VERSION"))),
        date: Some(format!("{year:04}-{month:02}-{day:02}")),
        pairs: Some(refined.first.pairs),
        ..Report::default()
    };
    let text = format::render(&refined.calibration, &report, Format::Own)?.concat();
    files::write_whole(&args.output, text.as_bytes())?;
    print(format!("{}written to {}\n", refined.in_words(), args.output.display()))
}

/// A calibration that fits the rows, and how it differs from the one before.
struct Refined {
    calibration: StereoCalibration,
    /// The measurement with the calibration before, and the last one.
    first: Turn,
    last: Turn,
    /// Sum of the corrections.
    terms: [f64; 4],
}

fn refine(before: &StereoCalibration, pairs: &[StereoPair]) -> anyhow::Result<Refined> {
    // A rectification in the file is that of the cameras before.
    let mut calibration = StereoCalibration { rectification: None, ..before.clone() };
    let (mut first, mut terms) = (None, [0.0; 4]);
    for round in 0..ROUNDS {
        let mut turn = measured(&calibration, pairs)?;
        turn.keep(&terms);
        let last = turn.clone();
        let first = first.get_or_insert(turn);
        if last.terms.xyz().norm().max(last.terms[3].abs()) < SETTLED || round == ROUNDS - 1 {
            let first = first.clone();
            return Ok(Refined { calibration, first, last, terms });
        }
        calibration = StereoCalibration { rectification: None, ..last.correct(&calibration)? };
        terms.iter_mut().zip(last.terms.iter()).for_each(|(sum, term)| *sum += term);
    }
    unreachable!("the last round returns")
}

/// Measures how the rows of these pairs differ with a calibration.
fn measured(calibration: &StereoCalibration, pairs: &[StereoPair]) -> anyhow::Result<Turn> {
    let rectifier = calibration.rectifier(None)?;
    let rectified: Vec<[Image; 2]> =
        pairs.iter().map(|pair| rectifier.rectify_pair(pair)).collect();
    measure_turn(&rectified, &rectifier.geometry()).ok_or_else(|| {
        anyhow!(
            "the views of {} pairs have too few points in common: take a scene with texture in all parts of \
             the image, and views of the same moment; if the cameras were moved far, calibrate them again",
            pairs.len()
        )
    })
}

impl Refined {
    fn in_words(&self) -> String {
        let mut text = format!(
            "{} points of {} pairs: rows differed by {:.2} px (median), now by {:.2} px\n",
            self.first.points, self.first.pairs, self.first.rows_px, self.last.rows_px
        );
        for (i, name) in NAMES.into_iter().enumerate() {
            let sd = self.last.covariance[(i, i)].sqrt();
            let (value, sd, unit, digits) = match i {
                3 => (100.0 * self.terms[i], 100.0 * sd, "%", 3),
                _ => (self.terms[i].to_degrees(), sd.to_degrees(), "degrees", 3),
            };
            // The last round measures only.
            let _ = match self.last.kept[i].filter(|_| self.terms[i] == 0.0) {
                Some(Kept::Undetermined) => writeln!(
                    text,
                    "{name}: not determined by this scene (± {sd:.digits$} {unit}), left as it was; take pairs \
                     with texture in all corners of the image"
                ),
                Some(Kept::WithinCalibration) => writeln!(
                    text,
                    "{name}: no change beyond the calibration's own error (± {sd:.digits$} {unit}), left as it was"
                ),
                None => writeln!(text, "{name}: {value:+.digits$} ± {sd:.digits$} {unit}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::Matrix4;

    use super::*;

    #[test]
    fn a_term_that_is_fixed_takes_its_share_of_the_others_with_it() {
        // Terms 0 and 1 are known only by their sum.
        let mut covariance = Matrix4::identity() * 1e-8;
        covariance[(0, 1)] = -0.9e-8;
        covariance[(1, 0)] = -0.9e-8;
        let terms = [0.004, 0.002, 0.001, 0.0].into();
        let (kept, points, pairs) = ([None; 4], 100, 5);
        let mut turn = Turn { terms, covariance, kept, points, pairs, rows_px: 1.0, left_px: 0.1 };
        turn.fix(1, 0.0);
        assert!((turn.terms[0] - 0.0058).abs() < 1e-12 && turn.terms[1] == 0.0, "{}", turn.terms);
        assert_eq!(turn.terms[2], 0.001);
        assert!(turn.covariance[(0, 0)] < 0.2e-8);
    }
}
