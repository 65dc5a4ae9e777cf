//! `[engine]`: the engine and its resources.

use std::num::NonZeroUsize;
use std::path::Path;

use serde::Deserialize;

use super::row::Integer::{I32, U16, U32, U64};
use super::row::Plain::Whole;
use super::row::{AUTO, ENGINE, Plain, RATE, Row};
use super::suggest::with_nearest;
use crate::engine::cpu::{Cores, CpuOptions, NICE, SimdChoice};
use crate::engine::cuda::{Cache, CudaOptions, Priority};
use crate::engine::{Check, Choice, Options, PriorFrom, PriorSize, Tiling};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    pub kind: Choice,
    pub check: Check,
    pub prior_from: PriorFrom,
    pub prior_size: PriorSize,
    pub threads: usize,
    pub cores: String,
    pub nice: Option<i32>,
    pub simd: SimdChoice,
    pub device: Option<u16>,
    pub multiprocessors: Option<u32>,
    pub priority: Priority,
    pub in_flight: usize,
    pub kernel_cache: String,
    pub memory_mib: Option<u32>,
    pub tiles: String,
    pub fit: Option<f64>,
}

/// Upper limit of memory in MiB: 16 TiB.
pub const MEMORY_MIB_MAX: i64 = 16 << 20;

pub(super) const ROWS: &[Row] = &[
    Row::text("kind", "auto", |text| match text.parse::<Choice>() {
        Ok(_) => Ok(()),
        Err(expected) => Err(with_nearest(expected, text)),
    })
    .flag(ENGINE, "--engine", "ENGINE")
    .help(
        "Engine that finds the disparity: `auto`, `cuda`, `wgpu`, `cpu`, or a stereo network, \
         `onnx:FILE`.",
    )
    .more(
        "`auto`: the GPU if there is one, else the CPU; `cuda`: an NVIDIA GPU, or fail; `wgpu`: a GPU \
         of any maker, through Vulkan, or fail.",
    ),
    Row::names("check", "off", &["off", "sgm"])
        .flag(ENGINE, "--check", "HOW")
        .help("Checks the disparity of a network, pixel by pixel.")
        .about(&[
            "No check",
            "Matches the pairs, too, and says where both agree and where they contradict each other",
        ]),
    Row::text("prior_from", "half-size", |text| {
        text.parse::<PriorFrom>().map(drop).map_err(|expected| with_nearest(expected, text))
    })
    .flag(ENGINE, "--prior-from", "WHAT")
    .help(
        "Source of the map that guides the matching where texture is below the noise: `half-size`, `network`, \
         `network:fine`, `network:coarse` or a network in a file, `onnx:FILE`.",
    )
    .more(
        "`half-size`: the map of the half-size images; `network`: a small network, which is part of stereod, and that map \
         where it is not sure, with cells of 4x4 pixels (`fine`) up to 500,000 pixels, else of 8x8 (`coarse`), a quarter of \
         the work. A network needs `matching.prior`. Short: --prior network.",
    ),
    Row::names("prior_size", "1", &["1", "1/2", "1/4"])
        .flag(ENGINE, "--prior-size", "SIZE")
        .help("Size of the images that the network of `prior_from` gets, of the width and height.")
        .about(&["That of the images", "Half of it", "A quarter: a sixteenth of the work"]),
    Row::whole("threads", Whole(0), U64, [0, 1024])
        .flag(ENGINE, "--threads", "N")
        .help("Threads of the CPU engine; 0 means one per core."),
    Row::text("cores", "auto", |text| match (text, text.parse::<Cores>()) {
        ("auto", _) | (_, Ok(_)) => Ok(()),
        (_, Err(expected)) => Err(expected.to_string()),
    })
    .flag(ENGINE, "--cores", "LIST")
    .help("Cores for the CPU engine's threads, such as 0-3,6, instead of all.")
    .more("One thread for each, unless `threads` is set. On Linux only."),
    Row::whole("nice", AUTO, I32, NICE)
        .or(&["auto"])
        .flag(ENGINE, "--nice", "N")
        .help(
            "Nice value of the CPU engine's threads, -20 to 19: 19 yields most to other programs; below 0 needs \
             the privilege.",
        )
        .more(
            "`auto`: as the program was started; lower values need CAP_SYS_NICE or RLIMIT_NICE. On Linux \
             only.",
        ),
    Row::names("simd", "auto", &["auto", "avx512", "avx2", "neon", "portable"])
        .help("Vector instructions of the CPU engine; the result is the same.")
        .about(&[
            "The fastest available",
            "AVX-512 of x86-64",
            "AVX2 of x86-64",
            "NEON of ARM64",
            "Those that every processor has",
        ]),
    Row::whole("device", AUTO, U16, [0, u16::MAX as i64])
        .or(&["auto"])
        .flag(ENGINE, "--device", "N")
        .help("CUDA device to use, as `stereod devices` numbers them.")
        .more("`auto`: the first usable one."),
    Row::whole("multiprocessors", AUTO, U32, [1, 1024])
        .or(&["auto"])
        .flag(ENGINE, "--multiprocessors", "N")
        .help("Number of the GPU's multiprocessors to use, instead of all; the rest is left to other programs.")
        .more(
            "Rounded up to a part that the GPU can be divided into; the driver must support CUDA 12.4.",
        ),
    Row::names("priority", "low", &["low", "normal", "high"])
        .flag(ENGINE, "--gpu-priority", "RANK")
        .help("Priority of the engine's kernels on a GPU that other programs use, too.")
        .more(
            "It counts within one process, such as a program that uses stereod as a library, and \
             between programs that share the GPU through CUDA's Multi-Process Service; other programs \
             take turns.",
        )
        .about(&["As programs that set no priority", "Before those", "Before all others"]),
    Row::whole("in_flight", Whole(3), U64, [1, 16])
        .help(
            "Pairs that the CUDA engine works on at once, 1 to 16, so that uploads, kernels and \
             downloads overlap.",
        )
        .more("Each pair takes memory of the GPU."),
    Row::text("kernel_cache", "auto", |text| match text {
        "" => Err("`auto`, `off` or a folder".into()),
        _ => Ok(()),
    })
    .help(
        "Folder for compiled CUDA kernels, so that only the first start with new parameters compiles.",
    )
    .more("`auto`: in the user's cache folder (~/.cache/stereod/kernels); `off`: none."),
    Row::whole("memory_mib", AUTO, U32, [1, MEMORY_MIB_MAX])
        .or(&["auto"])
        .unit("MiB")
        .flag(ENGINE, "--memory", "MIB")
        .help("Largest memory use in MiB, instead of half of the free memory.")
        .more(
            "It limits main memory for images, rectification and the CPU engine, and the memory of \
             the GPU. `auto`: half of the free main memory at the start, and all free memory of the \
             GPU. Images that need more are matched in tiles if `tiles` is `auto`, or refused at the \
             start.",
        ),
    Row::text("tiles", "auto", |text| match text.parse::<Tiling>() {
        Ok(_) => Ok(()),
        Err(expected) => Err(expected.to_string()),
    })
    .flag(ENGINE, "--tiles", "TILES")
    .help(
        "Match images in tiles: `auto` (in bands if the whole image needs more memory than there \
         is), `off`, or ROWSxCOLUMNS,OVERLAP.",
    )
    .more(
        "An example is \"4x1,128\"; the overlap is in pixels, half from either neighbour. `auto` takes \
         the fewest bands of the full width that fit.",
    ),
    Row::real("fit", Plain::Text("off"), [0.1, 1000.0])
        .or(&["off"])
        .unit("pairs a second")
        .flag(RATE, "--fit", "RATE")
        .help(
            "Choose the mildest cheaper settings that reach this many pairs per second on this \
             machine.",
        )
        .more(
            "If the settings do not reach this rate, 4 paths are taken, then no prior, no window over \
             the cost, and fewer disparities (never fewer than the first pairs need), only as far as \
             needed; the rates are measured at the start. `off`: the settings as they are.",
        ),
];

