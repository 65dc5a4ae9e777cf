//! The node of a run in a ROS 2 graph: its parameters, its services and its diagnostics.
//!
//! Parameters are the knobs of the window's panel. A request of the graph is a request of a viewer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use ros2_client::{
    Message, Name, Node, NodeOptions, ParameterValue, Publisher, QosProfile, Server,
    ServiceMapping, ServiceTypeName,
};
use serde::{Deserialize, Serialize};

use super::encoded::Encoded;
use crate::core::control::{Control, Switch};
use crate::core::dds::PacketLoss;
use crate::core::frame::Matched;
use crate::core::thread::{self, locked};
use crate::sink::files;
use crate::sink::messages::{diagnostics, stamp};
use crate::sink::png;
use crate::sink::still::Still;
use crate::sink::viewer::{Ask, Figures, Knob, KnobKind, Tuned, Viewer, Wish};

/// Interval at which requests to services are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Interval of diagnostics.
const DIAGNOSTICS_EVERY: Duration = Duration::from_secs(1);

/// Says what is wrong with values, if anything is.
pub type Check = dyn Fn(&[Wish]) -> Result<(), String> + Send + Sync;

/// The parts of a run that a graph may watch and change.
pub struct Links {
    /// Name of the source, for people.
    pub name: String,
    /// The knobs at the start.
    pub knobs: Vec<Knob>,
    /// Checks values of all knobs.
    pub check: Box<Check>,
    /// Takes requests and never waits.
    pub ask: Box<dyn Fn(Ask) + Send + Sync>,
    /// The run's switches.
    pub control: Control,
    /// Set if there are files that frames are written to.
    pub writes_frames: bool,
    /// Folder for snapshots.
    pub folder: PathBuf,
}

/// State that the graph and the run share. Clones share it, too.
#[derive(Clone)]
pub struct Exchange(Arc<Shared>);

struct Shared {
    links: Links,
    knobs: Mutex<Vec<Knob>>,
    /// Values that were asked for and not yet answered, by the parameter's name.
    wanted: Mutex<BTreeMap<String, String>>,
    /// Number of the last request.
    number: AtomicU64,
    /// Set if the parameters may differ from the knobs.
    is_changed: AtomicBool,
    figures: Mutex<Figures>,
    newest: Mutex<Option<Arc<Matched>>>,
}

impl Exchange {
    /// Creates it at the start of a run.
    pub fn new(links: Links) -> Self {
        let knobs = Mutex::new(links.knobs.clone());
        Self(Arc::new(Shared {
            links,
            knobs,
            wanted: Mutex::default(),
            number: AtomicU64::new(0),
            is_changed: AtomicBool::new(false),
            figures: Mutex::default(),
            newest: Mutex::default(),
        }))
    }

    /// Takes the newest pair.
    pub(super) fn show(&self, frame: &Arc<Matched>) {
        *locked(&self.0.newest) = Some(frame.clone());
    }

    /// Returns the options of a node with the parameters.
    pub(super) fn options(&self) -> NodeOptions {
        // Only then may a parameter be a number as well as `auto`.
        let options = NodeOptions::new().enable_rosout(false).allow_undeclared_parameters(true);
        let (of_check, of_set) = (self.clone(), self.clone());
        let options = options
            .parameter_validator(Box::new(move |name, value| of_check.check(name, value).map(drop)))
            .parameter_set_action(Box::new(move |name, value| of_set.set(name, value)));
        let knobs = locked(&self.0.knobs);
        knobs
            .iter()
            .fold(options, |options, knob| options.declare_parameter(&knob.path(), value_of(knob)))
    }

    /// Returns the values of all knobs if a parameter had this value; `None` if it has it already.
    fn check(&self, name: &str, value: &ParameterValue) -> Result<Option<Vec<Wish>>, String> {
        let text = text_of(value).ok_or("give a number, a word, or true or false")?;
        let (knobs, wanted) = (locked(&self.0.knobs), locked(&self.0.wanted));
        let knob = knobs.iter().find(|knob| knob.path() == name);
        let knob = knob.ok_or("there is no such parameter; `ros2 param list` lists them")?;
        if wanted.get(name).unwrap_or(&knob.value) == &text {
            return Ok(None);
        }
        if let Some(reason) = &knob.locked {
            return Err(reason.clone());
        }
        let value = |knob: &Knob| {
            let own = knob.path();
            let text = if own == name { Some(&text) } else { wanted.get(&own) };
            text.unwrap_or(&knob.value).clone()
        };
        let wishes: Vec<Wish> =
            knobs.iter().map(|knob| (knob.name.0, knob.name.1, value(knob))).collect();
        (self.0.links.check)(&wishes)?;
        Ok(Some(wishes))
    }

