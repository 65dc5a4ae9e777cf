//! Marks and messages over the frame, and the legend, painted with egui. They take no input, so they are the
//! same in a window and off-screen.

use std::sync::Arc;
use std::time::Duration;

use egui::epaint::Mesh;
use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};

use super::above::Around;
use super::help::Sheet;
use super::histogram::{self, Histogram};
use super::options::{Timing, View};
use super::path::{self, Path};
use super::remote::Rates;
use super::rows::Rows;
use super::scene::Limits;
use super::style::{ALARM, BRIGHT, DIM, Line, MARGIN, PADDING, PANEL, TEXT, panel};
use super::timeline::Timeline;
use super::wipe::Wipe;
use crate::status::{Banner, RunStatus};
use stereod_core::frame::{SUBPIXEL, StereoGeometry, TemporalReport};
use stereod_io::sink::colour::{ColourMap, legend_label};
use stereod_io::text::rounded;

/// State of the buttons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    pub view: View,
    /// Whether frames are written to files now; `None` if the run writes none.
    pub records: Option<bool>,
    pub is_measuring: bool,
    /// Whether obstacles are shown; `None` if the run does not look for them.
    pub obstacles: Option<bool>,
    /// Whether the path is shown; `None` if the run does not follow the motion.
    pub path: Option<bool>,
    pub depth_colours: bool,
}

#[derive(Clone, Debug, Default)]
pub struct OverlayContent {
    pub rates: Rates,
    /// Time from the arrival of the newest frame to the screen.
    pub on_screen: Option<Duration>,
    pub picture: Option<(u32, u32)>,
    /// Status of the run; `None` before the first one.
    pub status: Option<Arc<RunStatus>>,
    /// State of the temporal stage, if it is on.
    pub temporal: Option<TemporalReport>,
    /// What was found in the pair, if the run looks for it.
    pub around: Option<Around>,
    pub path: Option<Path>,
    pub legend: Option<Legend>,
    pub timeline: Option<Timeline>,
    pub hover: Option<Hover>,
    /// The points between which is measured.
    pub ruler: Option<Ruler>,
    /// Remark on the scale of the view.
    pub scale: Option<String>,
    pub bar: Bar,
    pub rows: Option<Rows>,
    /// Line between two maps that are compared.
    pub wipe: Option<Wipe>,
    pub histograms: Option<[Histogram; 2]>,
    pub paused: bool,
    pub ended: bool,
    pub error: Option<String>,
    pub notice: Option<String>,
    pub sheet: Option<Sheet>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Legend {
    pub colour_map: ColourMap,
    pub limits: Limits,
    /// Cameras, by which the labels are metres instead of pixels.
    pub geometry: Option<StereoGeometry>,
}

impl Legend {
    /// Returns the label at a disparity in pixels, of a range that is wide enough for whole pixels or not.
    fn label(&self, disparity: f32, is_wide: bool) -> String {
        legend_label(disparity, is_wide, self.geometry.as_ref())
    }

    fn unit(&self) -> &'static str {
        if self.geometry.is_some() { "m" } else { "px" }
    }
}

/// A pixel of the left view.
#[derive(Clone, Debug, PartialEq)]
pub struct Hover {
    pub pixel: (u32, u32),
    /// Disparity in pixels, if known.
    pub disparity: Option<f32>,
    /// Confidence, 1 to 255, if the disparity was measured.
    pub confidence: Option<u8>,
    /// Depth in metres, if disparity and calibration are known.
    pub depth: Option<f64>,
    /// Positions on the target in pixels, one per pane.
    pub marks: Vec<(f64, f64)>,
    /// Name of the map, if two are compared.
    pub side: Option<&'static str>,
}

/// The ends of a measured distance, on each pane as far as they are to be seen, in pixels of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruler {
    pub ends: Vec<[Option<(f64, f64)>; 2]>,
    pub text: String,
}

