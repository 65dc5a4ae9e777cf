//! Meaning of the 16-bit numbers of images and recordings: disparity or depth.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use super::encoding::{Encoding, UNKNOWN};
use crate::frame::{DisparityRange, INVALID, SUBPIXEL, StereoGeometry};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthUnit {
    per_metre: f64,
}

impl DepthUnit {
    /// Smallest and largest unit in millimetres.
    pub const LIMITS_MM: [f64; 2] = [0.1, 10.0];

    pub fn of_millimetres(millimetres: f64) -> Self {
        Self { per_metre: 1000.0 / millimetres }
    }

    /// Returns the unit with this number per metre, as in a file; `None` for one that is never written.
    pub fn of_scale(per_metre: f64) -> Option<Self> {
        let [least, most] = Self::LIMITS_MM.map(|millimetres| 1000.0 / millimetres);
        (most..=least).contains(&per_metre).then_some(Self { per_metre })
    }

    pub fn per_metre(self) -> f64 {
        self.per_metre
    }

    /// Encodes depth in metres, infinite if unknown; `stored` has its length.
    pub fn encode(self, depth_m: &[f32], stored: &mut [u16]) {
        for (out, &metres) in stored.iter_mut().zip(depth_m) {
            *out = number(Some(f64::from(metres)), self);
            if *out == UNKNOWN && metres.is_finite() {
                self.report_too_far();
            }
        }
    }

    /// Returns the meaning of stored depth, for people and for programs.
    pub fn describe(self) -> String {
        format!("depth in metres = value / {}; 0 = unknown", self.per_metre)
    }

    /// Returns the largest depth in metres that 16 bits hold.
    fn reach_m(self) -> f64 {
        f64::from(u16::MAX) / self.per_metre
    }

    /// Logs once that depth does not fit 16 bits.
    fn report_too_far(self) {
        if !TOO_FAR_REPORTED.swap(true, Ordering::Relaxed) {
            tracing::info!("{}", self.reach());
        }
    }

    /// Returns the warning about depth that does not fit, with a remedy.
    fn reach(self) -> String {
        let reach = self.reach_m();
        let largest = DepthUnit::LIMITS_MM[1];
        let far = DepthUnit::of_millimetres(largest).reach_m();
        let cure = match reach < far {
            true => format!(
                "--depth-unit {largest} reaches {far} m in files of depth; among messages, depth-float has no \
                 such limit"
            ),
            false => "disparity (without --depth) has no such limit".to_owned(),
        };
        format!("depth beyond {reach} m does not fit 16 bits and is stored as unknown; {cure}")
    }
}

