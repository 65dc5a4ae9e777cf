//! `stereod match`: one pair of still images.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use super::stills::Stills;
use super::verify::{refuse_verification, verify, verify_rectified};
use super::{Error, heed, inputs, load, print};
use crate::cli::MatchArgs;
use crate::observe::Observer;
use crate::observe::alignment::observer::{self as alignment, AlignmentObserver};
use crate::observe::alignment::{Options, Summary, Verdict};
use crate::observe::duplicate::find_duplicate;
use crate::observe::exposure::{self, ExposureObserver};
use crate::observe::known::KnownObserver;
use crate::observe::map_metrics::Shares;
use crate::observe::range::{Spare, TooFew, too_few};
use crate::observe::told::{Check, Told, Warnings};
use crate::run::open::outputs::{check_flags, refuse_verdicts};
use crate::run::prepare::rig::{Cameras, Rig};
use crate::run::prepare::{ranging, reversed};
use crate::settings::{Loaded, Settings};
use stereod_core::engine::{Engine, PairSpec};
use stereod_core::frame::{Eye, INVALID, Image, Matched, StereoGeometry, StereoPair};
use stereod_core::matching::tiles::TileLayout;
use stereod_core::matching::{History, Params, verdict};
use stereod_core::picture::cloud::{self, CloudFormat};
use stereod_core::picture::encoding::Encoding;
use stereod_core::picture::png::encode_rgb;
use stereod_core::settings::Origin;
use stereod_core::thread::locked;
use stereod_core::{engine, files};
use stereod_io::sink::colour::{ColourRange, ColourScale};
use stereod_io::sink::still::{
    About, Still, StillFormat, check_png_name, write_colour_png, write_depth, write_grey_png,
};
use stereod_io::source::spec::SourceSpec;

pub fn run(args: MatchArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let settings = &loaded.settings;
    // Wrong names of outputs are reported before any time is spent.
    let format = check_names(&args, settings.output.depth)?;
    check_outputs(&args, &loaded)?;
    let spec = args.pair.spec().ok_or_else(|| Error::usage("give a picture for each view"))?;
    let stills = Stills::find(&spec, &settings.source)?;
    let inputs = inputs(&loaded, spec.local_files());
    for (_, output) in outputs(&args) {
        inputs.refuse(output).map_err(Error::Usage)?;
        files::check_writable(output)?;
    }
    let explained = |error| {
        let raw = || stills.read().map(|[left, right]| pair(left, right));
        reversed::explained(error, &settings.calibration.file, raw)
    };
    let cameras = read_cameras(&args, settings, &spec).map_err(explained)?;

    let [left, right] = stills.read_for(&settings.engine)?;
    let sizes = [&left, &right].map(|view| (view.width(), view.height()));
    let rig = cameras.for_pictures(sizes).map_err(explained)?;
    let warnings = Warnings::default();
    if let Some(duplicate) = find_duplicate(&left, &right) {
        warnings.warn(Check::SameImage, duplicate.warning());
    }
    let is_chosen = loaded.awaits_choice();
    let raw = pair(left, right);
    let (loaded, _) = ranging::with_choice(&loaded, [&raw], &rig, Spare::None)?;
    let shows_confidence = args.confidence.is_some() || format == StillFormat::Exr;
    let loaded = if shows_confidence { loaded.with_confidence()? } else { loaded };
    let params = loaded.params.of_still();
    let Done { matched, layout, engine, engine_ms } = match_pair(raw, &loaded, &params, &rig)?;
    let outcome = Outcome { stills: &stills, loaded: &loaded, params: &params, rig: &rig, matched };
    let alignment = outcome.check_views(&warnings);
    let too_few = if is_chosen { None } else { outcome.check_range(&warnings)? };
    let verified = args.verify.then(|| outcome.verify(layout.as_ref())).transpose()?;
    outcome.write(&args, format)?;
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        source: stills.name(),
        width: rig.pairs.size.0,
        height: rig.pairs.size.1,
        min_disparity: params.range.min,
        disparities: params.range.count,
        known: outcome.known(),
        verdicts: outcome.matched.verdicts.as_ref().map(|verdicts| Shares::of(verdicts.pixels())),
        engine,
        engine_ms,
        verified,
        too_few_disparities: too_few,
        warnings: warnings.all(),
        alignment,
        settings: &loaded.values()["matching"],
    };
    report.print(&args)?;
    heed(args.strict.strict, &warnings)
}

