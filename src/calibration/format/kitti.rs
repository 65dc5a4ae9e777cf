//! Calibrations of the KITTI data sets (Geiger et al., IJRR 2013): lines of `KEY: numbers`, in
//! calib.txt of the benchmarks (P0 to P3) and in calib_cam_to_cam.txt of the raw data (P_rect_00 to
//! P_rect_03, and the raw cameras). Karlsruhe's sequences (P1_roi, P2_roi) are similar.

use std::collections::HashMap;

use nalgebra::{Matrix3, Matrix3x4, Vector3};

use super::draft::{Draft, KittiCameras, ReadOptions};
use super::lens::{self, Model};
use super::rectified::{self, Eye, Pair};
use crate::check::Sources;
use crate::error::Result;
use crate::{CalibrationError, Camera, Rectification, RectifiedView, StereoCalibration};

/// Names of the projections of the left and the right camera by pair of cameras, the default first.
const PAIRS: [(Option<KittiCameras>, [&str; 2]); 5] = [
    (Some(KittiCameras::Colour), ["P_rect_02", "P_rect_03"]),
    (Some(KittiCameras::Grey), ["P_rect_00", "P_rect_01"]),
    (Some(KittiCameras::Colour), ["P2", "P3"]),
    (Some(KittiCameras::Grey), ["P0", "P1"]),
    (None, ["P1_roi", "P2_roi"]),
];

struct Lines<'a> {
    file: &'a str,
    /// The text after each key, and its line.
    values: HashMap<&'a str, (usize, &'a str)>,
}

fn split(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    Some((key.trim(), value.trim()))
}

fn is_row(value: &str) -> bool {
    let mut words = value.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word.parse::<f64>().is_ok())
}

pub(super) fn is_calibration(text: &str) -> bool {
    text.lines().filter_map(split).any(|(key, value)| {
        let is_projection = PAIRS.iter().any(|(_, keys)| keys.contains(&key));
        is_projection && is_row(value) && value.contains(char::is_whitespace)
    })
}

impl<'a> Lines<'a> {
    fn of(file: &'a str, text: &'a str) -> Result<Self> {
        let mut values = HashMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some((key, value)) = split(line) else { continue };
            if values.insert(key, (number, value)).is_some() {
                let message = format!("{file}:{number}: `{key}` is there twice");
                return Err(CalibrationError::new(message));
            }
        }
        Ok(Self { file, values })
    }

    fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Returns the numbers of a key: exactly `N`.
    fn need<const N: usize>(&self, key: &str) -> Result<[f64; N]> {
        let file = self.file;
        let Some((line, value)) = self.values.get(key) else {
            return Err(CalibrationError::new(format!(
                "{file}: `{key}` is missing: a stereo pair needs both views (is the file cut off?)"
            )));
        };
        let numbers: Vec<f64> = value.split_whitespace().map_while(|w| w.parse().ok()).collect();
        let found = numbers.len();
        numbers.try_into().map_err(|_| {
            let what = format!("{file}:{line}: `{key}`: expected {N} numbers, found {found}");
            CalibrationError::new(what)
        })
    }

    /// Returns width and height.
    fn size(&self, key: &str) -> Result<Option<(usize, usize)>> {
        if !self.has(key) {
            return Ok(None);
        }
        let [width, height] = self.need::<2>(key)?;
        let side = |value: f64| {
            let fits = value.fract() == 0.0 && (1.0..=65536.0).contains(&value);
            fits.then_some(value as usize)
        };
        match (side(width), side(height)) {
            (Some(width), Some(height)) => Ok(Some((width, height))),
            _ => Err(CalibrationError::new(format!(
                "{}: `{key}`: {width} x {height} is no size of a picture",
                self.file
            ))),
        }
    }

    fn projection(&self, key: &str) -> Result<Matrix3x4<f64>> {
        Ok(Matrix3x4::from_row_slice(&self.need::<12>(key)?))
    }

    fn rotation(&self, key: &str) -> Result<Matrix3<f64>> {
        Ok(Matrix3::from_row_slice(&self.need::<9>(key)?))
    }

    /// Returns a camera before rectification; its keys end with its number.
    fn raw_camera(&self, number: &str, (width, height): (usize, usize)) -> Result<Camera> {
        let k = self.need::<9>(&format!("K_{number}"))?;
        let coefficients = self.need::<5>(&format!("D_{number}"))?;
        let lens = lens::lens(Model::PlumbBob, &coefficients).map_err(CalibrationError::new)?;
        let (focal, centre) = ([k[0], k[4]], [k[2], k[5]]);
        Ok(Camera { width, height, focal, centre, skew: 0.0, lens })
    }
}