    fn set(&self, name: &str, value: &ParameterValue) -> Result<(), String> {
        let Some(values) = self.check(name, value)? else { return Ok(()) };
        if let Some(text) = text_of(value) {
            locked(&self.0.wanted).insert(name.to_owned(), text);
        }
        let number = self.0.number.fetch_add(1, Ordering::SeqCst) + 1;
        (self.0.links.ask)(Ask::Values { number, values });
        Ok(())
    }

    /// Gives the parameters the values of the knobs.
    fn update(&self, node: &Node) {
        if !self.0.is_changed.swap(false, Ordering::SeqCst) {
            return;
        }
        let knobs = locked(&self.0.knobs).clone();
        for (name, value) in knobs.iter().map(|knob| (knob.path(), value_of(knob))) {
            if node.get_parameter(&name).as_ref() != Some(&value)
                && let Err(error) = node.set_parameter(&name, value)
            {
                tracing::debug!("ROS 2 parameter {name}: {error}");
            }
        }
    }

    /// Writes the newest pair: disparity, and the left image.
    fn snapshot(&self) -> Result<String> {
        let frame = locked(&self.0.newest).clone().ok_or(anyhow!("no pair was matched yet"))?;
        let stem = files::compact_time(SystemTime::now());
        let file = |what: &str| {
            let name = format!("stereod-{stem}-{:06}-{what}.png", frame.pair.sequence);
            self.0.links.folder.join(name)
        };
        let (disparity, left) = (file("disparity"), file("left"));
        Still::of(&frame.disparity, frame.disparity.range()).write(&disparity)?;
        let view = &frame.pair.left;
        let (width, height) = (view.width(), view.height());
        let picture = match view.chroma() {
            None => png::encode_grey(view.pixels(), width, height)?,
            Some(_) => {
                let mut rgb = vec![0; 3 * width * height];
                view.write_rgb::<3>(&mut rgb, 3 * width);
                png::encode_rgb(&rgb, width, height)?
            }
        };
        files::write_whole(&left, &picture)?;
        Ok(format!("{} and {}", disparity.display(), left.display()))
    }

    /// Returns the diagnostics as a message. `lost` counts UDP packets since the last one.
    fn diagnostics(&self, lost: u64) -> Vec<u8> {
        let figures = locked(&self.0.figures).clone();
        let counts = figures.counts;
        let mut values = vec![
            ("engine", figures.engine.clone()),
            ("matched pairs", counts.pairs.to_string()),
            ("dropped pairs", counts.dropped.to_string()),
            ("unpaired frames", counts.unpaired.to_string()),
            ("lost UDP packets", lost.to_string()),
        ];
        let (judged, mut troubles) = figures.diagnosis();
        values.extend(judged);
        if lost > 0 {
            troubles.push(format!("{lost} UDP packets were lost on this machine"));
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        diagnostics(&self.0.links.name, &values, &troubles, stamp(None, now))
    }
}

impl Viewer for Exchange {
    fn figures(&self, figures: Figures) {
        *locked(&self.0.figures) = figures;
    }

    fn tuned(&self, tuned: Tuned) {
        *locked(&self.0.knobs) = tuned.knobs;
        if tuned.number.is_none_or(|number| number == self.0.number.load(Ordering::SeqCst)) {
            locked(&self.0.wanted).clear();
        }
        self.0.is_changed.store(true, Ordering::SeqCst);
    }

