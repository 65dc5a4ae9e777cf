//! Measures the alignment of the two views from their images.
//!
//! Matching looks for a point of the left image in the same row of the right one. If a rig has been
//! bumped, a calibration does not fit, the views are exchanged or the images were never rectified,
//! that row is wrong and disparity is noise. [`measure`] finds some two hundred corners of the left
//! image in the right one, over many rows, and fits a model to their row differences. [`Monitor`]
//! follows the alignment over time and reports changes.
//!
//! ```text
//! corners of a grid ▶ search in a small image, there and back ▶ closer in larger ones ▶ fraction of a pixel
//!                                                                        rows differ by ▶ consensus ▶ robust fit
//! ```

mod corners;
mod model;
mod monitor;
pub mod observer;
mod planes;
mod recent;
pub mod refiner;
pub mod rotation;
mod search;
mod verdict;

use std::ops::RangeInclusive;

use model::{Fit, Sight, median};
pub use monitor::{Event, Monitor, State, Summary};
use planes::{Pyramid, Unseen};
use search::Searchable;
use stereod_core::frame::{DisparityRange, Image};
pub use verdict::{Limits, Verdict};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Candidate disparities, if known. The search extends a little beyond them, and as far to the other
    /// side, for exchanged views. Without them it covers a sixth of the width.
    pub range: Option<DisparityRange>,
    pub points: usize,
    /// Reach of the search in rows, as a share of the width.
    pub rows: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { range: None, points: 256, rows: ROWS }
    }
}

/// Largest width of the images for finding corners ...
const CORNER_WIDTH: usize = 480;

/// ... and once more for the search, unless they are no wider than this.
const SEARCH_WIDTH: usize = 96;

/// Reach of the search in rows, as a share of the width: a roll of 2 degrees at the sides, and five
/// rows in an image of 752 columns.
const ROWS: f64 = 0.026;

/// Reach of a second search where the first finds nothing: the calibration of other cameras, or of the other
/// order, moves rows further than a bump.
const WIDE_ROWS: f64 = 0.12;

/// Smallest number of points that agree.
const ENOUGH: usize = 20;

/// Steepest plausible plane: a roll of 5 degrees or a scale of 9 percent.
const STEEPEST: f64 = 0.09;

/// Measures the alignment of two images of one size. `None` if they tell too little: without enough
/// common texture, too small, or of different sizes.
pub fn measure(left: &Image, right: &Image, options: &Options) -> Option<Measurement> {
    let (width, height) = (left.width(), left.height());
    if (right.width(), right.height()) != (width, height) {
        return None;
    }
    let sights = find_sights(left, right, options);
    if sights.len() < ENOUGH {
        return None;
    }

    let tolerance = (0.003 * width as f64).max(1.0);
    let start = model::consensus(&sights, tolerance, STEEPEST)?;
    let near = |reach: f64| {
        move |sight: &Sight| (sight.dy - model::plane_terms(sight).dot(&start)).abs() < reach
    };
    let plane = model::refine(
        &sights,
        model::plane_terms,
        sights.iter().map(near(2.0 * tolerance)).collect(),
    )?;
    let unit = 0.5 * width as f64;
    let curved = model::refine(
        &sights,
        |sight| model::curved_terms(sight, unit),
        sights.iter().map(near(3.0 * tolerance)).collect(),
    )?;

    let agreeing = |value: fn(&Sight) -> f64| -> Vec<f64> {
        let points = sights.iter().zip(&curved.agrees).filter(|(_, agrees)| **agrees);
        points.map(|(sight, _)| value(sight)).collect()
    };
    let mut disparities = agreeing(|sight| sight.disparity);
    let consistent = disparities.len();
    if consistent < ENOUGH {
        return None;
    }
    let smallest = f64::from(options.range.map_or(0, |range| range.min).min(0));
    let below = disparities.iter().filter(|&&disparity| disparity < smallest - 1.0).count();

    let [shift, along, down] = plane.terms.into();
    let [row_error, uncertainty] = row_error(&plane, (width, height));
    let (mut curvature, mut curvature_variance) = (0.0, 0.0);
    for (term, share) in curvature_terms(height as f64 / width as f64) {
        curvature += curved.terms[term].powi(2) * share;
        curvature_variance += curved.covariance[(term, term)] * share;
    }
    Some(Measurement {
        width,
        matches: sights.len(),
        consistent,
        row_error_px: row_error,
        uncertainty_px: uncertainty,
        shift_px: shift,
        roll_deg: along.clamp(-1.0, 1.0).asin().to_degrees(),
        scale: 1.0 / (1.0 - down),
        curvature_px: curvature.sqrt(),
        curvature_uncertainty_px: curvature_variance.sqrt(),
        median_px: median(&mut agreeing(|sight| sight.dy))?,
        spread_px: plane.spread,
        disparity_px: median(&mut disparities)?,
        below_range: below as f64 / consistent as f64,
    })
}

