//! `stereod rectify`: rectification of the raw images or videos of two cameras.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};

use super::stills::{Stills, is_still};
use super::{Error, inputs, load, print, progress_bar, signals};
use crate::cli::RectifyArgs;
use crate::run::prepare::rig::Cameras;
use crate::settings::Settings;
use crate::telemetry::logs;
use stereod_calibration::format::{self, Format, Report};
use stereod_core::engine::cpu::CpuRectifier;
use stereod_core::files;
use stereod_core::files::claim::Claim;
use stereod_core::frame::{Eye, Image, StereoPair};
use stereod_core::picture::png::{encode_grey, encode_rgb};
use stereod_core::pool::Pool;
use stereod_core::rectify::Rectifier;
use stereod_io::control::Control;
use stereod_io::sink::video::{RectifiedVideo, RectifiedVideoOptions};
use stereod_io::source;
use stereod_io::source::demo::DemoOptions;
use stereod_io::source::gst::Keep;
use stereod_io::source::spec::SourceSpec;

/// Name of the file with the cameras of the rectified images.
const CAMERAS: &str = "rectified.toml";

pub fn run(args: RectifyArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let settings = &loaded.settings;
    let spec = args.pair.spec_or_recording(&args.topics);
    let spec = spec.ok_or_else(|| Error::usage("give a picture or stream for each view"))?;
    let cameras = Cameras::read(settings, Some(&spec))?;
    if !cameras.have_calibration() {
        return Err(Error::usage(
            "rectifying needs to know the cameras: give --calibration FILE, which `stereod calibrate` \
             or another program has written",
        ));
    }
    let is_recording = matches!(spec, SourceSpec::Recording { .. });
    let (stills, others): (Vec<_>, Vec<_>) = spec.streams().partition(|s| is_still(s));
    if let ([still, ..], [other, ..]) = (&stills[..], &others[..]) {
        return Err(Error::usage(format!(
            "{} is a picture, but {} is none; give two pictures or two videos",
            still.name(),
            other.name()
        )));
    }
    let are_stills = others.is_empty() && !is_recording;
    let extension = if are_stills { "png" } else { "mkv" };
    let outputs = Eye::BOTH.map(|eye| args.output.join(format!("{eye}.{extension}")));
    let inputs = inputs(&loaded, spec.local_files());
    for output in outputs.iter().chain([&args.output.join(CAMERAS)]) {
        inputs.refuse(output).map_err(Error::Usage)?;
    }
    let [left, right] = outputs.each_ref().map(PathBuf::as_path);
    files::refuse_same([("left", left), ("right", right)]).map_err(Error::Usage)?;
    if are_stills {
        let stills = Stills::find(&spec, &settings.source)?;
        write_stills(&cameras, &stills, &args, &outputs)?;
        return tell("1 pair", &args, &outputs);
    }
    videos(&cameras, &args, &spec, settings, &outputs)
}

fn rectifier(cameras: &Cameras<'_>, sizes: [(usize, usize); 2]) -> Result<Arc<Rectifier>, Error> {
    let rectifier = cameras.for_pictures(sizes)?.pairs.rectifier;
    rectifier.ok_or_else(|| {
        Error::usage("by this calibration the pictures come rectified: there is nothing to do")
    })
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).map_err(|error| files::explain(folder, &error))
}

fn write_stills(
    cameras: &Cameras<'_>,
    stills: &Stills,
    args: &RectifyArgs,
    outputs: &[PathBuf; 2],
) -> Result<(), Error> {
    let raw = stills.read()?;
    let rectifier = rectifier(cameras, raw.each_ref().map(|view| (view.width(), view.height())))?;
    let (width, height) = rectifier.size();
    make_folder(&args.output)?;
    for (i, eye) in Eye::BOTH.into_iter().enumerate() {
        let rectified = |picture: &Image| {
            let mut pixels = vec![0; width * height];
            rectifier.map(eye).apply(picture, &mut pixels);
            pixels
        };
        let colours = if args.grey { None } else { Some(stills.colours(eye)?) };
        let is_colour = |colours: &[Image; 3]| {
            colours[0].pixels() != colours[1].pixels() || colours[0].pixels() != colours[2].pixels()
        };
        let file = match colours.filter(is_colour) {
            None => encode_grey(&rectified(&raw[i]), width, height)?,
            Some(colours) => {
                let [red, green, blue] = colours.each_ref().map(rectified);
                let pixels = red.iter().zip(&green).zip(&blue);
                let rgb: Vec<u8> = pixels.flat_map(|((&r, &g), &b)| [r, g, b]).collect();
                encode_rgb(&rgb, width, height)?
            }
        };
        files::write_whole(&outputs[i], &file)?;
    }
    write_cameras(&args.output, &rectifier)
}

fn write_cameras(folder: &Path, rectifier: &Rectifier) -> Result<(), Error> {
    let calibration = format::of_rectified(rectifier.size(), &rectifier.geometry());
    let made_by = Some(concat!("stereod rectify ", env!("CARGO_PKG_VERSION")).to_owned());
    let report = Report { made_by, ..Report::default() };
    let text = format::render(&calibration, &report, Format::Own)?.concat();
    Ok(files::write_whole(&folder.join(CAMERAS), text.as_bytes())?)
}

