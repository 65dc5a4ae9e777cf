//! The whole binary: usage, configuration, and the small commands.

mod bench;
mod cores;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "linked")
))]
mod gstreamer;

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::outcome::{ended, outcome, outcome_of};
use crate::common::program::stereod;

/// Returns the standard output of a run that must succeed.
fn prints(arguments: &[&str]) -> String {
    let (status, stdout, stderr) = outcome(&mut stereod(arguments));
    assert_eq!((status, stderr.as_str()), (0, ""), "{arguments:?}");
    stdout
}

/// Returns the message of a run with wrong usage or a wrong configuration.
fn refuses(command: &mut Command) -> String {
    let (status, stdout, stderr) = outcome(command);
    assert_eq!((status, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    stderr
}

fn write(folder: &Path, text: &str) -> String {
    let file = folder.join("config.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn what_is_likely_meant_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["both.mp4", "both.png"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let board = ["--board", "chessboard:9x6", "--square", "0.03", "-o", "c.toml"];
    for (arguments, words) in [
        (&["rnu", "--demo"][..], "a similar subcommand exists: 'run'"),
        (&["demo"], "`stereod run --demo`"),
        (&["run", "both.mp4"], "`--side-by-side 'both.mp4'`"),
        (&["run", "--left", "both.mp4"], "'stereod run --side-by-side both.mp4'"),
        (&["rectify", "both.mp4", "-o", "out"], "`--side-by-side 'both.mp4'`"),
        (&[&["calibrate", "both.mp4"], &board[..]].concat(), "`--side-by-side 'both.mp4'`"),
        (&["match", "both.png"], "'stereod match --side-by-side both.png -o OUT.png'"),
        (&["match", "both.mp4"], "'stereod run --side-by-side both.mp4'"),
        (&["match", "--side-by-side", "both.mp4", "-o", "d.png"], "`stereod run` matches videos"),
        (&["obstacles", "both.png"], "'stereod obstacles --side-by-side both.png'"),
    ] {
        let told = refuses(stereod(arguments).current_dir(folder.path()));
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}

#[test]
fn help_names_every_command() {
    let help = prints(&["--help"]);
    for name in [
        "run",
        "batch",
        "match",
        "bench",
        "evaluate",
        "info",
        "calibration",
        "devices",
        "config",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("\n  {name} ")), "{name}");
    }
    assert_eq!(prints(&["-h"]), help);
    for name in ["run", "match", "bench", "evaluate"] {
        for help in ["--help", "--help-all"].map(|flag| prints(&[name, flag])) {
            for part in [
                "Usage: stereod ",
                "--disparities <N|auto>",
                "[default: 64]",
                "--set <SECTION.KEY=VALUE>",
                "Examples:",
            ] {
                assert!(help.contains(part), "{name}: {part}");
            }
        }
    }
}

/// `--help` fits a screen and `--help-all` has every flag of the table of settings.
#[test]
fn help_is_short_unless_all_is_asked_for() {
    let help = prints(&["run", "--help"]);
    assert_eq!(prints(&["run", "-h"]), help);
    assert!(help.lines().count() <= 80, "{help}");
    assert!(!help.contains("--p2-guide"));
    let all = prints(&["run", "--help-all"]);
    for part in ["--p2-guide", "--demo-size", "--top-bottom", "--keep-free", "--gpu-priority"] {
        assert!(all.contains(&format!("\n      {part} ")), "{part}");
    }
}

#[test]
fn version_is_the_package_version() {
    assert_eq!(prints(&["--version"]), format!("stereod {}\n", env!("CARGO_PKG_VERSION")));
}

/// Texts are wrapped at the width of the terminal, with no additional line breaks and no longer
/// lines.
#[test]
fn help_is_wrapped_once() {
    const WIDTH: usize = 100;
    let commands = prints(&["--help"]);
    let commands = commands.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    let commands = commands.filter_map(|line| line.split_whitespace().next());
    let single = commands.filter(|name| *name != "help").map(|name| vec![name]);
    let nested = [
        ["calibration", "show"],
        ["calibration", "convert"],
        ["config", "print"],
        ["batch", "missing"],
        ["batch", "merge"],
    ];
    for command in single.chain(nested.map(|names| names.to_vec())).chain([Vec::new()]) {
        let help = prints(&[&command[..], &["--help-all"]].concat());
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let is_prose = |line: &str| line.starts_with(|c: char| !c.is_whitespace());
            assert!(pair[0].len() <= WIDTH, "{command:?}: {}", pair[0]);
            let next = pair[1].split(' ').next().unwrap_or_default();
            assert!(
                !(is_prose(pair[0]) && is_prose(pair[1])) || pair[0].len() + 1 + next.len() > WIDTH,
                "{command:?}: {}\n{}",
                pair[0],
                pair[1]
            );
        }
    }
}

#[test]
fn no_command_shows_the_help() {
    let (status, stdout, stderr) = outcome(&mut stereod(&[]));
    assert_eq!((status, stdout.as_str()), (2, ""));
    assert!(stderr.contains("Usage: stereod <COMMAND>"));
}

#[test]
fn run_without_a_source_explains_the_choices() {
    let message = refuses(&mut stereod(&["run", "--headless"]));
    for choice in
        ["--demo", "--left LEFT --right RIGHT", "--side-by-side BOTH", "--top-bottom BOTH"]
    {
        assert!(message.contains(choice), "{choice}");
    }
}

#[test]
fn wrong_usage_is_refused() {
    for (arguments, part) in [
        (&["benhc"][..], "bench"),
        (&["run", "--demo", "--disparites", "3"], "--disparities"),
        (&["run", "--left", "a.mp4"], "--right"),
        (&["run", "--demo", "--side-by-side", "a.mp4"], "cannot be used with"),
        (&["run", "--demo", "--p1", "300"], "`auto` or a whole number from 0 to 255"),
        (&["run", "--demo", "--engine", "gpu"], "cuda"),
        (
            &["run", "--demo", "--tiles", "2x2"],
            "`auto`, `off`, or rows, columns and overlap in pixels such as `4x1,64`",
        ),
        (&["match", "l.png", "r.png", "-o", "o.png", "--tiles", "0x1,8"], "1 to 1024 of each"),
        (&["run", "--demo", "--preview-view", "left"], "give --preview as well"),
        (&["run", "--demo", "--clouds-format", "pcd"], "give --clouds as well"),
        (&["run", "--demo", "--half"], "`--half` is for two videos"),
        (&["run", "--left", "ros2:/x", "--right", "b.mp4"], "both views must come from the graph"),
        (&["match", "l.png", "r.png"], "--output"),
        (&["bench", "--size", "640"], "640x480"),
        (&["bench", "--engine", "cpu", "--multiprocessors", "4"], "is for GPUs"),
        (&["bench", "--fit", "30", "--multiprocessors", "4,8"], "name one number"),
        (&["completions", "tcsh"], "bash"),
        (&["man", "walk"], "commands: run, batch, match"),
    ] {
        let message = refuses(&mut stereod(arguments));
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[cfg(feature = "ros2")]
#[test]
fn a_wrong_variable_of_ros_is_told_before_anything_is_opened() {
    let published = ["run", "--left", "a.mp4", "--right", "b.mp4", "--headless", "--ros2", "/x"];
    for arguments in [&published[..], &["run", "ros2:/x", "--headless"]] {
        for domain in ["abc", "999"] {
            let message = refuses(stereod(arguments).env("ROS_DOMAIN_ID", domain));
            let words = format!("ROS_DOMAIN_ID is `{domain}`; give a number from 0 to 232");
            assert!(message.contains(&words), "{message}");
        }
    }
}

#[test]
fn wrong_key_in_the_file_has_line_and_alternatives() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "# Mine.\n[matching]\np1 = 9\ndisparites = 64\n");
    let expected = format!(
        "error: {file}:4: unknown key `disparites` in [matching]; did you mean `disparities`? keys: "
    );
    for command in [
        stereod(&["config", "check", &file]),
        stereod(&["config", "check", "--config", &file]),
        stereod(&["config", "print", "--config", &file]),
        stereod(&["run", "--demo", "--config", &file]),
        stereod(&["match", "l.png", "r.png", "-o", "o.png", "--config", &file]),
        stereod(&["bench", "--config", &file]),
    ] {
        let mut command = command;
        let message = refuses(&mut command);
        assert!(message.starts_with(&expected), "{command:?}: {message}");
    }
}

#[test]
fn the_users_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("stereod")).unwrap();
    let file = write(&folder.path().join("stereod"), "[matching]\np1 = 9\n");
    let here = |arguments: &[&str]| {
        let mut command = stereod(arguments);
        command.env("XDG_CONFIG_HOME", folder.path());
        command
    };
    let (status, stdout, _) = outcome(&mut here(&["config", "check"]));
    assert_eq!((status, stdout), (0, format!("{file}: no mistakes\n")));
    let (_, stdout, _) = outcome(&mut here(&["config", "print", "--origin"]));
    let line = stdout.lines().find(|line| line.starts_with("p1 = ")).unwrap();
    assert!(line.starts_with("p1 = 9 ") && line.ends_with(&format!("# {file}:2")), "{line}");

    write(&folder.path().join("stereod"), "p1 = 9\n");
    let message = refuses(&mut here(&["config", "check"]));
    assert_eq!(
        message,
        format!("error: {file}:1: the key `p1` belongs below the line [matching]\n")
    );
}

