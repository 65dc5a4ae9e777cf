//! Zones that something may enter, and boxes of a detector: the nearest thing in a part of the image or of space.
//!
//! A zone is a polygon of the image between two distances, or a prism in the vehicle's axes. Rays that end before it do
//! not see it, so what hides a zone makes it unknown, not free.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use stereod_core::frame::{INVALID, Matched, StereoGeometry};
use stereod_core::obstacles::{Mount, Nearest, Thing, Zone};
use stereod_core::reading;

use crate::boxes::DetectorBox;
use crate::nearest::{Cells, Extent, PER_PX};
use crate::scan::Rays;

/// Most rays that are looked at in a part; of a larger one, every second, third ... row and column.
const RAYS: f64 = 100_000.0;

/// A box is that of a thing whose rays are at least this share of those that are known.
const SHARE: f64 = 0.05;

/// Limits of a zone that is occupied are this much wider, so that it does not flicker.
const WIDER: f64 = 1.05;

/// A zone as a file describes it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneRule {
    pub name: String,
    /// Corners of a polygon, as fractions of the width and height of the rectified left image, from its upper left corner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image: Vec<[f64; 2]>,
    /// Corners of a prism's base in metres: ahead and to the left, in the vehicle's axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<[f64; 2]>,
    /// Lower and upper end of the prism in metres.
    #[serde(default = "default_height", skip_serializing_if = "is_default")]
    pub height_m: [f64; 2],
    /// Horizontal distances from the camera between which a polygon of the image counts, in metres.
    #[serde(default)]
    pub near_m: f64,
    #[serde(default = "default_far")]
    pub far_m: f64,
    /// Seconds for which the zone must be free, or unknown, until it is called so.
    #[serde(default = "default_hold")]
    pub hold_s: f64,
    /// Share of the zone's rays that must be known for it to be called free, from 0 to 1.
    #[serde(default = "default_known")]
    pub known: f64,
}

fn default_height() -> [f64; 2] {
    [0.1, 2.0]
}

fn is_default(height_m: &[f64; 2]) -> bool {
    *height_m == default_height()
}

fn default_far() -> f64 {
    20.0
}

fn default_hold() -> f64 {
    1.0
}

fn default_known() -> f64 {
    0.8
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    zone: Vec<ZoneRule>,
}

/// Most zones of a file: each takes its time with every pair.
const MOST: usize = 64;

/// Largest file of zones in bytes.
const LONGEST: u64 = 1 << 20;

/// Returns the text of a file of zones.
///
/// # Errors
///
/// If it cannot be read, or is no text.
pub fn text(path: &Path) -> anyhow::Result<String> {
    let name = || format!("the zones {}", path.display());
    let bytes = reading::read(path, LONGEST).with_context(name)?;
    String::from_utf8(bytes).with_context(name)
}

/// Reads the zones of a file in TOML.
///
/// # Errors
///
/// If it is no such file, or a zone has no name, no area, or limits that leave nothing.
pub fn read(text: &str) -> anyhow::Result<Vec<ZoneRule>> {
    let File { zone: zones } = toml::from_str(text)?;
    check(&zones)?;
    Ok(zones)
}

/// Returns a file of these zones.
///
/// # Errors
///
/// If a name cannot be written.
pub fn to_toml(zones: &[ZoneRule]) -> anyhow::Result<String> {
    Ok(toml::to_string(&File { zone: zones.to_vec() })?)
}

fn check(zones: &[ZoneRule]) -> anyhow::Result<()> {
    anyhow::ensure!(zones.len() <= MOST, "{} zones; at most {MOST} are watched", zones.len());
    for (place, zone) in zones.iter().enumerate() {
        zone.check().map_err(|why| anyhow::anyhow!("zone {:?}: {why}", zone.name))?;
        let is_double = zones[..place].iter().any(|other| other.name == zone.name);
        anyhow::ensure!(!is_double, "two zones are called {:?}", zone.name);
    }
    Ok(())
}

