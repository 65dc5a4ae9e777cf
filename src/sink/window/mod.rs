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
mod options;
mod overlay;
mod panel;
mod remote;
mod renderer;
mod rows;
mod scene;
mod screen;
mod snapshot;
mod style;
mod textures;
mod tuning;
mod xlib;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use winit::application::ApplicationHandler;
use winit::event_loop::EventLoop;

pub use guided::{GuidedKeys, GuidedRemote};
pub use guided_paint::{GuidedState, GuidedView};
pub use histogram::Histogram;
pub use mailbox::{Rates, Timing};
pub use offscreen::Offscreen;
pub use options::WindowOptions;
pub use overlay::{Banner, Counts, Hover, Legend, OverlayContent};
pub use remote::{Remote, WindowStats};
pub use rows::Rows;
pub use scene::{Limits, Scene, View, panes};
pub use tuning::{Ask, Knob, KnobKind, Tuned, Tuning, Wish};

use crate::control::Control;
use crate::frame::Matched;
use crate::sink::Sink;
use mailbox::Mailbox;
use remote::Wake;

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
    pub fn connect() -> Result<Self> {
        let mut builder = EventLoop::with_user_event();
        #[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
        {
            libraries_present()?;
            hear_wayland();
            // X11 and Wayland allow any thread; which one it is is the caller's choice.
            winit::platform::x11::EventLoopBuilderExtX11::with_any_thread(&mut builder, true);
        }
        let event_loop = builder.build().context("no display")?;
        let instance = gpu::instance(Some(event_loop.owned_display_handle()));
        gpu::probe(&instance)?;
        let mailbox = Mailbox::default();
        let window = Self { event_loop, instance, mailbox, views: Default::default() };
        xlib::outlive(&window.event_loop, window.remote());
        Ok(window)
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
    /// or [`Remote::close`] is called. Space flips `control.pause`. If the display goes away,
    /// the run goes on without a window.
    pub fn run(self, options: WindowOptions, control: Control) -> Result<()> {
        let stop = control.stop.clone();
        let remote = self.remote();
        let mut app = app::App::new(options, control, remote, self.instance);
        let ran = run_app(self.event_loop, &mut app);
        if ran.is_err() || xlib::is_display_gone(app.has_failed()) {
            tracing::warn!("the display is gone; the run goes on without a window");
            app.abandon();
            return Ok(());
        }
        let shown = app.finish();
        // Whatever the reason, nobody watches any more.
        stop.set(true);
        shown
    }
}

/// Runs the event loop to its end. winit panics where the display goes away at some moments; the run
/// goes on all the same.
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

/// Has what libwayland prints to standard error logged, at the level "debug": graphics drivers try it
/// also where there is no such display.
#[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
fn hear_wayland() {
    use std::ffi::{CStr, c_char, c_void};

    /// Takes a text as of printf, whose values are left out, since only C can read them.
    extern "C" fn log(text: *const c_char, _values: *mut c_void) {
        // SAFETY: libwayland passes a C string.
        let text = unsafe { CStr::from_ptr(text) };
        tracing::debug!("libwayland: {}", text.to_string_lossy().trim_end());
    }
    // SAFETY: both names are C strings. libwayland declares `void wl_log_set_handler_client(void
    // (*)(const char*, va_list))`, and the handler does not touch its second argument.
    unsafe {
        let library = libc::dlopen(c"libwayland-client.so.0".as_ptr(), libc::RTLD_LAZY);
        if library.is_null() {
            return;
        }
        let set_handler = libc::dlsym(library, c"wl_log_set_handler_client".as_ptr());
        if !set_handler.is_null() {
            type Handler = extern "C" fn(*const c_char, *mut c_void);
            let set_handler: extern "C" fn(Handler) = std::mem::transmute(set_handler);
            set_handler(log);
        }
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