#[test]
fn a_named_file_must_exist() {
    let message = refuses(&mut stereod(&["bench", "--config", "/nonexistent/a.toml"]));
    assert!(message.contains("/nonexistent/a.toml cannot be read: No such file"), "{message}");
}

#[test]
fn typo_in_the_environment() {
    let message = refuses(stereod(&["config", "print"]).env("STEREOD_MATCHING_DISPARITES", "64"));
    assert!(
        message.starts_with(
            "error: STEREOD_MATCHING_DISPARITES: unknown variable; \
             did you mean STEREOD_MATCHING_DISPARITIES? keys of [matching]: "
        ),
        "{message}"
    );
    let message = refuses(stereod(&["bench"]).env("STEREOD_ENGINE_KIND", "gpu"));
    assert!(message.contains("STEREOD_ENGINE_KIND: wrong value \"gpu\" for `kind`"), "{message}");
}

/// `prior` may name a network, so a wrong name gets the list of them.
#[test]
fn typo_in_the_name_of_a_network() {
    for how in ["--prior=network:medium", "--set=matching.prior=network:medium"] {
        let message = refuses(&mut stereod(&["match", "l.png", "r.png", "-o", "o.png", how]));
        assert!(message.contains("`network:coarse`"), "{message}");
    }
}

#[test]
fn typo_in_an_assignment() {
    let message = refuses(&mut stereod(&["config", "print", "--set", "matching.meidan=3"]));
    assert!(
        message.starts_with(
            "error: --set matching.meidan=3: unknown key `meidan` in [matching]; \
             did you mean `median`? keys: "
        ),
        "{message}"
    );
}

