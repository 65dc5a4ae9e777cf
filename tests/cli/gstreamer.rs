//! The program without GStreamer, which is loaded when it is needed.

use std::path::Path;
use std::process::Command;

use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// Libraries that a video needs.
const LIBRARIES: [&str; 7] = [
    "libgio-2.0.so.0",
    "libglib-2.0.so.0",
    "libgobject-2.0.so.0",
    "libgstapp-1.0.so.0",
    "libgstbase-1.0.so.0",
    "libgstreamer-1.0.so.0",
    "libgstvideo-1.0.so.0",
];

/// The program on a machine whose files of these names are no libraries, in this folder.
fn without_gstreamer(folder: &Path, arguments: &[&str]) -> Command {
    for name in LIBRARIES {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let mut command = stereod(arguments);
    command.env("LD_LIBRARY_PATH", folder).current_dir(folder);
    command
}

#[test]
fn all_but_videos_and_cameras_works_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let picture = "P5\n64 32\n255\n".bytes().chain((0..64 * 32).map(|at| (at * at % 251) as u8));
    std::fs::write(folder.path().join("view.pgm"), picture.collect::<Vec<_>>()).unwrap();
    for arguments in [
        &["--version"][..],
        &["match", "view.pgm", "view.pgm", "-d", "16", "-o", "out.png"],
        &["run", "--demo", "--headless", "-d", "16", "--frames", "2", "--record", "d.mcap"],
        &["devices"],
    ] {
        let (status, _, stderr) = outcome(&mut without_gstreamer(folder.path(), arguments));
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
    }
}

#[test]
fn what_needs_it_names_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("view.mp4"), "x").unwrap();
    for arguments in [
        &["run", "--left", "view.mp4", "--right", "view.mp4", "--headless", "--record", "d.mkv"][..],
        &["run", "--demo", "--headless", "--record", "d.mkv"],
        &["run", "--demo", "--headless", "--stream", "fakesink"],
    ] {
        let (status, _, stderr) = outcome(&mut without_gstreamer(folder.path(), arguments));
        assert_eq!(status, 1, "{arguments:?}: {stderr}");
        for part in [
            "error: ",
            "videos and cameras need GStreamer 1.22",
            ".so.0: file too short",
            "install gstreamer1.0-plugins-base",
        ] {
            assert!(stderr.contains(part), "{arguments:?}: {stderr}");
        }
        assert!(!folder.path().join("d.mkv").exists());
    }
}
