//! The messages of a run to a ROS 2 graph, and the requests that come from there.

use std::sync::Arc;

use anyhow::Context;

use super::{Bound, Face, Joined, Shows};
use crate::ros2::{Exchange, Links, Ros2Options, Ros2Sink};
use crate::run::knobs::knobs;
use crate::run::live::opened::Opened;
use crate::run::open::outputs;
use crate::settings::Settings;
use stereod_io::sink::Sink;
use stereod_io::sink::restarting::{Factory, Restarting};

/// Joins the graph later, if the settings ask for it.
pub fn bind(settings: &Settings, _: &[String]) -> Bound {
    let namespace = settings.ros2.namespace();
    Ok(namespace.map(|namespace| Box::new(Graph { namespace }) as Box<dyn Face>))
}

struct Graph {
    namespace: String,
}

impl Face for Graph {
    fn shows(&self) -> Shows {
        Shows::Images
    }

    fn join(&mut self, run: &Opened, sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        let loaded = run.loaded();
        let settings = &loaded.settings;
        let (namespace, ros2) = (self.namespace.clone(), &settings.ros2);
        let (topics, reliable) = (ros2.topics.clone(), ros2.reliable);
        let prefix = settings.output.frame_prefix.clone();
        let options = Ros2Options { namespace, topics, prefix, reliable };
        let stream = outputs::stream_info(run, &loaded);
        let (requests, of_status) = (run.requests.clone(), run.status.clone());
        let exchange = Exchange::new(Links {
            name: run.info.description.clone(),
            rig: loaded.rig().map(str::to_owned),
            knobs: knobs(&loaded),
            ask: Box::new(move |wanted| requests.ask(wanted)),
            diagnosis: Box::new(move || of_status.get().diagnosis()),
            control: run.control.clone(),
            writes_frames: outputs::writes_frames(settings),
            folder: (&settings.window.snapshots).into(),
        });
        let shared = exchange.clone();
        let mut factory: Factory = Box::new(move |_| {
            Ros2Sink::open(&options, &stream, &shared).map(|sink| Box::new(sink) as Box<dyn Sink>)
        });
        let first = factory(None).context("--ros2")?;
        sinks.push(Box::new(Restarting::new("ros2", first, Some(factory), false)));
        Ok(Some(Arc::new(exchange)))
    }
}
