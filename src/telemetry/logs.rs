//! Logs on standard error: their filter and their format.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, OnceLock};

use indicatif::ProgressBar;
use serde::Deserialize;
use tracing::field::Field;
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, layer, time};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use super::stderr::Stderr;
use crate::telemetry::warnings;
use stereod_core::redact::redact;
use stereod_io::text::on_one_line;

/// Verbosity on the command line, relative to the configured filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    #[default]
    Configured,
    /// Errors only.
    Quiet,
    /// More: 1 is debug messages of this program, 2 is also traces, 3 is everything of every library.
    Verbose(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    Text,
    Json,
}

/// Time at the beginning of a log line of [`Format::Text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// Seconds since the start: journald and CI add the time of day themselves.
    Uptime,
    /// Date and time of day, UTC.
    Clock,
}

#[derive(Debug, thiserror::Error)]
#[error("`{filter}` is no log filter: {reason}")]
pub struct FilterError {
    filter: String,
    reason: String,
}

/// Libraries whose own messages would drown ours, unless the filter names them.
const HUSHED: &str = "wgpu_core=warn,wgpu_hal=warn,naga=warn,egui_wgpu=warn,winit=error,\
                      calib_targets_charuco=error,rustdds=off,ros2_client=error";

/// RustDDS calls it an error that a multicast group was left that was never joined.
const MUTED: &str = "rustdds=off";

/// Warnings about images without a board, which are for debugging only because we report these
/// ourselves.
const DEBUGGED: &str = "calib_targets_charuco=warn";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Checks that `filter` is a list of levels and `module=level`.
pub fn check_filter(filter: &str) -> Result<(), FilterError> {
    let wrong = |reason: String| FilterError { filter: filter.into(), reason };
    let lone_word = filter
        .split(',')
        .map(str::trim)
        .filter(|part| !part.contains(['=', '[', ':']))
        .find(|part| !LEVELS.contains(&part.to_ascii_lowercase().as_str()));
    if let Some(word) = lone_word {
        return Err(wrong(format!("`{word}` is none of {}", LEVELS.join(", "))));
    }
    EnvFilter::try_new(filter).map(drop).map_err(|error| wrong(error.to_string()))
}

/// Returns the filter in force: `rust_log` (the variable RUST_LOG) before the command line before
/// the configuration.
fn choose(
    filter: &str,
    verbosity: Verbosity,
    rust_log: Option<&str>,
) -> Result<String, FilterError> {
    if let Some(rust_log) = rust_log.filter(|text| !text.trim().is_empty()) {
        EnvFilter::try_new(rust_log).map_err(|error| FilterError {
            filter: format!("RUST_LOG={rust_log}"),
            reason: error.to_string(),
        })?;
        return Ok(format!("{HUSHED},{rust_log}"));
    }
    Ok(match verbosity {
        Verbosity::Configured => {
            check_filter(filter)?;
            format!("{HUSHED},{filter}")
        }
        Verbosity::Quiet => format!("error,{MUTED}"),
        Verbosity::Verbose(0 | 1) => format!("{HUSHED},info,{DEBUGGED},stereod=debug"),
        Verbosity::Verbose(2) => format!("{HUSHED},info,{DEBUGGED},stereod=trace"),
        Verbosity::Verbose(_) => "trace".into(),
    })
}

/// Starts logging to standard error, with `filter` unless the variable RUST_LOG or the command line
/// override it. A second call changes nothing.
pub fn init(
    filter: &str,
    verbosity: Verbosity,
    format: Format,
    time: Time,
) -> Result<(), FilterError> {
    let rust_log = std::env::var("RUST_LOG").ok();
    let directives = choose(filter, verbosity, rust_log.as_deref())?;
    let (filter, handle) = reload::Layer::new(EnvFilter::builder().parse_lossy(directives));
    if tracing_subscriber::registry()
        .with(lines(format, time).with_filter(filter))
        .with(Warnings.with_filter(EnvFilter::new(format!("{HUSHED},warn"))))
        .try_init()
        .is_ok()
    {
        let _ = REFILTER.set(Box::new(move |filter| {
            // The logs live as long as the process.
            let _ = handle.reload(filter);
        }));
    }
    Ok(())
}

fn lines(format: Format, time: Time) -> Box<dyn Layer<Registry> + Send + Sync> {
    let colours = io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = layer()
        .with_writer(|| AboveBar)
        .with_ansi(colours)
        .with_target(false)
        // They would be printed in a way that panics.
        .log_internal_errors(false);
    match (format, time) {
        (Format::Json, _) => lines.json().with_target(true).flatten_event(true).boxed(),
        (Format::Text, time) => {
            let lines = lines.fmt_fields(debug_fn(write_field).delimited(" "));
            match time {
                Time::Uptime => lines.event_format(Line(time::uptime())).boxed(),
                Time::Clock => lines.event_format(Line(time::SystemTime)).boxed(),
            }
        }
    }
}

/// A line of text: the time by this clock, the level, the name of the rig, and the message.
struct Line<T>(T);

impl<S, N, T> FormatEvent<S, N> for Line<T>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    T: time::FormatTime,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = event.metadata().level();
        let colour = match *level {
            Level::ERROR => "\x1b[31m",
            Level::WARN => "\x1b[33m",
            Level::INFO => "\x1b[32m",
            Level::DEBUG => "\x1b[34m",
            Level::TRACE => "\x1b[35m",
        };
        let [dim, colour, plain] = match line.has_ansi_escapes() {
            true => ["\x1b[2m", colour, "\x1b[0m"],
            false => [""; 3],
        };
        line.write_str(dim)?;
        self.0.format_time(&mut line)?;
        let rig = context.event_scope().and_then(|mut spans| spans.find_map(|it| rig_of(&it)));
        let rig = rig.map(|name| name + ": ").unwrap_or_default();
        write!(line, "{plain} {colour}{level:>5}{plain} {rig}")?;
        context.field_format().format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