/// Returns the root mean square of a plane over an image of this size, and its standard deviation.
fn row_error(plane: &Fit<3>, (width, height): (usize, usize)) -> [f64; 2] {
    // Mean squares of x and y over the image; x and y are independent of each other there.
    let (xx, yy) = ((width * width) as f64 / 12.0, (height * height) as f64 / 12.0);
    let [shift, along, down] = plane.terms.into();
    let square = shift * shift + along * along * xx + down * down * yy;
    let variance =
        plane.covariance[(0, 0)] + plane.covariance[(1, 1)] * xx + plane.covariance[(2, 2)] * yy;
    [square.sqrt(), variance.sqrt()]
}

/// Returns the quadratic terms of [`model::curved_terms`], each with its mean square over an image
/// after the fit of a plane. The plane removes only their mean, because over a rectangle the terms
/// are orthogonal to x and to y. `aspect` is the height in widths; x runs from -1 to 1.
fn curvature_terms(aspect: f64) -> [(usize, f64); 3] {
    // x x has the variance 4/45.
    [(3, aspect.powi(2) / 9.0), (4, 4.0 / 45.0), (5, 4.0 / 45.0 * aspect.powi(4))]
}

fn find_sights(left: &Image, right: &Image, options: &Options) -> Vec<Sight> {
    let (width, height) = (left.width(), left.height());
    let mut halvings = 0;
    while width >> halvings > CORNER_WIDTH {
        halvings += 1;
    }
    let corner_level = halvings;
    if width >> halvings > SEARCH_WIDTH && height >> halvings > SEARCH_WIDTH / 2 {
        halvings += 1;
    }
    let further = halvings - corner_level;
    if (width >> halvings).min(height >> halvings) < 4 * search::HALF as usize {
        return Vec::new();
    }
    let (lefts, rights) = (Pyramid::new(left, halvings), Pyramid::new(right, halvings));
    let corners_in = &lefts.levels[corner_level];
    let left_unseen = Unseen::new(left, corners_in, corner_level);
    let room = (search::HALF + 1) << further;
    let corners = corners::find_corners(corners_in, &left_unseen, options.points, room);

    let reach = 0.03 * width as f64;
    let furthest = match options.range {
        Some(range) => f64::from(range.min.abs().max(range.max().abs())) + reach,
        None => width as f64 / 6.0,
    };
    let small = |pixels: f64| (pixels / f64::from(1 << halvings)).ceil() as i32;
    let mut finder = Finder {
        size: (width, height),
        corner_level,
        halvings,
        right_unseen: Unseen::new(right, &rights.levels[corner_level], corner_level),
        in_left: Searchable::new(&lefts.levels[halvings]),
        in_right: Searchable::new(&rights.levels[halvings]),
        lefts,
        rights,
        dx: -small(furthest)..=small(furthest),
        dy: -small(options.rows * width as f64)..=small(options.rows * width as f64),
        scores: Vec::new(),
    };
    corners.into_iter().filter_map(|corner| finder.find(corner)).collect()
}

/// Finds corners of the left image in the right one.
struct Finder<'a> {
    size: (usize, usize),
    lefts: Pyramid<'a>,
    rights: Pyramid<'a>,
    /// Level of the corners, and that of the search, which is the last one.
    corner_level: usize,
    halvings: usize,
    right_unseen: Unseen,
    in_left: Searchable,
    in_right: Searchable,
    dx: RangeInclusive<i32>,
    dy: RangeInclusive<i32>,
    scores: Vec<f32>,
}

