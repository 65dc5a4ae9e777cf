//! Report of a calibration for people.

use std::fmt::Write;
use std::path::PathBuf;

use stereod_core::calibration::solve::Solved;

/// Returns the report as text; `output` names the calibration file.
pub(super) fn in_words(solved: &Solved, output: Option<&PathBuf>) -> String {
    let (report, calibration) = (&solved.report, &solved.calibration);
    let mut text = String::new();
    let all = report.pairs.len();
    let _ = write!(text, "{} of {all} pairs used", report.used());
    let _ = writeln!(text, "{}", if report.used() < all { "; left out:" } else { "" });
    for (name, reason) in report.left_out() {
        let _ = writeln!(text, "  {name}: {reason}");
    }
    let rows = report.rectified_row_error_px;
    let _ = writeln!(
        text,
        "reprojection error {:.3} px RMS (left alone {:.3}, right alone {:.3})",
        report.rms_px, report.alone_rms_px[0], report.alone_rms_px[1]
    );
    let _ = writeln!(
        text,
        "epipolar error {:.3} px, rows differ by {:.3} px on average, 95 % by less than {:.3}",
        report.mean_epipolar_error_px, rows.mean, rows.p95
    );
    let sd = |sd: Option<f64>, digits: usize| {
        sd.map_or_else(|| " (± unknown)".into(), |sd| format!(" ± {sd:.digits$}"))
    };
    let _ = writeln!(
        text,
        "baseline {:.2}{} mm, focal lengths {:.1}{} and {:.1}{} px",
        1e3 * report.baseline_m,
        sd(report.baseline_sd_m.map(|sd| 1e3 * sd), 2),
        calibration.left.focal[0],
        sd(report.focal_sd_px.map(|sd| sd[0]), 1),
        calibration.right.focal[0],
        sd(report.focal_sd_px.map(|sd| sd[1]), 1),
    );
    if let Some(output) = output {
        let _ = writeln!(text, "written to {}", output.display());
    }
    let _ = writeln!(text, "{}", report.verdict);
    text
}
