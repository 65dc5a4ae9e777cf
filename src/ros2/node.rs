//! The node of a run in a ROS 2 graph: its parameters, its services and its diagnostics.
//!
//! Parameters are the knobs of the window's panel. A request of the graph is a request of a viewer. The
//! parameter services are served here, because ros2-client's cannot describe ranges.

use std::collections::BTreeMap;
use std::path::PathBuf;
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
use ros2_client::{
    Name, Node, Parameter, ParameterValue, Publisher, RmwRequestId, Server, ServiceTypeName,
};

use super::Encoded;
use super::services::{Response, SetBool, Trigger, answer, fitting, receive, respond, serve};
use crate::viewer::{Ask, Knob, KnobKind, RequestId, Tuned, Typed, Viewer, ViewerId};
use stereod_core::files;
use stereod_core::frame::Matched;
use stereod_core::picture::png;
use stereod_core::thread::{self, locked};
use stereod_io::control::{Control, Switch};
use stereod_io::ros2::dds::PacketLoss;
use stereod_io::sink::messages::{Diagnosis, diagnostics, stamp};
use stereod_io::sink::still::Still;

/// Polling interval of requests to services.
const TICK: Duration = Duration::from_millis(50);

const DIAGNOSTICS_EVERY: Duration = Duration::from_secs(1);

/// The parts of a run that a graph may watch and change.
pub struct Links {
    pub name: String,
    /// The name of the rig, if there are several.
    pub rig: Option<String>,
    pub knobs: Vec<Knob>,
    /// Takes requests and never waits.
    pub ask: Box<dyn Fn(Ask) + Send + Sync>,
    pub diagnosis: Box<dyn Fn() -> Diagnosis + Send + Sync>,
    pub control: Control,
    pub writes_frames: bool,
    pub folder: PathBuf,
}

/// State that the graph and the run share. Clones share it, too.
#[derive(Clone)]
pub struct Exchange(Arc<Shared>);

struct Shared {
    links: Links,
    knobs: Mutex<Vec<Knob>>,
    asked: Mutex<Asked>,
    newest: Mutex<Option<Arc<Matched>>>,
}

#[derive(Default)]
struct Asked {
    number: u32,
    /// Results of those that the graph was not told of, by their numbers; `None` until they are known.
    results: BTreeMap<u32, Option<Result<(), String>>>,
}

impl Exchange {
    pub fn new(links: Links) -> Self {
        let knobs = Mutex::new(links.knobs.clone());
        Self(Arc::new(Shared { links, knobs, asked: Mutex::default(), newest: Mutex::default() }))
    }

    pub(super) fn show(&self, frame: &Arc<Matched>) {
        *locked(&self.0.newest) = Some(frame.clone());
    }

    /// Requests values for parameters: all of them or none. Returns the number of the request.
    fn ask(&self, changes: Vec<raw::Parameter>) -> u32 {
        let mut asked = locked(&self.0.asked);
        asked.number += 1;
        let number = asked.number;
        let wish = |Parameter { name, value }| text_of(&value).map(|text| (name, text));
        let values: Option<Vec<_>> = changes.into_iter().map(Parameter::from).map(wish).collect();
        let refused = || Err("give a number, a word, or true or false".to_owned());
        asked.results.insert(number, values.is_none().then(refused));
        if let Some(values) = values {
            let id = RequestId { viewer: ViewerId::Ros2, number };
            (self.0.links.ask)(Ask::Values { id, values });
        }
        number
    }

    fn take_results(&self, numbers: &[u32]) -> Option<Vec<Result<(), String>>> {
        let results = &mut locked(&self.0.asked).results;
        let all =
            numbers.iter().map(|number| results.get(number)?.clone()).collect::<Option<_>>()?;
        results.retain(|number, _| !numbers.contains(number));
        Some(all)
    }

    fn parameters(&self) -> Vec<(String, ParameterValue)> {
        locked(&self.0.knobs).iter().map(|knob| (knob.path(), value_of(knob))).collect()
    }

