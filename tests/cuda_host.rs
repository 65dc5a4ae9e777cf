//! The CUDA engine's host side on machines without a GPU. A driver that computes nothing
//! (`fake_cuda/driver.c`) replaces NVIDIA's, so that the whole program can be tested for start,
//! memory, frames in flight, failures and the fallback to the CPU. src/core/tests/cuda_parity.rs tests the
//! kernels' results.

#![cfg(all(feature = "cli", feature = "window", feature = "serve"))]
#![cfg(target_os = "linux")]

mod common {
    pub mod outcome;
    pub mod program;
}

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::outcome::{ended, outcome, wait_until};
use common::program::stereod;
use stereod_core::engine::cuda::Nvrtc;

/// The folder with the driver, compiled once for all tests.
fn driver() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fake-driver");
        std::fs::create_dir_all(&folder).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cuda/driver.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wno-unused-parameter", "-pthread", "-o"])
            .args([folder.join("libcuda.so").as_os_str(), source.as_ref()])
            .status();
        assert!(built.expect("a C compiler, which building stereod needs too").success());
        folder
    })
}

/// A machine with this driver. Machines share what the programs keep: kernels are compiled once for all tests, and
/// GStreamer's plugins are looked at once.
struct Machine {
    folder: tempfile::TempDir,
    settings: Vec<(&'static str, String)>,
    nvrtc: bool,
}

impl Machine {
    fn new() -> Machine {
        Machine { folder: tempfile::tempdir().unwrap(), settings: Vec::new(), nvrtc: true }
    }

