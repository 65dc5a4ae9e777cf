//! `stereod calibration`: show, convert and correct calibrations, and find where the camera is mounted.

mod mount;
mod refine;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use super::{Error, inputs, load, print};
use crate::cli::FlagLayer;
use crate::cli::calibration::{CalibrationArgs, CalibrationCommand, CalibrationInput};
use crate::run::prepare::loading::Inputs;
use stereod_calibration::CalibrationError;
use stereod_calibration::format::{self, Format, Loaded, ReadOptions, Report};
use stereod_calibration::summary::{CameraSummary, DepthRange, RectifiedSummary, Summary};
use stereod_core::files;
use stereod_io::text::rounded;

pub fn run(args: CalibrationArgs) -> Result<(), Error> {
    match args.command {
        CalibrationCommand::Show { input, json, common } => {
            let alpha = load(&common, FlagLayer::default())?.settings.calibration.alpha;
            let (_, mut loaded) = read(&input)?;
            // As it would be applied; a rig that cannot be rectified is shown all the same.
            match loaded.calibration.rectified(alpha) {
                Ok(rectification) => loaded.calibration.rectification = Some(rectification),
                Err(error) => tracing::warn!("{}: {error}", input.files),
            }
            let summary = Summary::of(&loaded.calibration);
            print(if json {
                format!("{}\n", as_json(&input.files, &loaded, &summary))
            } else {
                as_text(&input.files, &loaded, &summary)
            })
        }
        CalibrationCommand::Convert { input, output, format, common } => {
            let settings = load(&common, FlagLayer::default())?;
            let (files, loaded) = read(&input)?;
            convert(&inputs(&settings, files), &loaded, output.as_deref(), format)
        }
        CalibrationCommand::Refine(args) => refine::run(&args),
        CalibrationCommand::Mount(args) => mount::run(&args),
    }
}

fn read(input: &CalibrationInput) -> Result<(Vec<PathBuf>, Loaded), Error> {
    let files = format::file_list(&input.files)?;
    let options = ReadOptions {
        size: input.size.map(|size| (size.width, size.height)),
        swap: input.swap,
        inverse: input.inverse_pose,
        unit_m: input.unit,
        kitti: input.kitti_cameras,
        ..ReadOptions::default()
    };
    let mut loaded = format::read_with(&files, &options)?;
    if let Some(mode) = input.mode {
        let (calibration, fit) = loaded.calibration.for_size(mode.width, mode.height)?;
        loaded.calibration = calibration;
        loaded.notes.push(fit.to_string());
    }
    Ok((files, loaded))
}

fn convert(
    inputs: &Inputs,
    loaded: &Loaded,
    output: Option<&Path>,
    format: Option<Format>,
) -> Result<(), Error> {
    let (format, outputs) = destination(output, format)?;
    for output in &outputs {
        inputs.refuse(output).map_err(Error::Usage)?;
    }
    files::refuse_same(outputs.iter().map(|output| ("-o", output.as_path())))
        .map_err(Error::Usage)?;
    let mut calibration = loaded.calibration.clone();
    if format == Format::Ros && calibration.rectification.is_none() {
        // camera_info describes the relative pose of the cameras by the rectification alone.
        let rectification = calibration.rectified(None).context("camera_info of ROS");
        calibration.rectification = Some(rectification.map_err(Error::Usage)?);
    }
    let texts = format::render(&calibration, &loaded.report, format)?;
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
    if outputs.is_empty() {
        return print(texts.concat());
    }
    for (output, text) in outputs.iter().zip(texts) {
        files::write_whole(output, text.as_bytes())?;
        tracing::info!("{format} written to {}", output.display());
    }
    Ok(())
}