    /// Returns the result of `each` for the named parameters; unknown ones are passed as `None`.
    fn of_names<T>(
        &self,
        names: &[String],
        each: impl Fn(&str, Option<ParameterValue>) -> T,
    ) -> Vec<T> {
        let parameters = self.parameters();
        let find = |name: &String| parameters.iter().find(|(own, _)| own == name);
        names.iter().map(|name| each(name, find(name).map(|(_, value)| value.clone()))).collect()
    }

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
            // The slider of the window is shorter, and has steps.
            KnobKind::Number { range: [from_value, to_value], whole, word, .. } => {
                described.dynamic_typing = word.is_some();
                described.range = match whole {
                    true => NumericRange::IntegerRange {
                        from_value: from_value as i64,
                        to_value: to_value as i64,
                        step: 1,
                    },
                    // Any number between both.
                    false => NumericRange::FloatingPointRange { from_value, to_value, step: 0.0 },
                };
                word.map(|word| format!("a number, or {word}")).unwrap_or_default()
            }
            KnobKind::Choice(names) => {
                described.dynamic_typing = names.iter().any(|name| name.parse::<f64>().is_ok());
                let names = names.join(", ");
                if knob.is_open {
                    format!("{names}, or another")
                } else {
                    format!("one of {names}")
                }
            }
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
        let time = files::compact_time(SystemTime::now());
        let rig = self.0.links.rig.iter().map(|rig| format!("{rig}-")).collect::<String>();
        let stem = format!("stereod-{rig}{time}-{:06}", frame.pair.sequence);
        let folder = &self.0.links.folder;
        let pair =
            |stem: &str| ["disparity", "left"].map(|it| folder.join(format!("{stem}-{it}.png")));
        let [disparity, left] = files::unused(&stem, pair);
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
        // The parameters first, since who is told of the success may read them.
        locked(&self.0.knobs).clone_from(&tuned.knobs);
        let mut asked = locked(&self.0.asked);
        for (number, problem) in tuned.answers_to(ViewerId::Ros2) {
            let result = problem.cloned().map_or(Ok(()), Err);
            asked.results.entry(number).and_modify(|known| *known = Some(result));
        }
    }

    fn saved(&self, _message: Result<String, String>) {}
}

fn value_of(knob: &Knob) -> ParameterValue {
    match knob.typed() {
        Typed::Switch(on) => ParameterValue::Boolean(on),
        Typed::Whole(number) => ParameterValue::Integer(number),
        Typed::Real(number) => ParameterValue::Double(number),
        Typed::Word(word) => ParameterValue::String(word.to_owned()),
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
    /// Starts to serve. `publisher` publishes the diagnostics, `events` changed parameters.
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
        let mut parameters = ParameterServers::start(&mut node, &name)?;
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
        if on {
            control.recordings.start(None);
        } else {
            control.recordings.stop();
        }
        Ok(if on { "recording" } else { "not recording" }.to_owned())
    }
}

