//! The timeline of a recording, in the bar at the lower edge of the window.

use std::time::Duration;

use egui::{Align2, Color32, FontId, Painter, Rect, Stroke, pos2, vec2};

use super::options::Span;
use super::style::{ALARM, BRIGHT, DIM, MARGIN, PADDING, PANEL, TEXT};

/// Height of the track, and of the marks and the position on it, in points.
const TRACK: f32 = 6.0;
const MARK: f32 = 14.0;

pub(super) const HEIGHT: f32 = TEXT + MARK + 3.0 * PADDING;

/// State of the timeline. Times count from the first image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timeline {
    pub position: Duration,
    pub number: u64,
    pub length: Duration,
    /// Begin and end of the marked part.
    pub marks: [Option<Duration>; 2],
    pub repeats: bool,
    /// Speed relative to the recording's; `None`: as fast as matching allows.
    pub speed: Option<f64>,
    pub is_at_end: bool,
}

/// Returns the bar's rectangle within the free area of the window, in points.
fn bar(area: Rect) -> Rect {
    let area = area.shrink(MARGIN);
    Rect::from_min_max(pos2(area.min.x, area.max.y - HEIGHT), area.max)
}

fn track(bar: Rect) -> Rect {
    let middle = bar.max.y - PADDING - MARK / 2.0;
    let (left, right) = (bar.min.x + PADDING, bar.max.x - PADDING);
    Rect::from_min_max(
        pos2(left, middle - TRACK / 2.0),
        pos2(right.max(left + 1.0), middle + TRACK / 2.0),
    )
}

impl Span {
    /// Returns the time below a place in the free area of the window; `None` outside of the bar, unless
    /// the mouse is held since it was in it.
    pub(super) fn time_at(
        &self,
        area: Rect,
        (x, y): (f32, f32),
        is_held: bool,
    ) -> Option<Duration> {
        let bar = bar(area);
        if !is_held && !bar.contains(pos2(x, y)) {
            return None;
        }
        let track = track(bar);
        let share = ((x - track.min.x) / track.width()).clamp(0.0, 1.0);
        Some(self.length.mul_f64(f64::from(share)))
    }
}

impl Timeline {
    /// Paints the timeline at the lower edge of an area.
    pub(super) fn paint(&self, painter: &Painter, area: Rect) {
        let bar = bar(area);
        painter.rect_filled(bar, 4.0, PANEL);
        let font = || FontId::monospace(TEXT);
        let at = bar.min + vec2(PADDING, PADDING);
        painter.text(at, Align2::LEFT_TOP, self.place(), font(), BRIGHT);
        let at = pos2(bar.max.x - PADDING, bar.min.y + PADDING);
        painter.text(at, Align2::RIGHT_TOP, self.mode(), font(), DIM);
        let track = track(bar);
        painter.rect_filled(track, TRACK / 2.0, Color32::from_gray(90));
        // A recording can turn out longer than it was expected to be.
        let length = self.length.max(self.position).as_secs_f32().max(f32::MIN_POSITIVE);
        let x = |time: Duration| track.min.x + track.width() * time.as_secs_f32() / length;
        let [begin, end] = self.marks;
        if begin.or(end).is_some() {
            let (begin, end) = (x(begin.unwrap_or_default()), x(end.unwrap_or(self.length)));
            let part = Rect::from_x_y_ranges(begin..=end.max(begin), track.y_range());
            painter.rect_filled(
                part.intersect(track),
                TRACK / 2.0,
                Color32::from_rgb(60, 130, 190),
            );
        }
        let line = |time: Duration, width: f32, colour: Color32| {
            let x = x(time).min(track.max.x);
            let ends = [-MARK / 2.0, MARK / 2.0].map(|y| pos2(x, track.center().y + y));
            painter.line_segment(ends, Stroke::new(width, colour));
        };
        self.marks.into_iter().flatten().for_each(|mark| line(mark, 2.0, ALARM));
        line(self.position, 3.0, BRIGHT);
    }

    fn place(&self) -> String {
        let [position, length] = [self.position, self.length].map(|time| time.as_secs_f64());
        format!("{position:.3} / {length:.3} s  pair {}", self.number)
    }

    fn mode(&self) -> String {
        let speed = self.speed.filter(|&speed| speed != 1.0).map(|speed| format!("{speed}x"));
        let repeats = self.repeats.then(|| "repeats".to_owned());
        let end = self.is_at_end.then(|| "end".to_owned());
        [speed, repeats, end].into_iter().flatten().collect::<Vec<_>>().join("  ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_on_the_track_is_a_time() {
        let ten = Duration::from_secs(10);
        let span =
            Span { begin: ten, length: ten, period: Duration::from_millis(40), is_paced: true };
        let area = Rect::from_min_size(pos2(0.0, 0.0), vec2(640.0, 480.0));
        let track = track(bar(area));
        let y = track.center().y;
        let at = |x, y, is_held| span.time_at(area, (x, y), is_held);
        assert_eq!(at(track.min.x, y, false), Some(Duration::ZERO));
        assert_eq!(at(track.center().x, y, false), Some(ten / 2));
        assert_eq!(at(track.max.x + 1.0, y, false), Some(ten));
        assert_eq!(at(track.center().x, 100.0, false), None);
        // The mouse may leave the bar while its button is held.
        assert_eq!(at(track.center().x, 100.0, true), Some(ten / 2));
        assert_eq!(at(-50.0, 100.0, true), Some(Duration::ZERO));
    }
}
