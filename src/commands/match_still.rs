//! `stereod match`: one pair of still pictures.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use super::verify::verify;
use super::{Error, convert, load, print};
use crate::alignment::{Verdict, measure};
use crate::cli::MatchArgs;
use crate::engine;
use crate::frame::StereoPair;
use crate::sink::colour::ColourScale;
use crate::sink::files;
use crate::sink::still::{StillFormat, write_colour_png, write_still};
use crate::source::still::read_still;

/// Runs the command.
///
/// # Errors
/// Where a picture cannot be read or written, or their sizes differ.
pub fn run(args: MatchArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let (settings, params) = (&loaded.settings, &loaded.params);
    // What is wrong with the outputs' names is said before any time is spent.
    StillFormat::of(&args.output).map_err(Error::Usage)?;
    for output in [Some(&args.output), args.colour.as_ref()].into_iter().flatten() {
        let inputs: [&Path; 2] = [&args.left, &args.right];
        files::refuse_input(output, inputs).map_err(Error::Usage)?;
    }

    let (left, right) = (read_still(&args.left)?, read_still(&args.right)?);
    let size = (left.width(), left.height());
    if (right.width(), right.height()) != size {
        return Err(anyhow!(
            "the pictures differ in size: {} is {}x{}, {} is {}x{}; a stereo pair is rectified and of one size",
            args.left.display(),
            size.0,
            size.1,
            args.right.display(),
            right.width(),
            right.height()
        )
        .into());
    }

    if settings.alignment.check {
        let measurement = measure(&left, &right, &convert::alignment_options(params.range));
        let limits = convert::alignment_limits(settings);
        let verdict = limits.judge(measurement.as_ref(), Verdict::Unsure);
        if verdict.is_alarm() {
            tracing::warn!("{}", limits.describe(verdict, measurement.as_ref()));
        }
    }

    let choice = convert::engine_choice(settings.engine.kind);
    let mut options = convert::engine_options(&settings.engine);
    // There is only one pair.
    options.cuda.in_flight = 1;
    let mut engine = engine::create(choice, params, size, &options)?;
    let now = Instant::now();
    engine.submit(StereoPair {
        left,
        right,
        sequence: 0,
        timestamp: Duration::ZERO,
        skew_ns: 0,
        arrived: now,
        truth: None,
    })?;
    let matched = engine.collect()?.context("the engine lost the pair")?;
    tracing::info!(
        "matched {}x{} pixels, {} disparities in {:.1} ms on {}",
        size.0,
        size.1,
        params.range.count,
        now.elapsed().as_secs_f64() * 1e3,
        engine.description()
    );

    if args.verify {
        let pixels = verify(&matched, params)?;
        print(format!("identical with the reference ({pixels} pixels)\n"))?;
    }
    write_still(&args.output, &matched.disparity, params.range)?;
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
