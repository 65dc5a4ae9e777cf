//! Verdict on a calibration in words, with advice.

use serde::Serialize;

use super::coverage::Coverage;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// Do not use it.
    Bad,
    /// Usable; more images would help.
    Usable,
    /// Nothing to improve.
    #[default]
    Good,
}

/// Quality of a calibration with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// In one word.
    pub quality: Quality,
    /// Sentences with findings and advice.
    pub words: Vec<String>,
    /// The findings that make it bad.
    #[serde(skip)]
    pub faults: Vec<String>,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quality = match self.quality {
            Quality::Bad => "bad",
            Quality::Usable => "usable",
            Quality::Good => "good",
        };
        write!(f, "{quality}: {}", self.words.join("; "))
    }
}

pub(super) struct Facts<'a> {
    pub used: usize,
    /// Root mean square of the reprojection error of both views in pixels.
    pub rms_px: f64,
    /// The larger one of the two cameras by themselves.
    pub alone_rms_px: f64,
    /// Mean row error after rectification in pixels; NaN if rows cannot be compared.
    pub row_error_px: f64,
    /// Distance of the cameras in metres.
    pub baseline_m: f64,
    /// Its standard deviation, if known.
    pub baseline_sd_m: Option<f64>,
    /// Standard deviations of the focal lengths in pixels.
    pub focal_sd_px: Option<[f64; 2]>,
    /// Set if one of these is large because the board is bent.
    pub bent: bool,
    /// Coverage of each image by the board.
    pub coverage: &'a [Coverage; 2],
    /// The left camera's centre in the right one's frame, in metres.
    pub translation: [f64; 3],
    /// Focal lengths of both cameras in pixels.
    pub focal: [f64; 2],
    /// Focal length after rectification in pixels; `None` if the cameras cannot be rectified.
    pub rectified_focal_px: Option<f64>,
    pub tilts: &'a [[f64; 2]],
    /// The nearest board's distance in metres.
    pub nearest_m: f64,
    /// The farthest board's distance over the nearest one's.
    pub spread: f64,
}

impl Facts<'_> {
    /// Returns the standard deviation of the baseline relative to it.
    fn baseline_part(&self) -> f64 {
        self.baseline_sd_m.unwrap_or(f64::NAN) / self.baseline_m
    }

    /// Reports whether each camera is well known, but not both together: pairs show different poses.
    fn are_mispaired(&self) -> bool {
        self.rms_px > RMS_PX[0] && self.rms_px > MISPAIRED * self.alone_rms_px
    }

    /// Reports whether the cameras' places cannot be distinguished.
    fn in_one_place(&self) -> bool {
        let part = self.baseline_m / self.nearest_m;
        // Sharp images cannot resolve a shorter baseline, however small the computed deviation.
        part < TOUCHING[0] || part < TOUCHING[1] && self.baseline_part() > 0.5
    }
}

/// Number of pairs below which a calibration is bad, and below which it could be better.
const PAIRS: [usize; 2] = [6, 10];

/// Root mean square above which a calibration is bad, and above which it could be better; pixels.
const RMS_PX: [f64; 2] = [1.5, 0.8];

/// Smallest ratio of the joint error to the single cameras' at which pairs do not belong together.
const MISPAIRED: f64 = 4.0;

/// Mean row error that spoils matching, and that shows in it; pixels.
const ROWS_PX: [f64; 2] = [0.6, 0.25];

/// Smallest focal length after rectification, relative to the cameras', at which little is left of the
/// images, and at which they lose their border.
const ENLARGED: [f64; 2] = [1.5, 1.2];

/// Relative uncertainty of a focal length or baseline that is bad, and that could be better.
const KNOWN: [f64; 2] = [0.03, 0.006];

/// Baseline relative to the distance of the nearest board below which the cameras are in one place,
/// and below which they are if its standard deviation is larger than half of it.
const TOUCHING: [f64; 2] = [1e-4, 0.02];

/// Smallest ratio of the distances of the farthest and the nearest board that counts as different.
const SPREAD: f64 = 1.2;

/// Smallest tilt of a board that determines the focal length; radians.
const TILTED: f64 = 0.26;

const FLAT: &str = "the board is bent: glue it to a flat plate";

/// Pairs with the board in each ninth of the image.
const PER_NINTH: usize = 1;