/// Reads one pair of the file's cameras: rectified, or raw if the images have the raw size.
pub(super) fn read(file: &str, text: &str, options: &ReadOptions) -> Result<Draft> {
    let lines = Lines::of(file, text)?;
    let there = PAIRS.iter().filter(|(_, keys)| keys.iter().any(|key| lines.has(key)));
    let wanted = |cameras: &Option<KittiCameras>| {
        cameras.is_none() || options.kitti.is_none() || *cameras == options.kitti
    };
    let Some((cameras, keys)) = there.clone().find(|(cameras, _)| wanted(cameras)) else {
        let found: Vec<_> = there.flat_map(|(_, keys)| keys).copied().collect();
        return Err(CalibrationError::new(format!(
            "{file}: no projections of the cameras that were chosen (P0, P1: grey; P2, P3: colour); \
             there are {}",
            found.join(", ")
        )));
    };
    let numbers = keys.map(|key| key.strip_prefix("P_rect_").unwrap_or_default());
    let rectified_size = lines.size(&format!("S_rect_{}", numbers[0]))?;
    let raw_size = lines.size(&format!("S_{}", numbers[0]))?;
    if raw_size.is_some() && raw_size == options.size && raw_size != rectified_size {
        return Ok(Draft { by_size: true, ..raw(&lines, numbers)? });
    }
    let (left, right) = (lines.projection(keys[0])?, lines.projection(keys[1])?);
    let size = match rectified_size.or(options.size) {
        Some(size) => size,
        None => return Err(rectified::without_size(file)),
    };
    let eye =
        |p: &Matrix3x4<f64>| Eye { focal: [p[(0, 0)], p[(1, 1)]], centre: [p[(0, 2)], p[(1, 2)]] };
    // Origin of the common frame in this camera's frame, in metres to the right.
    let place = |p: &Matrix3x4<f64>| (p[(0, 3)] - p[(0, 2)] * p[(2, 3)]) / p[(0, 0)];
    let mut draft = rectified::draft(Pair {
        file,
        keys: *keys,
        size,
        left: eye(&left),
        right: eye(&right),
        baseline_m: place(&left) - place(&right),
    });
    let is_choice = *cameras == Some(KittiCameras::Colour) && options.kitti.is_none();
    if is_choice && (lines.has("P0") || lines.has("P_rect_00")) {
        draft.notes.push(format!(
            "{file}: of the two pairs of cameras, the colour ones ({}, {}) are taken; --kitti-cameras \
             grey takes the others",
            keys[0], keys[1]
        ));
    }
    draft.by_size = raw_size.is_some();
    Ok(draft)
}