/// A change of the zones of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edit {
    Add(ZoneRule),
    /// By its name.
    Remove(String),
}

impl Edit {
    pub fn name(&self) -> &str {
        match self {
            Edit::Add(zone) => &zone.name,
            Edit::Remove(name) => name,
        }
    }

    /// Returns the zones after the change.
    ///
    /// # Errors
    ///
    /// If the new zone is wrong, or there is none of this name.
    pub fn of(&self, zones: &[ZoneRule]) -> anyhow::Result<Vec<ZoneRule>> {
        let mut zones = zones.to_vec();
        match self {
            Edit::Add(zone) => zones.push(zone.clone()),
            Edit::Remove(name) => {
                let place = zones.iter().position(|zone| zone.name == *name);
                zones.remove(place.with_context(|| format!("there is no zone {name:?}"))?);
            }
        }
        check(&zones)?;
        Ok(zones)
    }

    /// Returns the text of a file after the change, with its comments and its other zones as they are. A comment right above
    /// a zone goes with it.
    ///
    /// # Errors
    ///
    /// As [`Edit::of`], and if the file has its zones in another form than `[[zone]]`.
    pub fn in_text(&self, text: &str) -> anyhow::Result<String> {
        let wanted = self.of(&read(text)?)?;
        let edited = match self {
            Edit::Add(zone) => {
                let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
                let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                format!("{text}{end}{gap}{}", to_toml(std::slice::from_ref(zone))?)
            }
            Edit::Remove(name) => without(text, name),
        };
        let is_right = read(&edited).is_ok_and(|zones| zones == wanted);
        anyhow::ensure!(is_right, "its zones are not written as [[zone]]; change it by hand");
        Ok(edited)
    }
}

/// Returns the text without the lines of a zone.
fn without(text: &str, name: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut parts: Vec<String> = vec![String::new()];
    for (place, line) in lines.iter().enumerate() {
        let begins = |line: &str| line.trim_start().starts_with("[[");
        let is_comment = |line: &&&str| line.trim_start().starts_with('#');
        let comments = lines[place..].iter().take_while(is_comment).count();
        // A comment belongs to the zone below it; the first of several begins the part.
        let is_first = place == 0 || !is_comment(&&lines[place - 1]);
        if is_first && lines.get(place + comments).is_some_and(|line| begins(line)) {
            parts.push(String::new());
        }
        parts.last_mut().into_iter().for_each(|part| *part += line);
    }
    let is_kept = |part: &&String| {
        read(part).map_or(true, |zones| zones.iter().all(|zone| zone.name != name))
    };
    parts.iter().filter(is_kept).map(String::as_str).collect()
}

