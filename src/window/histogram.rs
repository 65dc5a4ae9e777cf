//! Small histograms of the last frames.

use std::time::Duration;

use egui::{Align2, Color32, FontId, Painter, Rect, Stroke, pos2, vec2};

use super::options::Timing;
use super::style::{BRIGHT, DIM, PADDING, PANEL, TEXT};

const BARS: usize = 30;

/// Size of the bars altogether, in points.
pub(super) const WIDTH: f32 = 232.0;
const HEIGHT: f32 = 44.0;

const BAR: Color32 = Color32::from_rgb(90, 170, 255);

#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub title: &'static str,
    /// First and last time of the bars, in milliseconds. The outer bars include all times beyond.
    pub span: (f64, f64),
    pub bars: Vec<u32>,
    /// 50th, 95th and 99th percentile of the absolute times in milliseconds; `None` without frames.
    pub percentiles: Option<[f64; 3]>,
    /// Text in place of percentiles.
    empty: &'static str,
}

/// Text of a histogram of nothing.
const NO_FRAMES: &str = "no frames";

impl Histogram {
    pub fn of_times(timing: Timing, times: impl Iterator<Item = Duration>) -> Self {
        Self::new(timing.name(), times.map(|time| time.as_secs_f64() * 1e3).collect(), false)
    }

    /// Returns a histogram of the delays of right frames after left ones, in nanoseconds; `None` where they
    /// are unknown.
    pub fn of_skew(skews_ns: impl Iterator<Item = Option<i64>>) -> Self {
        let (mut known, mut frames) = (Vec::new(), 0);
        for skew_ns in skews_ns {
            frames += 1;
            known.extend(skew_ns.map(|ns| ns as f64 / 1e6));
        }
        let are_unknown = known.is_empty() && frames > 0;
        let empty = if are_unknown { "times unknown: paired by arrival" } else { NO_FRAMES };
        Self { empty, ..Self::new("right view later by", known, true) }
    }

