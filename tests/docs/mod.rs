//! Runs every command and snippet of README.md and docs/ with small inputs under the names that the text uses, or
//! checks it as far as possible without a camera, a server or a GPU.

mod blocks;
mod figures;
mod inputs;
mod names;
mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use gstreamer as gst;

use crate::common::outcome::{Patience, outcome};
use crate::common::program::stereod;
use blocks::Block;

/// Blocks that are only shown: the document, the beginning of the block, its kind.
const SHOWN: [(&str, &str, &str); 24] = [
    ("docs/clusters.md", "sbatch", "needs Slurm; scripts/clusters.sh runs it"),
    ("docs/clusters.md", "parallel", "needs GNU parallel; scripts/clusters.sh runs it"),
    ("docs/clusters.md", "python3 config/clusters/ray", "needs Ray; scripts/clusters.sh runs it"),
    ("docs/design.md", "left  ──", "a diagram"),
    ("docs/networks.md", "pip install", "needs ONNX Runtime; tests/networks runs such commands"),
    ("docs/obstacles.md", "{\"", "JSON; tests/run/obstacles.rs reads such lines"),
    (
        "docs/obstacles.md",
        "stereod run ... --calibration rig.toml --mavlink serial",
        "needs a serial port",
    ),
    (
        "docs/obstacles.md",
        "stereod run ... --calibration rig.toml --ros2",
        "needs the feature `ros2`",
    ),
    ("docs/obstacles.md", "STEREOD_MQTT_USER", "needs a file of zones"),
    ("docs/obstacles.md", "stereod run ... --calibration rig.toml --mqtt", "needs Frigate"),
    ("docs/obstacles.md", "import json", "waits for datagrams; tests/run/obstacles.rs"),
    ("docs/obstacles.md", "[[zone]]", "zones; src/obstacles/zones.rs reads such files"),
    ("docs/odometry.md", "{\"pair\"", "JSON; src/io/sink/poses.rs writes such lines"),
    ("docs/outputs.md", "WARN recording", "messages"),
    ("docs/python.md", "pip install", "installs wheels; scripts/test.sh does that"),
    ("docs/recipes.md", "stored = double", "MATLAB"),
    ("docs/recordings.md", "stereod run both.mcap", "tests/run/recordings.rs writes such a topic"),
    ("docs/remote.md", "location", "settings of nginx; tests/browser runs it"),
    ("docs/remote.md", "rig.example.org", "settings of Caddy; tests/browser runs it"),
    ("docs/service.md", "docker", "needs Docker"),
    ("docs/ros2.md", "stereod run", "needs the feature `ros2`"),
    ("docs/ros2.md", "ros2 launch", "drivers of ROS"),
    ("docs/ros2.md", "sysctl", "changes the machine"),
    ("docs/ros2.md", "<dds", "a profile of Fast DDS"),
];

/// Programs whose commands can be checked.
const PROGRAMS: [&str; 7] =
    ["stereod", "cargo", "gst-launch-1.0", "ffprobe", "ffmpeg", "mkdir", "systemctl"];

/// Pairs that each run matches.
const PAIRS: &str = "6";

/// Defaults that take less time; the commands' own flags override them.
const QUICK: [(&str, &str); 4] = [
    ("STEREOD_DEMO_WIDTH", "160"),
    ("STEREOD_DEMO_HEIGHT", "120"),
    ("STEREOD_MATCHING_EVIDENCE", "off"),
    ("STEREOD_MATCHING_SPATIAL", "off"),
];

/// Path of a document in the repository, and its text.
type Document = (String, String);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<Document> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        docs.filter(|path| path.extension() == Some("md".as_ref())).collect();
    files.sort();
    files.insert(0, root().join("README.md"));
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Way in which a block is checked.
enum Check {
    Commands,
    Settings,
    Python,
}

