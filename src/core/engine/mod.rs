//! Disparity engines, and the choice of one.

mod constants;
pub mod cpu;
pub mod cuda;
pub mod difference;
mod interface;
mod learned;
mod moving;
#[cfg(feature = "onnx")]
pub mod network;
mod prior;
pub mod tiled;
mod tiling;
#[cfg(feature = "wgpu")]
pub mod webgpu;

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};

use crate::matching::Params;
use crate::matching::learned::Cells;
use crate::matching::tiles::{NoTiles, Tiles};
use cpu::CpuOptions;
pub use cpu::take_turns;
use cuda::{CudaOptions, Unusable};
pub use interface::{Engine, PairSpec, Refusal};
pub use learned::device::HalvedNetwork;
use moving::{Carrying, MovingEngine};
pub use prior::predicted;
use prior::{Predictor, guided};

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Choice {
    /// The fastest that works on this machine.
    #[default]
    Auto,
    /// An NVIDIA GPU, or an error.
    Cuda,
    /// A GPU of any maker, or an error.
    Wgpu,
    Cpu,
    /// The network in this ONNX file.
    Network(Arc<Path>),
}

impl FromStr for Choice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "cuda" => Self::Cuda,
            "wgpu" => Self::Wgpu,
            "cpu" => Self::Cpu,
            text => match text.strip_prefix("onnx:") {
                Some(file) if !file.is_empty() => Self::Network(Path::new(file).into()),
                _ => return Err("`auto`, `cuda`, `wgpu`, `cpu` or `onnx:FILE`"),
            },
        })
    }
}

impl TryFrom<String> for Choice {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Check of a network's disparity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    #[default]
    Off,
    /// Matching of the same pairs, on the fastest engine for it.
    Sgm,
}

/// Source of the map that guides the matching where texture is below the noise.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum PriorFrom {
    /// The map of the half-size images.
    #[default]
    HalfSize,
    /// The network of the program ([`crate::matching::learned`]), and that map where it is not sure.
    Learned(Cells),
    /// The network in this ONNX file, and that map where it knows nothing.
    Network(Arc<Path>),
}

impl PriorFrom {
    /// Reports whether a text names a source, rightly or not, and no number of levels.
    pub fn is_meant(text: &str) -> bool {
        ["half-size", "network", "onnx"].iter().any(|word| text.starts_with(word))
    }
}

impl FromStr for PriorFrom {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("onnx:") {
            Some(file) if !file.is_empty() => Ok(Self::Network(Path::new(file).into())),
            _ => match text {
                "half-size" => Ok(Self::HalfSize),
                "network" => Ok(Self::Learned(Cells::Auto)),
                "network:fine" => Ok(Self::Learned(Cells::Fine)),
                "network:coarse" => Ok(Self::Learned(Cells::Coarse)),
                _ => Err("`half-size`, `network`, `network:fine`, `network:coarse` or `onnx:FILE`"),
            },
        }
    }
}