#[test]
fn values_that_no_engine_can_compute() {
    for (arguments, part) in [
        (&["bench", "--p1", "50", "--p2", "20"][..], "P2 must be at least P1"),
        (&["bench", "--p2", "250"], "add up to"),
        (&["run", "--demo", "--set", "matching.disparities=0"], "a number from 1 to 1024"),
        (&["run", "--demo", "--min-disparity", "-3000"], "a number from -2047 to 2046"),
    ] {
        let message = refuses(&mut stereod(arguments));
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn wrong_log_filters_are_refused() {
    let message = refuses(&mut stereod(&["bench", "--set", "log.filter=dbug"]));
    assert!(message.contains("`debug`"), "{message}");
    let message = refuses(stereod(&["bench"]).env("RUST_LOG", "stereod=loud"));
    assert!(message.contains("RUST_LOG=stereod=loud"), "{message}");
}

#[test]
fn printed_settings_check_and_print_again() {
    let folder = tempfile::tempdir().unwrap();
    let changes =
        ["config", "print", "--set", "matching.left_right=off", "--set", "output.record=a b.mkv"];
    let printed = prints(&changes);
    assert!(
        printed.contains("\nleft_right = \"off\"\n")
            && printed.contains("\nrecord = \"a b.mkv\"\n")
    );
    let file = write(folder.path(), &printed);
    assert_eq!(prints(&["config", "check", &file]), format!("{file}: no mistakes\n"));
    assert_eq!(prints(&["config", "print", "--config", &file]), printed);

    let with_origins = prints(&["config", "print", "--origin", "--config", &file]);
    assert!(with_origins.contains(&format!("# {file}:")));
    let file = write(folder.path(), &with_origins);
    assert_eq!(prints(&["config", "print", "--config", &file]), printed);
}

#[test]
fn completions_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = prints(&["completions", shell]);
        assert!(script.contains("stereod") && script.contains("side-by-side"), "{shell}");
        // Each flag of a view in `run` and in `calibrate`; zsh names its own function.
        let expected = if shell == "zsh" { 1 } else { 8 };
        assert_eq!(script.matches("stereod devices --sources").count(), expected, "{shell}");
    }
}

/// bash completes `--left` with files and cameras, and those of `match` with files only.
#[test]
fn cameras_are_completed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("left.mp4"), "").unwrap();
    std::fs::write(folder.path().join("script"), prints(&["completions", "bash"])).unwrap();
    let complete = r#"
        . ./script; rm script; compopt() { :; }
        stereod() { [ "$1 $2" = "devices --sources" ] && printf '/dev/video0\naravissrc camera-name=A-1\n'; }
        for command in "run --left" "match --side-by-side"; do
            COMP_WORDS=(stereod $command ""); COMP_CWORD=3
            _stereod stereod "" "${COMP_WORDS[2]}"
            printf '%s|' "${COMPREPLY[@]}"; echo
        done"#;
    let mut bash = Command::new("bash");
    let (status, stdout, stderr) =
        outcome(bash.current_dir(folder.path()).args(["--norc", "-c", complete]));
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(stdout, "left.mp4|/dev/video0|aravissrc camera-name=A-1|\nleft.mp4|\n");
}

#[test]
fn manual_pages_are_troff() {
    let whole = prints(&["man"]);
    assert!(whole.starts_with(".ie ") && whole.contains("\n.TH stereod 1 "), "{whole}");
    assert!(prints(&["man", "run"]).contains("\n.TH stereod-run 1 "));

    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(prints(&["man", "--dir", pages.to_str().unwrap()]), "");
    for page in ["stereod.1", "stereod-run.1", "stereod-config-check.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    // The pipe is closed before anything is written.
    let mut child = stereod(&["config", "print"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = ended(child);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = stereod(&["config", "print"]).stdout(full).stderr(Stdio::piped()).spawn();
    let (status, _, stderr) = outcome_of(ended(child.expect("the binary starts")));
    assert_eq!(status, 1);
    assert_eq!(
        stderr,
        "error: standard output cannot be written: No space left on device (os error 28)\n"
    );
}