/// The report on a matched pair. Keys that the statistics of a run have, too, mean the same.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    source: String,
    width: usize,
    height: usize,
    min_disparity: i32,
    disparities: usize,
    /// Percentage of the pixels with a disparity.
    known: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Shares>,
    engine: String,
    engine_ms: f64,
    /// Number of pixels that equal the reference's, with `--verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_few_disparities: Option<TooFew>,
    warnings: Vec<Told>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<Summary>,
    settings: &'a toml::Value,
}

impl Report<'_> {
    fn print(&self, args: &MatchArgs) -> Result<(), Error> {
        if args.json {
            let json = serde_json::to_string_pretty(self).expect("plain values");
            return print(format!("{json}\n"));
        }
        if args.common.quiet && self.verified.is_none() {
            return Ok(());
        }
        let verified = self.verified.map_or_else(String::new, |pixels| {
            format!("identical with the reference ({pixels} pixels)\n")
        });
        let checked = self.verdicts.map(|shares| format!("{shares}\n")).unwrap_or_default();
        print(format!("pixels with a disparity: {:.1} %\n{checked}{verified}", self.known))
    }
}

fn outputs(args: &MatchArgs) -> impl Iterator<Item = (&'static str, &Path)> + Clone {
    let outputs = [
        ("-o", Some(&args.output)),
        ("--colour", args.colour.as_ref()),
        ("--confidence", args.confidence.as_ref()),
        ("--verdicts", args.verdicts.as_ref()),
        ("--cloud", args.cloud.as_ref()),
        ("--aligned", args.aligned.as_ref()),
    ];
    outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?.as_path())))
}

fn check_names(args: &MatchArgs, depth: bool) -> Result<StillFormat, Error> {
    let format = match depth {
        true => StillFormat::of_depth(&args.output).map_err(Error::Usage)?,
        false => StillFormat::of(&args.output).map_err(Error::Usage)?,
    };
    let pictures = ["--colour", "--confidence", "--verdicts"];
    for (flag, path) in outputs(args).filter(|(flag, _)| pictures.contains(flag)) {
        check_png_name(path).context(flag).map_err(Error::Usage)?;
    }
    files::refuse_same(outputs(args)).map_err(Error::Usage)?;
    Ok(format)
}

/// Fails if flags are about outputs or an engine that are missing.
fn check_outputs(args: &MatchArgs, loaded: &Loaded) -> Result<(), Error> {
    let shows_depth = args.colour.is_some() || args.cloud.is_some();
    let about = |key| ("output", key, shows_depth, "--colour or --cloud");
    check_flags(loaded, &[about("near_m"), about("far_m")])?;
    refuse_verdicts(args.verdicts.is_some(), &loaded.settings)?;
    refuse_verification(args.verify, &loaded.settings)
}

fn read_cameras<'a>(
    args: &MatchArgs,
    settings: &'a Settings,
    spec: &SourceSpec,
) -> Result<Cameras<'a>, Error> {
    if let Some(cloud) = &args.cloud {
        CloudFormat::of(cloud).map_err(Error::Usage)?;
    }
    let cameras = Cameras::read(settings, Some(spec))?;
    if args.cloud.is_some() {
        cameras.required_by("--cloud")?;
    }
    if let Some(aligned) = &args.aligned {
        StillFormat::of_depth(aligned).context("--aligned").map_err(Error::Usage)?;
        cameras.required_by_aligned()?;
    }
    Ok(cameras)
}

