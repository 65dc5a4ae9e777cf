//! Obstacles of a pair, as `stereod obstacles --json` has them.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::parameters::argument;
use stereod_core::frame::StereoGeometry;
use stereod_core::matcher::{self, matched};
use stereod_core::obstacles::{Mount, Obstacles};
use stereod_obstacles::boxes::{DetectorBox, check_boxes};
use stereod_obstacles::scan::Scanner;
use stereod_obstacles::zones::Watch;
use stereod_obstacles::{lines, usual};

/// What is looked for, and from where.
#[derive(Default)]
pub struct Wanted {
    mount: Mount,
    band_m: Option<[f64; 2]>,
    far_m: Option<f64>,
    bin_deg: Option<f64>,
    boxes: Vec<DetectorBox>,
}

impl Wanted {
    /// Takes the keyword arguments of `Disparity.obstacles`.
    pub fn new(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut wanted = Self::default();
        for (key, value) in given.into_iter().flatten() {
            let name: String = key.extract()?;
            match name.as_str() {
                "position_m" => wanted.mount.position_m = argument(&name, &value, "three numbers")?,
                "attitude_deg" => {
                    wanted.mount.attitude_deg = argument(&name, &value, "three numbers")?
                }
                "band_m" => wanted.band_m = argument(&name, &value, "two heights in metres")?,
                "far_m" => wanted.far_m = argument(&name, &value, "metres")?,
                "bin_deg" => wanted.bin_deg = argument(&name, &value, "degrees")?,
                "boxes" => {
                    let expected = "a list of (label, (left, top, right, bottom)) in pixels";
                    let boxes: Vec<(String, [f64; 4])> = argument(&name, &value, expected)?;
                    let stamp = Default::default();
                    let of =
                        |(label, edges)| DetectorBox { label, id: None, score: None, edges, stamp };
                    wanted.boxes = boxes.into_iter().map(of).collect();
                }
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "{name} is no argument of obstacles: position_m, attitude_deg, band_m, far_m, bin_deg, boxes"
                    )));
                }
            }
        }
        let numbers = [wanted.mount.position_m, wanted.mount.attitude_deg].into_iter().flatten();
        let numbers = numbers.chain(wanted.band_m.into_iter().flatten()).chain(wanted.far_m);
        match numbers.chain(wanted.bin_deg).all(f64::is_finite) {
            true => Ok(wanted),
            false => Err(PyValueError::new_err("a place, height, distance or angle is not finite")),
        }
    }

    /// Finds the obstacles of a pair with these cameras, as JSON.
    pub fn find(
        self,
        disparity: &matcher::Disparity,
        geometry: StereoGeometry,
    ) -> Result<String, String> {
        let (matched, mount) = (matched(disparity), self.mount);
        if matched.confidence.is_none() {
            return Err("obstacles need a matcher with confidence=True".into());
        }
        let mut rules = usual::rules(&mount, &geometry);
        rules.band_m = self.band_m.unwrap_or(rules.band_m);
        rules.far_m = self.far_m.unwrap_or(rules.far_m);
        rules.bin_deg = self.bin_deg.unwrap_or(rules.bin_deg);
        let [low, high] = rules.band_m;
        if !(low < high && rules.far_m > 0.0 && (0.2..=30.0).contains(&rules.bin_deg)) {
            return Err("band_m is low and high, far_m above 0, and bin_deg from 0.2 to 30".into());
        }
        let size = [matched.disparity.width() as f64, matched.disparity.height() as f64];
        let boxes =
            check_boxes(self.boxes, Some(size)).map_err(|fault| format!("boxes: {fault}"))?;
        let mut watch = Watch::new(Vec::new(), rules.pixels, rules.confidence);
        let mut scanner = Scanner::new(rules, &mount).map_err(|fault| fault.to_string())?;
        let found = Obstacles {
            scan: scanner.scan(matched, &mount, geometry),
            zones: Vec::new(),
            things: watch.things(matched, &mount, geometry, boxes),
            mount,
        };
        let mut object = lines::to_json(&found, 0, Duration::ZERO, Duration::ZERO);
        // Those of a run.
        let of_run = ["latency_ms", "pair", "stamp", "zones"];
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|key, _| !of_run.contains(&key.as_str()));
        }
        Ok(object.to_string())
    }
}
