//! Handle of the window for other threads.

use std::sync::Arc;

use winit::event_loop::EventLoopProxy;

use super::mailbox::Mailbox;
use super::options::Timing;
use super::xlib;
use crate::status::RunStatus;
use crate::viewer::{Tuned, Viewer};
use stereod_core::camera::CameraReport;
use stereod_core::frame::Matched;

/// Message to the event loop from other threads.
#[derive(Debug)]
pub(crate) enum Wake {
    /// The mailbox holds a frame.
    Frame,
    Status(Arc<RunStatus>),
    /// The stream has ended; the last frame stays until the user quits.
    Ended,
    /// The run failed; the last frame stays, with the message.
    Failed(String),
    Close,
    /// Settings were changed, or not.
    Tuned(Box<Tuned>),
    /// State of the camera at this place.
    Camera(usize, Box<CameraReport>),
    /// A snapshot was written, or not.
    Saved(Result<String, String>),
    Graphics,
}

/// Handle of the window for other threads. Never waits for it. Messages to a closed window are
/// ignored.
#[derive(Clone)]
pub struct Remote {
    pub(super) mailbox: Mailbox,
    pub(super) proxy: EventLoopProxy<Wake>,
}

impl Remote {
    /// Shows a frame; one that was not shown yet is skipped.
    pub fn frame(&self, frame: Arc<Matched>, timing: Timing) {
        if self.mailbox.put(frame, timing) {
            self.wake(Wake::Frame);
        }
    }

    /// Shows a new status.
    pub fn status(&self, status: Arc<RunStatus>) {
        self.wake(Wake::Status(status));
    }

    /// Reports the end of the stream. The last frame stays until the user quits.
    pub fn ended(&self) {
        self.wake(Wake::Ended);
    }

    /// Reports a failure. The last frame stays until the user quits.
    pub fn failed(&self, message: impl Into<String>) {
        self.wake(Wake::Failed(message.into()));
    }

    /// Reports the state of the camera at this place of [`super::CameraDesk::inputs`].
    pub fn camera(&self, place: usize, report: CameraReport) {
        self.wake(Wake::Camera(place, Box::new(report)));
    }

    /// Closes the window.
    pub fn close(&self) {
        self.wake(Wake::Close);
    }

    pub(super) fn wake(&self, wake: Wake) {
        // An event loop whose display is lost takes no messages, which would pile up. An error says that
        // it has ended in order.
        if !xlib::has_lost_display() {
            let _ = self.proxy.send_event(wake);
        }
    }
}

impl Viewer for Remote {
    fn tuned(&self, tuned: Tuned) {
        self.wake(Wake::Tuned(Box::new(tuned)));
    }

    fn saved(&self, message: Result<String, String>) {
        self.wake(Wake::Saved(message));
    }
}
