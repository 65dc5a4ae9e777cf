//! Messages in text: status and knobs for the page, and the requests of its user.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Live;
use super::connection::Connection;
use super::viewers::Answer;
use crate::status::RunStatus;
use crate::viewer::{Knob, KnobKind, Tuned};
use stereod_core::matching::confidence::deviation_px;
use stereod_core::matching::verdict::Verdict;
use stereod_core::thread::locked;
use stereod_io::playback::Playing;
use stereod_io::sink::colour::ColourMap;
use stereod_io::text::rounded;
use stereod_obstacles::zones::Edit;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// A frame was drawn.
    Ack {
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
    /// A zone to add or to remove.
    Zone {
        number: u32,
        edit: Edit,
    },
    /// The values of the configuration.
    Reset {
        #[serde(default)]
        number: u32,
    },
    /// A file with the settings in effect.
    Save,
    Pause {
        on: bool,
    },
    /// Another place of the recording.
    Move {
        to: Place,
    },
    /// Begin or end of a part of the recording, set at a time in seconds or removed there.
    Mark {
        end: bool,
        at: f64,
    },
    /// How the recording is played; what is left out stays.
    Play {
        repeats: Option<bool>,
        speed: Option<f64>,
    },
    /// Stop or go on with the files of frames.
    Record {
        on: bool,
        /// Name of the files; empty: that of the settings.
        #[serde(default)]
        name: String,
    },
    /// The size of frames.
    Quality {
        /// 1, 2 or 4: every such pixel of every such row; `None`: the server chooses.
        scale: Option<usize>,
        /// Set if the right image is to come, too.
        #[serde(default)]
        right: bool,
    },
    /// The end of another viewer.
    Close {
        viewer: u32,
    },
}

/// A place of a recording.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// Seconds from its first image.
    Time(f64),
    Step(Step),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Next,
    Before,
}

pub fn hello(live: &Live, may_change: bool) -> String {
    let source = &live.0.source;
    let mut hello = json!({
        "type": "hello",
        "version": env!("CARGO_PKG_VERSION"),
        "source": source.name,
        "rigs": *source.rigs,
        "rig": source.rig,
        "live": source.is_live,
        "may_change": may_change,
        "timeline": source.span.as_ref().map_or_else(
            |why| json!(why),
            |span| json!({
                "begin": span.begin.as_secs_f64(),
                "length": span.length.as_secs_f64(),
                "paced": span.is_paced,
            }),
        ),
        "no_confidence": ColourMap::Grey.unknown(),
        "deviations_px": (0..=255).map(deviation_px).collect::<Vec<_>>(),
        "verdicts": std::iter::zip(Verdict::NAMES, Verdict::COLOURS).collect::<Vec<_>>(),
    });
    add_colours(live, &mut hello);
    hello.to_string()
}

/// Adds the colours from far to near, and the colour of unknown pixels behind them.
fn add_colours(live: &Live, message: &mut Value) {
    let map = live.0.source.colouring.get().map;
    let colours: Vec<_> = map.table().iter().copied().chain([map.unknown()]).collect();
    message["colours"] = json!(colours);
}

pub fn knobs(live: &Live, tuned: &Tuned, answers: &[Answer]) -> String {
    let mut message = json!({
        "type": "knobs",
        "answers": answers,
        "knobs": tuned.knobs.iter().map(knob).collect::<Vec<_>>(),
        "zones": live.0.source.zones.as_ref().map(|zones| {
            zones.get().iter().map(|zone| zone.name.clone()).collect::<Vec<_>>()
        }),
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
        "flag": knob.flag,
        "label": knob.label,
        "below": knob.key_besides(),
        "rare": knob.is_rare,
        "hint": knob.hint,
        "value": knob.value,
        "means": knob.means,
        "locked": knob.locked,
        "kind": kind,
    })
}

pub fn clock(live: &Live, at: f64) -> String {
    let server = live.0.clock.unix_ms(Instant::now());
    json!({ "type": "clock", "at": at, "server": server }).to_string()
}

#[derive(Serialize)]
pub struct Own {
    /// Matched pairs that it did not get.
    pub skipped: u64,
    /// Its frames have every such pixel of every such row.
    pub scale: usize,
}

pub fn status(live: &Live, run: &RunStatus, client: Own, connection: &Connection) -> String {
    let source = &live.0.source;
    let newest = live.0.newest.borrow().as_ref().map(|newest| newest.frame.pair.arrived);
    let recording = source.recorder.as_ref().map(|recorder| {
        let now = recorder.recordings.now();
        let files = (recorder.files)(now.as_ref().and_then(|now| now.name.as_deref()));
        let outputs: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        json!({ "on": now.is_some(), "outputs": outputs })
    });
    let viewers = live.0.viewers.list(connection.id());
    let mut message = json!({
        "type": "status",
        "newest": newest.map(|arrived| live.0.clock.unix_ms(arrived)),
        "paused": source.control.pause.is_set(),
        "playing": source.span.is_ok().then(|| playing(source.control.playback.playing())),
        "recording": recording,
        "client": client,
        // Others need not know who looks.
        "viewers": connection.rights.may_change.then_some(viewers),
    });
    if let (Value::Object(all), Value::Object(run)) = (&mut message, json!(run)) {
        all.extend(run);
    }
    message.to_string()
}

fn playing(playing: Playing) -> Value {
    json!({
        "marks": playing.marks.map(|mark| mark.map(|mark| mark.as_secs_f64())),
        "repeats": playing.repeats,
        "speed": playing.speed,
        "at_end": playing.is_at_end,
    })
}

/// Returns the path from above, for a client that knows its points before a number, and the number after the newest
/// point; `None` if the run does not follow the motion.
pub fn path(live: &Live, known: u64) -> Option<(String, u64)> {
    let trail = locked(&live.0.trail);
    let vehicle = trail.vehicle()?;
    let centimetres = |at: [f64; 2]| at.map(|metres| rounded(metres, 2));
    let (keep, new) = trail.since(known);
    let points = new.map(|point| {
        let [across, down] = centimetres(point.at);
        json!([across, down, u8::from(point.begins)])
    });
    let square = trail.square();
    let ([across, down], [left, top]) =
        (centimetres(vehicle.at), centimetres([square.left, square.top]));
    let message = json!({
        "type": "path",
        "keep": keep,
        "points": points.collect::<Vec<_>>(),
        "now": [across, down, rounded(vehicle.direction_deg, 1)],
        "square": [left, top, rounded(square.side_m, 2)],
        "bar_m": square.bar_m(),
        "text": vehicle.text,
        "lost": vehicle.is_lost,
    });
    Some((message.to_string(), trail.end()))
}

pub fn note(saved: &Result<String, String>) -> String {
    let (is_good, text) = match saved {
        Ok(text) => (true, text),
        Err(text) => (false, text),
    };
    json!({ "type": "note", "ok": is_good, "text": text }).to_string()
}
