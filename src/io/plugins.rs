//! The source of missing plug-ins of GStreamer.

/// Returns how to get the plug-ins of these packages of Debian and Ubuntu.
pub(crate) fn install(packages: &str) -> String {
    match has_own() {
        _ if cfg!(windows) => {
            "PyPI has GStreamer for Windows: docs/install.md, \"Windows and macOS\"".into()
        }
        true => format!(
            "this stereod brings its own, small GStreamer; stereod's Debian package and a stereod \
             that you build use the system's with {packages} (docs/install.md)"
        ),
        false => format!("install {packages}"),
    }
}

/// Reports whether GStreamer lies beside the program, as in the wheel (`scripts/program_wheel.sh`).
fn has_own() -> bool {
    let own = "plugins/libgstcoreelements.so";
    std::env::current_exe().is_ok_and(|program| program.with_file_name(own).is_file())
}
