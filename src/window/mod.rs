//! The window: winit and wgpu, the overlay by egui.
//!
//! ```text
//! sink thread ── WindowSink ─▶ mailbox (the newest frame) ─┐
//!                                                          ├─▶ App (event loop) ─▶ Screen ─▶ Renderer, Overlay
//! any thread ─── Remote ─────▶ wake-ups of the event loop ─┘                      Offscreen ─┘
//! ```
//!
//! The event loop has a thread of its own, which [`Window::run`] waits for. If the display is lost, that
//! thread is given up, because each further call of Xlib on it could end the process.

mod above;
mod app;
mod bar;
mod event_loop;
mod gpu;
mod guided;
mod help;
mod histogram;
mod layer;
mod offscreen;
mod options;
mod orbit;
mod overlay;
mod pane;
mod panel;
mod path;
mod remote;
mod renderer;
mod rows;
mod scene;
mod screen;
mod style;
mod timeline;
mod wipe;
mod xlib;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use winit::error::EventLoopError;
use winit::event_loop::EventLoop;

pub use above::Around;
#[cfg(test)]
pub(crate) use app::measuring::ruler;
use event_loop::{End, Shell, show_window};
pub use guided::{GuidedKeys, GuidedRemote, GuidedState, GuidedView};
pub use help::Sheet;
pub use histogram::Histogram;
pub use offscreen::Offscreen;
pub use options::{CameraDesk, Timing, View, WindowOptions};
pub use orbit::Orbit;
pub use overlay::{Bar, Hover, Legend, OverlayContent, Ruler};
#[cfg(test)]
pub(crate) use panel::Panel;
use remote::{Mailbox, Wake};
pub use remote::{Rates, Remote};
pub use rows::Rows;
pub use scene::{ALL_DEPTHS, Limits, Scene, panes};
use stereod_core::frame::Matched;
use stereod_core::thread;
use stereod_io::control::Control;
use stereod_io::sink::Sink;
pub use timeline::Timeline;
pub use wipe::{Side, Wipe};
#[cfg(test)]
pub(crate) use wipe::{differences, known as known_share};

/// Longest wait for the display to be closed.
const CLOSING: Duration = Duration::from_secs(1);

/// A display on which a window can be opened. There can be one in a process.
pub struct Window {
    remote: Remote,
    views: guided::Views,
    end: Receiver<End>,
    /// `None` once the window was shown or is to be dropped.
    start: Option<SyncSender<Show>>,
    thread: JoinHandle<()>,
}

/// Shows a window until it is closed; on the thread of the event loop.
type Show = Box<dyn FnOnce(&mut EventLoop<Wake>, wgpu::Instance) -> End + Send>;

impl Window {
    /// Connects to the display, without opening a window yet. If this fails, the run is to be
    /// headless.
    pub fn connect() -> Result<Self> {
        let (start, show) = sync_channel::<Show>(1);
        let (ended, end) = sync_channel(1);
        let (connected, connection) = sync_channel(1);
        let serve = move || {
            let (mut event_loop, instance) = match connect_display() {
                Ok(display) => display,
                Err(error) => return drop(connected.send(Err(error))),
            };
            let proxy = event_loop.create_proxy();
            let on_loss = ended.clone();
            xlib::on_loss(&event_loop, move || drop(on_loss.try_send(End::DisplayLost)));
            let _ = connected.send(Ok(Remote { mailbox: Mailbox::default(), proxy }));
            let Ok(show) = show.recv() else { return };
            // winit panics if the display goes away at some moments.
            let end = catch_unwind(AssertUnwindSafe(|| show(&mut event_loop, instance)))
                .unwrap_or(End::DisplayLost);
            let is_lost = matches!(end, End::DisplayLost);
            let _ = ended.try_send(end);
            if is_lost {
                xlib::give_up();
            }
        };
        let thread = thread::spawn("window", serve, |_| ())?;
        let remote = connection.recv().context("no display")??;
        Ok(Self { remote, views: Default::default(), end, start: Some(start), thread })
    }

    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Returns a handle for other threads, for a window that guides a person who calibrates.
    pub fn guided_remote(&self) -> GuidedRemote {
        GuidedRemote::new(self.remote(), self.views.clone())
    }

