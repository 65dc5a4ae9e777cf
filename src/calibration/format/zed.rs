//! ZED's factory calibration (SN*.conf): sections of `key=value` by camera and mode, lengths in millimetres.
//!
//! By Stereolabs' own programs: stereo_calibration of zedx-one-capture writes these files from cv::stereoCalibrate
//! (T = (-Baseline, TY, TZ), Rodrigues vector (RX, CV, RZ), coefficients also in sections of their own), and
//! calibration.hpp of zed-opencv-native reads them (sections by the width of the images, TY and TZ 0 if missing).

use std::collections::HashMap;

use nalgebra::{Rotation3, Vector3};

use super::draft::{Draft, ReadOptions};
use super::lens::{self, Model};
use super::rectified;
use crate::check::Sources;
use crate::error::Result;
use crate::{CalibrationError, Camera, StereoCalibration};

/// Modes of the cameras with the size of a view.
const MODES: [(&str, (usize, usize)); 8] = [
    ("4K", (3840, 2160)),
    ("QHDPLUS", (3200, 1800)),
    ("2K", (2208, 1242)),
    ("FHD1200", (1920, 1200)),
    ("FHD", (1920, 1080)),
    ("HD", (1280, 720)),
    ("SVGA", (960, 600)),
    ("VGA", (672, 376)),
];

/// Metres per unit of the files.
const METRES: f64 = 0.001;

pub(super) fn is_calibration(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("[LEFT_CAM_"))
}

/// The values of a file, by section and key in upper case.
struct Sections<'a> {
    file: &'a str,
    values: HashMap<(String, String), (usize, &'a str)>,
}

impl<'a> Sections<'a> {
    fn of(file: &'a str, text: &'a str) -> Result<Self> {
        let (mut values, mut section) = (HashMap::new(), String::new());
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.to_ascii_uppercase();
            } else if let Some((key, value)) = line.split_once('=')
                && !line.starts_with([';', '#'])
            {
                let key = (section.clone(), key.trim().to_ascii_uppercase());
                if values.insert(key, (number, value.trim())).is_some() {
                    let message = format!("{file}:{number}: it is there twice: {line}");
                    return Err(CalibrationError::new(message));
                }
            }
        }
        Ok(Self { file, values })
    }

    fn get(&self, section: &str, key: &str) -> Result<Option<f64>> {
        let found = self.values.get(&(section.to_owned(), key.to_owned()));
        let number = |(line, value): &(usize, &str)| {
            value.parse().map_err(|_| {
                let file = self.file;
                CalibrationError::new(format!("{file}:{line}: `{key}`: {value:?} is no number"))
            })
        };
        found.map(number).transpose()
    }

    fn need(&self, section: &str, key: &str) -> Result<f64> {
        self.get(section, key)?.ok_or_else(|| {
            let file = self.file;
            let what = format!("{file}: `{key}` of [{section}] is missing (is the file cut off?)");
            CalibrationError::new(what)
        })
    }

    /// Returns the numbers of these keys; missing ones are 0.
    fn all<const N: usize>(&self, section: &str, keys: [&str; N]) -> Result<[f64; N]> {
        let mut values = [0.0; N];
        for (value, key) in values.iter_mut().zip(keys) {
            *value = self.get(section, key)?.unwrap_or(0.0);
        }
        Ok(values)
    }

    fn camera(&self, side: &str, mode: &str, (width, height): (usize, usize)) -> Result<Camera> {
        let own = format!("{side}_CAM_{mode}");
        let need = |key| self.need(&own, key);
        let (focal, centre) = ([need("FX")?, need("FY")?], [need("CX")?, need("CY")?]);
        // One section for all modes, or in each mode's section.
        let apart = format!("{side}_DISTO");
        let section = if self.get(&apart, "K1")?.is_some() { &apart } else { &own };
        self.need(section, "K1")?;
        let is_fisheye = self.get(section, "K4")?.is_some() && self.get(section, "P1")?.is_none();
        let lens = match is_fisheye {
            true => {
                let k = self.all(section, ["K1", "K2", "K3", "K4"])?;
                lens::lens(Model::Fisheye, &k)
            }
            false => {
                let keys = ["K1", "K2", "P1", "P2", "K3", "K4", "K5", "K6"];
                lens::lens(Model::Brown, &self.all(section, keys)?)
            }
        };
        let wrong = |what| CalibrationError::new(format!("{}: [{section}]: {what}", self.file));
        let lens = lens.map_err(wrong)?;
        Ok(Camera { width, height, focal, centre, skew: 0.0, lens })
    }
}

