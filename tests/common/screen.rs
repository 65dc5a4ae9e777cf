//! A virtual X screen with its keys and its mouse.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

use image::{Rgba, RgbaImage};

use super::outcome::{LIMIT, Patience};

/// A virtual X screen, which closes when dropped.
pub struct X {
    server: process::Child,
    display: String,
    folder: tempfile::TempDir,
}

impl X {
    /// Starts Xvfb with one screen of this size. If Xvfb or xdotool is not installed, prints a note
    /// and returns `None`.
    pub fn start(test: &str, (width, height): (u32, u32)) -> Option<Self> {
        for (program, argument, package) in
            [("Xvfb", "-help", "xvfb"), ("xdotool", "version", "xdotool")]
        {
            let mut command = Command::new(program);
            command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
            if command.status().is_err() {
                eprintln!("skipped: {test}: no {program} (install {package})");
                return None;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        // The server chooses a free display and writes its number; its screen is a file.
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-fbdir"])
            .arg(folder.path())
            .args(["-screen", "0", &format!("{width}x{height}x24")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        assert!(!number.trim().is_empty(), "Xvfb did not start");
        Some(Self { server, display: format!(":{}", number.trim()), folder })
    }

    /// Name of the display for clients.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// The screen as it is now.
    pub fn screen(&self) -> RgbaImage {
        let bytes = std::fs::read(self.folder.path().join("Xvfb_screen0")).unwrap();
        xwd(&bytes)
    }

    /// Saves a screenshot if STEREOD_TEST_PICTURES names a folder.
    pub fn save(&self, name: &str) {
        if let Some(folder) = std::env::var_os("STEREOD_TEST_PICTURES") {
            self.screen().save(Path::new(&folder).join(format!("{name}.png"))).unwrap();
        }
    }

    /// Waits until the screen satisfies the condition.
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&RgbaImage) -> bool) {
        let mut patience = Patience::begin();
        while !is_so(&self.screen()) {
            if patience.is_over() {
                let kept = std::env::temp_dir().join("stereod-window-test-failed.png");
                let _ = self.screen().save(&kept);
                panic!("never on the screen: {what}; see {}", kept.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the window with this title, if it exists, and gives it the keyboard focus.
    pub fn window(&self, title: &str) -> String {
        let id = self.xdotool(&["search", "--sync", "--onlyvisible", "--name", title]);
        let id = id.lines().next().unwrap_or_default().to_owned();
        // There is no window manager that would set the focus.
        self.xdotool(&["windowfocus", "--sync", &id]);
        id
    }

    /// Left, top, width and height of a window.
    pub fn geometry(&self, window: &str) -> (u32, u32, u32, u32) {
        let said = self.xdotool(&["getwindowgeometry", "--shell", window]);
        let value = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap().parse().unwrap()
        };
        (value("X"), value("Y"), value("WIDTH"), value("HEIGHT"))
    }

    /// Presses and releases a key.
    pub fn key(&self, window: &str, key: &str) {
        self.xdotool(&["windowfocus", window]);
        self.xdotool(&["key", key]);
    }

    /// Presses a key twice, as some questions want it, until `is_so`: on a slow machine the second time may come when
    /// the question is too old. The window may close meanwhile.
    pub fn confirm(&self, window: &str, key: &str, mut is_so: impl FnMut() -> bool) {
        let mut patience = Patience::begin();
        while !is_so() {
            assert!(!patience.is_over(), "{key} does nothing");
            for _ in 0..2 {
                let _ = self.command(&["windowfocus", window, "key", key]).output();
            }
            let asked = Instant::now();
            while !is_so() && asked.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Moves the mouse to a place in the window.
    pub fn mouse(&self, window: &str, (x, y): (u32, u32)) {
        let place = [x.to_string(), y.to_string()];
        self.xdotool(&["mousemove", "--window", window, &place[0], &place[1]]);
    }

    /// Presses and releases the mouse's left button.
    pub fn click(&self) {
        self.xdotool(&["click", "1"]);
    }

    /// Moves the mouse in the window from one place to another with its left button pressed.
    pub fn drag(&self, window: &str, from: (u32, u32), to: (u32, u32)) {
        self.mouse(window, from);
        self.xdotool(&["mousedown", "1"]);
        self.mouse(window, to);
        self.xdotool(&["mouseup", "1"]);
    }

    /// Changes the size of the window.
    pub fn resize(&self, window: &str, (width, height): (u32, u32)) {
        let size = [width.to_string(), height.to_string()];
        self.xdotool(&["windowsize", "--sync", window, &size[0], &size[1]]);
    }

    /// Runs an xdotool command and repeats it if it fails: a window that was just opened does not
    /// accept everything yet (X answers BadMatch). A failed attempt presses no key.
    fn xdotool(&self, arguments: &[&str]) -> String {
        let mut patience = Patience::begin();
        loop {
            let output = self.command(arguments).output().unwrap();
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
            assert!(!patience.is_over(), "xdotool {arguments:?}: {output:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg(LIMIT.as_secs().to_string()).arg("xdotool").args(arguments);
        command.env("DISPLAY", &self.display);
        command
    }
}

impl Drop for X {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Reads the X window dump (XWD version 7) of a TrueColor screen with 32 bits a pixel.
fn xwd(bytes: &[u8]) -> RgbaImage {
    let field = |i: usize| u32::from_be_bytes(bytes[i * 4..][..4].try_into().unwrap());
    let [header, version, width, height] = [field(0), field(1), field(4), field(5)];
    let [byte_order, bits, pitch, colours] = [field(7), field(11), field(12), field(19)];
    assert_eq!((version, bits), (7, 32), "the format of Xvfb's screen");
    // An entry of the colour table has 12 bytes.
    let pixels = &bytes[header as usize + colours as usize * 12..];
    RgbaImage::from_fn(width, height, |x, y| {
        let pixel: [u8; 4] = pixels[(y * pitch + x * 4) as usize..][..4].try_into().unwrap();
        let value =
            if byte_order == 0 { u32::from_le_bytes(pixel) } else { u32::from_be_bytes(pixel) };
        let [_, red, green, blue] = value.to_be_bytes();
        Rgba([red, green, blue, 255])
    })
}