/// Chooses the check for a block by its language, else by its first word. `None`: it is listed in [`SHOWN`].
fn check_of(document: &str, block: &Block) -> Result<Option<Check>, String> {
    let is_shown = |(name, begin, _): &(&str, &str, &str)| {
        *name == document && block.text.trim_start().starts_with(begin)
    };
    if SHOWN.iter().any(is_shown) {
        return Ok(None);
    }
    let first = block.text.split_whitespace().find(|word| *word != "$").unwrap_or_default();
    let is_program = PROGRAMS.contains(&first)
        || first.contains('/') && ["stereod", ".sh"].iter().any(|end| first.ends_with(end));
    Ok(Some(match &*block.language {
        "sh" | "console" => Check::Commands,
        "toml" => Check::Settings,
        "python" => Check::Python,
        _ if is_program => Check::Commands,
        _ if first.starts_with('[') && first.ends_with(']') => Check::Settings,
        _ => return Err("neither a command nor a snippet that is known here; is it listed?".into()),
    }))
}

/// Inputs of all documents.
static INPUTS: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    inputs::write_inputs(folder.path());
    folder
});

/// A folder in which the commands of a document are run, one after the other.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy_folder(INPUTS.path(), folder.path());
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the files below that end with `end`.
    fn files(&self, end: &str) -> Vec<PathBuf> {
        let pattern = self.path().join("**").join(format!("*{end}"));
        glob::glob(pattern.to_str().unwrap()).unwrap().flatten().collect()
    }

    /// Runs a program to its end. An error has its status and output, if it fails or hangs.
    fn run(&self, command: &mut Command) -> Result<(), String> {
        // A file, because an unread pipe would block the program.
        let said = self.path().join(".said");
        let file = File::create(&said).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file).stdin(Stdio::null());
        let mut child = command.current_dir(self.path()).spawn().map_err(|e| e.to_string())?;
        let mut patience = Patience::begin();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if patience.is_over() => {
                    child.kill().unwrap();
                    break child.wait().unwrap();
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        match status.success() {
            true => Ok(()),
            false => Err(format!("{status}: {}", fs::read_to_string(said).unwrap())),
        }
    }

    /// Checks a command.
    fn check(&self, words: &[String]) -> Result<(), String> {
        let (program, arguments) = words.split_first().expect("a command has a first word");
        let arguments: Vec<&str> = arguments.iter().map(|word| &**word).collect();
        match &**program {
            "stereod" | "target/release/stereod" => self.check_stereod(&arguments),
            "gst-launch-1.0" => is_pipeline(&arguments),
            "ffprobe" | "ffmpeg" if !is_installed(program) => {
                eprintln!("skipped: no {program} for the documents' commands");
                Ok(())
            }
            "ffprobe" => self.check_ffprobe(&arguments),
            "ffmpeg" => {
                self.run(Command::new("ffmpeg").args(["-y", "-v", "error"]).args(arguments))
            }
            "mkdir" => self.run(Command::new("mkdir").args(&arguments)),
            // Already built; services are not tested here.
            "cargo" if arguments == ["build", "--release"] => Ok(()),
            "systemctl" => Ok(()),
            script if script.ends_with(".sh") => {
                self.run(Command::new("bash").arg("-n").arg(root().join(script)))
            }
            _ => Err("nobody knows how to check this".into()),
        }
    }

    fn check_stereod(&self, arguments: &[&str]) -> Result<(), String> {
        let mut words = Vec::new();
        let mut before = "";
        // Replaces /tmp.
        let here = format!("{}/", self.path().display());
        // The stand-ins have formats of their own, about which flags are refused, but not settings.
        let of_cameras = |flag: &str| {
            ["--size", "--rate", "--format"].contains(&flag)
                && arguments.iter().any(|word| word.starts_with("/dev/"))
        };
        for &word in arguments {
            match word {
                flag if of_cameras(flag) => words.push("--set".into()),
                value if of_cameras(before) => {
                    words.push(format!("source.{}={value}", &before[2..]))
                }
                // Any source.
                "..." => words.extend(["--left", LIVE, "--right", LIVE].map(String::from)),
                camera if camera.starts_with("/dev/") => {
                    let both = before == "--side-by-side" || before == "--top-bottom";
                    words.push(if both { LIVE_BOTH } else { LIVE }.into());
                }
                fragment if before == "--stream" => {
                    words.push(streamed(fragment)?.replace("/tmp/", &here));
                }
                data if data.starts_with("DATA/") => {
                    inputs::write_dataset(&self.path().join(data));
                    words.push(data.into());
                }
                word => {
                    let is_positional = !before.is_empty() && !before.starts_with('-');
                    if is_positional || INPUT_FLAGS.contains(&before) {
                        inputs::supply(self.path(), word);
                    }
                    words.push(word.into());
                }
            }
            before = word;
        }
        let has = |flag: &str| arguments.contains(&flag);
        let more: &[&str] = match arguments.first() {
            Some(&"run") if has("--headless") || has("--window") => &["--frames", PAIRS],
            Some(&"run") => &["--frames", PAIRS, "--headless"],
            Some(&"bench" | &"evaluate") => {
                if let Some(at) = words.iter().position(|word| word == "--repeat") {
                    words.drain(at..at + 2);
                }
                &["--repeat", "1"]
            }
            _ => &[],
        };
        words.extend(more.iter().map(|word| (*word).to_owned()));
        self.run(stereod(&words.iter().map(|word| &**word).collect::<Vec<_>>()).envs(QUICK))
    }

    /// Inspects the file or, if it does not exist, a recording of an earlier command.
    fn check_ffprobe(&self, arguments: &[&str]) -> Result<(), String> {
        let (file, flags) = arguments.split_last().ok_or("no file")?;
        let recording = match self.path().join(file) {
            there if there.exists() => there,
            _ => self.files("Z-00001.mkv").pop().ok_or("nothing was recorded before")?,
        };
        self.run(Command::new("ffprobe").args(flags).arg(recording))
    }

    /// Runs a program in Python on recordings of live and recorded sources.
    fn check_python(&self, text: &str) -> Result<(), String> {
        let imports =
            text.lines().filter(|line| line.starts_with("import ") || line.starts_with("from "));
        let imports = imports.collect::<Vec<_>>().join("\n");
        let python = || Command::new("python3");
        if !is_installed("ffprobe") || self.run(python().args(["-c", &imports])).is_err() {
            eprintln!("skipped: no ffprobe or no python3 with what the documents' snippets import");
            return Ok(());
        }
        let run = |recording: &Path| self.run(python().args(["-c", text]).arg(recording));
        let live = self.files("Z-00001.mkv").pop().ok_or("nothing was recorded live before")?;
        run(&live)?;
        let recorded = self.path().join("of-files.mkv");
        let source = ["run", "--left", "left.mp4", "--right", "right.mp4"];
        self.check_stereod(&[&source[..], &["--record", "of-files.mkv"]].concat())?;
        run(&recorded)
    }

    fn check_block(&self, document: &str, block: &Block) -> Result<(), String> {
        match check_of(document, block)? {
            None => Ok(()),
            Some(Check::Commands) => shell::commands(&block.text).iter().try_for_each(|words| {
                self.check(words).map_err(|error| format!("{}: {error}", words.join(" ")))
            }),
            Some(Check::Settings) => {
                fs::write(self.path().join("settings.toml"), &block.text).unwrap();
                self.run(&mut stereod(&["config", "check", "settings.toml"]))
            }
            // tests/python/test_docs.py and tests/recordings run these examples.
            Some(Check::Python)
                if ["docs/python.md", "docs/recipes.md", "docs/recordings.md"]
                    .contains(&document) =>
            {
                Ok(())
            }
            Some(Check::Python) => self.check_python(&block.text),
        }
    }
}