/// Reads the cameras in the mode of the images' size.
pub(super) fn read(file: &str, text: &str, options: &ReadOptions) -> Result<Draft> {
    let sections = Sections::of(file, text)?;
    let is_there = |(mode, _): &&(&str, _)| {
        sections.values.contains_key(&(format!("LEFT_CAM_{mode}"), "FX".to_owned()))
    };
    let there: Vec<_> = MODES.iter().filter(is_there).collect();
    let (mode, size) = match (options.size, &there[..]) {
        (Some(size), _) => {
            let found = there.iter().find(|(_, of_mode)| *of_mode == size);
            **found.ok_or_else(|| {
                let of = |(mode, (width, height)): &&(&str, _)| format!("{width}x{height} ({mode})");
                CalibrationError::new(format!(
                    "{file}: it has no mode of {}x{}, only {}; for scaled images, `stereod calibration convert \
                     {file} --size WIDTHxHEIGHT -o OUT.toml` with the size of a mode",
                    size.0,
                    size.1,
                    there.iter().map(of).collect::<Vec<_>>().join(", ")
                ))
            })?
        }
        (None, [only]) => **only,
        (None, _) => return Err(rectified::without_size(file)),
    };
    let of_mode = |key: &str| sections.need("STEREO", &format!("{key}_{mode}"));
    let rotation = Vector3::new(of_mode("RX")?, of_mode("CV")?, of_mode("RZ")?);
    let [y, z] = sections.all("STEREO", ["TY", "TZ"])?;
    let translation = Vector3::new(-sections.need("STEREO", "BASELINE")?, y, z) * METRES;
    let calibration = StereoCalibration {
        left: sections.camera("LEFT", mode, size)?,
        right: sections.camera("RIGHT", mode, size)?,
        rotation: *Rotation3::new(rotation).matrix(),
        translation,
        rectification: None,
    };
    let eyes = ["LEFT", "RIGHT"].map(|side| format!("[{side}_CAM_{mode}]"));
    let sources = Sources {
        unit_m: METRES,
        ..Sources::of_file(file, [&eyes[0], &eyes[1], "[STEREO]", "rectification"])
    };
    Ok(Draft { by_size: true, ..Draft::new(calibration, sources) })
}

#[cfg(test)]
mod tests {
    use nalgebra::Matrix3;
    use proptest::prelude::*;

    use super::super::{Format, Loaded, parse};
    use super::*;
    use crate::Lens;

    const TEXT: &str = include_str!("../../../tests/calibrations/SN40735594.conf");

    fn read(text: &str, size: Option<(usize, usize)>) -> Result<Loaded> {
        parse(&[("SN1.conf", text)], &ReadOptions { size, ..ReadOptions::default() })
    }

