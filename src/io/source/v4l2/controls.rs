//! Sets exposure, gain and other controls of a camera before it delivers frames.

use std::io;

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    #[default]
    Keep,
    Auto,
    #[serde(untagged)]
    Value(f64),
}

/// Compensation of lamps that flicker with the mains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerLine {
    #[default]
    Keep,
    Off,
    #[serde(rename = "50")]
    Hz50,
    #[serde(rename = "60")]
    Hz60,
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Controls {
    /// Exposure time in milliseconds.
    pub exposure_ms: Setting,
    /// Gain, in the camera's own numbers.
    pub gain: Setting,
    /// White balance as a colour temperature in kelvin.
    pub white_balance: Setting,
    /// Focus, in the camera's own numbers.
    pub focus: Setting,
    pub power_line: PowerLine,
}

/// A control with an automatic mode; numbers of `linux/v4l2-controls.h`.
#[derive(Clone, Copy)]
pub struct Knob {
    pub key: &'static str,
    pub help: &'static str,
    /// Largest value that is valid for any camera.
    pub largest: f64,
    name: &'static str,
    unit: &'static str,
    /// Control that selects the automatic mode, and its value for manual.
    chooser: u32,
    manual: i32,
    /// Values for automatic, the preferred one first.
    automatic: &'static [i32],
    value: u32,
    /// Steps of the control per unit.
    scale: f64,
}

/// Exposure times are in 100 µs. Webcams call an automatic exposure time aperture priority, because
/// their aperture is fixed.
const EXPOSURE: Knob = Knob {
    key: "exposure_ms",
    help: "Exposure time in milliseconds, `auto` or `keep`.",
    largest: 100_000.0,
    name: "exposure",
    unit: " ms",
    chooser: 0x009a_0901,
    manual: 1,
    automatic: &[3, 0],
    value: 0x009a_0902,
    scale: 10.0,
};
const GAIN: Knob = Knob {
    help: "Gain in the camera's own numbers, `auto` or `keep`.",
    ..switch_knob(("gain", "gain", ""), 1e9, 0x0098_0912, 0x0098_0913)
};
const WHITE_BALANCE: Knob = Knob {
    help: "White balance as a colour temperature in kelvin, `auto` or `keep`.",
    ..switch_knob(("white_balance", "white balance", " K"), 100_000.0, 0x0098_090c, 0x0098_091a)
};
const FOCUS: Knob = Knob {
    help: "Focus in the camera's own numbers, `auto` or `keep`; a calibration is valid for one focus only.",
    ..switch_knob(("focus", "focus", ""), 1e9, 0x009a_090c, 0x009a_090a)
};
pub const KNOBS: [Knob; 4] = [EXPOSURE, GAIN, WHITE_BALANCE, FOCUS];
const POWER_LINE: u32 = 0x0098_0918;

