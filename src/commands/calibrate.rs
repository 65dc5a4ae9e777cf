//! `stereod calibrate`: calibration of two cameras from images of a board, and boards to print.

#[cfg(feature = "window")]
mod guided;
mod pictures;
mod session;
mod stream;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;

use super::{Error, inputs, load, print};
use crate::cli::calibrate::{CalibrateArgs, NO_SOURCE};
use crate::settings::Loaded;
use stereod_calibration::board::detect::Detector;
use stereod_calibration::board::{self, Board, sheet};
use stereod_calibration::format::{self, Format};
use stereod_calibration::solve::{self, Options, Quality, SolveError, Solved};
use stereod_core::files;

pub fn run(args: CalibrateArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let board = board_of(&args)?;
    if args.print_board {
        refuse_inputs(&args, &loaded, [])?;
        return print_board(&board, &args);
    }
    for output in [Some(&args.output), args.json.as_ref()].into_iter().flatten() {
        if output.is_dir() {
            let message = format!("cannot write {}: it is a folder; name a file", output.display());
            return Err(Error::usage(message));
        }
    }
    if files::extension(&args.output) != "toml" {
        return Err(Error::usage(format!(
            "{}: a calibration is written as .toml; `stereod calibration convert` makes other formats \
             of it",
            args.output.display()
        )));
    }
    let json = args.json.as_deref().filter(|path| *path != Path::new("-"));
    let outputs = [("-o", Some(args.output.as_path())), ("--json", json)];
    let outputs = outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?)));
    files::refuse_same(outputs.clone()).map_err(Error::Usage)?;
    // A person who has held a board for minutes should not learn only then that the result cannot
    // be written.
    for (_, output) in outputs {
        files::check_writable(output)?;
    }
    if !args.left_pictures.is_empty() && (args.part.frames.is_some() || !args.part.times.is_empty())
    {
        let message =
            "`--start`, `--duration` and `--frames` are for recordings, not for single images";
        return Err(Error::usage(message));
    }
    let solved = if !args.left_pictures.is_empty() {
        let found = pictures::look_at(&args, &loaded, board)?;
        solve::solve(&board, found.sizes, options(&args), found.sightings)
    } else {
        let stream = args.stream().ok_or_else(|| Error::explained(NO_SOURCE))?;
        stream::calibrate(&args, &loaded, board, &stream)?
    };
    finish(&args, solved.map_err(no_calibration)?)
}

fn no_calibration(error: SolveError) -> Error {
    Error::Failed(anyhow::Error::new(error).context("no calibration"))
}

/// Writes and grades the result. A bad result is not written unless forced; existing files then
/// stay.
fn finish(args: &CalibrateArgs, solved: Solved) -> Result<(), Error> {
    let verdict = &solved.report.verdict;
    let written = args.force || verdict.quality != Quality::Bad;
    if written {
        let text = in_own_format(&solved)?;
        files::write_whole(&args.output, text.as_bytes())?;
    }
    let json = || serde_json::to_string_pretty(&solved.report).context("the report");
    match &args.json {
        Some(path) if path == Path::new("-") => print(format!("{}\n", json()?))?,
        Some(path) if written => files::write_whole(path, format!("{}\n", json()?).as_bytes())?,
        _ => {}
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        print(in_words(&solved, written.then_some(&args.output)))?;
    }
    if written {
        return Ok(());
    }
    Err(Error::Failed(anyhow::anyhow!(
        "{} is not written, because the calibration is bad: {} (--force writes it all the same)",
        args.output.display(),
        verdict.faults.join("; ")
    )))
}

fn in_own_format(solved: &Solved) -> Result<String, Error> {
    let report = &solved.report;
    let (year, month, day) = files::date(SystemTime::now());
    let notes = format::Report {
        made_by: Some(format!("stereod {}", env!("CARGO_PKG_VERSION"))),
        date: Some(format!("{year:04}-{month:02}-{day:02}")),
        rms_px: Some(report.rms_px),
        epipolar_error_px: Some(report.mean_epipolar_error_px),
        pairs: Some(report.used()),
    };
    let texts = format::render(&solved.calibration, &notes, Format::Own)?;
    Ok(texts.concat())
}

