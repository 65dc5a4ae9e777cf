//! Model of the row error as a function of the position in the right image.

use nalgebra::{SMatrix, SVector};

/// A point found in both views.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sight {
    /// Column in the right image relative to its centre, in pixels.
    pub(super) x: f64,
    /// Row relative to the centre, positive downwards.
    pub(super) y: f64,
    /// Row in the right image less that in the left one.
    pub(super) dy: f64,
    /// Column in the left image less that in the right one.
    pub(super) disparity: f64,
    /// Expected error of `dy`, as a standard deviation.
    pub(super) sigma: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Fit<const N: usize> {
    pub(super) terms: SVector<f64, N>,
    pub(super) covariance: SMatrix<f64, N, N>,
    /// Spread of the residuals of agreeing points: 1.4826 times their median absolute value.
    pub(super) spread: f64,
    pub(super) agrees: Vec<bool>,
}

/// Returns the terms of: row error = shift + x * sin(roll) + y * (1 - 1 / scale), in pixels.
pub(super) fn plane_terms(sight: &Sight) -> SVector<f64, 3> {
    SVector::from([1.0, sight.x, sight.y])
}

/// Returns the terms of [`plane_terms`], and terms of a rotation about the vertical axis (x y), about the
/// horizontal axis (y y), and of lens distortion, in units of `unit` pixels so that all are of similar size.
pub(super) fn curved_terms(sight: &Sight, unit: f64) -> SVector<f64, 6> {
    let (x, y) = (sight.x / unit, sight.y / unit);
    SVector::from([1.0, x, y, x * y, x * x, y * y])
}

/// Finds the plane that most points agree with within `tolerance` pixels, by random samples of three (RANSAC:
/// Fischler and Bolles, CACM 1981). The samples are the same at every call. `None` for fewer than three
/// points, or without a plausible plane.
pub(super) fn consensus(
    sights: &[Sight],
    tolerance: f64,
    steepest: f64,
) -> Option<SVector<f64, 3>> {
    const SAMPLES: usize = 300;
    if sights.len() < 3 {
        return None;
    }
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut draw = || {
        // Xorshift (Marsaglia, 2003) suffices to choose samples.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % sights.len()
    };
    let mut best: Option<(f64, SVector<f64, 3>)> = None;
    for _ in 0..SAMPLES {
        let picked = [draw(), draw(), draw()].map(|i| &sights[i]);
        let matrix = SMatrix::<f64, 3, 3>::from_rows(&picked.map(|s| plane_terms(s).transpose()));
        let Some(inverse) = matrix.try_inverse() else { continue };
        let terms = inverse * SVector::from(picked.map(|sight| sight.dy));
        if terms[1].abs() > steepest || terms[2].abs() > steepest {
            continue;
        }
        let score: f64 = sights
            .iter()
            .map(|sight| {
                let residual = (sight.dy - plane_terms(sight).dot(&terms)) / tolerance;
                (1.0 - residual * residual).max(0.0)
            })
            .sum();
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, terms));
        }
    }
    best.map(|(_, terms)| terms)
}

/// Refines a fit by iteratively reweighted least squares with Tukey's biweight, which gives outliers no
/// weight, starting with the points marked in `agrees`. `None` if too few points agree or they do not
/// determine the terms.
pub(super) fn refine<const N: usize>(
    sights: &[Sight],
    basis: impl Fn(&Sight) -> SVector<f64, N>,
    mut agrees: Vec<bool>,
) -> Option<Fit<N>> {
    const ROUNDS: usize = 12;
    /// Tukey's constant: 95 % efficiency for normal errors.
    const TUKEY: f64 = 4.685;
    /// Lower limit of the spread in pixels; no fit is more exact.
    const FLOOR: f64 = 0.1;
    let own = |sight: &Sight| 1.0 / (0.1 * 0.1 + sight.sigma * sight.sigma);
    let mut weights: Vec<f64> = sights.iter().map(own).collect();
    let mut fit = None;
    for _ in 0..ROUNDS {
        let mut normal = SMatrix::<f64, N, N>::zeros();
        let mut right = SVector::<f64, N>::zeros();
        for ((sight, &weight), _) in
            sights.iter().zip(&weights).zip(&agrees).filter(|(_, agrees)| **agrees)
        {
            let row = basis(sight);
            normal += row * row.transpose() * weight;
            right += row * (sight.dy * weight);
        }
        let count = agrees.iter().filter(|agrees| **agrees).count();
        if count <= N {
            return None;
        }
        let inverse = normal.cholesky()?.inverse();
        let terms = inverse * right;
        let residuals: Vec<f64> =
            sights.iter().map(|sight| sight.dy - basis(sight).dot(&terms)).collect();
        let mut amounts: Vec<f64> = residuals
            .iter()
            .zip(&agrees)
            .filter(|(_, agrees)| **agrees)
            .map(|(residual, _)| residual.abs())
            .collect();
        let spread = (1.4826 * median(&mut amounts)?).max(FLOOR);
        let reach = TUKEY * spread;
        let mut squares = 0.0;
        for (i, residual) in residuals.iter().enumerate() {
            let share = (1.0 - (residual / reach).powi(2)).max(0.0);
            agrees[i] = share > 0.0;
            weights[i] = own(&sights[i]) * share * share;
            squares += weights[i] * residual * residual;
        }
        let variance = squares / (count - N) as f64;
        fit = Some(Fit { terms, covariance: inverse * variance, spread, agrees: agrees.clone() });
    }
    fit
}

