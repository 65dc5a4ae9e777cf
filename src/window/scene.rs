//! The scene: the view, and the layout of its panes on a target, independent of any graphics device.

use super::options::View;
use super::orbit::Orbit;
use super::pane::Pane;
use stereod_core::frame::SUBPIXEL;
use stereod_io::sink::colour::{ColourMap, ColourScale};

/// Disparity of the first and of the last colour, in 1/16 px.
///
/// Whole numbers, so that every device computes the same colour. Against [`ColourScale`], which is
/// exact, a colour may be off by one entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub low: i32,
    pub high: i32,
}

impl Limits {
    pub fn of(scale: &ColourScale) -> Self {
        let (low, high) = scale.limits();
        let units = |pixels: f32| {
            // Far beyond any disparity, and small enough for `table_entry` not to overflow.
            ((pixels * SUBPIXEL as f32).round() as i32).clamp(-4_000_000, 4_000_000)
        };
        Self { low: units(low), high: units(high).max(units(low) + 1) }
    }

    /// Returns the colour table entry of a disparity in 1/16 px, as shaders/disparity.wgsl does.
    pub fn table_entry(self, value: i16) -> usize {
        let span = (self.high - self.low).max(1);
        let steps = (i32::from(value) - self.low).clamp(0, span);
        ((steps * 255 + span / 2) / span) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scene {
    pub view: View,
    pub colour_map: ColourMap,
    /// Disparity of the first and of the last colour, in 1/16 px.
    pub limits: Limits,
    /// Width and height in pixels left free at the right and the lower edge of the target.
    pub taken: (u32, u32),
    /// Visible part of the flat views.
    pub lens: Lens,
    /// Viewpoint of the points in space.
    pub orbit: Orbit,
    /// True if they have the colours of their disparities, not those of the left image.
    pub depth_colours: bool,
    /// Nearest and farthest depth in metres of these points.
    pub depths: [f32; 2],
    /// Share of the width of a pane in which the kept map takes the place of the present one.
    pub wipe: Option<f32>,
}

pub const ALL_DEPTHS: [f32; 2] = [0.0, f32::MAX];

impl Scene {
    /// Returns a scene of the whole image, or of all points as the left camera sees them.
    pub fn new(view: View, colour_map: ColourMap, limits: Limits) -> Self {
        Self {
            view,
            colour_map,
            limits,
            taken: (0, 0),
            lens: Lens::default(),
            orbit: Orbit::default(),
            depth_colours: false,
            depths: ALL_DEPTHS,
            wipe: None,
        }
    }

    /// Returns the part of a target of `size` pixels that is free for panes.
    pub fn room(&self, size: (u32, u32)) -> (u32, u32) {
        (size.0.saturating_sub(self.taken.0), size.1.saturating_sub(self.taken.1))
    }

    /// Returns the panes of a target of `size` pixels, with the visible part of the image.
    pub fn panes(&self, picture: (u32, u32), size: (u32, u32)) -> Vec<Pane> {
        let part = self.lens.part();
        let panes = panes(self.view, picture, self.room(size)).into_iter();
        panes
            .map(|pane| Pane { part: if self.view == View::Points { WHOLE } else { part }, ..pane })
            .collect()
    }
}

/// Left, top, width and height of a whole image, as shares of it.
const WHOLE: [f32; 4] = [0.0, 0.0, 1.0, 1.0];

/// Largest magnification.
const LARGEST: f32 = 64.0;

/// Magnification of the flat views, and the place in their middle as shares of the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lens {
    scale: f32,
    middle: [f32; 2],
}

impl Default for Lens {
    fn default() -> Self {
        Self { scale: 1.0, middle: [0.5; 2] }
    }
}

impl Lens {
    fn part(&self) -> [f32; 4] {
        let size = 1.0 / self.scale;
        let [left, top] = self.middle.map(|middle| middle - 0.5 * size);
        [left, top, size, size]
    }

    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Magnifies; the place `about` in the image stays where it is.
    pub fn magnify(&mut self, factor: f32, about: [f32; 2]) {
        let scale = (self.scale * factor).clamp(1.0, LARGEST);
        let ratio = self.scale / scale;
        for (middle, about) in self.middle.iter_mut().zip(about) {
            *middle = about + (*middle - about) * ratio;
        }
        self.scale = scale;
        self.shift(0.0, 0.0);
    }

