//! Progress bars.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::telemetry::{logs, stderr};

/// Returns a bar on standard error, if that is a terminal; without a number of things it is a
/// counter.
pub fn progress_bar(expected: Option<u64>, quiet: bool, things: &str) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { stderr::draw_target() };
    let bar = ProgressBar::with_draw_target(expected, target);
    let template = match expected {
        Some(_) => {
            format!(
                "{{wide_bar}} {{percent}} %  {{pos}}/{{len}} {things}, {{per_sec}}, {{eta}} left  {{msg}}"
            )
        }
        None => format!("{{spinner}} {{pos}} {things}, {{per_sec}}, {{elapsed}}  {{msg}}"),
    };
    bar.set_style(ProgressStyle::with_template(&template).expect("a valid template"));
    logs::write_above(Some(bar.clone()));
    bar
}