fn make(loaded: &Loaded, params: &Params, pairs: &PairSpec) -> anyhow::Result<Box<dyn Engine>> {
    let mut options = loaded.settings.engine.options();
    // There is only one pair.
    options.cuda.in_flight = 1;
    engine::create(&loaded.settings.engine.kind, params, pairs, &options)
}

/// A matched pair, and the engine that matched it.
pub(super) struct Done {
    pub(super) matched: Matched,
    layout: Option<TileLayout>,
    engine: String,
    engine_ms: f64,
}

/// Matches the pair with an engine of its own, whose memory is free afterwards.
pub(super) fn match_pair(
    raw: StereoPair,
    loaded: &Loaded,
    params: &Params,
    rig: &Rig,
) -> anyhow::Result<Done> {
    let mut engine = make(loaded, params, &rig.pairs)?;
    let now = Instant::now();
    engine.submit(raw)?;
    let matched = engine.collect()?.context("the engine lost the pair")?;
    let engine_ms = (now.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    let (width, height) = rig.pairs.size;
    let (layout, engine) = (engine.layout().cloned(), engine.description());
    tracing::info!(
        "matched {width}x{height} pixels, {} disparities in {engine_ms:.1} ms on {engine}",
        params.range.count,
    );
    Ok(Done { matched, layout, engine, engine_ms })
}

/// The matched pair, and the inputs that its checks and files need.
struct Outcome<'a> {
    stills: &'a Stills,
    loaded: &'a Loaded,
    params: &'a Params,
    rig: &'a Rig,
    matched: Matched,
}

