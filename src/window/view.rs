//! Views: the images that a window shows.

/// Selection of the images shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    Left,
    Disparity,
    /// The left image and, right of it, the disparity.
    SideBySide,
    /// The left image and, right of it, the right one.
    Pair,
    /// The pixels as points in space, from a viewpoint that the mouse moves.
    Points,
    /// The confidence of each pixel, in grey.
    Confidence,
    /// The left view without its background, with motion in black and white.
    Whitened,
}

impl View {
    /// Returns the next view in a cycle, including whitened images if there are any.
    pub fn next(self, whitens: bool) -> Self {
        match self {
            View::Left => View::Disparity,
            View::Disparity => View::SideBySide,
            View::SideBySide => View::Points,
            View::Points => View::Confidence,
            View::Confidence if whitens => View::Whitened,
            View::Confidence | View::Whitened | View::Pair => View::Left,
        }
    }

    /// Reports whether the view contains the disparity.
    pub fn has_disparity(self) -> bool {
        self.contents().contains(&Content::Disparity)
    }

    /// Contents of its panes, from left to right.
    pub(super) fn contents(self) -> &'static [Content] {
        match self {
            View::Left => &[Content::Left],
            View::Disparity => &[Content::Disparity],
            View::SideBySide => &[Content::Left, Content::Disparity],
            View::Pair => &[Content::Left, Content::Right],
            View::Points => &[Content::Points],
            View::Confidence => &[Content::Confidence],
            View::Whitened => &[Content::Whitened],
        }
    }

    /// Returns the size in pixels at which the view shows a `width` x `height` frame at 1:1.
    pub fn natural_size(self, (width, height): (u32, u32)) -> (u32, u32) {
        (width * self.contents().len() as u32, height)
    }
}

/// Content of a pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Left,
    Disparity,
    Right,
    /// The pixels as points in space.
    Points,
    /// The confidence in grey.
    Confidence,
    /// The whitened image in grey.
    Whitened,
}
