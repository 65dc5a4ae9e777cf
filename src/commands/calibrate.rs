//! `stereod calibrate`: calibration of two cameras from images of a board, and boards to print.

mod arguments;
#[cfg(feature = "window")]
mod guided;
mod pictures;
mod play;
mod report;
mod session;
mod stream;

use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;

use super::{Error, load, print};
use crate::board;
use crate::cli::calibrate::{CalibrateArgs, NO_SOURCE};
use arguments::{options, refuse_inputs};
use stereod_core::calibration::board::Board;
use stereod_core::calibration::format::{self, Format};
use stereod_core::calibration::solve::{self, Quality, SolveError, Solved};
use stereod_core::files;

/// Runs the command.
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
        solve::solve(&board, found.size, options(&args), found.sightings)
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
        print(report::in_words(&solved, written.then_some(&args.output)))?;
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

/// Returns the calibration as a file of our own format.
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
    let sheet = board::Sheet::new(board, args.page).map_err(Error::usage)?;
    let content = match files::extension(&args.output).as_str() {
        "svg" => board::svg(&sheet).into_bytes(),
        "pdf" => board::pdf(&sheet),
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