impl ZoneRule {
    fn check(&self) -> Result<(), &'static str> {
        let corners = if self.image.is_empty() { &self.floor } else { &self.image };
        let area = |corners: &[[f64; 2]]| {
            let next = corners.iter().cycle().skip(1);
            let parts = corners.iter().zip(next).map(|(a, b)| a[0] * b[1] - b[0] * a[1]);
            parts.sum::<f64>().abs() / 2.0
        };
        let limits = [self.near_m, self.far_m, self.hold_s, self.known];
        let numbers = corners.iter().chain([&self.height_m]).flatten().chain(&limits);
        if self.name.trim().is_empty() || self.name.contains(char::is_control) {
            Err("give it a `name` of one line")
        } else if self.image.is_empty() == self.floor.is_empty() {
            Err(
                "give either `image`, corners in the image, or `floor`, corners in the vehicle's axes",
            )
        } else if numbers.into_iter().any(|number| !number.is_finite()) {
            Err("its numbers must be finite")
        } else if corners.len() < 3 || area(corners) < 1e-6 {
            Err("it needs three corners or more that enclose an area")
        } else if self.image.iter().flatten().any(|part| !(0.0..=1.0).contains(part)) {
            Err("corners in the image are fractions of its width and height, from 0 to 1")
        } else if self.near_m < 0.0 || self.far_m <= self.near_m {
            Err("`far_m` must be greater than `near_m`, and that not less than 0")
        } else if self.height_m[1] <= self.height_m[0] {
            Err("the second number of `height_m` must be greater than the first")
        } else if self.hold_s < 0.0 || !(0.0..=1.0).contains(&self.known) {
            Err("`hold_s` must not be less than 0, and `known` from 0 to 1")
        } else {
            Ok(())
        }
    }

    /// Returns the depths, in metres along the optical axis, between which a ray is in the zone.
    fn span(&self, origin: [f64; 3], direction: [f64; 3], wider: f64) -> Option<[f64; 2]> {
        if self.floor.is_empty() {
            let flat = direction[0].hypot(direction[1]);
            return Some([self.near_m / wider / flat, self.far_m * wider / flat]);
        }
        let [mut begin, mut end] = [f64::INFINITY, f64::NEG_INFINITY];
        let mut is_inside = false;
        for (a, b) in self.floor.iter().zip(self.floor.iter().cycle().skip(1)) {
            let edge = [b[0] - a[0], b[1] - a[1]];
            let from = [a[0] - origin[0], a[1] - origin[1]];
            if (a[1] > origin[1]) != (b[1] > origin[1])
                && from[0] + edge[0] * (origin[1] - a[1]) / edge[1] > 0.0
            {
                is_inside = !is_inside;
            }
            let across = edge[0] * direction[1] - edge[1] * direction[0];
            let depth = (edge[0] * from[1] - edge[1] * from[0]) / across;
            let along = (direction[0] * from[1] - direction[1] * from[0]) / across;
            // The ray and the edge meet at this depth and this part of the edge.
            if across != 0.0 && depth > 0.0 && (0.0..=1.0).contains(&along) {
                (begin, end) = (begin.min(depth), end.max(depth));
            }
        }
        if is_inside {
            begin = 0.0;
        }
        let heights = self.height_m.map(|height| (height - origin[2]) / direction[2]);
        if direction[2] != 0.0 {
            begin = begin.max(heights[0].min(heights[1]));
            end = end.min(heights[0].max(heights[1]));
        } else if !(self.height_m[0]..=self.height_m[1]).contains(&origin[2]) {
            return None;
        }
        begin = begin.max(0.0);
        (begin < end).then_some([begin, end])
    }
}

/// What is remembered of a zone.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    said: Option<bool>,
    /// What the last pair showed, and since when pairs show it.
    shown: Option<bool>,
    since: Option<Duration>,
}

impl Memory {
    /// Takes what a pair shows and returns what is said: the first pair's state, then occupied after two pairs, free or
    /// unknown after `hold`.
    fn note(&mut self, shown: Option<bool>, time: Duration, hold: Duration) -> Option<bool> {
        match self.since {
            Some(since) if self.shown == shown => {
                if shown == Some(true) || time.saturating_sub(since) >= hold {
                    self.said = shown;
                }
            }
            Some(_) => (self.shown, self.since) = (shown, Some(time)),
            None => (self.said, self.shown, self.since) = (shown, shown, Some(time)),
        }
        self.said
    }
}

/// Watches the zones of one rig.
#[derive(Debug)]
pub struct Watch {
    rules: Vec<ZoneRule>,
    memory: Vec<Memory>,
    cells: Cells,
    /// Blocked rays of a part: their cells and points.
    points: Vec<(u16, [f32; 3])>,
    pixels: u32,
    confidence: u8,
}

/// Rays of a part of the image.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u32,
    known: u32,
}

impl Watch {
    /// `pixels` must agree for a thing; `confidence` is that of a sure pixel.
    pub fn new(rules: Vec<ZoneRule>, pixels: u32, confidence: u8) -> Self {
        let memory = vec![Memory::default(); rules.len()];
        Self { rules, memory, cells: Cells::default(), points: Vec::new(), pixels, confidence }
    }

