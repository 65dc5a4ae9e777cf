//! Effect of outputs on existing files: none before their first frame, none on outputs of another
//! run, none on files of other origin.

use std::fs;

use super::*;

const DEMO: [&str; 7] = ["run", "--demo", "--demo-size", "96x64", "-d", "24", "--headless"];

/// The names in a folder, hidden ones too, without the record of numbered files.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".stereod-files");
    names.sort();
    names
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// An endless run of the demo scene whose recording has begun.
fn endless(folder: &Path, outputs: &[&str]) -> Child {
    let arguments = [&DEMO[..], &["--frames", "0"], outputs].concat();
    let mut command = stereod(folder, &arguments);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let file = folder.join("o.mkv");
    wait_until("the recording grows", || file.metadata().is_ok_and(|file| file.len() > 50_000));
    child
}

#[test]
fn earlier_outputs_stay_whole_where_a_run_never_starts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), b"x").unwrap();
    for name in ["o.mkv", "p.mp4", "s.json"] {
        fs::write(at(name), name).unwrap();
    }
    let pictures = ["--frames", "3", "--pictures", "p"];
    assert_eq!(run(folder.path(), &[&DEMO[..], &pictures].concat()).0, 0);
    let first = fs::read(at("p/000000.png")).unwrap();
    let description = fs::read(at("p/disparity.json")).unwrap();
    let before = names(folder.path());
    let good = ["--record", "o.mkv", "--preview", "p.mp4", "--stats", "s.json", "--pictures", "p"];
    for bad in [
        &["--preview", "none/x.mp4"][..],
        &["--pictures", "file"],
        &["--record", "none/o.mkv"],
        &["--stats", "none/s.json"],
        &["--stats", "p"],
        &["--stream", "filesink location=none/o.raw"],
    ] {
        // The bad output replaces the good one with the same flag.
        let good = good.chunks(2).filter(|pair| pair[0] != bad[0]).flatten().copied();
        let outputs: Vec<&str> = good.chain(bad.iter().copied()).chain(["--depth"]).collect();
        let calibrated = ["--focal", "100", "--baseline", "0.1"];
        let (status, _, stderr) = run(folder.path(), &[&DEMO[..], &calibrated, &outputs].concat());
        assert_eq!(status, 1, "{bad:?}: {stderr}");
        for name in ["o.mkv", "p.mp4", "s.json"] {
            assert_eq!(fs::read(at(name)).unwrap(), name.as_bytes(), "{bad:?}: {stderr}");
        }
        assert_eq!(fs::read(at("p/000000.png")).unwrap(), first);
        assert_eq!(fs::read(at("p/disparity.json")).unwrap(), description);
        assert_eq!((names(folder.path()), names(&at("p")).len()), (before.clone(), 4), "{bad:?}");
    }
}

#[test]
fn a_second_run_does_not_touch_the_outputs_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("o.mkv", at("link.mkv")).unwrap();
    let outputs =
        ["--record", "o.mkv", "--preview", "p.mp4", "--stats", "s.json", "--pictures", "p"];
    let first = endless(folder.path(), &outputs);
    for (flag, name) in [
        ("--record", "o.mkv"),
        ("--record", "link.mkv"),
        ("--preview", "p.mp4"),
        ("--stats", "s.json"),
        ("--pictures", "p"),
    ] {
        let arguments = [&DEMO[..], &["--frames", "5", flag, name]].concat();
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 1, "{flag}: {stderr}");
        let said = stderr.contains(name) && stderr.contains("another run");
        assert!(said && stderr.contains(flag), "{flag}: {stderr}");
    }
    signal(&first, libc::SIGTERM);
    let Output { status, stderr, .. } = ended(first);
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    let statistics: Value = serde_json::from_slice(&fs::read(at("s.json")).unwrap()).unwrap();
    let frames = recorded(&at("o.mkv"));
    assert_eq!(statistics["recorded"], frames.len());
    assert!(frames[0] == reference(0));
    assert_eq!(names(folder.path()), ["link.mkv", "o.mkv", "p", "p.mp4", "s.json"]);

    // Leftovers of a killed run block nobody, and are removed.
    let mut killed = endless(folder.path(), &outputs);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let arguments = [&DEMO[..], &["--frames", "5"], &outputs].concat();
    let (status, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(recorded(&at("o.mkv")).len(), 5);
    assert_eq!(names(folder.path()), ["link.mkv", "o.mkv", "p", "p.mp4", "s.json"]);
    assert_eq!(names(&at("p")).len(), 6);
}