/// Returns the format and the files to write; none for standard output.
fn destination(
    output: Option<&Path>,
    format: Option<Format>,
) -> Result<(Format, Vec<PathBuf>), Error> {
    let Some(output) = output else {
        return match format.unwrap_or(Format::Own) {
            Format::Ros => Err(Error::usage(
                "ROS camera_info is two files: name them, -o left.yaml,right.yaml, or a folder",
            )),
            format => Ok((format, Vec::new())),
        };
    };
    let shown = output.display().to_string();
    let pair = if output.is_dir() || shown.ends_with('/') {
        Some([output.join("left.yaml"), output.join("right.yaml")])
    } else {
        shown.split_once(',').map(|(left, right)| [left.into(), right.into()])
    };
    match (pair, format) {
        (Some(pair), None | Some(Format::Ros)) => {
            if pair[0] == pair[1] || pair.iter().any(|file| file.as_os_str().is_empty()) {
                return Err(Error::usage(format!(
                    "-o {shown}: name two different files, such as left.yaml,right.yaml"
                )));
            }
            Ok((Format::Ros, pair.into()))
        }
        (Some(_), Some(format)) => {
            Err(Error::usage(format!("-o {shown}: {format} is one file; name one")))
        }
        (None, Some(Format::Ros)) => Err(Error::usage(format!(
            "-o {shown}: ROS camera_info is two files: name them, -o left.yaml,right.yaml, or a folder \
             that exists"
        ))),
        (None, Some(format)) => Ok((format, vec![output.into()])),
        (None, None) => match Format::of_name(output) {
            Ok(format) => Ok((format, vec![output.into()])),
            Err(error) => {
                Err(Error::usage(format!("-o {error}, name two files (ROS), or say --format")))
            }
        },
    }
}

impl From<CalibrationError> for Error {
    fn from(error: CalibrationError) -> Self {
        Error::Usage(error.into())
    }
}

fn as_text(files: &str, loaded: &Loaded, summary: &Summary) -> String {
    let mut text = format!("{files}: {}\n", loaded.format);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<14}{value}");
    };
    let size = |[width, height]: [usize; 2]| format!("{width}x{height}");
    let other = summary.right_size.map_or(String::new(), |other| format!(" and {}", size(other)));
    line("pictures", size(summary.size) + &other);
    for (name, camera) in [("left", &summary.left), ("right", &summary.right)] {
        line(name, camera_text(camera));
        line("", lens_text(camera));
    }
    let [x, y, z] = summary.position_mm;
    line(
        "baseline",
        format!(
            "{:.2} mm (the right camera stands {}, {}, {})",
            summary.baseline_mm,
            one_way(x, ["right", "left"]),
            one_way(y, ["down", "up"]),
            one_way(z, ["forward", "back"]),
        ),
    );
    let turned = &summary.turned;
    let [roll, pitch, yaw] =
        [turned.roll_deg, turned.pitch_deg, turned.yaw_deg].map(|angle| rounded(angle, 3));
    line(
        "rotation",
        format!(
            "roll {roll:+.3}, pitch {pitch:+.3}, yaw {yaw:+.3} degrees (the right camera: clockwise, up, right)"
        ),
    );
    line("rectified", rectified_text(summary.rectified.as_ref()));
    for range in &summary.depth {
        line("depth", depth_text(range, summary.depth_estimated));
    }
    if let Some(report) = report_text(&loaded.report) {
        line("made", report);
    }
    for note in &loaded.notes {
        line("note", note.clone());
    }
    text
}

fn rectified_text(rectified: Option<&RectifiedSummary>) -> String {
    match rectified {
        Some(RectifiedSummary { size, focal_px, centre_px, .. }) => format!(
            "{}x{}, focal length {focal_px:.3} px, principal point ({:.2}, {:.2})",
            size[0], size[1], centre_px[0], centre_px[1]
        ),
        None => "not in the file; computed when it is needed".into(),
    }
}

fn depth_text(range: &DepthRange, is_estimated: bool) -> String {
    let metres = |depth: Option<f64>| match depth {
        Some(depth) => format!("{depth:.3} m"),
        None => "infinity".into(),
    };
    format!(
        "{}{} to {} with {} disparities (at {} px and 1 px)",
        if is_estimated { "about " } else { "" },
        metres(range.nearest_m),
        metres(range.farthest_m),
        range.disparities,
        range.disparities - 1
    )
}