    /// As [`Machine::new`], or `None` if NVRTC is missing, which the engine needs to start.
    fn with_nvrtc() -> Option<Machine> {
        match Nvrtc::find() {
            Ok(_) => Some(Machine::new()),
            Err(missing) => {
                eprintln!("skipped: {missing}");
                None
            }
        }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Machine {
        self.settings.push((name, value.to_string()));
        self
    }

    /// This machine with a cache of its own, in its folder.
    fn alone(self) -> Machine {
        let cache = self.file("cache");
        self.with("XDG_CACHE_HOME", cache)
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// `stereod` on this machine.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = stereod(arguments);
        let mut libraries = driver().as_os_str().to_owned();
        if let (true, Some(others)) = (self.nvrtc, std::env::var_os("LD_LIBRARY_PATH")) {
            libraries.push(":");
            libraries.push(others);
        }
        if !self.nvrtc {
            command.env("CUDA_HOME", "/nonexistent").env("CUDA_PATH", "/nonexistent");
        }
        command
            .env("XDG_CACHE_HOME", driver().join("cache"))
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .env("FAKE_REPORT", self.file("report"))
            .env("LD_LIBRARY_PATH", libraries);
        command
    }

    /// Exit status, standard output, standard error.
    fn stereod(&self, arguments: &[&str]) -> (i32, String, String) {
        outcome(&mut self.command(arguments))
    }

    /// Report of the driver on the last run.
    fn report(&self) -> String {
        std::fs::read_to_string(self.file("report")).unwrap()
    }
}

const SMALL: [&str; 5] = ["bench", "--size", "64x48", "--repeat", "3"];

fn bench<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn a_stream_of_pairs_leaves_nothing_behind() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    for in_flight in [1, 3, 16] {
        let in_flight_set = format!("engine.in_flight={in_flight}");
        let more = ["--engine", "cuda", "--json", "--set", &in_flight_set];
        let (status, stdout, stderr) = machine.stereod(&bench(&more));
        assert_eq!(status, 0, "{stderr}");
        assert!(stderr.contains("GPU memory: ") && stderr.contains(" free, for "), "{stderr}");
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(json["kernels_ms"], 0.25);
        assert_eq!(json["stages_ms"]["upload"], 0.25);
        assert_eq!(json["stages_ms"]["download"], 0.25);
        assert!(json["engine"].as_str().unwrap().starts_with("Fake GPU 0 (CUDA"), "{stdout}");
        match in_flight {
            1 => assert!(json.get("sustained").is_none()),
            _ => assert_eq!(json["sustained"]["in_flight"], in_flight),
        }
        let report = machine.report();
        assert_eq!(report.lines().count(), 1, "only the launches: {report}");
    }
}

#[test]
fn kernels_are_compiled_once() {
    let Some(machine) = Machine::with_nvrtc().map(Machine::alone) else { return };
    let start = |machine: &Machine| {
        let few = ["--engine", "cuda", "-v", "--cost", "ad", "--cost-window", "0", "--prior", "0"];
        let (status, _, stderr) = machine.stereod(&bench(&few));
        assert_eq!(status, 0, "{stderr}");
        stderr.lines().find(|line| line.contains("kernels for sm_")).unwrap().to_owned()
    };
    let first = start(&machine);
    assert!(first.contains("sm_90") && !first.contains(" 0 of them"), "{first}");
    let kept = || std::fs::read_dir(machine.file("cache/stereod/kernels")).unwrap().count();
    let entries = kept();
    assert!(entries > 0);
    let second = start(&machine);
    assert!(second.contains(" 0 of them compiled"), "{second}");

    // A damaged entry is compiled again, and a message says so.
    let entry = std::fs::read_dir(machine.file("cache/stereod/kernels")).unwrap().next().unwrap();
    let entry = entry.unwrap().path();
    let code = std::fs::read(&entry).unwrap();
    std::fs::write(&entry, &code[..code.len() / 2]).unwrap();
    let third = start(&machine);
    assert!(third.contains(" 1 of them compiled"), "{third}");
    assert_eq!((kept(), std::fs::read(&entry).unwrap()), (entries, code));

    // Another device has an entry of its own; an unwritable folder is no failure.
    let machine = machine.with("FAKE_SM", 75);
    assert!(start(&machine).contains("sm_75"));
    let blocked = Machine::new().alone();
    std::fs::write(blocked.file("cache"), "in the way").unwrap();
    assert!(!start(&blocked).contains(" 0 of them"));
    assert!(!start(&blocked).contains(" 0 of them"));
}

#[test]
fn too_little_memory_is_told_before_anything_is_allocated() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let machine = machine.with("FAKE_FREE_MIB", 1);
    let size = ["bench", "--size", "1024x1024", "--repeat", "1", "--threads", "2"];
    let on = |engine| [&size[..], &["--engine", engine]].concat();
    let (status, _, stderr) = machine.stereod(&on("cuda"));
    assert_eq!(status, 1);
    assert!(
        stderr.contains("too little free memory") && stderr.contains("--engine cpu"),
        "{stderr}"
    );
    let (status, stdout, stderr) = machine.stereod(&on("auto"));
    assert_eq!(status, 0, "{stderr}");
    let warnings: Vec<&str> = stderr.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{stderr}");
    assert!(warnings[0].contains("using the CPU, not CUDA: the GPU has too little"), "{stderr}");
    assert!(stdout.contains("on CPU ("), "{stdout}");
    assert!(machine.report().contains(", 0 launches,"), "{}", machine.report());
}

#[test]
fn a_picture_that_the_device_has_no_memory_for_is_matched_in_bands() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let machine = machine.with("FAKE_FREE_MIB", 150);
    let size = ["bench", "--size", "512x2048", "-d", "64", "--repeat", "1", "--engine", "cuda"];
    let with = |tiles| machine.stereod(&[&size[..], &["--tiles", tiles]].concat());
    let (status, _, stderr) = with("off");
    assert_eq!(status, 1);
    assert!(stderr.contains("auto needs less: the GPU has too little free memory"), "{stderr}");
    let (status, stdout, stderr) = with("auto");
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("the whole picture needs more memory than there is"), "{stderr}");
    assert!(stdout.contains("x1 tiles of 512x"), "{stdout}");
    assert_eq!(machine.report().lines().count(), 1, "only the launches: {}", machine.report());
}

