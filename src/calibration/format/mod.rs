//! Calibration files: reads several programs' formats, and writes formats for other programs.
//!
//! The format is recognised by a file's content, never by its name. A new one is one file and one [`Format`].

mod depthai;
mod draft;
mod foreign;
mod k_txt;
mod kalibr;
mod kitti;
mod lens;
mod middlebury;
mod opencv;
mod opencv_names;
mod opencv_write;
mod orb_slam;
mod own;
mod rectified;
mod ros;
mod syntax;
mod tree;
mod zed;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::check;
use super::error::{CalibrationError, Result};
use super::stereo::StereoCalibration;
use draft::Draft;
pub use draft::{KittiCameras, ReadOptions, Report, Topics};
pub use opencv::{Matrices, of_cameras};
pub use rectified::of_rectified;
use stereod_core::reading;
use syntax::Syntax;
use tree::{At, Node};

/// Format of calibration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own: one TOML file with comments.
    Own,
    /// OpenCV's FileStorage as YAML: one file, or intrinsics and extrinsics.
    OpenCvYaml,
    /// OpenCV's FileStorage as XML.
    OpenCvXml,
    /// OpenCV's FileStorage as JSON, or plain JSON of the same names.
    OpenCvJson,
    /// camera_info of ROS: a YAML file for each camera.
    Ros,
    /// The camchain of Kalibr; read only.
    Kalibr,
    /// sensor.yaml of the EuRoC data sets, one for each camera; read only.
    Euroc,
    /// The calibration stored in DepthAI devices; read only.
    DepthAi,
    /// calib.txt or calib_cam_to_cam.txt of KITTI; read only.
    Kitti,
    /// calib.txt of Middlebury (2014 and later) and ETH3D, of rectified pairs; read only.
    Middlebury,
    /// SN*.conf of ZED cameras; read only.
    Zed,
    /// Settings of ORB-SLAM2 and ORB-SLAM3; read only.
    OrbSlam,
    /// K.txt of FoundationStereo: a camera matrix and a baseline, of rectified pairs; read only.
    KTxt,
}

impl Format {
    /// Returns the format of one file that its ending stands for.
    pub fn of_name(path: &Path) -> Result<Self> {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_deref().and_then(std::ffi::OsStr::to_str) {
            Some("toml") => Ok(Format::Own),
            Some("yml" | "yaml") => Ok(Format::OpenCvYaml),
            Some("xml") => Ok(Format::OpenCvXml),
            Some("json") => Ok(Format::OpenCvJson),
            _ => Err(CalibrationError::new(format!(
                "{}: the name does not say the format; end it with .toml (stereod), .yml, .xml or \
                 .json (OpenCV)",
                path.display()
            ))),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Own => "stereod TOML",
            Format::OpenCvYaml => "OpenCV YAML",
            Format::OpenCvXml => "OpenCV XML",
            Format::OpenCvJson => "OpenCV JSON",
            Format::Ros => "ROS camera_info",
            Format::Kalibr => "Kalibr camchain",
            Format::Euroc => "EuRoC sensor.yaml",
            Format::DepthAi => "DepthAI JSON",
            Format::Kitti => "KITTI calib.txt",
            Format::Middlebury => "Middlebury calib.txt",
            Format::Zed => "ZED SN*.conf",
            Format::OrbSlam => "ORB-SLAM settings",
            Format::KTxt => "K.txt",
        })
    }
}

const KNOWN: &str = "stereod's own TOML; OpenCV YAML, XML or JSON (K1 D1 K2 D2 R T ..., in one or \
                     two files); ROS camera_info (left.yaml,right.yaml); Kalibr camchain; EuRoC \
                     sensor.yaml (left,right); DepthAI JSON; calib.txt of KITTI, Middlebury and ETH3D; ZED's SN*.conf; \
                     settings of ORB-SLAM; K.txt of FoundationStereo";

/// A checked calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub calibration: StereoCalibration,
    /// Format of the files.
    pub format: Format,
    /// Set if the files describe images of more than one size, which [`ReadOptions::size`] selects.
    pub by_size: bool,
    /// Number of candidate disparities, from 0, for the whole scene, if the files have it.
    pub disparities: Option<usize>,
    /// Quality, if the files have it.
    pub report: Report,
    /// Unlikely but possible properties, a sentence each.
    pub notes: Vec<String>,
}

impl Loaded {
    /// Makes a calibration without further information.
    pub fn of(calibration: StereoCalibration, format: Format) -> Self {
        Self {
            calibration,
            format,
            by_size: false,
            disparities: None,
            report: Report::default(),
            notes: Vec::new(),
        }
    }
}

/// Splits an argument `FILE[,FILE]` into files. A name with a comma is one file if that exists.
pub fn file_list(argument: &str) -> Result<Vec<PathBuf>> {
    if !argument.is_empty() && Path::new(argument).exists() {
        return Ok(vec![argument.into()]);
    }
    let files: Vec<PathBuf> = argument.split(',').map(PathBuf::from).collect();
    if files.len() > 2 || files.iter().any(|file| file.as_os_str().is_empty()) {
        return Err(CalibrationError::new(format!(
            "{argument:?} names no calibration: give one file, or two with a comma between them, such \
             as left.yaml,right.yaml or intrinsics.yml,extrinsics.yml"
        )));
    }
    Ok(files)
}