fn camera_text(camera: &CameraSummary) -> String {
    let view = match camera.field_of_view_deg {
        Some([x, y]) => format!("field of view {x:.1} x {y:.1} degrees"),
        None => "field of view beyond what the lens model describes".into(),
    };
    format!(
        "focal lengths {:.3} and {:.3} px, principal point ({:.2}, {:.2}), {view}",
        camera.focal_px[0], camera.focal_px[1], camera.centre_px[0], camera.centre_px[1]
    )
}

fn lens_text(camera: &CameraSummary) -> String {
    let coefficients: Vec<_> = camera.distortion.iter().map(|k| format!("{k:.5}")).collect();
    match coefficients.as_slice() {
        [] => format!("lens: {}", camera.lens),
        some => format!("lens: {} ({})", camera.lens, some.join(" ")),
    }
}

/// Formats a signed offset in words: `73.80 right`.
fn one_way(length_mm: f64, ways: [&str; 2]) -> String {
    let way = if length_mm < 0.0 { ways[1] } else { ways[0] };
    format!("{:.2} {way}", length_mm.abs())
}

fn report_text(report: &Report) -> Option<String> {
    let parts: Vec<String> = [
        report.date.clone(),
        report.made_by.as_ref().map(|by| format!("by {by}")),
        report.pairs.map(|pairs| format!("from {pairs} pairs")),
        report.rms_px.map(|rms| format!("reprojection error {rms:.3} px")),
        report.epipolar_error_px.map(|error| format!("epipolar error {error:.3} px")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn as_json(files: &str, loaded: &Loaded, summary: &Summary) -> Value {
    let report = &loaded.report;
    let mut object = json!(summary);
    object["files"] = json!(files);
    object["format"] = json!(loaded.format.to_string());
    object["report"] = json!({
        "made_by": report.made_by,
        "date": report.date,
        "rms_px": report.rms_px,
        "epipolar_error_px": report.epipolar_error_px,
        "pairs": report.pairs,
    });
    object["notes"] = json!(loaded.notes);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(output: &str, format: Option<Format>) -> Result<(Format, usize), String> {
        let output = (!output.is_empty()).then(|| Path::new(output));
        destination(output, format).map(|(f, files)| (f, files.len())).map_err(|e| e.to_string())
    }

    #[test]
    fn the_format_follows_the_name_or_is_said() {
        for (output, format, due) in [
            ("a.toml", None, (Format::Own, 1)),
            ("a.YML", None, (Format::OpenCvYaml, 1)),
            ("a.yaml", None, (Format::OpenCvYaml, 1)),
            ("a.xml", None, (Format::OpenCvXml, 1)),
            ("a.json", None, (Format::OpenCvJson, 1)),
            ("a.txt", Some(Format::OpenCvJson), (Format::OpenCvJson, 1)),
            ("l.yaml,r.yaml", None, (Format::Ros, 2)),
            ("out/", Some(Format::Ros), (Format::Ros, 2)),
            (".", None, (Format::Ros, 2)),
            ("", None, (Format::Own, 0)),
            ("", Some(Format::OpenCvYaml), (Format::OpenCvYaml, 0)),
        ] {
            assert_eq!(to(output, format), Ok(due), "{output}");
        }
        for (output, format, words) in [
            ("a.txt", None, "a.txt: the name does not say the format"),
            ("a.yaml", Some(Format::Ros), "two files"),
            ("", Some(Format::Ros), "two files"),
            ("a.yaml,a.yaml", None, "two different files"),
            ("a.yaml,", None, "two different files"),
            ("a.toml,b.toml", Some(Format::Own), "is one file"),
        ] {
            let error = to(output, format).unwrap_err();
            assert!(error.contains(words), "{output}: {error}");
        }
    }
}
