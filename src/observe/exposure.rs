//! Observer of the noise and exposure of both views.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Observer;
use super::told::{Check, Warnings};
use stereod_core::frame::{Image, Matched};
use stereod_core::matching::saturation::is_saturated;
use stereod_core::matching::texture::noise_sigma;
use stereod_core::thread::locked;
use stereod_io::text::rounded;

/// Time between two measured pairs.
const STEP: Duration = Duration::from_secs(1);

/// Ratio of the two views' brightness that is an alarm; with good exposure it is below 1.2.
const UNEQUAL: f64 = 1.3;

/// Share of saturated pixels of a view that is an alarm.
const TOO_BRIGHT: f64 = 0.15;

/// Number of bad pairs in a row before a warning.
const PATIENCE: u32 = 3;

/// Noise and exposure of one view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EyeExposure {
    /// Standard deviation of the noise, in grey levels.
    pub noise: f64,
    /// Mean grey level.
    pub brightness: f64,
    /// Share of the pixels that are saturated ([`is_saturated`]), 0 to 1.
    pub saturated: f64,
}

impl EyeExposure {
    /// Measures an image that is white from this grey level on; 0 for one without pixels.
    fn of(image: &Image, white: u8) -> Self {
        let pixels = image.pixels();
        let count = pixels.len().max(1) as f64;
        let sum: u64 = pixels.iter().map(|&grey| u64::from(grey)).sum();
        let of_row =
            |y| (0..image.width()).filter(move |&x| is_saturated(image, x, y, white)).count();
        let saturated: usize = (0..image.height()).map(of_row).sum();
        Self {
            noise: rounded(noise_sigma(image), 3),
            brightness: rounded(sum as f64 / count, 3),
            saturated: rounded(saturated as f64 / count, 3),
        }
    }
}

/// Noise and exposure of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Exposure {
    /// Exposure of the left view.
    pub left: EyeExposure,
    /// Exposure of the right view.
    pub right: EyeExposure,
}

impl Exposure {
    /// Measures two images that are white from this grey level on.
    pub fn of(left: &Image, right: &Image, white: u8) -> Self {
        Self { left: EyeExposure::of(left, white), right: EyeExposure::of(right, white) }
    }

    /// Returns a problem that costs depth, with a remedy for cameras or for a recording.
    fn trouble(&self, live: bool) -> Option<String> {
        let Self { left, right } = self;
        let ratio = left.brightness.max(1.0) / right.brightness.max(1.0);
        let (brighter, ratio) = if ratio < 1.0 { ("right", 1.0 / ratio) } else { ("left", ratio) };
        if ratio >= UNEQUAL {
            let cure = match live {
                true => {
                    "give both cameras one exposure ([camera] exposure_from) or open the darker one's lens"
                }
                false => "`--cost census` and `--cost mi` match them all the same",
            };
            return Some(format!(
                "the {brighter} view's pictures are {ratio:.1} times as bright as the other's: {cure}"
            ));
        }
        let worse =
            if left.saturated > right.saturated { ("left", left) } else { ("right", right) };
        (worse.1.saturated >= TOO_BRIGHT).then(|| {
            let cure = if live { ": expose for less ([camera] exposure_ms)" } else { "" };
            format!(
                "{:.0} % of the {} view's pixels are white, where nothing can be matched{cure}",
                100.0 * worse.1.saturated,
                worse.0
            )
        })
    }

    pub fn line(&self) -> (String, bool) {
        (self.to_string(), self.trouble(true).is_some())
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, right } = self;
        write!(f, "noise {:.1} {:.1}", left.noise, right.noise)?;
        write!(f, "  brightness {:.0} {:.0}", left.brightness, right.brightness)?;
        if left.saturated.max(right.saturated) >= 0.005 {
            let percent = |eye: &EyeExposure| 100.0 * eye.saturated;
            write!(f, "  white {:.0} {:.0} %", percent(left), percent(right))?;
        }
        Ok(())
    }
}

pub type Shared = Arc<Mutex<Option<Exposure>>>;

/// Measures a pair a second, and warns once of trouble that lasts.
#[derive(Debug)]
pub struct ExposureObserver {
    shared: Shared,
    warnings: Warnings,
    white: u8,
    live: bool,
    measured: Option<Instant>,
    /// Measured pairs, and how many of the last ones in a row were bad.
    pairs: u32,
    bad: u32,
    /// Problem of the last measured pair.
    trouble: Option<String>,
    told: bool,
}

