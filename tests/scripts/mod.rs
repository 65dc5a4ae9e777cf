//! `scripts/setup.sh` on machines that are simulated by stubs, so that nothing is really installed.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// A machine: a folder that is the whole PATH, and a log of the calls that would change the
/// machine.
struct Machine(tempfile::TempDir);

impl Machine {
    /// A machine with the ordinary tools and the Rust that the crate needs.
    fn new() -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        fs::create_dir(machine.folder().join("bin")).unwrap();
        for tool in
            ["bash", "cat", "cut", "dirname", "env", "grep", "head", "printf", "sed", "sort"]
        {
            let real = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let real = real.iter().find(|path| path.exists()).expect("an ordinary tool");
            symlink(real, machine.folder().join("bin").join(tool)).unwrap();
        }
        machine.tool("cargo", &format!("echo cargo {}.0", env!("CARGO_PKG_RUST_VERSION")))
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Adds a tool that is a line of shell.
    fn tool(self, name: &str, line: &str) -> Machine {
        let file = self.folder().join("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Adds a Debian on which every package but `missing` is installed, and that has no rustup; `apt-get` and
    /// `sudo` log.
    fn debian(self, missing: &str) -> Machine {
        let log = self.folder().join("log").display().to_string();
        self.tool("dpkg-query", &format!("[ \"$4\" = \"{missing}\" ] || echo installed"))
            .tool("apt-get", &format!("[ \"$2\" != --simulate ] && echo \"apt-get $*\" >> {log}"))
            .tool("sudo", &format!("echo sudo >> {log}; exec \"$@\""))
    }

    /// Runs one of our scripts; returns its exit status and all its output.
    fn run(&self, script: &str, arguments: &[&str]) -> (i32, String) {
        let output = Command::new("/bin/bash")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script))
            .args(arguments)
            .env("PATH", self.folder().join("bin"))
            .env("HOME", self.folder())
            .env("CARGO_TARGET_DIR", self.folder())
            .env_remove("CARGO_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    /// Returns the exit status, all output, and the calls that would change the machine, which has
    /// CUDA's compiler already.
    fn set_up(&self, arguments: &[&str]) -> (i32, String, String) {
        let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/setup.sh");
        let setup = fs::read_to_string(setup).unwrap();
        let version = setup.lines().find_map(|line| line.strip_prefix("nvrtc_version="));
        fs::create_dir_all(self.folder().join("nvrtc")).unwrap();
        fs::write(self.folder().join("nvrtc").join(version.unwrap()), "").unwrap();
        let (status, said) = self.run("setup.sh", arguments);
        let log = fs::read_to_string(self.folder().join("log")).unwrap_or_default();
        (status, said, log)
    }
}

#[test]
fn nothing_missing_is_nothing_done() {
    let (status, said, log) = Machine::new().debian("").set_up(&["--tests"]);
    assert_eq!((status, log.as_str()), (0, ""), "{said}");
    assert!(said.contains("packages are installed"), "{said}");
}

#[test]
fn only_what_is_missing_is_installed() {
    let machine = Machine::new().debian("xvfb");
    let (status, said, log) = machine.set_up(&[]);
    assert_eq!((status, log.as_str()), (0, ""), "{said}");

    let (status, said, log) = machine.set_up(&["--tests", "--check"]);
    assert_eq!((status, log.as_str()), (1, ""), "{said}");
    assert!(said.contains("missing: xvfb\n"), "{said}");

    let (status, said, log) = machine.set_up(&["--tests"]);
    assert_eq!(status, 0, "{said}");
    let calls: Vec<&str> = log.lines().filter(|line| *line != "sudo").collect();
    assert_eq!(
        calls,
        ["apt-get update", "apt-get install --yes --no-install-recommends xvfb"],
        "{said}"
    );
}

#[test]
fn other_systems_get_the_names_of_packages() {
    // The script looks into /sbin too, where this machine has a real one.
    let (status, said, log) = Machine::new().tool("ldconfig", "").set_up(&[]);
    assert_eq!((status, log.as_str()), (1, ""), "{said}");
    for part in ["gst-inspect-1.0", "dnf install", "pacman -S", "libvulkan.so.1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn other_systems_with_everything_are_content() {
    let machine = Machine::new()
        .tool("cc", "")
        .tool("pkg-config", "")
        .tool("gst-inspect-1.0", "")
        .tool("ldconfig", "echo libvulkan.so.1");
    let (status, said, _) = machine.set_up(&[]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("everything needed is installed"), "{said}");

    let (status, said, _) = machine.set_up(&["--tests"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("  Xvfb\n") && !said.contains("x264enc\n"), "{said}");
}

#[test]
fn old_rust_is_named_and_left_alone() {
    let machine = Machine::new().debian("").tool("cargo", "echo 'cargo 1.9.0 (abc)'");
    let (status, said, _) = machine.set_up(&[]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("Rust 1.9.0 is too old") && said.contains("rustup.rs | sh"), "{said}");

    let (_, said, _) = machine.tool("apt-get", "").set_up(&[]);
    assert!(said.contains("  apt-get install rustup &&"), "{said}");
}

#[test]
fn rust_is_updated_where_that_is_asked_for() {
    let machine = Machine::new().debian("").tool("cargo", "echo 'cargo 1.9.0 (abc)'");
    let log = machine.folder().join("log").display().to_string();
    let machine = machine.tool("rustup", &format!("echo \"rustup $*\" >> {log}"));
    let (status, said, log) = machine.set_up(&["--rust"]);
    assert_eq!(status, 0, "{said}");
    assert!(log.contains("rustup toolchain install stable"), "{log}");
}

/// Packages are installed for the system's Python, which need not be the first on PATH.
#[test]
fn the_python_that_has_the_modules_is_called() {
    if !Path::new("/usr/bin/python3").exists() {
        return eprintln!("skipped: this system has no /usr/bin/python3");
    }
    let poor = Machine::new().tool("python3", "exit 1");
    assert_eq!(poor.run("python.sh", &["json", "os"]), (0, "/usr/bin/python3\n".into()));
    let rich = Machine::new().tool("python3", "exit 0");
    assert_eq!(rich.run("python.sh", &["json"]), (0, "python3\n".into()));
    let (status, said) = poor.run("python.sh", &["json", "no_such_module"]);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("json no_such_module") && said.contains("setup.sh --tests --cameras"),
        "{said}"
    );
}

#[test]
fn what_the_simulated_cameras_need_is_installed() {
    let (status, said, log) = Machine::new().debian("python3-opencv").set_up(&["--cameras"]);
    assert_eq!(status, 0, "{said}");
    assert!(log.contains("--no-install-recommends python3-opencv"), "{log}");
    let (_, said, log) = Machine::new().debian("python3-opencv").set_up(&["--tests"]);
    assert_eq!(log, "", "{said}");
}