    /// Moves the image to the right and down, by shares of the pane.
    pub fn shift(&mut self, across: f32, down: f32) {
        let half = 0.5 / self.scale;
        for (middle, by) in self.middle.iter_mut().zip([across, down]) {
            *middle = (*middle - by / self.scale).clamp(half, 1.0 - half);
        }
    }
}

/// Lays the panes of a view out on a target of `target` (width, height) pixels: centred and as large as fits
/// with the aspect ratio of `picture`. Left image and disparity stand one below the other if they are larger
/// that way, and points in space fill the target. Empty if the target or the picture is empty.
pub fn panes(view: View, picture: (u32, u32), target: (u32, u32)) -> Vec<Pane> {
    if picture.0 == 0 || picture.1 == 0 || target.0 == 0 || target.1 == 0 {
        return Vec::new();
    }
    let contents = view.contents();
    let count = contents.len() as u32;
    if target.0 < count {
        return Vec::new();
    }
    if view == View::Points {
        let (width, height) = target;
        return vec![Pane { content: contents[0], part: WHOLE, x: 0, y: 0, width, height }];
    }
    let [across, down] = [false, true].map(|stacks| fit(view, picture, target, stacks));
    if view == View::SideBySide && down > across && target.1 >= 2 {
        let half = target.1 / 2;
        let mut both = panes(View::Left, picture, (target.0, half));
        both.extend(panes(View::Disparity, picture, (target.0, half)));
        // They touch in the middle.
        let height = both[0].height;
        for (pane, y) in both.iter_mut().zip([half - height, half]) {
            pane.y = y;
        }
        return both;
    }
    let natural = view.natural_size(picture);
    // The tighter of the two directions decides; u64 because the products of sizes are compared.
    let fits_width =
        u64::from(target.0) * u64::from(natural.1) <= u64::from(target.1) * u64::from(natural.0);
    let (width, height) = if fits_width {
        let width = target.0 / count;
        (width, scaled(width, picture.1, picture.0))
    } else {
        (scaled(target.1, picture.0, picture.1), target.1)
    };
    let width = width.clamp(1, target.0 / count);
    let height = height.clamp(1, target.1);
    let x = (target.0 - width * count) / 2;
    let y = (target.1 - height) / 2;
    (0..count)
        .zip(contents)
        .map(|(i, &content)| Pane { content, part: WHOLE, x: x + i * width, y, width, height })
        .collect()
}

fn scaled(length: u32, numerator: u32, denominator: u32) -> u32 {
    let denominator = u64::from(denominator);
    let product = u64::from(length) * u64::from(numerator);
    ((product + denominator / 2) / denominator) as u32
}

/// Returns the scale at which a view fits into a target, with its panes side by side or stacked.
fn fit(view: View, picture: (u32, u32), target: (u32, u32), stacks: bool) -> f64 {
    let (width, height) = arranged(view, picture, stacks);
    (f64::from(target.0) / f64::from(width)).min(f64::from(target.1) / f64::from(height))
}

/// Returns the size of a view at 1:1, with its panes side by side or stacked.
fn arranged(view: View, picture: (u32, u32), stacks: bool) -> (u32, u32) {
    match stacks {
        true => (picture.0, picture.1 * view.contents().len() as u32),
        false => view.natural_size(picture),
    }
}

/// Least gain in size for which the window opens with stacked panes, because most screens are wide.
const WORTH_STACKING: f64 = 1.25;

/// Returns the first size of the window: 1:1 if that fits into `largest`, otherwise as large as fits.
/// Images smaller than `smallest` are enlarged by a whole number.
pub fn window_size(
    view: View,
    picture: (u32, u32),
    smallest: (u32, u32),
    largest: (u32, u32),
) -> (u32, u32) {
    let picture = (picture.0.max(1), picture.1.max(1));
    let [across, down] = [false, true].map(|stacks| fit(view, picture, largest, stacks).min(1.0));
    let stacks = view == View::SideBySide && down > WORTH_STACKING * across;
    let (width, height) = arranged(view, picture, stacks);
    let fit = fit(view, picture, largest, stacks);
    let need =
        (f64::from(smallest.0) / f64::from(width)).max(f64::from(smallest.1) / f64::from(height));
    let scale = if fit < 1.0 { fit } else { need.ceil().clamp(1.0, fit.floor()) };
    let length = |natural: u32| ((f64::from(natural) * scale).round() as u32).max(1);
    (length(width), length(height))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::DisparityRange;
    use stereod_io::sink::colour::ColourRange;

    fn rectangles(view: View, picture: (u32, u32), target: (u32, u32)) -> Vec<[u32; 4]> {
        panes(view, picture, target).iter().map(|p| [p.x, p.y, p.width, p.height]).collect()
    }

    #[test]
    fn a_pane_keeps_the_aspect_and_stays_in_the_middle() {
        assert_eq!(rectangles(View::Left, (640, 480), (640, 480)), [[0, 0, 640, 480]]);
        assert_eq!(rectangles(View::Left, (640, 480), (1000, 480)), [[180, 0, 640, 480]]);
        assert_eq!(rectangles(View::Disparity, (640, 480), (640, 1000)), [[0, 260, 640, 480]]);
        assert_eq!(rectangles(View::Left, (640, 480), (320, 300)), [[0, 30, 320, 240]]);
    }

    #[test]
    fn side_by_side_makes_two_panes_of_one_size() {
        let both = [[0, 60, 640, 480], [640, 60, 640, 480]];
        assert_eq!(rectangles(View::SideBySide, (640, 480), (1280, 600)), both);
        // One below the other in a narrow window. Both views of a pair always have their rows side by side.
        let narrow = [[0, 199, 101, 51], [0, 250, 101, 51]];
        assert_eq!(rectangles(View::SideBySide, (200, 100), (101, 501)), narrow);
        let pair = [[0, 238, 50, 25], [50, 238, 50, 25]];
        assert_eq!(rectangles(View::Pair, (200, 100), (101, 501)), pair);
    }

    #[test]
    fn any_target_holds_its_panes() {
        for view in [
            View::Left,
            View::Disparity,
            View::SideBySide,
            View::Pair,
            View::Right,
            View::Points,
            View::Confidence,
            View::Whitened,
            View::Check,
        ] {
            for picture in [(1, 1), (1, 1000), (1000, 1), (752, 480), (33, 7)] {
                for width in [0, 1, 2, 3, 17, 640] {
                    for height in [0, 1, 2, 3, 17, 640] {
                        for pane in panes(view, picture, (width, height)) {
                            assert!(pane.width >= 1 && pane.x + pane.width <= width);
                            assert!(pane.height >= 1 && pane.y + pane.height <= height);
                        }
                    }
                }
            }
        }
        assert!(panes(View::Left, (640, 480), (0, 0)).is_empty(), "a minimised window");
    }

    #[test]
    fn the_pixel_under_the_mouse_is_found_and_marked_at_its_middle() {
        let picture = (10, 5);
        let pane = panes(View::SideBySide, picture, (200, 70))[1];
        assert_eq!((pane.x, pane.y, pane.width, pane.height), (100, 10, 100, 50));
        assert_eq!(pane.pixel_at((100.0, 10.0), picture), Some((0, 0)));
        assert_eq!(pane.pixel_at((199.9, 59.9), picture), Some((9, 4)));
        assert_eq!(pane.pixel_at((134.0, 31.0), picture), Some((3, 2)));
        assert_eq!(pane.pixel_at((99.9, 31.0), picture), None);
        assert_eq!(pane.pixel_at((134.0, 60.0), picture), None);
        assert_eq!(pane.centre_of((3, 2), picture), (135.0, 35.0));
    }

    #[test]
    fn a_lens_keeps_the_place_under_the_mouse_and_ends_at_the_borders() {
        let picture = (10, 5);
        let mut scene = Scene::new(View::Left, ColourMap::Turbo, Limits { low: 0, high: 1 });
        let at = (130.0, 40.0);
        let place = |scene: &Scene| scene.panes(picture, (200, 100))[0].place_at(at).unwrap();
        let before = place(&scene);
        assert_eq!(before, [0.65, 0.4]);
        for factor in [3.0, 2.0, 0.5] {
            scene.lens.magnify(factor, before.map(|share| share as f32));
            let now = place(&scene);
            assert!(
                (now[0] - before[0]).abs() < 1e-5 && (now[1] - before[1]).abs() < 1e-5,
                "{now:?}"
            );
        }
        let pane = scene.panes(picture, (200, 100))[0];
        let (x, y) = pane.centre_of((6, 2), picture);
        assert_eq!(pane.pixel_at((x, y), picture), Some((6, 2)));
        assert!(!pane.contains(pane.centre_of((0, 0), picture)));
        scene.lens.shift(100.0, -100.0);
        assert_eq!(
            scene.panes(picture, (200, 100))[0].pixel_at((0.5, 99.5), picture),
            Some((0, 4))
        );
        scene.lens.magnify(1e-3, [0.9, 0.1]);
        assert_eq!(scene.lens, Lens::default());
        // The points in space have a viewpoint of their own, and all of the room.
        scene.lens.magnify(2.0, [0.5; 2]);
        scene.view = View::Points;
        let pane = scene.panes(picture, (200, 70))[0];
        assert_eq!((pane.part, pane.width, pane.height), (WHOLE, 200, 70));
    }

    #[test]
    fn the_window_starts_at_a_sensible_size() {
        let (smallest, largest) = ((640, 360), (1600, 900));
        let size = |view, picture| window_size(view, picture, smallest, largest);
        assert_eq!(size(View::Disparity, (752, 480)), (752, 480));
        assert_eq!(size(View::SideBySide, (752, 480)), (1504, 480));
        assert_eq!(size(View::SideBySide, (1280, 720)), (1600, 450));
        // A street scene of KITTI.
        assert_eq!(size(View::SideBySide, (1242, 375)), (1242, 750));
        assert_eq!(size(View::Pair, (1242, 375)), (1600, 242));
        assert_eq!(size(View::Left, (3200, 1200)), (1600, 600));
        assert_eq!(size(View::Left, (64, 48)), (640, 480));
        assert_eq!(size(View::Left, (1, 5000)), (1, 900));
        assert_eq!(size(View::Left, (0, 0)), (640, 640));
    }

    #[test]
    fn table_entries_are_rounded_and_clamped() {
        let entry = |value, low, high| Limits { low, high }.table_entry(value);
        assert_eq!(entry(0, 0, 255), 0);
        assert_eq!(entry(255, 0, 255), 255);
        assert_eq!(entry(-7, 0, 255), 0);
        assert_eq!(entry(300, 0, 255), 255);
        assert_eq!(entry(1, 0, 1020), 0);
        assert_eq!(entry(2, 0, 1020), 1);
        assert_eq!(entry(i16::MAX, -32767, 32767), 255);
        assert_eq!(entry(5, 5, 5), 0);
    }

    #[test]
    fn the_window_and_the_files_agree_on_colours() {
        let range = DisparityRange { min: -20, count: 150 };
        for mode in [
            ColourRange::Full,
            ColourRange::Fixed { low: 3.3, high: 90.77 },
            ColourRange::Fixed { low: 5.0, high: 5.0 },
            ColourRange::Fixed { low: -1e4, high: 1e4 },
        ] {
            let scale = ColourScale::new(mode, range);
            let limits = Limits::of(&scale);
            assert!(limits.low < limits.high);
            for value in -32767..=32767 {
                let (here, there) = (limits.table_entry(value), usize::from(scale.step(value)));
                // A narrow scale has several entries for one sixteenth.
                assert!(here.abs_diff(there) <= 1, "{mode:?}: {value}: {here} and {there}");
            }
        }
    }
}