    /// Takes over what another one remembers of zones that are the same.
    pub fn remember(&mut self, before: &Watch) {
        for (rule, memory) in self.rules.iter().zip(&mut self.memory) {
            if let Some(place) = before.rules.iter().position(|other| other == rule) {
                *memory = before.memory[place];
            }
        }
    }

    /// Returns the state of each zone after this pair.
    pub fn zones(
        &mut self,
        matched: &Matched,
        mount: &Mount,
        geometry: StereoGeometry,
    ) -> Vec<Zone> {
        let rays = Rays::new(mount, geometry);
        let rules = std::mem::take(&mut self.rules);
        let mut zones = Vec::with_capacity(rules.len());
        for (place, rule) in rules.iter().enumerate() {
            let wider = if self.memory[place].said == Some(true) { WIDER } else { 1.0 };
            let counts = self.gather(matched, &rays, &rule.image, |direction| {
                rule.span(rays.origin_m, direction, wider)
            });
            let nearest = self.nearest(&rays, self.pixels, false);
            let known = f64::from(counts.known) / f64::from(counts.all.max(1));
            let shown = match nearest {
                Some(_) => Some(true),
                None if counts.all > 0 && known >= rule.known => Some(false),
                None => None,
            };
            let hold = Duration::from_secs_f64(rule.hold_s);
            let occupied = self.memory[place].note(shown, matched.pair.timestamp, hold);
            zones.push(Zone { name: rule.name.clone(), occupied, nearest, known });
        }
        self.rules = rules;
        zones
    }

    /// Returns the distances of the things in a detector's boxes.
    pub fn things(
        &mut self,
        matched: &Matched,
        mount: &Mount,
        geometry: StereoGeometry,
        boxes: Vec<DetectorBox>,
    ) -> Vec<Thing> {
        let rays = Rays::new(mount, geometry);
        let size = [matched.disparity.width() as f64, matched.disparity.height() as f64];
        let thing = |DetectorBox { label, id, score, edges, .. }| {
            let [left, top, right, bottom]: [f64; 4] = edges;
            let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
            let corners = corners.map(|corner| corner.map(|part| part.clamp(0.0, 1.0)));
            let counts = self.gather(matched, &rays, &corners, |_| Some([0.0, f64::INFINITY]));
            let pixels = self.pixels.max((f64::from(counts.known) * SHARE) as u32);
            let nearest = self.nearest(&rays, pixels, true);
            let known = f64::from(counts.known) / f64::from(counts.all.max(1));
            let edges_px = [left * size[0], top * size[1], right * size[0], bottom * size[1]];
            Thing { label, id, score, edges_px, nearest, known }
        };
        boxes.into_iter().map(thing).collect()
    }

    /// Collects the blocked rays of a polygon of the image, or of all of it if there is none.
    fn gather(
        &mut self,
        matched: &Matched,
        rays: &Rays,
        corners: &[[f64; 2]],
        span: impl Fn([f64; 3]) -> Option<[f64; 2]>,
    ) -> Counts {
        let map = &matched.disparity;
        let (width, height) = (map.width(), map.height());
        let most = f64::from(map.range().max()) - rays.at_infinity_px();
        self.cells.clear(2 * (most.max(1.0) * PER_PX as f64).ceil() as usize);
        self.points.clear();
        let rows = Rows::of(corners, (width, height));
        let step = (rows.area / RAYS).sqrt().ceil().max(1.0) as usize;
        let mut counts = Counts::default();
        for y in (rows.begin..rows.end).step_by(step) {
            for [begin, end] in rows.spans(y as f64 + 0.5) {
                for x in (begin..end).step_by(step) {
                    let direction = rays.direction(x as f64, y as f64);
                    let Some([near, far]) = span(direction) else { continue };
                    let weight = (step * step) as u32;
                    counts.all += weight;
                    let Some(parallax) = self.parallax(matched, rays, y * width + x) else {
                        continue;
                    };
                    let depth =
                        if parallax > 0.0 { rays.scale() / parallax } else { f64::INFINITY };
                    if depth < near {
                        continue;
                    }
                    counts.known += weight;
                    if depth > far || depth.is_infinite() {
                        continue;
                    }
                    let cell = parallax * PER_PX as f64 / direction[0].hypot(direction[1]) + 0.5;
                    let cell = (cell as usize).min(self.cells.len() - 1) as u16;
                    let point = std::array::from_fn(|i| rays.origin_m[i] + depth * direction[i]);
                    self.cells.add(usize::from(cell), weight, 0.0);
                    self.points.push((cell, point.map(|value: f64| value as f32)));
                }
            }
        }
        counts
    }