impl Verdict {
    pub(super) fn of(facts: &Facts) -> Verdict {
        let mut verdict = Verdict::default();
        if facts.are_mispaired() {
            verdict.bad(format!(
                "the pictures of a pair do not show the board in one place (off by {:.1} px, but \
                 {:.1} px for each camera by itself): check that the pictures are paired rightly \
                 (the numbers in their names) and taken at the same moment",
                facts.rms_px, facts.alone_rms_px
            ));
            return verdict;
        }
        if facts.in_one_place() {
            verdict.bad(
                "both cameras seem to be in one place, as where the pictures of one are given for both: \
                 give each view its own",
            );
        } else {
            verdict.place(facts);
        }
        verdict.errors(facts);
        verdict.border(facts);
        verdict.certainty(facts);
        verdict.coverage(facts);
        if verdict.words.is_empty() {
            verdict.words.push(format!(
                "rows agree within {:.2} px on average, the baseline is known to {:.2} mm, and {} \
                 pairs cover {:.0} % of the left and {:.0} % of the right picture",
                facts.row_error_px,
                1e3 * facts.baseline_sd_m.unwrap_or_default(),
                facts.used,
                100.0 * facts.coverage[0].area(),
                100.0 * facts.coverage[1].area()
            ));
        }
        verdict
    }

    fn bad(&mut self, words: impl Into<String>) {
        self.say(Quality::Bad, words.into());
    }

    fn say(&mut self, quality: Quality, words: String) {
        self.quality = self.quality.min(quality);
        if quality == Quality::Bad {
            self.faults.push(words.clone());
        }
        self.words.push(words);
    }

    /// Adds a finding if a value is above one of two limits.
    fn graded(&mut self, value: f64, limits: [f64; 2], words: impl Fn() -> String) {
        if value > limits[0] || value.is_nan() {
            self.say(Quality::Bad, words());
        } else if value > limits[1] {
            self.say(Quality::Usable, words());
        }
    }

    fn place(&mut self, facts: &Facts) {
        let [x, y, z] = facts.translation;
        if x.abs() < y.abs().max(z.abs()) {
            let how = if y.abs() > z.abs() { "above" } else { "behind" };
            self.bad(format!(
                "the cameras stand one {how} the other; matching needs them side by side"
            ));
        } else if x > 0.0 {
            self.bad(
                "the views are swapped: the left camera stands to the right of the right one; give \
                 the pictures the other way round",
            );
        }
    }

    fn errors(&mut self, facts: &Facts) {
        self.graded(facts.rms_px, RMS_PX, || {
            format!(
                "the corners are off by {:.2} px (RMS): is the board flat and the square's size \
                 right, or does the lens need another --model?",
                facts.rms_px
            )
        });
        // Rows that cannot be compared are reported with the cameras' poses.
        let rows = facts.row_error_px;
        let mean = if rows.is_nan() { 0.0 } else { rows };
        self.graded(mean, ROWS_PX, || {
            format!("rows of the two views disagree by {rows:.2} px on average")
        });
    }

    /// Detects a lens model that is wrong where no board was: pixels at the border then have no direction, or
    /// a wrong one, and rectification keeps only the middle.
    fn border(&mut self, facts: &Facts) {
        let own = facts.focal[0].max(facts.focal[1]);
        let rectified = facts.rectified_focal_px.unwrap_or(own);
        self.graded(rectified / own, ENLARGED, || {
            format!(
                "rectified pictures show only the middle (focal length {rectified:.0} px, the cameras' {own:.0} \
                 px): the lens is not known at the border; take pairs with the board in the corners, or \
                 choose --model plumb-bob"
            )
        });
    }

