//! Outcome of a shard, in words and for programs.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;

use super::work::Ended;
use crate::cli::batch::BatchArgs;
use crate::commands::{Error, print, signals};
use crate::run::error::BAD_INPUT;

/// Outcome of a shard, for scripts.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Its number in the user's counting; absent without shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<u64>,
    pieces: usize,
    pub made: usize,
    /// Pieces that existed before.
    pub there: usize,
    /// Pieces that another worker is making.
    pub busy: Vec<String>,
    /// Pieces that failed, with the reason; a retry may help.
    failed: Vec<Failure>,
    /// Pieces with a missing or damaged input, with the reason.
    bad: Vec<Failure>,
    pairs: u64,
    /// Damaged frames of their inputs, concealed or left out.
    damaged: u64,
    /// Duration in seconds.
    seconds: f64,
    status: u8,
}

#[derive(Debug, Serialize)]
struct Failure {
    piece: String,
    reason: String,
}

impl Summary {
    /// Begins with the number of pieces, the shard, if there are any, and their number.
    pub fn new(pieces: usize, shard: Option<(u64, u64)>) -> Self {
        let (shard, shards) = shard.unzip();
        Self { shard, shards, pieces, ..Self::default() }
    }

    /// Counts a piece by its end, and reports it. Breaks after a signal.
    pub fn note(&mut self, name: &str, ended: Ended) -> ControlFlow<()> {
        let failure = |reason| Failure { piece: name.to_owned(), reason };
        match ended {
            Ended::Done(manifest) => {
                let pairs = manifest.pairs;
                self.made += 1;
                self.pairs += pairs;
                self.damaged += manifest.damaged;
                let (number, pieces) = (self.ended(), self.pieces);
                tracing::info!("{name}: {pairs} pairs ({number} of {pieces} pieces)");
            }
            Ended::WasThere => self.there += 1,
            Ended::Busy => {
                tracing::warn!("{name}: another worker is making it");
                self.busy.push(name.to_owned());
            }
            Ended::BadInput(reason) => {
                tracing::error!("{name}: {reason}");
                self.bad.push(failure(reason));
            }
            Ended::Failed(reason) => {
                tracing::error!("{name}: {reason}; a retry may help");
                self.failed.push(failure(reason));
            }
            Ended::Stopped => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Returns the number of pieces that are counted.
    fn ended(&self) -> usize {
        self.made + self.there + self.busy.len() + self.failed.len() + self.bad.len()
    }

    pub fn print(mut self, time: Duration, args: &BatchArgs) -> Result<(), Error> {
        self.seconds = (time.as_secs_f64() * 1000.0).round() / 1000.0;
        let outcome = outcome(&self);
        self.status = outcome.as_ref().map_or_else(Error::exit_status, |()| 0);
        match args.json {
            true => print(serde_json::to_string(&self).map_err(anyhow::Error::from)? + "\n")?,
            false if args.common.quiet => {}
            false => print(in_words(&self))?,
        }
        outcome
    }
}

/// Returns an error if pieces are left to do after a signal or a failure.
fn outcome(summary: &Summary) -> Result<(), Error> {
    let Summary { made, there, busy, failed, bad, pieces, .. } = summary;
    let left = pieces - summary.ended();
    let named = |failures: &[Failure]| match failures {
        [Failure { piece, reason }] => format!("{piece}: {reason}"),
        [Failure { piece, reason }, ..] => {
            format!("{} pieces failed, the first one is {piece}: {reason}", failures.len())
        }
        [] => String::new(),
    };
    match () {
        () if left > 0 => stopped(made + there),
        () if !failed.is_empty() => Err(anyhow!("{}; a retry may help", named(failed)).into()),
        () if !busy.is_empty() => {
            let (count, first) = (busy.len(), &busy[0]);
            Err(anyhow!(
                "another worker is making {first}; {count} of {pieces} pieces are left to it"
            )
            .into())
        }
        () if !bad.is_empty() => {
            Err(Error::Input(anyhow!("{}; a retry does not help", named(bad)), BAD_INPUT))
        }
        () => Ok(()),
    }
}

fn in_words(summary: &Summary) -> String {
    let Summary { shard, shards, pieces, made, there, pairs, damaged, seconds, .. } = summary;
    let mut text = match (shard, shards) {
        (Some(shard), Some(shards)) => format!("shard {shard} of {shards}: "),
        _ => String::new(),
    };
    let _ = write!(text, "{pieces} pieces: {made} made, {there} there before");
    for (count, what) in [
        (summary.busy.len(), "left to another worker"),
        (summary.failed.len(), "failed"),
        (summary.bad.len(), "with a missing or damaged input"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if *damaged > 0 {
        let _ = write!(text, ", damaged frames in the inputs: {damaged}");
    }
    let _ = writeln!(text, "; {pairs} pairs in {seconds:.1} s");
    text
}

pub fn stopped(done: usize) -> Result<(), Error> {
    let status = signals::exit_status().unwrap_or(1);
    Err(Error::Stopped(
        anyhow!("stopped by a signal; {done} pieces are whole and will be kept"),
        status,
    ))
}
