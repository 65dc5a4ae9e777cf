//! The faces of a run: people and programs see it through them, and may change it. Each is opened from
//! a table, as outputs are.

pub mod face;
#[cfg(feature = "ros2")]
mod graph;
#[cfg(feature = "serve")]
mod server;
mod window;

use std::sync::Arc;

use super::live::handles::Handles;
use super::live::service;
use crate::commands::Error;
use crate::pipeline::{Outcome, Timeline};
use crate::settings::Settings;
use crate::viewer::Viewer;
use crate::window::Remote;
use face::{Bound, Face};
pub use face::{Opened, Shows};
use stereod_io::sink::Sink;

/// The faces, in the order in which their sinks get pairs. Each is bound before anything is opened:
/// a display or a port that cannot be had ends the run early.
const FACES: [fn(&Settings) -> Bound; 5] =
    [graph::bind, window::bind, server::metrics, server::page, service::bind];

#[cfg(not(feature = "ros2"))]
mod graph {
    use super::{Bound, Error, Settings, absent};

    /// Refuses to join a graph.
    pub fn bind(settings: &Settings) -> Bound {
        let why = "--ros2: this stereod was built without ROS 2 (Cargo's feature `ros2`)";
        absent(settings.ros2.namespace().is_some(), Error::usage(why))
    }
}

#[cfg(not(feature = "serve"))]
mod server {
    use super::{Bound, Settings, absent};

    const WHY: &str = "this stereod was built without a server (Cargo's feature `serve`)";

    /// Refuses to serve metrics.
    pub fn metrics(settings: &Settings) -> Bound {
        absent(settings.metrics.listen().is_some(), anyhow::anyhow!(WHY).into())
    }

    /// Refuses to serve the page.
    pub fn page(settings: &Settings) -> Bound {
        absent(settings.serve.listen().is_some(), anyhow::anyhow!(WHY).into())
    }
}

/// Fails if a face is wanted that this program was built without.
#[cfg(not(all(feature = "ros2", feature = "serve")))]
fn absent(is_wanted: bool, error: Error) -> Bound {
    if is_wanted { Err(error) } else { Ok(None) }
}

/// The faces of a run.
pub struct Faces(Vec<Box<dyn Face>>);

impl Faces {
    /// Binds the faces that the settings ask for.
    pub fn bind(settings: &Settings) -> Result<Self, Error> {
        let faces = FACES.iter().filter_map(|bind| bind(settings).transpose());
        faces.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the handle of the window, if there is one.
    pub fn window(&self) -> Option<Remote> {
        self.0.iter().find_map(|face| face.remote())
    }

    /// Reports whether a face shows this.
    pub fn show(&self, what: Shows) -> bool {
        self.0.iter().any(|face| face.shows() >= what)
    }

    /// Lets all faces take part in the run, and returns the viewers.
    pub fn join(
        &mut self,
        run: &Opened<'_>,
        sinks: &mut Vec<Box<dyn Sink>>,
    ) -> anyhow::Result<Vec<Arc<dyn Viewer>>> {
        let joined = self.0.iter_mut().filter_map(|face| face.join(run, sinks).transpose());
        joined.collect()
    }

    /// Returns the timeline, if a face moves through the run.
    pub fn timeline(&self) -> Option<Timeline> {
        self.0.iter().find_map(|face| face.timeline())
    }

    /// Lets all faces show the run.
    pub fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|face| face.serve(handles))
    }

    /// Shows the end of the run on all faces. A window may stay until its user has closed it.
    pub fn end(&mut self, handles: &Handles, outcome: &mut Outcome) {
        self.0.iter_mut().for_each(|face| face.end(handles, outcome));
    }
}
