//! `stereod calibration mount`: roll, pitch and height of the left camera, from the ground that it sees.

use std::fmt::Write;
use std::mem::discriminant;
use std::ops::ControlFlow;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use crate::cli::calibration::MountArgs;
use crate::commands::{Error, load, print, progress_bar, signals};
use crate::observe::told::Warnings;
use crate::run::open::first_pairs::choose_range;
use crate::run::prepare::rig::{Cameras, Rig};
use crate::settings::Loaded;
use crate::telemetry::logs;
use stereod_core::engine::{self, Engine};
use stereod_core::frame::StereoPair;
use stereod_core::obstacles::Mount;
use stereod_core::pool::Pool;
use stereod_io::control::Control;
use stereod_io::source;
use stereod_io::source::demo::DemoOptions;
use stereod_io::source::gst::Keep;
use stereod_io::text::rounded;
use stereod_obstacles::ground::{Ground, Limits, NoGround, View, find_ground};

/// The pairs differ by more than this (degrees, degrees, metres) if the camera moves against the ground.
const STEADY: [f64; 3] = [1.0, 1.0, 0.1];

pub(super) fn run(args: &MountArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?.with_confidence()?;
    let settings = &loaded.settings;
    let spec = args.pair.spec_or_recording(&args.topics);
    let spec = spec.ok_or_else(|| Error::usage("give a picture or stream for each view"))?;
    let cameras = Cameras::read(settings, Some(&spec))?;
    cameras.required_by("`calibration mount`")?;
    let control = Control::default();
    signals::stop_on_signals(&control, None, None)?;
    let keep = Keep { colours: settings.engine.wants_colour().then(Pool::new), ..Keep::default() };
    let mut options = settings.source.stream_options(&settings.camera, &control.stop, &keep);
    options.part.frames = args.part.frames();
    let source = source::open(&spec, DemoOptions::default(), &options)?;
    let rig = cameras.for_pictures(source.info().sizes())?;
    let stop = &control.stop;
    let chosen = choose_range(&loaded, source, &rig, stop, &Warnings::default())?;
    let mut chosen = chosen.context("stopped before a pair was matched")?;
    let start = settings.mount.mount();
    let mut seen = Seen::default();
    let mut search = Search::new(&chosen.loaded, &rig, start)?;
    let wanted = u64::from(args.pairs);
    // Spread over the recording, because each pair shows other ground.
    let step = chosen.source.info().pairs.map_or(1, |pairs| (pairs / wanted).max(1));
    let bar = progress_bar(Some(wanted), args.common.quiet, "pairs");
    let (mut number, mut broken) = (0_u64, Ok(()));
    chosen.source.run(stop, &mut |pair, _| {
        let is_wanted = number.is_multiple_of(step);
        number += 1;
        if !is_wanted {
            return ControlFlow::Continue(());
        }
        broken = search.look(pair).map(|found| seen.add(found));
        bar.inc(1);
        match broken.is_ok() && seen.pairs() < wanted as usize {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    bar.finish_and_clear();
    logs::write_above(None);
    broken?;
    let found = seen.summary(&start)?;
    print(if args.json { format!("{}\n", found.as_json()) } else { found.as_text() })
}

/// Matches pairs and looks for the ground in them.
struct Search {
    engine: Box<dyn Engine>,
    start: Mount,
    limits: Limits,
}

impl Search {
    fn new(loaded: &Loaded, rig: &Rig, start: Mount) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let mut options = settings.engine.options();
        // They come one by one.
        options.cuda.in_flight = 1;
        let params = loaded.params.of_still();
        let engine = engine::create(&settings.engine.kind, &params, &rig.pairs, &options)?;
        let limits =
            Limits { least_confidence: settings.obstacles.confidence, ..Limits::default() };
        Ok(Self { engine, start, limits })
    }

    fn look(&mut self, pair: StereoPair) -> anyhow::Result<Result<Ground, NoGround>> {
        self.engine.submit(pair)?;
        let matched = self.engine.collect()?.context("the engine lost the pair")?;
        let view = View::of(&matched).context("the cameras are not known")?;
        Ok(find_ground(&view, &self.start, &self.limits))
    }
}

/// Grounds that the pairs show.
#[derive(Default)]
struct Seen {
    found: Vec<Ground>,
    /// A reason of each kind why pairs show no ground, and their number.
    refused: Vec<(NoGround, usize)>,
}

impl Seen {
    fn add(&mut self, ground: Result<Ground, NoGround>) {
        match ground {
            Ok(ground) => self.found.push(ground),
            Err(reason) => {
                let is_like = |(other, _): &&mut _| discriminant(other) == discriminant(&reason);
                match self.refused.iter_mut().find(is_like) {
                    Some((_, count)) => *count += 1,
                    None => self.refused.push((reason, 1)),
                }
            }
        }
    }

    fn pairs(&self) -> usize {
        self.found.len() + self.refused.iter().map(|(_, count)| count).sum::<usize>()
    }

    /// Returns the medians of all pairs with ground.
    fn summary(mut self, start: &Mount) -> anyhow::Result<Summary> {
        let pairs = self.pairs();
        self.refused.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if self.found.is_empty() {
            let (reason, _) = self.refused.first().context("there is no pair")?;
            return Err(anyhow!("no ground in any of {pairs} pairs: {reason}"));
        }
        let of = |pick: fn(&Ground) -> [f64; 2]| Estimate::of(self.found.iter().map(pick));
        let roll = of(|ground| [ground.mount.attitude_deg[0], ground.deviation.roll_deg]);
        let pitch = of(|ground| [ground.mount.attitude_deg[1], ground.deviation.pitch_deg]);
        let height = of(|ground| [ground.mount.position_m[2], ground.deviation.height_m]);
        let [x, y, _] = start.position_m;
        let mount = Mount {
            position_m: [x, y, height.value],
            attitude_deg: [roll.value, pitch.value, start.attitude_deg[2]],
        };
        Ok(Summary { pairs, seen: self, estimates: [roll, pitch, height], mount })
    }
}

/// Median of a value over the pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    value: f64,
    sd: f64,
    /// Standard deviation of a pair's value, by the median of the deviations from the median.
    spread: f64,
}

impl Estimate {
    /// `values`: that of each pair with its standard deviation.
    fn of(values: impl Iterator<Item = [f64; 2]>) -> Self {
        let (values, own): (Vec<f64>, Vec<f64>) = values.map(|[value, sd]| (value, sd)).unzip();
        let count = values.len() as f64;
        let value = median(values.clone());
        let spread = 1.4826 * median(values.iter().map(|other| (other - value).abs()).collect());
        // A median's variance is pi / 2 times that of a mean (Gaussian). The fits' own errors stay, because pairs of one
        // place and one calibration err alike.
        let of_median = std::f64::consts::FRAC_PI_2.sqrt() * spread / count.sqrt();
        Self { value, sd: of_median.hypot(median(own)), spread }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { 0.5 * (values[half - 1] + values[half]) }
}

struct Summary {
    pairs: usize,
    seen: Seen,
    /// Roll and pitch in degrees, height in metres.
    estimates: [Estimate; 3],
    mount: Mount,
}

impl Summary {
    /// Returns TOML: the result as comments, and the section of the configuration file.
    fn as_text(&self) -> String {
        let found = self.seen.found.len();
        let mut text = format!("# Ground in {found} of {} pairs.\n", self.pairs);
        for (reason, count) in &self.seen.refused {
            let _ = writeln!(text, "# None in {count}: {reason}.");
        }
        let named = [("roll", "degrees", 2), ("pitch", "degrees", 2), ("height", "m", 3)];
        for ((name, unit, digits), of) in named.into_iter().zip(self.estimates) {
            let Estimate { value, sd, spread } = of;
            let value = rounded(value, digits as i32);
            let _ = write!(text, "# {name}: {value:.digits$} ± {sd:.digits$} {unit}");
            let between = if found > 1 {
                format!("; pairs differ by {spread:.digits$} {unit}")
            } else {
                String::new()
            };
            let _ = writeln!(text, "{between}");
        }
        if self.estimates.iter().zip(STEADY).any(|(of, limit)| of.spread > limit) {
            text += "# The camera moves against the ground: take a steady recording on even ground. For a vehicle that \
                     tilts, ground = \"track\" follows.\n";
        }
        text += "# z_m counts from the ground. Yaw, x_m and y_m cannot be seen in it; they are those of the settings.\n";
        let [x, y, z] = self.mount.position_m.map(|part| rounded(part, 3));
        let [roll, pitch, yaw] = self.mount.attitude_deg.map(|angle| rounded(angle, 2));
        let _ = write!(
            text,
            "[mount]\nx_m = {x:.3}\ny_m = {y:.3}\nz_m = {z:.3}\nroll_deg = {roll:.2}\npitch_deg = {pitch:.2}\n\
             yaw_deg = {yaw:.2}\naxes = \"flu\"\n"
        );
        text
    }

    fn as_json(&self) -> Value {
        let [roll, pitch, height] = self.estimates.map(
            |Estimate { value, sd, spread }| json!({ "value": value, "sd": sd, "spread": spread }),
        );
        let ([x, y, z], [roll_deg, pitch_deg, yaw]) =
            (self.mount.position_m, self.mount.attitude_deg);
        let refused: Vec<Value> = self
            .seen
            .refused
            .iter()
            .map(|(reason, pairs)| json!({ "pairs": pairs, "reason": reason.to_string() }))
            .collect();
        json!({
            "pairs": self.pairs,
            "pairs_with_ground": self.seen.found.len(),
            "without_ground": refused,
            "roll_deg": roll,
            "pitch_deg": pitch,
            "height_m": height,
            "mount": {
                "x_m": x, "y_m": y, "z_m": z,
                "roll_deg": roll_deg, "pitch_deg": pitch_deg, "yaw_deg": yaw, "axes": "flu",
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use stereod_core::frame::DisparityRange;
    use stereod_io::source::demo::DemoSource;
    use stereod_obstacles::ground::Deviation;

    #[test]
    fn the_floor_of_the_demo_scene_is_found() {
        let range = DisparityRange { min: 0, count: 64 };
        let options = Settings::default().demo.options(range);
        let (width, height, geometry) = (options.width, options.height, options.geometry());
        let scene = DemoSource::new(options).unwrap();
        // The floor is seen at 0.8 of the largest disparity in the lowest row, by an eye that sways by 4 % of its height
        // up and down.
        let due = 0.5 * height as f64 / geometry.focal_px / 0.8;
        for number in [0, 50, 120, 200] {
            let truth = scene.pair(number).truth.unwrap();
            let values: Vec<i16> =
                truth.disparity.iter().map(|d| (d * 16.0).round() as i16).collect();
            let view = View { width, values: &values, confidence: None, geometry };
            let ground = find_ground(&view, &Mount::default(), &Limits::default()).unwrap();
            let [roll, pitch, _] = ground.mount.attitude_deg;
            assert!(roll.abs() < 0.1 && pitch.abs() < 0.1, "{number}: {ground:?}");
            let height = ground.mount.position_m[2];
            assert!((height / due - 1.0).abs() < 0.04, "{number}: {height} instead of {due}");
        }
    }

    fn ground(roll: f64, pitch: f64, height: f64) -> Result<Ground, NoGround> {
        Ok(Ground {
            mount: Mount { position_m: [0.0, 0.0, height], attitude_deg: [roll, pitch, 0.0] },
            deviation: Deviation { roll_deg: 0.3, pitch_deg: 0.4, height_m: 0.01 },
            points: 1000,
            share: 0.5,
            spread_px: 0.3,
        })
    }

    #[test]
    fn the_median_is_told_as_toml_with_the_uncertainty() {
        let mut seen = Seen::default();
        for found in [
            ground(1.0, 4.0, 1.2),
            ground(1.2, 4.1, 1.22),
            ground(9.0, -20.0, 3.0),
            ground(1.1, 4.2, 1.21),
            ground(0.9, 4.1, 1.21),
            Err(NoGround::Wall { distance_m: 2.0 }),
            Err(NoGround::Wall { distance_m: 2.1 }),
        ] {
            seen.add(found);
        }
        let start = Mount { position_m: [0.5, -0.1, 0.0], attitude_deg: [0.0, 0.0, -0.004] };
        let summary = seen.summary(&start).unwrap();
        let [roll, ..] = summary.estimates;
        // Deviations 0.1, 0.1, 0, 0.2 and 7.9 have the median 0.1.
        assert!((roll.spread - 0.14826).abs() < 1e-9, "{roll:?}");
        let sd = (0.14826_f64.powi(2) / 5.0 * std::f64::consts::FRAC_PI_2 + 0.09).sqrt();
        assert!((roll.sd - sd).abs() < 1e-9, "{roll:?}");
        let text = summary.as_text();
        let read: toml::Table = text.parse().unwrap();
        let mount = read["mount"].as_table().unwrap();
        for (key, due) in [
            ("x_m", 0.5),
            ("y_m", -0.1),
            ("z_m", 1.21),
            ("roll_deg", 1.1),
            ("pitch_deg", 4.1),
            ("yaw_deg", 0.0),
        ] {
            assert_eq!(mount[key].as_float(), Some(due), "{key} in {text}");
        }
        assert!(!text.contains("-0.00"), "{text}");
        assert_eq!(mount["axes"].as_str(), Some("flu"));
        for words in
            ["5 of 7 pairs", "None in 2: the largest plane stands upright, 2.00 m", "± 0.31"]
        {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert_eq!(summary.as_json()["pairs_with_ground"], 5);
    }

    #[test]
    fn without_ground_the_most_frequent_reason_is_told() {
        let mut seen = Seen::default();
        let wall = NoGround::Wall { distance_m: 2.0 };
        [NoGround::FewPixels { known: 1, least: 150 }, wall, wall]
            .into_iter()
            .for_each(|reason| seen.add(Err(reason)));
        let error = seen.summary(&Mount::default()).err().unwrap().to_string();
        assert!(error.contains("any of 3 pairs") && error.contains("wall"), "{error}");
    }
}