/// Reads a calibration from one file or two in any format, and checks it.
pub fn read(files: &[PathBuf]) -> Result<Loaded> {
    read_with(files, &ReadOptions::default())
}

/// Reads like [`read`], with information that the files lack.
pub fn read_with(files: &[PathBuf], options: &ReadOptions) -> Result<Loaded> {
    let texts = files.iter().map(|file| read_text(file)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let texts: Vec<_> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    parse(&texts, options)
}

/// Reads a calibration from the texts of its files, each with a name for messages.
pub fn parse(files: &[(&str, &str)], options: &ReadOptions) -> Result<Loaded> {
    if let [(a, _), (b, _)] = files
        && a == b
    {
        return Err(CalibrationError::new(format!(
            "{a} is named twice: name the two files of the calibration, or this one once"
        )));
    }
    let parsed =
        files.iter().map(|(file, text)| parse_file(file, text)).collect::<Result<Vec<_>, _>>()?;
    let (mut draft, format) = dispatch(files, &parsed, options)?;
    let mut calibration = draft.calibration;
    check::make_rotations(&mut calibration, &draft.sources)?;
    if let (Some(size), None) = (options.size, options.topics) {
        draft.sources = draft.sources.sized(size);
    }
    if let Some(metres) = options.unit_m {
        calibration = calibration.in_unit(metres / draft.sources.unit_m);
        draft.sources.unit_m = metres;
    }
    if options.inverse {
        calibration = calibration.inverted();
        draft.sources = draft.sources.inverted();
    }
    if options.swap {
        calibration = calibration.swapped();
        draft.sources = draft.sources.swapped();
        draft.windows = draft.windows.map(|[left, right]| [right, left]);
    }
    // Of the whole cameras, because a part need not hold the principal point.
    let check = if options.third { check::check_third } else { check::check };
    draft.notes.extend(check(&calibration, &draft.sources)?);
    if let Some(windows) = draft.windows {
        calibration = calibration.within(windows);
    }
    let Draft { by_size, disparities, report, notes, .. } = draft;
    Ok(Loaded { calibration, format, by_size, disparities, report, notes })
}

/// Largest size of a calibration file in bytes.
const SIZE_MAX: u64 = 4 << 20;

fn read_text(file: &Path) -> Result<String> {
    let name = file.display();
    let wrong = |what: String| CalibrationError::new(format!("{name}: {what}"));
    if file.is_dir() {
        return Err(wrong("a folder; name the calibration file in it".into()));
    }
    let bytes = reading::read(file, SIZE_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            let what = format!("too large for a calibration (more than {} MiB)", SIZE_MAX >> 20);
            wrong(what + "; name the file with the cameras only")
        }
        _ => wrong(format!("the calibration cannot be read: {error}")),
    })?;
    if let Some(what) = foreign::binary(file, &bytes) {
        return Err(wrong(what));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| wrong("not a text, so no calibration; name a file of text".into()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// A parsed file.
enum Parsed {
    /// A format that holds both cameras in one text, and its reader.
    Whole(Format, Read),
    Tree(Syntax, Node),
}

type IsCalibration = fn(&str) -> bool;
type Read = fn(&str, &str, &ReadOptions) -> Result<Draft>;

/// Formats of plain lines, which would pass for YAML and TOML.
const LINES: [(Format, IsCalibration, Read); 4] = [
    (Format::Kitti, kitti::is_calibration, kitti::read),
    (Format::Middlebury, middlebury::is_calibration, middlebury::read),
    (Format::Zed, zed::is_calibration, zed::read),
    (Format::KTxt, k_txt::is_calibration, k_txt::read),
];

fn parse_file(file: &str, text: &str) -> Result<Parsed> {
    let wrong = |what: String| CalibrationError::new(format!("{file}{what}"));
    if text.len() as u64 > SIZE_MAX {
        return Err(wrong(": too large for a calibration".into()));
    }
    if let Some((format, _, read)) =
        LINES.iter().find(|(_, is_calibration, _)| is_calibration(text))
    {
        return Ok(Parsed::Whole(*format, *read));
    }
    if let Some(what) = foreign::text(text) {
        return Err(wrong(format!(": {what}")));
    }
    let Some(syntax) = syntax::recognise(text) else {
        return Err(wrong(": the file is empty, so no calibration".into()));
    };
    let tree = match syntax {
        Syntax::Toml => return Ok(Parsed::Whole(Format::Own, own::read)),
        Syntax::Yaml => syntax::yaml(text),
        Syntax::Json => syntax::json(text),
        Syntax::Xml => syntax::xml(text),
    };
    Ok(Parsed::Tree(syntax, tree.map_err(wrong)?))
}

type IsTree = fn(&At) -> bool;

/// How trees are read, and what one is called in messages.
enum ReadTrees {
    /// Both cameras in one file.
    Both(fn(&At, &ReadOptions) -> Result<Draft>, &'static str),
    /// A file for each camera.
    Each(fn(&At, &At, &ReadOptions) -> Result<Draft>, &'static str),
    OneOrTwo(fn(&[At], &ReadOptions) -> Result<Draft>),
}

/// Formats of keys and values, in the order in which they are tried; `OpenCvYaml` stands for all of OpenCV's.
const TREES: [(Format, IsTree, ReadTrees); 6] = [
    (
        Format::DepthAi,
        |root| root.get("cameraData").is_some(),
        ReadTrees::Both(depthai::read, "a calibration of DepthAI"),
    ),
    (
        Format::Kalibr,
        |root| root.get("cam0").is_some_and(|cam| !cam.is_matrix()),
        ReadTrees::Both(kalibr::read, "a camchain of Kalibr"),
    ),
    (
        Format::Euroc,
        |root| ["T_BS", "sensor_type"].iter().any(|key| root.get(key).is_some()),
        ReadTrees::Each(|left, right, _| kalibr::read_euroc(left, right), "a sensor.yaml of EuRoC"),
    ),
    (Format::Ros, ros::is_camera_info, ReadTrees::Each(ros::read, "a camera_info of ROS")),
    (Format::OrbSlam, orb_slam::is_settings, ReadTrees::Both(orb_slam::read, "a file of ORB-SLAM")),
    (Format::OpenCvYaml, opencv::is_calibration, ReadTrees::OneOrTwo(opencv::read)),
];

fn dispatch(
    files: &[(&str, &str)],
    parsed: &[Parsed],
    options: &ReadOptions,
) -> Result<(Draft, Format)> {
    let mut trees = Vec::new();
    for ((file, text), parsed) in files.iter().zip(parsed) {
        match parsed {
            Parsed::Tree(syntax, node) => trees.push((*syntax, At::root(file, node))),
            _ if files.len() > 1 => {
                return Err(CalibrationError::new(format!(
                    "{file}: this format holds both cameras in one file; name only this one"
                )));
            }
            Parsed::Whole(format, read) => return Ok((read(file, text, options)?, *format)),
        }
    }
    of_trees(files, &trees, options)
}

/// Reads files that are trees of keys and values, in the format that their keys show.
fn of_trees(
    files: &[(&str, &str)],
    trees: &[(Syntax, At)],
    options: &ReadOptions,
) -> Result<(Draft, Format)> {
    let mut rows = Vec::new();
    for (_, root) in trees {
        if let Some(what) = foreign::tree(root) {
            return Err(root.error(what));
        }
        let row = TREES.iter().find(|(_, is_calibration, _)| is_calibration(root));
        rows.push(row.ok_or_else(|| {
            root.error(format!(
                "no calibration that is known (keys: {}); known: {KNOWN}",
                root.keys()
            ))
        })?);
    }
    let roots: Vec<At> = trees.iter().map(|(_, root)| root.clone()).collect();
    let (format, _, read) = match &rows[..] {
        [row] => row,
        [row, other] if row.0 == other.0 => row,
        _ => {
            return Err(CalibrationError::new(match files {
                [(a, _), (b, _)] => format!(
                    "{a} and {b} are of different formats, and so no calibration together; name the files \
                     of one"
                ),
                _ => "a calibration is one file or two".into(),
            }));
        }
    };
    let draft = match (read, &roots[..]) {
        (ReadTrees::Both(read, _), [root]) => read(root, options),
        (ReadTrees::Both(_, what), _) => Err(roots[1].error(format!(
            "{what} holds both cameras in one file; name only one file"
        ))),
        (ReadTrees::Each(read, _), [left, right]) => read(left, right, options),
        (ReadTrees::Each(_, what), _) => Err(roots[0].error(format!(
            "{what} describes one camera; name the files of both with a comma between them: LEFT,RIGHT"
        ))),
        (ReadTrees::OneOrTwo(read), roots) => read(roots, options),
    };
    let format = match (format, trees[0].0) {
        (Format::OpenCvYaml, Syntax::Json) => Format::OpenCvJson,
        (Format::OpenCvYaml, Syntax::Xml) => Format::OpenCvXml,
        (format, _) => *format,
    };
    Ok((draft?, format))
}

/// Returns the texts of the files of a calibration in this format: one, or one for each camera,
/// left before right.
pub fn render(
    calibration: &StereoCalibration,
    report: &Report,
    format: Format,
) -> Result<Vec<String>> {
    match format {
        Format::Own => Ok(vec![own::write(calibration, report)]),
        Format::OpenCvYaml => Ok(vec![opencv_write::yaml(calibration)]),
        Format::OpenCvXml => Ok(vec![opencv_write::xml(calibration)]),
        Format::OpenCvJson => Ok(vec![opencv_write::json(calibration)]),
        Format::Ros => ros::write(calibration).map(Vec::from),
        _ => Err(CalibrationError::new(format!("{format} is only read, not written"))),
    }
}

/// Formats a number with all its digits and always a point, because some readers of YAML take
/// `1e-7` for a text.
fn digits(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}

/// Joins numbers with commas.
fn joined(values: &[f64]) -> String {
    values.iter().map(|value| digits(*value)).collect::<Vec<_>>().join(", ")
}
