//! Forks wait for engines that are being made.
//!
//! Making an engine initialises global variables and loads libraries. A fork in the middle of it would leave
//! their locks to the child, held by a thread that does not exist there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Engines that are being made.
static MAKING: AtomicUsize = AtomicUsize::new(0);

/// Threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);

const POLL: Duration = Duration::from_millis(1);

/// Runs `make` while no thread forks. Must not be called with the interpreter held.
pub fn held_off<T>(make: impl FnOnce() -> T) -> T {
    struct Made;
    impl Drop for Made {
        fn drop(&mut self) {
            MAKING.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let _made = loop {
        MAKING.fetch_add(1, Ordering::SeqCst);
        let made = Made;
        if FORKING.load(Ordering::SeqCst) == 0 {
            break made;
        }
        drop(made);
        thread::sleep(POLL);
    };
    make()
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKING.fetch_add(1, Ordering::SeqCst);
    while MAKING.load(Ordering::SeqCst) > 0 {
        py.detach(|| thread::sleep(POLL));
    }
}

#[pyfunction]
fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    // Only this thread is here.
    MAKING.store(0, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
}

/// Makes Python call the functions above around each fork.
pub fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    // Windows does not fork.
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, py)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, py)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, py)?)?;
    os.call_method("register_at_fork", (), Some(&hooks)).map(drop)
}
