//! The node of a run in a ROS 2 graph: its parameters, its services and its diagnostics.
//!
//! Parameters are the knobs of the window's panel. A request of the graph is a request of a viewer. The parameter
//! services are served here, because those of ros2-client cannot describe ranges.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use ros2_client::builtin_interfaces::Time;
use ros2_client::parameters::{NumericRange, ParameterDescriptor, raw};
use ros2_client::rcl_interfaces::{
    DescribeParametersRequest, DescribeParametersResponse, GetParameterTypesRequest,
    GetParameterTypesResponse, GetParametersRequest, GetParametersResponse, ListParametersRequest,
    ListParametersResponse, ListParametersResult, SetParametersAtomicallyResponse,
    SetParametersRequest, SetParametersResponse,
};
use ros2_client::{Name, Node, Parameter, ParameterValue, Publisher, Server, ServiceTypeName};

use super::encoded::Encoded;
use super::services::{Response, SetBool, Trigger, answer, serve};
use crate::core::control::{Control, Switch};
use crate::core::dds::PacketLoss;
use crate::core::frame::Matched;
use crate::core::thread::{self, locked};
use crate::sink::files;
use crate::sink::messages::{Diagnosis, diagnostics, stamp};
use crate::sink::png;
use crate::sink::still::Still;
use crate::sink::viewer::{Ask, Knob, KnobKind, Tuned, Viewer, Wish};

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
    /// Returns the present state.
    pub diagnosis: Box<dyn Fn() -> Diagnosis + Send + Sync>,
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
            newest: Mutex::default(),
        }))
    }

    /// Takes the newest pair.
    pub(super) fn show(&self, frame: &Arc<Matched>) {
        *locked(&self.0.newest) = Some(frame.clone());
    }

    /// Returns the values of all knobs if parameters had these values; `None` if they have them already.
    fn check(&self, changes: &[Parameter]) -> Result<Option<Vec<Wish>>, String> {
        let (knobs, wanted) = (locked(&self.0.knobs), locked(&self.0.wanted));
        let present = |knob: &Knob| wanted.get(&knob.path()).unwrap_or(&knob.value).clone();
        let mut values: BTreeMap<String, String> =
            knobs.iter().map(|knob| (knob.path(), present(knob))).collect();
        let mut is_new = false;
        for Parameter { name, value } in changes {
            let text = text_of(value).ok_or("give a number, a word, or true or false")?;
            let knob = knobs.iter().find(|knob| knob.path() == *name);
            let knob = knob.ok_or("there is no such parameter; `ros2 param list` lists them")?;
            if values.get(name) == Some(&text) {
                continue;
            }
            if let Some(reason) = &knob.locked {
                return Err(reason.clone());
            }
            values.insert(name.clone(), text);
            is_new = true;
        }
        if !is_new {
            return Ok(None);
        }
        let wish = |knob: &Knob| (knob.name.0, knob.name.1, values[&knob.path()].clone());
        let wishes: Vec<Wish> = knobs.iter().map(wish).collect();
        (self.0.links.check)(&wishes)?;
        Ok(Some(wishes))
    }

    /// Sets parameters: all of them or, with the reason, none.
    fn set(&self, changes: &[Parameter]) -> Result<(), String> {
        let Some(values) = self.check(changes)? else { return Ok(()) };
        for Parameter { name, value } in changes {
            locked(&self.0.wanted).extend(text_of(value).map(|text| (name.clone(), text)));
        }
        let number = self.0.number.fetch_add(1, Ordering::SeqCst) + 1;
        (self.0.links.ask)(Ask::Values { number, values });
        Ok(())
    }

    /// Returns the parameters, with values that were asked for and are on their way.
    fn parameters(&self) -> Vec<(String, ParameterValue)> {
        let (knobs, wanted) = (locked(&self.0.knobs), locked(&self.0.wanted));
        let parameter = |knob: &Knob| {
            let name = knob.path();
            let value = value_of(knob.kind, wanted.get(&name).unwrap_or(&knob.value));
            (name, value)
        };
        knobs.iter().map(parameter).collect()
    }

    /// Returns what `each` makes of the named parameters; of unknown ones of `None`.
    fn of_names<T>(
        &self,
        names: &[String],
        each: impl Fn(&str, Option<ParameterValue>) -> T,
    ) -> Vec<T> {
        let parameters = self.parameters();
        let find = |name: &String| parameters.iter().find(|(own, _)| own == name);
        names.iter().map(|name| each(name, find(name).map(|(_, value)| value.clone()))).collect()
    }

    /// Describes a parameter with its range.
    fn describe(&self, name: &str, value: Option<ParameterValue>) -> ParameterDescriptor {
        let knobs = locked(&self.0.knobs);
        let knob = knobs.iter().find(|knob| knob.path() == name);
        let (Some(knob), Some(value)) = (knob, value) else {
            return ParameterDescriptor::unknown(name);
        };
        let mut described = ParameterDescriptor::from_value(name, &value);
        described.description = knob.hint.to_owned();
        described.read_only = knob.locked.is_some();
        let limits = match knob.kind {
            KnobKind::Number { low, high, step, word } => {
                described.dynamic_typing = word.is_some();
                described.range = match step.fract() == 0.0 {
                    true => {
                        let [from_value, to_value, step] =
                            [low, high, step].map(|limit| limit as i64);
                        NumericRange::IntegerRange { from_value, to_value, step }
                    }
                    // A step of 0 stands for any value, since sliders need not hit those of a file.
                    false => NumericRange::FloatingPointRange {
                        from_value: low,
                        to_value: high,
                        step: 0.0,
                    },
                };
                word.map(|word| format!("a number, or {word}")).unwrap_or_default()
            }
            KnobKind::Choice(names) => format!("one of {}", names.join(", ")),
            KnobKind::Switch => String::new(),
        };
        described.additional_constraints = knob.locked.clone().unwrap_or(limits);
        described
    }

    /// Returns names of parameters and their sections. `prefixes` are sections, and `depth`, unless 0, limits the
    /// number of names after them.
    fn list(
        &self,
        ListParametersRequest { prefixes, depth }: ListParametersRequest,
    ) -> ListParametersResult {
        let is_listed = |name: &str| {
            let fits = |rest: &str| depth == 0 || (rest.matches('.').count() as u64) < depth;
            let below = |prefix: &String| match name.strip_prefix(prefix.as_str()) {
                Some("") => true,
                Some(rest) => rest.strip_prefix('.').is_some_and(fits),
                None => false,
            };
            if prefixes.is_empty() { fits(name) } else { prefixes.iter().any(below) }
        };
        let names = self.parameters().into_iter().map(|(name, _)| name);
        let names: Vec<String> = names.filter(|name| is_listed(name)).collect();
        let sections = names.iter().filter_map(|name| name.split_once('.'));
        let mut prefixes: Vec<String> = sections.map(|(section, _)| section.to_owned()).collect();
        prefixes.dedup();
        ListParametersResult { names, prefixes }
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
        let mut diagnosis = (self.0.links.diagnosis)();
        diagnosis.values.push(("lost UDP packets", lost.to_string()));
        if lost > 0 {
            diagnosis.troubles.push(format!("{lost} UDP packets were lost on this machine"));
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        diagnostics(&self.0.links.name, &diagnosis, stamp(None, now))
    }
}

