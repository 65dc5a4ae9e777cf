//! The source of a run, and the wait for cameras and servers that are missing at its start.

use std::time::{Duration, Instant};

use crate::cli::RunArgs;
use crate::cli::source::NO_SOURCE;
use crate::run::Error;
use crate::run::faces::service::{self, Watchdog};
use crate::run::open::outputs;
use crate::settings::{self, Loaded, Settings};
use crate::viewer::Span;
use stereod_core::redact::redact;
use stereod_core::settings::Origin;
use stereod_io::backoff::Backoff;
use stereod_io::control::{Control, Switch};
use stereod_io::source::excerpt::Frames;
use stereod_io::source::gst::Keep;
use stereod_io::source::spec::SourceSpec;
use stereod_io::source::{self, Source, SourceInfo, Unavailable};

/// Returns the source of the command line, else that of the settings.
pub fn named(args: &RunArgs, settings: &settings::Source) -> Result<SourceSpec, Error> {
    if let Some(spec) = args.source.spec() {
        return Ok(spec);
    }
    settings.complete().map_err(Error::usage)?;
    settings.spec().ok_or_else(|| Error::explained(NO_SOURCE))
}

/// Opens the source with `open`, once it is available, for up to `longest`; `tell` hears what it waits for. Returns `None`
/// if the run was stopped meanwhile.
pub fn wait_for(
    longest: Duration,
    stop: &Switch,
    open: impl FnMut() -> anyhow::Result<Box<dyn Source>>,
    tell: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Box<dyn Source>>> {
    let source = until_there(longest, stop, open, tell)?;
    match &source {
        Some(source) => tracing::info!("{}", describe(source.info())),
        None => tracing::info!("stopped before the source was there"),
    }
    Ok(source)
}

/// Opens the source, which takes its memory from `keep`; then its size is known. `endless`: a demo
/// without a set length never ends.
pub fn open_source(
    spec: &SourceSpec,
    loaded: &Loaded,
    endless: bool,
    frames: Frames,
    keep: &Keep,
    control: &Control,
) -> anyhow::Result<Box<dyn Source>> {
    let settings = &loaded.settings;
    let mut demo = settings.demo.options(loaded.params.range);
    if endless && *loaded.origin("demo", "frames") == Origin::Default {
        demo.frames = None;
    }
    let mut streams = settings.source.stream_options(&settings.camera, &control.stop, keep);
    streams.part.frames = frames;
    source::open(spec, demo, &streams)
}

pub fn describe(info: &SourceInfo) -> String {
    let mut text = format!("{}: {}x{}", info.description, info.width, info.height);
    if let Some((width, height)) = info.right {
        text += &format!(" and {width}x{height}");
    }
    if let Some(rate) = info.rate {
        text += &format!(", {rate:.4} pairs/s").replace(".0000", "");
    }
    match info.pairs {
        Some(pairs) => text += &format!(", about {pairs} pairs"),
        None if info.live => text += ", live",
        None if info.has_truth => text += ", endless (--frames N ends it after N pairs)",
        None => {}
    }
    text
}

/// Returns the times between which viewers move through the source, or why they cannot. `limit`: pairs behind so
/// many are not played.
pub fn span_of(
    info: &SourceInfo,
    settings: &Settings,
    limit: Option<u64>,
    is_paced: bool,
) -> Result<Span, String> {
    let rate = replayed_rate(info, settings)?;
    let of_pairs = |pairs: u64| Duration::from_secs_f64(pairs as f64 / rate);
    let start = settings.source.marks()[0].unwrap_or_default();
    let limit = limit.map(|pairs| start.saturating_add(of_pairs(pairs)));
    let whole = info.length.or(info.pairs.map(of_pairs));
    let length = whole.into_iter().chain(limit).min().ok_or("the recording's length is unknown")?;
    let period = Duration::from_secs_f64(rate.recip());
    Ok(Span { begin: info.begin, length, period, is_paced })
}

/// Returns the rate of a source that goes back to earlier pairs, with or without an end, or why it does not.
pub fn replayed_rate(info: &SourceInfo, settings: &Settings) -> Result<f64, &'static str> {
    let rate = info.rate.filter(|_| info.seekable && !info.live);
    let rate = rate.ok_or("only recorded videos, images and messages have a timeline")?;
    match outputs::writes_frames(settings) || settings.output.stream().is_some() {
        true => Err("the timeline is off while frames are written or sent: their times would jump"),
        false => Ok(rate),
    }
}

