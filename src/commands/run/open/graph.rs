//! The messages of a run to a ROS 2 graph, and the requests that come from there.

use anyhow::{Context, Result};

use super::outputs;
use crate::commands::run::knobs::knobs;
use crate::commands::run::live::requests::{Request, Requests};
use crate::core::control::Control;
use crate::settings::Loaded;
use crate::sink::restarting::{Factory, Restarting};
use crate::sink::ros2::{Exchange, Links, Ros2Options, Ros2Sink};
use crate::sink::{Sink, StreamInfo};
use crate::status::Newest;

/// Joins the graph, if the settings ask for it.
pub fn join(
    loaded: &Loaded,
    name: &str,
    stream: StreamInfo,
    control: &Control,
    requests: &Requests,
    status: &Newest,
) -> Result<Option<(Box<dyn Sink>, Exchange)>> {
    let settings = &loaded.settings;
    let Some(namespace) = settings.ros2.namespace() else { return Ok(None) };
    let (topics, reliable) = (settings.ros2.topics.clone(), settings.ros2.reliable);
    let options = Ros2Options { namespace, topics, reliable };
    let (of_check, of_ask, of_status) = (loaded.clone(), requests.clone(), status.clone());
    let exchange = Exchange::new(Links {
        name: name.to_owned(),
        knobs: knobs(loaded),
        check: Box::new(move |wishes| {
            let texts = wishes.iter().map(|(section, key, text)| (*section, *key, text.as_str()));
            of_check.with_texts(texts).map(drop).map_err(|error| error.to_string())
        }),
        ask: Box::new(move |wanted| of_ask.ask(Request::Viewer(wanted))),
        diagnosis: Box::new(move || of_status.get().diagnosis()),
        control: control.clone(),
        writes_frames: outputs::writes_frames(settings),
        folder: (&settings.window.snapshots).into(),
    });
    let shared = exchange.clone();
    let mut factory: Factory = Box::new(move || {
        Ros2Sink::open(&options, &stream, &shared).map(|sink| Box::new(sink) as Box<dyn Sink>)
    });
    let first = factory().context("--ros2")?;
    Ok(Some((Box::new(Restarting::new(first, factory, false)), exchange)))
}
