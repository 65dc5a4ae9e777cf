//! Runs an application of the event loop to its end.

use std::mem::ManuallyDrop;

use anyhow::Result;
use winit::application::ApplicationHandler;
use winit::event_loop::EventLoop;
use winit::platform::run_on_demand::EventLoopExtRunOnDemand;

use super::remote::Wake;
use super::xlib;

/// Error of a window that did not close by itself.
pub(super) const DESTROYED: &str = "the window was destroyed by another program";

/// Reason why a window is no longer shown.
pub(super) enum End {
    Closed(Result<()>),
    DisplayLost,
}

/// An application of the event loop, which may fail.
pub(super) trait App: ApplicationHandler<Wake> {
    /// Reports whether an error has ended the event loop.
    fn has_failed(&self) -> bool;

    /// Completes pending work of the window. Returns the error that ended the event loop, if one
    /// did.
    fn finish(self) -> Result<()>;
}

/// Runs an application until its event loop ends. If the display is lost, the application is not
/// dropped, because a window is freed by asking the display.
pub(super) fn show_app(event_loop: &mut EventLoop<Wake>, app: impl App) -> End {
    let mut app = ManuallyDrop::new(app);
    let ran = event_loop.run_app_on_demand(&mut *app);
    if ran.is_err() || app.has_failed() && xlib::is_lost(event_loop) {
        return End::DisplayLost;
    }
    End::Closed(ManuallyDrop::into_inner(app).finish())
}
