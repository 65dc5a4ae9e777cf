//! Images for viewers: coloured disparity, the left image, or both side by side.

use anyhow::Result;

use super::legend::Legend;
use crate::sink::colour::{ColourScale, colourise};
use crate::sink::colouring::{Colouring, LiveColouring};
use crate::sink::{StreamInfo, check_same_size};
use stereod_core::frame::Matched;

/// Content of a video for viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoView {
    /// The disparity in colours.
    #[default]
    Disparity,
    /// The left image, in colour if the source has it.
    Left,
    /// The left image, and right of it the disparity in colours.
    SideBySide,
}

impl VideoView {
    /// Returns the width of an image of maps that are `width` pixels wide.
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
    /// Colours of the previous frame.
    colouring: Colouring,
    scale: ColourScale,
}

impl Painter {
    /// Creates a painter for the frames of this stream.
    pub(super) fn new(stream: &StreamInfo, chosen: LiveColouring) -> Self {
        let colouring = chosen.get();
        let scale = ColourScale::new(colouring.span, stream.range);
        Self { stream: *stream, chosen, colouring, scale }
    }

    /// Notes a frame, painted or not, because the colours may span the disparities of recent
    /// frames.
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