/// Flags that take an input.
const INPUT_FLAGS: [&str; 6] =
    ["--left", "--right", "--side-by-side", "--top-bottom", "--calibration", "--align"];

/// Stand-ins for a camera, and for one with both views.
const LIVE: &str = "videotestsrc is-live=true pattern=ball ! \
                    video/x-raw,format=GRAY8,width=160,height=120,framerate=30/1";
const LIVE_BOTH: &str = "videotestsrc is-live=true pattern=ball ! \
                         video/x-raw,format=GRAY8,width=320,height=120,framerate=30/1";

/// Replaces the sink of a `--stream` fragment if it waits for a server or a caller.
fn streamed(fragment: &str) -> Result<String, String> {
    let description: Vec<&str> = fragment.split_whitespace().collect();
    is_pipeline(&[&["appsrc", "!"], &description[..]].concat())?;
    let (rest, sink) = fragment.rsplit_once('!').unwrap_or(("", fragment));
    let waits = ["srtsink", "rtspclientsink"].iter().any(|name| sink.contains(name));
    Ok(match waits {
        true => format!("{rest}! fakesink"),
        false => fragment.to_owned(),
    })
}

/// Checks elements, properties and links of a pipeline as far as its elements are installed.
fn is_pipeline(words: &[&str]) -> Result<(), String> {
    gst::init().unwrap();
    match gst::parse::launchv_full(words, None, gst::ParseFlags::empty()) {
        Ok(_) => Ok(()),
        Err(error) if error.matches(gst::ParseError::NoSuchElement) => {
            eprintln!("skipped: a pipeline of the documents: {error}");
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).unwrap();
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Fails with all errors.
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_block_of_the_documents_works() {
    let mut wrong = Vec::new();
    for (name, text) in documents() {
        let scratch = Scratch::new();
        for block in blocks::split(&text).0 {
            if let Err(error) = scratch.check_block(&name, &block) {
                wrong.push(format!("{name}:{}: {error}", block.line));
            }
        }
    }
    assert_none(&wrong);
}

/// Every entry of the list matches a block.
#[test]
fn the_list_of_blocks_that_are_only_shown_is_up_to_date() {
    let documents = documents();
    let is_there = |(name, begin, _): &(&str, &str, &str)| {
        let (_, text) = documents.iter().find(|document| document.0 == *name).expect("a document");
        blocks::split(text).0.iter().any(|block| block.text.trim_start().starts_with(begin))
    };
    for shown in SHOWN {
        assert!(is_there(&shown), "{shown:?}");
    }
}

/// Returns the flags that a text names.
fn flags_in(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = text.split(|c| !is_part(c));
    let flags = words.filter(|word| {
        word.strip_prefix("--")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    });
    flags.map(|flag| flag.trim_end_matches('-').to_owned()).collect()
}

/// Returns the help of a command, or `None` if there is no such command.
fn help(command: &[&str]) -> Option<String> {
    let (status, help, _) = outcome(&mut stereod(&[command, &["--help-all"]].concat()));
    (status == 0).then_some(help)
}

/// Commands and flags in the prose exist.
#[test]
fn commands_and_flags_in_the_prose_exist() {
    let whole = help(&[]).unwrap();
    let commands = whole.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"run") && commands.len() > 8, "{commands:?}");
    let single = commands.iter().filter(|command| **command != "help").map(|name| vec![*name]);
    let nested = [
        ["calibration", "show"],
        ["calibration", "convert"],
        ["calibration", "refine"],
        ["config", "print"],
        ["batch", "missing"],
        ["batch", "verify"],
        ["batch", "merge"],
    ];
    let helps = single.chain(nested.map(|names| names.to_vec()));
    let helps = helps.map(|names| (names.join(" "), help(&names).expect("a command")));
    let helps: Vec<(String, String)> = helps.collect();
    let mut all = flags_in(&whole);
    all.extend(helps.iter().flat_map(|(_, help)| flags_in(help)));
    // Scripts have flags of their own.
    for script in fs::read_dir(root().join("scripts")).unwrap() {
        let path = script.unwrap().path();
        all.extend(fs::read_to_string(path).map(|text| flags_in(&text)).unwrap_or_default());
    }
    let mut wrong = Vec::new();
    for (command, help) in &helps {
        // The examples of its own help.
        let examples =
            help.lines().filter(|line| line.starts_with(&format!("  stereod {command}")));
        for flag in examples.flat_map(flags_in).filter(|flag| !flags_in(help).contains(flag)) {
            wrong.push(format!("stereod {command} --help: no flag {flag}"));
        }
    }
    for (name, text) in documents() {
        for (line, span) in blocks::spans(&blocks::split(&text).1) {
            let mut words = span.split_whitespace();
            let (known, flags) = match words.next() {
                // The program's name alone.
                Some("stereod") if span == "stereod" => continue,
                Some("stereod") => {
                    let subcommand = words.next().unwrap_or_default();
                    let two = [subcommand, words.next().unwrap_or_default()];
                    match help(&two).or_else(|| help(&two[..1])) {
                        Some(help) => (flags_in(&help), flags_in(&span)),
                        None => {
                            wrong.push(format!("{name}:{line}: no such command: `{span}`"));
                            continue;
                        }
                    }
                }
                Some(flag) if flag.starts_with("--") => (all.clone(), flags_in(&span)),
                _ => continue,
            };
            for flag in flags.difference(&known) {
                wrong.push(format!("{name}:{line}: no flag {flag}: `{span}`"));
            }
        }
    }
    assert_none(&wrong);
}