pub(super) fn paint(painter: &Painter, content: &OverlayContent, scale: f32) {
    if let Some(wipe) = &content.wipe {
        wipe.paint_line(painter, scale);
    }
    if let Some(around) = &content.around {
        around.paint_over_images(painter, scale);
    }
    let area = painter.clip_rect().shrink(MARGIN);
    if let Some(rows) = &content.rows {
        rows.paint(painter, scale);
    }
    if let Some(hover) = &content.hover {
        for mark in &hover.marks {
            crosshair(painter, pos2(mark.0 as f32, mark.1 as f32) / scale);
        }
    }
    for [first, second] in content.ruler.iter().flat_map(|ruler| &ruler.ends) {
        let [first, second] =
            [first, second].map(|end| end.map(|(x, y)| pos2(x as f32, y as f32) / scale));
        if let (Some(first), Some(second)) = (first, second) {
            for (width, colour) in [(4.0, Color32::from_black_alpha(180)), (2.0, ALARM)] {
                painter.line_segment([first, second], Stroke::new(width, colour));
            }
        }
        for end in [first, second].into_iter().flatten() {
            painter.circle(end, 4.0, ALARM, Stroke::new(1.0, Color32::BLACK));
        }
    }
    let lines = numbers(content);
    let numbers = match lines.is_empty() {
        true => Rect::from_min_size(area.min, vec2(0.0, 0.0)),
        false => panel(painter, area, Align2::LEFT_TOP, PANEL, lines),
    };
    if let Some(wipe) = &content.wipe {
        wipe.paint_labels(painter, scale, area.max.y);
    }
    let mut corner = area;
    if numbers.max.x + MARGIN > area.max.x - histogram::WIDTH {
        // Too narrow for both side by side.
        corner.min.y = corner.min.y.max(numbers.max.y + MARGIN);
    }
    for histogram in content.histograms.iter().flatten() {
        corner.min.y = histogram.paint(painter, corner) + MARGIN;
    }
    let mut below = area;
    if let Some(around) = &content.around {
        let taken = around.paint_from_above(painter, area);
        if taken.max.x + MARGIN > area.max.x - path::WIDTH {
            below.max.y = taken.min.y - MARGIN;
        }
    }
    if let Some(path) = &content.path {
        path.paint(painter, below);
    }
    banners(painter, area, content);
    if let Some(sheet) = &content.sheet {
        sheet.paint(painter);
    }
}

/// Returns state or rate, latency, size and engine.
pub(super) fn figures(content: &OverlayContent) -> String {
    let rates = &content.rates;
    let mut text = match rates.frames_per_second {
        _ if content.ended => "ended".into(),
        _ if content.timeline.is_some_and(|timeline| timeline.is_at_end) => "at the end".into(),
        _ if content.paused => "paused".into(),
        Some(rate) => format!("{rate:.1} fps"),
        None => "- fps".into(),
    };
    if let Some(latency) = rates.latency {
        text += &format!("  {} {}", rates.timing.name(), milliseconds(latency));
    }
    if let Some((width, height)) = content.picture {
        text += &format!("  {width}x{height}");
    }
    if let Some(status) = &content.status {
        text += &format!("  {}", status.engine);
        let [_, losses @ ..] = status.counted();
        for (count, what) in losses.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!("  {count} {what}");
        }
    }
    text
}

/// Returns the problems; with the histograms, all further figures.
fn numbers(content: &OverlayContent) -> Vec<Line> {
    let is_full = content.histograms.is_some();
    let rates = &content.rates;
    let mut lines = Vec::new();
    if let Some(p95) = rates.latency_p95.filter(|_| is_full) {
        let mut text = format!("p95 {}", milliseconds(p95));
        if let Some(on_screen) = content.on_screen.filter(|_| rates.timing == Timing::Latency) {
            text += &format!("  screen {}", milliseconds(on_screen));
        }
        lines.push(Line::new(text, DIM));
    }
    if let Some(status) = &content.status {
        let [(pairs, what), ..] = status.counted();
        if is_full {
            lines.push(Line::new(format!("{pairs} {what}"), DIM));
        }
        let judged = status.judged().filter(|(.., alarm)| *alarm || is_full);
        lines.extend(
            judged.map(|(_, text, alarm)| {
                Line::new(text.to_owned(), if alarm { ALARM } else { DIM })
            }),
        );
    }
    if let Some(report) = content.temporal.as_ref().filter(|_| is_full) {
        lines.push(Line::new(in_time(report), DIM));
    }
    lines
}

/// Describes the state of the temporal stage in a line.
fn in_time(report: &TemporalReport) -> String {
    let noise = match report.noise {
        Some([before, after]) => format!("noise {before:.1}, {after:.1} left"),
        None => "noise -".into(),
    };
    let shift = match report.shift {
        Some([x, y]) => {
            format!("shift {:+.2} {:+.2} px", rounded(x.into(), 2), rounded(y.into(), 2))
        }
        None => "shift -".into(),
    };
    let (of, moving) = (report.remembered, 100.0 * report.moving);
    format!("{noise}  {shift}  moving {moving:.1} %  of {of} images")
}

fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    if milliseconds < 99.95 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{milliseconds:.0} ms")
    }
}

pub(super) fn describe(hover: &Hover) -> String {
    let (x, y) = hover.pixel;
    let side = hover.side.map(|side| format!("{side}  ")).unwrap_or_default();
    let mut text = format!("{side}({x}, {y})  ");
    match hover.disparity {
        Some(disparity) => text += &format!("{disparity:.2} px"),
        None => text += "no disparity",
    }
    if let Some(depth) = hover.depth {
        text += &format!("  {depth:.3} m");
    }
    if let Some(confidence) = hover.confidence {
        text += &format!("  confidence {:.0} %", f64::from(confidence) / 2.55);
    }
    text
}

/// Paints messages at the top, the error first.
fn banners(painter: &Painter, mut area: Rect, content: &OverlayContent) {
    // Below the figures, which may be as wide as a small window.
    area.min.y += area.height() * 0.25;
    let ended = content.ended.then(|| "end of stream, q quits".to_owned());
    let red = Color32::from_rgba_unmultiplied(160, 20, 20, 230);
    let amber = Color32::from_rgba_unmultiplied(140, 84, 0, 230);
    let green = Color32::from_rgba_unmultiplied(20, 90, 40, 220);
    let mut messages =
        vec![(content.error.as_ref(), red), (ended.as_ref(), Color32::from_black_alpha(200))];
    let of = |banner: &Banner| if banner.trouble { amber } else { green };
    let troubles = content.status.iter().flat_map(|status| &status.banners);
    messages.extend(troubles.map(|banner| (Some(&banner.text), of(banner))));
    messages.push((content.notice.as_ref(), green));
    for (message, fill) in messages {
        if let Some(message) = message {
            let line = Line::new(message.clone(), BRIGHT);
            let rect = panel(painter, area, Align2::CENTER_TOP, fill, vec![line]);
            area.min.y = rect.max.y + MARGIN;
        }
    }
}

/// Paints a small cross with a dark border, open in the middle so that the pixel itself stays
/// visible.
fn crosshair(painter: &Painter, centre: Pos2) {
    for (width, colour) in [(3.0, Color32::from_black_alpha(180)), (1.0, Color32::WHITE)] {
        for direction in [vec2(1.0, 0.0), vec2(-1.0, 0.0), vec2(0.0, 1.0), vec2(0.0, -1.0)] {
            let ends = [centre + direction * 4.0, centre + direction * 9.0];
            painter.line_segment(ends, Stroke::new(width, colour));
        }
    }
}