impl TryFrom<String> for PriorFrom {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Size of the images that a network gets for the prior.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub enum PriorSize {
    #[default]
    #[serde(rename = "1")]
    Whole,
    #[serde(rename = "1/2")]
    Half,
    #[serde(rename = "1/4")]
    Quarter,
}

impl PriorSize {
    /// Returns how often the images are halved.
    pub fn halvings(self) -> u32 {
        match self {
            Self::Whole => 0,
            Self::Half => 1,
            Self::Quarter => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tiling {
    /// The whole image if it fits the memory, else the smallest number of full-width bands that fits.
    #[default]
    Auto,
    /// The whole image, or an error.
    Off,
    /// This layout.
    Into(Tiles),
}

/// Error for a text that is no tiling; it states the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`auto`, `off`, or {0}")]
pub struct NoTiling(NoTiles);

impl FromStr for Tiling {
    type Err = NoTiling;

    fn from_str(text: &str) -> Result<Self, NoTiling> {
        match text {
            "auto" => Ok(Tiling::Auto),
            "off" => Ok(Tiling::Off),
            text => text.parse().map(Tiling::Into).map_err(NoTiling),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub cpu: CpuOptions,
    pub cuda: CudaOptions,
    pub tiling: Tiling,
    /// For a network as engine only.
    pub check: Check,
    pub prior_from: PriorFrom,
    pub prior_size: PriorSize,
    /// Bytes of the budget that `auto` tiles leave free.
    pub spare: u64,
}

impl Options {
    /// Returns the network of the program for pairs of a size, if it predicts prior maps.
    pub fn own_network(&self, params: &Params, pairs: (usize, usize)) -> Option<HalvedNetwork> {
        match self.prior_from {
            PriorFrom::Learned(cells) => {
                let halvings = self.prior_size.halvings();
                Some(HalvedNetwork::own(cells, pairs, params.range.max(), halvings))
            }
            PriorFrom::HalfSize | PriorFrom::Network(_) => None,
        }
    }
}

/// Makes the engine of this choice for such pairs. `params` must have passed [`Params::check`]. Steady maps with
/// confidences are carried along the motion of the rig ([`crate::matching::carry`]).
pub fn create(
    choice: &Choice,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Box<dyn Engine>> {
    let engine = match (&options.prior_from, choice) {
        // The pairs bring their own prior maps.
        _ if params.prior_map => {
            let options = Options { prior_from: PriorFrom::HalfSize, ..options.clone() };
            choose(choice, params, pairs, &options)?
        }
        (PriorFrom::HalfSize, _) => {
            let asks_network = params.fill.is_some_and(|fill| fill.rule.asks_network());
            if asks_network && !matches!(choice, Choice::Network(_)) {
                bail!(Refusal::Parameter(
                    "`fill` asks the network that is the prior, but there is none; set `prior` to `network`, or `fill` \
                     to `rays`"
                        .into()
                ));
            }
            choose(choice, params, pairs, options)?
        }
        (_, Choice::Network(_)) => bail!(Refusal::Parameter(
            "a network as engine takes no prior; leave `prior_from` or `engine.kind` out".into()
        )),
        _ => {
            prior::with_network(params, pairs.size)?;
            choose(choice, params, pairs, options)?
        }
    };
    if params.confidence.is_none() || (params.steady.is_none() && !params.odometry) {
        return Ok(engine);
    }
    let carrying = |how| Carrying::new(how, params.range, pairs, options.cpu.threads);
    let carrying = params.steady.map(carrying).transpose()?;
    Ok(Box::new(MovingEngine::new(engine, pairs, params.odometry, carrying)))
}

/// Fails if no such engine can be made, as far as this is known without making it. `choice`: that of an engine that
/// was made.
pub fn check(
    choice: &Choice,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<()> {
    params.check_width(pairs.size.0)?;
    tiling::check(params, pairs, options)?;
    if *choice == Choice::Cpu { tiling::check_memory(params, pairs, options) } else { Ok(()) }
}

fn choose(
    choice: &Choice,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Box<dyn Engine>> {
    params.check_width(pairs.size.0)?;
    tiling::check(params, pairs, options)?;
    let on_cpu = |params: &Params, pairs: &PairSpec| tiling::on_cpu(params, pairs, options);
    match choice {
        Choice::Cpu => return guided(params, pairs, options, on_cpu),
        Choice::Wgpu => return on_wgpu(params, pairs, options),
        Choice::Network(file) => return of_network(file, params, pairs, options),
        Choice::Auto | Choice::Cuda => {}
    }
    let error = match tiling::on_cuda(params, pairs, options) {
        Ok(engine) => return Ok(engine),
        Err(error) => error,
    };
    if *choice == Choice::Cuda {
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
    // Options for NVIDIA's GPUs hold for no other.
    #[cfg(feature = "wgpu")]
    if asked_for.is_empty() {
        let faster = |cpu, params: &Params, pairs: &PairSpec| {
            Ok(webgpu::trial::faster(cpu, params, pairs, options))
        };
        return match options.prior_from {
            // Each of the two engines runs the network of the program.
            PriorFrom::Learned(_) => faster(guided(params, pairs, options, on_cpu)?, params, pairs),
            _ => guided(params, pairs, options, |params, pairs| {
                faster(on_cpu(params, pairs)?, params, pairs)
            }),
        };
    }
    guided(params, pairs, options, on_cpu)
}

#[cfg(feature = "onnx")]
fn of_network(
    file: &Arc<Path>,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Box<dyn Engine>> {
    let sgm = match options.check {
        Check::Off => None,
        Check::Sgm => {
            let params = params.clone().with_confidence(params.confidence.or(Some(0)));
            let pairs = PairSpec { rectifier: None, ..pairs.clone() };
            Some(choose(&Choice::Auto, &params, &pairs, options)?)
        }
    };
    Ok(Box::new(network::NetworkEngine::new(file, params, pairs, options, sgm)?))
}

/// Makes the network that predicts prior maps of `size` for pairs of a size.
fn predictor(
    params: &Params,
    pairs: (usize, usize),
    size: (usize, usize),
    options: &Options,
) -> anyhow::Result<Box<dyn Predictor>> {
    match (&options.prior_from, options.own_network(params, pairs)) {
        (_, Some(network)) => Ok(Box::new(prior::Learned::new(network, pairs, size, options.cpu)?)),
        (PriorFrom::Network(file), None) => of_file(file, params, pairs, size, options),
        (_, None) => bail!("no network predicts the prior maps"),
    }
}

#[cfg(feature = "onnx")]
fn of_file(
    file: &Arc<Path>,
    params: &Params,
    pairs: (usize, usize),
    size: (usize, usize),
    options: &Options,
) -> anyhow::Result<Box<dyn Predictor>> {
    Ok(Box::new(network::NetworkPrior::new(file, pairs, params.range, size, options)?))
}

#[cfg(not(feature = "onnx"))]
fn of_network(
    file: &Path,
    _: &Params,
    _: &PairSpec,
    _: &Options,
) -> anyhow::Result<Box<dyn Engine>> {
    Err(without_networks(file))
}

#[cfg(not(feature = "onnx"))]
fn of_file(
    file: &Path,
    _: &Params,
    _: (usize, usize),
    _: (usize, usize),
    _: &Options,
) -> anyhow::Result<Box<dyn Predictor>> {
    Err(without_networks(file))
}

#[cfg(not(feature = "onnx"))]
fn without_networks(file: &Path) -> anyhow::Error {
    let text =
        format!("built without networks; build with the feature `onnx` for {}", file.display());
    Refusal::Device(text).into()
}

#[cfg(feature = "wgpu")]
fn on_wgpu(
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Box<dyn Engine>> {
    let made = tiling::on_wgpu(params, pairs, options);
    made.context("the wgpu engine cannot be used (`engine=cpu` needs no GPU)")
}

#[cfg(not(feature = "wgpu"))]
fn on_wgpu(_: &Params, _: &PairSpec, _: &Options) -> anyhow::Result<Box<dyn Engine>> {
    bail!(Refusal::Device(
        "built without the wgpu engine; use `engine=cpu`, or build with the feature `wgpu`".into()
    ))
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
