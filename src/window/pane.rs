//! The rectangles of the window that show images.

use super::options::Content;

/// A rectangle of the target, in pixels, that shows an image. At least 1x1, inside the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pane {
    pub content: Content,
    /// Left, top, width and height of the visible part of the image, as shares of it.
    pub part: [f32; 4],
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

impl Pane {
    /// Returns the place in the image, as shares of it, that is shown at (x, y) of the target; `None` outside
    /// the pane.
    pub fn place_at(&self, (x, y): (f64, f64)) -> Option<[f64; 2]> {
        let across = (x - f64::from(self.x)) / f64::from(self.width);
        let down = (y - f64::from(self.y)) / f64::from(self.height);
        let inside = (0.0..1.0).contains(&across) && (0.0..1.0).contains(&down);
        let [left, top, width, height] = self.part.map(f64::from);
        inside.then_some([left + across * width, top + down * height])
    }

    /// Returns the pixel of a `picture` (width, height) shown at (x, y) of the target; `None` outside
    /// the pane.
    pub fn pixel_at(&self, at: (f64, f64), picture: (u32, u32)) -> Option<(u32, u32)> {
        self.place_at(at).map(|[across, down]| {
            let column = (across * f64::from(picture.0)) as u32;
            let row = (down * f64::from(picture.1)) as u32;
            (column.min(picture.0 - 1), row.min(picture.1 - 1))
        })
    }

    /// Returns the column of the target at which this share of the width ends.
    pub fn column_at(&self, share: f32) -> u32 {
        self.x + (self.width as f32 * share.clamp(0.0, 1.0)).round() as u32
    }

    /// Returns the position on the target of a place in the image, as shares of it, also if it is not in the pane.
    pub fn position_of(&self, [across, down]: [f64; 2]) -> (f64, f64) {
        let [left, top, width, height] = self.part.map(f64::from);
        let place = |share, (begin, part), start, extent| {
            f64::from(start) + (share - begin) / part * f64::from(extent)
        };
        (
            place(across, (left, width), self.x, self.width),
            place(down, (top, height), self.y, self.height),
        )
    }

    /// Returns the position on the target of the centre of an image pixel, also if it is not in the pane.
    pub fn centre_of(&self, pixel: (u32, u32), picture: (u32, u32)) -> (f64, f64) {
        let share = |pixel, count| (f64::from(pixel) + 0.5) / f64::from(count);
        self.position_of([share(pixel.0, picture.0), share(pixel.1, picture.1)])
    }

    pub fn contains(&self, (x, y): (f64, f64)) -> bool {
        let inside = |at: f64, begin: u32, extent: u32| {
            (0.0..=f64::from(extent)).contains(&(at - f64::from(begin)))
        };
        inside(x, self.x, self.width) && inside(y, self.y, self.height)
    }
}
