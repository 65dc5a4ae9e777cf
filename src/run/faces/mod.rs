//! The faces of a run: people and programs see it through them, and may change it. Each is opened from
//! a table, as outputs are.

#[cfg(feature = "ros2")]
mod graph;
#[cfg(feature = "serve")]
mod server;
pub mod service;
pub mod window;

use std::sync::Arc;

use super::live::handles::Handles;
use super::live::opened::Opened;
use crate::pipeline::{Outcome, Timeline};
use crate::run::Error;
use crate::settings::Settings;
use crate::viewer::Viewer;
use crate::window::Remote;
use stereod_io::sink::Sink;

/// Faces of a rig alone, in the order in which their sinks get pairs. Each is bound before anything is opened:
/// a display or a port that cannot be had ends the run early.
const FACES: [fn(&Settings, &[String]) -> Bound; 2] = [graph::bind, window::bind];

/// Faces that all rigs of the program share, in the order in which their sinks get pairs.
const DESKS: [fn(&Settings, &[String]) -> Shared; 3] =
    [server::metrics, server::page, service::bind];

#[cfg(not(feature = "ros2"))]
use no_graph as graph;

#[cfg(any(test, not(feature = "ros2")))]
mod no_graph {
    use super::{Bound, Error, Settings, absent};

    pub fn bind(settings: &Settings, _: &[String]) -> Bound {
        let why = "--ros2: this stereod was built without ROS 2 (Cargo's feature `ros2`)";
        absent(settings.ros2.namespace().is_some(), Error::usage(why))
    }
}

#[cfg(not(feature = "serve"))]
mod server {
    use super::{Settings, Shared, absent};

    const WHY: &str = "this stereod was built without a server (Cargo's feature `serve`)";

    pub fn metrics(settings: &Settings, _: &[String]) -> Shared {
        absent(settings.metrics.listen().is_some(), anyhow::anyhow!(WHY).into())
    }

    pub fn page(settings: &Settings, _: &[String]) -> Shared {
        absent(settings.serve.listen().is_some(), anyhow::anyhow!(WHY).into())
    }
}

/// Fails if a face is wanted that this program was built without.
#[cfg(any(test, not(all(feature = "ros2", feature = "serve"))))]
fn absent<T>(is_wanted: bool, error: Error) -> Result<Option<T>, Error> {
    if is_wanted { Err(error) } else { Ok(None) }
}

/// A face that the rigs of the program share. It ends when it and all faces that it made are dropped.
pub trait Desk: Send + Sync {
    /// Returns the face of the rig of this number.
    fn face(self: Arc<Self>, rig: usize) -> Box<dyn Face>;

    /// Notes that a rig has failed, while others go on.
    fn failed(&self, rig: usize, reason: &str);
}

/// A shared face that the settings or the environment ask for.
pub type Shared = Result<Option<Arc<dyn Desk>>, Error>;

/// The rigs of this program, and the faces that they share. Clones share them.
#[derive(Clone)]
pub struct Rigs {
    /// Their names; a run without `[[rig]]` has an empty one.
    pub names: Arc<[String]>,
    desks: Vec<Arc<dyn Desk>>,
}

impl Rigs {
    pub fn bind(settings: &Settings, names: Vec<String>) -> Result<Self, Error> {
        let desks = DESKS.iter().filter_map(|bind| bind(settings, &names).transpose());
        Ok(Self { desks: desks.collect::<Result<_, _>>()?, names: names.into() })
    }

    /// Notes that a rig has failed, while others go on.
    pub fn failed(&self, rig: usize, reason: &str) {
        self.desks.iter().for_each(|desk| desk.failed(rig, reason));
    }
}

pub struct Faces(Vec<Box<dyn Face>>);

impl Faces {
    /// Opens the faces of the rig of this number.
    pub fn bind(settings: &Settings, rigs: &Rigs, rig: usize) -> Result<Self, Error> {
        let own = FACES.iter().filter_map(|bind| bind(settings, &rigs.names).transpose());
        let shared = rigs.desks.iter().map(|desk| Ok(desk.clone().face(rig)));
        own.chain(shared).collect::<Result<_, _>>().map(Self)
    }

    /// Shows what the run waits for before it is open.
    pub fn wait(&self, why: &str) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|face| face.wait(why))
    }

    pub fn window(&self) -> Option<Remote> {
        self.0.iter().find_map(|face| face.remote())
    }

    pub fn show(&self, what: Shows) -> bool {
        self.0.iter().any(|face| face.shows() >= what)
    }

    pub fn join(
        &mut self,
        run: &Opened,
        sinks: &mut Vec<Box<dyn Sink>>,
    ) -> anyhow::Result<Vec<Arc<dyn Viewer>>> {
        let joined = self.0.iter_mut().filter_map(|face| face.join(run, sinks).transpose());
        joined.collect()
    }

    /// Returns the timeline, if a face moves through the recording, or has a pair of it matched again.
    pub fn timeline(&self, run: &Opened) -> Option<Timeline> {
        let is_moved = run.returns && self.0.iter().any(|face| face.moves());
        is_moved.then(|| {
            let marks = run.loaded().settings.source.marks();
            run.control.playback.change(|playing| playing.marks = marks);
            Timeline { stays: run.stays() }
        })
    }

    pub fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|face| face.serve(handles))
    }

    /// Shows the end of the run on all faces. A window may stay until its user has closed it.
    pub fn end(&mut self, handles: &Handles, outcome: &mut Outcome) {
        self.0.iter_mut().for_each(|face| face.end(handles, outcome));
    }
}

/// A face of a run, which ends when it is dropped.
pub trait Face {
    /// Returns the window's handle, if this is the window.
    fn remote(&self) -> Option<Remote> {
        None
    }

    fn shows(&self) -> Shows {
        Shows::Nothing
    }

    /// Shows what the run waits for before it is open.
    fn wait(&self, _why: &str) -> anyhow::Result<()> {
        Ok(())
    }

    fn join(&mut self, _run: &Opened, _sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        Ok(None)
    }

    /// Reports whether its user moves through recordings.
    fn moves(&self) -> bool {
        false
    }

    fn serve(&mut self, _handles: &Arc<Handles>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Shows the end of the run, and notes its own failure if nothing else has failed.
    fn end(&mut self, _handles: &Handles, _outcome: &mut Outcome) {}
}

/// The most that a face shows of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shows {
    Nothing,
    Images,
    Confidence,
}

/// The viewer that a face is, if it shows settings.
pub type Joined = Option<Arc<dyn Viewer>>;

/// A face that the settings or the environment ask for.
pub type Bound = Result<Option<Box<dyn Face>>, Error>;

#[cfg(test)]
mod tests {
    use crate::settings::tests::settings;

    #[test]
    fn a_program_without_ros_2_names_the_feature() {
        let bound = super::no_graph::bind(&settings(&["ros2.namespace=/front"]), &[]);
        let message = bound.err().expect("nobody can bind it").to_string();
        assert!(message.contains("feature `ros2`"), "{message}");
        assert!(super::no_graph::bind(&settings(&[]), &[]).is_ok_and(|face| face.is_none()));
    }
}