/// Returns the name of the rig of a span.
fn rig_of<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Option<String> {
    Some(span.extensions().get::<RigName>()?.0.clone())
}

/// Keeps warnings and errors for viewers, whatever is written to standard error.
struct Warnings;

/// The name of a rig, kept with its span.
struct RigName(String);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Warnings {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        attributes.record(&mut |_: &Field, name: &dyn fmt::Debug| {
            let span = context.span(id).expect("it has just begun");
            span.extensions_mut().replace(RigName(format!("{name:?}")));
        });
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let rig = context.event_span(event).and_then(|span| rig_of(&span));
        let mut text = String::new();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            let before = text.len();
            let _ = write_field(&mut Writer::new(&mut text), field, value);
            if before > 0 && text.len() > before {
                text.insert(before, ' ');
            }
        });
        warnings::note(rig, redact(&text));
    }
}

/// Writes a message or another field of an event on the event's own line: names of files may hold
/// anything, and a line break in one would look like another event.
fn write_field(line: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = format!("{value:?}");
    let value = on_one_line(&value);
    match field.name() {
        "message" => line.write_str(&value),
        // The target names the place in a library, if at all.
        name if name.starts_with("log.") => Ok(()),
        name => write!(line, "{name}={value}"),
    }
}

static REFILTER: OnceLock<Box<dyn Fn(EnvFilter) + Send + Sync>> = OnceLock::new();

/// Changes the configured filter; the variable RUST_LOG and the command line still come first.
pub fn refilter(filter: &str, verbosity: Verbosity) -> Result<(), FilterError> {
    let rust_log = std::env::var("RUST_LOG").ok();
    let directives = choose(filter, verbosity, rust_log.as_deref())?;
    if let Some(put_in_force) = REFILTER.get() {
        put_in_force(EnvFilter::builder().parse_lossy(directives));
    }
    Ok(())
}

/// The progress bar that lines are written above.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Writes lines above `bar` from now on, so that neither disturbs the other; `None` ends that.
pub fn write_above(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = bar;
}

/// Standard error, with the progress bar out of the way while a line is written. Lines never show
/// secrets.
struct AboveBar;

impl Write for AboveBar {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = redact(&String::from_utf8_lossy(line));
        let write = || Stderr.write_all(shown.as_bytes()).map(|()| line.len());
        // A copy, so that the lock is not held while the bar redraws itself.
        let bar = BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        match bar {
            Some(bar) if !bar.is_finished() => bar.suspend(write),
            _ => write(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Stderr.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_of_modules() {
        for good in ["info", "OFF", "warn,stereod::engine=trace", "stereod=debug"] {
            assert!(check_filter(good).is_ok(), "{good}");
        }
        for bad in ["dbug", "", "info,stereod=loud", "info,,warn", "info, stereod=debug"] {
            assert!(check_filter(bad).is_err(), "{bad}");
        }
        assert!(check_filter("dbug").unwrap_err().to_string().contains("off, error, warn, info"));
    }

    #[test]
    fn rust_log_before_flags_before_settings() {
        let chosen = |verbosity, rust_log| choose("warn", verbosity, rust_log).unwrap();
        assert_eq!(chosen(Verbosity::Configured, None), format!("{HUSHED},warn"));
        assert_eq!(chosen(Verbosity::Quiet, None), "error,rustdds=off");
        assert!(chosen(Verbosity::Verbose(1), None).ends_with("stereod=debug"));
        assert!(chosen(Verbosity::Quiet, Some("stereod=trace")).ends_with("stereod=trace"));
        assert_eq!(chosen(Verbosity::Quiet, Some(" ")), "error,rustdds=off");
    }

    #[test]
    fn a_filter_can_unhush_a_library() {
        let filter = EnvFilter::builder().parse_lossy(format!("{HUSHED},info,wgpu_core=debug"));
        assert!(filter.to_string().contains("wgpu_core=debug"));
        assert!(!filter.to_string().contains("wgpu_core=warn"));
    }

    #[test]
    fn warnings_and_errors_are_kept_for_viewers() {
        let logs = tracing_subscriber::registry().with(Warnings);
        tracing::subscriber::with_default(logs, || {
            let _rig = tracing::error_span!("rig", name = %"front").entered();
            tracing::warn!(frame = 3, "rtsp://me:secret@rig: torn\nfor {} s", 5);
        });
        let text = "rtsp://***@rig: torn\\nfor 5 s frame=3";
        let is_told = |rig| warnings::newest(rig).iter().any(|it| it.text == text);
        assert_eq!([Some("front"), Some("rear"), None].map(is_told), [true, false, false]);
    }

    #[test]
    fn a_line_begins_with_the_name_of_its_rig() {
        #[derive(Clone, Default)]
        struct Kept(std::sync::Arc<Mutex<Vec<u8>>>);
        impl Write for Kept {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let kept = Kept::default();
        let writer = kept.clone();
        let lines = layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(debug_fn(write_field).delimited(" "))
            .event_format(Line(()));
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(lines).with(Warnings),
            || {
                tracing::info!("alone");
                let _rig = tracing::error_span!("rig", name = %"front").entered();
                tracing::warn!(frame = 3, "torn");
            },
        );
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "  INFO alone\n  WARN front: torn frame=3\n");
    }

    #[test]
    fn wrong_rust_log_is_named() {
        let error = choose("warn", Verbosity::Configured, Some("stereod=loud")).unwrap_err();
        assert!(error.to_string().contains("RUST_LOG=stereod=loud"), "{error}");
    }
}