/// Source files and folders that the documents name exist.
#[test]
fn files_in_the_prose_exist() {
    let mut documents = documents();
    let name = "CONTRIBUTING.md";
    documents.push((name.into(), fs::read_to_string(root().join(name)).unwrap()));
    let folders = ["src/", "kernels/", "tests/", "scripts/", "config/", "docs/"];
    let mut wrong = Vec::new();
    for (name, text) in documents {
        for (line, span) in blocks::spans(&blocks::split(&text).1) {
            let path = span.split(' ').next().unwrap_or_default().replace("NAME", "*");
            let pattern = root().join(&path);
            let is_named = folders.iter().any(|folder| path.starts_with(folder));
            if is_named && glob::glob(pattern.to_str().unwrap()).unwrap().next().is_none() {
                wrong.push(format!("{name}:{line}: no such file: `{span}`"));
            }
        }
    }
    assert_none(&wrong);
}

/// Returns the files that the Debian package installs: their paths there, and here.
fn installed() -> BTreeMap<PathBuf, PathBuf> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let mut files = BTreeMap::new();
    for asset in assets {
        let [from, to] = [0, 1].map(|part| asset[part].as_str().unwrap());
        for file in glob::glob(root().join(from).to_str().unwrap()).unwrap().flatten() {
            let name = if to.ends_with('/') { file.file_name() } else { None };
            files.insert(name.map_or(to.into(), |name| Path::new(to).join(name)), file);
        }
    }
    files
}

