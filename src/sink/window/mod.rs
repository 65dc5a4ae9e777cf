//! The window: winit and wgpu, the overlay by egui.
//!
//! ```text
//! sink thread ── WindowSink ─▶ mailbox (the newest frame) ─┐
//!                                                          ├─▶ App (event loop, main thread) ─▶ Screen ─▶ Renderer, Overlay
//! any thread ─── Remote ─────▶ wake-ups of the event loop ─┘                                   Offscreen ─┘
//! ```

mod app;
mod gpu;
mod guided;
mod guided_paint;
mod histogram;
mod layer;
mod mailbox;
mod offscreen;
mod overlay;
mod panel;
mod renderer;
mod rows;
mod scene;
mod screen;
mod snapshot;
mod style;
mod tuning;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use winit::application::ApplicationHandler;
use winit::event_loop::{EventLoop, EventLoopProxy};

pub use guided::{GuidedKeys, GuidedRemote, GuidedState, GuidedView};
pub use histogram::Histogram;
pub use mailbox::{Rates, Timing};
pub use offscreen::Offscreen;
pub use overlay::{Banner, Counts, Hover, Legend, OverlayContent};
pub use rows::Rows;
pub use scene::{Content, Limits, Pane, Scene, View, panes, window_size};
pub use tuning::{Ask, Knob, KnobKind, Tuned, Tuning, Wish};

use crate::control::Control;
use crate::frame::{DisparityRange, Matched};
use crate::sink::Sink;
use crate::sink::colour::{ColourMap, ColourRange};
use mailbox::Mailbox;

/// What the window shows first, and what it needs to know.
#[derive(Clone, Debug)]
pub struct WindowOptions {
    /// Title of the window.
    pub title: String,
    /// Width and height of the pictures that will come.
    pub picture: (u32, u32),
    /// The colours at the start.
    pub colour_map: ColourMap,
    /// The candidate disparities.
    pub disparities: DisparityRange,
    /// Which disparities span the colours.
    pub colour_range: ColourRange,
    /// The view at the start.
    pub view: View,
    /// Folder of the snapshots.
    pub snapshot_dir: PathBuf,
    /// File for the settings; `None`: one beside the snapshots.
    pub settings_file: Option<PathBuf>,
    /// How things can be changed, where they can.
    pub tuning: Option<Tuning>,
    /// Pictures smaller than this (width, height) are enlarged at the start.
    pub smallest: (u32, u32),
    /// The window is no larger than this (width, height) at the start, nor than the monitor.
    pub largest: (u32, u32),
    /// Whether it starts on the full screen.
    pub full_screen: bool,
}

impl WindowOptions {
    /// The usual window for pictures of this size with these candidate disparities.
    pub fn new(title: impl Into<String>, picture: (u32, u32), disparities: DisparityRange) -> Self {
        Self {
            title: title.into(),
            picture,
            colour_map: ColourMap::Turbo,
            disparities,
            colour_range: ColourRange::Full,
            view: View::Disparity,
            snapshot_dir: PathBuf::from("."),
            settings_file: None,
            tuning: None,
            smallest: (640, 360),
            largest: (1600, 1000),
            full_screen: false,
        }
    }
}

/// What reaches the event loop from other threads.
#[derive(Debug)]
pub(crate) enum Wake {
    /// The mailbox holds a frame.
    Frame,
    /// New figures.
    Stats(WindowStats),
    /// The stream has ended; the last picture stays until the user quits.
    Ended,
    /// Something went wrong; the last picture stays with the message.
    Failed(String),
    /// The window is to close.
    Close,
    /// What can be changed was, or not.
    Tuned(Box<Tuned>),
    /// A snapshot was written, or not.
    Saved(Result<String, String>),
    /// The graphics device failed.
    Graphics,
}

/// Figures from the pipeline for the overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowStats {
    /// What computes, in a few words.
    pub engine: String,
    /// What was counted so far.
    pub counts: Counts,
    /// How the eyes are aligned, in a few words, and whether that is an alarm.
    pub alignment: Option<(String, bool)>,
    /// Troubles that there are just now, and such as are just over.
    pub banners: Vec<Banner>,
}

/// A display on which a window can be opened. There can be one in a process.
pub struct Window {
    event_loop: EventLoop<Wake>,
    instance: wgpu::Instance,
    mailbox: Mailbox,
    views: guided::Views,
}

impl Window {
    /// Connects to the display, without opening a window yet. Where this fails the run is to be
    /// headless.
    ///
    /// # Errors
    /// Where there is no display, or no graphics driver, in words for people.
    pub fn connect() -> Result<Self> {
        let mut builder = EventLoop::with_user_event();
        #[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
        {
            libraries_present()?;
            // X11 and Wayland allow any thread; which one it is is the caller's choice.
            winit::platform::x11::EventLoopBuilderExtX11::with_any_thread(&mut builder, true);
        }
        let event_loop = builder.build().context("no display")?;
        let instance = gpu::instance(Some(event_loop.owned_display_handle()));
        gpu::probe(&instance)?;
        Ok(Self { event_loop, instance, mailbox: Mailbox::default(), views: Default::default() })
    }

