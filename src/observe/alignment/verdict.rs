//! Verdict on a measurement, and its message.

use std::fmt;

use serde::Serialize;

use super::Measurement;
use stereod_io::text::rounded;

/// Verdict on the alignment of the views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Too little common texture to tell.
    #[default]
    Unsure,
    /// The rows agree.
    Good,
    /// The rows agree within the limit, but a new calibration would make them agree better. Only reports
    /// tell it from "good".
    Fair,
    /// The rows differ by more than the limit: shifted, rolled or scaled.
    RowsOff,
    /// The views are exchanged: nearer points lie further right in the right image.
    Swapped,
    /// The disparities lie below the search range, according to the calibration.
    BelowRange,
    /// The rows differ more than those of rectified images ever do.
    NotRectified,
    /// The row error changes all the time: the views do not show the same moment, or a camera is
    /// loose.
    Wandering,
    /// The two views of a pair show different moments.
    OtherMoment,
}

impl Verdict {
    pub fn is_alarm(self) -> bool {
        !matches!(self, Verdict::Unsure | Verdict::Good | Verdict::Fair)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Unsure => "unsure",
            Verdict::Good => "good",
            Verdict::Fair => "fair",
            Verdict::RowsOff => "rows off",
            Verdict::Swapped => "views exchanged",
            Verdict::BelowRange => "below the range",
            Verdict::NotRectified => "not rectified",
            Verdict::Wandering => "rows wander",
            Verdict::OtherMoment => "views of different moments",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Row error in pixels (root mean square over the image) above which the rows are off.
    pub warn_px: f64,
    /// True if the images are rectified by a calibration; this determines the advice.
    pub calibrated: bool,
    /// Disparity of infinitely far points in pixels, by the calibration; negative if the right
    /// view's principal point lies to the right of the left one's.
    pub farthest_px: f64,
    /// Row error in pixels of exchanged views at the centre, by the calibration, if they are rectified here.
    pub exchanged_px: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warn_px: 1.5, calibrated: false, farthest_px: 0.0, exchanged_px: None }
    }
}

/// Share of the limit below which misaligned rows count as good again.
const RECOVERED: f64 = 0.8;

/// Uncertainty in pixels above which a measurement is useless, except as [`FAR_OFF`] allows.
const CERTAIN_PX: f64 = 0.5;

/// An uncertain measurement counts if the row error less this many times its uncertainty still
/// excludes rectified images.
const FAR_OFF: f64 = 3.0;

/// An alarm is certain if this many times the uncertainty does not explain it.
const SURE: f64 = 2.0;

/// Row error in pixels above which agreeing rows could be improved: good rigs stay below it.
const IMPERFECT_PX: f64 = 0.75;

/// Smallest share of agreeing points.
const AGREEING: f64 = 0.3;

/// Largest curvature of rectified images, in pixels or as a share of the width.
const BENT: (f64, f64) = (0.75, 0.001);

/// Largest spread of the row errors of rectified images, in pixels or as a share of the width.
const SPREAD: (f64, f64) = (1.5, 0.0025);

/// Smallest row error of exchanged views by which they are recognised.
const EXCHANGED_PX: f64 = 4.0;

/// Row error, as a share of the width, that is too large for a bump: 5 rows in an image of 752
/// columns.
const UNRECTIFIED: f64 = 0.007;

/// Reports whether the rows differ as they do if the views are exchanged: by `exchanged_px`. Views of nearly
/// parallel cameras are found by their disparities.
fn is_exchanged(shift_px: f64, exchanged_px: f64) -> bool {
    exchanged_px.abs() > EXCHANGED_PX
        && (shift_px - exchanged_px).abs() < 1.0 + 0.1 * exchanged_px.abs()
}

impl Verdict {
    /// Returns the verdict for reports, which distinguishes good rows from fair ones.
    pub(super) fn of_report(self, row_error_px: Option<f64>) -> Self {
        match self {
            Verdict::Good if row_error_px > Some(IMPERFECT_PX) => Verdict::Fair,
            verdict => verdict,
        }
    }
}

impl Limits {
    /// Returns the row error in pixels that no bump explains.
    fn unrectified_px(&self, width: f64) -> f64 {
        (UNRECTIFIED * width).max(2.0 * self.warn_px)
    }

    /// Reports whether a measurement is reliable: enough agreeing points.
    pub(super) fn can_rely_on(&self, seen: &Measurement) -> bool {
        let certain = seen.uncertainty_px <= CERTAIN_PX
            || seen.row_error_px - FAR_OFF * seen.uncertainty_px
                > self.unrectified_px(seen.width as f64);
        certain && seen.consistent as f64 >= AGREEING * seen.matches as f64
    }

