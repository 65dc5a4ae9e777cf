//! calib.txt of the Middlebury stereo data sets from 2014 on (Scharstein et al., GCPR 2014) and of
//! ETH3D's two-view ones: lines of `key=value`, lengths in millimetres, for rectified images.

use super::draft::{Draft, ReadOptions};
use super::rectified::{self, Eye, Pair};
use crate::CalibrationError;
use crate::check::Sources;
use crate::error::Result;

/// Largest difference between two statements of the same distance in pixels, from cut-off digits.
const DIGITS_PX: f64 = 0.1;

/// Metres per unit of the files.
const METRES: f64 = 0.001;

/// Returns key and value of every line with its number; `;` at a line's end and comments are ignored.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = line.split(['%', '#']).next().unwrap_or_default();
        let (key, value) = line.split_once('=')?;
        Some((number, key.trim(), value.trim().trim_end_matches(';').trim_end()))
    })
}

/// Reports whether a text has a camera as Middlebury writes it: `cam0=[f 0 cx; 0 f cy; 0 0 1]`.
pub(super) fn is_calibration(text: &str) -> bool {
    entries(text).any(|(_, key, value)| {
        matches!(key, "cam0" | "cam1") && value.starts_with('[') && !value.contains(',')
    })
}

struct Entries<'a> {
    file: &'a str,
    text: &'a str,
}

impl Entries<'_> {
    /// Returns a value and its line, if present.
    fn get(&self, key: &str) -> Result<Option<(usize, &str)>> {
        let mut found = entries(self.text).filter(|(_, name, _)| *name == key);
        let first = found.next().map(|(line, _, value)| (line, value));
        match found.next() {
            Some((line, ..)) => Err(self.wrong(line, format!("`{key}` is there twice"))),
            None => Ok(first),
        }
    }

    fn wrong(&self, line: usize, what: String) -> CalibrationError {
        CalibrationError::new(format!("{}:{line}: {what}", self.file))
    }

    fn need(&self, key: &str) -> Result<(usize, &str)> {
        self.get(key)?.ok_or_else(|| {
            let file = self.file;
            CalibrationError::new(format!("{file}: `{key}` is missing (is the file cut off?)"))
        })
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        let Some((line, value)) = self.get(key)? else { return Ok(None) };
        let wrong = |_| self.wrong(line, format!("`{key}`: {value:?} is no number"));
        value.parse().map(Some).map_err(wrong)
    }

    fn whole(&self, key: &str) -> Result<Option<usize>> {
        let Some((line, value)) = self.get(key)? else { return Ok(None) };
        match value.parse() {
            Ok(number) if (1..=65536).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(line, format!("`{key}`: {value:?} is no number of pixels"))),
        }
    }

    fn camera(&self, key: &str) -> Result<Eye> {
        let (line, value) = self.need(key)?;
        let inside = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
        let words = inside.unwrap_or_default().split([';', ' ', '\t']).filter(|w| !w.is_empty());
        let cells: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        match cells.as_slice() {
            &[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0] => {
                Ok(Eye { focal: [fx, fy], centre: [cx, cy] })
            }
            _ => Err(self.wrong(
                line,
                format!("`{key}`: {value:?} is no camera matrix [f 0 cx; 0 f cy; 0 0 1]"),
            )),
        }
    }
}