    fn certainty(&mut self, facts: &Facts) {
        let used = facts.used;
        if used < PAIRS[1] {
            let quality = if used < PAIRS[0] { Quality::Bad } else { Quality::Usable };
            let more = PAIRS[1] - used;
            self.say(quality, format!("only {used} pairs were used; take {more} more or better"));
        }
        let sd = facts.focal_sd_px.unwrap_or([f64::NAN; 2]);
        let part = (sd[0] / facts.focal[0]).max(sd[1] / facts.focal[1]);
        let part = if sd.iter().any(|sd| sd.is_nan()) { f64::NAN } else { part };
        // One view again and again looks like a bent board.
        let bent = facts.bent && facts.spread >= SPREAD;
        let advice = |otherwise| if bent { FLAT } else { otherwise };
        self.graded(part, KNOWN, || match part.is_finite() {
            true => format!(
                "the focal length is known to {:.1} % only; {}",
                100.0 * part,
                advice("tilt the board more, nearer and farther")
            ),
            false => "the focal length cannot be told; tilt the board more, nearer and farther"
                .to_owned(),
        });
        let part = facts.baseline_part();
        if !facts.in_one_place() {
            self.graded(part, KNOWN, || match part.is_finite() {
                true => {
                    let percent = 100.0 * part;
                    let advice = advice("bring the board nearer");
                    format!("the baseline is known to {percent:.1} % only; {advice}")
                }
                false => "the baseline cannot be told; bring the board nearer".to_owned(),
            });
        }
        let sides = [(0, "left or right"), (1, "up or down")];
        for (axis, words) in sides {
            if !facts.tilts.iter().any(|tilt| tilt[axis].abs() > TILTED) {
                let words = format!("the board was never tilted {words}; take 3 pairs with it so");
                self.say(Quality::Usable, words);
            }
        }
        if facts.spread < SPREAD {
            let words = "the board was always at the same distance; take pairs nearer and farther";
            self.say(Quality::Usable, words.to_owned());
        }
    }

    fn coverage(&mut self, facts: &Facts) {
        for (eye, coverage) in ["left", "right"].into_iter().zip(facts.coverage) {
            for part in coverage.missing(PER_NINTH) {
                let words = format!(
                    "the board was never in {part} of the {eye} picture; take 3 pairs with it there"
                );
                self.say(Quality::Usable, words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of a good calibration.
    fn facts(coverage: &[Coverage; 2]) -> Facts<'_> {
        Facts {
            used: 20,
            rms_px: 0.2,
            alone_rms_px: 0.2,
            row_error_px: 0.1,
            baseline_m: 0.1,
            baseline_sd_m: Some(1e-5),
            focal_sd_px: Some([0.3; 2]),
            bent: false,
            coverage,
            translation: [-0.1, 0.0, 0.0],
            focal: [500.0, 510.0],
            rectified_focal_px: None,
            tilts: &[[0.5; 2]],
            nearest_m: 0.5,
            spread: 2.0,
        }
    }

    fn covered() -> [Coverage; 2] {
        let mut coverage = [Coverage::new((640, 480)), Coverage::new((640, 480))];
        for eye in &mut coverage {
            eye.ninths = [[1; 3]; 3];
        }
        coverage
    }

    #[test]
    fn a_lens_that_is_wrong_at_the_border_is_told() {
        let coverage = covered();
        let verdict =
            |rectified_focal_px| Verdict::of(&Facts { rectified_focal_px, ..facts(&coverage) });
        for fits in [None, Some(250.0), Some(520.0)] {
            assert_eq!(verdict(fits).quality, Quality::Good, "{}", verdict(fits));
        }
        assert_eq!(verdict(Some(700.0)).quality, Quality::Usable);
        let wrong = verdict(Some(1367.0));
        assert!(wrong.quality == Quality::Bad && wrong.to_string().contains("--model"), "{wrong}");
    }

    #[test]
    fn an_uncertain_calibration_names_the_cause() {
        let coverage = covered();
        let verdict = |facts: Facts<'_>| Verdict::of(&facts).to_string();
        let told = |words: &str, part: &str| assert!(words.contains(part), "{words}");
        let vague = || Facts { focal_sd_px: Some([5.0; 2]), ..facts(&coverage) };
        told(&verdict(vague()), "known to 1.0 % only; tilt the board more");
        told(&verdict(Facts { bent: true, ..vague() }), "known to 1.0 % only; the board is bent");
        let same = verdict(Facts { bent: true, spread: 1.1, ..vague() });
        told(&same, "known to 1.0 % only; tilt the board more");
        told(&verdict(Facts { focal_sd_px: None, ..vague() }), "the focal length cannot be told");
        // An unknown baseline is no baseline of 0.
        let unknown = verdict(Facts { baseline_sd_m: Some(0.09), ..facts(&coverage) });
        told(&unknown, "the baseline is known to 90.0 % only; bring the board nearer");
        let one = Facts { baseline_m: 2e-4, baseline_sd_m: Some(2e-4), ..facts(&coverage) };
        told(&verdict(one), "in one place");
    }
}