/// Paints the colours with their disparities. Returns their rectangle, or `None` without enough room.
pub(super) fn colour_bar(painter: &Painter, area: Rect, legend: &Legend) -> Option<Rect> {
    const HEIGHT: f32 = 8.0;
    /// Margins for half a label on the left, and for half a label or the unit on the right.
    const SIDE: f32 = 22.0;
    const LABELS: i32 = 5;
    const STRIPS: i32 = 128;
    let font = FontId::monospace(TEXT - 2.0);
    let width = 200.0_f32.min(area.width() - 2.0 * SIDE);
    if width < 60.0 {
        return None;
    }
    let size = vec2(width + 2.0 * SIDE, HEIGHT + TEXT + 2.5 * PADDING);
    let rect = Align2::RIGHT_BOTTOM.align_size_within_rect(size, area);
    painter.rect_filled(rect, 4.0, PANEL);
    let bar = Rect::from_min_size(rect.min + vec2(SIDE, PADDING), vec2(width, HEIGHT));
    let Limits { low, high } = legend.limits;
    let value_at = |share: f32| low as f32 + share * (high - low) as f32;
    let table = legend.colour_map.table();
    let mut mesh = Mesh::default();
    for strip in 0..STRIPS {
        let edge = |strip: i32| bar.min.x + strip as f32 / STRIPS as f32 * width;
        let middle = value_at((strip as f32 + 0.5) / STRIPS as f32);
        let [red, green, blue] = table[legend.limits.table_entry(middle as i16)];
        let area = Rect::from_x_y_ranges(edge(strip)..=edge(strip + 1), bar.y_range());
        mesh.add_colored_rect(area, Color32::from_rgb(red, green, blue));
    }
    painter.add(Shape::mesh(mesh));
    let unit = pos2(bar.max.x + 4.0, bar.center().y);
    painter.text(unit, Align2::LEFT_CENTER, legend.unit(), font.clone(), DIM);
    let is_wide = high - low >= 8 * SUBPIXEL;
    for label in 0..LABELS {
        let share = label as f32 / (LABELS - 1) as f32;
        let text = legend.label(value_at(share) / SUBPIXEL as f32, is_wide);
        let at = pos2(bar.min.x + share * width, bar.max.y + 0.5 * PADDING);
        painter.text(at, Align2::CENTER_TOP, text, font.clone(), BRIGHT);
    }
    Some(rect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Counts, Judged};

    #[test]
    fn more_lines_only_where_something_is_wrong() {
        let texts = |content: &OverlayContent| -> Vec<String> {
            numbers(content).iter().map(|line| line.text().to_owned()).collect()
        };
        let judged = |text: &str| Judged { text: text.into(), ..Judged::default() };
        let status = RunStatus {
            engine: "CPU".into(),
            pairs: 9,
            alignment: Some(judged("rows 0.1 px")),
            exposure: Some(Judged { text: "noise 1.2 1.2".into(), ..Judged::default() }),
            ..RunStatus::default()
        };
        let fine = OverlayContent {
            rates: Rates {
                frames_per_second: Some(25.0),
                latency: Some(Duration::from_millis(12)),
                latency_p95: Some(Duration::from_millis(15)),
                ..Rates::default()
            },
            picture: Some((640, 480)),
            status: Some(status.clone().into()),
            ..OverlayContent::default()
        };
        assert_eq!(figures(&fine), "25.0 fps  latency 12.0 ms  640x480  CPU");
        assert!(texts(&fine).is_empty());
        let wrong = RunStatus {
            counts: Counts { dropped: 2, ..Counts::default() },
            late: 3,
            alignment: Some(Judged { alarm: true, ..judged("rows 3.1 px") }),
            ..status
        };
        let wrong = OverlayContent { status: Some(wrong.into()), ..fine.clone() };
        let losses = "2 pairs dropped  3 pairs behind the pace";
        assert_eq!(figures(&wrong), format!("25.0 fps  latency 12.0 ms  640x480  CPU  {losses}"));
        assert_eq!(texts(&wrong), ["rows 3.1 px"]);
        let times = Histogram::of_times(Timing::Latency, std::iter::empty());
        let still = |paused, ended, timeline| {
            let rates = Rates { frames_per_second: None, ..fine.rates };
            let content = OverlayContent { rates, paused, ended, timeline, ..fine.clone() };
            figures(&content).strip_suffix("  latency 12.0 ms  640x480  CPU").unwrap().to_owned()
        };
        let timeline = Timeline {
            position: Duration::ZERO,
            number: 0,
            length: Duration::ZERO,
            marks: [None; 2],
            repeats: false,
            speed: None,
            is_at_end: true,
        };
        assert_eq!(still(true, false, None), "paused");
        assert_eq!(still(false, true, None), "ended");
        assert_eq!(still(true, false, Some(timeline)), "at the end");
        assert_eq!(still(false, false, None), "- fps");
        let full = OverlayContent { histograms: Some([times.clone(), times]), ..fine };
        assert_eq!(texts(&full), ["p95 15.0 ms", "9 pairs", "rows 0.1 px", "noise 1.2 1.2"]);
    }

    #[test]
    fn labels_are_metres_where_the_cameras_are_known() {
        let limits = Limits { low: 0, high: 63 * SUBPIXEL };
        let unknown = Legend { colour_map: ColourMap::Turbo, limits, geometry: None };
        assert_eq!(unknown.label(15.75, true), "16");
        assert_eq!((unknown.label(15.75, false), unknown.unit()), ("15.8".into(), "px"));
        let geometry = StereoGeometry {
            focal_px: 500.0,
            baseline_m: 0.1,
            centre_x_px: 10.0,
            centre_y_px: 10.0,
            right_centre_x_px: 10.0,
        };
        let known = Legend { geometry: Some(geometry), ..unknown };
        let labels = [63.0, 5.0, 0.5, 0.01, 0.0].map(|disparity| known.label(disparity, true));
        assert_eq!(labels, ["0.8", "10", "100", "far", "far"]);
        assert_eq!(known.unit(), "m");
    }
}
