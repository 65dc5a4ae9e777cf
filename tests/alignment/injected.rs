//! Known errors injected into the rectified right view of EuRoC.

use stereod_core::frame::Image;

use super::*;

/// Injected error of a right view, about the centre of the image.
#[derive(Clone, Copy, Debug)]
pub struct Bump {
    /// Shift in rows, positive downwards.
    pub shift: f64,
    /// Roll in degrees, clockwise.
    pub roll: f64,
    /// Scale factor.
    pub scale: f64,
}

pub const NONE: Bump = Bump { shift: 0.0, roll: 0.0, scale: 1.0 };

/// Renders the image as the bumped camera sees it, by bicubic interpolation (Keys, IEEE ASSP 1981,
/// a = -1/2). Outside the image, the nearest pixel is used.
pub fn bumped(image: &Image, bump: Bump) -> Image {
    let (width, height) = (image.width(), image.height());
    let (cx, cy) = (0.5 * (width - 1) as f64, 0.5 * (height - 1) as f64);
    let (sin, cos) = bump.roll.to_radians().sin_cos();
    let pixel = |x: i64, y: i64| {
        let row = image.row(y.clamp(0, height as i64 - 1) as usize);
        f64::from(row[x.clamp(0, width as i64 - 1) as usize])
    };
    let weights = |t: f64| {
        let near = |t: f64| 1.5 * t * t * t - 2.5 * t * t + 1.0;
        let far = |t: f64| -0.5 * t * t * t + 2.5 * t * t - 4.0 * t + 2.0;
        [far(1.0 + t), near(t), near(1.0 - t), far(2.0 - t)]
    };
    Image::from_fn(width, height, |x, y| {
        // The shift is applied last, so it is undone first.
        let (u, v) = (x as f64 - cx, y as f64 - cy - bump.shift);
        let from_x = (u * cos + v * sin) / bump.scale + cx;
        let from_y = (v * cos - u * sin) / bump.scale + cy;
        let (left, top) = (from_x.floor(), from_y.floor());
        let (across, down) = (weights(from_x - left), weights(from_y - top));
        let mut value = 0.0;
        for (j, down) in (-1..3).zip(down) {
            for (i, across) in (-1..3).zip(across) {
                value += across * down * pixel(left as i64 + i, top as i64 + j);
            }
        }
        value.round().clamp(0.0, 255.0) as u8
    })
}

/// Measures pairs of EuRoC with an injected error, and passes each to `check` with the result
/// before the error.
fn with_bump(bump: Bump, check: impl Fn(&Measurement, Verdict, &Measurement)) {
    let Some(folder) = data("euroc_v1_01/rectified/png") else { return };
    for number in [EUROC[0], EUROC[3]] {
        let mut pair = euroc(&folder, number);
        let before = pair.measured().0.unwrap();
        pair.right = bumped(&pair.right, bump);
        let (measurement, verdict) = pair.measured();
        let seen = measurement.unwrap_or_else(|| panic!("{bump:?}: nothing"));
        check(&seen, verdict, &before);
    }
}

/// Checks that the measured error is within 20 % of the injected one.
fn is_about(value: f64, injected: f64) -> bool {
    (value - injected).abs() <= 0.2 * injected.abs()
}

#[test]
fn shifts_are_reported() {
    for rows in [0.5, 1.0, 2.0, 3.5, 5.0] {
        for shift in [rows, -rows] {
            with_bump(Bump { shift, ..NONE }, |seen, verdict, _| {
                assert!(is_about(seen.shift_px, shift), "{shift}: {seen:?}");
                assert!(is_about(seen.row_error_px, rows), "{shift}: {seen:?}");
                assert!(seen.roll_deg.abs() < 0.03, "{shift}: {seen:?}");
                assert!((seen.scale - 1.0).abs() < 0.001, "{shift}: {seen:?}");
                let expected = if rows > 1.5 { Verdict::RowsOff } else { Verdict::Good };
                assert_eq!(verdict, expected, "{shift}: {seen:?}");
            });
        }
    }
}