    /// Returns the disparity of a sure pixel against that of infinity.
    fn parallax(&self, matched: &Matched, rays: &Rays, at: usize) -> Option<f64> {
        let value = matched.disparity.values()[at];
        let is_sure =
            matched.confidence.as_ref().is_none_or(|it| it.pixels()[at] >= self.confidence);
        (value != INVALID && is_sure)
            .then(|| f64::from(value) / PER_PX as f64 - rays.at_infinity_px())
    }

    fn nearest(&self, rays: &Rays, pixels: u32, grows: bool) -> Option<Nearest> {
        let extent = Extent { scale: rays.scale(), pixels, grows };
        let (first, last) = self.cells.group(&extent)?;
        let group =
            self.points.iter().filter(|(cell, _)| (last..=first).contains(&usize::from(*cell)));
        let mut sum = [0.0; 4];
        for (_, point) in group {
            (0..3).for_each(|i| sum[i] += f64::from(point[i]));
            sum[3] += 1.0;
        }
        let centre = [0, 1, 2].map(|i| sum[i] / f64::max(sum[3], 1.0));
        self.cells.nearest(&extent, |_, _| centre)
    }
}

/// Rows and columns of a polygon.
struct Rows {
    corners: Vec<[f64; 2]>,
    width: usize,
    begin: usize,
    end: usize,
    /// Of the bounding box, in pixels.
    area: f64,
}