impl Default for DepthUnit {
    /// Returns the millimetre.
    fn default() -> Self {
        Self::of_millimetres(1.0)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Quantity {
    /// Disparity in the KITTI convention ([`Encoding`]).
    #[default]
    Disparity,
    /// Depth; 0 if it is unknown or exceeds 16 bits. In millimetres it reaches 65.535 m, as in
    /// the depth images of ROS (REP 118) and of depth cameras.
    Depth(DepthUnit),
}

/// Conversion of disparity to stored numbers.
#[derive(Clone, Debug)]
pub struct Numbers {
    encoding: Encoding,
    depth: Option<Depth>,
}

#[derive(Clone, Debug)]
struct Depth {
    unit: DepthUnit,
    /// Stored number by disparity in 1/16 px, from [`INVALID`] on.
    table: Arc<[u16]>,
    /// Disparities in 1/16 px with a depth that does not fit 16 bits, if any.
    too_far: Option<RangeInclusive<i16>>,
}

/// Set once the warning about depth beyond 16 bits was logged.
static TOO_FAR_REPORTED: AtomicBool = AtomicBool::new(false);

impl Depth {
    fn new(unit: DepthUnit, geometry: &StereoGeometry) -> Self {
        let depth = |value| depth_m(geometry, value);
        let table = (INVALID..=i16::MAX).map(|value| number(depth(value), unit)).collect();
        let is_too_far = |value: &i16| depth(*value).is_some_and(|depth| depth > unit.reach_m());
        let mut far = (INVALID..=i16::MAX).filter(is_too_far);
        let too_far = far.next().map(|first| first..=far.next_back().unwrap_or(first));
        Self { unit, table, too_far }
    }

    fn encode(&self, values: &[i16], stored: &mut [u16]) {
        for (out, &value) in stored.iter_mut().zip(values) {
            *out = self.table[(i32::from(value) - i32::from(INVALID)) as usize];
        }
        if let Some(too_far) = &self.too_far
            && !TOO_FAR_REPORTED.load(Ordering::Relaxed)
            && values.iter().any(|value| too_far.contains(value))
        {
            self.unit.report_too_far();
        }
    }
}

impl Numbers {
    /// Returns the conversion for maps of this range.
    pub fn new(
        quantity: Quantity,
        range: DisparityRange,
        geometry: Option<&StereoGeometry>,
    ) -> Result<Self> {
        let encoding = Encoding::for_range(range);
        let depth = match quantity {
            Quantity::Disparity => None,
            Quantity::Depth(unit) => {
                let geometry = geometry.context(
                    "depth needs a calibration: give --calibration FILE, or --focal and --baseline",
                )?;
                Some(Depth::new(unit, geometry))
            }
        };
        Ok(Self { encoding, depth })
    }

    pub fn quantity(&self) -> Quantity {
        self.depth.as_ref().map_or(Quantity::Disparity, |depth| Quantity::Depth(depth.unit))
    }

    /// Returns scale and offset of stored disparity.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Encodes values of a disparity map; `stored` has their length.
    pub fn encode(&self, values: &[i16], stored: &mut [u16]) {
        let Some(depth) = &self.depth else { return self.encoding.encode(values, stored) };
        assert_eq!(values.len(), stored.len(), "as many stored numbers as values");
        depth.encode(values, stored);
    }

    /// Returns the meaning of the stored numbers, for people and for programs.
    pub fn describe(&self) -> String {
        match self.quantity() {
            Quantity::Depth(unit) => unit.describe(),
            Quantity::Disparity => {
                let (scale, offset) = (self.encoding.scale(), self.encoding.offset());
                format!("disparity = value / {scale} + {offset}; 0 = unknown")
            }
        }
    }
}

/// Returns the depth in metres of a value of a disparity map.
fn depth_m(geometry: &StereoGeometry, value: i16) -> Option<f64> {
    let disparity = f64::from(value) / f64::from(SUBPIXEL);
    geometry.depth_m(disparity).filter(|_| value != INVALID)
}

/// Returns the number that stands for a depth; a point nearer than half a unit counts as 1.
fn number(depth_m: Option<f64>, unit: DepthUnit) -> u16 {
    let rounded = depth_m.map(|metres| (metres * unit.per_metre()).round().max(1.0));
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
        let millimetres = Quantity::Depth(DepthUnit::default());
        let numbers = Numbers::new(millimetres, RANGE, Some(&geometry())).unwrap();
        let values = [INVALID, 0, 16 * 20, 16 * 30, -16, 1, 10, 9, i16::MAX];
        let mut stored = [7; 9];
        numbers.encode(&values, &mut stored);
        // 40 px m over 20 px; over 30 px; at infinity and behind; 640 m; 64 m; 71.1 m; 19.53 mm.
        assert_eq!(stored, [0, 0, 2000, 1333, 0, 0, 64000, 0, 20]);
        assert_eq!(numbers.quantity(), millimetres);
        assert_eq!(numbers.describe(), "depth in metres = value / 1000; 0 = unknown");
        let near = StereoGeometry { baseline_m: 1e-6, ..geometry() };
        let numbers = Numbers::new(millimetres, RANGE, Some(&near)).unwrap();
        numbers.encode(&[16], &mut stored[..1]);
        assert_eq!(stored[0], 1);
    }

    #[test]
    fn a_larger_unit_reaches_further() {
        let of = |unit| Depth::new(DepthUnit::of_millimetres(unit), &geometry());
        // 640 m; 320 m; 64 m; 40 m; 20 m.
        let values = [1, 2, 10, 16, 32];
        for (unit, expected, too_far) in [
            (1.0, [0, 0, 64000, 40000, 20000], Some(1..=9)),
            (10.0, [64000, 32000, 6400, 4000, 2000], None),
            (0.5, [0, 0, 0, 0, 40000], Some(1..=19)),
        ] {
            let (depth, mut stored) = (of(unit), [7; 5]);
            depth.encode(&values, &mut stored);
            assert_eq!((stored, depth.too_far), (expected, too_far), "{unit} mm");
        }
        let told = DepthUnit::of_millimetres(1.0).reach();
        assert!(
            told.contains("65.535 m") && told.contains("--depth-unit 10 reaches 655.35 m"),
            "{told}"
        );
        let told = DepthUnit::of_millimetres(10.0).reach();
        assert!(told.contains("disparity"), "{told}");

        let unit = DepthUnit::of_millimetres(10.0);
        let numbers = Numbers::new(Quantity::Depth(unit), RANGE, Some(&geometry())).unwrap();
        assert_eq!(numbers.describe(), "depth in metres = value / 100; 0 = unknown");
        for unit in [0.1, 0.3, 1.0, 7.0, 10.0].map(DepthUnit::of_millimetres) {
            let read = unit.per_metre().to_string().parse().ok().and_then(DepthUnit::of_scale);
            assert_eq!(read, Some(unit));
        }
        for scale in [0.0, 99.0, 10001.0, f64::NAN, f64::INFINITY, -1000.0] {
            assert_eq!(DepthUnit::of_scale(scale), None, "{scale}");
        }
    }

    #[test]
    fn disparity_needs_no_geometry_and_depth_does() {
        let numbers = Numbers::new(Quantity::Disparity, RANGE, None).unwrap();
        let mut stored = [0; 2];
        numbers.encode(&[24, INVALID], &mut stored);
        assert_eq!((stored, numbers.quantity()), ([384, 0], Quantity::Disparity));
        assert_eq!(numbers.describe(), "disparity = value / 256 + 0; 0 = unknown");
        let depth = Quantity::Depth(DepthUnit::default());
        let error = Numbers::new(depth, RANGE, None).unwrap_err().to_string();
        assert!(error.contains("--calibration"), "{error}");
    }
}
