//! Long calls that Ctrl-C ends.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;

/// Time between two looks for an interrupt from the keyboard.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own and waits for it, with the interpreter free. Python handles signals
/// only on the thread that waits. An interrupt ends the wait, but not the work, whose result is dropped.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, result) = bounded(1);
    let run = move || {
        // Nobody receives it after an interrupt.
        let _ = send.send(work());
    };
    let thread = thread::Builder::new().name("stereod call".into()).spawn(run)?;
    loop {
        match py.detach(|| result.recv_timeout(POLL)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match py.detach(|| thread.join()) {
        Err(panic) => resume_unwind(panic),
        Ok(()) => unreachable!("it sends a result unless it panics"),
    }
}
