//! Loss of the X server. Xlib then ends the process by `exit`, unless it is told otherwise, as libX11 1.7
//! and newer can be.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use winit::event_loop::EventLoop;
use winit::raw_window_handle::{HasDisplayHandle, RawDisplayHandle};

use super::remote::{Remote, Wake};

type OnError = extern "C" fn(*mut c_void) -> c_int;
type OnExit = extern "C" fn(*mut c_void, *mut c_void);

/// True where the display went away.
static GONE: AtomicBool = AtomicBool::new(false);

/// True where the display went away.
pub(super) fn is_display_gone() -> bool {
    GONE.load(Ordering::SeqCst)
}

/// From now on the loss of the X server wakes the event loop by [`Wake::DisplayGone`] instead of ending
/// the process. Nothing changes on Wayland, and with an older libX11.
pub(super) fn outlive(event_loop: &EventLoop<Wake>, remote: Remote) {
    let handle = event_loop.owned_display_handle();
    let Ok(RawDisplayHandle::Xlib(handle)) = handle.display_handle().map(|handle| handle.as_raw())
    else {
        return;
    };
    let (Some(display), Some(set_exit), Some(set_error)) =
        (handle.display, symbol(c"XSetIOErrorExitHandler"), symbol(c"XSetIOErrorHandler"))
    else {
        return;
    };
    // The display lives as long as the process, about.
    let remote: *mut Remote = Box::into_raw(Box::new(remote));
    // SAFETY: libX11 declares `void XSetIOErrorExitHandler(Display*, void (*)(Display*, void*), void*)`
    // and `int (*XSetIOErrorHandler(int (*)(Display*)))(Display*)`. The display is open, the handlers
    // are functions, and `remote` is never freed.
    unsafe {
        let set_exit: extern "C" fn(*mut c_void, OnExit, *mut c_void) =
            std::mem::transmute(set_exit);
        let set_error: extern "C" fn(OnError) -> *mut c_void = std::mem::transmute(set_error);
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
