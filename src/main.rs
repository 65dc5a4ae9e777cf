//! The `stereod` command.

#[cfg(all(
    any(target_os = "linux", windows),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "linked")
))]
mod late;
#[cfg(not(all(
    any(target_os = "linux", windows),
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "linked")
)))]
mod late {
    /// The libraries are linked.
    pub fn load() -> Result<(), String> {
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    stereod::program(late::load)
}
