//! Images for viewers: coloured disparity with the legend of its colours, the left image, or both side by side.

use anyhow::Result;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use crate::sink::colour::{ColourMap, ColourScale, colourise, legend_label};
use crate::sink::colouring::{Colouring, LiveColouring};
use crate::sink::{StreamInfo, check_same_size};
use stereod_core::frame::{Matched, StereoGeometry};

/// Content of a video for viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoView {
    #[default]
    Disparity,
    Left,
    SideBySide,
}

impl VideoView {
    pub(super) fn width(self, width: usize) -> usize {
        if self == Self::SideBySide { 2 * width } else { width }
    }

    pub fn shows_left(self) -> bool {
        self != Self::Disparity
    }
}

/// Paints frame after frame in the currently chosen colours.
pub(super) struct Painter {
    stream: StreamInfo,
    chosen: LiveColouring,
    colouring: Colouring,
    scale: ColourScale,
}

impl Painter {
    pub(super) fn new(stream: &StreamInfo, chosen: LiveColouring) -> Self {
        let colouring = chosen.get();
        let scale = ColourScale::new(colouring.span, stream.range);
        Self { stream: *stream, chosen, colouring, scale }
    }

    /// Notes a frame, painted or not, because the colours may span the disparities of recent frames.
    pub(super) fn follow(&mut self, frame: &Matched) -> Result<()> {
        let map = &frame.disparity;
        check_same_size(self.stream.size, (map.width(), map.height()))?;
        let before = std::mem::replace(&mut self.colouring, self.chosen.get());
        if before.span != self.colouring.span {
            self.scale = ColourScale::new(self.colouring.span, self.stream.range);
        }
        self.scale.update(map, frame.pair.timestamp);
        Ok(())
    }

    /// Paints the legend of the colours into an image of [`Self::paint`] that shows disparity.
    pub(super) fn paint_legend(&self, view: VideoView, picture: &mut [u8], stride: usize) {
        let size = self.stream.size;
        let picture = match view {
            VideoView::Left => return,
            VideoView::Disparity => picture,
            VideoView::SideBySide => &mut picture[size.0 * 4..],
        };
        let (limits, geometry) = (self.scale.limits(), self.stream.geometry.as_ref());
        Legend { colours: self.colouring.map, limits, geometry }.paint(picture, stride, size);
    }

    /// Paints the last noted frame, four bytes a pixel, into rows that are `stride` bytes apart.
    pub(super) fn paint(
        &self,
        view: VideoView,
        frame: &Matched,
        picture: &mut [u8],
        stride: usize,
    ) {
        let (map, left) = (&frame.disparity, &frame.pair.left);
        let colours = self.colouring.map;
        match view {
            VideoView::Disparity => colourise::<4>(map, colours, &self.scale, picture, stride),
            VideoView::Left => left.write_rgb::<4>(picture, stride),
            VideoView::SideBySide => {
                left.write_rgb::<4>(picture, stride);
                let beside = &mut picture[map.width() * 4..];
                colourise::<4>(map, colours, &self.scale, beside, stride);
            }
        }
    }
}

/// Share in percent that remains of the image behind the legend.
const BEHIND: u16 = 35;

const LABELS: usize = 5;

const SMALLEST: (usize, usize) = (280, 120);

/// Height of images with the larger letters.
const LARGE: usize = 720;

/// Smallest span in pixels of disparity with labels in whole pixels.
const WIDE: f32 = 8.0;

#[derive(Clone, Copy, Debug)]
struct Legend<'a> {
    colours: ColourMap,
    /// Disparities in pixels of the first and the last colour.
    limits: (f32, f32),
    geometry: Option<&'a StereoGeometry>,
}