/// Returns the median, the lower one of an even number; reorders the values.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = (values.len() - 1) / 2;
    let (_, median, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a grid with row differences by `dy`; every third one is wrong.
    fn sights(dy: impl Fn(f64, f64) -> f64) -> Vec<Sight> {
        (0..150)
            .map(|i| {
                let (x, y) = (f64::from(i % 15 - 7) * 40.0, f64::from(i / 15 - 5) * 40.0);
                let noise = f64::from((i * 7919) % 101 - 50) * 0.004;
                let wrong = if i % 3 == 0 { f64::from((i * 31) % 23 - 11) } else { 0.0 };
                Sight { x, y, dy: dy(x, y) + noise + wrong, disparity: 20.0, sigma: 0.1 }
            })
            .collect()
    }

    #[test]
    fn a_plane_is_found_among_wrong_points() {
        let sights = sights(|x, y| 2.5 + 0.01 * x - 0.003 * y);
        let start = consensus(&sights, 1.5, 0.08).unwrap();
        let agrees =
            sights.iter().map(|s| (s.dy - plane_terms(s).dot(&start)).abs() < 3.0).collect();
        let fit = refine(&sights, plane_terms, agrees).unwrap();
        for (term, expected, tolerance) in [(0, 2.5, 0.05), (1, 0.01, 2e-4), (2, -0.003, 3e-4)] {
            let value = fit.terms[term];
            assert!((value - expected).abs() < tolerance, "{term}: {value}");
            let sigma = fit.covariance[(term, term)].sqrt();
            assert!((value - expected).abs() < 4.0 * sigma, "{term}: {sigma}");
        }
        let agree = fit.agrees.iter().filter(|agrees| **agrees).count();
        assert!((95..120).contains(&agree), "{agree}");
        assert!(fit.spread < 0.25, "{}", fit.spread);
    }

    #[test]
    fn curvature_is_told_from_a_plane() {
        let sights = sights(|x, y| 1.0 + 4.0 * x * y / 9e4 - 1.5 * x * x / 9e4);
        let all = vec![true; sights.len()];
        let fit = refine(&sights, |sight| curved_terms(sight, 300.0), all).unwrap();
        for (term, expected) in [1.0, 0.0, 0.0, 4.0, -1.5, 0.0].into_iter().enumerate() {
            assert!((fit.terms[term] - expected).abs() < 0.2, "{term}: {}", fit.terms);
        }
    }

    #[test]
    fn too_few_or_useless_points_give_nothing() {
        let one_row: Vec<Sight> = (0..20)
            .map(|i| Sight { x: f64::from(i), y: 3.0, dy: 1.0, disparity: 0.0, sigma: 0.1 })
            .collect();
        assert!(consensus(&one_row[..2], 1.0, 0.1).is_none());
        assert!(consensus(&one_row, 1.0, 0.1).is_none());
        assert!(refine(&one_row, plane_terms, vec![true; 20]).is_none());
        assert!(refine(&one_row, plane_terms, vec![false; 20]).is_none());
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0, 9.0]), Some(2.0));
    }
}
