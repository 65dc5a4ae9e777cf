//! K.txt as FoundationStereo and programs like it read it: the nine numbers of the camera matrix, and the baseline
//! in metres, for rectified images.

use super::draft::{Draft, ReadOptions};
use super::rectified::{self, Eye, Pair};
use crate::CalibrationError;
use crate::error::Result;

/// Returns all numbers of a text; `None` if there is anything else.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = lines.flat_map(|line| line.split([' ', '\t', ',', ';', '[', ']']));
    words.filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect()
}

pub(super) fn is_calibration(text: &str) -> bool {
    // Without the baseline, too, so that the error can say so.
    numbers(text).is_some_and(|numbers| {
        matches!(
            numbers.as_slice(),
            [_, _, _, _, _, _, 0.0, 0.0, 1.0] | [_, _, _, _, _, _, 0.0, 0.0, 1.0, _]
        )
    })
}

pub(super) fn read(file: &str, text: &str, options: &ReadOptions) -> Result<Draft> {
    let wrong = |what: &str| CalibrationError::new(format!("{file}: {what}"));
    let (focal, centre, baseline_m) = match numbers(text).unwrap_or_default().as_slice() {
        &[fx, 0.0, cx, 0.0, fy, cy, _, _, _, baseline_m] => ([fx, fy], [cx, cy], baseline_m),
        [_, _, _, _, _, _, _, _, _] => {
            return Err(wrong(
                "the baseline is missing: write the distance of the cameras in metres in a line below the camera \
                 matrix",
            ));
        }
        _ => return Err(wrong("no camera matrix, whose rows are fx 0 cx, 0 fy cy and 0 0 1")),
    };
    let Some(size) = options.size else { return Err(rectified::without_size(file)) };
    let eye = || Eye { focal, centre };
    let keys = ["the camera matrix", "the baseline"];
    Ok(rectified::draft(Pair { file, keys, size, left: eye(), right: eye(), baseline_m }))
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Loaded, parse};
    use super::*;

    /// FoundationStereo's example.
    const EXAMPLE: &str = "754.6680908203125 0.0 489.3794860839844 0.0 754.6680908203125 265.16162109375 0.0 0.0 1.0\n0.063\n";

    fn read(text: &str, size: Option<(usize, usize)>) -> Result<Loaded> {
        parse(&[("K.txt", text)], &ReadOptions { size, ..ReadOptions::default() })
    }

    #[test]
    fn a_camera_matrix_and_a_baseline_are_a_rectified_pair() {
        let size = Some((960, 540));
        let loaded = read(EXAMPLE, size).unwrap();
        assert_eq!((loaded.format, loaded.notes.len()), (Format::KTxt, 0));
        assert!(loaded.calibration.comes_rectified());
        let geometry = loaded.calibration.rectification.as_ref().unwrap().geometry();
        assert_eq!((geometry.focal_px, geometry.baseline_m), (754.668_090_820_312_5, 0.063));
        assert!(read(EXAMPLE, None).unwrap_err().lacks_size());
        // In rows, in brackets, and with a comment.
        let rows = "# K\n[754.6680908203125, 0, 489.3794860839844,\n 0, 754.6680908203125, 265.16162109375,\n 0, 0, 1]\n0.063";
        assert_eq!(read(rows, size).unwrap().calibration, loaded.calibration);
    }

    #[test]
    fn what_is_missing_is_said() {
        let without = EXAMPLE.replace("0.063\n", "");
        for (text, words) in [
            (without.as_str(), "the baseline is missing"),
            (&EXAMPLE.replace("0.063", "63"), "--unit mm K.txt --size 960x540 -o"),
            (
                &EXAMPLE.replace("489.3794860839844 0.0", "489.3794860839844 2.0"),
                "no camera matrix",
            ),
            (&EXAMPLE.replace("0.063", "-0.063"), "swapped"),
        ] {
            let error = read(text, Some((960, 540))).unwrap_err().to_string();
            assert!(error.starts_with("K.txt") && error.contains(words), "{words}: {error}");
        }
    }
}
