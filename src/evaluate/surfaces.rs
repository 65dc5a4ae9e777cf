//! Figures of a map that need no truth: how smooth its surfaces are, and how many thin gaps they have.

use nalgebra::{Matrix3, Vector3};

use super::scoring::{Combine, Values, percent};

/// Side of the windows, next to each other, that a plane is fitted to, in pixels.
const SIDE: usize = 15;

/// Known pixels that a window needs: three quarters.
const KNOWN_MIN: usize = SIDE * SIDE * 3 / 4;

/// A window that deviates by more from its plane, in pixels, shows several surfaces.
const ONE_SURFACE: f64 = 1.0;

/// Length of the longest gap that is thin, in pixels.
const THIN: usize = 3;

/// Figures of a map, or their means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surfaces {
    /// Part of the map that has a disparity, in percent.
    pub density: f64,
    /// Mean over the windows that show one surface of the root mean square deviation of the
    /// disparities from the plane that fits them best, in pixels; `None` if there is no such window.
    pub plane_residual: Option<f64>,
    /// Part of the map that lies in thin gaps of a row or a column, in percent.
    pub thin_gaps: f64,
}

impl Surfaces {
    pub fn of(map: &Values) -> Self {
        Self {
            density: map.density(),
            plane_residual: plane_residual(map),
            thin_gaps: thin_gaps(map),
        }
    }

    /// Combines each figure of those that have it; there must be one.
    pub fn combined(of: &[&Self], with: Combine) -> Self {
        let residuals: Vec<f64> = of.iter().filter_map(|map| map.plane_residual).collect();
        Self {
            density: with(&of.iter().map(|map| map.density).collect::<Vec<_>>()),
            plane_residual: (!residuals.is_empty()).then(|| with(&residuals)),
            thin_gaps: with(&of.iter().map(|map| map.thin_gaps).collect::<Vec<_>>()),
        }
    }
}

fn plane_residual(map: &Values) -> Option<f64> {
    let (width, height) = map.size();
    let corners = (0..height / SIDE).flat_map(|y| (0..width / SIDE).map(move |x| (x, y)));
    let residuals = corners.filter_map(|(x, y)| deviation(map, (x * SIDE, y * SIDE)));
    let (sum, count) = residuals
        .filter(|residual| *residual <= ONE_SURFACE)
        .fold((0.0, 0u32), |(sum, count), residual| (sum + residual, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the root mean square deviation of the window at `corner` from its plane, if enough of it is known.
fn deviation(map: &Values, (left, top): (usize, usize)) -> Option<f64> {
    let (width, _) = map.size();
    let pixels = (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (x, y)));
    let known: Vec<(Vector3<f64>, f64)> = pixels
        .filter_map(|(x, y)| {
            let value = map.at((top + y) * width + left + x)?;
            Some((Vector3::new(x as f64, y as f64, 1.0), value))
        })
        .collect();
    if known.len() < KNOWN_MIN {
        return None;
    }
    let normal: Matrix3<f64> = known.iter().map(|(at, _)| at * at.transpose()).sum();
    let right: Vector3<f64> = known.iter().map(|(at, value)| at * *value).sum();
    let plane = normal.cholesky()?.solve(&right);
    let squares: f64 = known.iter().map(|(at, value)| (at.dot(&plane) - value).powi(2)).sum();
    Some((squares / known.len() as f64).sqrt())
}

fn thin_gaps(map: &Values) -> f64 {
    let (width, height) = map.size();
    let mut thin = vec![false; width * height];
    let rows = (0..height).map(|y| (y * width, 1, width));
    let columns = (0..width).map(|x| (x, width, height));
    for (first, step, count) in rows.chain(columns) {
        let mut last_known = None;
        for i in 0..count {
            if map.at(first + i * step).is_none() {
                continue;
            }
            if let Some(known) = last_known
                && i - known <= THIN + 1
            {
                (known + 1..i).for_each(|gap| thin[first + gap * step] = true);
            }
            last_known = Some(i);
        }
    }
    percent(thin.iter().filter(|thin| **thin).count() as u64, thin.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::mean;
    use stereod_core::frame::{DisparityMap, DisparityRange, INVALID};
    use stereod_core::pool::Pooled;

    fn map(width: usize, height: usize, at: impl Fn(usize, usize) -> i16) -> Values {
        let values = (0..width * height).map(|i| at(i % width, i / width)).collect();
        let range = DisparityRange { min: 0, count: 256 };
        Values::of(&DisparityMap::new(width, height, range, Pooled::unpooled(values)))
    }

    #[test]
    fn slants_are_smooth_and_ripples_are_not() {
        let slant = map(30, 16, |x, y| (3 * x + 2 * y) as i16);
        assert!(Surfaces::of(&slant).plane_residual.unwrap() < 1e-9);
        // Every other row 1/4 px nearer: 8 rows of 15 are 0.25 px off, and so is the mean by 8/15 of it.
        let ripples = map(15, 15, |x, y| (x + 4 * (1 - y % 2)) as i16);
        let share = 8.0 / 15.0f64;
        let expected = 0.25 * (share * (1.0 - share)).sqrt();
        assert!((Surfaces::of(&ripples).plane_residual.unwrap() - expected).abs() < 1e-9);
        // A step of 10 px is no surface; a window with many holes is none either.
        let step = map(15, 15, |x, _| if x < 7 { 0 } else { 160 });
        assert_eq!(Surfaces::of(&step).plane_residual, None);
        let holes = map(15, 15, |x, y| if (x + y) % 3 == 0 { INVALID } else { 16 });
        assert_eq!(Surfaces::of(&holes).plane_residual, None);
        assert_eq!(Surfaces::of(&map(14, 40, |_, _| 0)).plane_residual, None);
    }

    #[test]
    fn thin_gaps_lie_between_known_pixels() {
        let row = |text: &str| {
            let known: Vec<bool> = text.chars().map(|c| c == '#').collect();
            Surfaces::of(&map(known.len(), 1, |x, _| if known[x] { 8 } else { INVALID }))
        };
        let figures = row("#...#.#....#..");
        assert!((figures.thin_gaps - 100.0 * 4.0 / 14.0).abs() < 1e-9, "{figures:?}");
        assert!((figures.density - 100.0 * 4.0 / 14.0).abs() < 1e-9);
        // Wide along the row, thin along the column.
        let tall = map(9, 3, |x, y| if y == 1 && x > 0 { INVALID } else { 8 });
        assert!((Surfaces::of(&tall).thin_gaps - 100.0 * 8.0 / 27.0).abs() < 1e-9);
    }

    #[test]
    fn means_are_over_the_maps_that_have_a_figure() {
        let of = |plane_residual| Surfaces { density: 50.0, plane_residual, thin_gaps: 4.0 };
        let all = [of(Some(0.25)), of(None), of(Some(0.75))];
        assert_eq!(Surfaces::combined(&all.each_ref(), mean), of(Some(0.5)));
        assert_eq!(Surfaces::combined(&[&all[1]], mean), of(None));
    }
}
