//! The messages of a run to a ROS 2 graph, and the requests that come from there.

use std::sync::Arc;

use anyhow::Context;

use super::face::{Bound, Face, Joined, Opened, Shows};
use crate::commands::run::knobs::knobs;
use crate::commands::run::live::requests::Request;
use crate::commands::run::open::outputs;
use crate::settings::Settings;
use crate::sink::Sink;
use crate::sink::restarting::{Factory, Restarting};
use crate::sink::ros2::{Exchange, Links, Ros2Options, Ros2Sink};

/// Joins the graph later, if the settings ask for it.
pub fn bind(settings: &Settings) -> Bound {
    let namespace = settings.ros2.namespace();
    Ok(namespace.map(|namespace| Box::new(Graph { namespace }) as Box<dyn Face>))
}

/// The node of a graph.
struct Graph {
    namespace: String,
}

impl Face for Graph {
    fn shows(&self) -> Shows {
        Shows::Images
    }

    fn join(&mut self, run: &Opened<'_>, sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        let settings = &run.loaded.settings;
        let (namespace, ros2) = (self.namespace.clone(), &settings.ros2);
        let (topics, reliable) = (ros2.topics.clone(), ros2.reliable);
        let options = Ros2Options { namespace, topics, reliable };
        let stream = outputs::stream_info(run.loaded, run.info, run.rig, run.clock);
        let (of_check, of_ask) = (run.loaded.clone(), run.requests.clone());
        let of_status = run.status.clone();
        let exchange = Exchange::new(Links {
            name: run.info.description.clone(),
            knobs: knobs(run.loaded),
            check: Box::new(move |wishes| {
                let texts =
                    wishes.iter().map(|(section, key, text)| (*section, *key, text.as_str()));
                of_check.with_texts(texts).map(drop).map_err(|error| error.to_string())
            }),
            ask: Box::new(move |wanted| of_ask.ask(Request::Viewer(wanted))),
            diagnosis: Box::new(move || of_status.get().diagnosis()),
            control: run.control.clone(),
            writes_frames: outputs::writes_frames(settings),
            folder: (&settings.window.snapshots).into(),
        });
        let shared = exchange.clone();
        let mut factory: Factory = Box::new(move || {
            Ros2Sink::open(&options, &stream, &shared).map(|sink| Box::new(sink) as Box<dyn Sink>)
        });
        let first = factory().context("--ros2")?;
        sinks.push(Box::new(Restarting::new(first, factory, false)));
        Ok(Some(Arc::new(exchange)))
    }
}
