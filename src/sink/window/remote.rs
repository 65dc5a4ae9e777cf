//! The way into the window from other threads.

use std::sync::Arc;

use winit::event_loop::EventLoopProxy;

use super::mailbox::{Mailbox, Timing};
use super::overlay::{Banner, Counts};
use super::tuning::Tuned;
use super::xlib;
use crate::frame::Matched;

/// Message to the event loop from other threads.
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
    /// Settings were changed, or not.
    Tuned(Box<Tuned>),
    /// A snapshot was written, or not.
    Saved(Result<String, String>),
    /// The graphics device failed.
    Graphics,
}

/// Figures from the pipeline for the overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowStats {
    /// Name of the engine, in a few words.
    pub engine: String,
    /// Counts so far.
    pub counts: Counts,
    /// Alignment of the eyes, in a few words, and whether that is an alarm.
    pub alignment: Option<(String, bool)>,
    /// Noise and exposure of the eyes, in a few words, and whether that is an alarm.
    pub exposure: Option<(String, bool)>,
    /// Troubles that there are just now, and such as are just over.
    pub banners: Vec<Banner>,
}

/// Reaches the window from any thread; never waits for it. What is sent after the window was
/// closed is ignored.
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

    pub(super) fn wake(&self, wake: Wake) {
        // An event loop whose display is lost takes no messages, which would pile up. An error says that
        // it has ended in order.
        if !xlib::has_lost_display() {
            let _ = self.proxy.send_event(wake);
        }
    }
}
