//! `stereod devices`: the processors and cameras of this machine.

use super::{Error, load, print};
use crate::cli::{DevicesArgs, FlagLayer};
use crate::devices::{self, cameras};
use stereod_core::engine::cpu::CpuEngine;
use stereod_core::engine::{Engine, PairSpec};
use stereod_io::source::{gst, v4l2};

pub fn run(args: DevicesArgs) -> Result<(), Error> {
    quiet_libcamera();
    let loaded = load(&args.common, FlagLayer::default())?;
    let found = v4l2::list();
    let others = gst::find_cameras().unwrap_or_else(|error| {
        tracing::warn!("{error:#}");
        Vec::new()
    });
    if args.sources {
        return print(cameras::sources(&found, &others));
    }
    let cpu = loaded.settings.engine.options().cpu;
    let cpu = CpuEngine::new(&loaded.params, &PairSpec::rectified(1, 1), cpu)?.description();
    if args.json {
        let mut all = devices::engines_as_json(&cpu);
        all["cameras"] = cameras::as_json(&found);
        all["elements"] = cameras::elements_as_json(&others);
        return print(format!("{all}\n"));
    }
    print(devices::engines(&cpu) + &cameras::as_text(&found, &others, args.controls))
}

/// Keeps libcamera, which looks for cameras through its plug-in, from writing more than errors to the terminal.
fn quiet_libcamera() {
    const LEVELS: &str = "LIBCAMERA_LOG_LEVELS";
    if std::env::var_os(LEVELS).is_none() {
        // SAFETY: the command has just begun, and no other thread of it reads the environment.
        unsafe { std::env::set_var(LEVELS, "*:ERROR") };
    }
}