#[test]
fn one_file_is_not_two_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    image::GrayImage::new(32, 24).save(at("a.png")).unwrap();
    fs::write(at("there.mkv"), b"earlier").unwrap();
    fs::hard_link(at("there.mkv"), at("hard.mp4")).unwrap();
    fs::hard_link(at("there.mkv"), at("hard.json")).unwrap();
    std::os::unix::fs::symlink("new.mkv", at("soft.mp4")).unwrap();
    let matched = ["match", "a.png", "a.png", "-d", "16"];
    let calibrate = ["calibrate", "--left", "a", "--right", "b", "--board", "chessboard:9x6"];
    let calibrate = [&calibrate[..], &["--square", "0.02"]].concat();
    let segmented = [&DEMO[..], &["--segment", "10min"]].concat();
    for (command, outputs) in [
        (&matched[..], ["-o", "x.png", "--colour", "x.png"]),
        (&matched, ["-o", "x.png", "--colour", "./x.png"]),
        (&DEMO, ["--record", "there.mkv", "--preview", "hard.mp4"]),
        (&DEMO, ["--record", "new.mkv", "--preview", "soft.mp4"]),
        (&DEMO, ["--record", "there.mkv", "--stats", "hard.json"]),
        (&DEMO, ["--record", "new.mkv", "--confidence", "./new.mkv"]),
        (&segmented, ["--record", "new.mkv", "--confidence", "new.mkv"]),
        (&DEMO, ["--pictures", ".", "--stats", "disparity.json"]),
        (&calibrate, ["-o", "rig.toml", "--json", "rig.toml"]),
    ] {
        let (status, _, stderr) = run(folder.path(), &[command, &outputs].concat());
        assert_eq!(status, 2, "{outputs:?}: {stderr}");
        let said = stderr.contains(outputs[0]) && stderr.contains(outputs[2]);
        assert!(said && stderr.contains("same file"), "{outputs:?}: {stderr}");
    }
    assert_eq!(fs::read(at("there.mkv")).unwrap(), b"earlier");
    assert!(!at("x.png").exists() && !at("new.mkv").exists() && !at("rig.toml").exists());
    // Outputs that keep nothing may be named twice.
    std::os::unix::fs::symlink("/dev/null", at("null.mkv")).unwrap();
    let null = ["--frames", "2", "--record", "null.mkv", "--stats", "/dev/null"];
    let (status, _, stderr) = run(folder.path(), &[&DEMO[..], &null].concat());
    assert_eq!(status, 0, "{stderr}");
}

/// An output must not be one of the files that another output writes into its folder.
#[test]
fn no_output_has_the_name_of_another_ones_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("p")).unwrap();
    std::os::unix::fs::symlink("p", at("same")).unwrap();
    let segment = "s-20261121T101500Z-00001.mkv";
    for (outputs, names) in [
        (&["--pictures", "p", "--stats", "p/000003.png"][..], ["--stats", "--pictures"]),
        (&["--pictures", "same", "--stats", "p/000003.png"], ["--stats", "--pictures"]),
        (
            &["--focal", "90", "--baseline", "0.1", "--clouds", "p", "--stats", "p/1000000.ply"],
            ["--stats", "--clouds"],
        ),
        (
            &["--pictures", "p", "--set", "window.settings=p/disparity.json"],
            ["window.settings", "p"],
        ),
        (&["--record", "s.mkv", "--segment", "1h", "--stats", segment], ["--stats", "--record"]),
        (&["--stats", "x", "--set", "window.settings=./x"], ["--stats", "window.settings"]),
        (
            &["--record", "o.mkv", "--stream", "queue ! filesink location=./o.mkv"],
            ["--stream", "--record"],
        ),
    ] {
        let (status, _, stderr) = run(folder.path(), &[&DEMO[..], outputs].concat());
        assert_eq!(status, 2, "{outputs:?}: {stderr}");
        assert!(names.iter().all(|name| stderr.contains(name)), "{outputs:?}: {stderr}");
    }
    assert!(fs::read_dir(at("p")).unwrap().next().is_none());
    let well = ["--frames", "2", "--pictures", "p", "--stats", "p/3.png"];
    let (status, _, stderr) = run(folder.path(), &[&DEMO[..], &well].concat());
    assert_eq!(status, 0, "{stderr}");
}

/// The extension of a name is checked before anything starts.
#[test]
fn a_wrong_ending_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    image::GrayImage::new(32, 24).save(folder.path().join("a.png")).unwrap();
    let matched = ["match", "a.png", "a.png", "-d", "16", "-o", "x.png"];
    // There is no such source, which would be the next error.
    let source = ["run", "--left", "none", "--right", "none"];
    for (command, flag, name) in [
        (&source[..], "--record", "a.mp4"),
        (&source, "--confidence", "a.png"),
        (&source, "--preview", "a.mkv"),
        (&matched, "--colour", "a.jpg"),
        (&matched, "--confidence", "a.tif"),
    ] {
        let (status, _, stderr) = run(folder.path(), &[command, &[flag, name]].concat());
        assert_eq!(status, 2, "{flag} {name}: {stderr}");
        assert!([flag, name, "name it ."].iter().all(|word| stderr.contains(word)), "{stderr}");
    }
    assert!(!folder.path().join("x.png").exists());
}

