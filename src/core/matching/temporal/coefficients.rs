//! Coefficients of the remembered images: their weighted sum predicts the background of the newest image.
//!
//! Each column of Phi holds the monomials, up to a degree, of the shift of one of the N images. Then a =
//! Phi^T (Phi Phi^T + gamma E)^-1 phi(0) are the smallest coefficients that reproduce every polynomial of the
//! shift at shift zero: the background at the position of the newest image, if it is smooth between pixels.
//! They are divided by their sum, so that gamma does not darken the result. Gamma bounds the solution if the
//! shifts are nearly degenerate: for a static rig, any degree gives the mean.
//!
//! An image with a shift of s px has the weight w = 1 / (1 + s s / 2)^4, so that Phi becomes Phi W, because
//! near objects move by more than far ones for a travelling rig. A lost image has the weight 0.
//!
//! The solution is written out in double precision, in an order that kernels follow, because the shifts never
//! leave the device.

use super::shifts::{Shift, UNIT};

/// Regularisation added to the diagonal, for images of weight 1.
const GAMMA: f64 = 0.1;

/// Units of a coefficient per 1.
pub const ONE: i32 = 1 << COEFFICIENT_BITS;

/// Fractional bits of a coefficient.
pub const COEFFICIENT_BITS: u32 = 14;

/// Largest number of monomials (degree 3).
pub const MONOMIALS_MAX: usize = 10;

/// Number of monomials in two variables up to a degree.
pub fn monomials(degree: u8) -> usize {
    let n = usize::from(degree);
    (n + 1) * (n + 2) / 2
}

/// The monomials of a shift in pixels: 1, x, y, x x, x y, y y, x x x, and so on.
fn phi(rest: [i32; 2], degree: u8) -> [f64; MONOMIALS_MAX] {
    let [x, y] = rest.map(|rest| f64::from(rest) / f64::from(UNIT));
    let (xx, xy, yy) = (x * x, x * y, y * y);
    let all = [1.0, x, y, xx, xy, yy, xx * x, xx * y, yy * x, yy * y];
    let mut phi = [0.0; MONOMIALS_MAX];
    phi[..monomials(degree)].copy_from_slice(&all[..monomials(degree)]);
    phi
}

/// Weight of an image with this shift.
fn weight(shift: Shift) -> f64 {
    if shift.lost {
        return 0.0;
    }
    let [x, y] = shift.by.map(|by| f64::from(by) / f64::from(UNIT));
    let near = 1.0 / (1.0 + 0.5 * (x * x + y * y));
    let square = near * near;
    square * square
}

/// Coefficient of each remembered image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coefficients {
    /// Whole-pixel shift of each image.
    pub offsets: Vec<[i32; 2]>,
    /// Coefficient of each image, in 1 / [`ONE`]; the sum is [`ONE`].
    pub values: Vec<i32>,
}

impl Coefficients {
    /// Returns the coefficients for these shifts. At least one image must not be lost
    /// ([`Header::keep`](super::layout::Header::keep)).
    pub fn of(shifts: &[Shift], degree: u8) -> Self {
        let offsets = shifts.iter().map(|shift| shift.whole()).collect();
        let columns: Vec<_> =
            shifts.iter().map(|shift| (phi(shift.rest(), degree), weight(*shift))).collect();
        let n = monomials(degree);
        let mut matrix = [[0.0; MONOMIALS_MAX]; MONOMIALS_MAX];
        for i in 0..n {
            for k in 0..=i {
                let mut sum = if i == k { GAMMA } else { 0.0 };
                for (column, weight) in &columns {
                    sum += column[i] * column[k] * weight;
                }
                matrix[i][k] = sum;
            }
        }
        let solution = solve(&mut matrix, n);
        let reals = columns.iter().map(|(column, weight)| {
            let mut value = 0.0;
            for i in 0..n {
                value += column[i] * solution[i];
            }
            value * weight
        });
        let mut of_all = 0.0;
        reals.clone().for_each(|value| of_all += value);
        let whole = |value: f64| (value / of_all * f64::from(ONE) + 0.5).floor() as i32;
        let mut values: Vec<i32> = reals.map(whole).collect();
        let sum: i32 = values.iter().sum();
        // Distributes the rounding remainder evenly, so that the sum is exactly one.
        if let count @ 1.. = values.len() as i32 {
            let missing = ONE - sum;
            for (i, value) in values.iter_mut().enumerate() {
                let part = |i: i32| (missing * i).div_euclid(count);
                *value += part(i as i32 + 1) - part(i as i32);
            }
        }
        Self { offsets, values }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Sum of the squares in 1/256, rounded down: the share of an image's noise that is in the background.
    pub fn spread(&self) -> u32 {
        let squares = self.values.iter().map(|&value| i64::from(value) * i64::from(value));
        (squares.sum::<i64>() >> (2 * COEFFICIENT_BITS - 8)) as u32
    }
}

/// Solves `matrix` z = (1, 0, 0, ...) by L D L^T. `matrix` holds the lower half of a symmetric positive
/// definite matrix and is overwritten by L and D.
#[allow(clippy::needless_range_loop)] // As in the books.
fn solve(matrix: &mut [[f64; MONOMIALS_MAX]; MONOMIALS_MAX], n: usize) -> [f64; MONOMIALS_MAX] {
    // L below the diagonal, D on it.
    for k in 0..n {
        for i in k..n {
            let mut value = matrix[i][k];
            for j in 0..k {
                value -= matrix[i][j] * matrix[k][j] * matrix[j][j];
            }
            matrix[i][k] = if i == k { value } else { value / matrix[k][k] };
        }
    }
    let mut z = [0.0; MONOMIALS_MAX];
    z[0] = 1.0;
    for i in 1..n {
        for j in 0..i {
            z[i] -= matrix[i][j] * z[j];
        }
    }
    for i in 0..n {
        z[i] /= matrix[i][i];
    }
    for i in (0..n).rev() {
        for j in i + 1..n {
            z[i] -= matrix[j][i] * z[j];
        }
    }
    z
}

#[cfg(test)]
mod tests {
    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;