pub(super) fn read(file: &str, text: &str, options: &ReadOptions) -> Result<Draft> {
    let entries = Entries { file, text };
    let (left, mut right) = (entries.camera("cam0")?, entries.camera("cam1")?);
    let baseline = entries.number("baseline")?.ok_or_else(|| {
        CalibrationError::new(format!("{file}: `baseline` is missing (is the file cut off?)"))
    })?;
    let (width, height) = (entries.whole("width")?, entries.whole("height")?);
    let size = match width.zip(height).or(options.size) {
        Some(size) => size,
        None => return Err(rectified::without_size(file)),
    };
    let mut notes = Vec::new();
    if let Some(doffs) = entries.number("doffs")? {
        let told = right.centre[0] - left.centre[0];
        if (told - doffs).abs() > DIGITS_PX {
            notes.push(format!(
                "{file}: the principal points are {told} px apart by cam0 and cam1, but {doffs} px by \
                 doffs, which is taken"
            ));
        }
        right.centre[0] = left.centre[0] + doffs;
    }
    let disparities = entries.whole("ndisp")?;
    let keys = ["cam0", "cam1"];
    let baseline_m = baseline * METRES;
    let draft = rectified::draft(Pair { file, keys, size, left, right, baseline_m });
    let sources = Sources { unit_m: METRES, ..draft.sources };
    Ok(Draft { disparities, notes, sources, ..draft })
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Loaded, parse};
    use super::*;

    /// The example of the format's description.
    const EXAMPLE: &str = "\
cam0=[3997.684 0 1176.728; 0 3997.684 1011.728; 0 0 1]
cam1=[3997.684 0 1307.839; 0 3997.684 1011.728; 0 0 1]
doffs=131.111
baseline=193.001
width=2964
height=1988
ndisp=280
isint=0
vmin=31
vmax=257
dyavg=0.918
dymax=1.516
";

    fn read(text: &str) -> Result<Loaded, String> {
        parse(&[("calib.txt", text)], &ReadOptions::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn depth_counts_doffs() {
        let loaded = read(EXAMPLE).unwrap();
        assert_eq!((loaded.format, loaded.disparities), (Format::Middlebury, Some(280)));
        assert!(loaded.calibration.comes_rectified());
        let depth = |loaded: &Loaded, disparity| {
            loaded.calibration.rectification.as_ref().unwrap().geometry().depth_m(disparity)
        };
        // Z = baseline * f / (d + doffs) = 193.001 mm * 3997.684 / (100 + 131.111) = 3338.47 mm.
        assert!((depth(&loaded, 100.0).unwrap() - 3.338_469).abs() < 1e-6);
        // A quarter of the size has a quarter of the disparity at the same depth.
        let mut quarter = loaded;
        quarter.calibration = quarter.calibration.for_size(741, 497).unwrap().0;
        assert!(quarter.calibration.comes_rectified());
        assert!((depth(&quarter, 25.0).unwrap() - 3.338_469).abs() < 1e-6);
    }

    #[test]
    fn scripts_and_short_files_are_read_alike() {
        let due = read(EXAMPLE).unwrap();
        let script = EXAMPLE.replace("]\n", "];\n").replace("=193.001\n", " = 193.001; % in mm\n");
        let script = format!("% of one pair\r\n{}", script.replace('\n', "\r\n"));
        assert_eq!(read(&script).unwrap().calibration, due.calibration);
        // ETH3D's and the test set's files end after ndisp; doffs follows from the cameras.
        let short: String = EXAMPLE.lines().take(7).map(|line| format!("{line}\n")).collect();
        assert_eq!(read(&short).unwrap(), due);
        let without = read(&short.replace("doffs=131.111\n", "")).unwrap();
        let off = without.calibration.right.centre[0] - due.calibration.right.centre[0];
        assert!(off.abs() < 1e-9 && without.notes.is_empty(), "{without:?}");
        let other = read(&short.replace("doffs=131.111", "doffs=0")).unwrap();
        assert!(other.notes[0].contains("doffs, which is taken"), "{other:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, words) in [
            ("cam1=", "cam2=", "`cam1` is missing"),
            ("baseline=193.001\n", "", "`baseline` is missing"),
            ("baseline=193.001", "baseline=long", "calib.txt:4: `baseline`: \"long\" is no number"),
            ("baseline=193.001", "baseline=-193.001", "swapped"),
            ("width=2964", "width=-3", "calib.txt:5: `width`: \"-3\" is no number of pixels"),
            ("width=2964\n", "", "--size"),
            ("cam1=[3997.684 0", "cam1=[3997.684 1", "calib.txt:2: `cam1`"),
            ("cam1=[3997.684", "cam1=[nan", "not finite"),
            ("doffs=131.111", "baseline=3", "`baseline` is there twice"),
        ] {
            assert!(EXAMPLE.contains(from), "{from}");
            let error = read(&EXAMPLE.replace(from, to)).unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        }
    }
}