/// Opens a part with `open`, and tries again for up to `longest` if it is not available yet. Each
/// new reason is logged and told once. Returns `None` if `stop` was set meanwhile.
fn until_there<T>(
    longest: Duration,
    stop: &Switch,
    mut open: impl FnMut() -> anyhow::Result<T>,
    mut tell: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Option<T>> {
    let begin = Instant::now();
    let mut backoff = Backoff::default();
    let mut pause = backoff.after(Duration::MAX);
    let mut said = None;
    let mut watchdog = Watchdog::of_manager();
    loop {
        let error = match open() {
            Ok(opened) => {
                if said.is_some() {
                    let waited = begin.elapsed().as_secs_f64();
                    tracing::info!("it is there after {waited:.1} s");
                }
                return Ok(Some(opened));
            }
            _ if stop.is_set() => return Ok(None),
            Err(error) => error,
        };
        let Some(Unavailable { reason }) = error.downcast_ref() else { return Err(error) };
        let left = longest.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        if said.as_ref() != Some(reason) {
            tracing::warn!("{reason}; waiting for it");
            let why = redact(reason);
            service::waits(&why);
            tell(&format!("waiting for the source: {why}"))?;
            said = Some(reason.clone());
        }
        let until = Instant::now() + pause.min(left);
        while Instant::now() < until {
            if stop.is_set() {
                return Ok(None);
            }
            watchdog.tick(|_| false);
            std::thread::sleep(crate::run::TICK);
        }
        pause = backoff.further();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::settings;
    use stereod_io::source::demo::{DemoOptions, DemoSource};

    fn absent() -> anyhow::Error {
        Unavailable { reason: "no camera".to_owned() }.into()
    }

    fn unheard(_: &str) -> anyhow::Result<()> {
        Ok(())
    }

    #[test]
    fn what_is_absent_is_tried_again() {
        let mut attempts = 0;
        let open = || {
            attempts += 1;
            if attempts < 3 { Err(absent()) } else { Ok(attempts) }
        };
        let mut told = Vec::new();
        let opened = until_there(Duration::MAX, &Switch::default(), open, |why| {
            told.push(why.to_owned());
            Ok(())
        });
        assert_eq!(opened.unwrap(), Some(3));
        assert_eq!(told, ["waiting for the source: no camera"]);
    }

    #[test]
    fn an_endless_scene_goes_back_to_a_pair_and_has_no_timeline() {
        let scene = DemoSource::new(DemoOptions::default()).unwrap();
        let info = scene.info();
        let plain = settings(&[]);
        assert_eq!(replayed_rate(info, &plain).ok(), info.rate);
        assert!(span_of(info, &plain, None, true).unwrap_err().contains("length"));
        assert!(span_of(info, &plain, Some(60), true).is_ok());
        let written = settings(&["output.record=a.mkv"]);
        assert!(replayed_rate(info, &written).unwrap_err().contains("written"));
        let live = SourceInfo { live: true, ..info.clone() };
        assert!(replayed_rate(&live, &plain).is_err());
    }

    #[test]
    fn not_longer_than_wanted() {
        let mut attempts = 0;
        let wait = Duration::from_millis(700);
        let begin = Instant::now();
        let open = || -> anyhow::Result<()> {
            attempts += 1;
            Err(absent())
        };
        let opened = until_there(wait, &Switch::default(), open, unheard);
        assert!(opened.unwrap_err().is::<Unavailable>());
        assert!(begin.elapsed() >= wait);
        assert!(attempts <= 3, "{attempts}, not at once, after the first pause, at the end");
    }

    #[test]
    fn what_waiting_does_not_help_against_fails_at_once() {
        let mut attempts = 0;
        let open = || -> anyhow::Result<()> {
            attempts += 1;
            anyhow::bail!("the camera has no such format")
        };
        let opened = until_there(Duration::MAX, &Switch::default(), open, unheard);
        assert!(opened.is_err());
        assert_eq!(attempts, 1);
    }

    #[test]
    fn stopping_ends_the_wait_without_an_error() {
        let stop = Switch::default();
        let open = || -> anyhow::Result<()> {
            stop.set(true);
            Err(absent())
        };
        let opened = until_there(Duration::MAX, &stop, open, unheard);
        assert_eq!(opened.unwrap(), None);
    }
}