    /// A handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote { mailbox: self.mailbox.clone(), proxy: self.event_loop.create_proxy() }
    }

    /// A handle for other threads, for a window that guides a person who calibrates.
    pub fn guided_remote(&self) -> GuidedRemote {
        GuidedRemote::new(self.remote(), self.views.clone())
    }

    /// Opens the window of a guided calibration and shows what arrives through
    /// [`Window::guided_remote`], until the user quits (which sets `keys.quit`) or the remote closes
    /// it.
    ///
    /// # Errors
    /// As of [`Window::run`].
    pub fn run_guided(self, options: WindowOptions, keys: GuidedKeys) -> Result<()> {
        let quit = keys.quit.clone();
        let remote = self.remote();
        let mut app = guided::App::new(options, keys, remote, self.views, self.instance);
        let ran = run_app(self.event_loop, &mut app);
        let shown = app.finish();
        quit.set(true);
        ran.and(shown)
    }

    /// Opens the window and shows what arrives, until the user quits (which sets `control.stop`)
    /// or [`Remote::close`] is called. Space flips `control.pause`.
    ///
    /// # Errors
    /// Where the window cannot be opened or the graphics device fails; `control.stop` is set then.
    pub fn run(self, options: WindowOptions, control: Control) -> Result<()> {
        let stop = control.stop.clone();
        let remote = self.remote();
        let mut app = app::App::new(options, control, remote, self.instance);
        let ran = run_app(self.event_loop, &mut app);
        let shown = app.finish();
        // Whatever the reason, nobody watches any more.
        stop.set(true);
        ran.and(shown)
    }
}

/// Runs the event loop to its end. winit panics where the display goes away; the files of the run are
/// finished all the same.
fn run_app(event_loop: EventLoop<Wake>, app: &mut impl ApplicationHandler<Wake>) -> Result<()> {
    std::panic::catch_unwind(AssertUnwindSafe(|| event_loop.run_app(app)))
        .unwrap_or_else(|_| Err(winit::error::EventLoopError::ExitFailure(1)))
        .context("the display failed")
}

/// winit panics where this library is missing; nothing else on a display needs it.
#[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
fn libraries_present() -> Result<()> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let libraries = [
        (c"libxkbcommon.so.0", "libxkbcommon0", true),
        (c"libxkbcommon-x11.so.0", "libxkbcommon-x11-0", !set("WAYLAND_DISPLAY")),
    ];
    if !set("DISPLAY") && !set("WAYLAND_DISPLAY") && !set("WAYLAND_SOCKET") {
        bail!("no display (neither DISPLAY nor WAYLAND_DISPLAY is set)");
    }
    for (library, package, needed) in libraries {
        // SAFETY: the name is a C string, and loading this library runs nothing of consequence.
        // It stays loaded: winit loads it next.
        if needed && unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY) }.is_null() {
            bail!("{} is missing; install {package}", library.to_string_lossy());
        }
    }
    Ok(())
}

/// Reaches the window from any thread; never waits for it. What is sent after the window was
/// closed is ignored.
#[derive(Clone)]
pub struct Remote {
    mailbox: Mailbox,
    proxy: EventLoopProxy<Wake>,
}

impl Remote {
    /// Shows a frame; one that was not shown yet is skipped.
    pub fn frame(&self, frame: Arc<Matched>, timing: Timing) {
        if self.mailbox.put(frame, timing) {
            self.wake(Wake::Frame);
        }
    }

    /// Shows new figures.
    pub fn stats(&self, stats: WindowStats) {
        self.wake(Wake::Stats(stats));
    }

    /// Answers what the window has asked for, or says that something was changed.
    pub fn tuned(&self, tuned: Tuned) {
        self.wake(Wake::Tuned(Box::new(tuned)));
    }

    /// Says that a file was written, or why not.
    pub fn saved(&self, message: Result<String, String>) {
        self.wake(Wake::Saved(message));
    }

    /// Says that the stream has ended; the last picture stays until the user quits.
    pub fn ended(&self) {
        self.wake(Wake::Ended);
    }

    /// Says what went wrong; the last picture stays until the user quits.
    pub fn failed(&self, message: impl Into<String>) {
        self.wake(Wake::Failed(message.into()));
    }

    /// Closes the window.
    pub fn close(&self) {
        self.wake(Wake::Close);
    }

    fn wake(&self, wake: Wake) {
        // An error says that the event loop has ended: nobody looks any more.
        let _ = self.proxy.send_event(wake);
    }
}

/// Shows matched pairs in the window. Never blocks: frames that the display is too slow for are
/// skipped.
pub struct WindowSink {
    remote: Remote,
    timing: Timing,
}

impl WindowSink {
    /// A sink that feeds the window of `remote`, which shows this of the frames' times.
    pub fn new(remote: Remote, timing: Timing) -> Self {
        Self { remote, timing }
    }
}

impl Sink for WindowSink {
    fn name(&self) -> &str {
        "window"
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.remote.frame(frame.clone(), self.timing);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
