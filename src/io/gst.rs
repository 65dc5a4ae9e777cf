//! GStreamer, which is loaded and started when it is first used.

use std::sync::OnceLock;

use anyhow::{Context, anyhow};
use gstreamer::{self as gst, glib};

use crate::plugins::install;

/// Loads the libraries; fails with the reason if one is missing.
pub type Load = fn() -> Result<(), String>;

static LOAD: OnceLock<Load> = OnceLock::new();

/// Has the libraries loaded by this function before they are first used, and heard afterwards. Without it they are
/// linked.
pub fn load_by(load: Load) {
    LOAD.get_or_init(|| load);
}

/// Starts GStreamer, unless it has started before.
pub fn start() -> anyhow::Result<()> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    let load = || LOAD.get().map_or(Ok(()), |load| load().map(|()| hear_glib()));
    let loaded = LOADED.get_or_init(load);
    loaded.clone().map_err(|why| {
        let cure = install("gstreamer1.0-plugins-base and gstreamer1.0-plugins-good");
        anyhow!("videos and cameras need GStreamer 1.22 or newer ({why}): {cure}")
    })?;
    gst::init().context("GStreamer does not start")
}

/// Redirects the log of GLib's libraries to the level "debug". Called once in a process.
fn hear_glib() {
    glib::log_set_default_handler(|domain, level, text| {
        let domain = domain.unwrap_or("GLib");
        match level {
            // GLib aborts the process after this.
            glib::LogLevel::Error => eprintln!("{domain}: {text}"),
            _ => tracing::debug!("{domain}: {text}"),
        }
    });
}