#[test]
fn a_folder_holds_the_pictures_of_one_run_and_those_of_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let pictures = |dir: &str, frames: &str| {
        run(folder.path(), &[&DEMO[..], &["--pictures", dir, "--frames", frames]].concat())
    };
    assert_eq!(pictures("p", "9").0, 0);
    fs::write(at("p/notes.txt"), b"mine").unwrap();
    fs::write(at("p/12.png"), b"mine").unwrap();
    let (status, _, stderr) = pictures("p", "2");
    assert_eq!(status, 0, "{stderr}");
    let left = ["000000.png", "000001.png", "12.png", "disparity.json", "notes.txt"];
    assert_eq!(names(&at("p")), left);
    assert!(stderr.contains("p: new pictures take the place of 9"), "{stderr}");

    // Images of other origin, with and without a description of ours next to them.
    image::GrayImage::new(8, 6).save(at("p/000007.png")).unwrap();
    fs::create_dir(at("theirs")).unwrap();
    fs::copy(at("p/000007.png"), at("theirs/000000.png")).unwrap();
    for (dir, name) in [("p", "000007.png"), ("theirs", "000000.png")] {
        let theirs = fs::read(at(dir).join(name)).unwrap();
        let before = names(&at(dir));
        let (status, _, stderr) = pictures(dir, "12");
        assert_eq!(status, 1, "{stderr}");
        assert!(stderr.contains(name) && stderr.contains("another folder"), "{stderr}");
        assert_eq!(fs::read(at(dir).join(name)).unwrap(), theirs);
        assert_eq!(names(&at(dir)), before);
    }
}

#[test]
fn pipes_are_written_where_somebody_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["o.mkv", "p.mp4", "s.json"] {
        make_pipe(&at(name));
    }
    for (flag, name) in [("--record", "o.mkv"), ("--preview", "p.mp4"), ("--stats", "s.json")] {
        let (status, _, stderr) = run(folder.path(), &[&DEMO[..], &[flag, name]].concat());
        assert_eq!(status, 1, "{flag}: {stderr}");
        assert!(stderr.contains(name) && stderr.contains("nobody reads"), "{flag}: {stderr}");
    }
    let readers = ["o.mkv", "s.json"].map(|name| Reader::of(&at(name)));
    let outputs = ["--frames", "7", "--record", "o.mkv", "--stats", "s.json"];
    let (status, _, stderr) = run(folder.path(), &[&DEMO[..], &outputs].concat());
    assert_eq!(status, 0, "{stderr}");
    let [video, statistics] = readers.map(Reader::all);
    fs::write(at("read.mkv"), video).unwrap();
    assert_eq!(recorded(&at("read.mkv")), (0..7).map(reference).collect::<Vec<_>>());
    let statistics: Value = serde_json::from_slice(&statistics).unwrap();
    assert_eq!(statistics["recorded"], 7);

    // An MP4 file cannot be completed in a pipe.
    let reader = Reader::of(&at("p.mp4"));
    let (status, _, stderr) = run(folder.path(), &[&DEMO[..], &["--preview", "p.mp4"]].concat());
    assert!(status == 1 && stderr.contains("p.mp4: it is a pipe"), "{status}: {stderr}");
    reader.all();
}

/// A thread that reads a pipe to its end.
struct Reader {
    /// A writer that writes nothing: as long as it exists, the pipe has no end.
    held: fs::File,
    thread: std::thread::JoinHandle<Vec<u8>>,
}

impl Reader {
    /// Starts a reader that has opened the pipe when this returns.
    fn of(pipe: &Path) -> Self {
        use std::os::unix::fs::OpenOptionsExt;
        let path = pipe.to_path_buf();
        let thread = std::thread::spawn(move || fs::read(path).unwrap());
        let mut options = fs::OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        let mut held = None;
        wait_until("the pipe is read", || {
            held = options.open(pipe).ok();
            held.is_some()
        });
        Self { held: held.unwrap(), thread }
    }

    /// Bytes received so far.
    fn all(self) -> Vec<u8> {
        drop(self.held);
        self.thread.join().unwrap()
    }
}

#[test]
#[cfg(target_os = "linux")]
fn live_recordings_are_put_on_the_disk_while_they_grow() {
    let folder = tempfile::tempdir().unwrap();
    let threads = |child: &Child| -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
        tasks.filter_map(Result::ok).filter_map(name).map(|name| name.trim().to_owned()).collect()
    };
    let eye = "videotestsrc is-live=true pattern=ball ! \
               video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1";
    let arguments = ["--left", eye, "--right", eye, "--headless", "--record", "o.mkv"];
    let mut command = stereod(folder.path(), &with_statistics(&arguments));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let file = folder.path().join("o.mkv");
    wait_until("the recording grows", || file.metadata().is_ok_and(|file| file.len() > 10_000));
    assert!(threads(&child).contains(&"flush".to_owned()), "{:?}", threads(&child));
    let (status, _, stderr) = end(child);
    assert_eq!(status, 0, "{stderr}");
}
