//! Messages in text: figures and knobs for the page, and the requests of its user.

use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Live;
use super::connection::Connection;
use super::encode::ms_since;
use super::viewers::Answer;
use crate::core::warnings::Warning;
use crate::serve::metrics::Reading;
use crate::sink::viewer::{Knob, KnobKind, Tuned};

/// A message of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// A frame was drawn.
    Ack {
        /// Its number.
        seq: u64,
        /// Set if the page was hidden meanwhile, so that the time says nothing of the connection.
        #[serde(default)]
        hidden: bool,
    },
    /// A question for the time of the server's clock.
    Clock {
        /// Time of the client's clock, which the answer repeats.
        at: f64,
    },
    /// New values of settings.
    Tune {
        /// Number of the request, above that of the one before. Its answer repeats it.
        number: u32,
        /// Section, key and value.
        values: Vec<(String, String, String)>,
    },
    /// The values of the configuration.
    Reset {
        /// Number of the request, as for new values.
        #[serde(default)]
        number: u32,
    },
    /// A file with the settings in effect.
    Save,
    /// Hold or go on.
    Pause {
        /// Set to hold.
        on: bool,
    },
    /// Stop or go on with the files of frames.
    Record {
        /// Set to go on.
        on: bool,
    },
    /// The size of frames.
    Quality {
        /// 1, 2 or 4: every such pixel of every such row; `None`: the server chooses.
        scale: Option<usize>,
    },
    /// The end of another viewer.
    Close {
        /// Its number.
        viewer: u32,
    },
}

/// Returns the first message.
pub fn hello(live: &Live, may_change: bool) -> String {
    let source = &live.0.source;
    let mut hello = json!({
        "type": "hello",
        "version": env!("CARGO_PKG_VERSION"),
        "source": source.name,
        "live": source.is_live,
        "may_change": may_change,
    });
    add_colours(live, &mut hello);
    hello.to_string()
}

fn add_colours(live: &Live, message: &mut Value) {
    let (colouring, span) = live.colours();
    message["colours"] = json!(&colouring.map.table()[..]);
    message["colour_span"] = json!(span);
}

/// Returns the knobs, with answers to requests of the client.
pub fn knobs(live: &Live, tuned: &Tuned, answers: &[Answer]) -> String {
    let mut message = json!({
        "type": "knobs",
        "answers": answers,
        "knobs": tuned.knobs.iter().map(knob).collect::<Vec<_>>(),
    });
    add_colours(live, &mut message);
    message.to_string()
}

fn knob(knob: &Knob) -> Value {
    let kind = match knob.kind {
        KnobKind::Number { low, high, step, word, .. } => {
            json!({ "number": { "low": low, "high": high, "step": step, "word": word } })
        }
        KnobKind::Choice(names) => json!({ "choice": names }),
        KnobKind::Switch => json!("switch"),
    };
    json!({
        "section": knob.name.0,
        "key": knob.name.1,
        "group": knob.group,
        "label": knob.label(),
        "hint": knob.hint,
        "value": knob.value,
        "means": knob.means,
        "locked": knob.locked,
        "kind": kind,
    })
}

/// Returns the answer to a question for the time.
pub fn clock(live: &Live, at: f64) -> String {
    let server = ms_since(live.0.start, Instant::now());
    json!({ "type": "clock", "at": at, "server": server }).to_string()
}

/// Figures of the client that gets a status.
pub struct Own {
    /// Matched pairs that it did not get.
    pub skipped: u64,
    /// Its frames have every such pixel of every such row.
    pub scale: usize,
    /// Matched pairs a second.
    pub rate: f64,
}

/// Returns the figures of the run for a client.
pub fn status(live: &Live, reading: &Reading, own: &Own, connection: &Connection) -> String {
    let figures = crate::core::thread::locked(&live.0.figures).clone();
    let line = |line: Option<(String, bool)>| {
        line.map(|(text, alarm)| json!({ "text": text, "alarm": alarm }))
    };
    let outputs = reading.outputs.iter().map(|output| {
        json!({
            "name": output.name,
            "frames": output.frames,
            "dropped": output.dropped,
            "failed": output.failed,
        })
    });
    let banners = figures
        .banners
        .iter()
        .map(|banner| json!({ "text": banner.text, "trouble": banner.trouble }));
    let warnings = figures.warnings.iter().map(|Warning { text, count, last }| {
        json!({ "text": text, "count": count, "ago_s": last.elapsed().as_secs() })
    });
    let newest = live.0.newest.borrow().as_ref().map(|newest| newest.frame.pair.arrived);
    let viewers = live.0.viewers.list(connection.id());
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    let (_, span) = live.colours();
    let files = &live.0.source.files;
    let is_recording = !live.0.source.control.suspend_recording.is_set();
    json!({
        "type": "status",
        "engine": reading.engine,
        "rate": own.rate,
        "pairs": reading.pairs,
        "matched": reading.matched,
        "frames": reading.frames,
        "unpaired": reading.unpaired,
        "dropped": reading.dropped,
        "outputs": outputs.collect::<Vec<_>>(),
        "latency_ms": live.latency().map(|[p50, p95]| json!({ "p50": ms(p50), "p95": ms(p95) })),
        "valid_share": reading.valid_share,
        "alignment": line(figures.alignment),
        "exposure": line(figures.exposure),
        "banners": banners.collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
        "newest": newest.map(|arrived| ms_since(live.0.start, arrived)),
        "paused": live.0.source.control.pause.is_set(),
        "recording": (!files.is_empty()).then(|| json!({ "on": is_recording, "outputs": files })),
        "ended": reading.ended,
        "colour_span": span,
        "client": { "skipped": own.skipped, "scale": own.scale },
        // Others need not know who looks.
        "viewers": connection.rights.may_change.then_some(viewers),
    })
    .to_string()
}

/// Returns the notice that a file was saved, or not.
pub fn note(saved: &Result<String, String>) -> String {
    let (is_good, text) = match saved {
        Ok(text) => (true, text),
        Err(text) => (false, text),
    };
    json!({ "type": "note", "ok": is_good, "text": text }).to_string()
}