impl ExposureObserver {
    /// Creates an observer that updates `shared`. Images are white from this grey level
    /// on; the cameras of a live source can be adjusted.
    pub fn new(shared: Shared, white: u8, live: bool, warnings: Warnings) -> Self {
        let (measured, trouble) = (None, None);
        Self { shared, warnings, white, live, measured, pairs: 0, bad: 0, trouble, told: false }
    }

    fn measure(&mut self, frame: &Matched) {
        let exposure = Exposure::of(&frame.pair.left, &frame.pair.right, self.white);
        *locked(&self.shared) = Some(exposure);
        self.trouble = exposure.trouble(self.live);
        self.warnings.renew(Check::Exposure, self.trouble.clone());
        self.pairs += 1;
        self.bad = if self.trouble.is_some() { self.bad + 1 } else { 0 };
        if self.bad >= PATIENCE {
            self.tell();
        }
    }

    fn tell(&mut self) {
        if let Some(trouble) = self.trouble.take().filter(|_| !self.told) {
            self.told = true;
            self.warnings.warn(Check::Exposure, trouble);
        }
    }
}

impl Observer for ExposureObserver {
    fn observe(&mut self, frame: &Matched) {
        if self.measured.is_none_or(|measured| measured.elapsed() >= STEP) {
            self.measured = Some(Instant::now());
            self.measure(frame);
        }
    }

    /// Judges a run of a few pairs, all of which were bad.
    fn finish(&mut self) {
        if self.bad == self.pairs {
            self.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, StereoPair};
    use stereod_core::pool::Pooled;

    fn matched(left: u8, right: u8) -> Matched {
        let eye = |grey: u8| Image::from_fn(20, 10, move |x, _| if x < 5 { 255 } else { grey });
        let range = DisparityRange { min: 0, count: 64 };
        let map = DisparityMap::new(20, 10, range, Pooled::unpooled(vec![0; 200]));
        Matched::new(StereoPair::of_stills(eye(left), eye(right)), map)
    }

    #[test]
    fn both_eyes_are_measured() {
        let pair = matched(100, 50).pair;
        let Exposure { left, right } = Exposure::of(&pair.left, &pair.right, 250);
        // 4 of 20 columns are white, and so are their neighbours.
        assert_eq!((left.saturated, right.saturated), (0.2, 0.2));
        assert_eq!((left.brightness, right.brightness), (138.75, 101.25));
        assert_eq!(left.noise, 0.0);
    }

    #[test]
    fn trouble_that_lasts_is_told_once() {
        let new = |live| ExposureObserver::new(Shared::default(), 250, live, Warnings::default());
        let mut observer = new(true);
        let dark = matched(100, 20);
        // 139 compared with 79.
        for _ in 1..PATIENCE {
            observer.measure(&dark);
            assert_eq!(observer.warnings.all(), []);
        }
        assert_eq!(locked(&observer.shared).unwrap().right.brightness, 78.75);
        observer.measure(&dark);
        let told = observer.warnings.all().pop().unwrap().text;
        assert!(told.contains("the left view's") && told.contains("1.8 times"), "{told}");
        assert!(told.contains("[camera] exposure_from"), "{told}");
        observer.measure(&dark);
        observer.finish();
        assert_eq!(observer.warnings.all()[0].count, 1);
        let first = |live, pair| {
            let mut observer = new(live);
            observer.measure(pair);
            observer.finish();
            observer.warnings.all().pop().unwrap().text
        };
        let bright = matched(90, 100);
        let told = first(true, &bright);
        assert!(told.contains("20 % of the") && told.contains("exposure_ms"), "{told}");
        // The cameras of a recording are not at hand.
        for told in [first(false, &bright), first(false, &dark)] {
            assert!(!told.contains("[camera]"), "{told}");
        }
        // A short run that ends dark, as a recording that is faded out.
        let grey = || Image::from_fn(20, 10, |_, _| 90);
        let good = Matched { pair: StereoPair::of_stills(grey(), grey()), ..matched(90, 90) };
        let mut observer = new(false);
        [&good, &dark].into_iter().for_each(|pair| observer.measure(pair));
        observer.finish();
        assert_eq!(observer.warnings.all().len(), 0);
    }

    #[test]
    fn what_is_well_exposed_is_no_alarm() {
        let eye = |grey: u8| Image::from_fn(20, 10, move |x, _| if x < 2 { 255 } else { grey });
        let exposure = Exposure::of(&eye(100), &eye(90), 250);
        assert_eq!(
            exposure.line(),
            ("noise 0.0 0.0  brightness 116 106  white 5 5 %".into(), false)
        );
    }
}
