//! Content of the overlay.

use std::time::{Duration, Instant};

use super::super::above::Around;
use super::super::histogram::Histogram;
use super::super::options::{Content, View};
use super::super::overlay::{Bar, Hover, Legend, OverlayContent};
use super::super::pane::Pane;
use super::super::path::Path;
use super::super::rows::Rows;
use super::measuring::place_on;
use super::{App, size};

/// Shortest period between changes of a number, for readability.
const READABLE: Duration = Duration::from_millis(250);

impl App {
    pub(super) fn content(&mut self, now: Instant) -> OverlayContent {
        if self.notice.as_ref().is_some_and(|notice| notice.until <= now) {
            self.notice = None;
        }
        if self.figures.is_none_or(|(since, ..)| now.duration_since(since) >= READABLE) {
            self.figures = Some((now, self.shell.remote.mailbox.rates(now), self.age));
        }
        let (rates, on_screen) =
            self.figures.map(|(_, rates, age)| (rates, age)).unwrap_or_default();
        let scene = self.scene();
        let geometry = self.frame.as_ref().and_then(|frame| frame.geometry);
        let legend = Legend { colour_map: scene.colour_map, limits: scene.limits, geometry };
        let is_in_space = self.view == View::Points;
        let in_colours = self.view.has_disparity() || is_in_space && self.depth_colours;
        let scale = is_in_space.then(|| match geometry {
            Some(_) => format!("grid: squares of {} m", self.orbit.square()),
            None => "not to scale without a calibration".to_owned(),
        });
        let verdicts = (self.view == View::Check).then(|| {
            "green: agree, yellow: only network, blue: only matching, red: contradict, black: neither"
                .to_owned()
        });
        let magnified = (!is_in_space && self.lens.scale() > 1.0)
            .then(|| format!("{:.1} times as large", self.lens.scale()));
        let wipe = self.wipe();
        let message = |error| {
            let notice = self.notice.as_ref().filter(|notice| notice.error == error);
            notice.map(|notice| notice.text.clone())
        };
        OverlayContent {
            rates,
            on_screen,
            picture: self.frame.as_ref().map(|frame| size(frame)),
            status: self.status.clone(),
            temporal: self.frame.as_ref().and_then(|frame| frame.temporal),
            around: self.around(),
            path: self.path(),
            legend: in_colours.then_some(legend),
            timeline: self.timeline(),
            hover: self.hover(),
            ruler: self.ruler(),
            scale: scale.or(verdicts).or(magnified),
            bar: self.bar(),
            wipe,
            rows: (self.view == View::Pair).then(|| self.rows()).flatten(),
            histograms: self.histograms.then(|| {
                let (timing, recent) = self.shell.remote.mailbox.recent(now);
                let times = Histogram::of_times(timing, recent.iter().map(|&(time, _)| time));
                [times, Histogram::of_skew(recent.iter().map(|&(_, skew)| skew))]
            }),
            paused: self.control.pause.is_set(),
            ended: self.ended,
            error: self.failure.clone().or_else(|| message(true)),
            notice: message(false),
            sheet: self.sheet.clone(),
        }
    }

    /// Reports whether frames are written to files now; `None` if the run writes none.
    pub(super) fn records(&self) -> Option<bool> {
        self.shell.options.recorder.as_ref().map(|recorder| recorder.recordings.is_on())
    }

    /// Returns the state of the buttons.
    fn bar(&self) -> Bar {
        let frame = self.frame.as_ref();
        let has_obstacles = frame.is_some_and(|frame| frame.obstacles.is_some());
        let has_odometry = frame.is_some_and(|frame| frame.odometry.is_some());
        Bar {
            view: self.view,
            records: self.records(),
            is_measuring: self.measured.is_some(),
            obstacles: has_obstacles.then_some(self.obstacles),
            path: has_odometry.then_some(self.path),
            depth_colours: self.depth_colours,
        }
    }

    /// Returns what was found in the pair, unless it is switched off.
    fn around(&self) -> Option<Around> {
        let frame = self.frame.as_ref().filter(|_| self.obstacles)?;
        Around::new(frame, &self.shell.options.zones.get(), self.panes())
    }

    /// Returns the path from above, unless it is switched off.
    fn path(&self) -> Option<Path> {
        if self.path { self.shell.remote.mailbox.path() } else { None }
    }

    fn hover(&self) -> Option<Hover> {
        let present = self.frame.as_ref()?;
        let picture = size(present);
        let (panes, scene) = (self.panes(), self.scene());
        let cursor = self.cursor?;
        let (under, pixel) = self.pixel_at(cursor)?;
        let under = &under;
        let (frame, side) = self.side_at(under, cursor.0, present);
        let disparity = frame.disparity.at(pixel.0 as usize, pixel.1 as usize);
        // A cross marks the same pixel in the other pane, and its match in the other view.
        let marks = panes.iter().filter(|pane| pane.content != under.content).filter_map(|pane| {
            if pane.content != Content::Right && under.content != Content::Right {
                return Some(pane.centre_of(pixel, picture));
            }
            let (x, y) = pane.centre_of(pixel, picture);
            let per_pixel = f64::from(pane.width) / f64::from(picture.0) / f64::from(pane.part[2]);
            let matched = x - f64::from(disparity?) * per_pixel;
            let inside = pane.contains((matched, y)) && under.content == Content::Left;
            inside.then_some((matched, y))
        });
        let picked = (self.view == View::Points).then(|| place_on(frame, &scene, *under, pixel));
        let marks = marks.chain(picked.flatten()).collect();
        // The disparity belongs to the left image.
        let disparity = disparity.filter(|_| under.content != Content::Right);
        let (x, y) = (pixel.0 as usize, pixel.1 as usize);
        let sure = frame.confidence.as_ref().map(|confidence| confidence.row(y)[x]);
        let confidence = disparity.and(sure).filter(|&sure| sure > 0);
        let depth = disparity.and_then(|d| frame.geometry?.depth_m(f64::from(d)));
        Some(Hover { pixel, disparity, confidence, depth, marks, side })
    }

    /// Returns the lines along the rows of both images.
    fn rows(&self) -> Option<Rows> {
        let picture = size(self.frame.as_ref()?);
        let panes = self.panes();
        let cursor = self.cursor;
        let under = |pane: &Pane| pane.pixel_at(cursor?, picture);
        let mouse = panes.iter().find_map(under).map(|(_, row)| row);
        Some(Rows { panes, picture, mouse })
    }
}