fn raw(lines: &Lines, numbers: [&str; 2]) -> Result<Draft> {
    let file = lines.file;
    let key = |what: &str, eye: usize| format!("{what}_{}", numbers[eye]);
    let size = |eye: usize| {
        let key = key("S", eye);
        lines.size(&key)?.ok_or_else(|| CalibrationError::new(format!("{file}: no `{key}`")))
    };
    // From the first camera's frame to each one's.
    let pose = |eye: usize| -> Result<_> {
        let translation = Vector3::from(lines.need::<3>(&key("T", eye))?);
        Ok((lines.rotation(&key("R", eye))?, translation))
    };
    let (from, to) = (pose(0)?, pose(1)?);
    let rotation = to.0 * from.0.transpose();
    let [p_left, p_right] = [0, 1].map(|eye| lines.projection(&key("P_rect", eye)));
    let (mut p_left, mut p_right) = (p_left?, p_right?);
    // The projections are relative to the first camera; ours to the left one.
    let from_left = p_right.column(3) - p_left.column(3);
    p_right.set_column(3, &from_left);
    p_left.column_mut(3).fill(0.0);
    let rectified = lines.size(&key("S_rect", 0))?;
    let (width, height) = match rectified {
        Some(size) => size,
        None => size(0)?,
    };
    let view = |eye: usize, projection| -> Result<_> {
        Ok(RectifiedView { rotation: lines.rotation(&key("R_rect", eye))?, projection })
    };
    let calibration = StereoCalibration {
        left: lines.raw_camera(numbers[0], size(0)?)?,
        right: lines.raw_camera(numbers[1], size(1)?)?,
        rotation,
        translation: to.1 - rotation * from.1,
        rectification: Some(Rectification {
            width,
            height,
            left: view(0, p_left)?,
            right: view(1, p_right)?,
        }),
    };
    let of = |eye: usize| format!("K_{0}, D_{0}", numbers[eye]);
    let pose = format!("R_{0}, T_{0}, R_{1}, T_{1}", numbers[0], numbers[1]);
    let sources = Sources::of_file(file, [&of(0), &of(1), &pose, "R_rect, P_rect"]);
    Ok(Draft::new(calibration, sources))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::Lens;

    /// The colour cameras of calib_cam_to_cam.txt of 2011-09-26.
    const RAW: &str = "\
calib_time: 09-Jan-2012 13:57:47
corner_dist: 9.950000e-02
S_02: 1.392000e+03 5.120000e+02
K_02: 9.597910e+02 0.000000e+00 6.960217e+02 0.000000e+00 9.569251e+02 2.241806e+02 0.000000e+00 0.000000e+00 1.000000e+00
D_02: -3.691481e-01 1.968681e-01 1.353473e-03 5.677587e-04 -6.770705e-02
R_02: 9.999758e-01 -5.267463e-03 -4.552439e-03 5.251945e-03 9.999804e-01 -3.413835e-03 4.570332e-03 3.389843e-03 9.999838e-01
T_02: 5.956621e-02 2.900141e-04 2.577209e-03
S_rect_02: 1.242000e+03 3.750000e+02
R_rect_02: 9.998817e-01 1.511453e-02 -2.841595e-03 -1.511724e-02 9.998853e-01 -9.338510e-04 2.827154e-03 9.766976e-04 9.999955e-01
P_rect_02: 7.215377e+02 0.000000e+00 6.095593e+02 4.485728e+01 0.000000e+00 7.215377e+02 1.728540e+02 2.163791e-01 0.000000e+00 0.000000e+00 1.000000e+00 2.745884e-03
S_03: 1.392000e+03 5.120000e+02
K_03: 9.037596e+02 0.000000e+00 6.957519e+02 0.000000e+00 9.019653e+02 2.242509e+02 0.000000e+00 0.000000e+00 1.000000e+00
D_03: -3.639558e-01 1.788651e-01 6.029694e-04 -3.922424e-04 -5.382460e-02
R_03: 9.995599e-01 1.699522e-02 -2.431313e-02 -1.704422e-02 9.998531e-01 -1.809756e-03 2.427880e-02 2.223358e-03 9.997028e-01
T_03: -4.731050e-01 5.551470e-03 -5.250882e-03
S_rect_03: 1.242000e+03 3.750000e+02
R_rect_03: 9.998321e-01 -7.193136e-03 1.685599e-02 7.232804e-03 9.999712e-01 -2.293585e-03 -1.683901e-02 2.415116e-03 9.998553e-01
P_rect_03: 7.215377e+02 0.000000e+00 6.095593e+02 -3.395242e+02 0.000000e+00 7.215377e+02 1.728540e+02 2.199936e+00 0.000000e+00 0.000000e+00 1.000000e+00 2.729905e-03
";

    /// Returns the same cameras in the benchmarks' format, without the image size.
    fn benchmark() -> String {
        let lines = RAW.lines().filter(|line| line.starts_with("P_rect_"));
        let mut text: String =
            lines.map(|line| format!("{}\n", line.replace("P_rect_0", "P"))).collect();
        text += "R0_rect: 1.0 0.0 0.0 0.0 1.0 0.0 0.0 0.0 1.0\nTr_velo_to_cam: 1 2 3\n\n";
        text
    }

    fn read(text: &str, size: Option<(usize, usize)>) -> Result<super::super::Loaded, String> {
        parse(&[("calib.txt", text)], &ReadOptions { size, ..ReadOptions::default() })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_benchmarks_say_focal_length_and_baseline() {
        let size = (1242, 375);
        for (text, size) in [(benchmark(), Some(size)), (RAW.to_owned(), None)] {
            let loaded = read(&text, size).unwrap();
            assert!(loaded.calibration.comes_rectified(), "{loaded:?}");
            assert_eq!(
                (loaded.calibration.left.width, loaded.calibration.left.height),
                (1242, 375)
            );
            let geometry = loaded.calibration.rectification.unwrap().geometry();
            assert_eq!((geometry.focal_px, geometry.centre_x_px), (721.5377, 609.5593));
            assert_eq!(geometry.right_centre_x_px, 609.5593);
            // By hand: (44.85728 - 609.5593 * 0.002745884 + 339.5242 + 609.5593 * 0.002729905) / 721.5377
            assert!((geometry.baseline_m - 0.532_712).abs() < 1e-6, "{geometry:?}");
            // And so a disparity of 40 px is 721.5377 * 0.532712 / 40 = 9.6093 m away.
            assert!((geometry.depth_m(40.0).unwrap() - 9.6093).abs() < 1e-4);
        }
    }

    #[test]
    fn the_grey_cameras_are_taken_where_there_are_no_others() {
        let grey = "P0: 700 0 600 0 0 700 170 0 0 0 1 0\nP1: 700 0 600 -378 0 700 170 0 0 0 1 0\n";
        let loaded = read(grey, Some((1241, 376))).unwrap();
        assert!((loaded.calibration.translation.x + 0.54).abs() < 1e-12);
        assert_eq!(loaded.notes, [""; 0]);
        let all = read(&(grey.to_owned() + &benchmark()), Some((1241, 376))).unwrap();
        assert!((all.calibration.translation.x + 0.5327).abs() < 1e-4);
        assert!(all.notes.len() == 1 && all.notes[0].contains("(P2, P3)"), "{all:?}");
    }

    #[test]
    fn either_pair_of_cameras_can_be_chosen() {
        let grey = "P0: 700 0 600 0 0 700 170 0 0 0 1 0\nP1: 700 0 600 -378 0 700 170 0 0 0 1 0\n";
        let all = grey.to_owned() + &benchmark();
        let read = |text: &str, kitti| {
            let options = ReadOptions { size: Some((1241, 376)), kitti, ..ReadOptions::default() };
            parse(&[("calib.txt", text)], &options).map_err(|error| error.to_string())
        };
        for (kitti, baseline_m) in [(KittiCameras::Grey, 0.54), (KittiCameras::Colour, 0.5327)] {
            let loaded = read(&all, Some(kitti)).unwrap();
            assert!((loaded.calibration.translation.x + baseline_m).abs() < 1e-4, "{kitti:?}");
            assert_eq!(loaded.notes, [""; 0]);
        }
        let error = read(grey, Some(KittiCameras::Colour)).unwrap_err();
        assert!(error.contains("there are P0, P1"), "{error}");
    }

    #[test]
    fn raw_pictures_are_rectified() {
        let raw = read(RAW, Some((1392, 512))).unwrap();
        let calibration = &raw.calibration;
        assert!(!calibration.comes_rectified());
        assert_eq!(calibration.left.focal, [959.791, 956.9251]);
        assert!(matches!(calibration.right.lens, Lens::Brown(k) if k[4] == -0.0538246));
        let rectification = calibration.rectification.as_ref().unwrap();
        assert_eq!((rectification.width, rectification.height), (1242, 375));
        let apart = calibration.translation.norm() - rectification.geometry().baseline_m;
        assert!(apart.abs() < 1e-3, "{apart}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let text = benchmark();
        let error = read(&text, None).unwrap_err();
        assert!(error.contains("--size"), "{error}");
        let left: String = text.lines().take(1).map(|line| format!("{line}\n")).collect();
        let size = Some((1242, 375));
        for (text, words) in [
            (left.as_str(), "`P3` is missing"),
            (&(left.clone() + "P3: 1 2 3\n"), "calib.txt:2: `P3`: expected 12 numbers, found 3"),
            (&(left.clone() + &left), "calib.txt:2: `P2` is there twice"),
            (&RAW.replace("S_rect_02: 1.242000e+03", "S_rect_02: -1"), "is no size of a picture"),
            (&text.replace("P3", "P9").replace("P2", "P3").replace("P9", "P2"), "swapped"),
            (&text.replace("-3.395242e+02", "9.485728e+01"), "swapped"),
        ] {
            let error = read(text, size).unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        }
    }
}
