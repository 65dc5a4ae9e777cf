//! Measures the difference and the shift between two images of the same scene.

use stereod_core::frame::Image;

/// Mean difference in grey levels, excluding `margin` pixels at the border.
pub fn mean_difference(a: &Image, b: &Image, margin: usize) -> f64 {
    assert_eq!((a.width(), a.height()), (b.width(), b.height()));
    let (mut sum, mut count) = (0.0, 0);
    for y in margin..a.height() - margin {
        for x in margin..a.width() - margin {
            sum += f64::from(a.row(y)[x].abs_diff(b.row(y)[x]));
            count += 1;
        }
    }
    sum / f64::from(count)
}

/// Returns the shift in pixels, across and down, that moves `b` onto `a`: the least squares
/// solution of a(p) = b(p) + gradient . shift (Lucas and Kanade 1981), repeated with `b` moved by
/// the shift found.
pub fn shift(a: &Image, b: &Image, margin: usize) -> [f64; 2] {
    assert_eq!((a.width(), a.height()), (b.width(), b.height()));
    let mut found = [0.0, 0.0];
    for _ in 0..4 {
        let moved = |x: usize, y: usize| {
            let (u, v) = (x as f64 + found[0], y as f64 + found[1]);
            let (column, row) = (u.floor() as usize, v.floor() as usize);
            let (fx, fy) = (u - u.floor(), v - v.floor());
            let at = |x: usize, y: usize| f64::from(b.row(y)[x]);
            (at(column, row) * (1.0 - fx) + at(column + 1, row) * fx) * (1.0 - fy)
                + (at(column, row + 1) * (1.0 - fx) + at(column + 1, row + 1) * fx) * fy
        };
        let (mut xx, mut xy, mut yy, mut x_e, mut y_e) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for y in margin..a.height() - margin {
            for x in margin..a.width() - margin {
                let here = moved(x, y);
                let gx = (moved(x + 1, y) - moved(x - 1, y)) / 2.0;
                let gy = (moved(x, y + 1) - moved(x, y - 1)) / 2.0;
                let e = f64::from(a.row(y)[x]) - here;
                xx += gx * gx;
                xy += gx * gy;
                yy += gy * gy;
                x_e += gx * e;
                y_e += gy * e;
            }
        }
        let determinant = xx * yy - xy * xy;
        found[0] += (yy * x_e - xy * y_e) / determinant;
        found[1] += (xx * y_e - xy * x_e) / determinant;
    }
    found
}

#[test]
fn a_known_shift_is_found() {
    let scene = |x: f64, y: f64| {
        128.0 + 60.0 * (x / 7.0).sin() * (y / 11.0).cos() + 30.0 * ((x + 2.0 * y) / 5.0).sin()
    };
    let picture = |dx: f64, dy: f64| {
        Image::from_fn(200, 120, |x, y| scene(x as f64 + dx, y as f64 + dy) as u8)
    };
    let still = picture(0.0, 0.0);
    for [dx, dy] in [[0.0, 0.0], [0.05, 0.0], [-0.3, 0.2], [1.2, -0.8]] {
        let found = shift(&picture(dx, dy), &still, 10);
        assert!((found[0] - dx).abs() < 0.01 && (found[1] - dy).abs() < 0.01, "{found:?}");
    }
}