fn board_of(args: &CalibrateArgs) -> Result<Board, Error> {
    let mut pattern = args.board;
    if let Some(marker) = args.marker {
        pattern = board::with_marker_ratio(&pattern, marker / args.square)
            .map_err(|error| Error::usage(format!("--marker: {error}")))?;
    }
    Board::new(pattern, args.square).map_err(|error| Error::usage(format!("--square: {error}")))
}

fn print_board(board: &Board, args: &CalibrateArgs) -> Result<(), Error> {
    let sheet = sheet::Sheet::new(board, args.page).map_err(Error::usage)?;
    let content = match files::extension(&args.output).as_str() {
        "svg" => sheet::svg(&sheet).into_bytes(),
        "pdf" => sheet::pdf(&sheet),
        _ => {
            return Err(Error::usage(format!(
                "{}: a board is printed as .pdf or .svg",
                args.output.display()
            )));
        }
    };
    files::write_whole(&args.output, &content)?;
    print(format!(
        "{}: {} on {}; print it at 100 % (no fitting to the page), and measure the ruler\n",
        args.output.display(),
        board.pattern,
        sheet.paper()
    ))
}

pub(super) fn refuse_inputs(
    args: &CalibrateArgs,
    loaded: &Loaded,
    sources: impl IntoIterator<Item = PathBuf>,
) -> Result<(), Error> {
    let inputs = inputs(loaded, sources);
    let outputs = [Some(&args.output), args.json.as_ref()];
    outputs.into_iter().flatten().try_for_each(|output| inputs.refuse(output)).map_err(Error::Usage)
}

pub(super) fn options(args: &CalibrateArgs) -> Options {
    Options { model: args.model, keep_all: args.keep_all }
}

pub(super) fn detector(args: &CalibrateArgs, board: Board) -> Detector {
    Detector::new(board).with_window(args.corner_window.map(usize::from))
}

/// Returns the report as text; `output` names the calibration file.
pub(super) fn in_words(solved: &Solved, output: Option<&PathBuf>) -> String {
    let (report, calibration) = (&solved.report, &solved.calibration);
    let mut text = String::new();
    let all = report.pairs.len();
    let _ = write!(text, "{} of {all} pairs used", report.used());
    let _ = writeln!(text, "{}", if report.used() < all { "; left out:" } else { "" });
    for (name, reason) in report.left_out() {
        let _ = writeln!(text, "  {name}: {reason}");
    }
    let rows = report.rectified_row_error_px;
    let _ = writeln!(
        text,
        "reprojection error {:.3} px RMS (left alone {:.3}, right alone {:.3})",
        report.rms_px, report.alone_rms_px[0], report.alone_rms_px[1]
    );
    let _ = writeln!(
        text,
        "epipolar error {:.3} px, rows differ by {:.3} px on average, 95 % by less than {:.3}",
        report.mean_epipolar_error_px, rows.mean, rows.p95
    );
    let sd = |sd: Option<f64>, digits: usize| {
        sd.map_or_else(|| " (± unknown)".into(), |sd| format!(" ± {sd:.digits$}"))
    };
    let _ = writeln!(
        text,
        "baseline {:.2}{} mm, focal lengths {:.1}{} and {:.1}{} px",
        1e3 * report.baseline_m,
        sd(report.baseline_sd_m.map(|sd| 1e3 * sd), 2),
        calibration.left.focal[0],
        sd(report.focal_sd_px.map(|sd| sd[0]), 1),
        calibration.right.focal[0],
        sd(report.focal_sd_px.map(|sd| sd[1]), 1),
    );
    if let Some(output) = output {
        let _ = writeln!(text, "written to {}", output.display());
    }
    let _ = writeln!(text, "{}", report.verdict);
    text
}