    /// Returns the verdict on a measurement. `before` is the last verdict, for hysteresis. An alarm
    /// needs more than the uncertainty explains.
    pub fn assess(&self, measurement: Option<&Measurement>, before: Verdict) -> Verdict {
        let Some(seen) = measurement.filter(|seen| self.can_rely_on(seen)) else {
            return Verdict::Unsure;
        };
        if self.exchanged_px.is_some_and(|px| is_exchanged(seen.shift_px, px)) {
            return Verdict::Swapped;
        }
        let width = seen.width as f64;
        let of_width = |(pixels, share): (f64, f64)| (share * width).max(pixels);
        let least_px = seen.row_error_px - SURE * seen.uncertainty_px;
        if least_px > self.unrectified_px(width)
            || seen.curvature_px - SURE * seen.curvature_uncertainty_px > of_width(BENT)
            || seen.spread_px > of_width(SPREAD)
        {
            return Verdict::NotRectified;
        }
        if seen.uncertainty_px > CERTAIN_PX {
            return Verdict::Unsure;
        }
        if seen.below_range > 0.75 {
            // Exchanged views have disparities of no possible depth.
            let is_depth = seen.disparity_px > self.farthest_px - 1.0;
            return if is_depth { Verdict::BelowRange } else { Verdict::Swapped };
        }
        let off = match before {
            Verdict::RowsOff => seen.row_error_px > RECOVERED * self.warn_px,
            _ => least_px > self.warn_px,
        };
        if off { Verdict::RowsOff } else { Verdict::Good }
    }

    pub fn describe(&self, verdict: Verdict, seen: Option<&Measurement>) -> String {
        let cure = if self.calibrated {
            "the calibration does not fit these pictures; check that it is the one of these cameras \
             and that left and right are not mixed up, or recalibrate (stereod calibrate)"
        } else {
            "give --calibration FILE"
        };
        match (verdict, seen) {
            (Verdict::Unsure, _) | (_, None) => {
                "the pictures show too little in common to see whether the rows of the two views agree"
                    .into()
            }
            (Verdict::Good | Verdict::Fair, Some(seen)) => {
                format!("rows aligned to {:.1} px{}", seen.row_error_px, self.better(seen))
            }
            (Verdict::RowsOff, Some(seen)) => {
                let cure = if self.calibrated {
                    "the calibration does not fit these pictures well: recalibrate (stereod calibrate)"
                        .to_owned()
                } else {
                    format!(
                        "recalibrate (stereod calibrate) or, if the pictures have never been rectified, \
                         {cure}"
                    )
                };
                format!("the rows of the two views differ by {seen}: {cure}")
            }
            // Without the range; see [`Limits::describe_wander`]. The other moment has its own message.
            (Verdict::Wandering | Verdict::OtherMoment, Some(_)) => WANDERING.to_owned(),
            (Verdict::Swapped, Some(seen)) => format!(
                "left and right seem to be exchanged ({}): exchange the two inputs (--swap)",
                match self.exchanged_px.filter(|&px| is_exchanged(seen.shift_px, px)) {
                    Some(px) => format!(
                        "the rows differ by {:.1} px; with this calibration those of exchanged views differ by {px:.1}",
                        seen.shift_px
                    ),
                    None => format!("the median disparity is {:.1} px", seen.disparity_px),
                }
            ),
            (Verdict::BelowRange, Some(seen)) => format!(
                "the disparities (the median is {:.1} px) lie below the range that is searched, because \
                 the principal points of the two views differ: by the calibration they begin at {:.1} \
                 px; give --min-disparity {:.0}",
                seen.disparity_px,
                self.farthest_px,
                self.farthest_px.floor()
            ),
            (Verdict::NotRectified, Some(seen)) => {
                let what = if self.calibrated { "well " } else { "" };
                let moment = if self.calibrated {
                    ""
                } else {
                    " (does not help if the cameras are not synchronised)"
                };
                format!(
                    "the pictures are not {what}rectified: the rows of the two views differ by {seen}, \
                     and bend by {:.1} px; {cure}{moment}",
                    seen.curvature_px
                )
            }
        }
    }