fn videos(
    cameras: &Cameras<'_>,
    args: &RectifyArgs,
    spec: &SourceSpec,
    settings: &Settings,
    outputs: &[PathBuf; 2],
) -> Result<(), Error> {
    let control = Control::default();
    signals::stop_on_signals(&control, None, None)?;
    let keep = Keep { colours: (!args.grey).then(Pool::new), ..Keep::default() };
    let mut options = settings.source.stream_options(&settings.camera, &control.stop, &keep);
    options.part.frames = args.part.frames();
    let mut source = source::open(spec, DemoOptions::default(), &options)?;
    let info = source.info().clone();
    let rectifier = rectifier(cameras, info.sizes())?;
    let size = rectifier.size();
    let geometry = Some(rectifier.geometry());
    let engine = settings.engine.options();
    make_folder(&args.output)?;
    let _claims = [Claim::on(&outputs[0])?, Claim::on(&outputs[1])?];
    let create = |eye, path: &Path| {
        let (rate, colour, labels) = (info.rate, info.has_colour, info.labels);
        let options = RectifiedVideoOptions { eye, size, rate, geometry, colour, labels };
        RectifiedVideo::create(path, &options)
    };
    let mut eyes = [create(Eye::Left, &outputs[0])?, create(Eye::Right, &outputs[1])?];
    write_cameras(&args.output, &rectifier)?;
    let mut cpu = CpuRectifier::new(rectifier, engine.cpu)?;

    let expected = [info.pairs, args.part.frames().limit].into_iter().flatten().min();
    let bar = progress_bar(expected, args.common.quiet, "pairs");
    let (mut pairs, mut origin, mut failed) = (0, None, None);
    let delivered = source.run(&control.stop, &mut |raw, _| {
        let origin = *origin.get_or_insert(raw.timestamp);
        match write(&mut cpu, &mut eyes, info.has_colour, raw, origin) {
            Ok(()) => pairs += 1,
            Err(error) => failed = Some(error),
        }
        bar.set_position(pairs);
        match failed.is_some() || args.part.frames().limit == Some(pairs) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    logs::write_above(None);
    // Both files are finished in any case; the first error is returned.
    let finished = eyes.each_mut().map(RectifiedVideo::finish);
    failed.map_or(Ok(()), Err)?;
    delivered?;
    finished.into_iter().collect::<anyhow::Result<()>>()?;
    if let (true, false, Some(status)) = (control.stop.is_set(), info.live, signals::exit_status())
    {
        return Err(Error::Stopped(anyhow!("stopped by a signal after {pairs} pairs"), status));
    }
    tell(&format!("{pairs} pair{}", if pairs == 1 { "" } else { "s" }), args, outputs)
}

/// Rectifies a pair and adds each image to its video at its own capture time.
fn write(
    cpu: &mut CpuRectifier,
    [left, right]: &mut [RectifiedVideo; 2],
    colour: bool,
    raw: StereoPair,
    origin: Duration,
) -> anyhow::Result<()> {
    let skew_ns = raw.skew_ns.unwrap_or_default();
    let skew = Duration::from_nanos(skew_ns.unsigned_abs());
    let left_time = raw.timestamp;
    let right_time = match skew_ns < 0 {
        true => left_time.saturating_sub(skew),
        false => left_time.saturating_add(skew),
    };
    let channels = if colour { channels(&raw).into() } else { vec![raw] };
    let pairs = channels.into_iter().map(|raw| cpu.rectify(raw));
    let pairs = pairs.collect::<anyhow::Result<Vec<_>>>()?;
    let of = |eye: fn(&StereoPair) -> &Image| pairs.iter().map(eye).collect::<Vec<_>>();
    left.write(&of(|pair| &pair.left), left_time, origin).context("left view")?;
    right.write(&of(|pair| &pair.right), right_time, origin).context("right view")
}

/// Splits a pair into a pair of the red channels, one of the green and one of the blue ones, because
/// each is rectified like an intensity. Grey images have three equal channels.
fn channels(pair: &StereoPair) -> [StereoPair; 3] {
    let colours = [&pair.left, &pair.right].map(|image| {
        let mut rgb = vec![0; image.width() * image.height() * 3];
        image.write_rgb::<3>(&mut rgb, image.width() * 3);
        rgb
    });
    [0, 1, 2].map(|channel| {
        let [left, right] =
            [(&pair.left, &colours[0]), (&pair.right, &colours[1])].map(|(image, rgb)| {
                let samples = rgb.iter().skip(channel).step_by(3).copied().collect();
                Image::from_vec(image.width(), image.height(), samples)
            });
        StereoPair::of_stills(left, right)
    })
}

fn tell(what: &str, args: &RectifyArgs, outputs: &[PathBuf; 2]) -> Result<(), Error> {
    if args.common.quiet {
        return Ok(());
    }
    let [left, right] = outputs.each_ref().map(|path| path.display());
    let cameras = args.output.join(CAMERAS);
    print(format!("rectified {what}: {left}, {right}; their cameras: {}\n", cameras.display()))
}
