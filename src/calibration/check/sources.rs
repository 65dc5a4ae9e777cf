//! Names of the parts of a calibration, and advice that fits its files.

/// Sources of the parts of a calibration, for messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources {
    /// The left camera, such as `calib.yml (K1, D1)`.
    pub left: String,
    pub right: String,
    /// Source of the right camera's pose, such as `calib.yml (R, T)`.
    pub pose: String,
    /// The rectification, such as `calib.yml (R1, R2, P1, P2)`.
    pub rectification: String,
    /// Advice on how to exchange the cameras.
    pub swap: String,
    /// Advice on how to invert the pose; `None` if there is no pose by itself.
    pub inverse: Option<String>,
    /// Advice on translations in another unit; `None`: names the units that are plausible.
    pub unit: Option<String>,
    /// The files as the command line names them.
    pub files: String,
    /// Metres per unit of the files' lengths.
    pub unit_m: f64,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            left: "the left camera".into(),
            right: "the right camera".into(),
            pose: "the right camera's pose".into(),
            rectification: "the rectification".into(),
            swap: "exchange the left and the right pictures".into(),
            inverse: None,
            unit: None,
            files: "FILE".into(),
            unit_m: 1.0,
        }
    }
}

/// Units that `--unit` knows, with their metres; the rare one last.
const UNITS: [(&str, f64); 4] = [("m", 1.0), ("cm", 0.01), ("mm", 0.001), ("inch", 0.0254)];

/// Baselines in metres that are common enough to suggest a unit.
const COMMON_M: std::ops::RangeInclusive<f64> = 0.005..=1.0;

impl Sources {
    /// Names parts of one file: the left camera, the right one, the pose, the rectification.
    pub fn of_file(file: &str, parts: [&str; 4]) -> Self {
        let [left, right, pose, rectification] = parts.map(|part| format!("{file} ({part})"));
        Self { left, right, pose, rectification, files: file.into(), ..Self::default() }
    }

    /// Advises to make a copy of these files with the cameras exchanged or the pose inverted.
    pub fn convertible(self, files: &str) -> Self {
        let convert =
            |flag: &str| format!("`stereod calibration convert {flag} {files} -o OUT.toml`");
        Self {
            swap: convert("--swap") + " exchanges the views",
            inverse: Some(convert("--inverse-pose") + " inverts it"),
            files: files.into(),
            ..self
        }
    }

    /// Returns the same with advice that states this size of the images, which the files lack.
    pub fn sized(self, (width, height): (usize, usize)) -> Self {
        let files = format!("{} --size {width}x{height}", self.files);
        let with =
            |advice: String| advice.replace(&format!("{} -o", self.files), &format!("{files} -o"));
        Self { swap: with(self.swap), inverse: self.inverse.map(with), files, ..self }
    }

    /// Returns the same with the cameras exchanged.
    pub fn swapped(self) -> Self {
        let swap = "they are right as they are: leave out --swap".into();
        Self { left: self.right, right: self.left, swap, inverse: None, ..self }
    }

    /// Returns the same with the pose inverted.
    pub fn inverted(self) -> Self {
        Self { swap: "leave out --inverse-pose".into(), inverse: None, ..self }
    }

    /// Returns advice on a baseline that is plausible in no unit or in another one; `None` if no other unit
    /// makes it plausible.
    pub fn other_unit(&self, baseline_m: f64) -> Option<String> {
        if self.unit.is_some() {
            return self.unit.clone();
        }
        let in_files = baseline_m / self.unit_m;
        let others = UNITS.iter().filter(|(_, metres)| *metres != self.unit_m);
        let mut readings: Vec<(&str, f64)> = others
            .map(|(unit, metres)| (*unit, in_files * metres))
            .filter(|(_, baseline_m)| COMMON_M.contains(baseline_m))
            .collect();
        // The usual baseline is a hand's width.
        let unlikely = |(unit, metres): &(&str, f64)| (*unit == "inch", (metres / 0.1).ln().abs());
        readings.sort_by(|a, b| unlikely(a).partial_cmp(&unlikely(b)).expect("finite"));
        let (likeliest, _) = readings.first()?;
        let all: Vec<String> = readings
            .iter()
            .map(|(unit, metres)| format!("{:.0} mm with --unit {unit}", metres * 1e3))
            .collect();
        Some(format!(
            "the lengths in the file may have another unit: the baseline is {}; `stereod calibration convert \
             --unit {likeliest} {} -o OUT.toml` takes the likeliest",
            all.join(", "),
            self.files
        ))
    }
}