    fn saved(&self, _message: Result<String, String>) {}
}

/// Returns the value of a knob as one of a parameter.
fn value_of(knob: &Knob) -> ParameterValue {
    let text = || ParameterValue::String(knob.value.clone());
    match knob.kind {
        KnobKind::Switch => ParameterValue::Boolean(knob.value == "true"),
        KnobKind::Number { step, .. } if step.fract() == 0.0 => {
            knob.value.parse().map_or_else(|_| text(), ParameterValue::Integer)
        }
        KnobKind::Number { .. } => {
            knob.value.parse().map_or_else(|_| text(), ParameterValue::Double)
        }
        KnobKind::Choice(_) => text(),
    }
}

/// Returns a value as in a configuration file, without quotation marks; `None` for lists and nothing.
fn text_of(value: &ParameterValue) -> Option<String> {
    match value {
        ParameterValue::Boolean(on) => Some(on.to_string()),
        ParameterValue::Integer(number) => Some(number.to_string()),
        ParameterValue::Double(number) => Some(number.to_string()),
        ParameterValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Request of `std_srvs/SetBool`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SetBool {
    data: bool,
}

/// Request of `std_srvs/Trigger`. An empty message has a byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Trigger {
    structure_needs_at_least_one_member: u8,
}

/// Response of both.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Response {
    success: bool,
    message: String,
}

impl Message for SetBool {}
impl Message for Trigger {}
impl Message for Response {}

/// Serves a node on threads of its own, until it is dropped.
pub(super) struct Service {
    stop: Switch,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts to serve. `publisher` is that of the diagnostics.
    pub(super) fn start(
        mut node: Node,
        exchange: Exchange,
        publisher: Publisher<Encoded>,
    ) -> Result<Self> {
        let spinner = node.spinner().context("parameters")?;
        let own = node.fully_qualified_name();
        let name = |name: &str| Name::new(&own, name);
        let record: Server<SetBool, Response> = serve(&mut node, &name("record")?, "SetBool")?;
        let snapshot: Server<Trigger, Response> = serve(&mut node, &name("snapshot")?, "Trigger")?;
        let stop = Switch::default();
        let is_over = stop.clone();
        let spin = move || {
            if let Err(error) = pollster::block_on(spinner.spin()) {
                tracing::warn!("ROS 2: the parameters are out of order: {error}");
            }
        };
        let turns = move || {
            let (mut told, mut loss) = (Instant::now(), PacketLoss::start());
            while !is_over.is_set() {
                answer(&record, |SetBool { data }| exchange.record(data));
                answer(&snapshot, |Trigger { .. }| exchange.snapshot());
                exchange.update(&node);
                if told.elapsed() >= DIAGNOSTICS_EVERY {
                    told = Instant::now();
                    let message = exchange.diagnostics(loss.since_last());
                    if let Err(error) = publisher.publish(Encoded(message)) {
                        tracing::debug!("ROS 2: diagnostics: {}", error.forget_data());
                    }
                }
                std::thread::sleep(TICK);
            }
            // This ends the other thread.
            drop(node);
        };
        let failed = |broken: thread::BrokenDown| tracing::error!("ROS 2: {broken}");
        let threads = vec![
            thread::spawn("ROS 2 parameters", spin, failed)?,
            thread::spawn("ROS 2 services", turns, failed)?,
        ];
        Ok(Self { stop, threads })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.set(true);
        for thread in self.threads.drain(..) {
            // A panic was told.
            let _ = thread.join();
        }
    }
}

impl Exchange {
    fn record(&self, on: bool) -> Result<String> {
        let Links { control, writes_frames, .. } = &self.0.links;
        anyhow::ensure!(
            *writes_frames,
            "the run has no files to write: start it with --record OUT.mkv"
        );
        control.suspend_recording.set(!on);
        Ok(if on { "recording" } else { "not recording" }.to_owned())
    }
}

/// Offers a service of std_srvs.
fn serve<Q: Message + Clone + 'static>(
    node: &mut Node,
    name: &Name,
    kind: &str,
) -> Result<Server<Q, Response>> {
    let quality = QosProfile::publisher_default();
    let kind = ServiceTypeName::new("std_srvs", kind);
    Ok(node.create_server(ServiceMapping::Enhanced, name, &kind, quality.clone(), quality)?)
}

