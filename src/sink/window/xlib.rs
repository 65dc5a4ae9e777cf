//! Loss of the X server. Xlib then ends the process by `exit`, unless it is told otherwise, as libX11 1.7
//! and newer can be.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use winit::event_loop::EventLoop;
use winit::raw_window_handle::{HasDisplayHandle, RawDisplayHandle};

use super::remote::{Remote, Wake};

type OnError = extern "C" fn(*mut c_void) -> c_int;
type OnExit = extern "C" fn(*mut c_void, *mut c_void);

/// Longest wait for the end of the connection after the graphics have failed: drivers have connections of
/// their own, which may be closed before.
const HANGING_UP: Duration = Duration::from_millis(500);

/// True where Xlib has noticed that the display went away.
static GONE: AtomicBool = AtomicBool::new(false);

/// Descriptor of the connection to the X server; -1 where there is none.
static CONNECTION: AtomicI32 = AtomicI32::new(-1);

/// Reports whether the display went away. After a failure of the graphics that is waited for, because
/// graphics drivers may notice it before Xlib does.
pub(super) fn is_display_gone(has_failed: bool) -> bool {
    let patience = if has_failed { HANGING_UP } else { Duration::ZERO };
    GONE.load(Ordering::SeqCst) || is_hung_up(CONNECTION.load(Ordering::SeqCst), patience)
}

/// Reports whether the other side of a connection has closed it, or does so within `patience`; a negative
/// descriptor is passed over.
fn is_hung_up(connection: c_int, patience: Duration) -> bool {
    if connection < 0 {
        return false;
    }
    let mut asked = libc::pollfd { fd: connection, events: 0, revents: 0 };
    // SAFETY: it is one structure, which outlives the call.
    unsafe { libc::poll(&mut asked, 1, patience.as_millis() as c_int) };
    asked.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// From now on the loss of the X server wakes the event loop by [`Wake::DisplayGone`] instead of ending
/// the process. Nothing changes on Wayland, and with an older libX11.
pub(super) fn outlive(event_loop: &EventLoop<Wake>, remote: Remote) {
    let handle = event_loop.owned_display_handle();
    let Ok(RawDisplayHandle::Xlib(handle)) = handle.display_handle().map(|handle| handle.as_raw())
    else {
        return;
    };
    let (Some(display), Some(number), Some(set_exit), Some(set_error)) = (
        handle.display,
        symbol(c"XConnectionNumber"),
        symbol(c"XSetIOErrorExitHandler"),
        symbol(c"XSetIOErrorHandler"),
    ) else {
        return;
    };
    // winit keeps the display as long as the process lives.
    let remote: *mut Remote = Box::into_raw(Box::new(remote));
    // SAFETY: libX11 declares `int XConnectionNumber(Display*)`, `void XSetIOErrorExitHandler(Display*,
    // void (*)(Display*, void*), void*)` and `int (*XSetIOErrorHandler(int (*)(Display*)))(Display*)`.
    // The display is open, the handlers are functions, and `remote` is never freed.
    unsafe {
        let set_exit: extern "C" fn(*mut c_void, OnExit, *mut c_void) =
            std::mem::transmute(set_exit);
        let set_error: extern "C" fn(OnError) -> *mut c_void = std::mem::transmute(set_error);
        let number: extern "C" fn(*mut c_void) -> c_int = std::mem::transmute(number);
        CONNECTION.store(number(display.as_ptr()), Ordering::SeqCst);
        set_error(say_nothing);
        set_exit(display.as_ptr(), go_on, remote.cast());
    }
}

/// A function of libX11, which winit has loaded.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: both names are C strings, and the library is loaded already and stays so.
    let found = unsafe {
        let library = libc::dlopen(c"libX11.so.6".as_ptr(), libc::RTLD_LAZY);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}

/// Takes the place of Xlib's own handler, which prints to standard error.
extern "C" fn say_nothing(_display: *mut c_void) -> c_int {
    0
}

/// Takes the place of `exit`.
extern "C" fn go_on(_display: *mut c_void, remote: *mut c_void) {
    if !GONE.swap(true, Ordering::SeqCst) {
        // SAFETY: it is the `Remote` that `outlive` handed over and that is never freed.
        unsafe { &*remote.cast::<Remote>() }.wake(Wake::DisplayGone);
    }
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
        assert!(!is_hung_up(ours.as_raw_fd(), now) && !is_hung_up(-1, now));
        drop(theirs);
        assert!(is_hung_up(ours.as_raw_fd(), now));
    }
}
