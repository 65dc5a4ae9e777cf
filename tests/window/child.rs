//! This test binary started again as the process that owns the window.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::common::outcome::{LIMIT, Patience, wait_until};
use crate::common::screen::X;

/// Names the role of a process that was started by a test.
pub const ROLE: &str = "STEREOD_WINDOW_TEST_ROLE";

/// Names that process's snapshot folder.
pub const FOLDER: &str = "STEREOD_WINDOW_TEST_FOLDER";

/// This test binary in another role.
pub struct Child {
    process: process::Child,
    words: ChildStdin,
    lines: Receiver<String>,
}

impl Child {
    /// The command that plays a role.
    pub fn command(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "window::the_other_process", "--nocapture"]).env(ROLE, role);
        command
    }

    /// Starts a role on this screen.
    pub fn start(role: &str, x: &X, folder: &Path) -> Self {
        Self::start_scaled(role, x, folder, 1)
    }

    /// Starts a role on this screen, which has this number of pixels per point.
    pub fn start_scaled(role: &str, x: &X, folder: &Path, scale: u32) -> Self {
        let mut process = Self::command(role)
            .env("WINIT_X11_SCALE_FACTOR", scale.to_string())
            .env("DISPLAY", x.display())
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("WAYLAND_SOCKET")
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { words: process.stdin.take().unwrap(), process, lines }
    }

    /// Sends it a word.
    pub fn say(&mut self, word: &str) {
        writeln!(self.words, "{word}").unwrap();
    }

    /// Waits until it prints this line.
    pub fn expect(&mut self, line: &str) {
        let mut patience = Patience::begin();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(said) if said == line => return,
                Ok(_) => (),
                Err(RecvTimeoutError::Timeout) if !patience.is_over() => (),
                Err(error) => panic!("the window's process never said {line:?}: {error}"),
            }
        }
    }

    /// Waits for its end, which must be successful.
    pub fn expect_success(&mut self) {
        let mut status = None;
        wait_until("the end of the window's process", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The files of a folder in order, when there are `count` of them that no longer grow.
pub fn wait_for_files(folder: &Path, count: usize) -> Vec<PathBuf> {
    let mut patience = Patience::begin();
    loop {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        // Point clouds get their final name when they are complete.
        let whole = |file: &PathBuf| {
            file.extension().is_some_and(|e| e == "ply") || image::open(file).is_ok()
        };
        if files.len() == count && files.iter().all(whole) {
            files.sort();
            return files;
        }
        assert!(!patience.is_over(), "{count} files in {}: {files:?}", folder.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
