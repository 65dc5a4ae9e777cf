//! The program under test.

use std::process::{Command, Stdio};

/// `stereod` with these arguments, without a display or an input, and without the configuration of
/// the machine it runs on.
pub fn stereod(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stereod"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STEREOD_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    for display in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(display);
    }
    command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}