impl Viewer for Exchange {
    fn tuned(&self, tuned: Tuned) {
        *locked(&self.0.knobs) = tuned.knobs;
        if tuned.number.is_none_or(|number| number == self.0.number.load(Ordering::SeqCst)) {
            locked(&self.0.wanted).clear();
        }
    }

    fn saved(&self, _message: Result<String, String>) {}
}

/// Returns the value of a knob as one of a parameter.
fn value_of(kind: KnobKind, text: &str) -> ParameterValue {
    let word = || ParameterValue::String(text.to_owned());
    match kind {
        KnobKind::Switch => ParameterValue::Boolean(text == "true"),
        KnobKind::Number { step, .. } if step.fract() == 0.0 => {
            text.parse().map_or_else(|_| word(), ParameterValue::Integer)
        }
        KnobKind::Number { .. } => text.parse().map_or_else(|_| word(), ParameterValue::Double),
        KnobKind::Choice(_) => word(),
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

/// Serves a node on threads of its own, until it is dropped.
pub(super) struct Service {
    stop: Switch,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts to serve. `publisher` is that of the diagnostics, `events` that of changed parameters.
    pub(super) fn start(
        mut node: Node,
        exchange: Exchange,
        publisher: Publisher<Encoded>,
        events: Publisher<raw::ParameterEvent>,
    ) -> Result<Self> {
        let spinner = node.spinner().context("parameters")?;
        let own = node.fully_qualified_name();
        let name = |name: &str| Name::new(&own, name);
        let std_srvs = |kind| ServiceTypeName::new("std_srvs", kind);
        let record = serve::<SetBool, Response>(&mut node, &name("record")?, std_srvs("SetBool"))?;
        let snapshot =
            serve::<Trigger, Response>(&mut node, &name("snapshot")?, std_srvs("Trigger"))?;
        let parameters = ParameterServers::start(&mut node, &name)?;
        let stop = Switch::default();
        let is_over = stop.clone();
        let spin = move || {
            if let Err(error) = pollster::block_on(spinner.spin()) {
                tracing::warn!("ROS 2: the parameters are out of order: {error}");
            }
        };
        let turns = move || {
            let (mut told, mut loss) = (Instant::now(), PacketLoss::start());
            let mut before = exchange.parameters();
            while !is_over.is_set() {
                answer(&record, |SetBool { data }| Response::of(exchange.record(data)));
                answer(&snapshot, |Trigger { .. }| Response::of(exchange.snapshot()));
                parameters.answer(&exchange);
                let now = exchange.parameters();
                if now != before {
                    tell_changes(&events, &own, &before, &now);
                    before = now;
                }
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

/// The services by which a graph reads and sets parameters.
struct ParameterServers {
    get: Server<GetParametersRequest, GetParametersResponse>,
    types: Server<GetParameterTypesRequest, GetParameterTypesResponse>,
    set: Server<SetParametersRequest, SetParametersResponse>,
    set_together: Server<SetParametersRequest, SetParametersAtomicallyResponse>,
    list: Server<ListParametersRequest, ListParametersResponse>,
    describe: Server<DescribeParametersRequest, DescribeParametersResponse>,
}

impl ParameterServers {
    fn start<E>(node: &mut Node, name: &impl Fn(&str) -> Result<Name, E>) -> Result<Self>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let kind = |kind| ServiceTypeName::new("rcl_interfaces", kind);
        Ok(Self {
            get: serve(node, &name("get_parameters")?, kind("GetParameters"))?,
            types: serve(node, &name("get_parameter_types")?, kind("GetParameterTypes"))?,
            set: serve(node, &name("set_parameters")?, kind("SetParameters"))?,
            set_together: serve(
                node,
                &name("set_parameters_atomically")?,
                kind("SetParametersAtomically"),
            )?,
            list: serve(node, &name("list_parameters")?, kind("ListParameters"))?,
            describe: serve(node, &name("describe_parameters")?, kind("DescribeParameters"))?,
        })
    }

    /// Answers the requests that have come.
    fn answer(&self, exchange: &Exchange) {
        let value =
            |_: &str, value: Option<ParameterValue>| value.unwrap_or(ParameterValue::NotSet);
        let set = |changes: Vec<raw::Parameter>| {
            let changes: Vec<Parameter> = changes.into_iter().map(Parameter::from).collect();
            raw::SetParametersResult::from(exchange.set(&changes))
        };
        answer(&self.get, |GetParametersRequest { names }| GetParametersResponse {
            values: exchange.of_names(&names, |name, found| value(name, found).into()),
        });
        answer(&self.types, |GetParameterTypesRequest { names }| GetParameterTypesResponse {
            values: exchange.of_names(&names, |name, found| {
                ParameterValue::to_parameter_type_raw(&value(name, found))
            }),
        });
        answer(&self.set, |SetParametersRequest { parameter }| SetParametersResponse {
            results: parameter.into_iter().map(|change| set(vec![change])).collect(),
        });
        answer(&self.set_together, |SetParametersRequest { parameter }| {
            SetParametersAtomicallyResponse { result: set(parameter) }
        });
        answer(&self.list, |request| ListParametersResponse { result: exchange.list(request) });
        answer(&self.describe, |DescribeParametersRequest { names }| DescribeParametersResponse {
            values: exchange.of_names(&names, |name, found| exchange.describe(name, found).into()),
        });
    }
}

/// Publishes the parameters that have changed.
fn tell_changes(
    events: &Publisher<raw::ParameterEvent>,
    node: &str,
    before: &[(String, ParameterValue)],
    now: &[(String, ParameterValue)],
) {
    let changed = now.iter().filter(|parameter| !before.contains(parameter)).cloned();
    let changed = changed.map(|(name, value)| raw::Parameter { name, value: value.into() });
    let event = raw::ParameterEvent {
        stamp: Time::now(),
        node: node.to_owned(),
        new_parameters: Vec::new(),
        changed_parameters: changed.collect(),
        deleted_parameters: Vec::new(),
    };
    if let Err(error) = events.publish(event) {
        tracing::debug!("ROS 2: a change of parameters: {}", error.forget_data());
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

    fn parameter(name: &str, value: ParameterValue) -> Parameter {
        Parameter { name: name.to_owned(), value }
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
            diagnosis: Box::new(Diagnosis::default),
            control: Control::default(),
            writes_frames: false,
            folder: ".".into(),
        })
    }

    #[test]
    fn a_parameter_becomes_a_request_with_what_was_asked_for_before() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let exchange = exchange(asked.clone());
        exchange.set(&[parameter("matching.p1", ParameterValue::Integer(12))]).unwrap();
        exchange.set(&[parameter("matching.paths", ParameterValue::Integer(4))]).unwrap();
        // The same once more changes nothing.
        exchange.set(&[parameter("matching.paths", ParameterValue::String("4".into()))]).unwrap();
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
            // Together with a right one, which is not set either.
            let right = parameter("matching.paths", ParameterValue::Integer(4));
            let error = exchange.set(&[right, parameter(name, value)]).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(exchange.parameters()[1].1, ParameterValue::String("8".into()));
        let error = exchange.record(true).unwrap_err().to_string();
        assert!(error.contains("--record"), "{error}");
        assert!(exchange.snapshot().unwrap_err().to_string().contains("no pair"));
    }

    #[test]
    fn parameters_are_listed_and_described() {
        let exchange = exchange(Arc::default());
        let list = |prefixes: &[&str], depth| {
            let prefixes = prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
            exchange.list(ListParametersRequest { prefixes, depth })
        };
        assert_eq!(list(&[], 0).names.len(), 3);
        assert_eq!(list(&[], 0).prefixes, ["matching"]);
        assert_eq!(list(&["matching"], 1).names.len(), 3);
        assert_eq!(list(&["matching.p1"], 0).names, ["matching.p1"]);
        assert!(list(&["match"], 0).names.is_empty() && list(&[], 1).names.is_empty());
        let names =
            ["matching.p1", "matching.paths", "matching.disparities", "x"].map(str::to_owned);
        let described = exchange.of_names(&names, |name, value| exchange.describe(name, value));
        let range = |number: usize| match described[number].range {
            NumericRange::IntegerRange { from_value, to_value, step } => {
                Some([from_value, to_value, step])
            }
            _ => None,
        };
        assert_eq!((range(0), range(1)), (Some([0, 9, 1]), None));
        assert_eq!(described[1].additional_constraints, "one of 4, 8");
        assert!(described[0].dynamic_typing && !described[0].read_only && described[2].read_only);
        assert_eq!(described[3].description, "unknown parameter");
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
            assert_eq!(value_of(kind, text), value);
            assert_eq!(text_of(&value).as_deref(), Some(text));
        }
    }
}
