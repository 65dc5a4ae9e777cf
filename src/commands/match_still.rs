//! `stereod match`: one pair of still pictures.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use super::rig::{Cameras, Rig};
use super::verify::{verify, verify_rectified};
use super::{Error, convert, load, print};
use crate::alignment::{Verdict, measure};
use crate::cli::MatchArgs;
use crate::engine;
use crate::frame::{Eye, Image, StereoPair};
use crate::sink::cloud;
use crate::sink::colour::ColourScale;
use crate::sink::files;
use crate::sink::still::{StillFormat, write_colour_png, write_depth, write_still};
use crate::source::still::{read_colours, read_still};

/// Runs the command.
///
/// # Errors
/// Where a picture cannot be read or written, or their sizes differ.
pub fn run(args: MatchArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let (settings, params) = (&loaded.settings, &loaded.params);
    // What is wrong with the outputs' names is said before any time is spent.
    match settings.output.depth {
        true => StillFormat::of_depth(&args.output).map_err(Error::Usage)?,
        false => StillFormat::of(&args.output).map_err(Error::Usage)?,
    };
    let outputs = [
        ("-o", Some(&args.output)),
        ("--colour", args.colour.as_ref()),
        ("--cloud", args.cloud.as_ref()),
    ];
    let outputs = outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?.as_path())));
    files::refuse_same(outputs).map_err(Error::Usage)?;
    let others = [args.colour.as_ref(), args.cloud.as_ref()];
    for output in others.into_iter().flatten().chain([&args.output]) {
        let inputs: [&Path; 2] = [&args.left, &args.right];
        files::refuse_input(output, inputs).map_err(Error::Usage)?;
    }

    if let Some(cloud) = &args.cloud {
        cloud::check_name(cloud).map_err(Error::Usage)?;
    }
    let cameras = Cameras::read(settings)?;
    if args.cloud.is_some() && !cameras.are_known() {
        return Err(Error::usage(
            "--cloud needs to know the cameras: give --calibration FILE, or --focal and --baseline \
             for pictures that come rectified",
        ));
    }

    let (left, right) = (read_still(&args.left)?, read_still(&args.right)?);
    let size = (left.width(), left.height());
    if (right.width(), right.height()) != size {
        return Err(anyhow!(
            "the pictures differ in size: {} is {}x{}, {} is {}x{}; a stereo pair is of one size",
            args.left.display(),
            size.0,
            size.1,
            args.right.display(),
            right.width(),
            right.height()
        )
        .into());
    }

    let rig = cameras.for_pictures(size)?;
    let size = rig.size;

    let choice = convert::engine_choice(settings.engine.kind);
    let mut options = convert::engine_options(&settings.engine);
    // There is only one pair.
    options.cuda.in_flight = 1;
    let mut engine = engine::create(choice, params, size, rig.rectifier.as_ref(), &options)?;
    let now = Instant::now();
    engine.submit(pair(left, right))?;
    let matched = engine.collect()?.context("the engine lost the pair")?;
    tracing::info!(
        "matched {}x{} pixels, {} disparities in {:.1} ms on {}",
        size.0,
        size.1,
        params.range.count,
        now.elapsed().as_secs_f64() * 1e3,
        engine.description()
    );

    if settings.alignment.check {
        let (left, right) = (&matched.pair.left, &matched.pair.right);
        let measurement = measure(left, right, &convert::alignment_options(params.range));
        let limits = convert::alignment_limits(settings, rig.rectifier.is_some());
        let verdict = limits.judge(measurement.as_ref(), Verdict::Unsure);
        if verdict.is_alarm() {
            tracing::warn!("{}", limits.describe(verdict, measurement.as_ref()));
        }
    }

    if args.verify {
        if let Some(rectifier) = &rig.rectifier {
            let raw = pair(read_still(&args.left)?, read_still(&args.right)?);
            verify_rectified(&raw, &matched, rectifier)?;
        }
        let pixels = verify(&matched, params)?;
        print(format!("identical with the reference ({pixels} pixels)\n"))?;
    }
    match rig.geometry {
        Some(geometry) if settings.output.depth => {
            write_depth(&args.output, &matched.disparity, params.range, &geometry)?;
        }
        _ => write_still(&args.output, &matched.disparity, params.range)?,
    }
    if let (Some(path), Some(geometry)) = (&args.cloud, rig.geometry) {
        let colours = colours_of(&args.left, &rig)?;
        let points = cloud::write_cloud(path, &matched.disparity, &geometry, |pixel| {
            [0, 1, 2].map(|channel| colours[channel].pixels()[pixel])
        })?;
        tracing::info!("{}: {points} points", path.display());
    }
    if let Some(path) = &args.colour {
        let mut scale =
            ColourScale::new(convert::colour_range(&settings.colour, params.range), params.range);
        scale.update(&matched.disparity, Duration::ZERO);
        write_colour_png(
            path,
            &matched.disparity,
            convert::colour_map(settings.colour.map),
            &scale,
        )?;
    }
    Ok(())
}

/// The only pair there is.
fn pair(left: Image, right: Image) -> StereoPair {
    StereoPair {
        left,
        right,
        sequence: 0,
        timestamp: Duration::ZERO,
        skew_ns: 0,
        arrived: Instant::now(),
        truth: None,
    }
}

/// Red, green and blue of the picture as it was matched.
fn colours_of(path: &Path, rig: &Rig) -> anyhow::Result<[Image; 3]> {
    let raw = read_colours(path)?;
    Ok(match &rig.rectifier {
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
