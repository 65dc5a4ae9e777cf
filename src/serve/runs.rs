//! The runs that a server shows: one at the root, or several rigs, each below its name (`/front/`).

use std::sync::{Arc, Mutex};

use hyper::{Request, Uri};

use super::State;
use super::live::Live;
use stereod_core::thread::locked;

/// A run whose faces are open.
#[derive(Clone)]
pub struct Run {
    pub state: Arc<dyn State>,
    /// The live page; `None` for metrics alone.
    pub live: Option<Live>,
}

/// All runs of the program. Clones share them.
#[derive(Clone)]
pub struct Runs {
    names: Arc<[String]>,
    states: Arc<Mutex<Vec<Place>>>,
}

/// The place that a request names.
#[derive(Clone)]
pub enum Place {
    Run(Run),
    /// A run that is not open yet, or has failed; says so in words.
    Away(String),
    /// Above the rigs.
    Root,
}

impl Runs {
    pub fn new(names: &[String]) -> Self {
        let states = vec![Place::Away("not started yet".to_owned()); names.len()];
        let states = Arc::new(Mutex::new(states));
        Self { names: names.into(), states }
    }

    pub fn names(&self) -> Arc<[String]> {
        self.names.clone()
    }

    pub fn open(&self, number: usize, run: Run) {
        locked(&self.states)[number] = Place::Run(run);
    }

    /// Notes that a run is not open yet, and what it waits for.
    pub fn waits(&self, number: usize, why: &str) {
        locked(&self.states)[number] = Place::Away(why.to_owned());
    }

    pub fn failed(&self, number: usize, reason: &str) {
        locked(&self.states)[number] = Place::Away(format!("failed: {reason}"));
    }

    /// Returns the pages of all runs that are open.
    pub fn live(&self) -> Vec<Live> {
        let live = |state: &Place| match state {
            Place::Run(run) => run.live.clone(),
            _ => None,
        };
        locked(&self.states).iter().filter_map(live).collect()
    }

    /// Returns the path of each run, with a slash at its end.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let names = if self.names.len() > 1 { &*self.names } else { &[] };
        let one = (self.names.len() == 1).then(|| "/".to_owned());
        one.into_iter().chain(names.iter().map(|name| format!("/{name}/")))
    }

    /// Returns the run that a request is about, and removes its path from the request.
    pub fn place<B>(&self, request: &mut Request<B>) -> Place {
        let number = match &*self.names {
            [_] => 0,
            names => {
                let path = request.uri().path().trim_start_matches('/');
                let Some((first, rest)) = path.split_once('/') else { return Place::Root };
                let Some(number) = names.iter().position(|name| name == first) else {
                    return Place::Root;
                };
                let query = request.uri().query().map(|query| format!("?{query}"));
                // The rest of a valid address is a valid one.
                let below = format!("/{rest}{}", query.unwrap_or_default()).parse::<Uri>();
                *request.uri_mut() = below.unwrap_or_default();
                number
            }
        };
        locked(&self.states)[number].clone()
    }

    /// Reports whether all runs are well, and each in words.
    pub fn health(&self) -> (bool, String) {
        let states = locked(&self.states).clone();
        let each = self.names.iter().zip(states).map(|(name, state)| {
            let health = match state {
                Place::Run(run) => run.state.health(),
                Place::Away(reason) => Err(reason),
                Place::Root => Err("no rig".into()),
            };
            let well = health.is_ok();
            let how = health.map(|how| format!("ok: {how}")).unwrap_or_else(|reason| reason);
            (well, format!("{name}: {how}\n"))
        });
        each.fold((true, String::new()), |(well, text), (is_well, how)| {
            (well && is_well, text + &how)
        })
    }
}