    use super::*;

    fn shifts(of: &[[i32; 2]]) -> Vec<Shift> {
        of.iter().map(|&by| Shift { by, known: true, lost: false }).collect()
    }

    proptest! {
        #[test]
        fn they_are_those_of_linear_algebra(
            of in proptest::collection::vec(
                (-700i32..700, -700i32..700, prop::bool::weighted(0.2)),
                1..=64,
            ),
            degree in 0u8..=3,
        ) {
            let mut shifts: Vec<Shift> =
                of.iter().map(|&(x, y, lost)| Shift { by: [x, y], known: !lost, lost }).collect();
            shifts[0] = Shift { known: true, lost: false, ..shifts[0] };
            let got = Coefficients::of(&shifts, degree);
            prop_assert_eq!(got.values.iter().sum::<i32>(), ONE);
            let n = monomials(degree);
            let column = |shift: &Shift| DVector::from_column_slice(&phi(shift.rest(), degree)[..n]);
            let columns: Vec<_> = shifts.iter().map(column).collect();
            let all = DMatrix::from_columns(&columns);
            let weights = DVector::from_iterator(shifts.len(), shifts.iter().map(|s| weight(*s)));
            let weighted = DMatrix::from_diagonal(&weights) * all.transpose();
            let matrix = &all * &weighted + GAMMA * DMatrix::<f64>::identity(n, n);
            let mut at_zero = DVector::zeros(n);
            at_zero[0] = 1.0;
            let a = weighted * matrix.cholesky().unwrap().solve(&at_zero);
            for (got, expected) in got.values.iter().zip(a.iter().map(|value| value / a.sum())) {
                let error = f64::from(*got) / f64::from(ONE) - expected;
                prop_assert!(error.abs() * f64::from(ONE) < 2.0, "{} {}", got, expected);
            }
        }
    }

    #[test]
    fn a_rig_that_stands_still_gives_the_mean() {
        for degree in 0..=DEGREE_MAX_TESTED {
            let got = Coefficients::of(&shifts(&[[0, 0]; 20]), degree);
            assert!(got.values.iter().all(|&value| (ONE / 20..=ONE / 20 + 1).contains(&value)));
            // A twentieth of the variance: 256 / 20.
            assert_eq!(got.spread(), 12);
        }
        assert_eq!(Coefficients::of(&[], 2).spread(), 0);
    }

    const DEGREE_MAX_TESTED: u8 = 3;

    #[test]
    fn what_is_lost_adds_nothing() {
        let mut shifts = shifts(&[[0, 0], [20, 0], [0, 0], [0, 0]]);
        shifts[1] = Shift { known: false, lost: true, ..shifts[1] };
        let got = Coefficients::of(&shifts, 1);
        // Up to rounding.
        assert!(got.values[1].abs() <= 1, "{got:?}");
        assert!([0, 2, 3].iter().all(|&i| (got.values[i] - ONE / 3).abs() <= 1), "{got:?}");
    }

    #[test]
    fn polynomials_of_the_shift_are_reproduced_at_none() {
        // A background of 100 + 60 x - 40 y, seen from five places.
        let places = [[64, 0], [-64, 32], [0, -96], [96, 96], [-32, -32]];
        let got = Coefficients::of(&shifts(&places), 1);
        let background =
            |at: &[i32; 2]| 100.0 + (60.0 * f64::from(at[0]) - 40.0 * f64::from(at[1])) / 256.0;
        let sum: f64 =
            places.iter().zip(&got.values).map(|(at, &a)| background(at) * f64::from(a)).sum();
        let value = sum / f64::from(ONE);
        // Gamma biases the result slightly.
        assert!((value - 100.0).abs() < 2.0, "{value}");
        let mean = places.iter().map(background).sum::<f64>() / 5.0;
        assert!((value - 100.0).abs() < (mean - 100.0).abs(), "{value} {mean}");
    }
}