impl Outcome<'_> {
    /// Returns the percentage of the pixels that have a disparity.
    fn known(&self) -> f64 {
        let values = self.matched.disparity.values();
        let known = values.iter().filter(|&&value| value != INVALID).count();
        (1e4 * known as f64 / values.len().max(1) as f64).round() / 100.0
    }

    /// Shows the pair to the checks of a run, which warn if the views do not fit together. Returns how the rows agree,
    /// unless that is not checked.
    fn check_views(&self, warnings: &Warnings) -> Option<Summary> {
        let settings = &self.loaded.settings.alignment;
        let show = |mut check: Box<dyn Observer>| {
            check.observe(&self.matched);
            check.finish();
        };
        let (white, shown) = (self.params.white, exposure::Shared::default());
        show(Box::new(ExposureObserver::new(shown, white, false, warnings.clone())));
        if !settings.check {
            return None;
        }
        let rig = self.rig;
        let limits = settings.limits(rig.calibrated, rig.farthest_px(), rig.rows_if_exchanged());
        let (options, state) = (Options::default(), alignment::Shared::default());
        let told = warnings.clone();
        show(Box::new(AlignmentObserver::new(options, limits, state.clone(), None, told)));
        // If the rows certainly agree, the views fit together, and what lacks disparities is bare.
        if locked(&state).verdict != Verdict::Good {
            show(Box::new(KnownObserver::new(warnings.clone())));
        }
        let summary = locked(&state).summary();
        Some(summary)
    }

    /// Warns if the pair holds disparities beyond the range.
    fn check_range(&self, warnings: &Warnings) -> anyhow::Result<Option<TooFew>> {
        let small = ranging::small_matcher(self.loaded.settings.engine.options().cpu);
        let StereoPair { left, right, .. } = &self.matched.pair;
        let too_few = too_few([left, right], self.params.range, Spare::None, &small)?;
        too_few.iter().for_each(|too_few| warnings.warn(Check::Range, too_few.to_string()));
        Ok(too_few)
    }

    /// Compares the map with the reference, and returns the number of its pixels.
    fn verify(&self, layout: Option<&TileLayout>) -> anyhow::Result<usize> {
        if let Some(rectifier) = &self.rig.pairs.rectifier {
            let [left, right] = self.stills.read()?;
            verify_rectified(&pair(left, right), &self.matched, rectifier)?;
        }
        let make = |params: &Params, pairs: &PairSpec| make(self.loaded, params, pairs);
        let options = self.loaded.settings.engine.options();
        verify(&self.matched, self.params, layout, &mut History::default(), (&make, &options))
    }

    fn write(&self, args: &MatchArgs, format: StillFormat) -> Result<(), Error> {
        let (settings, range) = (&self.loaded.settings, self.params.range);
        let Matched { disparity: map, confidence, .. } = &self.matched;
        let geometry = self.rig.pairs.geometry.as_ref();
        let still = Still {
            map,
            range,
            geometry,
            depth: geometry.filter(|_| settings.output.depth).map(|_| settings.output.depth_unit()),
            confidence: confidence.as_ref(),
            about: About { source: &self.stills.name(), ..About::default() },
        };
        if still.depth.is_none() && format == StillFormat::Png {
            Encoding::for_range(range).report("PNG files");
        }
        still.write(&args.output)?;
        if let (Some(path), Some(geometry)) = (&args.cloud, geometry) {
            let colours = colours_of(self.stills, self.rig)?;
            let colour = |x, y| [0, 1, 2].map(|channel: usize| colours[channel].row(y)[x]);
            let clouds = settings.output.clouds();
            let points =
                cloud::write_cloud(path, map, confidence.as_ref(), geometry, clouds, colour)?;
            tracing::info!("{}: {points} points", path.display());
        }
        if let (Some(path), Some(aligner)) = (&args.aligned, &self.rig.aligner) {
            let mut depth = Vec::new();
            aligner.align(map, &mut depth);
            write_depth(path, aligner.size(), &depth, settings.output.depth_unit())?;
        }
        if let (Some(path), Some(confidence)) = (&args.confidence, confidence) {
            write_grey_png(path, confidence)?;
        }
        if let (Some(path), Some(verdicts)) = (&args.verdicts, &self.matched.verdicts) {
            let rgb = verdict::colours(verdicts.pixels());
            files::write_whole(path, &encode_rgb(&rgb, verdicts.width(), verdicts.height())?)?;
        }
        if let Some(path) = &args.colour {
            let mut scale = ColourScale::new(colour_range(self.loaded, geometry), range);
            scale.update(map, Duration::ZERO);
            let (low, high) = scale.limits();
            tracing::info!("{}: the colours span {low:.1} to {high:.1} px", path.display());
            write_colour_png(path, map, settings.colour.map, &scale)?;
        }
        Ok(())
    }
}

pub(super) fn pair(left: Image, right: Image) -> StereoPair {
    StereoPair::of_stills(left, right)
}

/// Returns the disparities that the colours span: those found, unless the settings say otherwise,
/// because there is no other image to compare the colours with.
fn colour_range(loaded: &Loaded, geometry: Option<&StereoGeometry>) -> ColourRange {
    let said = |key| *loaded.origin("colour", key) != Origin::Default;
    let is_limited = loaded.settings.output.has_depth_limits();
    match is_limited || ["range", "min", "max"].into_iter().any(said) {
        true => loaded.settings.colour_range(loaded.params.range, geometry),
        false => ColourRange::ADAPTIVE,
    }
}

/// Returns red, green and blue of the matched left image.
fn colours_of(stills: &Stills, rig: &Rig) -> anyhow::Result<[Image; 3]> {
    let raw = stills.colours(Eye::Left)?;
    Ok(match &rig.pairs.rectifier {
        None => raw,
        Some(rectifier) => {
            let (map, (width, height)) = (rectifier.map(Eye::Left), rectifier.size());
            raw.map(|channel| {
                let mut pixels = vec![0; width * height];
                map.apply(&channel, &mut pixels);
                Image::from_vec(width, height, pixels)
            })
        }
    })
}
