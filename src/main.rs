//! The `stereod` command.

fn main() -> std::process::ExitCode {
    stereod::program()
}
