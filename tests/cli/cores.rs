//! Cores and niceness of the CPU engine, as the whole program sets them.

use super::{prints, refuses};
use crate::common::outcome::{outcome, wait_until};
use crate::common::program::stereod;

const SMALL: [&str; 9] =
    ["bench", "--engine", "cpu", "--size", "64x48", "--repeat", "3", "-d", "16"];

#[test]
fn wrong_lists_of_cores_are_refused_with_what_is_right() {
    for list in ["", "3-1", "0-", "all", "1024"] {
        let message = refuses(&mut stereod(&["bench", "--cores", list]));
        assert!(message.contains("--cores") && message.contains("such as `0-3,6`"), "{message}");
    }
    let message = refuses(stereod(&["bench"]).env("STEREOD_ENGINE_CORES", "two"));
    assert!(message.contains("STEREOD_ENGINE_CORES") && message.contains("0-3,6"), "{message}");
    for (nice, expected) in
        [("20", "-20 to 19"), ("-21", "-20 to 19"), ("polite", "`auto` or a whole number")]
    {
        let (status, _, stderr) = outcome(&mut stereod(&["bench", "--nice", nice]));
        assert!(status == 2 && stderr.contains(expected), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn cores_that_there_are_not_are_named_and_others_are_used() {
    let (status, stdout, stderr) =
        outcome(&mut stereod(&[&SMALL[..], &["--cores", "1020-1023"]].concat()));
    assert_eq!((status, stdout.as_str()), (2, ""), "{stderr}");
    for part in ["error: ", "may not run on 1020-1023", "there are ", "--cores"] {
        assert!(stderr.contains(part), "{stderr}");
    }

    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let core = allowed.unwrap().trim().rsplit([',', '-']).next().unwrap();
    let wishes = ["--cores", core, "--nice", "19", "--verify"];
    let text = prints(&[&SMALL[..], &wishes].concat());
    assert!(text.contains(&format!("1 thread on core {core}, nice 19)")), "{text}");
    assert!(text.contains("identical with the reference"), "{text}");
    // Tiles are filtered as one image afterwards, by threads that are pinned as well.
    let tiles = ["--tiles", "2x1,16", "--fill", "rays", "--smoothing", "0.3"];
    let text = prints(&[&SMALL[..], &wishes, &tiles].concat());
    assert!(text.contains("identical with the reference"), "{text}");
}

/// Name, niceness and cores of every thread of a process.
#[cfg(target_os = "linux")]
fn threads(process: u32) -> Vec<(String, i32, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let thread = |folder: std::path::PathBuf| {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let (stat, status) = (text("stat")?, text("status")?);
        // The third field follows the name in brackets; niceness is the 19th.
        let nice = stat.rsplit(") ").next()?.split(' ').nth(16)?.parse().ok()?;
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((text("comm")?.trim().to_owned(), nice, cores.trim().to_owned()))
    };
    // Some threads may end meanwhile.
    tasks.filter_map(|task| thread(task.ok()?.path())).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn only_the_threads_that_match_are_held_to_cores() {
    use std::process::Stdio;

    let (_, own, all) = threads(std::process::id()).remove(0);
    let core = all.rsplit([',', '-']).next().unwrap().to_owned();
    let nice = (own + 7).min(19);
    let wishes = ["--cores", &core, "--nice", &nice.to_string(), "--threads", "3"];
    let run = ["run", "--demo", "--headless", "--engine", "cpu", "--set", "demo.frames=0"];
    let mut command = stereod(&[&run[..], &wishes].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut found = Vec::new();
    wait_until("all threads", || {
        found = threads(child.id());
        // Threads name themselves when they begin.
        let named = |name: &str| found.iter().filter(|thread| thread.0.starts_with(name)).count();
        ["source", "matcher"].iter().all(|name| named(name) == 1) && named("match-") == 3
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let (matching, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|(name, ..)| name.starts_with("match-"));
    // Two threads that the team has started, and the one that replaces the caller.
    assert_eq!(matching.len(), 3, "{found:?}");
    assert!(matching.iter().all(|thread| (thread.1, &thread.2) == (nice, &core)), "{found:?}");
    assert!(others.iter().any(|(name, ..)| name == "matcher"), "{found:?}");
    assert!(others.iter().all(|thread| (thread.1, &thread.2) == (own, &all)), "{found:?}");
}