/// The services of a graph for reading and setting parameters.
struct ParameterServers {
    get: Server<GetParametersRequest, GetParametersResponse>,
    types: Server<GetParameterTypesRequest, GetParameterTypesResponse>,
    set: Server<SetParametersRequest, SetParametersResponse>,
    set_together: Server<SetParametersRequest, SetParametersAtomicallyResponse>,
    list: Server<ListParametersRequest, ListParametersResponse>,
    describe: Server<DescribeParametersRequest, DescribeParametersResponse>,
    /// Changes that were not answered: names of the responses, and the numbers of the requests.
    changes: Vec<(RmwRequestId, Vec<u32>)>,
    joint_changes: Vec<(RmwRequestId, u32)>,
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
            changes: Vec::new(),
            joint_changes: Vec::new(),
        })
    }

    /// Answers the requests that have come, and changes once they have been carried out.
    fn answer(&mut self, exchange: &Exchange) {
        let value =
            |_: &str, value: Option<ParameterValue>| value.unwrap_or(ParameterValue::NotSet);
        answer(&self.get, |GetParametersRequest { names }| GetParametersResponse {
            values: fitting(exchange.of_names(&names, |name, found| value(name, found).into())),
        });
        answer(&self.types, |GetParameterTypesRequest { names }| GetParameterTypesResponse {
            values: exchange.of_names(&names, |name, found| {
                ParameterValue::to_parameter_type_raw(&value(name, found))
            }),
        });
        while let Some((id, SetParametersRequest { parameter })) = receive(&self.set) {
            let numbers = parameter.into_iter().map(|change| exchange.ask(vec![change]));
            self.changes.push((id, numbers.collect()));
        }
        self.changes.retain(|(id, numbers)| {
            let Some(results) = exchange.take_results(numbers) else { return true };
            let results = results.into_iter().map(raw::SetParametersResult::from).collect();
            respond(&self.set, *id, SetParametersResponse { results });
            false
        });
        while let Some((id, SetParametersRequest { parameter })) = receive(&self.set_together) {
            self.joint_changes.push((id, exchange.ask(parameter)));
        }
        self.joint_changes.retain(|(id, number)| {
            let result = exchange.take_results(&[*number]).and_then(|mut results| results.pop());
            let Some(result) = result else { return true };
            respond(
                &self.set_together,
                *id,
                SetParametersAtomicallyResponse { result: result.into() },
            );
            false
        });
        answer(&self.list, |request| ListParametersResponse { result: exchange.list(request) });
        answer(&self.describe, |DescribeParametersRequest { names }| DescribeParametersResponse {
            values: fitting(
                exchange.of_names(&names, |name, found| exchange.describe(name, found).into()),
            ),
        });
    }
}

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
            label: key,
            is_rare: false,
            flag: None,
            hint: "",
            kind,
            is_open: false,
            value: value.into(),
            means: None,
            locked: locked.map(str::to_owned),
        }
    }

    /// A number from 0 to 99, whose slider ends at 9.
    fn number(whole: bool, word: Option<&'static str>) -> KnobKind {
        KnobKind::Number { low: 0.0, high: 9.0, step: 1.0, range: [0.0, 99.0], whole, word }
    }

    fn raw_parameter(name: &str, value: ParameterValue) -> raw::Parameter {
        raw::Parameter { name: name.to_owned(), value: value.into() }
    }

    fn exchange(asked: Arc<Mutex<Vec<Ask>>>) -> Exchange {
        let whole = number(true, Some("auto"));
        Exchange::new(Links {
            name: "test".into(),
            rig: None,
            knobs: vec![
                knob("p1", whole, "auto", None),
                knob("paths", KnobKind::Choice(&["4", "8"]), "8", None),
                knob("disparities", whole, "64", Some("a recording says what it is")),
            ],
            ask: Box::new(move |ask| locked(&asked).push(ask)),
            diagnosis: Box::new(Diagnosis::default),
            control: Control::default(),
            writes_frames: false,
            folder: ".".into(),
        })
    }

    fn answer(exchange: &Exchange, answered: RequestId, p1: &str, problem: Option<&str>) {
        let mut knobs = locked(&exchange.0.knobs).clone();
        knobs[0].value = p1.to_owned();
        exchange.tuned(Tuned {
            answers: vec![(answered, problem.map(str::to_owned))],
            knobs,
            since: Instant::now(),
            colouring: Default::default(),
        });
    }

    #[test]
    fn a_change_is_asked_for_alone_and_succeeds_once_it_is_in_effect() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let exchange = exchange(asked.clone());
        let p1 = |value| vec![raw_parameter("matching.p1", value)];
        let id = |viewer, number| RequestId { viewer, number };
        let numbers = [ParameterValue::Integer(7), ParameterValue::Integer(99)];
        let numbers = numbers.map(|value| exchange.ask(p1(value)));
        let expected = [(1, "7"), (2, "99")].map(|(number, text)| Ask::Values {
            id: id(ViewerId::Ros2, number),
            values: vec![("matching.p1".into(), text.into())],
        });
        assert_eq!((numbers, &locked(&asked)[..]), ([1, 2], &expected[..]));
        // A request of the window has the same number.
        answer(&exchange, id(ViewerId::Window, 2), "9", None);
        assert_eq!(exchange.parameters()[0].1, ParameterValue::Integer(9));
        answer(&exchange, id(ViewerId::Ros2, 1), "7", None);
        assert_eq!(exchange.take_results(&numbers), None, "one is on its way");
        answer(&exchange, id(ViewerId::Ros2, 2), "7", Some("no memory"));
        assert_eq!(exchange.parameters()[0].1, ParameterValue::Integer(7));
        let results = exchange.take_results(&numbers);
        assert_eq!(results, Some(vec![Ok(()), Err("no memory".into())]));
        assert!(locked(&exchange.0.asked).results.is_empty());
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_the_reason() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let exchange = exchange(asked.clone());
        // Together with a right one, which is not set either.
        let list = raw_parameter("matching.p1", ParameterValue::IntegerArray(vec![1]));
        let right = raw_parameter("matching.paths", ParameterValue::Integer(4));
        let number = exchange.ask(vec![right, list]);
        let results = exchange.take_results(&[number]).unwrap();
        assert!(results[0].as_ref().unwrap_err().contains("give a number"), "{results:?}");
        assert!(locked(&asked).is_empty());
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
        assert_eq!((range(0), range(1)), (Some([0, 99, 1]), None));
        assert_eq!(described[1].additional_constraints, "one of 4, 8");
        assert!(described[1].dynamic_typing, "4 is a number, too");
        assert!(described[0].dynamic_typing && !described[0].read_only && described[2].read_only);
        assert_eq!(described[3].description, "unknown parameter");
    }

    #[test]
    fn knobs_have_values_of_their_kind() {
        let (real, whole) = (number(false, None), number(true, Some("auto")));
        for (kind, text, value) in [
            (KnobKind::Switch, "true", ParameterValue::Boolean(true)),
            (whole, "auto", ParameterValue::String("auto".into())),
            (whole, "7", ParameterValue::Integer(7)),
            (real, "0.3", ParameterValue::Double(0.3)),
            (real, "1", ParameterValue::Double(1.0)),
            (KnobKind::Choice(&["4"]), "4", ParameterValue::String("4".into())),
        ] {
            assert_eq!(value_of(&knob("key", kind, text, None)), value);
            assert_eq!(text_of(&value).as_deref(), Some(text));
        }
    }
}
