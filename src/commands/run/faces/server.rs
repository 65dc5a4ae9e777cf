//! Metrics, and the live page with the Foxglove protocol, each on a port.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use super::{Bound, Face, Joined, Opened, Shows};
use crate::commands::run::knobs::knobs;
use crate::commands::run::live::handles::Handles;
use crate::commands::run::open::outputs;
use crate::commands::{signals, told};
use crate::pipeline::Outcome;
use crate::serve::{
    Access, Ending, Hosts, Listener, Live, LiveSink, Server, Site, State, Token, addresses, live,
};
use crate::settings::{self, Settings};
use crate::status::RunStatus;
use crate::telemetry::progress::Health;
use crate::telemetry::stderr;
use crate::viewer::Tuned;
use stereod_io::sink::Sink;

pub fn metrics(settings: &Settings) -> Bound {
    let Some(address) = settings.metrics.listen() else { return Ok(None) };
    let listener = Some(Listener::bind(address)?);
    Ok(Some(Box::new(Metrics { listener, server: None })))
}

pub fn page(settings: &Settings) -> Bound {
    let Some(address) = settings.serve.listen() else { return Ok(None) };
    let token = match settings.serve.token_file() {
        Some(file) => Token::of_file(&file)?,
        None => Token::random()?,
    };
    let listener = Some(Listener::bind(address)?);
    Ok(Some(Box::new(Page { listener, token, live: None, server: None })))
}

struct Metrics {
    /// `None` once it is served.
    listener: Option<Listener>,
    server: Option<Server>,
}

impl Face for Metrics {
    fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let server = Server::start(listener, site(handles, Access::default(), None))?;
        tracing::info!("metrics on http://{}/metrics", server.address());
        self.server = Some(server);
        Ok(())
    }
}

struct Page {
    /// `None` once it is served.
    listener: Option<Listener>,
    token: Token,
    /// `None` until it has joined the run.
    live: Option<Live>,
    server: Option<Server>,
}

impl Face for Page {
    fn shows(&self) -> Shows {
        Shows::Confidence
    }

    fn join(&mut self, run: &Opened<'_>, sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        let (settings, requests) = (&run.loaded.settings, run.requests.clone());
        let page = Live::new(live::Source {
            name: run.info.description.clone(),
            is_live: run.info.live,
            control: run.control.clone(),
            colouring: run.colouring.clone(),
            clouds: settings.output.clouds(),
            tuned: Tuned {
                answered: Vec::new(),
                knobs: knobs(run.loaded),
                since: Instant::now(),
                colouring: run.colouring.get(),
                problem: None,
            },
            ask: Box::new(move |wanted| requests.ask(wanted)),
            clock: run.clock,
            frame_prefix: settings.output.frame_prefix.clone(),
            files: outputs::files_of_frames(settings).collect(),
            settings_file: settings.window.settings(),
            folder: (&settings.window.snapshots).into(),
        });
        sinks.push(Box::new(LiveSink::new(page.clone())));
        self.live = Some(page.clone());
        Ok(Some(Arc::new(page)))
    }

    fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let settings = handles.loaded().settings.serve;
        let is_required = !listener.is_loopback() || settings.require_token;
        let access = Access { token: Some(self.token.clone()), is_required };
        let server = Server::start(listener, site(handles, access, self.live.clone()))?;
        let address = server.address();
        let reachable = addresses::reachable(address);
        match settings.token_file() {
            // Not a log event, whose secrets are hidden.
            None => {
                let page = |host| format!("http://{host}/?token={}", self.token.text());
                reachable.iter().for_each(|host| stderr::tell(&format!("page on {}", page(host))));
                if !address.ip().is_loopback() && std::io::stderr().is_terminal() {
                    reachable.first().and_then(|host| addresses::qr(&page(host))).iter().for_each(
                        |code| stderr::tell(&format!("the first address for a phone:\n{code}")),
                    );
                }
            }
            Some(file) => reachable.iter().for_each(|host| {
                let file = file.display();
                tracing::info!("page on http://{host}/ with ?token= and the text of {file}");
            }),
        }
        self.server = Some(server);
        Ok(())
    }

    fn end(&mut self, _: &Handles, outcome: &mut Outcome) {
        self.live.iter().for_each(|live| live.set_ending(ending(outcome)));
    }
}

fn site(handles: &Arc<Handles>, access: Access, live: Option<Live>) -> Site {
    let hosts = Arc::new(Hosts::new(handles.loaded().settings.metrics.hosts()));
    Site { hosts, access, state: handles.clone(), live }
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
