//! Disparity engines, and the choice of one.

pub mod cpu;
pub mod cuda;
mod interface;
mod options;
pub mod tiled;
mod tiling;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::matching::Params;
use cuda::Unusable;
pub use interface::{Engine, PairSpec};
pub use options::{Choice, Options, Tiling};

/// Makes the engine of this choice for such pairs. `params` must have passed [`Params::check`].
pub fn create(
    choice: Choice,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Box<dyn Engine>> {
    params.check_width(pairs.size.0)?;
    tiling::check(params, pairs, options)?;
    let on_cpu = || tiling::on_cpu(params, pairs, options);
    if choice == Choice::Cpu {
        return on_cpu();
    }
    let error = match tiling::on_cuda(params, pairs, options) {
        Ok(engine) => return Ok(engine),
        Err(error) => error,
    };
    if choice == Choice::Cuda {
        return Err(error).context("the CUDA engine cannot be used (`engine=cpu` needs no GPU)");
    }
    let asked_for = options.cuda.asked_for();
    let ignored = match &asked_for[..] {
        [] => String::new(),
        keys => format!("; ignored: engine.{}", keys.join(", engine.")),
    };
    match error.downcast_ref::<Unusable>() {
        // The named device does not exist; falling back silently would surprise the user.
        Some(Unusable::NoSuchDevice { .. }) => return Err(error),
        // Most machines without a driver have no such GPU either. `stereod devices` names the reason.
        Some(Unusable::NoDriver) if asked_for.is_empty() && !cuda::is_fitted(Path::new("/sys")) => {
            tracing::debug!("using the CPU: {}", Unusable::NoDriver);
        }
        Some(reason) if reason.is_absence() => say_once(&format!("{reason}{ignored}")),
        _ => tracing::warn!("using the CPU, not CUDA: {}{ignored}", on_one_line(&error)),
    }
    on_cpu()
}

/// Logs the reason for using the CPU, once, because an absent GPU stays absent.
fn say_once(reason: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Measurements of rates (`--fit`) disable the logs, so that the message would be lost.
    if tracing::enabled!(tracing::Level::INFO) && !SAID.swap(true, Ordering::Relaxed) {
        tracing::info!("using the CPU: {reason}");
    }
}

/// The error with its causes, without the compiler's listing.
fn on_one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().next().unwrap_or_default().to_owned()
}