impl Rows {
    fn of(corners: &[[f64; 2]], (width, height): (usize, usize)) -> Self {
        let scale = [width as f64, height as f64];
        let whole = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
        let corners = if corners.is_empty() { &whole[..] } else { corners };
        let corners: Vec<_> =
            corners.iter().map(|corner| [corner[0] * scale[0], corner[1] * scale[1]]).collect();
        let [least, most] = [0, 1].map(|axis| {
            let values = || corners.iter().map(|corner| corner[axis]);
            [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
        });
        let area = (least[1] - least[0]) * (most[1] - most[0]);
        let (begin, end) = (most[0].floor() as usize, (most[1].ceil() as usize).min(height));
        Self { corners, width, begin, end, area }
    }

    /// Returns the columns of a row, by the crossings of its middle with the polygon's edges.
    fn spans(&self, y: f64) -> Vec<[usize; 2]> {
        let next = self.corners.iter().cycle().skip(1);
        let mut crossings: Vec<f64> = self
            .corners
            .iter()
            .zip(next)
            .filter(|(a, b)| (a[1] > y) != (b[1] > y))
            .map(|(a, b)| a[0] + (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]))
            .collect();
        crossings.sort_unstable_by(f64::total_cmp);
        let column = |x: f64| (x.round() as usize).min(self.width);
        crossings.chunks_exact(2).map(|pair| [column(pair[0]), column(pair[1])]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, forget, geometry, mount};

    fn watch(zones: &str) -> Watch {
        Watch::new(read(zones).unwrap(), 20, 0)
    }

    fn post(x: f64, y: f64) -> World {
        let boxes = vec![[[x, y, 0.0], [x + 0.4, y + 0.4, 1.8]]];
        World { boxes, has_ground: true, noise_px: 0.0 }
    }

    /// A volume of 2 m ahead of the vehicle, from 2 m on, on its left.
    const VOLUME: &str =
        "[[zone]]\nname = 'v'\nfloor = [[2, 0], [4, 0], [4, 2], [2, 2]]\nhold_s = 0.5\n";

    fn state(watch: &mut Watch, world: &World) -> Zone {
        watch.zones(&world.seen(&mount()), &mount(), geometry()).remove(0)
    }

    #[test]
    fn a_volume_holds_what_stands_in_it_only() {
        let inside = state(&mut watch(VOLUME), &post(3.0, 1.0));
        assert_eq!(inside.occupied, Some(true));
        let nearest = inside.nearest.unwrap();
        assert!((nearest.distance_m - 3.0f64.hypot(1.2)).abs() < 0.2, "{nearest:?}");
        assert!((nearest.position_m[0] - 3.05).abs() < 0.15, "{nearest:?}");
        assert!((nearest.position_m[1] - 1.2).abs() < 0.15, "{nearest:?}");
        for outside in [post(3.0, -1.0), post(5.0, 1.0)] {
            let zone = state(&mut watch(VOLUME), &outside);
            assert_eq!((zone.occupied, zone.nearest), (Some(false), None));
        }
    }

    #[test]
    fn what_hides_a_zone_does_not_make_it_free() {
        let wall = World { boxes: vec![[[1.0, -5.0, 0.0], [1.2, 5.0, 3.0]]], ..World::default() };
        assert_eq!(state(&mut watch(VOLUME), &wall).occupied, None);
        let mut blind = post(5.0, 1.0).seen(&mount());
        forget(&mut blind, 0..160, 0..240);
        let zone = watch(VOLUME).zones(&blind, &mount(), geometry()).remove(0);
        assert_eq!(zone.occupied, None);
    }

    #[test]
    fn a_polygon_of_the_image_has_limits_of_distance() {
        let zones = "[[zone]]\nname = 'p'\nimage = [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]\nnear_m = 2\nfar_m = 4\n";
        assert_eq!(state(&mut watch(zones), &post(3.0, 0.5)).occupied, Some(true));
        // Without the ground, which is between the limits as well.
        let far = World { has_ground: false, ..post(6.0, 0.5) };
        assert_eq!(state(&mut watch(zones), &far).occupied, Some(false));
        let right = World { has_ground: false, ..post(3.0, -1.5) };
        assert_eq!(state(&mut watch(zones), &right).occupied, Some(false));
    }

    #[test]
    fn a_zone_changes_after_two_pairs_and_is_free_after_a_while() {
        let mut memory = Memory::default();
        let hold = Duration::from_millis(500);
        let mut at = |ms, shown| memory.note(shown, Duration::from_millis(ms), hold);
        assert_eq!(at(0, Some(false)), Some(false));
        assert_eq!(at(100, Some(true)), Some(false));
        assert_eq!(at(200, Some(true)), Some(true));
        assert_eq!(at(300, Some(false)), Some(true));
        assert_eq!(at(700, Some(false)), Some(true));
        assert_eq!(at(800, Some(false)), Some(false));
        assert_eq!(at(900, None), Some(false));
        assert_eq!(at(1400, None), None);
    }

    #[test]
    fn a_box_has_the_distance_of_what_stands_before_the_wall() {
        let mut world = post(3.0, -0.2);
        world.boxes.push([[8.0, -9.0, 0.0], [9.0, 9.0, 5.0]]);
        let edges = [0.4, 0.2, 0.6, 0.8];
        let framed = DetectorBox {
            label: "person".into(),
            id: None,
            score: None,
            edges,
            stamp: Duration::ZERO,
        };
        let matched = world.seen(&mount());
        let things = watch("").things(&matched, &mount(), geometry(), vec![framed]);
        let nearest = things[0].nearest.unwrap();
        // Most pixels of the box show the wall.
        assert!((nearest.distance_m - 3.0).abs() < 0.2, "{nearest:?}");
        assert_eq!(things[0].edges_px, [128.0, 48.0, 192.0, 192.0]);
    }

    #[test]
    fn files_keep_their_comments_and_other_zones() {
        let text = format!(
            "# Rig 1.\n\n# The gate.\n{VOLUME}\n# Behind\n# it.\n[[zone]]\nname = 'b' # not 'v'\nimage = [\n  [0, 0], # upper left\n[1, 0],\n[1, 1]]"
        );
        let zone = ZoneRule { name: "it's \"new\"".into(), ..read(VOLUME).unwrap().remove(0) };
        let added = Edit::Add(zone.clone()).in_text(&text).unwrap();
        assert!(added.starts_with(&text), "{added}");
        assert_eq!(read(&added).unwrap()[2], zone);
        let name = |text: &str| -> Vec<_> {
            read(text).unwrap().into_iter().map(|zone| zone.name).collect()
        };
        let removed = Edit::Remove("v".into()).in_text(&added).unwrap();
        assert_eq!(name(&removed), ["b", "it's \"new\""]);
        assert!(removed.starts_with("# Rig 1.\n\n# Behind\n# it.\n[[zone]]\n"), "{removed}");
        let removed = Edit::Remove("b".into()).in_text(&removed).unwrap();
        assert_eq!(name(&removed), [zone.name.as_str()]);
        assert!(!removed.contains("Behind"), "{removed}");
        assert_eq!(Edit::Remove(zone.name).in_text(&removed).unwrap().trim(), "# Rig 1.");
        let inline = "zone = [{ name = 'v', floor = [[0, 0], [1, 0], [0, 1]] }, { name = 'b', floor = [[0, 0], [1, 0], [0, 1]] }]\n";
        for edit in [
            Edit::Remove("v".into()),
            Edit::Add(ZoneRule { name: "w".into(), ..read(VOLUME).unwrap().remove(0) }),
        ] {
            let error = edit.in_text(inline).unwrap_err().to_string();
            assert!(error.contains("by hand"), "{error}");
        }
        for (edit, word) in [
            (Edit::Remove("w".into()), "no zone \"w\""),
            (Edit::Add(read(VOLUME).unwrap().remove(0)), "two zones"),
        ] {
            assert!(edit.in_text(VOLUME).unwrap_err().to_string().contains(word));
        }
    }

    #[test]
    fn a_zone_that_stays_is_remembered_when_others_change() {
        let (mut before, there) = (watch(VOLUME), post(3.0, 1.0));
        assert_eq!(state(&mut before, &there).occupied, Some(true));
        // Nothing is there any more, for less than `hold_s`.
        let gone = post(5.0, 1.0);
        let mut after =
            watch(&format!("[[zone]]\nname = 'n'\nfloor = [[2, 0], [4, 0], [4, 2]]\n{VOLUME}"));
        after.remember(&before);
        let zones = after.zones(&gone.seen(&mount()), &mount(), geometry());
        assert_eq!((zones[0].occupied, zones[1].occupied), (Some(false), Some(true)));
    }

    #[test]
    fn wrong_zones_are_refused_by_name() {
        for (text, word) in [
            ("[[zone]]\nname = 'a'\n", "either `image`"),
            ("[[zone]]\nname = 'a'\nimage = [[0, 0], [1, 1]]\n", "three corners"),
            ("[[zone]]\nname = 'a'\nimage = [[0, 0], [2, 0], [2, 1]]\n", "from 0 to 1"),
            ("[[zone]]\nname = 'a'\nfloor = [[0, 0], [inf, 0], [2, 1]]\n", "finite"),
            ("[[zone]]\nname = 'a'\nfloor = [[0, 0], [1, 0], [2, 1]]\nfar_m = 0\n", "far_m"),
            ("[[zone]]\nname = \"a\\nb\"\nfloor = [[0, 0], [1, 0], [2, 1]]\n", "one line"),
            ("[[zone]]\nname = ''\nfloor = [[0, 0], [1, 0], [2, 1]]\n", "name"),
            ("[[zone]]\nname = 'a'\nfoo = 1\n", "foo"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(word), "{error}");
        }
        assert!(read(&format!("{VOLUME}{VOLUME}")).unwrap_err().to_string().contains("two zones"));
    }
}
