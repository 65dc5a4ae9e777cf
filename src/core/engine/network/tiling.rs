//! Pictures that do not have the network's size: padded at the right and below, or cut into overlapping tiles.

use anyhow::bail;

use super::convention::Convention;
use super::model::Model;
use crate::engine::Refusal;
use crate::frame::{DisparityRange, Image};

/// Rows that tiles share, and columns besides those in which the right view lacks the partner.
const OVERLAP: usize = 32;

/// The places of tiles along one side of the picture.
#[derive(Clone, Debug, PartialEq)]
struct Side {
    /// First pixels of the tiles.
    begins: Vec<usize>,
    /// First pixels that come from each tile, and the end.
    owned: Vec<usize>,
}

impl Side {
    /// Tiles of `size` over `whole` pixels that share `overlap` or more with their neighbours.
    fn new(whole: usize, size: usize, overlap: usize) -> Self {
        let mut begins = vec![0];
        while begins[begins.len() - 1] + size < whole {
            let next = begins[begins.len() - 1] + size - overlap;
            begins.push(next.min(whole - size));
        }
        let first =
            begins.iter().map(|&begin| if begin == 0 { 0 } else { begin + overlap - OVERLAP / 2 });
        let owned = first.chain([whole]).collect();
        Self { begins, owned }
    }

    fn of_pixel(&self, pixel: usize) -> usize {
        self.owned.partition_point(|&first| first <= pixel) - 1
    }
}

/// The way from a picture to the sizes that a network takes and back.
pub struct Fit {
    size: (usize, usize),
    /// Width and height that the network is given.
    given: (usize, usize),
    across: Side,
    down: Side,
    /// Whether the difference of the tiles at their seams was told.
    told_seam: bool,
}

impl Fit {
    pub fn new(
        size: (usize, usize),
        range: DisparityRange,
        fixed: Option<(usize, usize)>,
        multiple: usize,
    ) -> anyhow::Result<Self> {
        let padded = (size.0.next_multiple_of(multiple), size.1.next_multiple_of(multiple));
        let given = fixed.unwrap_or(padded);
        // The first columns of a tile have no partner in the right one.
        let hidden = usize::try_from(range.max()).unwrap_or(0);
        let needs =
            |whole: usize, tile: usize, overlap: usize| whole > tile && tile <= overlap + OVERLAP;
        if needs(size.0, given.0, hidden + OVERLAP) || needs(size.1, given.1, OVERLAP) {
            bail!(Refusal::Size(format!(
                "pictures of {}x{} pixels cannot be cut into tiles of the network's {}x{} for disparities up to \
                 {hidden}: give fewer --disparities or smaller pictures, or export the network for a larger size",
                size.0, size.1, given.0, given.1
            )));
        }
        let across = Side::new(size.0, given.0, hidden + OVERLAP);
        let down = Side::new(size.1, given.1, OVERLAP);
        Ok(Self { size, given, across, down, told_seam: false })
    }

    /// Describes the tiles; `None` if the network takes whole pictures.
    pub fn describe(&self) -> Option<String> {
        let [columns, rows] = [&self.across, &self.down].map(|side| side.begins.len());
        let (width, height) = self.given;
        (columns * rows > 1).then(|| format!("{columns}x{rows} tiles of {width}x{height} pixels"))
    }

    /// Runs the network on the planes ([`super::planes`]) of two views; returns a disparity for each pixel.
    pub fn run(
        &mut self,
        model: &mut Model,
        views: [&[Image]; 2],
        convention: &Convention,
    ) -> anyhow::Result<Vec<f32>> {
        let (width, height) = self.given;
        let mut tiles = Vec::new();
        for &top in &self.down.begins {
            for &left in &self.across.begins {
                let cut = |plane: &Image| cut(plane, (left, top), self.given);
                let tile = views.map(|planes| planes.iter().map(cut).collect::<Vec<_>>());
                match model.run([&tile[0], &tile[1]], convention, Some(convention.output))?.pop() {
                    Some((_, plane)) if (plane.width, plane.height) == self.given => {
                        tiles.push(plane.values)
                    }
                    _ => {
                        bail!("the network gave no disparity for views of {width}x{height} pixels")
                    }
                }
            }
        }
        let columns = self.across.begins.len();
        let at = |x: usize, y: usize, column: usize, row: usize| {
            let [left, top] = [self.across.begins[column], self.down.begins[row]];
            convention.disparity(tiles[row * columns + column][(y - top) * width + x - left], width)
        };
        let (mut values, mut seams) = (Vec::with_capacity(self.size.0 * self.size.1), Vec::new());
        for y in 0..self.size.1 {
            let row = self.down.of_pixel(y);
            for x in 0..self.size.0 {
                let column = self.across.of_pixel(x);
                let value = at(x, y, column, row);
                if column > 0 && x == self.across.owned[column] {
                    seams.push((value - at(x, y, column - 1, row)).abs());
                }
                if row > 0 && y == self.down.owned[row] {
                    seams.push((value - at(x, y, column, row - 1)).abs());
                }
                values.push(value);
            }
        }
        seams.retain(|difference| difference.is_finite());
        seams.sort_by(f32::total_cmp);
        if let (Some(seam), false) = (seams.get(seams.len() / 2), self.told_seam) {
            self.told_seam = true;
            tracing::info!(
                "at the seams of the network's tiles the two sides differ by {seam:.2} px (median)"
            );
        }
        Ok(values)
    }
}

/// Cuts a window out of a picture; beyond its edges their pixels are repeated.
fn cut(view: &Image, (left, top): (usize, usize), (width, height): (usize, usize)) -> Image {
    let [last_x, last_y] = [view.width() - 1, view.height() - 1];
    if (left, top) == (0, 0) && (width, height) == (view.width(), view.height()) {
        return view.copy();
    }
    Image::from_fn(width, height, |x, y| view.row((top + y).min(last_y))[(left + x).min(last_x)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_a_side_and_own_what_both_views_see() {
        assert_eq!(Side::new(300, 320, 96), Side { begins: vec![0], owned: vec![0, 300] });
        let side = Side::new(640, 320, 96);
        assert_eq!(side, Side { begins: vec![0, 224, 320], owned: vec![0, 304, 400, 640] });
        assert_eq!([0, 303, 304, 399, 400, 639].map(|x| side.of_pixel(x)), [0, 0, 1, 1, 2, 2]);
        for whole in 321..2000 {
            let side = Side::new(whole, 320, 200);
            for tile in 0..side.begins.len() {
                let [begin, first, end] =
                    [side.begins[tile], side.owned[tile], side.owned[tile + 1]];
                assert!(begin <= first && first < end && end <= begin + 320, "{whole}: {side:?}");
                assert!(begin == 0 || first >= begin + 200 - OVERLAP / 2);
            }
        }
    }

    #[test]
    fn windows_repeat_the_edges() {
        let view = Image::from_fn(3, 2, |x, y| (10 * y + x) as u8);
        let window = cut(&view, (1, 0), (4, 3));
        assert_eq!(window.pixels(), [1, 2, 2, 2, 11, 12, 12, 12, 11, 12, 12, 12]);
    }
}