/// Links between documents work in the Debian package, too.
#[test]
fn what_installed_documents_link_to_is_installed() {
    let (files, mut links, mut dead) = (installed(), 0, Vec::new());
    for (name, file) in files.iter().filter(|(name, _)| name.extension() == Some("md".as_ref())) {
        let prose = blocks::split(&fs::read_to_string(file).unwrap()).1;
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let mut target = name.parent().unwrap().to_path_buf();
            for part in Path::new(link) {
                match part == ".." {
                    true => drop(target.pop()),
                    false => target.push(part),
                }
            }
            links += 1;
            if !files.contains_key(&target) {
                dead.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(links > 100, "{links}");
    assert_none(&dead);
}

/// The examples in the package's configuration are valid settings.
#[test]
fn the_configuration_of_the_package_can_be_filled_in() {
    let text = fs::read_to_string(root().join("config/debian/config.toml")).unwrap();
    let filled = text.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if setting.starts_with(|c: char| c == '[' || c.is_ascii_lowercase()) => {
            setting
        }
        _ => line,
    });
    let filled: Vec<&str> = filled.collect();
    assert!(filled.iter().any(|line| line.starts_with("left = ")), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, filled.join("\n")).unwrap();
    let (status, _, stderr) = outcome(&mut stereod(&["config", "check", file.to_str().unwrap()]));
    assert_eq!(status, 0, "{stderr}");
    // Calibrations are written as TOML (`stereod calibrate -o`).
    let calibration = filled.iter().find_map(|line| line.strip_prefix("file = ")).unwrap();
    assert!(calibration.contains(".toml"), "{calibration}");
}