#[test]
fn a_lost_device_ends_the_run_with_its_cause_and_finished_files() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let machine = machine.with("FAKE_FAIL_AT", 205);
    let (recording, stats) = (machine.file("out.mkv"), machine.file("stats.json"));
    let (status, _, stderr) = machine.stereod(&[
        "run",
        "--demo",
        "--headless",
        "--set",
        "demo.width=64",
        "--set",
        "demo.height=48",
        "--set",
        "demo.frames=200",
        "-d",
        "16",
        "--engine",
        "cuda",
        "--record",
        &recording,
        "--stats",
        &stats,
    ]);
    assert_eq!(status, 1, "{stderr}");
    let last = stderr.lines().last().unwrap();
    assert!(
        last.starts_with("error: ") && last.contains("CUDA_ERROR_ILLEGAL_ADDRESS: a kernel failed"),
        "{stderr}"
    );
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    let recorded = stats["recorded"].as_u64().unwrap();
    assert!(recorded > 0 && recorded < 200, "{stats}");
    assert_eq!(stats["recorded"], stats["matched"]);
    assert!(stats["gpu_ms"]["p50"].as_f64().unwrap() > 0.2, "{stats}");
    assert!(stats["error"].as_str().unwrap().contains("ILLEGAL_ADDRESS"), "{stats}");
    assert!(std::fs::metadata(recording).unwrap().len() > 1000);
    let report = machine.report();
    assert!(!report.contains("left") && !report.contains("misuses"), "{report}");
}

#[test]
fn a_run_reports_the_gpus_time() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let (status, stdout, stderr) = machine.stereod(&[
        "run",
        "--demo",
        "--headless",
        "--set",
        "demo.width=64",
        "--set",
        "demo.height=48",
        "--set",
        "demo.frames=40",
        "-d",
        "16",
    ]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("matched 40 in ") && stdout.contains("Fake GPU 0 (CUDA"), "{stdout}");
    assert!(stdout.contains("\n  on the GPU p50 0.25 ms, p95 0.25 ms"), "{stdout}");
    let report = machine.report();
    assert_eq!(report.lines().count(), 1, "{report}");
    // The source has prepared a few pairs before the engine has started.
    let direct: u32 =
        report.split(", ").last().unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(direct > 60 && direct <= 80, "{report}");
}

/// Parameters change while pairs are in flight: other engines take over while images lie in memory
/// that the first one has lent.
#[test]
fn engines_that_take_over_leave_nothing_behind() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let configure = |p1: u8| {
        let few = "[matching]\ncost = 'ad'\ncost_window = 0\nprior = 0\ndisparities = 16";
        let text = format!("{few}\np1 = {p1}\n[source]\npace = 'realtime'\n");
        std::fs::write(machine.file("rig.toml"), text).unwrap();
    };
    configure(20);
    let (rig, log) = (machine.file("rig.toml"), machine.file("log"));
    let pictures = machine.file("pictures");
    let size = ["--demo-size", "64x48", "--frames", "100000", "--pictures", &pictures];
    let run = ["run", "--demo", "--headless", "--engine", "cuda", "--config", &rig, "--stats", "-"];
    let child = machine
        .command(&[&run[..], &size[..]].concat())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let wait_for = |what: &str| {
        wait_until(what, || std::fs::read_to_string(&log).unwrap().contains(what));
    };
    let signal = |signal| {
        // SAFETY: the process is our child and not yet waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    };
    wait_for("matching on Fake GPU");
    // More than are on their way, so some of them by the present engine.
    let wait_for_pairs = || {
        let count = || std::fs::read_dir(&pictures).map_or(0, Iterator::count);
        let before = count();
        wait_until("pairs", || count() > before + 30);
    };
    for p1 in [21, 22, 23] {
        wait_for_pairs();
        configure(p1);
        signal(libc::SIGHUP);
        wait_for(&format!("[matching] p1 = {p1} (was {})", p1 - 1));
    }
    wait_for_pairs();
    signal(libc::SIGTERM);
    let output = ended(child);
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(!log.contains("panicked") && !log.contains("using the CPU"), "{log}");
    let statistics: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statistics["retuned"], 3, "{statistics}");
    assert_eq!(statistics["matched"], statistics["pairs"], "{statistics}");
    let report = machine.report();
    assert_eq!(report.lines().count(), 1, "only the launches: {report}");
}