    #[test]
    fn the_numbers_are_those_of_opencv() {
        // cv2.Rodrigues, then R1, R2, P1 and P2 of cv2.stereoRectify(CALIB_ZERO_DISPARITY, alpha=0); see
        // tests/calibrations/README.md.
        let hd = [
            [0.999957757281679, 0.00156410914884629, 0.00905743974670062],
            [-0.00153584217079138, 0.9999939315976475, -0.00312697245044022],
            [-0.00906227570872988, 0.00311292956070141, 0.9999540913604629],
        ];
        let vga = [
            [0.9999572242892204, 0.00161409501158308, 0.00910737553256575],
            [-0.00158585423553841, 0.999993915048255, -0.00310723877535402],
            [-0.00911233549323222, 0.00309266289094387, 0.9999536993171743],
        ];
        for (size, rotation, focal, centre) in [
            ((1280, 720), hd, 687.995613318215, [658.3787460327148, 367.25864028930664]),
            ((672, 376), vga, 341.88891662097967, [344.4459686279297, 191.026273727417]),
        ] {
            let loaded = read(TEXT, Some(size)).unwrap();
            assert!((loaded.format, loaded.by_size) == (Format::Zed, true));
            let calibration = loaded.calibration;
            let due = Matrix3::from_fn(|row, column| rotation[row][column]);
            assert!((calibration.rotation - due).abs().max() < 1e-12, "{}", calibration.rotation);
            assert_eq!(calibration.translation, Vector3::new(-119.905, 0.148, -0.215) * METRES);
            assert_eq!((calibration.left.width, calibration.left.height), size);
            let rectified = calibration.rectify(Some(0.0), size).unwrap();
            let p = rectified.right.projection;
            // OpenCV rounds to single precision and stops its iterations early.
            for (found, due) in [(p[(0, 0)], focal), (p[(0, 2)], centre[0]), (p[(1, 2)], centre[1])]
            {
                assert!((found - due).abs() < 0.05, "{size:?}: {found} is not {due}");
            }
            assert!((p[(0, 3)] / p[(0, 0)] + 0.119_905_284_5).abs() < 1e-6);
        }
        let right = read(TEXT, Some((1280, 720))).unwrap().calibration.right;
        assert_eq!((right.focal, right.centre), ([701.325; 2], [648.512, 358.127]));
        let Lens::Brown(k) = right.lens else { panic!("{right:?}") };
        assert_eq!(k[..5], [-0.171845, 0.0241923, -0.000222, 0.000105, 0.00211]);
    }

    #[test]
    fn sections_are_chosen_by_the_size() {
        assert!(read(TEXT, None).unwrap_err().lacks_size());
        let error = read(TEXT, Some((1920, 1080))).unwrap_err().to_string();
        assert!(
            error.contains("no mode of 1920x1080, only 1280x720 (HD), 672x376 (VGA)"),
            "{error}"
        );
        // One mode needs no size; older files have no TY and TZ, and other cases.
        let (hd, stereo) = (TEXT.find("[LEFT_CAM_VGA]").unwrap(), TEXT.find("[STEREO]").unwrap());
        let one = format!("{}{}", &TEXT[..hd], &TEXT[stereo..]);
        let old = one.replace("TY=0.148\nTZ=-0.215\n", "").replace("Baseline", "BaseLine");
        let loaded = read(&old, None).unwrap();
        assert_eq!(loaded.calibration.translation, Vector3::new(-0.119905, 0.0, 0.0));
        // Coefficients in their own sections: k4 without p1 means a fisheye lens.
        let bare: String = one
            .lines()
            .filter(|l| !l.starts_with(['k', 'p']))
            .fold(String::new(), |text, line| text + line + "\n");
        let lens = "\nk1 = 0.1\nk2 = 0.2\nk3 = 0.3\nk4 = 0.4\n";
        let apart = format!("{bare}[LEFT_DISTO]{lens}[RIGHT_DISTO]{lens}p1 = 0\np2 = 0\n");
        let StereoCalibration { left, right, .. } = read(&apart, None).unwrap().calibration;
        assert_eq!(left.lens, Lens::Fisheye([0.1, 0.2, 0.3, 0.4]));
        let Lens::Brown(k) = right.lens else { panic!("{right:?}") };
        assert_eq!(k[..6], [0.1, 0.2, 0.0, 0.0, 0.3, 0.4]);
        let error = read(&bare, None).unwrap_err().to_string();
        assert!(error.contains("`K1` of [LEFT_CAM_HD] is missing"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (from, to, words) in [
            ("fy=700.819\n", "", "`FY` of [LEFT_CAM_HD] is missing"),
            ("CV_HD=0.00906\n", "", "`CV_HD` of [STEREO] is missing"),
            ("Baseline=119.905", "Baseline=long", "SN1.conf:46: `BASELINE`: \"long\" is no number"),
            ("Baseline=119.905", "Baseline=-119.905", "exchange the left and the right"),
            ("TZ=-0.215", "TY=1", "SN1.conf:48: it is there twice: TY=1"),
            ("fx=700.819", "fx=nan", "not finite"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error =
                read(&TEXT.replacen(from, to, 1), Some((1280, 720))).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{words}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_text_is_read_or_refused(lines in prop::collection::vec("[A-Z_0-9a-z=\\[\\]. ;#-]{0,12}", 0..20)) {
            let _ = read(&format!("[LEFT_CAM_HD]\n{}", lines.join("\n")), None);
        }
    }
}
