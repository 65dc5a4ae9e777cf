//! Meaning of the 16-bit numbers of pictures and recordings: disparity, or depth.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::encoding::{Encoding, UNKNOWN};
use crate::frame::{DisparityRange, INVALID, SUBPIXEL, StereoGeometry};

/// Stored units per metre of depth: millimetres.
pub const DEPTH_SCALE: u32 = 1000;

/// The quantity that is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// Disparity in the KITTI convention ([`Encoding`]).
    #[default]
    Disparity,
    /// Depth in millimetres, 0 where it is unknown or beyond 65.535 m, as the depth pictures of ROS
    /// (REP 118) and of depth cameras hold it.
    Depth,
}

/// Makes the numbers.
#[derive(Clone, Debug)]
pub struct Numbers {
    encoding: Encoding,
    /// Millimetres by disparity in 1/16 px, from [`INVALID`] on.
    depth: Option<Arc<[u16]>>,
}

impl Numbers {
    /// Numbers for maps of this range.
    ///
    /// # Errors
    /// Where depth is wanted and nothing is known that it could be computed from.
    pub fn new(
        quantity: Quantity,
        range: DisparityRange,
        geometry: Option<&StereoGeometry>,
    ) -> Result<Self> {
        let encoding = Encoding::for_range(range);
        let depth = match quantity {
            Quantity::Disparity => None,
            Quantity::Depth => {
                let geometry = geometry.context(
                    "depth needs a calibration: give --calibration FILE, or --focal and --baseline",
                )?;
                Some((INVALID..=i16::MAX).map(|value| millimetres(geometry, value)).collect())
            }
        };
        Ok(Self { encoding, depth })
    }

    /// The quantity that is stored.
    pub fn quantity(&self) -> Quantity {
        if self.depth.is_some() { Quantity::Depth } else { Quantity::Disparity }
    }

    /// Scale and offset of stored disparity.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Encodes values of a disparity map; `stored` has their length.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn encode(&self, values: &[i16], stored: &mut [u16]) {
        let Some(table) = &self.depth else { return self.encoding.encode(values, stored) };
        assert_eq!(values.len(), stored.len(), "as many stored numbers as values");
        for (out, &value) in stored.iter_mut().zip(values) {
            *out = table[(i32::from(value) - i32::from(INVALID)) as usize];
        }
    }

    /// Meaning of the stored numbers, for people and for programs.
    pub fn describe(&self) -> String {
        match self.quantity() {
            Quantity::Depth => format!("depth in metres = value / {DEPTH_SCALE}; 0 = unknown"),
            Quantity::Disparity => {
                let (scale, offset) = (self.encoding.scale(), self.encoding.offset());
                format!("disparity = value / {scale} + {offset}; 0 = unknown")
            }
        }
    }
}

/// Depth in millimetres of a value of a disparity map; a point nearer than half a millimetre counts
/// as 1.
fn millimetres(geometry: &StereoGeometry, value: i16) -> u16 {
    let disparity = f64::from(value) / f64::from(SUBPIXEL);
    let depth = geometry.depth_m(disparity).filter(|_| value != INVALID);
    let rounded = depth.map(|metres| (metres * f64::from(DEPTH_SCALE)).round().max(1.0));
    rounded.filter(|&number| number <= f64::from(u16::MAX)).map_or(UNKNOWN, |number| number as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    fn geometry() -> StereoGeometry {
        StereoGeometry {
            focal_px: 400.0,
            baseline_m: 0.1,
            centre_x_px: 320.0,
            centre_y_px: 240.0,
            right_centre_x_px: 320.0,
        }
    }

    #[test]
    fn depth_is_stored_in_millimetres() {
        let numbers = Numbers::new(Quantity::Depth, RANGE, Some(&geometry())).unwrap();
        let values = [INVALID, 0, 16 * 20, 16 * 30, -16, 1, 10, 9, i16::MAX];
        let mut stored = [7; 9];
        numbers.encode(&values, &mut stored);
        // 40 px m over 20 px; over 30 px; at infinity and behind; 640 m; 64 m; 71.1 m; 19.53 mm.
        assert_eq!(stored, [0, 0, 2000, 1333, 0, 0, 64000, 0, 20]);
        assert_eq!(numbers.quantity(), Quantity::Depth);
        assert_eq!(numbers.describe(), "depth in metres = value / 1000; 0 = unknown");
        let near = StereoGeometry { baseline_m: 1e-6, ..geometry() };
        let numbers = Numbers::new(Quantity::Depth, RANGE, Some(&near)).unwrap();
        numbers.encode(&[16], &mut stored[..1]);
        assert_eq!(stored[0], 1);
    }

    #[test]
    fn disparity_needs_no_geometry_and_depth_does() {
        let numbers = Numbers::new(Quantity::Disparity, RANGE, None).unwrap();
        let mut stored = [0; 2];
        numbers.encode(&[24, INVALID], &mut stored);
        assert_eq!((stored, numbers.quantity()), ([384, 0], Quantity::Disparity));
        assert_eq!(numbers.describe(), "disparity = value / 256 + 0; 0 = unknown");
        let error = Numbers::new(Quantity::Depth, RANGE, None).unwrap_err().to_string();
        assert!(error.contains("--calibration"), "{error}");
    }
}