/// Answers the requests that have come.
fn answer<Q: Message + Clone + 'static>(
    server: &Server<Q, Response>,
    mut work: impl FnMut(Q) -> Result<String>,
) {
    loop {
        match server.receive_request() {
            Ok(None) => return,
            Ok(Some((id, request))) => {
                let response = match work(request) {
                    Ok(message) => Response { success: true, message },
                    Err(error) => Response { success: false, message: format!("{error:#}") },
                };
                if let Err(error) = server.send_response(id, response) {
                    tracing::debug!("ROS 2: an answer was lost: {error}");
                }
            }
            Err(error) => {
                tracing::debug!("ROS 2: an unreadable request: {error}");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(key: &'static str, kind: KnobKind, value: &str, locked: Option<&str>) -> Knob {
        Knob {
            name: ("matching", key),
            group: "Cost",
            hint: "",
            kind,
            value: value.into(),
            means: None,
            locked: locked.map(str::to_owned),
        }
    }

    fn exchange(asked: Arc<Mutex<Vec<Ask>>>) -> Exchange {
        let whole = KnobKind::Number { low: 0.0, high: 9.0, step: 1.0, word: Some("auto") };
        Exchange::new(Links {
            name: "test".into(),
            knobs: vec![
                knob("p1", whole, "auto", None),
                knob("paths", KnobKind::Choice(&["4", "8"]), "8", None),
                knob("disparities", whole, "64", Some("a recording says what it is")),
            ],
            check: Box::new(|wishes| match wishes.iter().find(|(.., text)| text == "99") {
                Some(_) => Err("at most 98".into()),
                None => Ok(()),
            }),
            ask: Box::new(move |ask| locked(&asked).push(ask)),
            control: Control::default(),
            writes_frames: false,
            folder: ".".into(),
        })
    }

    #[test]
    fn a_parameter_becomes_a_request_with_what_was_asked_for_before() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let exchange = exchange(asked.clone());
        exchange.set("matching.p1", &ParameterValue::Integer(12)).unwrap();
        exchange.set("matching.paths", &ParameterValue::Integer(4)).unwrap();
        // The same once more changes nothing.
        exchange.set("matching.paths", &ParameterValue::String("4".into())).unwrap();
        let wishes = |texts: [&str; 3]| -> Vec<Wish> {
            let keys = ["p1", "paths", "disparities"].into_iter().zip(texts);
            keys.map(|(key, text)| ("matching", key, text.to_owned())).collect()
        };
        let expected = [
            Ask::Values { number: 1, values: wishes(["12", "8", "64"]) },
            Ask::Values { number: 2, values: wishes(["12", "4", "64"]) },
        ];
        assert_eq!(*locked(&asked), expected);
    }

    #[test]
    fn wrong_values_are_refused_with_the_reason() {
        let exchange = exchange(Arc::default());
        for (name, value, reason) in [
            ("matching.p1", ParameterValue::Integer(99), "at most 98"),
            ("matching.p3", ParameterValue::Integer(9), "no such parameter"),
            ("matching.p1", ParameterValue::IntegerArray(vec![1]), "give a number"),
            ("matching.disparities", ParameterValue::Integer(32), "a recording says"),
        ] {
            let error = exchange.set(name, &value).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let error = exchange.record(true).unwrap_err().to_string();
        assert!(error.contains("--record"), "{error}");
        assert!(exchange.snapshot().unwrap_err().to_string().contains("no pair"));
    }

    #[test]
    fn knobs_have_values_of_their_kind() {
        let real = KnobKind::Number { low: 0.0, high: 1.0, step: 0.1, word: None };
        let whole = KnobKind::Number { low: 0.0, high: 9.0, step: 1.0, word: Some("auto") };
        for (kind, text, value) in [
            (KnobKind::Switch, "true", ParameterValue::Boolean(true)),
            (whole, "auto", ParameterValue::String("auto".into())),
            (whole, "7", ParameterValue::Integer(7)),
            (real, "0.3", ParameterValue::Double(0.3)),
            (real, "1", ParameterValue::Double(1.0)),
            (KnobKind::Choice(&["4"]), "4", ParameterValue::String("4".into())),
        ] {
            assert_eq!(value_of(&knob("k", kind, text, None)), value);
            assert_eq!(text_of(&value).as_deref(), Some(text));
        }
    }
}