    fn new(title: &'static str, times: Vec<f64>, signed: bool) -> Self {
        let mut sizes: Vec<f64> = times.iter().map(|time| time.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        // Nearest-rank percentile.
        let at = |percent: usize| sizes[(sizes.len() * percent).div_ceil(100) - 1];
        let percentiles = (!sizes.is_empty()).then(|| [at(50), at(95), at(99)]);
        let last = round_up(percentiles.map_or(1.0, |[.., p99]| p99));
        let span = (if signed { -last } else { 0.0 }, last);
        let mut bars = vec![0; BARS];
        for time in times {
            let share = (time - span.0) / (span.1 - span.0);
            bars[((share * BARS as f64).max(0.0) as usize).min(BARS - 1)] += 1;
        }
        Self { title, span, bars, percentiles, empty: NO_FRAMES }
    }

    /// Paints it at the top right of `area` and returns its end.
    pub(super) fn paint(&self, painter: &Painter, area: Rect) -> f32 {
        let font = FontId::monospace(TEXT - 2.0);
        let width = WIDTH.min(area.width() - 2.0 * PADDING).max(1.0);
        let line = TEXT + 2.0;
        let size = vec2(width, HEIGHT + 3.0 * line) + vec2(2.0, 2.0) * PADDING;
        let rect = Align2::RIGHT_TOP.align_size_within_rect(size, area);
        painter.rect_filled(rect, 4.0, PANEL);
        let inner = rect.shrink(PADDING);
        let painter = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
        let text = |at, align, text: String, colour| {
            painter.text(at, align, text, font.clone(), colour);
        };
        let title = format!("{}, last 10 s", self.title);
        text(inner.min, Align2::LEFT_TOP, title, BRIGHT);
        let figures = match self.percentiles {
            Some([p50, p95, p99]) => {
                format!("p50 {}  p95 {}  p99 {} ms", short(p50), short(p95), short(p99))
            }
            None => self.empty.to_owned(),
        };
        text(inner.min + vec2(0.0, line), Align2::LEFT_TOP, figures, DIM);
        let floor = inner.min.y + 2.0 * line + HEIGHT;
        let most = self.bars.iter().copied().max().unwrap_or(0).max(1) as f32;
        let step = width / self.bars.len().max(1) as f32;
        for (i, &count) in self.bars.iter().enumerate().filter(|(_, count)| **count > 0) {
            let x = inner.min.x + i as f32 * step;
            // Rare values stay visible.
            let height = (count as f32 / most * (HEIGHT - 2.0)).max(1.5);
            let bar = Rect::from_min_max(pos2(x, floor - height), pos2(x + step - 1.0, floor));
            painter.rect_filled(bar, 0.0, BAR);
        }
        painter.hline(inner.x_range(), floor, Stroke::new(1.0, DIM));
        let below = floor + 1.0;
        let (first, last) = self.span;
        text(pos2(inner.min.x, below), Align2::LEFT_TOP, short(first), DIM);
        text(pos2(inner.center().x, below), Align2::CENTER_TOP, short((first + last) / 2.0), DIM);
        text(pos2(inner.max.x, below), Align2::RIGHT_TOP, format!("{} ms", short(last)), DIM);
        rect.max.y
    }
}

/// Returns the next of 1, 2, 5, 10 ... and their tenths, at least 0.1.
fn round_up(value: f64) -> f64 {
    let mut decade = 0.1;
    loop {
        for step in [1.0, 2.0, 5.0] {
            if value <= decade * step || decade > 1e9 {
                return decade * step;
            }
        }
        decade *= 10.0;
    }
}

/// Returns a time in milliseconds in few digits.
fn short(ms: f64) -> String {
    match ms.abs() {
        size if size >= 99.95 => format!("{ms:.0}"),
        size if size >= 9.995 || size == 0.0 => {
            format!("{ms:.1}").trim_end_matches(".0").to_owned()
        }
        _ => format!("{ms:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_percentiles_of_known_times() {
        let histogram = Histogram::of_times(Timing::Latency, (1..=100).map(Duration::from_millis));
        assert_eq!(histogram.percentiles, Some([50.0, 95.0, 99.0]));
        assert_eq!(histogram.span, (0.0, 100.0));
        assert_eq!(histogram.bars.iter().sum::<u32>(), 100);
        // Bars of 3 1/3 ms: the first holds 1 to 3, the last 97 to 100.
        assert_eq!((histogram.bars[0], histogram.bars[29]), (3, 4));
    }

    #[test]
    fn differences_have_their_sign_and_their_percentiles_have_none() {
        let skews = [-4_000_000, -4_000_000, 1_000_000, 300_000_000];
        let histogram = Histogram::of_skew(skews.into_iter().map(Some));
        assert_eq!(histogram.percentiles, Some([4.0, 300.0, 300.0]));
        assert_eq!(histogram.span, (-500.0, 500.0));
        assert_eq!((histogram.bars[14], histogram.bars[15], histogram.bars[24]), (2, 1, 1));
        let none = Histogram::of_skew(std::iter::empty());
        assert_eq!((none.percentiles, none.bars.iter().sum::<u32>()), (None, 0));
        assert_eq!(none.empty, "no frames");
        assert_eq!(Histogram::of_skew([Some(0)].into_iter()).span, (-0.1, 0.1));
        let unknown = Histogram::of_skew([None; 3].into_iter());
        assert_eq!(
            (unknown.percentiles, unknown.empty),
            (None, "times unknown: paired by arrival")
        );
    }

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 0.034, 7.5, 12.34, 50.0, 321.4, -0.1].map(short);
        assert_eq!(shown, ["0", "0.03", "7.50", "12.3", "50", "321", "-0.10"]);
        assert_eq!([0.0, 0.11, 1.0, 3.0, 700.0].map(round_up), [0.1, 0.2, 1.0, 5.0, 1000.0]);
    }
}
