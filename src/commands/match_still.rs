//! `stereod match`: one pair of still images.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::prepare::ranging;
use super::prepare::rig::{Cameras, Rig};
use super::stills::Stills;
use super::verify::{verify, verify_rectified};
use super::{Error, inputs, load, print};
use crate::cli::MatchArgs;
use crate::core::frame::{Eye, Image, StereoGeometry, StereoPair};
use crate::engine;
use crate::matching::History;
use crate::observe::alignment::{Options, Verdict, measure};
use crate::observe::duplicate::find_duplicate;
use crate::observe::range::{Spare, too_few};
use crate::settings::{Loaded, Origin};
use crate::sink::cloud::{self, CloudFormat};
use crate::sink::colour::{ColourRange, ColourScale};
use crate::sink::encoding::Encoding;
use crate::sink::files;
use crate::sink::still::{
    Still, StillFormat, check_png_name, write_colour_png, write_depth, write_grey_png,
};

/// Runs the command.
pub fn run(args: MatchArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let settings = &loaded.settings;
    // Wrong names of outputs are reported before any time is spent.
    let format = match settings.output.depth {
        true => StillFormat::of_depth(&args.output).map_err(Error::Usage)?,
        false => StillFormat::of(&args.output).map_err(Error::Usage)?,
    };
    for (flag, path) in [("--colour", &args.colour), ("--confidence", &args.confidence)] {
        let named = path.as_deref().map_or(Ok(()), check_png_name);
        named.context(flag).map_err(Error::Usage)?;
    }
    let outputs = [
        ("-o", Some(&args.output)),
        ("--colour", args.colour.as_ref()),
        ("--confidence", args.confidence.as_ref()),
        ("--cloud", args.cloud.as_ref()),
        ("--aligned", args.aligned.as_ref()),
    ];
    let outputs = outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?.as_path())));
    files::refuse_same(outputs.clone()).map_err(Error::Usage)?;
    let spec = args.pair.spec().ok_or_else(|| Error::usage("give a picture for each view"))?;
    let stills = Stills::find(&spec, &settings.source)?;
    let inputs = inputs(&loaded, spec.local_files());
    for (_, output) in outputs {
        inputs.refuse(output).map_err(Error::Usage)?;
        files::check_writable(output)?;
    }

    if let Some(cloud) = &args.cloud {
        CloudFormat::of(cloud).map_err(Error::Usage)?;
    }
    let cameras = Cameras::read(settings, Some(&spec))?;
    if args.cloud.is_some() {
        cameras.required_by("--cloud")?;
    }
    if let Some(aligned) = &args.aligned {
        StillFormat::of_depth(aligned).context("--aligned").map_err(Error::Usage)?;
        cameras.required_by_aligned()?;
    }

    let [left, right] = stills.read()?;
    let size = (left.width(), left.height());

    let rig = cameras.for_pictures(size)?;
    let size = rig.pairs.size;
    if let Some(duplicate) = find_duplicate(&left, &right) {
        tracing::warn!("{duplicate}");
    }
    let given = !loaded.awaits_choice();
    let raw = pair(left, right);
    let small = settings.engine.options().cpu;
    let (loaded, _) = ranging::with_choice(&loaded, [&raw], &rig, Spare::None)?;
    let shows_confidence = args.confidence.is_some() || format == StillFormat::Exr;
    let loaded = if shows_confidence { loaded.with_confidence()? } else { loaded };
    let (settings, params) = (&loaded.settings, &loaded.params.of_still());

    let choice = settings.engine.kind;
    let mut options = settings.engine.options();
    // There is only one pair.
    options.cuda.in_flight = 1;
    let mut engine = engine::create(choice, params, &rig.pairs, &options)?;
    let now = Instant::now();
    engine.submit(raw)?;
    let matched = engine.collect()?.context("the engine lost the pair")?;
    tracing::info!(
        "matched {}x{} pixels, {} disparities in {:.1} ms on {}",
        size.0,
        size.1,
        params.range.count,
        now.elapsed().as_secs_f64() * 1e3,
        engine.description()
    );
    let layout = engine.layout().cloned();
    // The rest of the work needs its memory.
    drop(engine);

    if settings.alignment.check {
        let (left, right) = (&matched.pair.left, &matched.pair.right);
        let measurement =
            measure(left, right, &Options { range: Some(params.range), ..Options::default() });
        let limits = settings.alignment.limits(rig.calibrated, rig.farthest_px());
        let verdict = limits.assess(measurement.as_ref(), Verdict::Unsure);
        if verdict.is_alarm() {
            tracing::warn!("{}", limits.describe(verdict, measurement.as_ref()));
        }
    }

    if given {
        let (pair, small) = (&matched.pair, ranging::small_matcher(small));
        let too_few = too_few([&pair.left, &pair.right], params.range, Spare::None, &small)?;
        if let Some(too_few) = too_few {
            tracing::warn!("{too_few}");
        }
    }

    if args.verify {
        if let Some(rectifier) = &rig.pairs.rectifier {
            let [left, right] = stills.read()?;
            let raw = pair(left, right);
            verify_rectified(&raw, &matched, rectifier)?;
        }
        let pixels = verify(&matched, params, layout.as_ref(), &mut History::default())?;
        print(format!("identical with the reference ({pixels} pixels)\n"))?;
    }
    let geometry = rig.pairs.geometry.as_ref();
    let still = Still {
        map: &matched.disparity,
        range: params.range,
        geometry,
        depth: geometry.filter(|_| settings.output.depth).map(|_| settings.output.depth_unit()),
        confidence: matched.confidence.as_ref(),
    };
    if still.depth.is_none() && format == StillFormat::Png {
        Encoding::for_range(params.range).report("PNG files");
    }
    still.write(&args.output)?;
    if let (Some(path), Some(geometry)) = (&args.cloud, rig.pairs.geometry) {
        let colours = colours_of(&stills, &rig)?;
        let points = cloud::write_cloud(
            path,
            &matched.disparity,
            matched.confidence.as_ref(),
            &geometry,
            settings.output.clouds(),
            |x, y| [0, 1, 2].map(|channel| colours[channel].row(y)[x]),
        )?;
        tracing::info!("{}: {points} points", path.display());
    }
    if let (Some(path), Some(aligner)) = (&args.aligned, &rig.aligner) {
        let mut depth = Vec::new();
        aligner.align(&matched.disparity, &mut depth);
        write_depth(path, aligner.size(), &depth, settings.output.depth_unit())?;
    }
    if let (Some(path), Some(confidence)) = (&args.confidence, &matched.confidence) {
        write_grey_png(path, confidence)?;
    }
    if let Some(path) = &args.colour {
        let mut scale = ColourScale::new(colour_range(&loaded, geometry), params.range);
        scale.update(&matched.disparity, Duration::ZERO);
        let (low, high) = scale.limits();
        tracing::info!("{}: the colours span {low:.1} to {high:.1} px", path.display());
        write_colour_png(path, &matched.disparity, settings.colour.map, &scale)?;
    }
    Ok(())
}

/// Returns the only pair.
fn pair(left: Image, right: Image) -> StereoPair {
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