impl Legend<'_> {
    /// Paints the legend into an image of this size, four bytes a pixel, in rows that are `stride` bytes apart;
    /// nothing into a small one.
    fn paint(&self, pixels: &mut [u8], stride: usize, (width, height): (usize, usize)) {
        if width < SMALLEST.0 || height < SMALLEST.1 {
            return;
        }
        let (scale, letters) = match height {
            ..LARGE => (1, RasterHeight::Size16),
            _ => (2, RasterHeight::Size24),
        };
        let letter = get_raster_width(FontWeight::Regular, letters);
        let (gap, thickness, length) = (4 * scale, 8 * scale, 200 * scale.min(width / 280));
        // Half a label of four letters to the left, and as much to the right for the unit.
        let side = 2 * letter + gap;
        let panel = (length + 2 * side, thickness + letters.val() + 3 * gap);
        let (left, top) = (width - panel.0 - gap, height - panel.1 - gap);
        let mut canvas = Canvas { pixels, stride };
        for y in top..top + panel.1 {
            for x in left..left + panel.0 {
                canvas.set(x, y, |before| (u16::from(before) * BEHIND / 100) as u8, [0; 3]);
            }
        }
        let (bar, below) = (left + side, top + gap + thickness + gap);
        let table = self.colours.table();
        for x in 0..length {
            let [red, green, blue] = table[x * 255 / (length - 1)];
            for y in top + gap..top + gap + thickness {
                canvas.set(bar + x, y, |_| 0, [red, green, blue]);
            }
        }
        for number in 0..LABELS {
            let share = number as f32 / (LABELS - 1) as f32;
            let text = self.label(share);
            let middle = bar + (share * (length - 1) as f32) as usize;
            canvas.text(&text, middle.saturating_sub(text.len() * letter / 2), below, letters);
        }
        let unit = if self.geometry.is_some() { "m" } else { "px" };
        let above = (top + gap + thickness / 2).saturating_sub(letters.val() / 2);
        canvas.text(unit, bar + length + gap, above, letters);
    }

    fn label(&self, share: f32) -> String {
        let (low, high) = self.limits;
        let disparity = low + share * (high - low);
        legend_label(disparity, high - low >= WIDE, self.geometry)
    }
}

struct Canvas<'a> {
    pixels: &'a mut [u8],
    stride: usize,
}

impl Canvas<'_> {
    /// Adds a colour to a pixel after `keep`.
    fn set(&mut self, x: usize, y: usize, keep: impl Fn(u8) -> u8, colour: [u8; 3]) {
        let pixel = &mut self.pixels[y * self.stride + 4 * x..][..3];
        for (channel, colour) in pixel.iter_mut().zip(colour) {
            *channel = keep(*channel).saturating_add(colour);
        }
    }

    fn text(&mut self, text: &str, mut x: usize, y: usize, letters: RasterHeight) {
        for letter in text.chars() {
            let Some(raster) = get_raster(letter, FontWeight::Regular, letters) else { continue };
            for (row, line) in raster.rows().enumerate() {
                for (column, &level) in line.iter().enumerate() {
                    self.set(x + column, y + row, |before| before, [level; 3]);
                }
            }
            x += raster.width();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: StereoGeometry = StereoGeometry {
        focal_px: 500.0,
        baseline_m: 0.1,
        centre_x_px: 10.0,
        centre_y_px: 10.0,
        right_centre_x_px: 10.0,
    };

    fn legend(limits: (f32, f32), geometry: Option<&StereoGeometry>) -> Legend<'_> {
        Legend { colours: ColourMap::Turbo, limits, geometry }
    }

    #[test]
    fn labels_are_metres_where_the_cameras_are_known() {
        let labels = |legend: Legend<'_>| [0.0, 0.5, 1.0].map(|share| legend.label(share));
        assert_eq!(labels(legend((0.0, 63.0), None)), ["0", "32", "63"]);
        assert_eq!(labels(legend((-1.0, 2.0), None)), ["-1.0", "0.5", "2.0"]);
        assert_eq!(labels(legend((0.0, 10.0), Some(&GEOMETRY))), ["far", "10", "5.0"]);
    }

    #[test]
    fn it_stays_in_the_corner_of_its_image() {
        for (width, height, is_large) in
            [(280, 120, false), (640, 480, false), (1280, 720, true), (300, 720, true)]
        {
            // Another image to the right shares the rows.
            let stride = 4 * (width + 10);
            let mut pixels = vec![200; stride * height];
            legend((0.0, 63.0), Some(&GEOMETRY)).paint(&mut pixels, stride, (width, height));
            let at = |x: usize, y: usize| &pixels[y * stride + 4 * x..][..4];
            assert!((0..height).all(|y| (width..width + 10).all(|x| at(x, y) == [200; 4])));
            assert_eq!(at(width - 1, height - 1), [200; 4]);
            let changed = |y: usize| (0..width).filter(|&x| at(x, y) != [200; 4]).count();
            let rows = (0..height).filter(|&y| changed(y) > 0).count();
            assert_eq!(rows, if is_large { 16 + 24 + 24 } else { 8 + 16 + 12 });
            let row = height - if is_large { 8 + 64 - 8 - 8 } else { 4 + 36 - 4 - 4 };
            let colours = (0..width).filter(|&x| at(x, row)[..3] == ColourMap::Turbo.table()[0]);
            assert!(colours.count() >= 1, "{width}x{height}");
        }
        let mut small = vec![200; 4 * 200 * 100];
        legend((0.0, 63.0), None).paint(&mut small, 4 * 200, (200, 100));
        assert!(small.iter().all(|&byte| byte == 200));
    }
}
