//! Warning about the different frame rates of a recording's views.

use std::time::Duration;

use super::synchronisation::{Cadence, Fit};
use stereod_core::frame::Eye;

/// Number of frames of both views after which their rates are compared, and again after every doubling.
const FIRST: u64 = 64;

/// Relative difference of two rates above which they differ: beyond the error of any two quartzes.
const OTHER_RATE: f64 = 300e-6;

/// Relative difference of two rates below which one frame in a while lacks a partner, and no frame is left out for good.
const DRIFT: f64 = 0.02;

/// A difference counts if it exceeds the error of its estimate by this factor: jitter is not independent noise.
const CERTAIN: f64 = 8.0;

/// Compares the rates of both views, measured by the times of their frames. Stated rates only give the names: that of a
/// variable rate means nothing.
#[derive(Debug)]
pub struct RateCheck {
    stated: [Option<f64>; 2],
    cadences: [Cadence; 2],
    frames: [u64; 2],
    due: u64,
    is_told: bool,
}

impl RateCheck {
    /// Creates a check without frames. `stated`: frames a second of each view, if stated.
    pub fn new(stated: [Option<f64>; 2]) -> Self {
        Self { stated, cadences: Default::default(), frames: [0; 2], due: FIRST, is_told: false }
    }

    /// Notes the time of the next frame of `eye`. Returns the warning once it is certain.
    pub fn note(&mut self, eye: Eye, time: Duration) -> Option<String> {
        if self.is_told {
            return None;
        }
        self.cadences[eye.index()].push(time);
        self.frames[eye.index()] += 1;
        if self.frames[0].min(self.frames[1]) < self.due {
            return None;
        }
        self.due *= 2;
        self.finish()
    }

    /// Returns the warning by the frames so far, unless it was given before.
    pub fn finish(&mut self) -> Option<String> {
        let [left, right] = [self.cadences[0].fit()?, self.cadences[1].fit()?];
        if self.is_told || !are_different(&left, &right) {
            return None;
        }
        self.is_told = true;
        let [(left, left_name), (right, right_name)] =
            [(left, self.stated[0]), (right, self.stated[1])].map(|(fit, own)| rate(&fit, own));
        let apart = (left - right).abs();
        let consequence = match apart < DRIFT * left {
            true => format!(
                "the views drift by one frame every {:.1} s, so they are up to half a frame apart, and what moves gets \
                 wrong disparities. Record both at one rate; if frames of one number show the same moment, `--set \
                 source.pair_by=index` pairs them",
                apart.recip()
            ),
            false => "frames of the faster one find no partner, and the others may lie up to half a frame apart. \
                      Record both at one rate"
                .to_owned(),
        };
        Some(format!(
            "the left view has {left_name} frames a second and the right one {right_name}: {consequence}"
        ))
    }
}

fn are_different(left: &Fit, right: &Fit) -> bool {
    let apart = (left.period / right.period).ln().abs();
    let error = (left.error / left.period).hypot(right.error / right.period);
    left.is_steady() && right.is_steady() && apart > OTHER_RATE.max(CERTAIN * error)
}

/// Returns the stated rate if it is the measured one, else the latter, and its name.
fn rate(fit: &Fit, stated: Option<f64>) -> (f64, String) {
    let measured = fit.period.recip();
    // Narrow enough that different rates never get one name.
    let error = (0.5 * OTHER_RATE).max(2.0 * fit.error / fit.period);
    let is_right = |stated: &f64| (stated / measured).ln().abs() < error;
    // Further digits of a measured rate are noise.
    let (rate, name) = match stated.filter(is_right) {
        Some(stated) => (stated, format!("{stated:.3}")),
        None => (measured, format!("{measured:.2}")),
    };
    (rate, name.trim_end_matches('0').trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Time of a frame in milliseconds, as Matroska rounds it.
    fn time(frame: u64, rate: f64, late_ms: f64) -> Duration {
        Duration::from_millis((frame as f64 * 1e3 / rate + late_ms).round() as u64)
    }

    /// Warnings for this many frames of views with these rates; `at` adds milliseconds to the time of a frame, or leaves
    /// it out.
    fn told(
        rates: [f64; 2],
        stated: [Option<f64>; 2],
        frames: u64,
        mut at: impl FnMut(usize, u64) -> Option<f64>,
    ) -> Vec<String> {
        let mut check = RateCheck::new(stated);
        let mut told = Vec::new();
        for frame in 0..frames {
            for eye in Eye::BOTH {
                let index = eye.index();
                let late = at(index, frame);
                told.extend(late.and_then(|late| check.note(eye, time(frame, rates[index], late))));
            }
        }
        told.extend(check.finish());
        told
    }

    #[test]
    fn rates_are_named_at_the_start() {
        let film = 24_000.0 / 1001.0;
        for (rates, stated, words) in [
            ([30.0, 29.97], [None; 2], "has 30 frames a second and the right one 29.97:"),
            ([film, 24.0], [Some(film), Some(24.0)], "has 23.976 frames a second and the right"),
            ([60.0, 59.94], [Some(30.0); 2], "has 60 frames a second and the right one 59.94"),
            (
                [25.0, 50.0],
                [Some(25.0), None],
                "has 25 frames a second and the right one 50: frames",
            ),
            ([15.0, 14.9], [None; 2], "drift by one frame every 10.0 s"),
        ] {
            let told = told(rates, stated, 130, |_, _| Some(0.0));
            assert!(matches!(&told[..], [one] if one.contains(words)), "{rates:?}: {told:?}");
        }
        // Too short to tell.
        assert!(told([30.0, 29.97], [None; 2], 20, |_, _| Some(0.0)).is_empty());
    }

    proptest! {
        #[test]
        fn one_rate_is_never_taken_for_two(
            rate in 5.0f64..120.0,
            jitter in 0.0f64..0.2,
            lost in 2u64..200,
            seed in any::<u64>(),
            // Whatever is stated.
            stated in prop::array::uniform2(prop::option::of(1.0f64..1000.0)),
        ) {
            let mut random = seed;
            let at = |_, _| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let late = jitter * 1e3 / rate * ((random >> 33) % 1001) as f64 / 1e3;
                (!(random >> 40).is_multiple_of(lost)).then_some(late)
            };
            let told = told([rate; 2], stated, 1500, at);
            prop_assert!(told.is_empty(), "{:?}", told);
        }
    }
}
