//! Loss of the X server, which Xlib answers by ending the process unless it is told otherwise.
//!
//! libX11 1.7 and newer call a handler instead of `exit`. A handler that returns leaves Xlib's buffers in
//! a state in which later calls crash, so this one never does: it gives up the thread.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use winit::event_loop::EventLoop;
use winit::raw_window_handle::{HasDisplayHandle, RawDisplayHandle};

type OnError = extern "C" fn(*mut c_void) -> c_int;
type OnLoss = Box<dyn Fn() + Send + Sync>;
type OnExit = extern "C" fn(*mut c_void, *mut c_void);

/// Longest wait for the end of the connection after the graphics have failed: drivers have connections of
/// their own, which may be closed before.
const HANGING_UP: Duration = Duration::from_millis(500);

/// True once the display is lost. There is one in a process.
static LOST: AtomicBool = AtomicBool::new(false);

pub(super) fn has_lost_display() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Reports whether the X server has closed the connection, or does so within half a second, because
/// graphics drivers may notice the loss before Xlib does.
pub(super) fn is_lost<T>(event_loop: &EventLoop<T>) -> bool {
    let Some(display) = display(event_loop) else { return false };
    let Some(number) = symbol(c"XConnectionNumber") else { return false };
    // SAFETY: libX11 declares `int XConnectionNumber(Display*)`, and the display is open.
    let connection = unsafe {
        let number: extern "C" fn(*mut c_void) -> c_int = std::mem::transmute(number);
        number(display)
    };
    is_hung_up(connection, HANGING_UP)
}

/// Parks the thread of the event loop for good. Nothing that it holds may be used or freed any more, since
/// Xlib would be called, which may crash.
pub(super) fn give_up() -> ! {
    LOST.store(true, Ordering::Relaxed);
    loop {
        std::thread::park();
    }
}

/// Makes the loss of the X server call `lost`; threads that call Xlib after it then stop there
/// instead of ending the process. Has no effect on Wayland or with an older libX11.
pub(super) fn on_loss<T>(event_loop: &EventLoop<T>, lost: impl Fn() + Send + Sync + 'static) {
    let (Some(display), Some(set_exit), Some(set_error)) =
        (display(event_loop), symbol(c"XSetIOErrorExitHandler"), symbol(c"XSetIOErrorHandler"))
    else {
        return;
    };
    // The handler may be called as long as the process lives.
    let lost: *mut OnLoss = Box::into_raw(Box::new(Box::new(lost)));
    // SAFETY: libX11 declares `void XSetIOErrorExitHandler(Display*, void (*)(Display*, void*), void*)`
    // and `int (*XSetIOErrorHandler(int (*)(Display*)))(Display*)`. The display is open, the handlers are
    // functions, and `lost` is never freed.
    unsafe {
        let set_exit: extern "C" fn(*mut c_void, OnExit, *mut c_void) =
            std::mem::transmute(set_exit);
        let set_error: extern "C" fn(OnError) -> *mut c_void = std::mem::transmute(set_error);
        set_error(say_nothing);
        set_exit(display, report_loss, lost.cast());
    }
}

/// Returns the Xlib `Display` of an event loop; `None` on Wayland.
fn display<T>(event_loop: &EventLoop<T>) -> Option<*mut c_void> {
    let handle = event_loop.owned_display_handle();
    match handle.display_handle().ok()?.as_raw() {
        RawDisplayHandle::Xlib(handle) => handle.display.map(|display| display.as_ptr()),
        _ => None,
    }
}

/// Reports whether the other side of a connection has closed it, or does so within `patience`.
fn is_hung_up(connection: c_int, patience: Duration) -> bool {
    let mut asked = libc::pollfd { fd: connection, events: 0, revents: 0 };
    // SAFETY: it is one structure, which outlives the call.
    unsafe { libc::poll(&mut asked, 1, patience.as_millis() as c_int) };
    asked.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// Returns a function of libX11, which winit has loaded.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: both names are C strings, and the library is loaded already and stays so.
    let address = unsafe {
        let library = libc::dlopen(c"libX11.so.6".as_ptr(), libc::RTLD_LAZY);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, name.as_ptr())
    };
    (!address.is_null()).then_some(address)
}

/// Takes the place of Xlib's own handler, which prints to standard error.
extern "C" fn say_nothing(_display: *mut c_void) -> c_int {
    0
}

extern "C" fn report_loss(_display: *mut c_void, lost: *mut c_void) {
    // SAFETY: it is the function that `on_loss` handed over and that is never freed.
    let lost = unsafe { &*lost.cast::<OnLoss>() };
    lost();
    give_up()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_closed_connection_is_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let now = Duration::ZERO;
        assert!(!is_hung_up(ours.as_raw_fd(), now));
        drop(theirs);
        assert!(is_hung_up(ours.as_raw_fd(), now));
    }
}