    /// Opens the window of a guided calibration and shows the frames that arrive through
    /// [`Window::guided_remote`], until the user quits (which sets `keys.quit`) or the remote closes
    /// it. Fails if the window cannot be opened or the display is lost.
    pub fn run_guided(self, options: WindowOptions, keys: GuidedKeys) -> Result<()> {
        let quit = keys.quit.clone();
        let (remote, views) = (self.remote(), self.views.clone());
        let end = self.show(move |event_loop, instance| {
            let shell = Shell::new(options, remote, instance);
            show_window(event_loop, guided::App::new(shell, keys, views))
        });
        quit.set(true);
        match end {
            End::Closed(shown) => shown,
            End::DisplayLost => bail!("the display is gone"),
        }
    }

    /// Opens the window and shows arriving frames until the user quits (which sets `control.stop`)
    /// or [`Remote::close`] is called. Space begins and ends `control.pause`. If the display is lost, the run
    /// goes on without a window. Fails, and sets `control.stop`, if the window cannot be opened or the
    /// graphics device fails.
    pub fn run(self, options: WindowOptions, control: Control) -> Result<()> {
        let stop = control.stop.clone();
        let remote = self.remote();
        let end = self.show(move |event_loop, instance| {
            let shell = Shell::new(options, remote, instance);
            show_window(event_loop, app::App::new(shell, control))
        });
        match end {
            End::Closed(shown) => {
                // No viewer is left, for any reason.
                stop.set(true);
                shown
            }
            End::DisplayLost => {
                tracing::warn!("the display is gone; the run goes on without a window");
                Ok(())
            }
        }
    }

    fn show(
        mut self,
        show: impl FnOnce(&mut EventLoop<Wake>, wgpu::Instance) -> End + Send + 'static,
    ) -> End {
        let _ = self.start.take().map(|start| start.send(Box::new(show)));
        self.end.recv().unwrap_or(End::DisplayLost)
    }
}

impl Drop for Window {
    /// Waits until the display is closed, because libraries must not be in use when the process ends.
    fn drop(&mut self) {
        drop(self.start.take());
        thread::wait_for(&self.thread, |passed| xlib::has_lost_display() || passed > CLOSING);
    }
}

fn connect_display() -> Result<(EventLoop<Wake>, wgpu::Instance)> {
    let mut builder = EventLoop::with_user_event();
    #[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
    {
        libraries_present()?;
        hear_wayland();
        winit::platform::x11::EventLoopBuilderExtX11::with_any_thread(&mut builder, true);
    }
    let event_loop = builder.build().map_err(|error| match error {
        // Its text names a file of the source.
        EventLoopError::Os(_) => anyhow!("no display: nothing answers at {}", display_names()),
        other => anyhow!("no display: {other}"),
    })?;
    let instance = gpu::instance(Some(event_loop.owned_display_handle()));
    gpu::probe(&instance)?;
    Ok((event_loop, instance))
}

fn display_names() -> String {
    let named = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().filter_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(format!("{name}={value}"))
    });
    named.collect::<Vec<_>>().join(" or ")
}

/// Fails if a library is missing without which winit panics.
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

/// Logs the messages of libwayland at level "debug" instead of standard error, because graphics drivers
/// try Wayland also on other displays.
#[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
fn hear_wayland() {
    use std::ffi::{CStr, c_char, c_void};

    /// Takes a format string of printf. Its values are left out, because only C can read them.
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

/// Shows matched pairs in the window. Never blocks: a slow display skips frames.
pub struct WindowSink {
    remote: Remote,
    timing: Timing,
}

impl WindowSink {
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
}