    /// Returns the way to a smaller error of aligned rows, if it is worthwhile.
    fn better(&self, seen: &Measurement) -> &'static str {
        match self.calibrated {
            _ if seen.row_error_px <= IMPERFECT_PX => "",
            true => "; a new calibration (stereod calibrate) would make it less",
            false => "; a calibration (stereod calibrate) would make it less",
        }
    }

    /// Returns the message for rows that agreed within `agreed_px` pixels before.
    pub(super) fn describe_bump(&self, seen: &Measurement, agreed_px: f64) -> String {
        format!(
            "the rows of the two views differ by {seen}, after {agreed_px:.1} px earlier in this run: the \
             rig may have been bumped; check the mounting and recalibrate (stereod calibrate)"
        )
    }

    /// Returns the message for rows that wander between these row errors.
    pub(super) fn describe_wander(&self, ends: [f64; 2]) -> String {
        let [low, high] = ends.map(|end| rounded(end, 1));
        format!(
            "the rows of the two views wander: they differ by {low:+.1} to {high:+.1} px (positive: the \
             right picture is lower); {WANDERING}"
        )
    }
}

const WANDERING: &str = "no calibration mends that: the views do not show the same moment (synchronise \
                         the cameras; of two recordings, `--offset auto` finds the shift), or a \
                         camera is loose";

