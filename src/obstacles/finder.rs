//! All that is found in the pairs of one rig.

use std::time::Duration;

use stereod_core::frame::Matched;
use stereod_core::obstacles::{Mount, Obstacles};

use crate::boxes::DetectorBox;
use crate::ground::{Tracker, View};
use crate::scan::{NotAhead, Rules, Scanner};
use crate::zones::{Watch, ZoneRule};

/// Returns the boxes of a detector for a pair that was captured at this time of its source.
pub type Boxes = Box<dyn FnMut(Duration) -> Vec<DetectorBox> + Send>;

/// Finds obstacles in the pairs of one rig, in their order.
pub struct Finder {
    scanner: Scanner,
    watch: Watch,
    tracker: Option<Tracker>,
    mount: Mount,
    boxes: Option<Boxes>,
}

impl Finder {
    /// `tracker` follows a mount that moves; `boxes` are those of a detector.
    ///
    /// # Errors
    ///
    /// If the camera looks up or down.
    pub fn new(
        rules: Rules,
        zones: Vec<ZoneRule>,
        mount: Mount,
        tracker: Option<Tracker>,
        boxes: Option<Boxes>,
    ) -> Result<Self, NotAhead> {
        let watch = Watch::new(zones, rules.pixels, rules.confidence);
        Ok(Self { scanner: Scanner::new(rules, &mount)?, watch, tracker, mount, boxes })
    }

    /// Goes on by the rules of another one: with the boxes of this one, with the ground that it follows if the mount is the
    /// same, and with what it remembers of zones that are the same.
    pub fn go_on_as(&mut self, mut next: Self) {
        next.watch.remember(&self.watch);
        next.boxes = self.boxes.take();
        if next.mount == self.mount && next.tracker.is_some() {
            next.tracker = self.tracker.take().or(next.tracker);
        }
        *self = next;
    }

    /// Returns the place of the camera as it is configured.
    pub fn mount(&self) -> Mount {
        self.mount
    }

    /// Finds what is in a pair; `None` if its cameras are not known.
    pub fn find(&mut self, matched: &Matched) -> Option<Obstacles> {
        let geometry = matched.geometry?;
        let time = matched.pair.timestamp;
        let mount = match (&mut self.tracker, View::of(matched)) {
            (Some(tracker), Some(view)) => {
                let pose = matched.odometry.as_ref().and_then(|odometry| odometry.known());
                tracker.update(&view, time, pose).mount
            }
            _ => self.mount,
        };
        let scan = self.scanner.scan(matched, &mount, geometry);
        let zones = self.watch.zones(matched, &mount, geometry);
        let boxes = self.boxes.as_mut().map(|boxes| boxes(time)).unwrap_or_default();
        let things = self.watch.things(matched, &mount, geometry, boxes);
        Some(Obstacles { scan, zones, things, mount })
    }
}