impl Engine {
    /// Returns the file of the network that is used, as engine or as prior.
    pub fn network(&self) -> Option<&Path> {
        match (&self.kind, &self.prior_from) {
            (Choice::Network(file), _) | (_, PriorFrom::Network(file)) => Some(file),
            _ => None,
        }
    }

    /// Reports whether a network finds disparities, alone or as prior.
    pub fn has_network(&self) -> bool {
        self.network().is_some() || matches!(self.prior_from, PriorFrom::Learned(_))
    }

    /// Reports whether a network is checked by matching.
    pub fn is_checked(&self) -> bool {
        matches!(self.kind, Choice::Network(_)) && self.check == Check::Sgm
    }

    /// Reports whether a network is used, which may take colour.
    pub fn wants_colour(&self) -> bool {
        self.network().is_some()
    }

    pub fn options(&self) -> Options {
        let cpu = CpuOptions {
            costs_anew: false,
            threads: NonZeroUsize::new(self.threads).map(NonZeroUsize::get),
            simd: self.simd,
            // Checked when it was read; `auto` names no cores.
            cores: self.cores.parse().ok(),
            nice: self.nice,
        };
        let cuda = CudaOptions {
            device: self.device.map(usize::from),
            multiprocessors: self.multiprocessors,
            priority: self.priority,
            in_flight: self.in_flight,
            cache: match self.kernel_cache.as_str() {
                "auto" => Cache::of_user(),
                "off" => Cache::off(),
                folder => Cache::new(folder.into()),
            },
        };
        // Checked when it was read.
        let tiling = self.tiles.parse().unwrap_or_default();
        let (check, prior_from) = (self.check, self.prior_from.clone());
        Options { cpu, cuda, tiling, check, prior_from, prior_size: self.prior_size, spare: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::learned::Cells;
    use crate::matching::tiles::Tiles;
    use crate::settings::test_support::{refused, settings};
    use crate::settings::{Layers, Library};

    #[test]
    fn kernels_are_kept_where_that_is_wanted() {
        let kept = |text: &str| {
            settings(&[&format!("engine.kernel_cache={text}")]).engine.options().cuda.cache
        };
        assert_eq!(settings(&[]).engine.options().cuda.cache, Cache::of_user());
        assert_eq!(kept("off"), Cache::off());
        assert_eq!(kept("/var/k"), Cache::new("/var/k".into()));
        assert!(refused("engine", "kernel_cache", ""));
        for mib in [0, MEMORY_MIB_MAX + 1] {
            assert!(refused("engine", "memory_mib", mib));
        }
        assert!(refused("engine", "in_flight", 0));
    }

    #[test]
    fn a_network_may_be_named_as_the_prior_itself() {
        let from = |text: &str| settings(&[text]).engine.prior_from;
        assert_eq!(from("matching.prior=2"), PriorFrom::HalfSize);
        assert_eq!(from("matching.prior=network"), PriorFrom::Learned(Cells::Auto));
        assert_eq!(from("matching.prior=network:fine"), PriorFrom::Learned(Cells::Fine));
        let file = PriorFrom::Network(Path::new("net.onnx").into());
        assert_eq!(from("matching.prior=onnx:net.onnx"), file);
        let mut layers = Layers::<Library>::new();
        layers.file_text(Path::new("a.toml"), "[matching]\nprior = \"network\"\n");
        let from = layers.finish().unwrap().settings.engine.prior_from;
        assert_eq!(from, PriorFrom::Learned(Cells::Auto));
        assert!(refused("matching", "prior", "onnx"));
        assert!(refused("matching", "prior", "network:medium"));
    }

    #[test]
    fn a_rate_is_within_reason() {
        assert_eq!(settings(&[]).engine.fit, None);
        assert_eq!(settings(&["engine.fit=60"]).engine.fit, Some(60.0));
        for rate in [0.0, 2000.0, f64::NAN] {
            assert!(refused("engine", "fit", rate));
        }
    }

    #[test]
    fn cores_are_named_and_niceness_has_its_range() {
        let cpu = |text: &str| settings(&[text]).engine.options().cpu;
        let none = settings(&[]).engine.options().cpu;
        assert_eq!((none.cores, none.nice), (None, None));
        assert_eq!(cpu("engine.cores=2,0-1").cores, Some("0-2".parse().unwrap()));
        assert_eq!(cpu("engine.cores=3").cores, Some("3".parse().unwrap()));
        assert_eq!(cpu("engine.nice=19").nice, Some(19));
        assert_eq!(cpu("engine.nice=-20").nice, Some(-20));
        for text in ["", "0-", "3-1", "1024", "all"] {
            assert!(refused("engine", "cores", text), "{text}");
        }
        for nice in [-21, 20] {
            assert!(refused("engine", "nice", nice));
        }
    }

    #[test]
    fn tiles_are_named_or_chosen() {
        let tiling =
            |text: &str| settings(&[&format!("engine.tiles={text}")]).engine.options().tiling;
        assert_eq!(settings(&[]).engine.options().tiling, Tiling::Auto);
        assert_eq!(tiling("off"), Tiling::Off);
        assert_eq!(tiling("2x3,40"), Tiling::Into(Tiles { rows: 2, columns: 3, overlap: 40 }));
        for text in ["", "on", "2x3", "0x1,8", "2x2,9999", "2x2,-1"] {
            assert!(refused("engine", "tiles", text), "{text}");
        }
    }
}