impl Finder<'_> {
    /// Returns the place of a corner in both images, if it is found there and back.
    fn find(&mut self, (corner_x, corner_y): (i32, i32)) -> Option<Sight> {
        let Self { lefts, rights, corner_level, halvings, .. } = self;
        let (corner_level, halvings) = (*corner_level, *halvings);
        let (small_left, small_right) = (&lefts.levels[halvings], &rights.levels[halvings]);
        let further = halvings - corner_level;
        let mut at = (corner_x >> further, corner_y >> further);
        let there = self.in_right.find(small_left, at, &self.dx, &self.dy, &mut self.scores)?;
        let target = (at.0 + there.dx, at.1 + there.dy);
        // Search back: other candidates in the left image lie in the same rows.
        let rows = -there.dy - 2..=-there.dy + 2;
        let back = self.in_left.find(small_right, target, &self.dx, &rows, &mut self.scores)?;
        if (there.dx + back.dx).abs() > 1 || (there.dy + back.dy).abs() > 1 {
            return None;
        }
        let mut peak = there;
        for level in (0..halvings).rev() {
            at = if level >= corner_level {
                (corner_x, corner_y)
            } else {
                let halved = corner_level - level;
                let middle = (1 << halved) / 2;
                ((corner_x << halved) + middle, (corner_y << halved) + middle)
            };
            let near = (2 * peak.dx, 2 * peak.dy);
            let (left, right) = (&lefts.levels[level], &rights.levels[level]);
            peak = search::refine_in_next_level(left, right, at, near)?;
        }
        let exact = search::refine_to_subpixel(&lefts.levels[0], &rights.levels[0], at, peak)?;
        let (x, y) = (f64::from(at.0) + exact.dx, f64::from(at.1) + exact.dy);
        let in_corners = |at: f64| (at / f64::from(1 << corner_level)) as i32;
        let window = search::FINE_HALF / (1 << corner_level) + 1;
        let (width, height) = self.size;
        self.right_unseen.all_seen(in_corners(x), in_corners(y), window).then_some(Sight {
            x: x - 0.5 * (width - 1) as f64,
            y: y - 0.5 * (height - 1) as f64,
            dy: exact.dy,
            disparity: -exact.dx,
            sigma: exact.dy_sigma,
        })
    }
}

/// Alignment of a pair of images.
///
/// The row error is a point's row in the right image less that in the left one. Its model is
/// `shift + x * sin(roll) + y * (1 - 1 / scale)`, with x and y relative to the centre of the *right*
/// image, because a roll of the right view moves points by their position there. The rest is
/// curvature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    pub width: usize,
    /// Points found in both images.
    pub matches: usize,
    /// Points that agree on one alignment.
    pub consistent: usize,
    /// Root mean square of the modelled row error over the image, in pixels.
    pub row_error_px: f64,
    /// Expected error of `row_error_px`, as a standard deviation.
    pub uncertainty_px: f64,
    /// Row error at the centre, in pixels; positive if the right image is lower.
    pub shift_px: f64,
    /// Roll of the right image relative to the left one, in degrees, clockwise.
    pub roll_deg: f64,
    /// Vertical scale of the right image relative to the left one.
    pub scale: f64,
    /// Root mean square of the curvature over the image: keystone (x y, y y) and lens distortion.
    pub curvature_px: f64,
    /// Expected error of `curvature_px`, as a standard deviation.
    pub curvature_uncertainty_px: f64,
    /// Median row error of the consistent points, in pixels.
    pub median_px: f64,
    /// Spread of the residual row errors, in pixels: 1.4826 times their median absolute value, the
    /// standard deviation of normal errors.
    pub spread_px: f64,
    /// Median disparity of the consistent points, in pixels.
    pub disparity_px: f64,
    /// Share of the consistent points with a disparity more than a pixel below the candidates.
    pub below_range: f64,
}
