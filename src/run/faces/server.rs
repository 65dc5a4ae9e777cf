//! Metrics, and the live page with the Foxglove protocol, each on a port that all rigs share.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::{Desk, Face, Joined, Shared, Shows};
use crate::pipeline::Outcome;
use crate::run::knobs::knobs;
use crate::run::live::handles::Handles;
use crate::run::live::opened::Opened;
use crate::run::open::outputs;
use crate::run::report::WAITS;
use crate::run::{signals, told};
use crate::serve::{
    Access, Ending, Hosts, Listener, Live, LiveSink, Run, Runs, Server, Site, State, Token,
    addresses, live,
};
use crate::settings::{self, Ground, Settings};
use crate::status::RunStatus;
use crate::telemetry::progress::Health;
use crate::telemetry::stderr;
use crate::viewer::Tuned;
use stereod_core::thread::locked;
use stereod_io::sink::Sink;

pub fn metrics(settings: &Settings, rigs: &[String]) -> Shared {
    let Some(address) = settings.metrics.listen() else { return Ok(None) };
    let (listener, access) = (Listener::bind(address)?, Access::default());
    let site = site(settings, access, rigs);
    Ok(Some(Arc::new(Served { page: None, site, server: Mutex::new((Some(listener), None)) })))
}

pub fn page(settings: &Settings, rigs: &[String]) -> Shared {
    let Some(address) = settings.serve.listen() else { return Ok(None) };
    let token = match settings.serve.token_file() {
        Some(file) => Token::of_file(&file)?,
        None => Token::random()?,
    };
    let listener = Listener::bind(address)?;
    let is_required = !listener.is_loopback() || settings.serve.require_token;
    let site = site(settings, Access { token: Some(token.clone()), is_required }, rigs);
    let page = Some((token, settings.serve.token_file()));
    Ok(Some(Arc::new(Served { page, site, server: Mutex::new((Some(listener), None)) })))
}

fn site(settings: &Settings, access: Access, rigs: &[String]) -> Site {
    let hosts = Arc::new(Hosts::new(settings.metrics.hosts()));
    Site { hosts, access, runs: Runs::new(rigs) }
}

/// A server that all rigs share.
struct Served {
    /// The token of the page, and the file that holds it; `None` for metrics.
    page: Option<(Token, Option<PathBuf>)>,
    site: Site,
    /// Its socket until it has started, and it from then on.
    server: Mutex<(Option<Listener>, Option<Server>)>,
}

impl Desk for Served {
    fn face(self: Arc<Self>, rig: usize) -> Box<dyn Face> {
        Box::new(Seen { served: self, rig, live: None })
    }

    fn failed(&self, rig: usize, reason: &str) {
        self.site.runs.failed(rig, reason);
    }
}

impl Served {
    /// Starts the server once.
    fn start(&self) -> anyhow::Result<()> {
        let mut state = locked(&self.server);
        let Some(listener) = state.0.take() else { return Ok(()) };
        let server = Server::start(listener, self.site.clone())?;
        self.tell(server.address());
        state.1 = Some(server);
        Ok(())
    }

    /// Tells people the addresses.
    fn tell(&self, address: SocketAddr) {
        let Some((token, file)) = &self.page else {
            self.site.runs.paths().for_each(|path| {
                tracing::info!("metrics on http://{address}{path}metrics");
            });
            if self.site.runs.names().len() > 1 {
                tracing::info!("metrics of the process on http://{address}/metrics");
            }
            return;
        };
        let reachable = addresses::reachable(address);
        match file {
            // Not a log event, whose secrets are hidden.
            None => {
                let page = |host| format!("http://{host}/?token={}", token.text());
                reachable.iter().for_each(|host| stderr::tell(&format!("page on {}", page(host))));
                if !address.ip().is_loopback() && std::io::stderr().is_terminal() {
                    reachable.first().and_then(|host| addresses::qr(&page(host))).iter().for_each(
                        |code| stderr::tell(&format!("the first address for a phone:\n{code}")),
                    );
                }
            }
            Some(file) => reachable.iter().for_each(|host| {
                let file = file.display();
                tracing::info!("page on http://{host}/ with the token in {file}");
            }),
        }
    }
}

/// The part of a server that shows one rig.
struct Seen {
    served: Arc<Served>,
    rig: usize,
    /// `None` for metrics, and until the page has joined the run.
    live: Option<Live>,
}

impl Face for Seen {
    fn shows(&self) -> Shows {
        if self.served.page.is_some() { Shows::Confidence } else { Shows::Nothing }
    }

    fn wait(&self, why: &str) -> anyhow::Result<()> {
        self.served.site.runs.waits(self.rig, why);
        self.served.start()
    }

    fn join(&mut self, run: &Opened, sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        if self.served.page.is_none() {
            return Ok(None);
        }
        let (loaded, requests) = (run.loaded(), run.requests.clone());
        let settings = &loaded.settings;
        let page = Live::new(live::Source {
            name: run.info.description.clone(),
            rigs: self.served.site.runs.names(),
            rig: self.rig,
            is_live: run.info.live,
            control: run.control.clone(),
            colouring: run.colouring.clone(),
            clouds: settings.output.clouds(),
            tuned: Tuned {
                answers: Vec::new(),
                knobs: knobs(&loaded),
                since: Instant::now(),
                colouring: run.colouring.get(),
            },
            ask: Box::new(move |wanted| requests.ask(wanted)),
            clock: run.clock,
            span: run.span.clone(),
            zones: settings.finds_obstacles().then(|| run.finding.zones.clone()),
            frame_prefix: settings.output.frame_prefix.clone(),
            tracks_ground: settings.mount.ground == Ground::Track,
            recorder: outputs::recorder(settings, run.control.recordings.clone()),
        });
        sinks.push(Box::new(LiveSink::new(page.clone())));
        self.live = Some(page.clone());
        Ok(Some(Arc::new(page)))
    }

    fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        let run = Run { state: handles.clone(), live: self.live.clone() };
        self.served.site.runs.open(self.rig, run);
        self.served.start()
    }

    fn moves(&self) -> bool {
        self.live.is_some()
    }

    fn end(&mut self, handles: &Handles, outcome: &mut Outcome) {
        // A source that cannot be moved is over; its last images stay.
        let stop = &handles.control.stop;
        if self.live.is_some() && outcome.error.is_none() && !stop.is_set() && handles.stays() {
            tracing::info!("{WAITS}");
            while !stop.is_set() {
                std::thread::sleep(crate::run::TICK);
            }
        }
        self.live.iter().for_each(|live| live.end(ending(outcome)));
    }
}

/// Returns the end of a run as viewers are told. They try again unless it has reached its own end, because a
/// service is started again.
fn ending(outcome: &Outcome) -> Ending {
    match &outcome.error {
        Some(error) => Ending::away(format!("the run has failed: {}", told(error))),
        None if signals::interrupted() => Ending::away("stereod was stopped".into()),
        None => Ending::finished(format!("the run has ended after {} pairs", outcome.matched)),
    }
}

impl State for Handles {
    fn status(&self) -> Arc<RunStatus> {
        self.status.get()
    }

    fn health(&self) -> Health {
        Handles::health(self)
    }

    fn settings(&self) -> String {
        settings::to_file(&self.loaded())
    }
}