/// Creates a control with an on-off switch for its automatic mode.
const fn switch_knob(
    (key, name, unit): (&'static str, &'static str, &'static str),
    largest: f64,
    chooser: u32,
    value: u32,
) -> Knob {
    let (manual, automatic, scale) = (0, &[1], 1.0);
    Knob { key, help: "", largest, name, unit, chooser, manual, automatic, value, scale }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ControlRange {
    pub(super) least: i32,
    pub(super) largest: i32,
    /// Between one value and the next.
    pub(super) step: i32,
}

impl ControlRange {
    /// Returns the largest valid value up to this one, or the least.
    pub(super) fn nearest(self, value: i32) -> i32 {
        // In 64 bits, because a range may span all 32.
        let (least, step) = (i64::from(self.least), i64::from(self.step.max(1)));
        let value = i64::from(value.clamp(self.least, self.largest.max(self.least)));
        ((value - least) / step * step + least) as i32
    }
}

pub(super) trait Panel {
    /// Returns the range of a control; `None` if there is no such control.
    fn range(&self, id: u32) -> Option<ControlRange>;
    fn get(&self, id: u32) -> Option<i32>;
    fn set(&mut self, id: u32, value: i32) -> io::Result<()>;
}

/// Sets values of controls, each rounded to a valid one. Returns the last refused control with its value.
pub(super) fn set_all(
    panel: &mut impl Panel,
    values: &[(u32, i32)],
) -> Option<(u32, i32, io::Error)> {
    let mut refused = None;
    for &(id, value) in values {
        let value = panel.range(id).map_or(value, |range| range.nearest(value));
        if let Err(error) = panel.set(id, value) {
            refused = Some((id, value, error));
        }
    }
    refused
}

impl Controls {
    /// Applies the settings. Returns a complaint for each unsupported one, with the supported range.
    pub(super) fn apply(&self, panel: &mut impl Panel) -> Vec<String> {
        let settings = [self.exposure_ms, self.gain, self.white_balance, self.focus];
        let mut complaints: Vec<String> = (KNOBS.iter().zip(settings))
            .filter_map(|(knob, setting)| knob.turn(panel, setting).err())
            .collect();
        let power_line = match self.power_line {
            PowerLine::Keep => return complaints,
            PowerLine::Off => 0,
            PowerLine::Hz50 => 1,
            PowerLine::Hz60 => 2,
            PowerLine::Auto => 3,
        };
        if panel.set(POWER_LINE, power_line).is_err() {
            complaints.push("the power-line frequency cannot be set to this".into());
        }
        complaints
    }
}

/// Copies the present exposure, gain and white balance of `leader` to `follower` and switches their
/// automatic modes off. Reports whether anything changed.
pub(super) fn copy_exposure(leader: &impl Panel, follower: &mut impl Panel) -> bool {
    let mut changed = false;
    for knob in [EXPOSURE, GAIN, WHITE_BALANCE] {
        let (Some(wanted), Some(range)) = (leader.get(knob.value), follower.range(knob.value))
        else {
            continue;
        };
        let wanted = wanted.clamp(range.least, range.largest);
        if follower.get(knob.chooser).is_some_and(|chooser| chooser != knob.manual) {
            changed |= follower.set(knob.chooser, knob.manual).is_ok();
        }
        if follower.get(knob.value) != Some(wanted) {
            changed |= follower.set(knob.value, wanted).is_ok();
        }
    }
    changed
}

impl Knob {
    fn turn(&self, panel: &mut impl Panel, setting: Setting) -> Result<(), String> {
        let Knob { name, unit, chooser, manual, automatic, value: control, scale, .. } = *self;
        match setting {
            Setting::Keep => Ok(()),
            Setting::Auto => {
                let set = automatic.iter().any(|&mode| panel.set(chooser, mode).is_ok());
                set.then_some(()).ok_or_else(|| format!("it has no automatic {name}"))
            }
            Setting::Value(value) => {
                let Some(range) = panel.range(control) else {
                    return Err(format!("its {name} cannot be set"));
                };
                let steps = (value * scale).round();
                let (least, largest) = (f64::from(range.least), f64::from(range.largest));
                if !(least..=largest).contains(&steps) {
                    return Err(format!(
                        "its {name} cannot be {value}{unit}; it takes {} to {}{unit}",
                        least / scale,
                        largest / scale
                    ));
                }
                // Cameras without an automatic mode have no such switch.
                let _ = panel.set(chooser, manual);
                // Within the range of the control, so it fits.
                panel
                    .set(control, range.nearest(steps as i32))
                    .map_err(|error| format!("its {name} cannot be set: {error}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A simulated camera with these controls, the range of each, and the values set.
    #[derive(Default)]
    struct Fake {
        controls: BTreeMap<u32, ControlRange>,
        set: Vec<(u32, i32)>,
    }

    impl Fake {
        fn with(mut self, id: u32, least: i32, largest: i32, step: i32) -> Self {
            self.controls.insert(id, ControlRange { least, largest, step });
            self
        }
    }

    impl Panel for Fake {
        fn range(&self, id: u32) -> Option<ControlRange> {
            self.controls.get(&id).copied()
        }
        fn get(&self, id: u32) -> Option<i32> {
            let own = self.set.iter().rev().find(|(set, _)| *set == id).map(|&(_, value)| value);
            own.or_else(|| Some(self.range(id)?.largest))
        }
        fn set(&mut self, id: u32, value: i32) -> io::Result<()> {
            let range = self.range(id).ok_or(io::ErrorKind::InvalidInput)?;
            if !(range.least..=range.largest).contains(&value) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            self.set.push((id, value));
            Ok(())
        }
    }

    fn webcam() -> Fake {
        let camera =
            Fake::default().with(EXPOSURE.chooser, 1, 3, 1).with(EXPOSURE.value, 1, 500, 1);
        camera.with(GAIN.value, 0, 100, 5).with(POWER_LINE, 0, 2, 1)
    }

    #[test]
    fn values_reach_their_controls() {
        let mut camera = webcam();
        let controls = Controls {
            exposure_ms: Setting::Value(12.5),
            gain: Setting::Value(33.0),
            power_line: PowerLine::Hz50,
            ..Controls::default()
        };
        assert_eq!(controls.apply(&mut camera), Vec::<String>::new());
        let expected =
            [(EXPOSURE.chooser, 1), (EXPOSURE.value, 125), (GAIN.value, 30), (POWER_LINE, 1)];
        assert_eq!(camera.set, expected);
    }

    #[test]
    fn values_are_rounded_and_refusals_are_named() {
        let mut camera = webcam();
        let refused =
            set_all(&mut camera, &[(FOCUS.value, 5), (GAIN.value, 33), (EXPOSURE.value, 900)]);
        assert_eq!(refused.map(|(id, value, _)| (id, value)), Some((FOCUS.value, 5)));
        assert_eq!(camera.set, [(GAIN.value, 30), (EXPOSURE.value, 500)]);
        let all = ControlRange { least: i32::MIN, largest: i32::MAX, step: 7 };
        assert!(all.nearest(i32::MAX) <= i32::MAX - 3, "no overflow");
    }

    #[test]
    fn nothing_is_touched_unless_asked() {
        let mut camera = webcam();
        assert!(Controls::default().apply(&mut camera).is_empty());
        assert!(camera.set.is_empty());
    }

    #[test]
    fn automatic_by_the_mode_that_the_camera_knows() {
        let controls = Controls { exposure_ms: Setting::Auto, ..Controls::default() };
        let mut camera = webcam();
        assert!(controls.apply(&mut camera).is_empty());
        assert_eq!(camera.set, [(EXPOSURE.chooser, 3)]);
        let mut other = Fake::default().with(EXPOSURE.chooser, 0, 1, 1);
        assert!(controls.apply(&mut other).is_empty());
        assert_eq!(other.set, [(EXPOSURE.chooser, 0)]);
    }

    #[test]
    fn what_a_camera_cannot_do_is_told_with_what_it_can() {
        let controls = Controls {
            exposure_ms: Setting::Value(200.0),
            gain: Setting::Auto,
            white_balance: Setting::Value(4500.0),
            focus: Setting::Keep,
            power_line: PowerLine::Auto,
        };
        let mut camera = webcam();
        assert_eq!(
            controls.apply(&mut camera),
            [
                "its exposure cannot be 200 ms; it takes 0.1 to 50 ms",
                "it has no automatic gain",
                "its white balance cannot be set",
                "the power-line frequency cannot be set to this",
            ]
        );
        assert!(camera.set.is_empty());
        let mut camera = webcam();
        let nan = Controls { gain: Setting::Value(f64::NAN), ..Controls::default() };
        assert_eq!(nan.apply(&mut camera).len(), 1);
    }

    #[test]
    fn one_camera_follows_what_the_other_chooses() {
        let (mut leader, mut follower) = (webcam(), webcam());
        for (id, value) in [(EXPOSURE.chooser, 3), (EXPOSURE.value, 77), (GAIN.value, 40)] {
            leader.set(id, value).unwrap();
        }
        assert!(copy_exposure(&leader, &mut follower));
        assert_eq!(follower.set, [(EXPOSURE.chooser, 1), (EXPOSURE.value, 77), (GAIN.value, 40)]);
        assert!(!copy_exposure(&leader, &mut follower), "nothing has changed since");
        assert_eq!(follower.set.len(), 3);
        // A camera with a shorter longest exposure gets that.
        leader.set(EXPOSURE.value, 400).unwrap();
        let mut other = Fake::default().with(EXPOSURE.value, 1, 300, 1);
        assert!(!copy_exposure(&leader, &mut other), "its largest is what it has");
        other.set(EXPOSURE.value, 5).unwrap();
        assert!(copy_exposure(&leader, &mut other));
        assert_eq!(other.get(EXPOSURE.value), Some(300));
    }
}