#[test]
fn verifying_finds_that_nothing_is_computed() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let (status, _, stderr) = machine.stereod(&bench(&["--engine", "cuda", "--verify"]));
    assert_eq!(status, 1);
    assert!(stderr.contains("error: the map differs from the reference at x "), "{stderr}");
    assert!(
        stderr.contains(" of 3072 pixels differ; the first stage that differs: cost volume"),
        "{stderr}"
    );
}

#[test]
fn what_is_missing_is_named_and_auto_goes_on_with_the_cpu() {
    let old_driver = Machine::new().with("FAKE_DRIVER", 11040);
    let no_device = Machine::new().with("FAKE_DEVICES", 0);
    let mut cases = vec![
        (old_driver, "WARN", "supports CUDA 11.4; 12.0 or newer is needed"),
        (no_device, "INFO", "finds no GPU"),
        (Machine::new().with("FAKE_SM", 61), "WARN", "Fake GPU 0 has compute capability 6.1; 7.5"),
    ];
    // Only if the loader finds no NVRTC by itself.
    if std::env::var_os("LD_LIBRARY_PATH").is_some() {
        let machine = Machine { nvrtc: false, ..Machine::new() };
        let (_, stdout, _) = machine.stereod(&["devices"]);
        if stdout.contains("run-time compiler is missing") {
            cases.push((machine, "WARN", "CUDA's run-time compiler is missing"));
        }
    }
    for (machine, level, reason) in cases {
        let (status, stdout, stderr) = machine.stereod(&bench(&["--engine", "auto"]));
        assert_eq!(status, 0, "{stderr}");
        assert!(stdout.contains(" on CPU ("), "{stdout}");
        let line = stderr.lines().find(|line| line.contains("using the CPU")).expect(reason);
        assert!(line.contains(level) && line.contains(reason), "{line}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let (status, _, stderr) = machine.stereod(&bench(&["--engine", "cuda"]));
        assert_eq!(status, 1, "{stderr}");
        assert!(
            stderr
                .starts_with("error: the CUDA engine cannot be used (--engine cpu needs no GPU): "),
            "{stderr}"
        );
        assert!(stderr.contains(reason), "{stderr}");
        let (status, stdout, _) = machine.stereod(&["devices"]);
        assert_eq!(status, 0);
        assert!(stdout.contains(reason) && stdout.contains("\nCPU ("), "{stdout}");
    }
}

#[test]
fn parts_of_a_gpu_are_compared() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let parts = ["--multiprocessors", "8,13,auto"];
    let (status, stdout, stderr) = machine.stereod(&bench(&parts));
    assert_eq!(status, 0, "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let first = |line: &&str| line.split_whitespace().next().unwrap().to_owned();
    assert_eq!(lines[2..].iter().map(first).collect::<Vec<_>>(), ["8", "13", "all"], "{stdout}");
    assert!(lines[0].contains("(CUDA, 8 multiprocessors of it, 3 frames"), "{stdout}");
    let (_, stdout, _) = machine.stereod(&bench(&[&parts[..], &["--json"]].concat()));
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    // Numbers of multiprocessors into which the device can be divided.
    assert!(json[1]["engine"].as_str().unwrap().contains("16 multiprocessors"), "{stdout}");
    assert_eq!(
        (&json[0]["multiprocessors"], json[2]["kernels_ms"].as_f64()),
        (&8.into(), Some(0.25))
    );
    let (status, _, stderr) = machine.stereod(&bench(&[&parts[..], &["--engine", "cpu"]].concat()));
    assert!(status == 2 && stderr.contains("is for GPUs"), "{stderr}");
    let (status, _, stderr) = machine.stereod(&bench(&[&parts[..], &["--fit", "30"]].concat()));
    assert!(status == 2 && stderr.contains("--fit takes other settings"), "{stderr}");
}

#[test]
fn streams_have_the_priority_that_is_asked_for() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    for (rank, number) in [("low", 0), ("normal", -2), ("high", -5)] {
        let more = ["--engine", "cuda", "--gpu-priority", rank];
        let (status, _, stderr) = machine.stereod(&bench(&more));
        assert_eq!(status, 0, "{stderr}");
        let report = machine.report();
        assert!(report.contains(&format!("streams of priority {number}, ")), "{report}");
    }
}