#[test]
fn rotations_are_reported() {
    for degrees in [0.1, 0.25, 0.5, 1.0, 2.0] {
        for roll in [degrees, -degrees] {
            with_bump(Bump { roll, ..NONE }, |seen, verdict, before| {
                assert!(is_about(seen.roll_deg, roll), "{roll}: {seen:?}");
                assert!((seen.shift_px - before.shift_px).abs() < 0.15, "{roll}: {seen:?}");
                assert!((seen.scale - 1.0).abs() < 0.002, "{roll}: {seen:?}");
                // Root mean square of x * sin(roll) over x from -376 to 376.
                let error = 752.0 / 12f64.sqrt() * degrees.to_radians().sin();
                assert!(is_about(seen.row_error_px, error), "{roll}: {seen:?}");
                let expected = match error {
                    ..1.5 => Verdict::Good,
                    ..5.0 => Verdict::RowsOff,
                    _ => Verdict::NotRectified,
                };
                assert_eq!(verdict, expected, "{roll}: {seen:?}");
            });
        }
    }
}

#[test]
fn scales_are_reported() {
    for change in [0.002, 0.005, 0.01, 0.02, -0.002, -0.005, -0.01, -0.02] {
        with_bump(Bump { scale: 1.0 + change, ..NONE }, |seen, _, _| {
            assert!(is_about(seen.scale - 1.0, change), "{change}: {seen:?}");
            assert!(seen.roll_deg.abs() < 0.03 && seen.shift_px.abs() < 0.2, "{change}: {seen:?}");
        });
    }
}

#[test]
fn all_at_once_are_told_apart() {
    for bump in [
        Bump { shift: 2.0, roll: 0.5, scale: 1.01 },
        Bump { shift: -3.5, roll: 0.25, scale: 0.99 },
        Bump { shift: 5.0, roll: -1.0, scale: 1.005 },
        Bump { shift: -5.0, roll: -2.0, scale: 0.98 },
    ] {
        with_bump(bump, |seen, verdict, _| {
            assert!(is_about(seen.shift_px, bump.shift), "{bump:?}: {seen:?}");
            assert!(is_about(seen.roll_deg, bump.roll), "{bump:?}: {seen:?}");
            assert!(is_about(seen.scale - 1.0, bump.scale - 1.0), "{bump:?}: {seen:?}");
            assert!(verdict.is_alarm(), "{bump:?}: {seen:?}");
        });
    }
}

/// The views are exchanged and the rows are off: both are reported, one after the other.
#[test]
fn exchanged_eyes_are_noticed_with_rows_off() {
    let Some(folder) = data("euroc_v1_01/rectified/png") else { return };
    let mut pair = euroc(&folder, EUROC[1]);
    pair.right = bumped(&pair.right, Bump { shift: 2.0, roll: 0.25, scale: 1.0 });
    let (measurement, verdict) = pair.exchanged();
    assert_eq!(verdict, Verdict::Swapped, "{measurement:?}");
}

/// Another exposure of one view changes nothing.
#[test]
fn gain_offset_and_noise_are_ignored() {
    let Some(folder) = data("euroc_v1_01/rectified/png") else { return };
    let mut pair = euroc(&folder, EUROC[2]);
    let right = bumped(&pair.right, Bump { shift: 2.0, roll: 0.25, scale: 1.0 });
    pair.right = Image::from_fn(752, 480, |x, y| {
        let noise = f64::from((x * 7919 + y * 104_729 + x * y * 31) as u32 % 13) - 6.0;
        (0.6 * f64::from(right.row(y)[x]) + 25.0 + noise).clamp(0.0, 255.0) as u8
    });
    let (measurement, verdict) = pair.measured();
    let seen = measurement.unwrap();
    assert_eq!(verdict, Verdict::RowsOff, "{seen:?}");
    assert!(is_about(seen.shift_px, 2.0) && is_about(seen.roll_deg, 0.25), "{seen:?}");
}