/// Formats the numbers: "3.2 px (the right image 3.1 px lower, turned by 0.12 degrees, 1.002 times
/// the size)".
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.shift_px < 0.0 { "higher" } else { "lower" };
        let way = if self.roll_deg < 0.0 { "anticlockwise" } else { "clockwise" };
        write!(
            f,
            "{:.1} px (the right picture is {:.1} px {side}, turned {:.2} degrees {way}, {:.4} times \
             the size)",
            self.row_error_px,
            self.shift_px.abs(),
            self.roll_deg.abs(),
            self.scale
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> Measurement {
        Measurement {
            width: 752,
            matches: 200,
            consistent: 190,
            row_error_px: 0.1,
            uncertainty_px: 0.03,
            shift_px: -0.1,
            roll_deg: 0.01,
            scale: 1.0001,
            curvature_px: 0.1,
            curvature_uncertainty_px: 0.05,
            median_px: -0.1,
            spread_px: 0.2,
            disparity_px: 20.0,
            below_range: 0.01,
        }
    }

    fn judged(measurement: Measurement, before: Verdict) -> Verdict {
        Limits::default().assess(Some(&measurement), before)
    }

    #[test]
    fn each_figure_has_its_verdict() {
        let judged = |measurement| judged(measurement, Verdict::Good);
        assert_eq!(judged(well()), Verdict::Good);
        assert_eq!(judged(Measurement { consistent: 50, ..well() }), Verdict::Unsure);
        assert_eq!(judged(Measurement { uncertainty_px: 0.6, ..well() }), Verdict::Unsure);
        assert_eq!(judged(Measurement { row_error_px: 1.6, ..well() }), Verdict::RowsOff);
        assert_eq!(judged(Measurement { row_error_px: 5.4, ..well() }), Verdict::NotRectified);
        assert_eq!(judged(Measurement { curvature_px: 1.0, ..well() }), Verdict::NotRectified);
        let uncertain = Measurement { curvature_uncertainty_px: 0.3, ..well() };
        assert_eq!(judged(Measurement { curvature_px: 1.0, ..uncertain }), Verdict::Good);
        assert_eq!(judged(Measurement { spread_px: 2.0, ..well() }), Verdict::NotRectified);
        let swapped = Measurement { below_range: 0.9, disparity_px: -20.0, ..well() };
        assert_eq!(judged(swapped), Verdict::Swapped);
        assert_eq!(judged(Measurement { row_error_px: 2.0, ..swapped }), Verdict::Swapped);
        // Principal points that differ may explain it.
        let limits = |farthest_px| Limits { farthest_px, ..Limits::default() };
        let by = |farthest_px| limits(farthest_px).assess(Some(&swapped), Verdict::Good);
        assert_eq!((by(-10.0), by(-31.2)), (Verdict::Swapped, Verdict::BelowRange));
        let told = limits(-31.2).describe(Verdict::BelowRange, Some(&swapped));
        assert!(told.contains("--min-disparity -32") && !told.contains("--swap"), "{told}");
        assert_eq!(judged(Measurement { spread_px: 2.0, ..swapped }), Verdict::NotRectified);
        // The rows of exchanged views differ as their calibration says.
        let mixed_up = Measurement { row_error_px: 25.4, shift_px: -25.3, ..well() };
        let by = |exchanged_px| Limits { calibrated: true, exchanged_px, ..Limits::default() };
        let verdict = |px| by(px).assess(Some(&mixed_up), Verdict::Unsure);
        assert_eq!(verdict(Some(-25.5)), Verdict::Swapped);
        for px in [None, Some(25.5), Some(-12.0), Some(-0.3)] {
            assert_eq!(verdict(px), Verdict::NotRectified, "{px:?}");
        }
        assert_eq!(by(Some(-0.3)).assess(Some(&well()), Verdict::Unsure), Verdict::Good);
        let told = by(Some(-25.5)).describe(Verdict::Swapped, Some(&mixed_up));
        assert!(told.contains("differ by -25.3 px") && told.contains("(--swap)"), "{told}");
        assert_eq!(Limits::default().assess(None, Verdict::Good), Verdict::Unsure);
    }

    #[test]
    fn only_small_row_errors_are_reported_as_good() {
        let told = |px| Verdict::Good.of_report(Some(px));
        assert_eq!(
            [0.2, 0.7, 0.8, 1.5].map(told).map(|told| told == Verdict::Good),
            [true, true, false, false]
        );
        assert_eq!(Verdict::Swapped.of_report(Some(1.0)), Verdict::Swapped);
        assert!(!Verdict::Fair.is_alarm() && Verdict::OtherMoment.is_alarm());
    }

    #[test]
    fn the_edge_is_crossed_once() {
        let edge = Measurement { row_error_px: 1.4, ..well() };
        assert_eq!(judged(edge, Verdict::Good), Verdict::Good);
        assert_eq!(judged(edge, Verdict::RowsOff), Verdict::RowsOff);
        assert_eq!(judged(well(), Verdict::RowsOff), Verdict::Good);
    }

    #[test]
    fn no_alarm_is_larger_than_what_is_certain() {
        let judged = |measurement| Limits::default().assess(Some(&measurement), Verdict::Unsure);
        let uncertain =
            |row_error_px, uncertainty_px| Measurement { row_error_px, uncertainty_px, ..well() };
        assert_eq!(judged(uncertain(1.8, 0.1)), Verdict::RowsOff);
        assert_eq!(judged(uncertain(1.8, 0.2)), Verdict::Good);
        assert_eq!(judged(uncertain(5.5, 0.3)), Verdict::RowsOff);
        assert_eq!(judged(uncertain(5.5, 0.8)), Verdict::Unsure);
        assert_eq!(judged(uncertain(13.0, 0.8)), Verdict::NotRectified);
        // A handful of points in a corner of an over-exposed image, as seen on an OAK-D.
        let few = Measurement {
            width: 1280,
            matches: 25,
            consistent: 22,
            curvature_px: 9.0,
            curvature_uncertainty_px: 2.1,
            ..uncertain(4.2, 1.03)
        };
        assert_eq!(judged(few), Verdict::Unsure);
    }

    #[test]
    fn messages_name_the_numbers_and_the_cure() {
        let limits = Limits::default();
        let calibrated = Limits { calibrated: true, ..limits };
        let off = Measurement { row_error_px: 3.24, shift_px: 3.1, roll_deg: -0.12, ..well() };
        let text = |limits: Limits, verdict| limits.describe(verdict, Some(&off));
        for part in
            ["3.2 px", "3.1 px lower", "0.12 degrees anticlockwise", "1.0001", "recalibrate"]
        {
            let text = text(limits, Verdict::RowsOff);
            assert!(text.contains(part), "{part}: {text}");
            // A bump requires that the rows have agreed before.
            assert!(!text.contains("bumped"), "{text}");
        }
        let bump = limits.describe_bump(&off, 0.2);
        assert!(bump.contains("after 0.2 px earlier") && bump.contains("bumped"), "{bump}");
        let way = limits.describe_wander([-20.04, 15.0]);
        assert!(way.contains("-20.0 to +15.0 px") && way.contains("synchronise"), "{way}");
        assert!(!way.contains("--calibration"), "{way}");
        assert!(text(limits, Verdict::RowsOff).contains("--calibration FILE"));
        assert!(!text(calibrated, Verdict::RowsOff).contains("--calibration FILE"));
        assert!(text(limits, Verdict::NotRectified).contains("--calibration FILE"));
        let misfit = text(calibrated, Verdict::NotRectified);
        assert!(misfit.contains("calibration does not fit") && !misfit.contains("--calibration"));
        assert!(text(limits, Verdict::Swapped).contains("exchange the two inputs (--swap)"));
        assert!(text(limits, Verdict::Good).contains("rows aligned to 3.2 px"));
        for verdict in [Verdict::Unsure, Verdict::Good, Verdict::NotRectified] {
            assert!(limits.describe(verdict, None).contains("too little"));
        }
    }
}