/// If the volumes of three frames would take more than an eighth of a device, or most of the memory
/// allowed, fewer are computed at a time.
#[test]
fn frames_share_memory_where_there_is_little() {
    let Some(machine) = Machine::with_nvrtc() else { return };
    let size = ["bench", "--size", "640x360", "-d", "128", "--repeat", "1", "--engine", "cuda"];
    let mib = |memory: &str| -> f64 {
        let more = ["--memory", memory, "-v"];
        let (status, _, stderr) = machine.stereod(&[&size[..], &more].concat());
        assert_eq!(status, 0, "{stderr}");
        let said = stderr.split("GPU memory: ").nth(1).unwrap();
        let [number, unit] = [0, 1].map(|i| said.split(' ').nth(i).unwrap());
        number.parse::<f64>().unwrap() * if unit == "GiB" { 1024.0 } else { 1.0 }
    };
    let [three, two, one] = ["1000", "375", "225"].map(mib);
    assert!(three > 400.0 && two < 375.0 && two > one + 75.0, "{three}, {two}, {one} MiB");
}

#[test]
fn devices_are_listed_and_chosen() {
    let machine = Machine::new().with("FAKE_DEVICES", 2);
    let (status, stdout, stderr) = machine.stereod(&["devices"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    let line =
        "  1  Fake GPU 1, compute capability 9.0, 24 multiprocessors, 16 GiB, 8.0 GiB free\n";
    assert!(stdout.contains(line), "{stdout}");
    let (_, stdout, _) = machine.stereod(&["devices", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["cuda"]["driver"], "13.0");
    assert_eq!(json["cuda"]["devices"][1]["name"], "Fake GPU 1");
    assert_eq!(json["cuda"]["devices"][1]["free_bytes"], 8u64 << 30);
    for engine in ["cuda", "auto"] {
        let (status, _, stderr) = machine.stereod(&bench(&["--engine", engine, "--device", "3"]));
        assert_eq!(status, 1);
        let reason = "no CUDA device 3; this machine has 2: `stereod devices` lists them";
        assert!(stderr.contains(reason), "{stderr}");
    }
    if Nvrtc::find().is_ok() {
        for (multiprocessors, reason) in [
            (
                "25",
                "Fake GPU 0 has 24 multiprocessors, not 25; set engine.multiprocessors to at most that",
            ),
            ("0", "--multiprocessors"),
        ] {
            let arguments = ["--engine", "cuda", "--multiprocessors", multiprocessors];
            let (status, _, stderr) = machine.stereod(&bench(&arguments));
            assert!(status != 0 && stderr.contains(reason), "{stderr}");
        }
        let old = Machine::with_nvrtc().unwrap().with("FAKE_DRIVER", 12030);
        let (status, _, stderr) = old.stereod(&bench(&["--multiprocessors", "8"]));
        let reason = "supports CUDA 12.3, and 12.4 or newer can limit a program to some";
        assert!(status == 1 && stderr.contains(reason), "{stderr}");
        let (status, stdout, stderr) = machine.stereod(&bench(&["--device", "1"]));
        assert_eq!(status, 0, "{stderr}");
        assert!(stdout.contains("Fake GPU 1 (CUDA"), "{stdout}");
    }
}
